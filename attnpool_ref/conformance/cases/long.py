"""Cases of many tokens, in which sums may drift, overflow or lose their count, and of many examples."""

import numpy as np

from attnpool_ref.conformance.cases.case import ANY_RANK, SEQUENCES, SIZES, places_of, scaled
from attnpool_ref.conformance.cases.drawing import draw
from attnpool_ref.conformance.cases.ways import defaults_of

LONG = 10**6

LONG_BY_DEFAULT = 70_000
"""Number of tokens without the option ``contract``: too large for 16-bit integers, small enough for a Python loop."""

LONG_NARROW = 4100
"""Number of tokens in narrow dtypes: a count stops growing at 2048 in float16, and at 256 in bfloat16."""

WIDE = "long, batch of 101"
"""Name of the shape of many tokens and many examples, larger than blocks, position limits and 8-bit counters."""

MANY, EXAMPLES, FEW = 609, 101, 3
"""Sizes of :data:`WIDE`: of one token axis, of the batch, and of most other axes."""

PACKED = {"N": 1217, "M": 1211}
"""Numbers of packed tokens in :data:`WIDE`; half of them are in one segment."""

MOST = 2**21
"""Number of elements from which on many tokens and many examples are drawn in two cases."""

SQUARED = {"attention_penalty": "n", "label_attention": "M"}
"""Functions that multiply tokens with each other, and their axis; it has half as many tokens in :data:`WIDE`."""


def sides(row):
    """Returns tuples of token axes that are long together: each axis by itself, but the axes of packed tokens."""
    token_axes = [a for argument in row.arguments.values() for axes in argument.shapes for a in axes if a in SEQUENCES]
    if row.arguments[next(iter(row.arguments))].shapes == (("...",),):
        return [ANY_RANK[-1:]]
    packed = tuple(axis for axis in PACKED if axis in token_axes and "num_segments" in row.options)
    return [packed] if packed else [(axis,) for axis in dict.fromkeys(token_axes)] or [()]


def wide(row, title, names, options):
    """Yields cases of 609 random tokens for each token axis in turn, the first in a batch of 101; other sizes are 3.

    Functions of packed tokens get about 1,200 tokens, half of them in one of 101 segments. If the arrays were too
    large, many tokens and many examples are drawn in a case each.
    """
    options = options | {k: n for k, n in {"max_length": MANY, "num_segments": EXAMPLES}.items() if k in options}
    many = EXAMPLES
    for side in sorted(sides(row), key=lambda side: side == ("n",)):  # queries last
        at_once = SQUARED.get(row.name) not in side and MANY * many * max([FEW, *row.sizes.values()]) <= MOST
        for axes, count in [(side, many)] if at_once or many == FEW else [(side, FEW), ((), many)]:
            yield _wide(row, f"{title}, {' and '.join(axes) or 'examples'}: {WIDE}", names, options, axes, count)
        many = FEW if row.batched else EXAMPLES  # each side of a function of all pairs has examples of its own


def _wide(row, title, names, options, side, count):
    batches = {a for argument in row.arguments.values() if {*side} & {*argument.own} for a in argument.own} & {"B", "C"}
    many = MANY // 2 if SQUARED.get(row.name) in side else MANY
    sizes = dict.fromkeys(SIZES, FEW) | {axis: PACKED.get(axis, many) for axis in side} | dict.fromkeys(batches, count)
    case, values = draw(row, title, names, options, (count,), sizes), {}
    for key in case.given("int", "lengths"):
        value, mask = case.values[key], row.arguments.get(row.arguments[key].mask)
        limit = case.sizes[(mask.own or ANY_RANK)[-1]] if mask else MANY
        values[key] = (limit - 7 * np.arange(value.size).reshape(value.shape)) % (limit + 1)
    for key in case.given("segments"):
        value = np.where(np.arange(case.values[key].size) % 2, case.values[key], case.values[key][0])
        values[key] = np.sort(value) if options["indices_are_sorted"] else value
    case = case.with_values("", **values)
    for axis in side:
        size = case.sizes.get(axis, sizes[axis])
        factors = np.where(np.arange(size) == size - 1, 4, 1)  # a maximum shows that the last is lost
        factors = factors * (2.0**-8 if row.unit else 1)  # the product of many numbers below 1 is 0
        case = scaled(case, "", axis, factors, case.given("data"))
    return case


def long_rows(row, size=LONG):
    """Yields (case, axis) for each masked axis that the result does not have, with ``size`` tokens along it.

    All are equal but the last sixteenth, which are multiples of the others by factors from 0.5 to 2, or to 1
    for numbers between 0 and 1.
    """
    for axis in _summed(row):
        case = _equal(row, f"{size} tokens along {axis}", axis, size)
        others = [key for key in case.given("data", "parameter") if key != "scale"]
        if case.values.get("scale") is not None and len(others) > 1:  # it would magnify the rounding of a million terms
            case = case.with_values("", scale=np.float64(2.0**-20))
        tail = np.arange(size) >= size - size // 16
        factors = np.where(tail, case.rng(" tail").uniform(0.5, 1 if row.unit else 2, size), 1)
        yield scaled(case, "", axis, factors, [] if row.norms else case.given("data")), axis  # one angle


def long_narrow_rows(row):
    """Yields cases with more tokens than narrow dtypes count, and with sums that overflow in float16."""
    for axis in _summed(row):
        case = _equal(row, f"{LONG_NARROW} equal tokens along {axis}", axis, LONG_NARROW)
        yield case
        if not row.unit:
            yield case.with_values("64 times as large", **{k: 64 * case.values[k] for k in case.given("data")})


def _summed(row):
    """Returns the masked axes that the result does not have, and whose size the implementation does not fix."""
    arguments = row.arguments
    kept = {axis for axes in row.results for axis in axes}
    masked = {
        a for argument in arguments.values() if argument.kind == "mask" for shape in argument.shapes for a in shape
    }
    return sorted((masked & SEQUENCES) - kept - row.sizes.keys())


def _equal(row, title, axis, size):
    case = draw(row, title, (), defaults_of(row), (), dict.fromkeys(SIZES, 2) | {axis: size})
    values = {}
    for key in case.given("data", "parameter"):
        value = case.values[key]
        for place in places_of(axis, case.axes[key], value.ndim):
            value = np.broadcast_to(np.take(value, [0], place), value.shape)
        values[key] = value
    return case.with_values("", **values)
