"""The table of right implementations in the dtype of their data, as their authors would write them and call them."""

from dataclasses import dataclass, field
from typing import Any

DTYPES = ("float32", "bfloat16", "float16", "float64")
WIDE = ("float32", "float64")
"""Those in which NumPy's own sums do not lose their count."""


@dataclass(frozen=True)
class Route:
    """One right implementation.

    Attributes:
      row: the function that it implements.
      function: the implementation.
      dtypes: the dtypes that its author has tried.
      long: whether many tokens take it less than seconds.
      calls: its calling convention, as :class:`attnpool_ref.conformance.Candidate` has it.
    """

    row: str
    function: Any
    dtypes: tuple[str, ...] = DTYPES
    long: bool = True
    calls: dict = field(default_factory=dict)


class Routes(dict):
    """``{"row: route": Route}``, filled by a decorator."""

    def of(self, row, name, dtypes=DTYPES, long=True, **calls):
        """Adds a function under the name of its row and its route."""

        def add(function):
            self[f"{row}: {name}"] = Route(row, function, dtypes, long, calls)
            return function

        return add
