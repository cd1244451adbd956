"""Online softmax: max, denominator and numerator in one pass over the tokens (Milakov and Gimelshein 2018).

For scores s_l = x_l . q of tokens x_l and a query q the accumulator is

    max_score   = max_l s_l
    denominator = sum_l exp(s_l - max_score)
    numerator   = sum_l exp(s_l - max_score) x_l

and the pooled vector is numerator / denominator. Accumulators of tiles, devices and chunks are merged by rescaling both
sums to the common maximum, as in FlashAttention (Dao et al. 2022). Unlike FlashAttention, the backward pass does not
recompute the scores [B, L, h]: they are saved, and returned, because the weights are computed from them. The backward
pass gets three cotangents: ``ddenominator`` and ``dnumerator`` of the accumulator, and ``dscores_out`` of the returned
scores. It computes

    dscores  = exp(s - max_score) (x . dnumerator + ddenominator) + dscores_out
    dqueries = sum_l dscores_l x_l
    dx_l     = exp(s_l - max_score) dnumerator + dscores_l q

A dropout multiplier multiplies exp(s_l - max_score) in the numerator and its gradients; the product is named
``applied``. A bias is added to the scores, and masked scores are -inf. The maximum is a constant in the gradient,
because it cancels. B are the examples, L tokens, h queries, d features.

:func:`plain` computes whole products, which JAX differentiates in forward and reverse mode. :func:`tiled` has the
gradient above: on CPUs it loops over tiles of masked tokens, and on accelerators it computes whole products of the
tokens in their own dtype.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.elementwise import keep_real
from attnpool_flax.numerics.products import factor_precision, products, raw_products, token_sums
from attnpool_flax.numerics.remat import saveable
from attnpool_flax.numerics.softmax import exponential
from attnpool_flax.numerics.sums import summed, weighted
from attnpool_flax.reductions.dispatch import by_platform
from attnpool_flax.reductions.loops.tiling import flatten_batch, tiling_of, with_rules
from attnpool_flax.reductions.rules import reverse_rule
from attnpool_flax.reductions.sums import products_of_tile, sums_of_tile


class OnlineSoftmax(NamedTuple):
    """Accumulator of a softmax average, before the division. Each sum may be a pair (value, compensation).

    Attributes:
      max_score: [B, h], the largest score; -inf for a fully masked row.
      denominator: [B, h], the sum of exp(score - max_score); None if the weights are not normalized.
      numerator: [B, h, d], the sum of exp(score - max_score) times the token.
    """

    max_score: Any
    denominator: Any
    numerator: Any

    def common(self):
        """Returns this part's maximum, a constant in the gradient; merging rescales the sums to the largest one."""
        return lax.stop_gradient(self.max_score)

    def rescaled(self, max_score):
        """Returns (denominator, numerator), rescaled to a common maximum."""
        scale = exponential(self.common(), max_score)
        return _times(self.denominator, scale), _times(self.numerator, scale[..., None])

    def added(self, max_score, sums):
        """Returns the accumulator of all parts from their maximum and the sums over parts of :meth:`rescaled`."""
        return OnlineSoftmax(max_score, *sums)

    @property
    def batch_rank(self):
        """The number of batch axes."""
        return 1

    def finalize(self):
        """Divides numerator by denominator: pooled vectors [B, h, d]; 0 for a fully masked row."""
        return self.numerator / jnp.where(self.denominator == 0, 1, self.denominator)[..., None]


def _times(sums, scale):
    return jax.tree.map(lambda array: array * scale, sums)


def weights_of(scores, state):
    """Returns the weights [B, L, h] of scores [B, L, h], which must be -inf at padding."""
    denominator = jnp.where(state.denominator == 0, 1, state.denominator)[:, None]
    weights = exponential(scores, state.max_score[:, None]) / denominator
    return jnp.where(scores == -jnp.inf, 0, weights)  # NaN of a real token must not reach padding


def weight_sums(state):
    """Returns the sums [B, h] of the softmax weights: 1, or 0 for a fully masked row; constants in the gradient."""
    denominator = lax.stop_gradient(state.denominator)
    return denominator / jnp.where(denominator == 0, 1, denominator)


def state_of_scores(scores, mask, weighted_sums):
    """Returns (scores with -inf at padding, :class:`OnlineSoftmax`) of given scores [B, L, h], which include a bias.

    There is no multiplier, unlike in :func:`_state_of_products`, and the maximum is saved. ``weighted_sums`` maps unnormalized weights [B, L, h] to the sums [B, h, d] of the tokens under them.
    """
    if mask is not None:
        scores = jnp.where(mask[..., None], scores, -jnp.inf)
    max_score = saveable(lax.stop_gradient(jnp.max(scores, 1, initial=-jnp.inf)))
    exp_scores = exponential(scores, max_score[:, None])
    return scores, OnlineSoftmax(max_score, summed(exp_scores), weighted_sums(exp_scores))


def with_weight_sums(state, scores, mask, multiplier):
    """Appends to the numerator the sum of the applied weights, as if each token had one more feature, which is 1.

    Applied weights are exp(score - max_score), times the multiplier [B, L, h] if there is one.
    """
    weight_sum = state.denominator
    if multiplier is not None:
        exp_scores = exponential(scores, state.max_score[:, None])
        weight_sum = jnp.sum(exp_scores * keep_real(multiplier, mask), 1)
    return state._replace(numerator=jnp.concatenate([state.numerator, weight_sum[..., None]], -1))


# --------------------------------------------------------------------------------------------------------------
# Whole products


def plain(x, mask, has_query, queries, multiplier, bias, precision):
    """Computes scores and ``OnlineSoftmax`` with whole matrix products; differentiable in forward and reverse mode.

    Args:
      x: [..., L, d] tokens, in any floating dtype. The batch axes have B elements in all, or 1.
      mask: bool [B, L], or None.
      has_query: bool [B or 1], or None: all products of an example without a query are 0, whatever the tokens hold.
      queries: [B or 1, h, d] in the computing dtype (float32 or float64), multiplied by the scale.
      multiplier: [B, L, h] of the unnormalized weights in the numerator (dropout), or None.
      bias: [B, L, h], added to the scores, or None.
      precision: of the products.

    Returns:
      (scores [B, L, h], :class:`OnlineSoftmax`).
    """
    x = flatten_batch(x).astype(queries.dtype)
    scores = saveable(_zero_without_query(raw_products(x, mask, queries, precision, False), has_query))
    weighted_sums = functools.partial(_weighted_by_heads, keep_real(x, mask), precision)
    return _state_of_products(scores, mask, multiplier, bias, weighted_sums)


def _weighted_by_heads(x, precision, weights):
    return weighted(jnp.swapaxes(weights, 1, 2), x, precision)


def _state_of_products(scores, mask, multiplier, bias, weighted_sums):
    """Returns (scores, :class:`OnlineSoftmax`) from the products [B, L, h] of tokens and queries, without their bias.

    The backward pass saves the products and recomputes their maximum. ``weighted_sums`` is as in
    :func:`state_of_scores`.
    """
    if bias is not None:
        scores = scores + keep_real(bias, mask)
    if mask is not None:
        scores = jnp.where(mask[..., None], scores, -jnp.inf)
    max_score = lax.stop_gradient(jnp.max(scores, 1, initial=-jnp.inf))
    exp_scores = exponential(scores, max_score[:, None])
    applied = exp_scores if multiplier is None else exp_scores * keep_real(multiplier, mask)
    return scores, OnlineSoftmax(max_score, jnp.sum(exp_scores, 1), weighted_sums(applied))


def _zero_without_query(scores, has_query):
    return scores if has_query is None else jnp.where(has_query[:, None, None], scores, 0)


# --------------------------------------------------------------------------------------------------------------
# Accelerators: the forward pass reads x twice, the backward pass twice more, and no float32 copy of narrow tokens is written


def _online_softmax_whole(x, mask, has_query, queries, multiplier, bias, *, precision, on_gpus):
    """Computes :func:`plain` on accelerators from the tokens in their own dtype.

    Scores of unmasked tokens are masked afterwards, because a masked copy of the tokens would cost memory. In the
    weighted sum padding is replaced in the tokens, of which XLA writes a copy only on GPUs, for several queries.
    """
    scores = _zero_without_query(raw_products(x, mask, queries, precision, on_gpus), has_query)

    def weighted_sums(weights):
        return token_sums(weights, x, mask, precision, on_gpus)

    return _state_of_products(scores, mask, multiplier, bias, weighted_sums)


def _bwd_whole(x, mask, queries, *arrays, precision, on_gpus):
    """Computes :func:`_bwd_tiles` on accelerators, by whole products of the tokens in their own dtype."""
    *_, dnumerator = arrays
    dapplied = raw_products(x, mask, dnumerator, precision, on_gpus)

    def weighted_sums(weights):
        return token_sums(weights, x, mask, precision, on_gpus)

    dscores, dqueries, dmultiplier = _bwd_from_products(weighted_sums, dapplied, mask, queries, *arrays)
    return dscores, dqueries, None if dmultiplier is None else keep_real(dmultiplier, mask)


# --------------------------------------------------------------------------------------------------------------
# Tiles: the forward pass reads x once


def _online_softmax(x, mask, has_query, queries, multiplier, bias, precision):
    x = flatten_batch(x)
    tiled_ = functools.partial(_online_softmax_tiles, precision=precision)
    whole = functools.partial(_online_softmax_whole, precision=precision)
    plain_ = functools.partial(plain, precision=factor_precision(precision))  # of small arrays, on every platform
    arrays = x, mask, has_query, queries, multiplier, bias
    return by_platform(with_rules(tiled_, plain_, plain_), plain_, tiling_of(x, mask, queries), *arrays, whole=whole)


def _online_softmax_tiles(x, mask, has_query, queries, multiplier, bias, *, tiling, precision):
    def body(tile, tokens, state, scores):
        tokens = tokens.astype(queries.dtype)
        own = products_of_tile(tokens, tile.slice_examples(queries), precision)
        if has_query is not None:
            own = _zero_without_query(own, tile.slice_examples(has_query))
        if bias is not None:
            own = own + tile.slice(bias)
        own = tile.masked(own, -jnp.inf)
        scores, own = tile.update(scores, own), tile.counted(own, -jnp.inf)
        max_score = jnp.maximum(state.max_score, jnp.max(own, 1))
        exp_scores = exponential(own, max_score[:, None])
        applied = exp_scores
        if multiplier is not None:
            applied = exp_scores * tile.counted(tile.masked(tile.slice(multiplier), 0), 0)
        sums = jnp.sum(exp_scores, 1), sums_of_tile(applied, tile.counted(tokens, 0), precision)
        return state.added(max_score, map(jnp.add, state.rescaled(max_score), sums)), scores

    heads, dtype = queries.shape[1], queries.dtype
    sums = jnp.zeros((tiling.rows, heads), dtype)
    state = OnlineSoftmax(sums - jnp.inf, sums, jnp.zeros((*sums.shape, queries.shape[2]), dtype))
    scores = jnp.full((tiling.batch, tiling.length, heads), -jnp.inf, dtype)
    states, scores = tiling.over_tiles(body, x, mask, state, scores)
    return scores, _merge_chains(states)


def _merge_chains(states):
    """Merges the accumulators of each example, with fields [B, chains, ...]: an :class:`OnlineSoftmax`."""
    if states.max_score.shape[1] == 1:
        return OnlineSoftmax(*(field[:, 0] for field in states))
    max_score = jnp.max(states.common(), 1)
    return states.added(max_score, map(summed, states.rescaled(max_score[:, None])))


def _softmax_fwd(x, mask, has_query, queries, multiplier, bias, precision):
    scores, state = _online_softmax(x, mask, has_query, queries, multiplier, bias, precision)
    return (scores, state), (x, mask, has_query, queries, multiplier, bias, scores, state.max_score)


# --------------------------------------------------------------------------------------------------------------
# Tiles: the backward pass reads x once more, and writes dx once


def _softmax_bwd(precision, residuals, cotangents):
    x, mask, has_query, queries, multiplier, bias, scores, max_score = residuals
    shape, x = x.shape, flatten_batch(x)
    dscores_out, (_, ddenominator, dnumerator) = cotangents  # the maximum is a constant
    exp_scores = exponential(scores, max_score[:, None])
    arrays = x, mask, queries, multiplier, exp_scores, dscores_out, ddenominator, dnumerator
    tiled_ = functools.partial(_bwd_tiles, precision=precision)
    whole = functools.partial(_bwd_whole, precision=precision)
    plain_ = functools.partial(_bwd_plain, precision=factor_precision(precision))
    kernels = with_rules(tiled_, plain_, plain_), plain_, tiling_of(x, mask, queries)
    dscores, dqueries, dmultiplier = by_platform(*kernels, *arrays, whole=whole)
    if queries.shape[0] == 1:
        dqueries = summed(dqueries, 0)[None]
    dbias = None if bias is None else dscores
    dscores = _zero_without_query(dscores, has_query)
    applied = exp_scores if multiplier is None else exp_scores * keep_real(multiplier, mask)
    dx = _dx(applied, dscores, dnumerator, queries, x, precision).astype(x.dtype)
    return jnp.reshape(dx, shape), None, None, dqueries, dmultiplier, dbias


def _bwd_tiles(x, mask, queries, multiplier, exp_scores, dscores_out, ddenominator, dnumerator, *, tiling, precision):
    """Returns (dscores, dqueries, dmultiplier) by tiles; x is read once.

    ``dscores_out``, ``ddenominator`` and ``dnumerator`` are the cotangents of the returned scores and of the
    accumulator.
    """

    def body(tile, tokens, dqueries, arrays):
        tokens = tokens.astype(queries.dtype)
        dapplied = products_of_tile(tokens, tile.slice_examples(dnumerator), precision)
        exp_tile = tile.slice(exp_scores)
        dexp = dapplied if multiplier is None else dapplied * tile.masked(tile.slice(multiplier), 0)
        dscores = exp_tile * (dexp + tile.slice_examples(ddenominator)[:, None]) + tile.slice(dscores_out)
        dscores = tile.masked(dscores, 0)
        arrays = tuple(map(tile.update, arrays, (dscores, tile.masked(exp_tile * dapplied, 0))))
        dscores, tokens = tile.counted(dscores, 0), tile.counted(tokens, 0)
        return dqueries + sums_of_tile(dscores, tokens, precision), arrays

    scores = jnp.zeros((tiling.batch, *exp_scores.shape[1:]), exp_scores.dtype)
    arrays = (scores,) * (1 if multiplier is None else 2)
    dqueries = jnp.zeros((tiling.rows, *queries.shape[1:]), queries.dtype)
    dqueries, (dscores, *dmultiplier) = tiling.over_tiles(body, x, mask, dqueries, arrays)
    return dscores, summed(dqueries), dmultiplier[0] if dmultiplier else None


def _bwd_plain(x, mask, queries, *arrays, precision):
    """Computes :func:`_bwd_tiles` with whole matrix products."""
    *_, dnumerator = arrays
    x = keep_real(x.astype(queries.dtype), mask)
    dapplied = products(x, dnumerator, precision)
    weighted_sums = functools.partial(_weighted_by_heads, x, precision)
    return _bwd_from_products(weighted_sums, dapplied, mask, queries, *arrays)


def _bwd_from_products(
    weighted_sums, dapplied, mask, queries, multiplier, exp_scores, dscores_out, ddenominator, dnumerator
):
    """Returns (dscores, dqueries, dmultiplier).

    ``dapplied`` [B, L, h] are the products of the tokens with ``dnumerator``; ``weighted_sums`` is as in
    :func:`state_of_scores`.
    """
    dexp = dapplied if multiplier is None else dapplied * keep_real(multiplier, mask)
    dscores = keep_real(exp_scores * (dexp + ddenominator[:, None]) + dscores_out, mask)
    return dscores, weighted_sums(dscores), None if multiplier is None else exp_scores * dapplied


def _dx(applied, dscores, dnumerator, queries, x, precision):
    """Computes ``dx`` [B, L, d] in one write: the gradient through the numerator plus the gradient through the scores.

    If the examples share x, it is [1, L, d], summed over them.
    """
    precision = factor_precision(precision)
    if x.shape[0] == 1 and applied.shape[0] != 1:  # shared by the examples
        queries = jnp.broadcast_to(queries, dnumerator.shape)
        both = jnp.concatenate([applied, dscores], -1), jnp.concatenate([dnumerator, queries], 1)
        return jnp.einsum("blh,bhd->ld", *both, precision=precision)[None]
    if applied.shape[2] == 1:
        return applied * dnumerator + dscores * queries
    queries = jnp.broadcast_to(queries, dnumerator.shape)
    both = jnp.concatenate([applied, dscores], -1), jnp.concatenate([dnumerator, queries], 1)
    return jnp.einsum("blh,bhd->bld", *both, precision=precision)


tiled = reverse_rule(_online_softmax, _softmax_fwd, _softmax_bwd, nondiff_argnums=(6,))
"""Computes :func:`plain` with its own gradient rule: of masked tokens on CPUs by tiles, else by whole products.

By tiles, each pass reads x once. The backward pass writes dx once.
"""
