"""Sums over tokens of a function of each token, one block of tokens at a time.

The function's values exist for one block at a time: the backward pass recomputes each full block. Only tokens that fit
one block, or sizes that are symbols, are computed at once. JAX differentiates the loop, so forward mode and
``shard_map`` work.
"""

import functools
import math

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.platforms import cast_varying, unify_varying, varying_axes
from attnpool_flax.numerics.remat import remat
from attnpool_flax.numerics.sizes import known
from attnpool_flax.numerics.sums import computing_dtype
from attnpool_flax.reductions.loops.blocks import by_budget, in_blocks, rows_of


def dense(function, x, real, mask, width):
    """Sums ``function(tokens)`` over the real tokens of each example: [..., o].

    Args:
      function: from tokens [..., rows, d] in float32 (or float64, as x), 0 at padding, to [..., rows, o].
      x: [..., L, d] tokens, in any floating dtype.
      real: bool of x's shape without d: tokens that are real in any example that shares them; None if all are real.
      mask: bool [..., L] of all examples, or None.
      width: the number of array elements that the function holds for one token.
    """

    def block(x, real, mask):
        values = function(_zero_padded(x, real))
        return jnp.sum(values if mask is None else jnp.where(mask, values, 0), -2)

    real, mask = (array if array is None else array[..., None] for array in (real, mask))
    parts = unify_varying(x, real, mask)
    return _sum_of_blocks(block, jnp.add, parts, jax.eval_shape(block, *parts), math.prod(x.shape[:-2]) * width)


def packed(function, x, segments, width):
    """Sums ``function(tokens)`` over the real tokens of each segment: [S, o].

    Args:
      function: from tokens [rows, d] in float32 (or float64, as x), 0 at padding, to [rows, o].
      x: [N, d] tokens, in any floating dtype.
      segments: the S :class:`~attnpool_flax.reductions.packed.segments.Segments`, at least one.
      width: the number of array elements that the function holds for one token.
    """

    def block(x, real, slots):
        return slots[:, 0], jnp.where(real, function(_zero_padded(x, real)), 0)

    def add(sums, mapped):
        slots, values = mapped
        return sums.at[slots].add(values, mode="promise_in_bounds", indices_are_sorted=segments.ordered)

    parts = x, segments.real[:, None], segments.chain[0][:, None]
    _, values = jax.eval_shape(block, *parts)
    sums = jax.ShapeDtypeStruct((segments.sizes[0], values.shape[1]), values.dtype)
    return segments.sum_slots(_sum_of_blocks(block, add, parts, sums, width))


def _zero_padded(x, real):
    x = x if real is None else jnp.where(real, x, 0)
    return x.astype(computing_dtype(x.dtype))


def _sum_of_blocks(block, add, parts, sums, cost):
    """Adds up the results of ``block`` for blocks of ``parts``, arrays [..., tokens, features] or None.

    ``add`` is a function of the sum so far and the result of a block. ``sums`` has the sum's shape and dtype; the sum
    starts at 0. ``cost`` is the number of array elements that ``block`` holds for one token.
    """
    start = cast_varying(jnp.zeros(sums.shape, sums.dtype), varying_axes(parts[0]))
    count = parts[0].shape[-2]
    if not known(count, cost) or rows_of(cost) >= count:
        return add(start, block(*parts))
    return by_budget(functools.partial(_over_blocks, block, add), cost, start, parts)


def _over_blocks(block, add, rows, start, parts):
    count = parts[0].shape[-2]
    if rows >= count:
        return add(start, block(*parts))
    whole = count // rows * rows
    rematerialized = remat(block)

    def block_step(sums, own):
        return add(sums, rematerialized(*own)), None

    sums, _ = lax.scan(block_step, start, tuple(in_blocks(part, whole, rows) for part in parts))
    if whole == count:
        return sums
    return add(sums, block(*(part if part is None else part[..., whole:, :] for part in parts)))
