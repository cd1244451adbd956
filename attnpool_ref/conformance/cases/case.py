"""One case: the arguments of one call, with their axes and sizes."""

import contextvars
import zlib
from dataclasses import dataclass, field, replace

import numpy as np

from attnpool_ref.table import Variant

SEED: contextvars.ContextVar[str] = contextvars.ContextVar("SEED", default="")
"""Seed in addition to a case's name; by default "", and cases are the same on every machine."""

BATCH = (5,)
SIZES = {"n": 3, "m": 7, "L": 7, "T": 6, "J": 7, "M": 7, "k": 6, "B": 3, "C": 5, "H": 2, "N": 14, "S": 4}
SIZES |= {
    "d": 8,
    "e": 9,
    "q": 8,
    "v": 11,
    "c": 4,
    "c'": 10,
    "h": 12,
    "o": 13,
    "f": 5,
    "r": 6,
    "K": 4,
    "G": 2,
    "max_length": 6,
    "num_segments": 6,
}
SEQUENCES = frozenset({"n", "m", "L", "T", "J", "M", "N", "S", "k"})
"""Axes of tokens: they may be masked, permuted, empty."""

FEATURE_AXES = frozenset(SIZES) - SEQUENCES - {"n", "B", "C", "max_length", "num_segments"}
"""Axes of vectors, of hidden layers and of heads: they are never empty."""

ANY_RANK = ("...", "n", "m")
"""The axes of an array that may have any rank, drawn as rows of rows."""

RANK_1 = ("m",)
"""The axes of an array that may have any rank, drawn as a vector."""

NUMBER = 0.75
"""Value of a number, unless :data:`NUMBERS` has another one."""

NUMBERS = {"epsilon": 0.125, "bandwidth": 4.0, "atol": 2.5, "q": 0.40625, "alpha": 1.25}
"""A bandwidth and a tolerance that about half of the vectors that are drawn lie within; a quantile between two tokens."""


@dataclass(frozen=True)
class Case:
    """Arguments of one call.

    Attributes:
      row: the row.
      title: what makes the case what it is.
      values: every argument of the row by name: float64, boolean or integer arrays, or None.
      options: static arguments.
      axes: for each array that is not None its axes by name, batch axes as "...".
      batch: the batch axes.
      sizes: the size of each named axis.
      exact: the arguments that no rounding touches: what an exact comparison decides stays decided.
      spread: for an array that broadcasts, the axes that it stands for; those of ``axes`` where it has all of them.
      dtypes: names of dtypes of the arguments that have one of their own, whatever the implementation is judged in.
      result: the name of the result's dtype, where the arguments have dtypes of their own.
      bits: how many significant bits its numbers have in narrow dtypes.
      terms_of_sum: the largest number of terms of its only sums, where all terms are positive and equally weighted; 0 in
        any other case.
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
        """Returns the argument descriptions of the row."""
        return self.row.arguments

    def given(self, *kinds):
        """Returns names of the arguments of these kinds that are not None."""
        return [k for k, a in self.arguments().items() if self.values[k] is not None and a.kind in kinds]

    def given_masks(self):
        """Returns names of the masks that are given, or in whose place lengths are."""
        lengths = [self.arguments()[key].mask for key in self.given("lengths")]
        return [key for key in self.arguments() if key in self.given("mask") or key in lengths]

    def with_values(self, title, **values):
        """Returns the same case with some arguments replaced."""
        return replace(self, title=f"{self.title}, {title}" if title else self.title, values=self.values | values)

    def rng(self, salt=""):
        """Returns a generator whose seed is the case's name."""
        return generator(f"{self.row.name}: {self.title}{salt}")

    def size(self):
        """Returns the number of elements in all arguments."""
        return sum(int(np.size(value)) for value in self.values.values() if value is not None)

    def largest(self):
        """Returns the size of the largest finite number among the data."""
        data = [np.abs(self.values[key]) for key in self.given("data", "parameter")]
        return max((float(np.max(array, where=np.isfinite(array), initial=0)) for array in data), default=0.0)

    def terms(self):
        """Returns the number of terms in the longest chain of sums: all named axes, one after another."""
        return 8 + sum(self.sizes.values())


def generator(name):
    """Returns a generator whose seed is a name, and :data:`SEED`."""
    return np.random.default_rng(zlib.crc32((name + SEED.get()).encode()))


def narrow(values, bits=8):
    """Returns values rounded to so many significant bits; every dtype holds 8 exactly."""
    rounded = {}
    for key, value in values.items():
        if value is not None and value.dtype.kind == "f":
            mantissa, exponent = np.frexp(value)
            value = np.ldexp(np.round(mantissa * 2**bits) / 2**bits, exponent)
        rounded[key] = value
    return rounded
