"""One row of the table."""

from dataclasses import dataclass, field
from typing import Any

from attnpool_ref.table import language
from attnpool_ref.table.sources import SOURCES
from attnpool_ref.table.suggestions import did_you_mean

ACTIVATIONS = ("tanh", "relu", "gelu", "identity")
"""Of the hidden layer that scores are made of."""

LAYOUTS = ("segments", "states", "mesh")
"""All layouts: packed tokens, chunks, and sequences that are split over the devices of a mesh."""

NORMALIZERS = language.OrFunction(("softmax", "sparsemax", "entmax15", "sigmoid", "hardmax"))
"""What makes weights of scores, by name; a function (scores, mask) -> weights may stand in a name's place."""

ABSOLUTE = ("normalizer=sigmoid",)
"""The normalisers among them that tell scores from scores with a constant added."""


@dataclass(frozen=True)
class Variant:
    """One row.

    Attributes:
      name: the function's name in every namespace.
      family: the file in which it stands.
      shapes: arguments and result, in the language above.
      source: a key of :data:`~attnpool_ref.table.sources.SOURCES`.
      equation: the definition in one line of plain text; the docstring has it in full.
      weights: shape of what ``return_weights=True`` adds, where there is such an argument; of one array alternatives
        by rank, as arguments have them.
      rules: what the shapes cannot say.
      options: static arguments: a tuple of names (:class:`~attnpool_ref.table.language.OrFunction`: or a function), or "flag",
        "axis", "size", "count" (both from 0) or "positive" (from 1).
      refused: (option, value, reason) of what a neighbouring row takes and this one cannot; True of a flag; "a function" is
        a value too.
      module: the class that owns the parameters, if any.
      state: the dense row to whose result the function's states finalize, which ``shapes`` shows; it gives a state then.
      layouts: beside the dense one, in which its tokens may lie: "segments", "states", "mesh".
      ordered: "always", or an option such as "method=local", where the order of the real tokens matters.
      unit: its data are probabilities, numbers from 0 to 1.
      absolute: "always", or options such as "normalizer=sigmoid", where a constant added to every score counts.
      surrogate: the flag with which the gradient is not that of the values, but the one that the docstring says.
      norms: divides by a norm: vectors of 1e-30 and 1e30 are ordinary, and so is the zero vector.
      arguments: what ``shapes`` says of each argument, by name.
      results: the axes of each array of the result.
      weight_results: the axes of each array that ``return_weights=True`` adds; of alternatives the first.
      relations: the rules as objects.
      sizes: sizes of axes that are what they are, as a module's own parameters make them, or as the row says.
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
            object.__setattr__(self, name, value)  # the row is frozen for everybody else

    @property
    def batched(self):
        """Whether any argument has batch axes."""
        return any(argument.batched for argument in self.arguments.values())

    def weights_of_rank(self, rank):
        """The axes of weights that have so many beside the batch axes."""
        alternatives = [own for part in self.weights.split("|") for own in language.parse_results(part)]
        return next((own for own in alternatives if len(own) - ("..." in own) == rank), alternatives[0])

    def takes(self, option, value):
        """Whether a value of an option is none of those that are refused."""
        return (option, value) not in [(key, unlike) for key, unlike, _ in self.refused]

    @property
    def packed(self):
        """Whether its tokens are packed."""
        return any(argument.kind == "segments" for argument in self.arguments.values())
