"""Programs of ``jax.export`` whose batch and numbers of tokens are symbols: what they compute, and what they refuse."""

import functools
import inspect
from dataclasses import dataclass

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import attnpool_flax
import attnpool_ref
from attnpool_flax import heads
from attnpool_flax.implementation import FRAMES
from attnpool_ref import language, variants
from attnpool_ref.conformance import cases, gradients
from attnpool_ref.conformance.adapters.jax_arrays import JaxArrays
from attnpool_ref.conformance.agreement import agreement
from attnpool_ref.conformance.calling import arrange
from attnpool_ref.conformance.subject import Subject

PLATFORMS = ("cpu", "cuda", "tpu")
LENGTHS = (1, 7, 512)
EXAMPLES = {"...": "examples", "B": "B", "C": "C"}

ROWS = [row for row in variants.VARIANTS if not row.state and row.family not in ("layers", "relations")]
"""The rows of tokens: of one sequence, of pairs, of scores, and of packed sequences."""


@dataclass(frozen=True)
class Program:
    """One way to call a row, as a program for any batch and any number of tokens.

    Attributes:
      row: the row.
      names: the optional arguments that are given.
      options: the static arguments.
      implementation: the implementation that is asked for, or None.
    """

    row: variants.Variant
    names: tuple
    options: dict
    implementation: str | None = None

    def case(self, *lengths):
        """A call whose axes of tokens have these lengths in turn."""
        drawn = self._drawn({})
        sizes = dict(zip(self.symbols(drawn), lengths * len(cases.SEQUENCES), strict=False))
        return self._drawn({axis: size for axis, size in sizes.items() if axis not in EXAMPLES})

    def _drawn(self, sizes):
        return cases.draw(self.row, "export", self.names, self.options, (3,), {"B": 3, "C": 2} | sizes)

    def symbols(self, case):
        """The axes for which a symbol stands: examples and tokens, as far as no parameter has them."""
        fixed = {symbol for key in case.given("parameter") for own in case.axes[key] for _, symbol in language.terms(own)}
        fixed |= {"n"} if self.row.packed else set()  # the number of learned queries
        axes = dict.fromkeys(axis for own in case.axes.values() for axis in own)
        return [axis for axis in axes if axis in cases.SEQUENCES - fixed or axis in EXAMPLES]

    def exported(self, platform="cpu"):
        """The program, exported for one platform."""
        case = self._drawn({})
        symbols = {axis: EXAMPLES.get(axis, axis) for axis in self.symbols(case)}
        given = {key: jnp.asarray(_narrow(value)) for key, value in case.values.items() if value is not None}
        shapes = {
            key: ", ".join(symbols.get(axis, str(size)) for axis, size in zip(case.axes[key], value.shape, strict=True))
            for key, value in given.items()
        }
        specs = export.symbolic_args_specs(given, shapes)
        return export.export(jax.jit(self._call), platforms=[platform])(specs)

    def _call(self, arrays):
        static = {"return_weights": True} if self.row.weights else {}
        if "implementation" in FRAMES[self.row.name].statics:
            static["implementation"] = self.implementation
        args, kwargs = arrange(getattr(attnpool_ref, self.row.name), arrays | self.options)
        return getattr(attnpool_flax, self.row.name)(*args, **kwargs, **static)

    def subject(self, program):
        """The exported program as the judge calls it: as the function that it was made from."""
        function = getattr(attnpool_flax, self.row.name)
        given = [key for key, value in self._drawn({}).values.items() if value is not None]

        @functools.wraps(function)
        def run(*args, **kwargs):
            values = inspect.signature(function).bind(*args, **kwargs).arguments
            return program.call({key: jnp.asarray(_narrow(values[key])) for key in given})

        return Subject(self.row, run, JaxArrays(), "float32")

    def __str__(self):
        return f"{self.row.name}-{'-'.join([*self.names, *[f'{k}={v}' for k, v in self.options.items()]])}"


def _narrow(value):
    return np.float32(value) if isinstance(value, float) or value.dtype == np.float64 else value


def programs(*titles):
    """A program for each way to call each row that has one of these titles."""
    return [
        Program(row, tuple(names), options, "tiles" if title == "smallest" else None)
        for row in ROWS
        for title, names, options in cases.configurations(row)
        if title in titles
    ]


def judge(program, exported, *lengths):
    """Results and gradients at some lengths against the oracle."""
    subject, case = program.subject(exported), program.case(*lengths)
    weights = bool(program.row.weights)
    for finding in (agreement(subject, case, weights), gradients.gradient(subject, case, weights)):
        assert finding is None or not finding.message, finding


@pytest.mark.thorough
@pytest.mark.parametrize("program", programs("smallest", "with lengths"), ids=str)
def test_one_program_serves_every_length(program):
    exported = program.exported()
    for place in range(3):
        judge(program, exported, *LENGTHS[place:], *LENGTHS[:place])
