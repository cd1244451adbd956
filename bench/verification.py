"""What is timed is right: results against the oracle, gradients against ours, before the first round.

The bound is derived: as many roundings of float32 as a sum has terms, of the largest number; narrow inputs add a few of
their own dtype (of the scores, the weights, their products, the result).
"""

from dataclasses import replace

import numpy as np

import attnpool_ref
from bench.programs import FLOOR, FORWARD, STEP, as_numpy, program

EPSILON = {"float32": 2.0**-23, "bfloat16": 2.0**-7}

NARROW_ROUNDINGS = 4

EXAMPLES = 2
"""Examples whose results the oracle gives; every example of a batch is computed alike."""

LARGEST = 2**30
"""Bytes of the largest array that the oracle may make; beyond that a case is verified on shorter sequences."""

SEQUENCES = "LTnkm"


def agree(got, want, terms, what, dtype="float32"):
    """Raises an AssertionError where two lists of float64 arrays are further apart than rounding explains.

    The size is that of all parts: one that cancels to 0, such as a gradient of a bias of keys, is off by what cancelled.
    """
    narrow = 0 if dtype == "float32" else NARROW_ROUNDINGS * EPSILON[dtype]
    size = max(float(np.abs(part).max(initial=0)) for part in want)
    for a, b in zip(got, want, strict=True):
        error = float(np.abs(a - b).max(initial=0))
        allowed = (EPSILON["float32"] * terms + narrow) * size
        assert error <= allowed, f"{what} is off by {error:g}, and the largest number is {size:g}"


def oracle(case, arrays):
    """The definition's results for the first examples."""
    first = {
        name: np.asarray(array[:EXAMPLES] if case.function.shapes[name][0] in "BC" else array)
        for name, array in (arrays.floats | arrays.fixed).items()
    }
    return as_numpy(getattr(attnpool_ref, case.name)(**first, **case.options))


def shortened(case):
    """The case itself, or with sequences that are short enough for the oracle."""
    sizes = dict(case.sizes)
    while EXAMPLES * 8 * np.prod(replace(case, sizes=sizes).shape(case.function.largest)) > LARGEST:
        sizes |= {letter: sizes[letter] // 2 for letter in SEQUENCES if sizes.get(letter, 1) > 1}
    return case if sizes == case.sizes else replace(case, sizes=sizes)


class Verifier:
    """Holds one way of a case after another against the oracle, or their steps against the first one's."""

    def __init__(self, case, direction, arrays):
        self.case, self.direction, self.first = case, direction, None
        if direction == FORWARD:
            self.short = shortened(case)
            self.arrays = arrays if self.short is case else self.short.arrays()
            self.want = oracle(self.short, self.arrays)

    def check(self, way, each):
        """Raises an AssertionError where the program ``each`` of a way is wrong; floors compute something else."""
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
