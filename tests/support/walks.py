"""The functions that walk over tokens, called with arrays large enough for tiles, and what their programs cost."""

import copy
import math

import jax
import jax.numpy as jnp
import numpy as np
from constants import replaced
from jax.extend import core

import attnpool_flax
from attnpool_flax.call.compiled import FUNCTIONS
from attnpool_flax.reductions import tiling
from attnpool_ref import table
from attnpool_ref.conformance import cases
from attnpool_ref.conformance.candidates.calling import arrange
from attnpool_ref.conformance.checks.subject import flatten

WALKERS = [row for row in table.VARIANTS if FUNCTIONS[row.name].has_tiles and not row.packed]
"""The rows whose function walks over the tokens of a sequence; attention over many queries goes by blocks of these."""

PACKED = [row for row in table.VARIANTS if FUNCTIONS[row.name].has_tiles and row.packed]
"""The rows whose function walks over packed tokens."""

BATCH, SIZES = 16, {"L": 512, "T": 256, "d": 256, "e": 192, "q": 256, "n": 2}
"""Of each side more than ``tiles.WHOLE`` bytes, narrow dtypes included."""


class Call:
    """A call of a walker, whatever its implementation and whatever the values.

    Attributes:
      case: what is called.
      arrays: its arguments, described (:class:`jax.ShapeDtypeStruct`) in the dtype that is asked for.
      options: its options, the implementation among them.
    """

    def __init__(self, row, title, implementation, dtype="float32", batch=BATCH, sizes=None):
        ways = {own: (names, options) for own, names, options in cases.configurations(row)}
        names, options = ways[title]
        self.case = cases.draw(row, title, names, options, (batch,), SIZES if sizes is None else sizes)
        self.function = getattr(attnpool_flax, row.name)
        self.options = options | ({} if implementation is None else {"implementation": implementation})
        given = {key: value for key, value in self.case.values.items() if value is not None}
        self.values = {key: v.astype(jnp.dtype(dtype)) if v.dtype.kind == "f" else v for key, v in given.items()}
        self.arrays = {key: jax.ShapeDtypeStruct(v.shape, v.dtype) for key, v in self.values.items()}

    def changed(self, forward=None, **options):
        """The same call with other options, or with another forward."""
        other = copy.copy(self)
        other.options = self.options | options
        if forward is not None:
            other.forward = forward
        return other

    @property
    def tokens(self):
        """The arguments that are walked: x, and y where there are two sides."""
        return {key: array for key, array in self.arrays.items() if key in ("x", "y")}

    def forward(self, arrays):
        """The results, without weights."""
        args, kwargs = arrange(self.function, arrays | self.options)
        return flatten(self.function(*args, **kwargs))

    def step(self, arrays):
        """The sum of the squared results, and its gradients for all floating arguments."""
        (value, _), gradients = self.step_with_results(arrays)
        return value, gradients

    def step_with_results(self, arrays):
        """((value, results), gradients): what a step needs, with the results that it goes by."""
        floats = {key: array for key, array in arrays.items() if jnp.issubdtype(array.dtype, jnp.floating)}

        def loss(floats):
            results = self.forward(arrays | floats)
            return sum(jnp.sum(jnp.square(out.astype(jnp.float32))) for out in results), results

        return jax.value_and_grad(loss, has_aux=True)(floats)

    def computed(self):
        """(results, gradients) of the case's own values, by one program."""
        (_, results), gradients = jax.tree.map(np.asarray, jax.jit(self.step_with_results)(self.values))
        return results, gradients


def size(array):
    """Bytes."""
    return math.prod(array.shape) * np.dtype(array.dtype).itemsize


def walked(function, call):
    """How often the tokens are cut into tiles, whole: bytes of all tiles over the tokens' bytes.

    It is counted before XLA, in the program as JAX traced it: what XLA says of a loop does not depend on its trips.
    """
    shapes = {array.shape for array in call.tokens.values()}
    program = jax.make_jaxpr(function)(call.arrays).jaxpr
    return sum(trips * size(tile) for trips, tile in _tiles(program, shapes)) / sum(map(size, call.tokens.values()))


def trips(function, call):
    """The trips of each loop that cuts the tokens into tiles."""
    shapes = {array.shape for array in call.tokens.values()}
    return [trips for trips, _ in _tiles(jax.make_jaxpr(function)(call.arrays).jaxpr, shapes)]


def _tiles(program, shapes, trips=1):
    for equation in program.eqns:
        if equation.primitive.name == "dynamic_slice" and equation.invars[0].aval.shape in shapes:
            yield trips, equation.outvars[0].aval
        inside = trips * equation.params["length"] if equation.primitive.name == "scan" else trips
        found = [list(_tiles(inner, shapes, inside)) for inner in _programs(equation.params)]
        if equation.primitive.name == "cond":  # one of the branches is run: the whole tile's is the longest
            found = [max(found, key=lambda cuts: sum(trips * size(tile) for trips, tile in cuts))]
        yield from (cut for cuts in found for cut in cuts)


def _programs(params):
    for value in jax.tree.leaves(list(params.values()), is_leaf=_is_program):
        if _is_program(value):
            yield getattr(value, "jaxpr", value)


def _is_program(value):
    return isinstance(value, core.Jaxpr | core.ClosedJaxpr)


def small_tiles(**constants):
    """Other constants of :mod:`attnpool_flax.reductions.tiling`."""
    return replaced(tiling, **constants)
