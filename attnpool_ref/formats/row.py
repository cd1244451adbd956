"""One row of the table of formats."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from attnpool_ref.formats.layouts import SAME, Layout

GIVEN = "given"
"""Default of an option that no file holds: the caller or a configuration must give it."""

SPELLING = "spelling"
"""Among the extras: which form a head was read from, where the head itself does not show it."""


class Head(NamedTuple):
    """A trained head as data, without a framework.

    Attributes:
      module: the name of the class in ``attnpool_flax``.
      options: arguments of its constructor, by name.
      parameters: arrays by the names of the module's parameters; None for an absent optional one.
      extras: tensors of the file that are no parameters, by the file's keys after the prefix.
    """

    module: str
    options: dict[str, Any]
    parameters: dict[str, Any]
    extras: dict[str, Any]


@dataclass(frozen=True)
class Tensor:
    """One tensor of a file.

    Attributes:
      key: the tensor's name after the prefix.
      shape: the shape in letters, see :mod:`~attnpool_ref.formats.shapes`.
      parameters: the module's parameters in this tensor, concatenated along its first axis; () for an extra.
      layout: the layout of each of them.
      optional: whether a head may lack it.
    """

    key: str
    shape: str
    parameters: tuple[str, ...] = ()
    layout: Layout = SAME
    optional: bool = False


@dataclass(frozen=True)
class Form:
    """One spelling of a format.

    Attributes:
      tensors: the tensors of a head.
      fixed: the constructor arguments that the form implies.
      sizes: the format's ``sizes`` that have other letters in this form.
      derived: the parameters that the format's ``derive`` computes from extras.
      bare: whether the form needs a given prefix, because its keys are too common.
    """

    tensors: tuple[Tensor, ...]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, str] = field(default_factory=dict)
    derived: frozenset[str] = frozenset()
    bare: bool = False

    @property
    def parameters(self):
        """Names of the parameters in its tensors, each with the title of its layout."""
        return {(name, tensor.layout.title) for tensor in self.tensors for name in tensor.parameters}


@dataclass(frozen=True)
class Format:
    """One row.

    Attributes:
      name: the name for ``load`` and ``save``.
      title: the library and class.
      source: the code it was derived from.
      module: the class of attnpool_flax.
      forms: its spellings; the first that fits is taken.
      sizes: for each constructor argument the letter of its size, or letters, ``H*c``; None for an absent one.
      fixed: constructor arguments with a fixed value.
      num_heads: GIVEN, the letter of its size, or the default width of a head; None for a module without heads.
      width: the letter of the width of all heads together, if no shape has their number.
      epsilon: the epsilon of the layer normalizations: a number, GIVEN, or None for a format without any.
      activation: the activation of the MLP, in the same way.
      config: for ``num_heads``, ``epsilon`` and ``activation`` the key of a ``config.json``; the format's value is the default.
      config_heads: the default number of heads in the source's configurations, by ``model_type``.
      config_needs: required values of keys of a ``config.json``.
      refused: beginnings of keys of features that attnpool does not have.
      absent: for a required key, the feature of the source's heads without it, which attnpool does not have.
      derive: computes parameters from (parameters, extras).
      restore: the inverse: computes extras from (parameters, extras).
      beside: beginnings of keys of other parts of the source's model, under the same prefix.
      separator: between the pieces of a key.
      framework: the ``format`` entry of a ``.safetensors`` file, which transformers requires.
      usual: the prefix in the source's files, for the documentation.
      verified: the largest difference to the original, in float64 and relative to its largest output, and the tested masks.
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
        """The names of the biases that ``use_bias`` lists."""
        return tuple(
            dict.fromkeys(
                name for form in self.forms for tensor in form.tensors if tensor.optional for name in tensor.parameters
            )
        )

    def spelled_alike(self, form):
        """Returns whether an earlier form would hold the same head."""
        before = self.forms[: self.forms.index(form)]
        return any(other.parameters == form.parameters and other.fixed == form.fixed for other in before)
