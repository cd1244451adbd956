"""One case: the arguments of one call, with their axes and sizes."""

import contextvars
import zlib
from dataclasses import dataclass, field, replace

import numpy as np

from attnpool_ref.table import Variant

SEED: contextvars.ContextVar[str] = contextvars.ContextVar("SEED", default="")
"""Text that seeds the random numbers of a case, together with the names of its function and of the case."""

BATCH = (5,)
SIZES = {"n": 3, "m": 7, "L": 7, "T": 6, "J": 7, "M": 7, "k": 6, "B": 3, "C": 5, "H": 2, "N": 14, "S": 4}
SIZES |= {"d": 8, "e": 9, "q": 8, "v": 11, "c": 4, "c'": 10, "h": 12, "o": 13, "f": 5, "r": 6, "K": 4, "G": 2}
SIZES |= {"max_length": 6, "num_segments": 6}
SEQUENCES = frozenset({"n", "m", "L", "T", "J", "M", "N", "S", "k"})
"""Axes of tokens, which may be masked, permuted or empty."""

FEATURE_AXES = frozenset(SIZES) - SEQUENCES - {"n", "B", "C", "max_length", "num_segments"}
"""Axes of features, hidden layers, heads and clusters, which are empty only where a rule of the table allows it."""

ANY_RANK = ("...", "n", "m")
"""Axes of an array that may have any rank, as most cases draw it: batch axes and two others."""

RANK_1 = ("m",)
"""Axes of an array that may have any rank, drawn as a vector for the shape "rank 1"."""


@dataclass(frozen=True)
class Case:
    """Arguments of one call.

    Attributes:
      row: the function's row in the table.
      title: text that distinguishes the case from others of the function, and seeds its random numbers.
      values: every argument of the function by name: float64, boolean or integer arrays, or None.
      options: static arguments by name.
      axes: for each array that is not None the names of its axes; "..." stands for all batch axes.
      batch: the sizes of the batch axes.
      sizes: the size of each named axis.
      exact: the arguments whose numbers are exact in every dtype, so that comparisons of them are the same in each.
      spread: for an array that has fewer axes or axes of 1, because it broadcasts, the axes of the full array.
      dtypes: the name of each argument's dtype, in cases of several dtypes or of integers only; else empty.
      result: the name of the result's dtype if ``dtypes`` is not empty, else "".
      bits: the number of significant bits to which numbers are rounded in narrow dtypes (float16, bfloat16), and in
        cases of several dtypes.
      terms_of_sum: the number of terms of the longest sum in the cases of ``values.averaging``, which only average, sum
        or select positive terms; else 0.
    """

    row: Variant
    title: str
    values: dict
    options: dict
    axes: dict
    batch: tuple
    sizes: dict
    exact: frozenset[str] = frozenset()
    spread: dict = field(default_factory=dict)
    dtypes: dict = field(default_factory=dict)
    result: str = ""
    bits: int = 8
    terms_of_sum: int = 0

    def arguments(self):
        """Returns the descriptions of the function's arguments, by name."""
        return self.row.arguments

    def given(self, *kinds):
        """Returns names of the arguments of these kinds, such as "mask" or "data", that are not None."""
        return [k for k, a in self.arguments().items() if self.values[k] is not None and a.kind in kinds]

    def given_masks(self):
        """Returns names of the masks that are given, as masks or as lengths in their place."""
        lengths = [self.arguments()[key].mask for key in self.given("lengths")]
        return [key for key in self.arguments() if key in self.given("mask") or key in lengths]

    def with_values(self, title, **values):
        """Returns the same case with some arguments replaced; ``title`` is added to its title, unless it is ""."""
        return replace(self, title=f"{self.title}, {title}" if title else self.title, values=self.values | values)

    def rng(self, salt=""):
        """Returns a random generator that is seeded by the names of function and case, ``salt`` and :data:`SEED`."""
        return generator(f"{self.row.name}: {self.title}{salt}")

    def size(self):
        """Returns the number of elements in all arguments."""
        return sum(int(np.size(value)) for value in self.values.values() if value is not None)

    def largest(self):
        """Returns the magnitude of the largest finite number among data and parameters."""
        data = [np.abs(self.values[key]) for key in self.given("data", "parameter")]
        return max((float(np.max(array, where=np.isfinite(array), initial=0)) for array in data), default=0.0)

    def terms(self):
        """Returns a bound of the number of terms that are summed in a chain: 8 plus the sizes of all named axes."""
        return 8 + sum(self.sizes.values())


def generator(name):
    """Returns a random generator that is seeded by a name and :data:`SEED`."""
    return np.random.default_rng(zlib.crc32((name + SEED.get()).encode()))


def narrow(values, bits=8):
    """Returns a dict of arrays, in which floating-point arrays are rounded to ``bits`` significant bits.

    Every judged dtype holds 8 bits exactly.
    """
    rounded = {}
    for key, value in values.items():
        if value is not None and value.dtype.kind == "f":
            mantissa, exponent = np.frexp(value)
            value = np.ldexp(np.round(mantissa * 2**bits) / 2**bits, exponent)
        rounded[key] = value
    return rounded
