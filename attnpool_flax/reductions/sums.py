"""Sums over tokens whose rounding errors do not add up, by nesting or compensation, and weighted sums by tiles."""

import functools
import operator

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import SymbolicZero

from attnpool_flax.numerics.one_pass import einsum
from attnpool_flax.numerics.rounding import power_of_two
from attnpool_flax.numerics.sizes import known
from attnpool_flax.reductions.narrow_products import factor_precision, is_narrow, products, raw_products, token_sums
from attnpool_flax.reductions.rules import reverse_rule
from attnpool_flax.reductions.tiling import by_platform, flatten_batch, tiling_of

LONGEST, PART = 512, 128
"""The largest number of terms of a plain sum, and of each part of a longer sum: plain sums in float32 drift."""

LEVELS = 2
"""Levels of nested parts if the number of terms is a symbol: enough for PART ** 3 terms, which is 2 million."""

SLICES = 32
"""The largest number of slices of at most LONGEST tokens, one product for each. More tokens are one batched product."""


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def weighted(weights, x, precision):
    """Sums tokens [..., L, d] under weights [..., n, L] of one dtype: [..., n, d]. The batch axes broadcast.

    More than LONGEST tokens are summed in parts, except that accelerators sum up to SLICES * LONGEST in one product.
    """
    length = x.shape[-2]
    if not known(length) or length > SLICES * LONGEST:
        return _in_parts(weights, x, precision)
    whole = functools.partial(_product, precision=precision)
    if length <= LONGEST:
        return whole(weights, x)

    def sliced(weights, x):  # slices are cheap, and what a batched product would transpose is not
        return in_slices(lambda part: whole(weights[..., part], x[..., part, :]), length)

    # a matrix unit sums in parts by itself, and slices would be copied for it
    return lax.platform_dependent(weights, x, cpu=sliced, default=whole)


def _weighted_jvp(precision, primals, tangents):
    """Computes the tangent of :func:`weighted` without slices, because the transpose of a slice is as large as x.

    Only forward mode evaluates these sums over tokens. There up to 16384 tokens are one product, whose relative error
    may exceed 1e-5, the limit of all other sums, where many tokens are equal.
    """
    (weights, x), (dweights, dx) = primals, tangents
    length = x.shape[-2]
    product = _product if known(length) and length <= SLICES * LONGEST else _in_parts
    terms = [
        product(*pair, precision)
        for pair in ((dweights, x), (weights, dx))
        if not any(isinstance(part, SymbolicZero) for part in pair)
    ]
    result = weighted(weights, x, precision)
    return result, functools.reduce(operator.add, terms) if terms else jnp.zeros_like(result)


weighted.defjvp(_weighted_jvp, symbolic_zeros=True)


def _in_parts(weights, x, precision):
    """Computes :func:`weighted` as one batched product of parts of PART tokens, plus one of the remaining tokens."""
    whole = x.shape[-2] // PART * PART
    weights_of_parts = jnp.reshape(weights[..., :whole], (*weights.shape[:-1], whole // PART, PART))
    parts = jnp.reshape(x[..., :whole, :], (*x.shape[:-2], whole // PART, PART, x.shape[-1]))
    sums = einsum("...nps,...psd->...pnd", weights_of_parts, parts, precision)
    return summed(sums, -3) + _product(weights[..., whole:], x[..., whole:, :], precision)


def in_slices(product, length):
    """Adds up ``product(slice)`` over slices of at most LONGEST of ``length`` tokens."""
    return functools.reduce(operator.add, (product(slice(i, i + LONGEST)) for i in range(0, max(length, 1), LONGEST)))


def _product(weights, x, precision):
    return einsum("...nl,...ld->...nd", weights, x, precision)


def summed(x, axis=1, levels=LEVELS):
    """Sums along an axis, which is removed, in nested parts of PART terms if there are more than LONGEST.

    If the number of terms is a symbol, ``levels`` is the number of nestings.
    """
    length = x.shape[axis]
    if length <= LONGEST if known(length) else not levels:
        return jnp.sum(x, axis)
    x = jnp.moveaxis(x, axis, 0)
    whole = length // PART * PART
    sums = jnp.sum(jnp.reshape(x[:whole], (whole // PART, PART, *x.shape[1:])), 1)
    return summed(sums, 0, levels - 1) + jnp.sum(x[whole:], 0)


def products_of_tile(tokens, queries, precision):
    """Multiplies tokens [rows, size, d] with queries [rows or 1, h, d]: [rows, size, h]."""
    rows, size, width = tokens.shape
    if queries.shape[0] == 1 or rows == 1:
        if queries.shape[1] == 1:
            flat = jnp.dot(jnp.reshape(tokens, (-1, width)), queries[0, 0], precision=precision)
        else:
            flat = jnp.dot(jnp.reshape(tokens, (-1, width)), queries[0].T, precision=precision)
        return jnp.reshape(flat, (rows, size, queries.shape[1]))
    return jnp.einsum("rsd,rhd->rsh", tokens, queries, precision=precision)


def sums_of_tile(weights, tokens, precision):
    """Sums tokens [rows, size, d] under weights [rows, size, h]: [rows, h, d]."""
    if tokens.shape[0] > 1:
        return jnp.einsum("rsh,rsd->rhd", weights, tokens, precision=precision)
    if weights.shape[2] == 1:
        return jnp.dot(weights[0, :, 0], tokens[0], precision=precision)[None, None]
    return jnp.dot(weights[0].T, tokens[0], precision=precision)[None]


def divisor_of(mass):
    """Returns a power of two above the mass, 2 for 0: a sum under weights of this total, divided by it, is finite."""
    return 2 * power_of_two(mass)


def compensated_add(a, b):
    """Adds two compensated sums (value, compensation) by two-sum; the new compensation is the rounding error.

    value + compensation is the more exact sum. Knuth's two-sum is exact for the values, as in Dekker 1971, A
    floating-point technique for extending the available precision. Compensations have no gradient.
    """
    (a, a_compensation), (b, b_compensation) = a, b
    a_value, b_value = lax.stop_gradient(a), lax.stop_gradient(b)
    total = a_value + b_value
    b_rounded = total - a_value
    error = (a_value - (total - b_rounded)) + (b_value - b_rounded) + lax.stop_gradient(a_compensation + b_compensation)
    error = jnp.where(jnp.isfinite(total), error, 0)  # inf - inf
    value = total + error
    compensation = jnp.where(jnp.isfinite(value), error - (value - total), 0)
    return _with_gradient_of(value, a + b), compensation


@jax.custom_jvp
def _with_gradient_of(value, total):
    """Returns ``value``; its gradient flows to ``total`` instead."""
    del total
    return value


@_with_gradient_of.defjvp
def _with_gradient_of_jvp(primals, tangents):
    return _with_gradient_of(*primals), tangents[1]


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
    x = flatten_batch(x).astype(computing(x.dtype))
    if mask is not None:
        x = jnp.where(mask[..., None], x, 0)
        weights = None if weights is None else jnp.where(mask[..., None], weights, 0)
    if weights is None:
        return summed(x / divisor)[:, None]
    return weighted(jnp.swapaxes(weights / divisor, 1, 2), x, precision)


def computing(dtype):
    """Returns the computing dtype, which is that of intermediate results: float64 for float64, else float32."""
    return jnp.dtype("float64" if dtype == "float64" else "float32")


def _sum(x, mask, weights, divisor, precision):
    x, options = flatten_batch(x), {"divisor": divisor, "precision": precision}
    kernels = _sum_tiles, plain_sum, _sum_whole
    tiled_, plain_, whole = (functools.partial(function, **options) for function in kernels)
    plain_ = functools.partial(plain_, precision=factor_precision(precision))  # of small arrays, on every platform
    return by_platform(tiled_, plain_, tiling_of(x, mask, weights), x, mask, weights, whole=whole)


def _sum_whole(x, mask, weights, *, divisor, precision, multiply):
    """Computes :func:`plain_sum` on accelerators, from tokens in their own dtype; weights are not rounded to it."""
    if weights is None or not is_narrow(x):
        return plain_sum(x, mask, weights, divisor, precision)
    weights = weights / divisor
    if mask is not None:
        weights = jnp.where(mask[..., None], weights, 0)
    if weights.shape[0] == 1:  # shared by the examples
        weights = jnp.broadcast_to(weights, (x.shape[0], *weights.shape[1:]))
    return token_sums(weights, x, mask, precision, multiply)


def _sum_tiles(x, mask, weights, *, tiling, divisor, precision):
    dtype = computing(x.dtype)

    def tile(step, tiling):
        tokens, keep = tiling.masked_tile(x, mask, step, dtype)
        keep = keep[..., None]
        applied = keep.astype(dtype) if weights is None else jnp.where(keep, tiling.slice(weights, step), 0)
        return (), sums_of_tile(applied / divisor, tokens, precision)

    def tile_step(step):
        return tiling.shortest_prefix(functools.partial(tile, step), mask, step)[1]

    return summed(tiling.stack(lax.map(tile_step, jnp.arange(tiling.steps))))


def _sum_fwd(x, mask, weights, divisor, precision):
    return _sum(x, mask, weights, divisor, precision), (x, mask, weights)


def _sum_bwd(divisor, precision, residuals, dsum):
    x, mask, weights = residuals
    shape, x = x.shape, flatten_batch(x)
    applied = jnp.ones((1, x.shape[1], 1), dsum.dtype) if weights is None else weights
    if mask is not None:
        applied = jnp.where(mask[..., None], applied, 0)
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
    kernels = _dweights_tiles, _dweights_plain, _dweights_whole
    tiled_, plain_, whole = (functools.partial(f, precision=precision) for f in kernels)
    plain_ = functools.partial(plain_, precision=factor_precision(precision))
    dweights = by_platform(tiled_, plain_, tiling_of(x, mask, weights), x, mask, dsum / divisor, whole=whole)
    return dx, None, jnp.sum(dweights, 0, keepdims=True) if weights.shape[0] == 1 else dweights


def _dweights_plain(x, mask, dsum, *, precision):
    x = x.astype(dsum.dtype)
    return products(x if mask is None else jnp.where(mask[..., None], x, 0), dsum, precision)


def _dweights_whole(x, mask, dsum, *, precision, multiply):
    """Computes :func:`_dweights_plain` on accelerators from the tokens in their own dtype."""
    dweights = raw_products(x, mask, dsum, precision, multiply)
    return dweights if mask is None else jnp.where(mask[..., None], dweights, 0)


def _dweights_tiles(x, mask, dsum, *, tiling, precision):
    def tile(step, tiling):
        tokens, _ = tiling.masked_tile(x, mask, step, dsum.dtype)
        return (products_of_tile(tokens, tiling.slice_examples(dsum, step), precision),), ()

    def tile_step(step):
        return tiling.shortest_prefix(functools.partial(tile, step), mask, step, (0,))[0][0]

    return tiling.concatenate(lax.map(tile_step, jnp.arange(tiling.steps)))


@reverse_rule(_sum_fwd, _sum_bwd, nondiff_argnums=(3, 4))
def tiled_sum(x, mask, weights, divisor, precision):
    """Computes :func:`plain_sum`, on CPUs one tile in the cache at a time; the gradient of x does not read x."""
    return _sum(x, mask, weights, divisor, precision)
