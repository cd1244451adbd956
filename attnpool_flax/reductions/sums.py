"""Sums of dense tokens under weights: on CPUs by tiles if masked, on accelerators from tokens in their own dtype."""

import functools

import jax.numpy as jnp

from attnpool_flax.numerics.elementwise import keep_real
from attnpool_flax.numerics.products import factor_precision, is_narrow, products, raw_products, token_sums
from attnpool_flax.numerics.sizes import common_size
from attnpool_flax.numerics.sums import computing_dtype, summed, weighted
from attnpool_flax.reductions.dispatch import by_platform
from attnpool_flax.reductions.loops.tiling import flatten_batch, tiling_of, with_rules
from attnpool_flax.reductions.rules import reverse_rule


def products_of_tile(tokens, queries, precision):
    """Multiplies tokens [rows, size, d] with queries [rows or 1, h, d]: [rows, size, h]."""
    rows, size, width = tokens.shape
    if queries.shape[0] == 1 or rows == 1:
        flat = jnp.dot(jnp.reshape(tokens, (-1, width)), queries[0].T, precision=precision)
        return jnp.reshape(flat, (rows, size, queries.shape[1]))
    return jnp.einsum("rsd,rhd->rsh", tokens, queries, precision=precision)


def sums_of_tile(weights, tokens, precision):
    """Sums tokens [rows, size, d] under weights [rows, size, h]: [rows, h, d]."""
    if tokens.shape[0] > 1:
        return jnp.einsum("rsh,rsd->rhd", weights, tokens, precision=precision)
    return jnp.dot(weights[0].T, tokens[0], precision=precision)[None]


def plain_sum(x, mask, weights, divisor, precision):
    """Sums tokens under weights by whole products; differentiable in forward and reverse mode.

    Args:
      x: [..., L, d] tokens, in any floating dtype. The batch axes have B elements in all, or 1.
      mask: bool [B, L], or None.
      weights: [B or 1, L, h] in the computing dtype (float32 or float64); None means that all are 1.
      divisor: a power of two by which each term is divided, so that no sum overflows.
      precision: of the products.

    Returns:
      [B, h, d] in the computing dtype; h is 1 without weights.
    """
    x = keep_real(flatten_batch(x).astype(computing_dtype(x.dtype)), mask)
    if weights is None:
        return summed(x / divisor)[:, None]
    return weighted(jnp.swapaxes(keep_real(weights, mask) / divisor, 1, 2), x, precision)


def _sum(x, mask, weights, divisor, precision):
    x = flatten_batch(x)
    tiled_ = functools.partial(_sum_tiles, divisor=divisor, precision=precision)
    whole = functools.partial(_sum_whole, divisor=divisor, precision=precision)
    # of small arrays, on every platform
    plain_ = functools.partial(plain_sum, divisor=divisor, precision=factor_precision(precision))

    def unmasked(x, mask, weights):  # a product is faster than a sum, and a batch axis spares a transposed copy of x
        weights = jnp.ones((1, x.shape[1], 1), computing_dtype(x.dtype)) if weights is None else weights
        batch = common_size((x.shape[0], weights.shape[0]))
        return plain_(x, mask, jnp.broadcast_to(weights, (batch, *weights.shape[1:])))

    tiling = tiling_of(x, mask, weights)
    return by_platform(with_rules(tiled_, plain_, unmasked), plain_, tiling, x, mask, weights, whole=whole)


def _sum_whole(x, mask, weights, *, divisor, precision, on_gpus):
    """Computes :func:`plain_sum` on accelerators, from tokens in their own dtype; weights are not rounded to it."""
    if weights is None or not is_narrow(x):
        return plain_sum(x, mask, weights, divisor, precision)
    weights = keep_real(weights / divisor, mask)
    if weights.shape[0] == 1:  # shared by the examples
        weights = jnp.broadcast_to(weights, (x.shape[0], *weights.shape[1:]))
    return token_sums(weights, x, mask, precision, on_gpus)


def _sum_tiles(x, mask, weights, *, tiling, divisor, precision):
    dtype = computing_dtype(x.dtype)

    def body(tile, tokens, sums, arrays):
        own = jnp.ones((*tokens.shape[:2], 1), dtype) if weights is None else tile.masked(tile.slice(weights), 0)
        own, tokens = tile.counted(own, 0) / divisor, tile.counted(tokens.astype(dtype), 0)
        return sums + sums_of_tile(own, tokens, precision), arrays

    heads = 1 if weights is None else weights.shape[2]
    sums, _ = tiling.over_tiles(body, x, mask, jnp.zeros((tiling.rows, heads, x.shape[2]), dtype))
    return summed(sums)


def _sum_fwd(x, mask, weights, divisor, precision):
    return _sum(x, mask, weights, divisor, precision), (x, mask, weights)


def _sum_bwd(divisor, precision, residuals, dsum):
    x, mask, weights = residuals
    shape, x = x.shape, flatten_batch(x)
    applied = keep_real(jnp.ones((1, x.shape[1], 1), dsum.dtype) if weights is None else weights, mask)
    if x.shape[0] == 1 and dsum.shape[0] != 1:  # shared by the examples
        applied = jnp.broadcast_to(applied / divisor, (dsum.shape[0], *applied.shape[1:]))
        dx = jnp.einsum("blh,bhd->ld", applied, dsum, precision=factor_precision(precision))[None]
    elif applied.shape[2] == 1:
        dx = (applied / divisor) * dsum
    else:
        dx = jnp.einsum("blh,bhd->bld", applied / divisor, dsum, precision=factor_precision(precision))
    dx = jnp.reshape(dx.astype(x.dtype), shape)
    if weights is None:
        return dx, None, None
    tiled_ = functools.partial(_dweights_tiles, precision=precision)
    whole = functools.partial(_dweights_whole, precision=precision)
    plain_ = functools.partial(_dweights_plain, precision=factor_precision(precision))
    tiling, arrays = tiling_of(x, mask, weights), (x, mask, dsum / divisor)
    dweights = by_platform(with_rules(tiled_, plain_, plain_), plain_, tiling, *arrays, whole=whole)
    return dx, None, jnp.sum(dweights, 0, keepdims=True) if weights.shape[0] == 1 else dweights


def _dweights_plain(x, mask, dsum, *, precision):
    return products(keep_real(x.astype(dsum.dtype), mask), dsum, precision)


def _dweights_whole(x, mask, dsum, *, precision, on_gpus):
    """Computes :func:`_dweights_plain` on accelerators from the tokens in their own dtype."""
    return keep_real(raw_products(x, mask, dsum, precision, on_gpus), mask)


def _dweights_tiles(x, mask, dsum, *, tiling, precision):
    def body(tile, tokens, state, dweights):
        own = products_of_tile(tokens.astype(dsum.dtype), tile.slice_examples(dsum), precision)
        return state, tile.update(dweights, own)

    dweights = jnp.zeros((tiling.batch, tiling.length, dsum.shape[1]), dsum.dtype)
    return tiling.over_tiles(body, x, mask, (), dweights)[1]


tiled_sum = reverse_rule(_sum, _sum_fwd, _sum_bwd, nondiff_argnums=(3, 4))
"""Computes :func:`plain_sum`, of masked tokens on CPUs one tile at a time; the gradient of x does not read x."""
