"""Products of bfloat16 and float16 tokens with float32 factors, without a float32 copy of the tokens. For accelerators.

A matrix unit multiplies narrow numbers exactly and accumulates in float32, but both operands must be narrow. A float32
factor therefore becomes two narrow rows: its rounded value ("high") and the remainder ("low"). In bfloat16 their sum
has 16 significant bits and one row has 8; in float16 it is 22 bits and 11. Both rows are parts of one operand, so the
tokens are read once. float32 tokens are multiplied with the requested precision.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.rounding import power_of_two

FLOAT16_UNIT = 2.0**13
"""The power of two near which the largest float16 factor is scaled: 4 times it is finite, 1e-11 of it not yet 0."""


def factor_precision(precision):
    """Returns the precision of products of two float32 arrays.

    It is HIGHEST in place of DEFAULT, which suits products of narrow arrays and would round float32 arrays.
    """
    return lax.Precision.HIGHEST if precision == lax.Precision.DEFAULT else precision


def is_narrow(x):
    """Returns whether the dtype of tokens is narrower than float32."""
    return x.dtype.itemsize < 4


def products(x, queries, precision, dtype=None):
    """Multiplies tokens [B or 1, L, d] with queries [B or 1, h, d] of their dtype: [B, L, h].

    The sums and the result have ``dtype``, by default that of the tokens.
    """
    options = {"precision": precision, "preferred_element_type": dtype}
    if queries.shape[0] == 1:  # one product, the example's tokens after each other
        return jnp.einsum("bld,hd->blh", x, queries[0], **options)
    if x.shape[0] == 1:
        return jnp.einsum("ld,bhd->blh", x[0], queries, **options)
    return jnp.einsum("bld,bhd->blh", x, queries, **options)


def token_products(x, factors, precision, multiply=False):
    """Multiplies tokens [B or 1, L, d] in their own dtype with factors [B or 1, h, d]: [B, L, h] in the factors' dtype.

    Args:
      x: tokens in any floating dtype, not masked. NaN of a token reaches only its own products.
      factors: in the computing dtype, float32, or float64 for float64 tokens.
      precision: of products of float32 tokens.
      multiply: whether a single factor (h = 1) is multiplied and summed elementwise, as is fast on GPUs, instead of by
        the matrix unit.
    """
    if multiply and factors.shape[1] == 1:
        return jnp.sum(x.astype(factors.dtype) * factors, -1, keepdims=True)
    if not is_narrow(x):
        return products(x, factors, precision)
    rows, scale = _high_and_low(factors, x.dtype, 1, (1, 2))
    both = products(x, rows, None, factors.dtype)
    count = factors.shape[1]
    return (both[..., :count] + both[..., count:]) * scale


@functools.partial(jax.custom_jvp, nondiff_argnums=(3, 4))
def raw_products(x, real, factors, precision, multiply):
    """Computes :func:`token_products` without a copy of the tokens in which padding is replaced.

    Products at padding are arbitrary, and the caller masks them. The derivatives replace the tokens by 0 at padding,
    where ``real`` [B, L], or [N] for packed tokens [1, N, d], is False, so NaN there reaches no gradient. If ``real``
    is None, all tokens are real.
    """
    del real
    return token_products(x, factors, precision, multiply)


@raw_products.defjvp
def _raw_products_jvp(precision, multiply, primals, tangents):
    x, real, factors = primals
    dx, _, dfactors = tangents
    if real is not None:
        x, dx = (jnp.where(real[..., None], tokens, 0) for tokens in (x, dx))
    terms = ((dx, factors), (x, dfactors))
    dproducts = sum(token_products(tokens, rows, precision, multiply) for tokens, rows in terms)
    return raw_products(*primals, precision, multiply), dproducts


def token_sums(weights, x, mask, precision, multiply=False):
    """Sums tokens [B or 1, L, d] under float weights [B, L, h]: [B, h, d]; padding is replaced by 0.

    Args:
      weights: in the computing dtype, float32, or float64 for float64 tokens; 0 at padding.
      x: tokens in any floating dtype.
      mask: bool [B, L], or None.
      precision: of products of float32 tokens.
      multiply: as in :func:`token_products`.
    """
    if mask is not None:
        x = jnp.where(mask[..., None], x, 0)
    if multiply and weights.shape[2] == 1:
        return jnp.sum(weights * x.astype(weights.dtype), 1)[:, None]
    if not is_narrow(x):
        return _sums(weights, x, precision)
    rows, scale = _high_and_low(weights, x.dtype, 2, (1, 2))
    both = _sums(rows, x, None, weights.dtype)
    count = weights.shape[2]
    return (both[:, :count] + both[:, count:]) * scale


def _sums(weights, x, precision, dtype=None):
    """Sums tokens [B or 1, L, d] under weights [B, L, h] of their dtype: [B, h, d].

    The sums and the result have ``dtype``, by default that of the tokens.
    """
    options = {"precision": precision, "preferred_element_type": dtype}
    if x.shape[0] == 1 and weights.shape[0] != 1:
        return jnp.einsum("blh,ld->bhd", weights, x[0], **options)
    return jnp.einsum("blh,bld->bhd", weights, x, **options)


def _high_and_low(factors, dtype, axis, own):
    """Returns (factors as narrow rows along ``axis``, high ones first; the power of two that scales products back).

    The range of float16 exponents is small. For float16, the factors of each example, whose axes are ``own``, are
    therefore first divided by that power of two.
    """
    scale = jnp.ones((), factors.dtype)
    if dtype == jnp.float16:
        largest = jnp.max(jnp.abs(factors), own, keepdims=True, initial=0)
        scale = power_of_two(largest) / FLOAT16_UNIT
    factors = factors / scale
    high = factors.astype(dtype)
    rounded = high.astype(factors.dtype)
    low = jnp.where(jnp.isfinite(rounded), factors - rounded, 0).astype(dtype)  # inf - inf
    return jnp.concatenate([high, low], axis), scale
