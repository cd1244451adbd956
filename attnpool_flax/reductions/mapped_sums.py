"""Sums over tokens of a map of each token, one block of tokens at a time: the mapped tokens never exist all at once.

The backward pass recomputes each block; JAX differentiates it, so forward mode and shard_map work.
"""

import math

import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.remat import remat
from attnpool_flax.numerics.sizes import known
from attnpool_flax.reductions.dispatch import cast_varying, unify_varying, varying_axes
from attnpool_flax.reductions.query_blocks import rows_of


def dense(function, x, real, mask, width):
    """Sums ``function(tokens)`` over the real tokens of each example: [..., o].

    Args:
      function: from tokens [..., rows, d], 0 at padding, to [..., rows, o].
      x: [..., L, d] tokens.
      real: bool of x without d, or None: tokens that are real in any example that shares them.
      mask: bool [..., L] of all examples, or None.
      width: how many numbers the function holds for one token.
    """

    def block(x, real, mask):
        values = function(x if real is None else jnp.where(real[..., None], x, 0))
        return jnp.sum(values if mask is None else jnp.where(mask[..., None], values, 0), -2)

    parts = unify_varying(x, real, mask)
    return _over_blocks(block, None, parts, (-2, -1, -1), x.shape[-2], math.prod(x.shape[:-2]) * width)


def packed(function, x, segments, width):
    """Sums ``function(tokens)`` over the real tokens of each segment: [S, o]; the other arguments are those of :func:`dense`.

    Args:
      function: from tokens [rows, d], 0 at padding, to [rows, o].
      x: [N, d] tokens.
      segments: :class:`~attnpool_flax.reductions.segment_sums.Segments`.
      width: how many numbers the function holds for one token.
    """

    def block(x, real, slots):
        values = jnp.where(real[:, None], function(jnp.where(real[:, None], x, 0)), 0)
        return slots, values

    def add(sums, found):
        slots, values = found
        return sums.at[slots].add(values, mode="promise_in_bounds", indices_are_sorted=segments.ordered)

    parts = x, segments.real, segments.chain[0]
    sums = _over_blocks(block, (add, segments.sizes[0]), parts, (0, 0, 0), x.shape[0], width)
    return segments.sum_slots(sums)


def _over_blocks(block, scatter, parts, axes, count, cost):
    """Adds up ``block(*parts)`` of blocks along one axis of each part; ``scatter`` is (add, rows), or None for a plain sum."""
    whole = block(*parts) if not known(count, cost) or rows_of(cost) >= count else None
    if whole is not None:
        return whole if scatter is None else _scattered(scatter, whole, parts)
    rows = rows_of(cost)
    end = count // rows * rows
    rematerialized = remat(block)

    def block_step(sums, own):
        return add(sums, rematerialized(*own)), None

    blocks = tuple(_in_blocks(part, axis, end, rows) for part, axis in zip(parts, axes, strict=True))
    last = block(*(_after(part, axis, end) for part, axis in zip(parts, axes, strict=True)))
    if scatter is None:
        add, start = jnp.add, last
    else:
        add, start = scatter[0], _scattered(scatter, last, parts)
    return lax.scan(block_step, start, blocks)[0]


def _scattered(scatter, found, parts):
    add, rows = scatter
    values = found[1]
    zeros = cast_varying(jnp.zeros((rows, values.shape[-1]), values.dtype), varying_axes(parts[0]))
    return add(zeros, found)


def _in_blocks(part, axis, end, rows):
    if part is None:
        return None
    axis += part.ndim if axis < 0 else 0
    part = lax.slice_in_dim(part, 0, end, axis=axis)
    return jnp.moveaxis(jnp.reshape(part, (*part.shape[:axis], end // rows, rows, *part.shape[axis + 1 :])), axis, 0)


def _after(part, axis, end):
    return None if part is None else lax.slice_in_dim(part, end, None, axis=axis % part.ndim)
