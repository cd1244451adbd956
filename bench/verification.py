"""Verification before the timing: results against the oracle, gradients against ours.

The bound is derived: as many float32 roundings of the largest number as a sum has terms. Narrow inputs add a few
roundings of their own dtype (of the scores, the weights, their products, the result).
"""

from dataclasses import replace

import numpy as np

import attnpool_ref
from bench.programs import FLOOR, FORWARD, STEP, as_numpy, program

EPSILON = {"float32": 2.0**-23, "bfloat16": 2.0**-7}

NARROW_ROUNDINGS = 4

EXAMPLES = 2
"""Number of examples that the oracle computes; the same code computes all examples of a batch."""

LARGEST = 2**30
"""Bytes of the largest array that the oracle may make; larger cases are verified on shorter sequences."""

SEQUENCES = "LTnkm"


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


def oracle(case, arrays):
    """Returns the results of attnpool_ref for the first examples of a case."""
    first = {
        name: np.asarray(array[:EXAMPLES] if case.shapes[name][0] in "BC" else array)
        for name, array in (arrays.floats | arrays.fixed).items()
    }
    return as_numpy(getattr(attnpool_ref, case.name)(**first, **case.options))


def shortened(case, largest=LARGEST):
    """Returns the case, with sequences so short that no array of the oracle has more than ``largest`` bytes."""
    sizes = dict(case.sizes)
    while EXAMPLES * 8 * np.prod(replace(case, sizes=sizes).shape(case.function.largest)) > largest:
        sizes |= {letter: sizes[letter] // 2 for letter in SEQUENCES if sizes.get(letter, 1) > 1}
    return case if sizes == case.sizes else replace(case, sizes=sizes)


class Verifier:
    """Compares the ways of a case with the oracle, or their steps with the step of the first way."""

    def __init__(self, case, direction, arrays, largest=LARGEST):
        self.case, self.direction, self.first = case, direction, None
        if direction == FORWARD:
            self.short = shortened(case, largest)
            self.arrays = arrays if self.short is case else self.short.arrays()
            self.want = oracle(self.short, self.arrays)

    def check(self, way, each):
        """Raises an AssertionError if the program ``each`` of a way is wrong; floors are not checked."""
        what = f"{self.case}: {way.name}"
        if way.kind == FLOOR:
            return
        if self.direction == STEP:
            gradients = as_numpy(each.run()[1])
            self.first = gradients if self.first is None else self.first
            agree(gradients, self.first, self.case.tokens(), what, self.case.dtype)
            return
        if self.short is not self.case:
            each = program(way, FORWARD, self.arrays)
        batch = tuple(slice(EXAMPLES) for letter in "BC" if letter in self.case.sizes)
        results = [part[batch] for part in as_numpy(each.run())]
        agree(results, self.want, sum(self.short.sizes.values()), what, self.case.dtype)
