"""Comparisons up to rounding, norms and scales. Twin of :mod:`attnpool_ref.numerics.rounding`.

Two products count as equal if they differ by no more than the rounding error of their own dtype, float32 or float64.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from attnpool_flax.numerics.platforms import may_be_split, unify_varying
from attnpool_flax.numerics.remat import saveable
from attnpool_flax.numerics.sizes import as_number, known
from attnpool_ref.contract import roundings


def within_rounding(terms, dtype):
    """Estimates the rounding error of a dot product of ``terms`` terms, relative to the product of the vectors' norms.

    ``dtype`` is that of the computation. Products that differ by no more count as equal; see
    :func:`attnpool_ref.numerics.rounding.roundings`.
    """
    return roundings(terms) * float(jnp.finfo(dtype).eps)


def power_of_two(x):
    """Returns the largest power of two up to the magnitude of x, without gradient; it is 1 for 0, NaN and infinities.

    The power, twice the power and their reciprocals are normal numbers. Therefore it is at most 2^125 in float32 and
    2^1021 in float64; subnormal numbers give the smallest normal number, or 1 where XLA's code flushes them to 0.

    Multiply by the reciprocal, which is exact: the XLA of JAX 0.8 turns x / power / sum into x / (power * sum), which
    may overflow.
    """
    x = jnp.abs(lax.stop_gradient(x))
    info = jnp.finfo(x.dtype)
    integer = np.dtype(f"int{info.bits}").type
    least, most = (
        integer(1 << info.nmant),
        integer((-2 * info.minexp) << info.nmant),
    )  # the bits of 2^minexp and of 2^(-minexp - 1)
    bits = lax.bitcast_convert_type(x, integer) & ~integer((1 << info.nmant) - 1)  # a mantissa of 0 is 1.0
    power = lax.bitcast_convert_type(jnp.clip(bits, least, most), x.dtype)
    return jnp.where((x > 0) & (x < jnp.inf), power, jnp.ones_like(x))


def power_above(size, dtype):
    """Returns a power of two above the size: a Python integer, or an array of shape () and ``dtype`` for a symbol."""
    return 2 ** size.bit_length() if known(size) else 2 * power_of_two(as_number(size, dtype))


def norm(x):
    """Computes Euclidean norms [..., 1] along the last axis, without gradient.

    No square overflows, nor does the largest underflow.
    """
    x = lax.stop_gradient(x)
    size = power_of_two(jnp.max(jnp.abs(x), -1, keepdims=True, initial=0))
    scaled = x / size
    return size * jnp.sqrt(jnp.sum(scaled * scaled, -1, keepdims=True))


def max_along_axis(x, axis):
    """Computes the maximum along an axis, NaN if any number is NaN; that of no numbers is -inf. It has no gradient.

    :func:`jax.numpy.max` loses NaN in large arrays on CPUs (JAX 0.8 to 0.12). A reduction by another comparison does not,
    but XLA cannot partition it over several CPU devices: there NaN is looked for in a reduction of its own.
    """
    if may_be_split(x):
        return jnp.where(jnp.any(jnp.isnan(x), axis), jnp.nan, jnp.max(x, axis, initial=-jnp.inf))

    def larger(a, b):
        return lax.select(lax.ge(a, b) | lax.ne(a, a), a, b)

    x, start = unify_varying(x, jnp.array(-jnp.inf, x.dtype))
    return lax.reduce(x, start, larger, (axis % x.ndim,))


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def largest(values, tied, axis):
    """Computes the maximum along an axis. Its gradient is shared evenly by the values where ``tied`` is True.

    ``tied`` has the shape of ``values``; the caller computes it. The maximum of no values is -inf.
    """
    del tied
    return max_along_axis(values, axis)


@largest.defjvp
def _largest_jvp(axis, primals, tangents):
    values, tied = primals
    count = saveable(jnp.maximum(jnp.sum(tied, axis, dtype=jnp.int32), 1).astype(values.dtype))
    return largest(values, tied, axis), jnp.sum(jnp.where(tied, tangents[0], 0), axis) / count


def largest_product(scores, mask, size, terms, axis=-1):
    """Computes the maximum of products at real tokens along an axis; products that differ only by rounding are tied.

    Args:
      scores: dot products of vectors, or sums of dot products.
      mask: bool of their shape, or None.
      size: a bound of each product, such as the product of the vectors' norms; broadcastable to the result.
      terms: the number of terms of each score, for dot products the vectors' width.
      axis: the axis of the maximum.

    Returns:
      The maximum, of the shape of ``scores`` without the axis; -inf for a fully masked row.
    """
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    constant = lax.stop_gradient(scores)
    max_score = saveable(jnp.max(constant, axis, keepdims=True, initial=-jnp.inf))
    return largest(scores, tied(constant, jnp.squeeze(max_score, axis), lax.stop_gradient(size), terms, axis), axis)


def tied(scores, max_score, size, terms, axis=-1):
    """Returns bool of the shape of ``scores``: whether a score equals the maximum up to rounding.

    ``size`` and ``terms`` are as in :func:`largest_product`; ``max_score`` and ``size`` lack ``axis``. A score of -inf
    is never tied.
    """
    tolerance = size * within_rounding(terms, scores.dtype)
    least = jnp.maximum(max_score - tolerance, jnp.finfo(scores.dtype).min)  # -inf is never tied
    return scores >= jnp.expand_dims(least, axis)
