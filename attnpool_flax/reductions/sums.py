"""Sums over tokens that neither drift nor overflow."""

import functools
import operator

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import SymbolicZero

from attnpool_flax.numerics.rounding import power_of_two
from attnpool_flax.numerics.sizes import known
from attnpool_flax.reductions import tiling
from attnpool_flax.reductions.rules import reverse_rule

LONGEST, PART = 512, 128
"""Tokens that are summed up in one go, and how many at a time where there are more: float32 drifts over long sums."""

LEVELS = 2
"""Levels of parts in sums over a symbolic number of terms: PART ** 3 terms are 2 million."""

SLICES = 32
"""Products of at most LONGEST tokens each that are written one by one; more of them are one batched product."""


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def weighted(weights, x, precision):
    """Contracts weights [..., n, L] with tokens [..., L, d]: [..., n, d]; either may be shared."""
    length = x.shape[-2]
    if (
        known(length) and length <= SLICES * LONGEST
    ):  # slices are cheap, and what a batched product would transpose is not
        return in_slices(lambda part: _product(weights[..., part], x[..., part, :], precision), length)
    return _in_parts(weights, x, precision)


def _weighted_jvp(precision, primals, tangents):
    """Computes the tangent without slices, whose transposes are as large as x; only forward mode keeps token products.

    In forward mode up to 16384 tokens are one product, which is off by 4e-5 where all tokens are equal.
    """
    (weights, x), (of_weights, of_x) = primals, tangents
    length = x.shape[-2]
    product = _product if known(length) and length <= SLICES * LONGEST else _in_parts
    slopes = [
        product(*pair, precision)
        for pair in ((of_weights, x), (weights, of_x))
        if not any(isinstance(part, SymbolicZero) for part in pair)
    ]
    result = weighted(weights, x, precision)
    return result, functools.reduce(operator.add, slopes) if slopes else jnp.zeros_like(result)


weighted.defjvp(_weighted_jvp, symbolic_zeros=True)


def _in_parts(weights, x, precision):
    """Computes :func:`weighted` as one batched product of parts, and one of the remainder."""
    whole = x.shape[-2] // PART * PART
    of_parts = jnp.reshape(weights[..., :whole], (*weights.shape[:-1], whole // PART, PART))
    parts = jnp.reshape(x[..., :whole, :], (*x.shape[:-2], whole // PART, PART, x.shape[-1]))
    sums = jnp.einsum("...nps,...psd->...pnd", of_parts, parts, precision=precision)
    return summed(sums, -3) + _product(weights[..., whole:], x[..., whole:, :], precision)


def in_slices(product, length):
    """Sums ``product(slice)`` over slices of at most LONGEST of so many tokens."""
    return functools.reduce(operator.add, (product(slice(i, i + LONGEST)) for i in range(0, max(length, 1), LONGEST)))


def _product(weights, x, precision):
    return jnp.einsum("...nl,...ld->...nd", weights, x, precision=precision)


def summed(x, axis=1, levels=LEVELS):
    """Sums along an axis in nested parts; in ``levels`` of them if the number of terms is a symbol."""
    length = x.shape[axis]
    if length <= LONGEST if known(length) else not levels:
        return jnp.sum(x, axis)
    x = jnp.moveaxis(x, axis, 0)
    whole = length // PART * PART
    sums = jnp.sum(jnp.reshape(x[:whole], (whole // PART, PART, *x.shape[1:])), 1)
    return summed(sums, 0, levels - 1) + jnp.sum(x[whole:], 0)


def products(x, queries, precision):
    """Computes products of [B or 1, L, d] and [B or 1, h, d]: [B, L, h]."""
    if queries.shape[0] == 1:  # one product, the example's tokens after each other
        return jnp.einsum("bld,hd->blh", x, queries[0], precision=precision)
    if x.shape[0] == 1:
        return jnp.einsum("ld,bhd->blh", x[0], queries, precision=precision)
    return jnp.einsum("bld,bhd->blh", x, queries, precision=precision)


def products_of_tile(tokens, queries, precision):
    """Computes products of [rows, size, d] and [rows or 1, h, d]: [rows, size, h]; matrix-vector for one query."""
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
    """Returns a power of two above the mass, which divides a sum of that mass to avoid overflow; 2 for none."""
    return 2 * power_of_two(mass)


def compensated_add(a, b):
    """Adds two compensated sums (value, rest) by two-sum; the rest is the rounding error, and has no gradient.

    Dekker 1971, A floating-point technique for extending the available precision, over Knuth's exact sum of two numbers.
    """
    (a, a_rest), (b, b_rest) = a, b
    one, other = lax.stop_gradient(a), lax.stop_gradient(b)
    still = one + other
    back = still - one
    lost = (one - (still - back)) + (other - back) + lax.stop_gradient(a_rest + b_rest)
    lost = jnp.where(jnp.isfinite(still), lost, 0)  # inf - inf
    whole = still + lost
    rest = jnp.where(jnp.isfinite(whole), lost - (whole - still), 0)
    return _rounded_to(whole, a + b), rest


@jax.custom_jvp
def _rounded_to(value, total):
    """Returns the value with the gradient of the total."""
    del total
    return value


@_rounded_to.defjvp
def _rounded_to_jvp(primals, tangents):
    return _rounded_to(*primals), tangents[1]


def plain_total(x, mask, weights, part, precision):
    """Sums tokens under weights by whole products; differentiable in every mode.

    Args:
      x: [..., L, d] tokens, in any floating dtype; B in all, or 1.
      mask: bool [B, L], or None.
      weights: [B or 1, L, h] in the computing dtype, or None for 1.
      part: a power of two by which each term is divided, so that no sum overflows.
      precision: of the products.

    Returns:
      [B, h, d] in the computing dtype; h is 1 without weights.
    """
    x = tiling.flat(x).astype(computing(x.dtype))
    if mask is not None:
        x = jnp.where(mask[..., None], x, 0)
        weights = None if weights is None else jnp.where(mask[..., None], weights, 0)
    if weights is None:
        return summed(x / part)[:, None]
    return weighted(jnp.swapaxes(weights / part, 1, 2), x, precision)


def computing(dtype):
    """Returns float64 for float64, else float32."""
    return jnp.dtype("float64" if dtype == "float64" else "float32")


def _total(x, mask, weights, part, precision):
    x, settled = tiling.flat(x), {"part": part, "precision": precision}
    by_tiles, whole = (functools.partial(function, **settled) for function in (_total_of_tiles, plain_total))
    return tiling.walk(by_tiles, whole, tiling.plan_for(x, mask, weights), x, mask, weights)


def _total_of_tiles(x, mask, weights, *, plan, part, precision):
    dtype = computing(x.dtype)

    def of_tile(trip, plan):
        tokens, keep = tiling.tile(x, mask, plan, trip, dtype)
        keep = keep[..., None]
        shares = keep.astype(dtype) if weights is None else jnp.where(keep, tiling.cut(weights, plan, trip), 0)
        return (), sums_of_tile(shares / part, tokens, precision)

    def sum_of(trip):
        return tiling.shortest(functools.partial(of_tile, trip), mask, plan, trip)[1]

    return summed(tiling.joined_rows(lax.map(sum_of, jnp.arange(plan.trips)), plan))


def _keep_total(x, mask, weights, part, precision):
    return _total(x, mask, weights, part, precision), (x, mask, weights)


def _total_slopes(part, precision, kept, of_total):
    x, mask, weights = kept
    shape, x = x.shape, tiling.flat(x)
    shares = jnp.ones((1, x.shape[1], 1), of_total.dtype) if weights is None else weights
    if mask is not None:
        shares = jnp.where(mask[..., None], shares, 0)
    if x.shape[0] == 1 and of_total.shape[0] != 1:  # shared by the examples
        shares = jnp.broadcast_to(shares / part, (of_total.shape[0], *shares.shape[1:]))
        of_x = jnp.einsum("blh,bhd->ld", shares, of_total, precision=precision)[None]
    elif shares.shape[2] == 1:
        of_x = (shares / part) * of_total
    else:
        of_x = jnp.einsum("blh,bhd->bld", shares / part, of_total, precision=precision)
    of_x = jnp.reshape(of_x.astype(x.dtype), shape)
    if weights is None:
        return of_x, None, None
    by_tiles, whole = (functools.partial(f, precision=precision) for f in (_reached_by_tiles, _reached_plain))
    reached = tiling.walk(by_tiles, whole, tiling.plan_for(x, mask, weights), x, mask, of_total / part)
    of_weights = jnp.sum(reached, 0, keepdims=True) if weights.shape[0] == 1 else reached
    return of_x, None, of_weights


def _reached_plain(x, mask, of_total, *, precision):
    x = x.astype(of_total.dtype)
    return products(x if mask is None else jnp.where(mask[..., None], x, 0), of_total, precision)


def _reached_by_tiles(x, mask, of_total, *, plan, precision):
    def of_tile(trip, plan):
        tokens, _ = tiling.tile(x, mask, plan, trip, of_total.dtype)
        return (products_of_tile(tokens, tiling.of_rows(of_total, plan, trip), precision),), ()

    def reached(trip):
        return tiling.shortest(functools.partial(of_tile, trip), mask, plan, trip, (0,))[0][0]

    return tiling.joined(lax.map(reached, jnp.arange(plan.trips)), plan)


@reverse_rule(_keep_total, _total_slopes, nondiff_argnums=(3, 4))
def tiled_total(x, mask, weights, part, precision):
    """Computes :func:`plain_total`, a tile in the cache at a time; the gradient of x does not read x."""
    return _total(x, mask, weights, part, precision)
