"""A line for every function of the table: ours beside one read of its inputs, and beside the oracle.

The arguments are the conformance kit's, drawn from the row, so that a new row has its line at once.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import attnpool_flax
import attnpool_ref
from attnpool_ref import variants
from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.subject import arrange
from bench.cases import EPSILON
from bench.programs import FLOOR, OURS, PLAIN, Arrays, Way, as_numpy

SIZES = {"L": 128, "T": 96, "n": 48, "m": 128, "k": 48, "B": 32, "C": 24, "J": 48, "M": 48, "H": 4}
SIZES |= {"d": 256, "e": 240, "v": 192, "q": 256, "c": 64, "c'": 48, "h": 64, "o": 128, "f": 256}
BATCH = (32,)

ROWS = variants.VARIANTS


class Line:
    """One row of the table as something to measure."""

    def __init__(self, row, tiny=False):
        _, names, options = next(iter(drawing.configurations(row)))  # what is required, and masks
        sizes, batch = ({}, drawing.BATCH) if tiny else (SIZES, BATCH)
        self.row = row
        self.case = drawing.draw(row, "a line of the benchmark", names, options, batch, sizes)
        self.values = {
            name: value.astype(np.float32) if value.dtype.kind == "f" else value
            for name, value in self.case.values.items()
            if value is not None
        }

    def __str__(self):
        return self.row.name

    def arrays(self):
        """Floating arguments and the others; no cotangents, for a line is forward alone."""
        floats = {name: value for name, value in self.values.items() if value.dtype == np.float32}
        return Arrays(floats, {name: value for name, value in self.values.items() if name not in floats}, [])

    def _call(self, namespace, floats, fixed):
        oracle = getattr(attnpool_ref, self.row.name)
        args, kwargs = arrange(oracle, floats | fixed | self.case.options)
        return jax.tree.leaves(getattr(namespace, self.row.name)(*args, **kwargs))

    def ways(self):
        """Ours, one read where there is a floating array, the oracle."""
        yield Way(OURS, OURS, partial(self._call, attnpool_flax))
        if self.arrays().floats:
            yield Way("one read", FLOOR, lambda floats, fixed: [jnp.sum(x) for x in floats.values()])
        yield Way("attnpool_ref", PLAIN, partial(self._call, attnpool_ref), library="numpy")

    def verify(self, ours, want):
        """Raises an AssertionError where ours is further from the oracle's than rounding explains."""
        for a, b in zip(as_numpy(ours), as_numpy(want), strict=True):
            error, size = float(np.abs(a - b).max(initial=0)), float(np.abs(b).max(initial=0))
            assert error <= EPSILON["float32"] * self.case.terms() * size, f"{self}: off by {error:g}, size {size:g}"
