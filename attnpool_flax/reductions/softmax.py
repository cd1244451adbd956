"""Online softmax: max, denominator and numerator in one pass over the tokens (Milakov and Gimelshein 2018)."""

import functools
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.remat import saveable
from attnpool_flax.reductions import tiling
from attnpool_flax.reductions.rules import reverse_rule
from attnpool_flax.reductions.sums import products, products_of_tile, summed, sums_of_tile, weighted


class SoftmaxState(NamedTuple):
    """State of an online softmax: max score, denominator and numerator, before the division.

    Attributes:
      top: [B, h], the largest score, treated as a constant in the gradient because it cancels.
      total: [B, h], the denominator: the sum of exp(score - top).
      sum: [B, h, d], the numerator: the sum of exp(score - top) times the token.
    """

    top: Any
    total: Any
    sum: Any


def finalize(state):
    """Divides numerator by denominator: pooled vectors [B, h, d]; 0 for a fully masked row."""
    return state.sum / jnp.where(state.total == 0, 1, state.total)[..., None]


def with_shares(state, scores, mask, multiplier):
    """Appends a feature that is 1 for every token: its sum is the sum of the applied weights."""
    total = state.total
    if multiplier is not None:
        total = jnp.sum(exponential(scores, state.top[:, None]) * _dropped(multiplier, mask), 1)
    return SoftmaxState(state.top, state.total, jnp.concatenate([state.sum, total[..., None]], -1))


def under(scores, mask, totals):
    """Returns (scores [B, L, h] with -inf at padding, state); ``totals`` sums the tokens under weights [B, L, h]."""
    if mask is not None:
        scores = jnp.where(mask[..., None], scores, -jnp.inf)
    top = saveable(lax.stop_gradient(jnp.max(scores, 1, initial=-jnp.inf)))
    unnormalized = exponential(scores, top[:, None])
    return scores, SoftmaxState(top, summed(unnormalized), totals(unnormalized))


def weights_of(scores, state):
    """Returns the weights [B, L, h] of scores [B, L, h], which are -inf at padding."""
    weights = exponential(scores, state.top[:, None]) / jnp.where(state.total == 0, 1, state.total)[:, None]
    return jnp.where(scores == -jnp.inf, 0, weights)  # a real NaN stays out of the padding


def _scored(scores, scored):
    return scores if scored is None else jnp.where(scored[:, None, None], scores, 0)


def exponential(scores, top):
    """Computes exp(score - top); 0 for -inf, whatever the top."""
    return jnp.exp(scores - jnp.where(top == -jnp.inf, 0, top))


def plain(x, mask, scored, queries, multiplier, bias, precision):
    """Returns scores and state by whole products; differentiable in every mode.

    Args:
      x: [..., L, d] tokens, in any floating dtype; B in all, or 1.
      mask: bool [B, L], or None.
      scored: bool [B or 1], or None: examples whose scores are not all 0, whatever the tokens hold.
      queries: [B or 1, h, d] in the computing dtype.
      multiplier: [B, L, h] of the weights that the sum takes, or None.
      bias: [B, L, h], added to the scores, or None.
      precision: of the products.

    Returns:
      (scores [B, L, h], :class:`SoftmaxState`).
    """
    x = tiling.flat(x).astype(queries.dtype)
    if mask is not None:
        x = jnp.where(mask[..., None], x, 0)
    scores = saveable(_scored(products(x, queries, precision), scored))
    if bias is not None:
        scores = scores + _dropped(bias, mask)
    if mask is not None:
        scores = jnp.where(mask[..., None], scores, -jnp.inf)
    top = lax.stop_gradient(jnp.max(scores, 1, initial=-jnp.inf))
    unnormalized = exponential(scores, top[:, None])
    taken = unnormalized if multiplier is None else unnormalized * _dropped(multiplier, mask)
    sums = weighted(jnp.swapaxes(taken, 1, 2), x, precision)
    return scores, SoftmaxState(top, jnp.sum(unnormalized, 1), sums)


def _dropped(multiplier, mask):
    return multiplier if mask is None else jnp.where(mask[..., None], multiplier, 0)


def _forward(x, mask, scored, queries, multiplier, bias, precision):
    x = tiling.flat(x)
    by_tiles, whole = (functools.partial(function, precision=precision) for function in (_forward_tiles, plain))
    return tiling.walk(by_tiles, whole, tiling.plan_for(x, mask, queries), x, mask, scored, queries, multiplier, bias)


def _forward_tiles(x, mask, scored, queries, multiplier, bias, *, plan, precision):
    def of_tile(trip, plan):
        tokens, keep = tiling.tile(x, mask, plan, trip, queries.dtype)
        scores = products_of_tile(tokens, tiling.of_rows(queries, plan, trip), precision)
        if scored is not None:
            scores = _scored(scores, tiling.of_rows(scored, plan, trip))
        if bias is not None:
            scores = scores + tiling.cut(bias, plan, trip)
        scores = jnp.where(keep[..., None], scores, -jnp.inf)
        top = lax.stop_gradient(jnp.max(scores, 1))
        unnormalized = exponential(scores, top[:, None])
        taken = unnormalized
        if multiplier is not None:
            taken = unnormalized * jnp.where(keep[..., None], tiling.cut(multiplier, plan, trip), 0)
        return (scores,), (top, jnp.sum(unnormalized, 1), sums_of_tile(taken, tokens, precision))

    def part(trip):
        return tiling.shortest(functools.partial(of_tile, trip), mask, plan, trip, (-jnp.inf,))

    (scores,), state = lax.map(part, jnp.arange(plan.trips))
    top, total, sums = (tiling.joined_rows(value, plan) for value in state)
    state = _merged(top, total, sums)
    return tiling.joined(scores, plan), state


def _merged(tops, totals, sums):
    """Merges the states of parts [B, parts, ...]."""
    top = jnp.max(tops, 1)
    scale = exponential(tops, top[:, None])
    return SoftmaxState(top, summed(totals * scale), summed(sums * scale[..., None]))


def _keep(x, mask, scored, queries, multiplier, bias, precision):
    scores, state = _forward(x, mask, scored, queries, multiplier, bias, precision)
    return (scores, state), (x, mask, scored, queries, multiplier, bias, scores, state.top)


def _backward(precision, kept, cotangents):
    x, mask, scored, queries, multiplier, bias, scores, top = kept
    shape, x = x.shape, tiling.flat(x)
    in_scores, (_, in_total, in_sum) = cotangents  # the top is a constant
    arrays = (x, mask, queries, multiplier, exponential(scores, top[:, None]), in_scores, in_total, in_sum)
    by_tiles, whole = (functools.partial(function, precision=precision) for function in (_slopes_tiles, _slopes_plain))
    found = tiling.walk(by_tiles, whole, tiling.plan_for(x, mask, queries), *arrays)
    of_scores, of_queries, of_multiplier = found
    of_bias = None if bias is None else of_scores
    of_scores = _scored(of_scores, scored)
    unnormalized = arrays[4]
    taken = unnormalized if multiplier is None else unnormalized * _dropped(multiplier, mask)
    of_x = _token_slopes(taken, of_scores, in_sum, queries, x, precision).astype(x.dtype)
    return jnp.reshape(of_x, shape), None, None, of_queries, of_multiplier, of_bias


def _slopes_tiles(x, mask, queries, multiplier, unnormalized, in_scores, in_total, in_sum, *, plan, precision):
    """Returns gradients of the scores, the queries and the multiplier; x is read once."""
    shared = queries.shape[0] == 1

    def of_tile(trip, plan):
        tokens, keep = tiling.tile(x, mask, plan, trip, queries.dtype)
        reached = products_of_tile(tokens, tiling.of_rows(in_sum, plan, trip), precision)
        exponential = tiling.cut(unnormalized, plan, trip)
        taken = reached
        if multiplier is not None:
            taken = reached * jnp.where(keep[..., None], tiling.cut(multiplier, plan, trip), 0)
        slope = exponential * (taken + tiling.of_rows(in_total, plan, trip)[:, None]) + tiling.cut(
            in_scores, plan, trip
        )
        slope = jnp.where(keep[..., None], slope, 0)
        kept = slope, *(() if multiplier is None else (jnp.where(keep[..., None], exponential * reached, 0),))
        if not shared:
            return kept, sums_of_tile(slope, tokens, precision)
        counted = slope if plan.rows == 1 else jnp.where(tiling.new_rows(plan, trip)[:, None, None], slope, 0)
        rows, size, width = tokens.shape
        flat = jnp.reshape(counted, (1, rows * size, -1)), jnp.reshape(tokens, (1, rows * size, width))
        return kept, sums_of_tile(*flat, precision)

    def part(carry, trip):
        fills = (0,) * (1 if multiplier is None else 2)
        kept, of_queries = tiling.shortest(functools.partial(of_tile, trip), mask, plan, trip, fills)
        return (carry + of_queries, kept) if shared else (carry, (kept, of_queries))

    if shared:
        of_queries, kept = lax.scan(part, _zero_like(queries, x), jnp.arange(plan.trips))
    else:
        _, (kept, of_queries) = lax.scan(part, (), jnp.arange(plan.trips))
        of_queries = summed(tiling.joined_rows(of_queries, plan))
    of_scores, *of_multiplier = (tiling.joined(value, plan) for value in kept)
    return of_scores, of_queries, of_multiplier[0] if of_multiplier else None


def _zero_like(queries, x):
    """Returns 0 of the queries' shape, with the varying manual axes of the tokens."""
    return jnp.zeros_like(queries) + jnp.zeros_like(x[:1, :1, :1], queries.dtype)


def _slopes_plain(x, mask, queries, multiplier, unnormalized, in_scores, in_total, in_sum, *, precision):
    x = x.astype(queries.dtype)
    if mask is not None:
        x = jnp.where(mask[..., None], x, 0)
    reached = products(x, in_sum, precision)
    taken = reached if multiplier is None else reached * _dropped(multiplier, mask)
    slope = unnormalized * (taken + in_total[:, None]) + in_scores
    if mask is not None:
        slope = jnp.where(mask[..., None], slope, 0)
    of_queries = weighted(jnp.swapaxes(slope, 1, 2), x, precision)
    if queries.shape[0] == 1:
        of_queries = jnp.sum(of_queries, 0, keepdims=True)
    return slope, of_queries, None if multiplier is None else unnormalized * reached


def _token_slopes(taken, of_scores, in_sum, queries, x, precision):
    """Computes ``dx``, written once: the gradient through the numerator plus the gradient through the scores."""
    if x.shape[0] == 1 and taken.shape[0] != 1:  # shared by the examples
        queries = jnp.broadcast_to(queries, in_sum.shape)
        both = jnp.concatenate([taken, of_scores], -1), jnp.concatenate([in_sum, queries], 1)
        return jnp.einsum("blh,bhd->ld", *both, precision=precision)[None]
    if taken.shape[2] == 1:
        return taken * in_sum + of_scores * queries
    queries = jnp.broadcast_to(queries, in_sum.shape)
    both = jnp.concatenate([taken, of_scores], -1), jnp.concatenate([in_sum, queries], 1)
    return jnp.einsum("blh,bhd->bld", *both, precision=precision)


@reverse_rule(_keep, _backward, nondiff_argnums=(6,))
def tiled(x, mask, scored, queries, multiplier, bias, precision):
    """Computes :func:`plain`, a tile in the cache at a time; the gradient reads x once more and writes ``dx`` once."""
    return _forward(x, mask, scored, queries, multiplier, bias, precision)
