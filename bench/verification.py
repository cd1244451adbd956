"""Verification before the timing: results against the oracle, gradients against ours.

The bound is derived: as many float32 roundings of the largest number as a sum has terms. Narrow inputs add a few
roundings of their own dtype (of the scores, the weights, their products, the result).
"""

import numpy as np

import attnpool_ref
from attnpool_ref.conformance.candidates.calling import arrange
from bench.programs import FLOOR, FORWARD, as_numpy

EPSILON = {"float32": 2.0**-23, "bfloat16": 2.0**-7}
NARROW_ROUNDINGS = 4

EXAMPLES = 2
"""Number of examples that the oracle computes; the same code computes all examples of a batch."""


def agree(got, want, terms, what, dtype="float32"):
    """Raises an AssertionError if two lists of float64 arrays differ by more than rounding.

    The error is relative to the largest number of all arrays in ``want``, because an array that cancels to 0, such as
    the gradient of a bias of keys, has errors as large as the terms that cancelled. ``terms`` is the number of terms of
    the longest sum. Infinities, such as the log of a weight of 0, must stand where those of ``want`` stand.
    """
    narrow = 0 if dtype == "float32" else NARROW_ROUNDINGS * EPSILON[dtype]
    size = max(float(np.abs(part[np.isfinite(part)]).max(initial=0)) for part in want)
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape, f"{what} has the shape {a.shape}, and {b.shape} is needed"
        different = a != b
        error = float(np.abs(a[different] - b[different]).max(initial=0))
        allowed = (EPSILON["float32"] * terms + narrow) * size
        assert error <= allowed, f"{what} is off by {error:g}, and the largest number is {size:g}"


class Verifier:
    """Compares the ways of a case with the oracle, or their steps with the step of the first way."""

    def __init__(self, case, direction, arrays):
        self.case, self.direction, self.wanted = case, direction, None
        call = case.call
        if direction == FORWARD:
            first = {
                name: np.asarray(array[:EXAMPLES] if call.axes[name][0] in ("...", "B", "C") else array)
                for name, array in arrays.items()
            }
            oracle = getattr(attnpool_ref, call.row.name)
            args, kwargs = arrange(oracle, first | call.numbers | call.options)
            self.wanted = as_numpy(oracle(*args, **kwargs))

    def check(self, way, program):
        """Raises an AssertionError if the program of a way is wrong; floors are not checked."""
        if way.kind == FLOOR:
            return
        what, sizes = f"{self.case}: {way.name}", self.case.call.sizes
        if self.direction == FORWARD:
            batch = tuple(slice(EXAMPLES) for letter in "BC" if letter in sizes)
            got, terms = [part[batch] for part in as_numpy(program.run())], sum(sizes.values())
        else:
            shapes = self.case.call.shapes(self.case.dtype)
            got, terms = as_numpy(program.run()[1]), sum(shapes[name].size for name in self.case.call.tokens())
        self.wanted = got if self.wanted is None else self.wanted
        agree(got, self.wanted, terms, what, self.case.dtype)
