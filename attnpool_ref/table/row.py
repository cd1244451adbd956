"""Class of the rows of the table."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from attnpool_ref.table import language
from attnpool_ref.table.sources import SOURCES

ACTIVATIONS = ("tanh", "relu", "gelu", "identity")
"""Activations of hidden layers that compute scores."""

LAYOUTS = ("segments", "states", "mesh")
"""All layouts besides the dense one: packed tokens, chunks, sequences sharded over a mesh."""

TOKENS = "x[..., L, d] mask?[..., L] lengths?:lengths[...]"
"""The first arguments of the functions that pool one sequence, in the syntax of ``shapes``."""

NORMALIZERS = language.OrFunction(("softmax", "sparsemax", "entmax15", "sigmoid", "hardmax"))
"""Names of normalizers; the caller may give a function (scores, mask) -> weights instead."""

ABSOLUTE = ("normalizer=sigmoid", "sink")
"""An option and an argument with which a constant added to every score changes the weights."""

NUMBERS = {"epsilon": 0.125, "bandwidth": 4.0, "atol": 2.5, "q": 0.40625, "alpha": 1.25}
"""Values of numeric arguments by name, with which the judge calls functions; those of other names are :data:`NUMBER`.

A value must not make one function of another, as 0.5 makes a median of a trimmed mean. About half of the drawn vectors
lie within the bandwidth and within the tolerance ``atol``. The quantile of order ``q`` lies between two tokens.
"""

NUMBER = 0.75
"""Value of numeric arguments that :data:`NUMBERS` does not name."""

FACTS = {
    "copies": "it only averages or copies tokens, so that no finite number overflows",
    "ties": "it has a maximum, whose gradient tied tokens share",
    "chooses": "it selects tokens by the largest cosine; far from 0 all are nearly 1, and rounding decides",
    "differences": "it depends on differences of squared distances, which the rounding of squares exceeds far from 0",
    "bounded terms": "it sums bounded terms, which may cancel although changes of the inputs hardly change them",
    "comparison": "its only operation is a comparison, which is False for NaN",
    "underflows": "it divides by a sum of weights, or by norms of weighted sums, which may all underflow to 0",
}
"""Facts about functions that the judge reads, with their meaning."""


@dataclass(frozen=True)
class Variant:
    """One row: a function as data.

    Attributes:
      name: the function's name in every namespace.
      family: the name of the file that contains it.
      shapes: arguments and result, in the syntax of :mod:`~attnpool_ref.table.language`.
      source: a key of :data:`~attnpool_ref.table.sources.SOURCES`.
      equation: the definition in one line of plain text; the docstring has it in full.
      weights: the shape of the weights that ``return_weights=True`` adds, empty if there is no such argument; may have
        alternatives by rank, as arguments do.
      rules: constraints beyond the shapes.
      options: static arguments by name, each with its values: a tuple of names (with a function as well, if it is an
        :class:`~attnpool_ref.table.language.OrFunction`), or "flag", "axis", "dtype" (of the result: None,
        float32 or float64), "size", "count" (both from 0) or "positive" (from 1).
      refused: (option, value, reason) of values that a related function takes and this one does not; the value is True
        for a flag, "a function" for a function, None for an argument that is required here.
      module: the class of attnpool_flax with its parameters, if any.
      state: for a function that returns a state: the dense row to whose result the state finalizes.
      layouts: layouts of tokens besides the dense one: "segments", "states", "mesh".
      ordered: "always", or an option such as "method=local" with which the order of the real tokens matters; "" if it
        never does.
      unit: whether the data are probabilities, numbers from 0 to 1.
      absolute: "always", options such as "normalizer=sigmoid", or arguments, with which a constant added to every score
        changes the result.
      surrogate: the flag with which the gradient is not that of the values, but the one that the docstring describes.
      squares: the axis of the tokens that the definition multiplies with each other, if any.
      norms: whether the function divides by a norm of its data, so that it must also be right for vectors of 1e-30,
        1e30 and 0.
      facts: what the judge must know of the function to draw cases and to tolerate rounding, of :data:`FACTS`.
      sharpened: the parameter that determines the size of scores that are sums of bounded terms, or "".
      averaged: the argument that is 0 to make all weights equal, "" if none is needed, or None if the function is no
        average, sum or selection of tokens.
      arguments: the arguments of ``shapes``, by name.
      results: the axes of each array of the result, from ``shapes``.
      weight_results: the axes of each array that ``return_weights=True`` adds; of several alternatives the first.
      relations: the rules as objects of :mod:`~attnpool_ref.table.language`.
      sizes: fixed sizes of axes, from a module's parameters or the row.
      shared: the data arguments without batch axes, because all examples share them.
      without: the optional axes that are always absent.
      held: for each parameter that a module holds the shapes that it may have there.

    Raises:
      ValueError: ``source`` is unknown, ``shapes``, ``weights`` or ``rules`` are not understood, or a rule has a name
        that the row lacks.
    """

    name: str
    family: str
    shapes: str
    source: str
    equation: str
    weights: str = ""
    rules: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    refused: tuple[tuple[str, str | bool | None, str], ...] = ()
    module: str = ""
    state: str = ""
    layouts: tuple[str, ...] = ()
    ordered: str = ""
    absolute: tuple[str, ...] = ()
    surrogate: str = ""
    norms: bool = False
    unit: bool = False
    facts: frozenset[str] | set[str] = frozenset()
    sharpened: str = ""
    averaged: str | None = None
    squares: str = ""
    arguments: dict[str, language.Argument] = field(init=False, repr=False, compare=False)
    results: tuple[tuple[str, ...], ...] = field(init=False, repr=False, compare=False)
    weight_results: tuple[tuple[str, ...], ...] = field(init=False, repr=False, compare=False)
    relations: tuple[Any, ...] = field(init=False, repr=False, compare=False)
    sizes: dict[str, int] = field(default_factory=dict, repr=False, compare=False)
    shared: tuple[str, ...] = field(default=(), repr=False, compare=False)
    without: tuple[str, ...] = field(default=(), repr=False, compare=False)
    held: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self):
        if self.source not in SOURCES:
            raise ValueError(
                f"{self.name}: the source {self.source!r} is not in attnpool_ref/table/sources.py; if it is in "
                f"docs/references.bib, run `make docs`{did_you_mean(self.source, SOURCES)}"
            )
        if unknown := {*self.facts} - FACTS.keys():
            raise ValueError(f"{self.name}: no facts are called {sorted(unknown)}; known are {', '.join(FACTS)}")
        arguments, results = language.parse_shapes(self.shapes)
        lengths = [argument for argument in arguments.values() if argument.kind == "lengths"]
        relations = *map(language.parse_rule, self.rules), *(language.Excludes(a.mask, a.name) for a in lengths)
        language.check_names(relations, arguments, self.options)
        arguments = language.restricted(arguments, self.shared, self.without)
        arguments |= {key: replace(arguments[key], shapes=shapes) for key, shapes in self.held.items()}
        parsed = {"arguments": arguments, "results": results, "relations": relations}
        weights, *_ = self.weights.split("|")
        for name, value in (parsed | {"weight_results": language.parse_results(weights)}).items():
            object.__setattr__(self, name, value)  # the dataclass is frozen

    @property
    def batched(self):
        """Whether any argument has batch axes."""
        return any(argument.batched for argument in self.arguments.values())

    def weights_of_rank(self, rank):
        """Returns the axes of the weights: the alternative with ``rank`` axes besides batch axes, or else the first."""
        alternatives = [own for part in self.weights.split("|") for own in language.parse_results(part)]
        return next((own for own in alternatives if len(own) - ("..." in own) == rank), alternatives[0])

    def takes(self, option, value):
        """Returns whether a value of an option is not among those in ``refused``."""
        return (option, value) not in [(key, unlike) for key, unlike, _ in self.refused]

    @property
    def packed(self):
        """Whether the tokens are packed: those of all examples in one array, with segment ids."""
        return any(argument.kind == "segments" for argument in self.arguments.values())


def of_family(family, **functions: Mapping[str, Any]):
    """Returns the rows of a family; each argument has the name of a function, and the other fields of its row."""
    return tuple(Variant(name, family=family, **fields) for name, fields in functions.items())


def did_you_mean(word, known):
    """Returns "; did you mean ...?" with similar names; "" if there are none.

    >>> did_you_mean("mean_poling", ["mean_pooling", "dot_score"])
    '; did you mean mean_pooling?'
    """
    import difflib  # takes 10 ms, and only messages need it

    near = difflib.get_close_matches(word, known, n=3, cutoff=0.4)
    return f"; did you mean {', '.join(near)}?" if near else ""
