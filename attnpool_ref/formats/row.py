"""One row of the table of formats."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from attnpool_ref.formats.layouts import SAME, Layout

GIVEN = "given"
"""In the place of an option: no file holds it, so that the caller or a configuration must say it."""

SPELLING = "spelling"
"""Among the extras: which form a head was read from, where the head itself does not show it."""


class Head(NamedTuple):
    """A head as this package knows it, without a framework.

    Attributes:
      module: the name of the class in ``attnpool_flax``.
      options: what its constructor is given, by name.
      parameters: arrays by the names of the module's parameters; None for one that the module can do without.
      extras: what a file holds and no module owns, by the file's keys after the prefix.
    """

    module: str
    options: dict[str, Any]
    parameters: dict[str, Any]
    extras: dict[str, Any]


@dataclass(frozen=True)
class Tensor:
    """One tensor of a file.

    Attributes:
      key: its name after the prefix.
      shape: in letters, see :mod:`~attnpool_ref.formats.shapes`.
      parameters: the module's parameters that it holds, one after another along its first axis; none of an extra.
      layout: how each of them lies.
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
      tensors: what a head has.
      fixed: the constructor arguments that follow from it.
      sizes: the format's ``sizes`` that have other letters in this form.
      derived: the parameters that the format's ``derive`` makes of extras.
      bare: its keys would fit too much else, so that it is taken only under a prefix that is given.
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
      name: what ``load`` and ``save`` are given.
      title: whose it is, in words.
      source: where it was read.
      module: the class that it becomes.
      forms: its spellings; of several the first that fits is taken.
      sizes: for constructor arguments the letter whose size they are, or letters, ``H*c``; None for one that is not there.
      fixed: constructor arguments that are always the same.
      num_heads: GIVEN, the letter of the shapes that tells it, or a width: so wide is each head unless the caller says
        otherwise; None for a module without heads.
      width: the letter of the width of all heads together, where no shape tells their number.
      epsilon: of its layer normalisations: a number, GIVEN, or None for a format without any.
      activation: of its perceptron, likewise.
      config: for ``num_heads``, ``epsilon`` and ``activation`` the key of a ``config.json``; what it lacks is the format's.
      config_heads: the heads that the source's own configuration has by default, by its ``model_type``.
      config_needs: keys of a ``config.json`` that must not have another value than this.
      refused: beginnings of keys, and the feature that no module of ours has.
      absent: for a key that every head has, the feature of the source's heads that lack it, and that no module of ours has.
      derive: what follows from tensors that no module owns one by one: from (parameters, extras) to parameters.
      restore: the other way: from (parameters, extras) to extras.
      beside: beginnings of keys that stand under the same prefix and are other parts of the source's model.
      separator: between the pieces of a key.
      framework: what a ``.safetensors`` file says that its tensors are a module's of; transformers asks for it.
      usual: the prefix in the source's own files, which the documentation shows.
      verified: the largest difference to the original, in float64 and relative to its largest output, and which masks it had.
      notes: what somebody who knows the source must know, in sentences.
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
        """The names of the biases whose presence ``use_bias`` says."""
        return tuple(
            dict.fromkeys(
                name for form in self.forms for tensor in form.tensors if tensor.optional for name in tensor.parameters
            )
        )

    def spelled_alike(self, form):
        """Returns whether an earlier form would hold the same head."""
        before = self.forms[: self.forms.index(form)]
        return any(other.parameters == form.parameters and other.fixed == form.fixed for other in before)
