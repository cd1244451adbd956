"""Calls of functions that process tokens in tiles, on arrays large enough for that, and the cost of their programs."""

import copy
import math

import jax
import jax.numpy as jnp
import numpy as np
from constants import replaced
from drawn import way
from jax.extend import core

import attnpool_flax
from attnpool_flax.call.compiled import FUNCTIONS
from attnpool_flax.reductions.loops import tiling
from attnpool_ref import table
from attnpool_ref.conformance import cases
from attnpool_ref.conformance.candidates.calling import arrange
from attnpool_ref.conformance.checks.subject import flatten

WALKERS = [row for row in table.VARIANTS if FUNCTIONS[row.name].has_tiles and not row.packed]
"""Rows whose functions can process the tokens of a sequence in tiles."""

PACKED = [row for row in table.VARIANTS if FUNCTIONS[row.name].has_tiles and row.packed]
"""Rows whose functions can process packed tokens in tiles."""

BATCH, SIZES = 16, {"L": 512, "T": 256, "d": 256, "e": 192, "q": 256, "n": 2}
"""Sizes with which x and y, of 16 sequences each, have more than ``tiling.WHOLE`` bytes, even in narrow dtypes."""


class Call:
    """A call of a function that can process tokens in tiles.

    Attributes:
      case: the case of the judge that is called.
      arrays: its arguments, described by :class:`jax.ShapeDtypeStruct` in the requested dtype.
      options: its options, the implementation included.
    """

    def __init__(self, row, title, implementation, dtype="float32", batch=BATCH, sizes=None):
        title, names, options = way(row, title)
        self.case = cases.draw(row, title, names, options, (batch,), SIZES if sizes is None else sizes)
        self.function = getattr(attnpool_flax, row.name)
        self.options = options | ({} if implementation is None else {"implementation": implementation})
        given = {key: value for key, value in self.case.values.items() if value is not None}
        self.values = {key: v.astype(jnp.dtype(dtype)) if v.dtype.kind == "f" else v for key, v in given.items()}
        self.arrays = {key: jax.ShapeDtypeStruct(v.shape, v.dtype) for key, v in self.values.items()}

    def changed(self, forward=None, **options):
        """Returns the same call with other options, or with another forward function."""
        other = copy.copy(self)
        other.options = self.options | options
        if forward is not None:
            other.forward = forward
        return other

    @property
    def tokens(self):
        """The arguments that are processed in tiles: x, and y if there are two sequences."""
        return {key: array for key, array in self.arrays.items() if key in ("x", "y")}

    def forward(self, arrays):
        """Computes the results, a flat list."""
        args, kwargs = arrange(self.function, arrays | self.options)
        return flatten(self.function(*args, **kwargs))

    def step(self, arrays):
        """Returns the sum of the squared results, and its gradients for all floating arguments."""
        (value, _), gradients = self.step_with_results(arrays)
        return value, gradients

    def step_with_results(self, arrays):
        """Returns ((sum of the squared results, results), gradients)."""
        floats = {key: array for key, array in arrays.items() if jnp.issubdtype(array.dtype, jnp.floating)}

        def loss(floats):
            results = self.forward(arrays | floats)
            return sum(jnp.sum(jnp.square(out.astype(jnp.float32))) for out in results), results

        return jax.value_and_grad(loss, has_aux=True)(floats)

    def computed(self):
        """Computes (results, gradients) of the case's own values in one program."""
        (_, results), gradients = jax.tree.map(np.asarray, jax.jit(self.step_with_results)(self.values))
        return results, gradients


def size(array):
    """Returns the number of bytes of an array."""
    return math.prod(array.shape) * np.dtype(array.dtype).itemsize


def walked(function, call):
    """Returns the bytes of all tiles that ``function(call.arrays)`` cuts from the tokens, divided by their bytes.

    The tiles are counted in the program as JAX traces it, because what XLA reports for a loop does not depend on its
    number of steps.
    """
    shapes = {array.shape for array in call.tokens.values()}
    program = jax.make_jaxpr(function)(call.arrays).jaxpr
    return sum(trips * size(tile) for trips, tile in _tiles(program, shapes)) / sum(map(size, call.tokens.values()))


def trips(function, call):
    """Returns the number of steps of each loop in ``function(call.arrays)`` that cuts the tokens into tiles."""
    shapes = {array.shape for array in call.tokens.values()}
    return [trips for trips, _ in _tiles(jax.make_jaxpr(function)(call.arrays).jaxpr, shapes)]


def _tiles(program, shapes, trips=1):
    """Yields (steps, tile) of each slice of an array whose shape is in ``shapes``; a ``while`` visits all its tiles."""
    for equation in program.eqns:
        if equation.primitive.name == "dynamic_slice" and equation.invars[0].aval.shape in shapes:
            (whole, *_), (tile,) = equation.invars, equation.outvars
            each = math.prod(-(-a // b) for a, b in zip(whole.aval.shape, tile.aval.shape, strict=True))
            yield trips or each, tile.aval
        inside = {"scan": trips and trips * equation.params.get("length", 1), "while": None}
        inside = inside.get(equation.primitive.name, trips)
        found = [list(_tiles(inner, shapes, inside)) for inner in _programs(equation.params)]
        if equation.primitive.name == "cond":  # only one branch runs: take the one that cuts the most
            found = [max(found, key=lambda cuts: sum(trips * size(tile) for trips, tile in cuts))]
        yield from (cut for cuts in found for cut in cuts)


def _programs(params):
    for value in jax.tree.leaves(list(params.values()), is_leaf=_is_program):
        if _is_program(value):
            yield getattr(value, "jaxpr", value)


def _is_program(value):
    return isinstance(value, core.Jaxpr | core.ClosedJaxpr)


def small_tiles(**constants):
    """Replaces constants of :mod:`attnpool_flax.reductions.loops.tiling` inside of a with block."""
    return replaced(tiling, **constants)
