"""Max over tokens of each feature, with the number of tokens that reach it: ties share the gradient evenly."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.remat import saveable
from attnpool_flax.numerics.rounding import largest, max_along_axis
from attnpool_flax.reductions.dispatch import by_platform
from attnpool_flax.reductions.loops.tiling import flatten_batch, tiling_of, with_rules
from attnpool_flax.reductions.rules import reverse_rule


class ExtremeState(NamedTuple):
    """Accumulator of a maximum over tokens.

    Attributes:
      extreme: [B, d], the largest values; -inf for a fully masked row.
      count: [B, d], the number of real tokens that equal the largest value and share its gradient. It is int32, or
        float32 if the devices of a mesh sum it.
      some: [B], whether any token is real.
    """

    extreme: Any
    count: Any
    some: Any

    def common(self):
        """Returns the largest values, whose maximum over all parts comes first."""
        return lax.stop_gradient(self.extreme)

    def rescaled(self, extreme):
        """Returns (count,) of the tokens that equal the common maximum.

        If this part has NaN, the count is NaN, because the maximum over a mesh (``pmax``) may lose NaN.
        """
        count = jnp.where(self.extreme == extreme, self.count, 0).astype(jnp.float32)
        return (jnp.where(jnp.isnan(self.extreme), jnp.nan, count),)

    def added(self, extreme, sums):
        """Returns the accumulator of all parts from their maximum and the sum of :meth:`rescaled`."""
        (count,) = sums
        return ExtremeState(jnp.where(jnp.isnan(count), jnp.nan, extreme), count, jnp.any(count != 0, -1))

    @property
    def batch_rank(self):
        """The number of batch axes."""
        return 1

    def finalize(self):
        """Returns the largest values [B, d]; 0 for a fully masked row."""
        return jnp.where(self.some[:, None], self.extreme, 0)


def signed(x, least):
    """Returns x, or -x for a minimum (``least``). XLA negates x where it is read, without a copy."""
    return -x if least else x


def plain(x, mask, least):
    """Computes the :class:`ExtremeState` of tokens [..., L, d] and a mask [B, L] or None by whole arrays.

    With ``least`` it is the state of -x, from which the minimum follows. It has forward and reverse mode.
    """
    x = signed(flatten_batch(x), least)
    real = jnp.ones(x.shape[:2], bool) if mask is None else mask
    x = jnp.where(real[..., None], x, -jnp.inf)
    extreme = saveable(max_along_axis(lax.stop_gradient(x), 1))
    tied = real[..., None] & (x == extreme[:, None])
    return ExtremeState(largest(x, tied, 1), jnp.sum(tied, 1, dtype=jnp.int32), jnp.any(real, 1))


def with_gradient(x, mask, state, axis_name):
    """Returns the maxima [B, d] of all devices. Their gradient goes to those tokens of this device that equal them.

    Args:
      x: [B or 1, L, d], this device's tokens; for a minimum those of -x (:func:`signed`).
      mask: bool [B, L], or None.
      state: the merged :class:`ExtremeState` of all devices.
      axis_name: the mesh axes.
    """
    real = jnp.ones(x.shape[:2], bool) if mask is None else mask
    tied = real[..., None] & (lax.stop_gradient(x) == state.extreme[:, None])
    return _with_gradient(x, tied, state.extreme, state.count, axis_name)


@functools.partial(jax.custom_jvp, nondiff_argnums=(4,))
def _with_gradient(x, tied, extreme, count, axis_name):
    del x, tied, count, axis_name
    return extreme


@_with_gradient.defjvp
def _with_gradient_jvp(axis_name, primals, tangents):
    _, tied, extreme, count = primals
    dextreme = lax.psum(jnp.sum(jnp.where(tied, tangents[0], 0), 1), axis_name)
    return extreme, (dextreme / jnp.maximum(count, 1)).astype(extreme.dtype)


def _max(x, mask, least):
    x = flatten_batch(x)
    tiled_, plain_ = (functools.partial(function, least=least) for function in (_max_tiles, plain))
    return by_platform(with_rules(tiled_, plain_), plain_, tiling_of(x, mask), x, mask)


def _max_tiles(x, mask, *, tiling, least):
    def body(tile, tokens, state, arrays):
        real = tile.counted(tile.masked(jnp.ones(tokens.shape[:2], bool), False), False)
        tokens = jnp.where(real[..., None], signed(tokens, least), -jnp.inf)
        extreme = jnp.maximum(state.extreme, max_along_axis(tokens, 1))
        tied = jnp.sum(real[..., None] & (tokens == extreme[:, None]), 1, dtype=jnp.int32)
        count = jnp.where(state.extreme == extreme, state.count, 0) + tied
        return ExtremeState(extreme, count, state.some | jnp.any(real, 1)), arrays

    count = jnp.zeros((tiling.rows, x.shape[2]), jnp.int32)
    state = ExtremeState(jnp.full(count.shape, -jnp.inf, x.dtype), count, jnp.zeros(tiling.rows, bool))
    return _merged(tiling.over_tiles(body, x, mask, state)[0])


def _merged(states):
    """Merges states with fields [B, parts, ...]."""
    # keeps NaN, unlike the maximum over a mesh, so counts can stay integers
    extreme = max_along_axis(states.extreme, 1)
    count = jnp.sum(jnp.where(states.extreme == extreme[:, None], states.count, 0), 1, dtype=jnp.int32)
    return ExtremeState(extreme, count, jnp.any(states.some, 1))


def _max_fwd(x, mask, least):
    state = _max(x, mask, least)
    return state, (x, mask, state)


def _max_bwd(least, residuals, cotangents):
    x, mask, state = residuals
    shape, x = x.shape, flatten_batch(x)
    dextreme = cotangents.extreme  # the other fields are integers
    share = dextreme / jnp.maximum(state.count, 1).astype(dextreme.dtype)
    tied = signed(x, least) == state.extreme[:, None]
    if mask is not None:
        tied = tied & mask[..., None]
    dx = jnp.where(tied, signed(share, least)[:, None], 0)
    if x.shape[0] == 1:
        dx = jnp.sum(dx, 0, keepdims=True)
    return jnp.reshape(dx.astype(x.dtype), shape), None


tiled = reverse_rule(_max, _max_fwd, _max_bwd, nondiff_argnums=(2,))
"""Computes :func:`plain`, on CPUs one tile in the cache at a time; the gradient reads x once more."""
