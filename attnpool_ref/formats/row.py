"""Classes of the table of formats: a format is a row, with forms and their tensors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from attnpool_ref.formats.layouts import SAME, Layout

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
class Tensor:
    """Description of one tensor of a file.

    Attributes:
      key: the name of the tensor without the prefix.
      shape: the shape in letters, see :mod:`~attnpool_ref.formats.shapes`.
      parameters: the parameters of the module in this tensor, concatenated along its first axis; () if it is an extra.
      layout: the layout of each parameter in it.
      optional: whether a head may lack it.
    """

    key: str
    shape: str
    parameters: tuple[str, ...] = ()
    layout: Layout = SAME
    optional: bool = False


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
