"""Entries of the table of implementations."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from attnpool_ref.conformance import Candidate


@dataclass(frozen=True)
class Entry:
    """An implementation, and the scope of its judging.

    Attributes:
      name: its usual name.
      row: the row of attnpool's table that it computes.
      make: takes the name of a dtype and returns the Candidate. It imports the library itself. Its docstring says what
        the library's documentation offers, and the page shows the docstring.
      packages: the distributions whose versions the page shows.
      advice: what a user of it should do.
      dtypes: the dtypes in which it is judged; many checks run only in the first.
      nothing_real: why its result for a fully masked row is defined differently or not documented; "" if the result
        must be 0.
      differs: guarantees that it breaks because it is defined differently, each with the reason.
      long: whether a sum of a million equal tokens is also judged, in the first dtype.
    """

    name: str
    row: str
    make: Callable[[str], Candidate]
    packages: tuple[str, ...]
    advice: str
    dtypes: tuple[str, ...] = ("float32", "bfloat16", "float64")
    nothing_real: str = ""
    differs: Mapping[str, str] = field(default_factory=dict)
    long: bool = False

    @property
    def offers(self):
        """The text of the page about the features that its documentation offers."""
        return " ".join((self.make.__doc__ or "").split())
