"""Online softmax of packed tokens: :mod:`attnpool_flax.reductions.softmax` with segments in place of examples.

Scores and unnormalized weights have one number for each token and query. On CPUs and GPUs both exist as whole arrays,
and the maximum and the denominator are segment reductions of them. On TPUs only the scores do:
:mod:`attnpool_flax.reductions.packed.chunks` updates the sums chunk by chunk. On CPUs x is read twice: for the scores,
by tiles or in one product (:func:`_scores_by_tiles`), and for the numerator, by tiles. On GPUs it is read twice by
:class:`Slots`. N are the tokens, h queries, d features, count segments.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.products import products, raw_products
from attnpool_flax.numerics.softmax import exponential
from attnpool_flax.numerics.sums import LONGEST
from attnpool_flax.reductions.dispatch import by_platform
from attnpool_flax.reductions.packed import chunks as packed_chunks
from attnpool_flax.reductions.packed.segments import Segments, at, consecutive_slots, segments_of
from attnpool_flax.reductions.packed.sums import (
    add_tile,
    outer,
    plain_products,
    plain_sums,
    products_by_tiles,
    products_of_rows,
    sums_by_tiles,
    tiling_of,
    zero_padded_tile,
    zeros,
)
from attnpool_flax.reductions.rules import reverse_rule
from attnpool_flax.reductions.softmax import OnlineSoftmax


def plain(x, segments, has_query, queries, multiplier, bias, precision):
    """Computes scores and each segment's ``OnlineSoftmax`` by whole arrays; differentiable in forward and reverse mode.

    Args:
      x: [N, d] tokens, in any floating dtype.
      segments: their :class:`~attnpool_flax.reductions.packed.segments.Segments`.
      has_query: bool [count], or None: all scores of a segment without a query are 0, whatever the tokens hold.
      queries: [1, h, d] or [count, h, d] in the computing dtype (float32 or float64), multiplied by the scale.
      multiplier: [N, h] of the unnormalized weights in the numerator (dropout), or None.
      bias: [N, h], added to the scores, or None.
      precision: of the products.

    Returns:
      (scores [N, h], :class:`~attnpool_flax.reductions.softmax.OnlineSoftmax` of the segments).
    """
    scores = plain_scores(x, segments, queries, precision)
    sums = functools.partial(plain_sums, x, segments)
    return state_of_products(scores, segments, sums, has_query, multiplier, bias)


def plain_scores(x, segments, queries, precision):
    """Multiplies tokens [N, d] with queries [1, h, d], or with the queries [count, h, d] of their segments: [N, h].

    Scores at padding are 0.
    """
    if queries.shape[0] != 1:
        return plain_products(x, segments, queries)
    x = jnp.where(segments.real[:, None], x.astype(queries.dtype), 0)
    return jnp.dot(x, queries[0].T, precision=precision)


def state_of_products(scores, segments, weighted_sums, has_query=None, multiplier=None, bias=None):
    """Returns (scores [N, h], -inf at padding; the segments' ``OnlineSoftmax``) from products [N, h], without the bias.

    ``weighted_sums`` maps the applied weights [N, h] to the sums [count, h, d] of the tokens under them. Other arguments
    are as in :func:`plain`.
    """
    if bias is not None:
        scores = scores + jnp.where(segments.real[:, None], bias, 0)
    if has_query is not None:
        scores = jnp.where(segments.expand_to_tokens(has_query)[:, None], scores, 0)
    scores = jnp.where(segments.real[:, None], scores, -jnp.inf)
    max_score = segments.max(lax.stop_gradient(scores))
    exp_scores = exponential(scores, segments.expand_to_tokens(max_score))
    applied = _multiplied(exp_scores, segments, multiplier)
    return scores, OnlineSoftmax(max_score, segments.sum(exp_scores), weighted_sums(applied))


def _multiplied(exp_scores, segments, multiplier):
    return exp_scores if multiplier is None else exp_scores * jnp.where(segments.real[:, None], multiplier, 0)


def _softmax(x, segments, has_query, queries, multiplier, bias, precision):
    kernels = _softmax_tiles, plain, _softmax_whole
    tiled_, plain_, whole = (functools.partial(kernel, precision=precision) for kernel in kernels)
    tiling = tiling_of(x, queries.shape[1])
    return by_platform(tiled_, plain_, tiling, x, segments, has_query, queries, multiplier, bias, whole=whole)


def _softmax_tiles(x, segments, has_query, queries, multiplier, bias, *, tiling, precision):
    scores = _scores_by_tiles(x, segments, queries, tiling, precision)
    sums = functools.partial(sums_by_tiles, x, segments, tiling=tiling)
    return state_of_products(scores, segments, sums, has_query, multiplier, bias)


def _scores_by_tiles(x, segments, queries, tiling, precision):
    """Returns the products [N, h] of tokens and queries by tiles, arbitrary at padding.

    Under shared queries, tokens in the queries' dtype are one product without tiles. It needs no mask, because the
    product of a token reaches no other token.
    """
    if queries.shape[0] != 1:
        return products_by_tiles(x, segments, queries, tiling=tiling)
    if x.dtype == queries.dtype:
        return raw_products(x[None], segments.real, queries, precision, False)[0]

    def tile_step(step):
        tokens = zero_padded_tile(x, segments, tiling, step).astype(queries.dtype)
        return products(tokens[None], queries, precision)[0]

    return tiling.concatenate(lax.map(tile_step, jnp.arange(tiling.steps)))


def _softmax_fwd(x, segments, has_query, queries, multiplier, bias, precision):
    scores, state = _softmax(x, segments, has_query, queries, multiplier, bias, precision)
    return (scores, state), (x, segments, has_query, queries, multiplier, bias, scores, state.max_score)


def _softmax_bwd(precision, residuals, cotangents):
    x, segments, has_query, queries, multiplier, bias, scores, max_score = residuals
    dscores_out, (_, ddenominator, dnumerator) = cotangents  # the maximum is a constant
    arrays = x, segments, has_query, queries, multiplier, scores, max_score, dscores_out, ddenominator, dnumerator
    kernels = _with_dx(_bwd_tiles), _with_dx(_bwd_plain), _bwd_whole
    tiled_, plain_, whole = (functools.partial(kernel, precision=precision) for kernel in kernels)
    tiling = tiling_of(x, queries.shape[1])
    dx, dscores, dqueries, dmultiplier = by_platform(tiled_, plain_, tiling, *arrays, whole=whole)
    return dx, None, None, dqueries, dmultiplier, None if bias is None else dscores


def _with_dx(kernel):
    """Returns a function that computes ``dx`` and the results of the kernel: (dx, dscores, dqueries, dmultiplier)."""

    def gradients(x, segments, has_query, queries, multiplier, scores, max_score, *cotangents, **options):
        exp_scores = exponential(scores, segments.expand_to_tokens(max_score))
        *_, dnumerator = cotangents
        arrays = x, segments, has_query, queries, multiplier, exp_scores, *cotangents
        dscores, dqueries, dmultiplier = kernel(*arrays, **options)
        dx = outer(x, segments, ((_multiplied(exp_scores, segments, multiplier), dnumerator), (dscores, queries)))
        return dx, dscores, dqueries, dmultiplier

    return gradients


def _bwd_plain(
    x, segments, has_query, queries, multiplier, exp_scores, dscores_out, ddenominator, dnumerator, *, precision
):
    dapplied = plain_products(x, segments, dnumerator)
    dscores, dmultiplier = _bwd_from_products(
        dapplied, segments, has_query, multiplier, exp_scores, dscores_out, ddenominator
    )
    if queries.shape[0] != 1:
        return dscores, plain_sums(x, segments, dscores), dmultiplier
    x = jnp.where(segments.real[:, None], x.astype(dscores.dtype), 0)
    return dscores, jnp.dot(dscores.T, x, precision=precision)[None], dmultiplier


def _bwd_from_products(dapplied, segments, has_query, multiplier, exp_scores, dscores_out, ddenominator):
    """Returns (dscores, dmultiplier or None) [N, h] from the products of the tokens with ``dnumerator``."""
    dexp = _multiplied(dapplied, segments, multiplier)
    keep = segments.real if has_query is None else segments.real & segments.expand_to_tokens(has_query)
    dscores = exp_scores * (dexp + segments.expand_to_tokens(ddenominator)) + dscores_out
    return jnp.where(keep[:, None], dscores, 0), None if multiplier is None else exp_scores * dapplied


def _bwd_tiles(
    x, segments, has_query, queries, multiplier, exp_scores, dscores_out, ddenominator, dnumerator, *, tiling, precision
):
    """Returns (dscores, dqueries, dmultiplier) by tiles; x is read once.

    ``dscores_out``, ``ddenominator`` and ``dnumerator`` are the cotangents of the returned scores and of the
    accumulator; :mod:`attnpool_flax.reductions.softmax` has the equations.
    """
    shared = queries.shape[0] == 1
    ddenominator = segments.expand_to_tokens(ddenominator)

    def tile_step(dqueries, step):
        tokens = zero_padded_tile(x, segments, tiling, step).astype(queries.dtype)
        ids, real = tiling.slice(segments.ids, step), tiling.slice(segments.real, step)
        keep = real if has_query is None else real & at(has_query, ids)
        dapplied, exp_tile = products_of_rows(tokens, at(dnumerator, ids)), tiling.slice(exp_scores, step)
        dexp = dapplied
        if multiplier is not None:
            dexp = dapplied * zero_padded_tile(multiplier, segments, tiling, step)
        dscores = exp_tile * (dexp + tiling.slice(ddenominator, step)) + tiling.slice(dscores_out, step)
        dscores = jnp.where(keep[:, None], dscores, 0)
        once = tiling.outside_overlap(step) & real
        if shared:
            once = jnp.where(once[:, None], dscores, 0)
            dqueries = dqueries + jnp.dot(once.T, tokens, precision=precision)
        else:
            dqueries = add_tile(dqueries, segments, tiling, step, tokens, dscores, once)
        return dqueries, (dscores, *(() if multiplier is None else (exp_tile * dapplied,)))

    shape = queries.shape[1:] if shared else (segments.sizes[0], *queries.shape[1:])
    dqueries, arrays = lax.scan(tile_step, zeros(shape, queries.dtype, x), jnp.arange(tiling.steps))
    dscores, *dmultiplier = map(tiling.concatenate, arrays)
    dqueries = dqueries[None] if shared else segments.sum_slots(dqueries)
    return dscores, dqueries, dmultiplier[0] if dmultiplier else None


# --------------------------------------------------------------------------------------------------------------
# Accelerators: no copy of narrow tokens, and no scatter of sorted tokens


def _softmax_whole(x, segments, has_query, queries, multiplier, bias, *, precision, on_gpus):
    """Computes :func:`plain` on accelerators from tokens in their own dtype: by slots on GPUs, by chunks on TPUs."""
    if not on_gpus:
        return packed_chunks.softmax(x, segments, has_query, queries, multiplier, bias, precision=precision)
    tokens = slots_of(x, segments)
    scores = tokens.products(queries, precision)
    return state_of_products(scores, segments, tokens.sums, has_query, multiplier, bias)


def _bwd_whole(x, segments, has_query, queries, multiplier, scores, max_score, *cotangents, precision, on_gpus):
    """Returns (dx, dscores, dqueries, dmultiplier) on accelerators, by slots on GPUs and by chunks on TPUs."""
    if not on_gpus:
        arrays = x, segments, has_query, queries, multiplier, scores, max_score, cotangents
        return packed_chunks.gradients(*arrays, precision=precision)
    dscores_out, ddenominator, dnumerator = cotangents
    tokens = slots_of(x, segments)
    exp_scores = jnp.where(segments.real[:, None], exponential(scores, segments.expand_to_tokens(max_score)), 0)
    dapplied = jnp.where(segments.real[:, None], tokens.products(dnumerator, precision), 0)
    dscores, dmultiplier = _bwd_from_products(
        dapplied, segments, has_query, multiplier, exp_scores, dscores_out, ddenominator
    )
    dqueries = tokens.sums(dscores)
    if queries.shape[0] == 1:
        dqueries = jnp.sum(dqueries, 0, keepdims=True)
    dx = outer(x, segments, ((_multiplied(exp_scores, segments, multiplier), dnumerator), (dscores, queries)))
    return dx, dscores, dqueries, dmultiplier


tiled = reverse_rule(_softmax, _softmax_fwd, _softmax_bwd, nondiff_argnums=(6,))
"""Computes :func:`plain` by the platform's kernel, with its own gradient rule.

On CPUs and TPUs the rule reads x once more, on GPUs twice. It writes ``dx`` once.
"""


# --------------------------------------------------------------------------------------------------------------
# GPUs: slots of consecutive tokens of one segment

LEAST = 128
"""The smallest :attr:`Slots.size`; the largest is LONGEST, up to which a plain sum does not drift."""


class Slots(NamedTuple):
    """Tokens, divided into slots of one segment each, in the order of their segments.

    Tokens of a slot are gathered, multiplied and summed in one kernel. A slot never has tokens of two segments, so NaN
    stays in its own segment. For unsorted tokens the gather reads through ``order``.

    Attributes:
      x: [N, d], in any floating dtype, in the caller's order.
      segments: the segments of the tokens.
      order: [N], for each place in the order of the segments, the index of its token; None if the tokens are sorted.
      start: [slots], the place of a slot's first token in that order.
      end: [slots], the place behind the last token of the slot's segment.
      owner: [slots], the segment of a slot.
      size: the largest number of tokens of a slot.
    """

    x: Any
    segments: Segments
    order: Any
    start: Any
    end: Any
    owner: Any
    size: int

    def products(self, rows, precision):
        """Multiplies each token with h rows: those of all segments, [1, h, d], or of its own, [count, h, d]: [N, h].

        At padding, products with [1, h, d] are arbitrary, and products with [count, h, d] are 0.
        """
        if rows.shape[0] == 1:
            return raw_products(self.x[None], self.segments.real, rows, precision, True)[0]
        tokens = jnp.where(self.segments.real[:, None], self.x.astype(rows.dtype), 0)
        return jnp.sum(tokens[:, None] * self.segments.expand_to_tokens(rows), 2)

    def sums(self, weights):
        """Sums the real tokens of each segment under weights [N, h]: [count, h, d]."""
        number, heads = self.start.shape[0], weights.shape[1]
        # XLA would copy gathered tokens that several heads use; behind the barrier each head gathers its own, from the cache
        start = lax.optimization_barrier(jnp.broadcast_to(self.start[:, None], (number, heads)))
        place = start[:, :, None] + lax.iota(jnp.int32, self.size)[None, None]
        keep = place < self.end[:, None, None]
        place = jnp.minimum(place, self.x.shape[0] - 1)
        place = place if self.order is None else at(self.order, place)
        keep = keep & at(self.segments.real, place)
        own = at(jnp.reshape(weights, -1), place * heads + lax.iota(jnp.int32, heads)[None, :, None])
        tokens = jnp.where(keep[..., None], at(self.x, place).astype(weights.dtype), 0)
        parts = jnp.sum(jnp.where(keep, own, 0)[..., None] * tokens, 2)
        if self.x.shape[0] // self.size <= LONGEST:  # a segment has few slots
            return jax.ops.segment_sum(parts, self.owner, self.segments.count)
        return segments_of(self.owner, None, self.segments.count, False).sum(parts)


def slots_of(x, segments):
    """Returns the :class:`Slots` of at least one token [N, d]."""
    length, count = x.shape[0], segments.count
    order = None if segments.ordered else jnp.argsort(segments.ids)
    size = max(LEAST, min(LONGEST, length // count // 2))
    tokens = jax.ops.segment_sum(jnp.ones_like(segments.ids), segments.ids, count)
    _, owner, start, end = consecutive_slots(tokens, size, length // size + count)
    return Slots(x, segments, order, start, end, owner, size)
