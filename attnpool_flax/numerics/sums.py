"""Sums whose rounding errors do not add up, by nesting or compensation; the dtype in which they are computed."""

import functools
import operator

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from attnpool_flax.numerics import platforms
from attnpool_flax.numerics.platforms import mapped_first, unify_varying
from attnpool_flax.numerics.products import einsum
from attnpool_flax.numerics.rounding import power_of_two
from attnpool_flax.numerics.sizes import known

LONGEST, PART = 512, 128
"""The largest number of terms of a plain sum, and of each part of a longer sum: plain sums in float32 drift."""


LEVELS = 2
"""Levels of nested parts if the number of terms is a symbol: enough for PART ** 3 terms, which is 2 million."""


ONE_PRODUCT = 2**14
"""The largest number of tokens that accelerators sum in one product, because a matrix unit sums in parts by itself."""


def even_part(length):
    """Returns the largest size from PART to LONGEST that divides a number of tokens; None if there is none."""
    return next((size for size in range(LONGEST, PART - 1, -1) if length % size == 0), None)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def weighted(weights, x, precision):
    """Sums tokens [..., L, d] under weights [..., n, L] of one dtype: [..., n, d]. The batch axes broadcast.

    More than LONGEST tokens are summed in parts, except that accelerators sum up to ONE_PRODUCT of them in one product.
    """
    length = x.shape[-2]
    whole, parts = (functools.partial(product, precision=precision) for product in (_product, _in_parts))
    if not known(length):
        return parts(weights, x)
    if length <= LONGEST:
        return whole(weights, x)
    in_cache = functools.partial(parts, size=even_part(length) or PART)
    return platforms.by_pieces(in_cache, whole if length <= ONE_PRODUCT else parts, weights, x)


def _weighted_jvp(precision, primals, tangents):
    """Computes the tangent of :func:`weighted` by :func:`weighted_tangents`."""
    (weights, x), (dweights, dx) = primals, tangents
    terms = [
        weighted_tangents(*pair, precision)
        for pair in ((dweights, x), (weights, dx))
        if not any(isinstance(part, SymbolicZero) for part in pair)
    ]
    result = weighted(weights, x, precision)
    return result, functools.reduce(operator.add, terms) if terms else jnp.zeros_like(result)


weighted.defjvp(_weighted_jvp, symbolic_zeros=True)


def weighted_tangents(weights, x, precision):
    """Computes :func:`weighted` where the weights or x are tangents: without slices, whose transposes are as large as x.

    Only forward mode evaluates these sums over tokens. There up to 16384 tokens are one product, whose relative error
    may exceed 1e-5, the limit of all other sums, where many tokens are equal. JAX before 0.10 cannot transpose a loop
    inside of a branch.
    """
    product = _product if known(x.shape[-2]) and x.shape[-2] <= ONE_PRODUCT else _in_parts
    return product(weights, x, precision)


def _in_parts(weights, x, precision, size=PART):
    """Computes :func:`weighted` as one batched product of parts of ``size`` tokens, plus one of the remaining tokens.

    If there are remaining tokens, XLA copies the others.
    """
    whole = x.shape[-2] // size * size
    weights_of_parts = jnp.reshape(weights[..., :whole], (*weights.shape[:-1], whole // size, size))
    parts = jnp.reshape(x[..., :whole, :], (*x.shape[:-2], whole // size, size, x.shape[-1]))
    sums = einsum("...nps,...psd->...pnd", weights_of_parts, parts, precision)
    return summed(sums, -3) + _product(weights[..., whole:], x[..., whole:, :], precision)


def _product(weights, x, precision):
    return einsum("...nl,...ld->...nd", weights, x, precision)


def summed(x, axis=1, levels=LEVELS, longest=LONGEST):
    """Sums along an axis, which is removed, in nested parts of PART terms if there are more than ``longest``.

    If the number of terms is a symbol, ``levels`` is the number of nestings.
    """
    length = x.shape[axis]
    if length <= longest if known(length) else not levels:
        return jnp.sum(x, axis)
    x = jnp.moveaxis(x, axis, 0)
    whole = length // PART * PART
    sums = jnp.sum(jnp.reshape(x[:whole], (whole // PART, PART, *x.shape[1:])), 1)
    sums = lax.optimization_barrier(sums)  # XLA, above all that of JAX 0.8, would join both sums, which drifts
    return summed(sums, 0, levels - 1) + jnp.sum(x[whole:], 0)


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
    return with_gradient_of(value, a + b), compensation


def with_gradient_of(value, total):
    """Returns ``value``; its gradient, in every mode and order, is that of ``total``, which is not computed otherwise.

    It is a primitive, because JAX before 0.12 forgets a rule of ``jax.custom_jvp`` for second derivatives inside of a scan.
    """
    value, total = unify_varying(value, total.astype(value.dtype))
    return _WITH_GRADIENT.bind(value, jnp.broadcast_to(total, value.shape))


def _first_of(value, total):
    del total
    return value


def _mapped(arrays, axes):
    return _WITH_GRADIENT.bind(*mapped_first(arrays, axes)), 0


_WITH_GRADIENT = Primitive("attnpool_with_gradient_of")
_WITH_GRADIENT.def_impl(_first_of)
_WITH_GRADIENT.def_abstract_eval(_first_of)
ad.primitive_jvps[_WITH_GRADIENT] = lambda primals, tangents: (_WITH_GRADIENT.bind(*primals), tangents[1])
batching.primitive_batchers[_WITH_GRADIENT] = _mapped
mlir.register_lowering(_WITH_GRADIENT, mlir.lower_fun(_first_of, multiple_results=False))


def computing_dtype(dtype):
    """Returns the computing dtype, which is that of intermediate results: float64 for float64, else float32."""
    return jnp.dtype("float64" if dtype == "float64" else "float32")
