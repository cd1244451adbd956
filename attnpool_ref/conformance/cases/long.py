"""Cases of many equal tokens, in which sums may drift, overflow or lose their count."""

import numpy as np

from attnpool_ref.conformance.cases.case import SEQUENCES, SIZES
from attnpool_ref.conformance.cases.drawing import draw
from attnpool_ref.conformance.cases.layout import places_of
from attnpool_ref.conformance.cases.ways import defaults_of

LONG = 10**6

LONG_BY_DEFAULT = 70_000
"""Number of tokens without the option ``contract``: too large for 16-bit integers, small enough for a Python loop."""

LONG_NARROW = 4100
"""Number of tokens in narrow dtypes: a count stops growing at 2048 in float16, and at 256 in bfloat16."""


def long_rows(row, size=LONG):
    """Yields (case, axis) for each masked axis that the result does not have, with ``size`` equal tokens along it."""
    for axis in _summed(row):
        case = _equal(row, f"{size} equal tokens along {axis}", axis, size)
        values = {}
        others = [key for key in case.given("data", "parameter") if key != "scale"]
        if case.values.get("scale") is not None and len(others) > 1:
            values["scale"] = np.float64(2.0**-20)  # a score that sums a million products would magnify its rounding
        yield case.with_values("", **values), axis


def long_narrow_rows(row):
    """Yields cases with more tokens than narrow dtypes count, and with sums that overflow in float16."""
    for axis in _summed(row):
        case = _equal(row, f"{LONG_NARROW} equal tokens along {axis}", axis, LONG_NARROW)
        yield case
        if not row.unit:
            yield case.with_values("64 times as large", **{k: 64 * case.values[k] for k in case.given("data")})


def _summed(row):
    """Returns the masked axes that the result does not have."""
    arguments = row.arguments
    kept = {axis for axes in row.results for axis in axes}
    masked = {a for argument in arguments.values() if argument.kind == "mask" for own in argument.shapes for a in own}
    return sorted((masked & SEQUENCES) - kept)


def _equal(row, title, axis, size):
    case = draw(row, title, (), defaults_of(row), (), dict.fromkeys(SIZES, 2) | {axis: size})
    values = {}
    for key in case.given("data", "parameter"):
        value = case.values[key]
        for place in places_of(axis, case.axes[key], value.ndim):
            value = np.broadcast_to(np.take(value, [0], place), value.shape)
        values[key] = value
    return case.with_values("", **values)
