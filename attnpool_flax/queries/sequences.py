"""Blocks of sequences that are compared with shared queries, or with themselves; results are written in place."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics import platforms
from attnpool_flax.numerics.platforms import cast_varying, varying_axes
from attnpool_flax.numerics.remat import remat
from attnpool_flax.numerics.sizes import known
from attnpool_flax.reductions.loops.blocks import Blocks, over_blocks
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


def _in_blocks(function, rows, axis, own, shared):
    """Computes :func:`written_in_blocks` by a loop that JAX differentiates."""
    results = over_blocks(lambda own: function(own, shared), own, rows)
    return jax.tree.map(lambda result: jnp.swapaxes(result, 0, axis), results)


@written_in_blocks.defjvp
def _written_jvp(function, rows, axis, primals, tangents):
    def tangent(compute):
        return lambda primals, tangents: jax.jvp(compute, primals, tangents)[1]

    by_blocks = tangent(functools.partial(_in_blocks, function, rows, axis))
    at_once = tangent(remat(functools.partial(placed, function, axis)))
    result = written_in_blocks(function, rows, axis, *primals)
    return result, platforms.choose(primals, tangents, cpu=by_blocks, tpu=by_blocks, default=at_once)
