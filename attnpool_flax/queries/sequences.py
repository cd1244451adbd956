"""Blocks of sequences that are compared with shared queries, or with themselves; results are written in place."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import SymbolicZero

from attnpool_flax.numerics import platforms
from attnpool_flax.numerics.remat import remat
from attnpool_flax.numerics.sizes import known
from attnpool_flax.numerics.varying import cast_varying, varying_axes
from attnpool_flax.reductions.loops.blocks import Blocks, inside_loop
from attnpool_flax.reductions.loops.budget import even_rows, rows_of


def over_sequences(tiled, function, axis, own, shared):
    """Computes ``function(own, shared)`` of all sequences, on CPUs in blocks of sequences if ``tiled``.

    Args:
      tiled: whether to use blocks, if there is more than one and no size is a symbol.
      function: from the arrays of some sequences, and the shared arrays, to a tuple of arrays.
      axis: the axis of the sequences in the results.
      own: arrays [n, ...] of the sequences: tokens [n, L, d], mask [n, L] or None, scores [n, m, L] if given.
      shared: arrays that all sequences share: queries [m, d] first; may be empty.
    """
    count, length, width = own[0].shape
    partners = own[2].shape[1] if len(own) > 2 else shared[0].shape[0] if shared else 1
    cost = (length + partners) * width
    if tiled and known(count, cost) and rows_of(cost) < count:
        return written_in_blocks(function, even_rows(rows_of(cost), count), axis, own, shared)
    return placed(function, axis, own, shared)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2))
def written_in_blocks(function, rows, axis, own, shared):
    """Computes ``function(own, shared)``, on CPUs in blocks of elements that are written into the results in place.

    A ``lax.scan`` would stack the results of its steps along a first axis, which only a copy moves elsewhere.

    Args:
      function: from (arrays with some elements along the first axis, the shared arrays) to arrays with these elements
        along the first axis.
      rows: the number of elements of a block, at most that of all.
      axis: the axis of the elements in the results.
      own: arrays of one length along the first axis, or None, varying over the same mesh axes as the shared ones.
      shared: arrays, or None.
    """
    by_blocks = functools.partial(_written, function, rows, axis)
    return platforms.choose(own, shared, cpu=by_blocks, default=functools.partial(placed, function, axis))


def placed(function, axis, own, shared):
    """Computes ``function(own, shared)``, and swaps the first axis of each result with ``axis``."""
    return jax.tree.map(lambda result: jnp.swapaxes(result, 0, axis), function(own, shared))


def _written(function, rows, axis, own, shared):
    first, *_ = jax.tree.leaves(own)
    blocks = Blocks(first.shape[0], rows)

    def block_step(step, results):
        block = jax.tree.map(lambda array: blocks.slice(array, step), own)
        computed = placed(function, axis, block, shared)
        return jax.tree.map(lambda result, new: blocks.update(result, new, step, axis), results, computed)

    def place(result):
        # the axis as fill value, because XLA would merge equal arrays of several calls, and copy them for each loop
        return cast_varying(jnp.full(result.shape, axis, result.dtype), varying_axes(first))

    results = jax.eval_shape(functools.partial(placed, function, axis), own, shared)
    return lax.fori_loop(0, blocks.steps, block_step, jax.tree.map(place, results))


def _rows_from(start, rows, array):
    array, start = inside_loop(array, start)
    return lax.dynamic_slice_in_dim(array, start, rows)


@functools.partial(written_in_blocks.defjvp, symbolic_zeros=True)
def _written_jvp(function, rows, axis, primals, tangents):
    """Computes the tangent of :func:`written_in_blocks` by adding up that of each block; on GPUs, that of all at once.

    In reverse mode, the transpose of such an addition slices the cotangent of the results by index, without a copy.
    """
    result = written_in_blocks(function, rows, axis, *primals)
    tangents = jax.tree.map(lambda tangent: None if isinstance(tangent, SymbolicZero) else tangent, tangents)
    by_blocks = functools.partial(_tangents_added, function, rows, axis, result)
    at_once = remat(functools.partial(_tangents_at_once, function, axis))
    return result, platforms.choose(primals, tangents, cpu=by_blocks, tpu=by_blocks, default=at_once)


def _tangents_at_once(function, axis, primals, tangents):
    """Returns the tangents of the results of :func:`placed`; tangents that are None are 0."""
    leaves, shape = jax.tree.flatten(primals)
    dleaves = shape.flatten_up_to(tangents)
    moving = [i for i, leaf in enumerate(dleaves) if leaf is not None]

    def of_moving(*some):
        given = dict(zip(moving, some, strict=True))
        every = [given.get(i, leaf) for i, leaf in enumerate(leaves)]
        return placed(function, axis, *jax.tree.unflatten(shape, every))

    return jax.jvp(of_moving, [leaves[i] for i in moving], [dleaves[i] for i in moving])[1]


def _tangents_added(function, rows, axis, result, primals, tangents):
    (own, shared), (d_own, dshared) = primals, tangents
    count = jax.tree.leaves(own)[0].shape[0]
    whole = count // rows * rows

    def add(total, start, block, dblock):
        tangent = _tangents_at_once(function, axis, (block, shared), (dblock, dshared))
        return jax.tree.map(lambda total, tangent: _scatter_add(total, tangent, start, axis), total, tangent)

    def block_step(total, place):
        start, dblock = place
        block = jax.tree.map(functools.partial(_rows_from, start, rows), own)
        return add(total, start, block, dblock), None

    dblocks = jax.tree.map(lambda array: jnp.reshape(array[:whole], (-1, rows, *array.shape[1:])), d_own)
    zero = jax.tree.map(jnp.zeros_like, result)
    total, _ = lax.scan(remat(block_step), zero, (jnp.arange(0, whole, rows), dblocks))
    if whole < count:
        total = add(total, whole, *jax.tree.map(lambda array: array[whole:], (own, d_own)))
    return total


def _scatter_add(total, block, start, axis):
    places = lax.ScatterDimensionNumbers(tuple(range(total.ndim)), (), (axis,))
    return lax.scatter_add(total, jnp.full(1, start, jnp.int32), block, places, mode="promise_in_bounds")
