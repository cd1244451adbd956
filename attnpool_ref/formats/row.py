"""Language of the table of formats: layouts of tensors and their shapes in letters, tensors, forms, and formats.

A format is a row of the table, with forms and their tensors. Layouts are converted to those of attnpool and back, bit
for bit.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

GIVEN = "given"
"""Default of an option without a default: the caller or a configuration must give its value."""

SPELLING = "spelling"
"""Key of the extra that says from which form a head was read, if the head itself does not show it."""


class Head(NamedTuple):
    """A trained head as data, without a framework.

    Attributes:
      module: the name of the class in ``attnpool_flax``.
      options: arguments of the constructor, by name.
      parameters: arrays, by the names of the parameters of the module; None for an optional one that is absent.
      extras: tensors of the file that are not parameters, by their keys without the prefix, which ``write`` returns
        too; for some heads also :data:`SPELLING`.
    """

    module: str
    options: dict[str, Any]
    parameters: dict[str, Any]
    extras: dict[str, Any]


@dataclass(frozen=True)
class Layout:
    """Layout of a tensor in a file.

    Attributes:
      title: a description of the layout, for the documentation.
      read: converts the file's tensor to a parameter; also takes the sizes of axes by their letters.
      write: converts a parameter to the file's tensor.
    """

    title: str
    read: Callable[[Any, dict], Any]
    write: Callable[[Any], Any]


SAME = Layout("as here", lambda tensor, sizes: tensor, lambda ours: ours)

TRANSPOSED = Layout("(out, in)", lambda tensor, sizes: tensor.T, lambda ours: ours.T)

LEADING = Layout("a leading axis of 1", lambda tensor, sizes: tensor[0], lambda ours: ours[None])

CONVOLUTION = Layout(
    "a convolution over one token, (out, in, 1)",
    lambda tensor, sizes: tensor[..., 0].T,
    lambda ours: ours.T[..., None],
)

IN_HEADS = Layout(
    "(in, heads together)",
    lambda tensor, sizes: tensor.reshape(len(tensor), sizes["H"], -1),
    lambda ours: ours.reshape(len(ours), -1),
)

OUT_OF_HEADS = Layout(
    "(heads together, out)",
    lambda tensor, sizes: tensor.reshape(sizes["H"], -1, tensor.shape[-1]),
    lambda ours: ours.reshape(-1, ours.shape[-1]),
)

BIAS_OF_HEADS = Layout(
    "heads together",
    lambda tensor, sizes: tensor.reshape(sizes["H"], -1),
    lambda ours: ours.reshape(-1),
)

TORCH_IN_HEADS = Layout(
    "(heads together, in)",
    lambda tensor, sizes: IN_HEADS.read(tensor.T, sizes),
    lambda ours: IN_HEADS.write(ours).T,
)

TORCH_OUT_OF_HEADS = Layout(
    "(out, heads together)",
    lambda tensor, sizes: OUT_OF_HEADS.read(tensor.T, sizes),
    lambda ours: OUT_OF_HEADS.write(ours).T,
)

QUERIES_IN_HEADS = Layout(
    "a leading axis of 1, heads together",
    lambda tensor, sizes: tensor[0].reshape(tensor.shape[1], sizes["H"], -1),
    lambda ours: ours.reshape(1, len(ours), -1),
)


@dataclass(frozen=True)
class Tensor:
    """Description of one tensor of a file.

    Attributes:
      key: the name of the tensor without the prefix.
      shape: the shape in letters, such as ``1 1 d``, ``3d d`` and ``s+1 d``.
      parameters: the parameters of the module in this tensor, concatenated along its first axis; () if it is an extra.
      layout: the layout of each parameter in it.
      optional: whether a head may lack it.
    """

    key: str
    shape: str
    parameters: tuple[str, ...] = ()
    layout: Layout = SAME
    optional: bool = False

    @property
    def axes(self):
        """The axes of the shape in letters."""
        return tuple(self.shape.split())

    def fits(self, actual, sizes):
        """Returns whether a shape is that of this tensor under the known sizes of letters.

        If so, the sizes that it determines are added to ``sizes``; if not, ``sizes`` is unchanged.
        """
        if len(self.axes) != len(actual):
            return False
        found = dict(sizes)
        for axis, size in zip(self.axes, actual, strict=True):
            term = _parsed(axis)
            if term["number"]:
                fits = size == int(term["number"])
            else:
                times, plus = int(term["times"] or 1), int(term["plus"] or 0)
                whole, rest = divmod(size - plus, times)
                fits = rest == 0 and whole >= 1 and found.setdefault(term["letter"], whole) == whole
            if not fits:
                return False
        sizes.update(found)
        return True

    def filled(self, sizes):
        """Returns the shape with sizes in place of the letters whose sizes are known."""
        return tuple(_filled(axis, sizes) for axis in self.axes)


_TERM = re.compile(r"(?:(?P<times>\d+)?(?P<letter>[A-Za-z]\w*)(?:\+(?P<plus>\d+))?|(?P<number>\d+))")


def _filled(axis, sizes):
    term = _parsed(axis)
    if term["number"]:
        return int(term["number"])
    if term["letter"] not in sizes:
        return axis
    return int(term["times"] or 1) * sizes[term["letter"]] + int(term["plus"] or 0)


def _parsed(axis):
    term = _TERM.fullmatch(axis)
    if term is None:
        raise ValueError(f"{axis!r} is no axis of a shape")
    return term


@dataclass(frozen=True)
class Form:
    """One of the namings and layouts of tensors that the files of a format may have.

    Attributes:
      tensors: the tensors of a head.
      fixed: the constructor arguments that the form implies.
      sizes: entries of the ``sizes`` of the format that differ in this form.
      derived: the parameters that the function ``derive`` of the format computes from extras.
      bare: whether the caller must give the prefix, because the keys are too common to find it.
    """

    tensors: tuple[Tensor, ...]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, str] = field(default_factory=dict)
    derived: frozenset[str] = frozenset()
    bare: bool = False

    @property
    def parameters(self):
        """Pairs of each parameter in the tensors and the title of its layout."""
        return {(name, tensor.layout.title) for tensor in self.tensors for name in tensor.parameters}


@dataclass(frozen=True)
class Format:
    """One row of the table: a format of files with trained heads.

    Attributes:
      name: the name of the format for ``load`` and ``save``.
      title: the library and the class.
      source: the code from which the row was derived.
      module: the class in attnpool_flax.
      forms: the forms of files; the one that fits best is taken, and among equals the first.
      sizes: for each constructor argument that is a size, its letter in the shapes, or a product such as ``H*c``; the
        argument is None if the tensors give a letter no size.
      fixed: constructor arguments with a fixed value.
      num_heads: GIVEN, the letter of its size in the shapes, or the default width of a head; None for a module without
        heads.
      width: the letter of the total width of all heads, if no shape contains their number.
      epsilon: the epsilon of the layer normalizations, or the minimum of a variance: a number, GIVEN, or None for a
        format without any.
      activation: the activation of the MLP: a name, GIVEN, or None for a format without one.
      adds_zeros: whether the layer may add a key and a value of zeros, a sink of score 0, which its files do not show.
      config: for ``num_heads``, ``epsilon`` and ``activation``, the key in a ``config.json``. If this mapping or the
        file lacks it, the format's default counts; for ``num_heads``, ``config_heads`` comes first.
      config_heads: the default number of heads in the configurations of the source, by ``model_type``.
      config_needs: values that keys of a ``config.json`` must have, if they are there.
      refused: features that attnpool lacks, by the beginning of their keys; such a key is an error.
      absent: for a required key, the feature that a head without this key may have and that attnpool lacks; the error
        names it if this key is all that is missing.
      derive: a function (parameters, extras) -> parameters that computes parameters from extras.
      restore: its inverse, a function (parameters, extras) -> extras.
      beside: beginnings of keys, under the same prefix, of other parts of the source's model; such keys are ignored,
        while other unknown keys are errors.
      separator: the text between the pieces of a key.
      framework: the entry ``format`` of a ``.safetensors`` file, which transformers requires.
      usual: the usual prefix in files of the source, for the documentation.
      verified: the largest difference to the source's results in float64, relative to their largest value, and the
        masks of that test.
      notes: differences for users of the source, in sentences.
    """

    name: str
    title: str
    source: str
    module: str
    forms: tuple[Form, ...]
    sizes: Mapping[str, str]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    num_heads: str | int | None = None
    epsilon: float | str | None = None
    activation: str | None = None
    adds_zeros: bool = False
    width: str = "d"
    config: Mapping[str, str] = field(default_factory=dict)
    config_heads: Mapping[str, int] = field(default_factory=dict)
    config_needs: Mapping[str, Any] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    derive: Callable[[dict, dict], dict] | None = None
    restore: Callable[[dict, dict], dict] | None = None
    beside: tuple[str, ...] = ()
    separator: str = "."
    framework: str = "pt"
    usual: str = ""
    verified: str = ""
    notes: str = ""

    @property
    def biases(self):
        """Names of the parameters that a file may lack; if it has only some, ``use_bias`` of the module lists these."""
        return tuple(
            dict.fromkeys(
                name for form in self.forms for tensor in form.tensors if tensor.optional for name in tensor.parameters
            )
        )

    def spelled_alike(self, form):
        """Returns whether an earlier form has the same parameters, layouts and fixed arguments as this one."""
        before = self.forms[: self.forms.index(form)]
        return any(other.parameters == form.parameters and other.fixed == form.fixed for other in before)


KERNELS = ("query_kernel", "key_kernel", "value_kernel")
BIASES = ("query_bias", "key_bias", "value_bias")

LINEAR_INTO_HEADS = TORCH_IN_HEADS, BIAS_OF_HEADS
LINEAR_OUT_OF_HEADS = TORCH_OUT_OF_HEADS, SAME
LINEAR = TRANSPOSED, SAME
"""Layouts of weight and bias of a linear layer in PyTorch: for its heads, after its heads, and without heads."""


def one_form(*tensors):
    """Returns the forms of a format whose files have these tensors only."""
    return (Form(tensors),)


def linear(key, shape, layouts, *parts, optional=False):
    """Returns weight and bias of a linear layer in PyTorch.

    Args:
      key: the name of the layer in the file.
      shape: the shape of the weight in letters.
      layouts: the layouts of weight and bias.
      *parts: the beginnings of the names of the parameters in it, such as "query_".
      optional: whether a head may lack the bias.
    """
    kernels, biases = (tuple(f"{part}{kind}" for part in parts) for kind in ("kernel", "bias"))
    return (
        Tensor(f"{key}.weight", shape, kernels, layouts[0]),
        Tensor(f"{key}.bias", shape.split()[0], biases, layouts[1], optional),
    )


def norm(key, width, part="norm"):
    """Returns scale and bias of the layer normalization ``part``, which is called ``key`` in the file."""
    return Tensor(f"{key}.weight", width, (f"{part}_scale",)), Tensor(f"{key}.bias", width, (f"{part}_bias",))


PERCEPTRON = *linear("mlp.fc1", "f d", LINEAR, "mlp_"), *linear("mlp.fc2", "d f", LINEAR, "mlp_out_")
"""Tensors of an MLP with the names of timm, V-JEPA and transformers."""
