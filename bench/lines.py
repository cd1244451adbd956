"""Timing of every function of the table against one read of its inputs, and against the oracle.

The arguments are the cases of the conformance tests, drawn from the function's row, so a new row has its line at once.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import attnpool_flax
import attnpool_ref
from attnpool_ref import table
from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.candidates.calling import arrange
from bench.programs import FLOOR, FORWARD, OURS, PLAIN, Arrays, Way, as_numpy, program
from bench.verification import agree

SIZES = {"L": 128, "T": 96, "n": 48, "m": 128, "k": 48, "C": 24, "J": 48, "M": 48, "N": 4096, "H": 4}
SIZES |= {"d": 256, "e": 240, "v": 192, "q": 256, "c": 64, "c'": 48, "h": 64, "o": 128, "f": 256}
BATCHES = {"full": 32, "quick": 8}

ROWS = table.VARIANTS

CHOOSES = {"semantic_match": "the largest of many cosines may be another one once they are rounded"}
"""Functions that are verified on the few tokens of the conformance cases, each with the reason."""


class Line:
    """One row of the table as a benchmark."""

    def __init__(self, row, scale):
        _, names, options = next(iter(drawing.configurations(row)))  # required arguments and masks
        batch, sizes = drawing.BATCH, {}  # those of the conformance cases are tiny
        if scale in BATCHES:
            batch, sizes = (BATCHES[scale],), SIZES | {"B": BATCHES[scale]}
        self.row, self.scale = row, scale
        self.case = drawing.draw(row, "a line of the benchmark", names, options, batch, sizes)
        self.values = {
            name: value.astype(np.float32) if value.dtype.kind == "f" else value
            for name, value in self.case.values.items()
            if value is not None
        }

    def __str__(self):
        return self.row.name

    def arrays(self):
        """Returns floating arguments and the others; there are no cotangents, because a line is forward only."""
        floats = {name: value for name, value in self.values.items() if value.dtype == np.float32}
        return Arrays(floats, {name: value for name, value in self.values.items() if name not in floats}, [])

    def _call(self, namespace, floats, fixed):
        oracle = getattr(attnpool_ref, self.row.name)
        args, kwargs = arrange(oracle, floats | fixed | self.case.options)
        return jax.tree.leaves(getattr(namespace, self.row.name)(*args, **kwargs))

    def ways(self):
        """Returns the ways: ours, one read if there is a floating array, the oracle."""
        yield Way(OURS, OURS, partial(self._call, attnpool_flax))
        if self.arrays().floats:
            yield Way("one read", FLOOR, lambda floats, fixed: [jnp.sum(x) for x in floats.values()])
        yield Way("attnpool_ref", PLAIN, partial(self._call, attnpool_ref), library="numpy")

    def programs(self):
        """Returns the verified program of each way, by name.

        Raises:
          AssertionError: our result differs from the oracle's by more than rounding.
        """
        ways, arrays = list(self.ways()), self.arrays()
        programs = {way.name: program(way, FORWARD, arrays) for way in ways}
        if self.row.name in CHOOSES and self.scale != "tiny":
            Line(self.row, "tiny").programs()
        else:
            ours, *_, oracle = (as_numpy(programs[way.name].run()) for way in ways if way.kind != FLOOR)
            agree(ours, oracle, self.case.terms(), str(self))
        return programs
