"""What an entry of the table of implementations is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from attnpool_ref.conformance import Candidate


@dataclass(frozen=True)
class Entry:
    """An implementation, and what may be asked of it.

    Attributes:
      name: what its users call it.
      row: the row of attnpool's table that it computes.
      make: from the name of a dtype to the candidate. Its docstring says what the documentation offers, and so what is
        asked; it imports its library itself.
      packages: the distributions whose versions matter.
      advice: what somebody who uses it should do.
      dtypes: those in which it is judged; the first in full.
      nothing_real: why its answer where nothing is real is another definition, or not documented; "" where it is asked
        to be 0.
      differs: promises that it breaks because it defines something otherwise, each with the reason.
      long: whether a million equal tokens are summed as well.
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
        """What its documentation offers."""
        return " ".join((self.make.__doc__ or "").split())
