"""Case: the arguments of one call, with their axes and sizes; and cases with other positions along the axes.

Functions select or add positions along a named axis, or find those that are padding.
"""

import contextvars
import zlib
from dataclasses import dataclass, field, replace

import numpy as np

from attnpool_ref import contract
from attnpool_ref.table import Variant

SEED: contextvars.ContextVar[str] = contextvars.ContextVar("SEED", default="")
"""Text that seeds the random numbers of a case, together with the names of its function and of the case."""

BATCH = (5,)
SIZES = {"n": 3, "m": 7, "L": 7, "T": 6, "J": 7, "M": 7, "k": 6, "B": 3, "C": 5, "H": 2, "N": 14, "S": 4}
SIZES |= {"d": 8, "e": 9, "q": 8, "v": 11, "c": 4, "c'": 10, "h": 12, "o": 13, "f": 5, "r": 6, "K": 4, "G": 2}
SIZES |= {"R": 2, "b": 3, "p": 6}
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
      way: the configuration, one of :func:`~attnpool_ref.conformance.cases.ways.configurations` or ``single_ways``.
      shape: the name of the shape, one of ``cases.SHAPES``; "" for the mixed batch.
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
    way: str
    shape: str
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

    def is_infinite(self):
        """Returns whether an infinity is among the data."""
        return any(np.any(np.isinf(self.values[key])) for key in self.given("data"))

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


ONE = "1"
"""An axis of size 1, in an array that broadcasts."""

ONE_BATCH = "1..."
"""Batch axes of size 1, in an array that broadcasts."""


def full_mask(case, name):
    """Returns (mask, names of its axes): a mask, or the lengths in its place as a mask, in its full shape."""
    argument = case.row.arguments[name]
    if case.values[name] is None:
        axes, lengths = argument.shapes[0], case.values[argument.lengths]
        lengths = np.reshape(lengths, contract.with_all_axes(lengths.shape, axes[-1 - lengths.ndim : -1]))
        mask = np.arange(case.sizes[axes[-1]]) < lengths[..., None]
    else:
        axes = case.spread.get(name, case.axes[name])
        mask = case.values[name].astype(bool)
    return np.broadcast_to(mask, contract.full_shape(axes, case.batch, case.sizes)), axes


def padding(case, key, example=None):
    """Returns a boolean array of the argument's shape that marks its padding, or None if no mask applies to it.

    With a mask over [..., L], these are the masked tokens of that axis; with a mask over pairs, queries that see no
    key, keys that no query sees, and in an array with both axes the masked pairs; with several masks, what any of them
    hides. An array that all examples share is padding where it is padding for all of them; with ``example``, where it
    is padding for this one.
    """
    named = [a for a in case.axes[key] if a != "..."]
    value, found = case.values[key], None
    for name in case.given_masks():
        mask, axes = full_mask(case, name)
        batched, axes = "..." in axes, [a for a in axes if a != "..."]
        if not set(named) & set(axes):
            continue
        drop = tuple(i - len(axes) for i, a in enumerate(axes) if a not in named)
        real = np.any(mask, drop) if drop else mask
        kept = [a for a in axes if a in named]
        if batched and "..." not in case.axes[key]:
            lead = tuple(range(real.ndim - len(kept)))
            real = np.any(real, lead) if example is None else real[example]
        lead = real.ndim - len(kept)
        spread = np.expand_dims(~real, tuple(lead + i for i, a in enumerate(named) if a not in kept))
        here = np.broadcast_to(spread, value.shape)
        found = here if found is None else found | here
    return found


def places_of(axis, axes, rank):
    """Returns the indices of a named axis in an array of this rank; "..." among ``axes`` stands for the batch axes."""
    shift = rank - len(axes) if "..." in axes else 0
    return [shift + i for i, a in enumerate(axes) if a == axis]


def scaled(case, title, axis, factors, keys):
    """Returns the case with some arguments multiplied by a factor for each position of a named axis, as float32."""
    values = {}
    for key in keys:
        values[key] = value = case.values[key]
        for place in places_of(axis, case.axes[key], value.ndim):
            product = value * factors.reshape(-1, *(1,) * (value.ndim - 1 - place))
            values[key] = np.float32(product).astype(np.float64)
    return case.with_values(title, **values)


def take(case, title, axis, positions):
    """Returns the case with positions selected along a named axis, in every argument that has it."""
    values = {}
    for key, axes in case.axes.items():
        value = case.values[key]
        for place in places_of(axis, axes, value.ndim):
            value = np.take(value, positions, place)
        values[key] = value
    sizes = case.sizes | {axis: len(positions)}
    return replace(case, title=f"{case.title}, {title}", values=case.values | values, sizes=sizes)


def example_of(case, index):
    """Returns one example of a batch, without batch axes; ``index`` has an integer for each batch axis."""
    values, axes = {}, {}
    for key, names in case.axes.items():
        value = case.values[key]
        if "..." in names:
            value = value[index]
        elif ONE_BATCH in names:
            value = value[(0,) * len(case.batch)]
        values[key], axes[key] = value, tuple(a for a in names if a not in ("...", ONE_BATCH))
    spread = {key: tuple(a for a in names if a != "...") for key, names in case.spread.items()}
    title = f"{case.title}, example {index}"
    return replace(case, title=title, values=case.values | values, axes=axes, batch=(), spread=spread)


def append(case, axis, count):
    """Returns the case with ``count`` padded positions at the end of a masked axis, filled with other numbers."""
    rng, values = case.rng(f" append {axis}"), {}
    for key, axes in case.axes.items():
        value = case.values[key]
        for place in places_of(axis, axes, value.ndim):
            more = 10 * rng.standard_normal((*value.shape[:place], count, *value.shape[place + 1 :])).astype(np.float32)
            if case.arguments()[key].kind == "mask":
                more = np.zeros(more.shape)
            elif case.arguments()[key].kind == "segments":  # a legal number, with which sorted numbers stay sorted
                more = np.full(more.shape, case.options["num_segments"] - 1)
            value = np.concatenate([value, more.astype(value.dtype)], place)
        values[key] = value
    title = f"{case.title}, {count} padded positions more along {axis}"
    sizes = case.sizes | {axis: case.sizes[axis] + count}
    return replace(case, title=title, values=case.values | values, sizes=sizes)


def masked_axes(case):
    """Returns the token axes of the given masks: L of a mask [..., L], n and m of a mask [..., n, m]."""
    found = []
    for name in case.given("mask"):
        named = [a for a in case.axes[name] if a != "..."]
        found += [a for a in named if a in SEQUENCES and a not in found]
    return found


def poisoned(case, poison):
    """Returns the case with ``poison`` at every padded position of its arrays; None if there is no such position.

    ``poison`` is a number, or a function from an array and a mask of its padding to numbers that broadcast to it.
    """
    values = {}
    for key in case.given("data", "parameter", "stretch"):
        pad = padding(case, key)
        if pad is not None and np.any(pad) and case.values[key].dtype.kind == "f":
            value = case.values[key]
            values[key] = np.where(pad, np.asarray(poison(value, pad) if callable(poison) else poison), value)
    return case.with_values("poison in padding", **values) if values else None
