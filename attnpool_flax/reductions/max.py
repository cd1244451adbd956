"""The extreme reduction: the largest value of each feature, and how many tokens reach it."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.remat import saveable
from attnpool_flax.numerics.rounding import largest
from attnpool_flax.reductions import tiling
from attnpool_flax.reductions.rules import reverse_rule


class ExtremeState(NamedTuple):
    """State of a maximum over tokens.

    Attributes:
      extreme: [B, d], the largest values; -inf for a fully masked row.
      count: [B, d]: the number of real tokens that reach it and share its gradient. int32, over a mesh float32.
      some: [B], whether any token was real.
    """

    extreme: Any
    count: Any
    some: Any


def finalize(state):
    """Returns the largest values [B, d]; 0 for a fully masked row."""
    return jnp.where(state.some[:, None], state.extreme, 0)


def signed(x, least):
    """Returns tokens, or their negatives for a minimum; negated where they are read, without a copy."""
    return -x if least else x


def plain(x, mask, least):
    """Computes the state of tokens [..., L, d] and a mask [B, L] or None by whole arrays; differentiable in every mode.

    With ``least`` it is that of -x.
    """
    x = signed(tiling.flat(x), least)
    real = jnp.ones(x.shape[:2], bool) if mask is None else mask
    x = jnp.where(real[..., None], x, -jnp.inf)
    top = saveable(jnp.max(lax.stop_gradient(x), 1, keepdims=True, initial=-jnp.inf))
    tied = real[..., None] & (x == top)
    return ExtremeState(largest(x, tied, 1), jnp.sum(tied, 1, dtype=jnp.int32), jnp.any(real, 1))


def reached(x, mask, state, axis_name):
    """Returns the maxima [B, d] of all devices; their gradient goes to this device's tokens that reach them."""
    real = jnp.ones(x.shape[:2], bool) if mask is None else mask
    tied = real[..., None] & (lax.stop_gradient(x) == state.extreme[:, None])
    return _reached(x, tied, state.extreme, state.count, axis_name)


@functools.partial(jax.custom_jvp, nondiff_argnums=(4,))
def _reached(x, tied, extreme, count, axis_name):
    del x, tied, count, axis_name
    return extreme


@_reached.defjvp
def _reached_jvp(axis_name, primals, tangents):
    _, tied, extreme, count = primals
    slopes = lax.psum(jnp.sum(jnp.where(tied, tangents[0], 0), 1), axis_name)
    return extreme, (slopes / jnp.maximum(count, 1)).astype(extreme.dtype)


def _state(x, mask, least):
    x = tiling.flat(x)
    by_tiles, whole = (functools.partial(function, least=least) for function in (_state_tiles, _state_plain))
    return tiling.walk(by_tiles, whole, tiling.plan_for(x, mask), x, mask)


def _state_plain(x, mask, *, least):
    real = jnp.ones((x.shape[0], x.shape[1]), bool) if mask is None else mask
    return _of(signed(x, least), real)


def _of(x, real):
    """Computes the state of tokens [rows, size, d] of which some are real."""
    kept = jnp.where(real[..., None], x, -jnp.inf)
    top = jnp.max(lax.stop_gradient(kept), 1, keepdims=True, initial=-jnp.inf)
    tied = real[..., None] & (kept == top)
    return ExtremeState(largest(kept, tied, 1), jnp.sum(tied, 1, dtype=jnp.int32), jnp.any(real, 1))


def _state_tiles(x, mask, *, plan, least):
    def of_tile(trip, plan):
        keep = jnp.broadcast_to(tiling.new(plan, trip), (plan.rows, plan.taken))
        keep = keep if mask is None else keep & tiling.cut(mask, plan, trip)
        return (), _of(signed(tiling.cut(x, plan, trip), least), keep)

    def part(trip):
        return tiling.shortest(functools.partial(of_tile, trip), mask, plan, trip)[1]

    state = lax.map(part, jnp.arange(plan.trips))
    tops, counts, some = (tiling.joined_rows(value, plan) for value in state)
    top = jnp.max(tops, 1)
    count = jnp.sum(jnp.where(tops == top[:, None], counts, 0), 1, dtype=jnp.int32)
    return ExtremeState(top, count, jnp.any(some, 1))


def _keep(x, mask, least):
    state = _state(x, mask, least)
    return state, (x, mask, state)


def _backward(least, kept, cotangents):
    x, mask, state = kept
    shape, x = x.shape, tiling.flat(x)
    of_top = cotangents.extreme  # the others are integers
    share = of_top / jnp.maximum(state.count, 1).astype(of_top.dtype)
    reaches = signed(x, least) == state.extreme[:, None]
    if mask is not None:
        reaches = reaches & mask[..., None]
    of_x = jnp.where(reaches, signed(share, least)[:, None], 0)
    if x.shape[0] == 1:
        of_x = jnp.sum(of_x, 0, keepdims=True)
    return jnp.reshape(of_x.astype(x.dtype), shape), None


@reverse_rule(_keep, _backward, nondiff_argnums=(2,))
def tiled(x, mask, least):
    """Computes :func:`plain`, a tile in the cache at a time; the gradient reads x once more, as it is written."""
    return _state(x, mask, least)
