"""Rows of the table: one function each, as data."""

from dataclasses import dataclass, field
from typing import Any

from attnpool_ref.table import language
from attnpool_ref.table.sources import SOURCES
from attnpool_ref.table.suggestions import did_you_mean

ACTIVATIONS = ("tanh", "relu", "gelu", "identity")
"""Activations of the hidden layer of scores."""

LAYOUTS = ("segments", "states", "mesh")
"""All layouts besides the dense one: packed tokens, chunks, sequences sharded over a mesh."""

NORMALIZERS = language.OrFunction(("softmax", "sparsemax", "entmax15", "sigmoid", "hardmax"))
"""Normalizers by name; the caller may pass a function (scores, mask) -> weights instead."""

ABSOLUTE = ("normalizer=sigmoid",)
"""Normalizers whose weights change if a constant is added to every score."""


@dataclass(frozen=True)
class Variant:
    """One row: a function as data.

    Attributes:
      name: the function's name in every namespace.
      family: the file that contains it.
      shapes: arguments and result, in the syntax of :mod:`~attnpool_ref.table.language`.
      source: a key of :data:`~attnpool_ref.table.sources.SOURCES`.
      equation: the definition in one line of plain text; the docstring has it in full.
      weights: shape of the weights that ``return_weights=True`` adds, if the function has that argument; may have
        alternatives by rank, as arguments do.
      rules: constraints beyond the shapes.
      options: static arguments, each with its values: a tuple of names
        (:class:`~attnpool_ref.table.language.OrFunction` also allows a function), or "flag", "axis", "size" or "count"
        (integers of at least 0) or "positive" (an integer of at least 1).
      refused: (option, value, reason) for each value that a related function takes and this function does not; the
        value is True for a flag, and "a function" for a function.
      module: the class with the parameters, if any.
      state: for a function that returns a state, the dense row whose result the state finalizes to.
      layouts: layouts of tokens besides the dense one: "segments", "states", "mesh".
      ordered: "always", or the option such as "method=local" with which the order of the real tokens matters.
      unit: whether the data are probabilities, numbers from 0 to 1.
      absolute: "always", or options such as "normalizer=sigmoid", with which a constant added to every score changes
        the result.
      surrogate: the flag with which the gradient is not the derivative of the result, but another that the docstring
        states.
      norms: whether the function divides by a norm; it is then tested with vectors of 1e-30, 1e30 and 0.
      arguments: the arguments of ``shapes``, by name.
      results: the axes of each array of the result.
      weight_results: the axes of each array that ``return_weights=True`` adds, the first alternative.
      relations: the rules as objects.
      sizes: fixed sizes of axes, from a module's parameters or the row.
    """

    name: str
    family: str
    shapes: str
    source: str
    equation: str
    weights: str = ""
    rules: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    refused: tuple[tuple[str, str | bool, str], ...] = ()
    module: str = ""
    state: str = ""
    layouts: tuple[str, ...] = ()
    ordered: str = ""
    absolute: tuple[str, ...] = ()
    surrogate: str = ""
    norms: bool = False
    unit: bool = False
    arguments: dict[str, language.Argument] = field(init=False, repr=False, compare=False)
    results: tuple[tuple[str, ...], ...] = field(init=False, repr=False, compare=False)
    weight_results: tuple[tuple[str, ...], ...] = field(init=False, repr=False, compare=False)
    relations: tuple[Any, ...] = field(init=False, repr=False, compare=False)
    sizes: dict[str, int] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self):
        if self.source not in SOURCES:
            raise ValueError(
                f"{self.name}: the source {self.source!r} has no entry in attnpool_ref/table/sources.py"
                f"{did_you_mean(self.source, SOURCES)}"
            )
        arguments, results = language.parse_shapes(self.shapes)
        relations = (*map(language.parse_rule, self.rules), *language.exclusions(arguments))
        language.check_names(relations, arguments, self.options)
        parsed = {"arguments": arguments, "results": results, "relations": relations}
        weights, *_ = self.weights.split("|")
        for name, value in (parsed | {"weight_results": language.parse_results(weights)}).items():
            object.__setattr__(self, name, value)  # the dataclass is frozen

    @property
    def batched(self):
        """Whether any argument has batch axes."""
        return any(argument.batched for argument in self.arguments.values())

    def weights_of_rank(self, rank):
        """Returns the axes of the weights that have ``rank`` axes besides the batch axes."""
        alternatives = [own for part in self.weights.split("|") for own in language.parse_results(part)]
        return next((own for own in alternatives if len(own) - ("..." in own) == rank), alternatives[0])

    def takes(self, option, value):
        """Returns whether the function takes a value of an option."""
        return (option, value) not in [(key, unlike) for key, unlike, _ in self.refused]

    @property
    def packed(self):
        """Whether its tokens are packed."""
        return any(argument.kind == "segments" for argument in self.arguments.values())
