"""Rounding-safe comparisons, norms and scales. Twin of :mod:`attnpool_ref.numerics.rounding`, with the computing dtype's epsilon."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from attnpool_flax.numerics.remat import saveable
from attnpool_ref.contract import roundings


def within_rounding(terms, dtype):
    """Bounds the relative difference at which two sums of so many products still count as equal."""
    return roundings(terms) * float(jnp.finfo(dtype).eps)


def power_of_two(x):
    """Returns the largest power of two not above the magnitude of x: a constant, exact, and so is its reciprocal.

    It is 1 for 0 and for what is not finite, and no further from 1 than its reciprocal is a normal number.
    """
    x = jnp.abs(lax.stop_gradient(x))
    info = jnp.finfo(x.dtype)
    integer = np.dtype(f"int{info.bits}").type
    least, most = integer(1 << info.nmant), integer((-2 * info.minexp) << info.nmant)  # of 2^minexp and of 2^-minexp
    bits = lax.bitcast_convert_type(x, integer) & ~integer((1 << info.nmant) - 1)  # a mantissa of 0 is one of 1.0
    part = lax.bitcast_convert_type(jnp.clip(bits, least, most), x.dtype)
    return jnp.where((x > 0) & (x < jnp.inf), part, jnp.ones_like(x))


def norm(x):
    """Computes Euclidean norms along the last axis, which stays; no square under- or overflows. No gradient at 0."""
    size = power_of_two(jnp.max(jnp.abs(x), -1, keepdims=True, initial=0))
    scaled = x / size
    squares = jnp.sum(scaled * scaled, -1, keepdims=True)
    return jnp.where(squares == 0, 0, size * jnp.sqrt(jnp.where(squares == 0, 1, squares)))


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def largest(values, tied, axis):
    """Computes the maximum along an axis; its gradient is shared evenly by the values that are ``tied`` to it."""
    del tied
    return jnp.max(values, axis, initial=-jnp.inf)


@largest.defjvp
def _largest_jvp(axis, primals, tangents):
    values, tied = primals
    count = saveable(jnp.maximum(jnp.sum(tied, axis, dtype=jnp.int32), 1).astype(values.dtype))
    return largest(values, tied, axis), jnp.sum(jnp.where(tied, tangents[0], 0), axis) / count


def largest_product(scores, mask, size, terms, axis=-1):
    """Returns the maximum of real products along an axis; equal are those that rounding alone can tell apart.

    Args:
      scores: products, or sums of them.
      mask: of their shape, or None.
      size: a bound of each product, the product of the norms; broadcasts to the result.
      terms: the number of products that a score sums up.
      axis: the axis of the maximum.

    Returns:
      ``scores`` without the axis; -inf for a fully masked row.
    """
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    still = lax.stop_gradient(scores)
    top = saveable(jnp.max(still, axis, keepdims=True, initial=-jnp.inf))
    return largest(scores, tied(still, jnp.squeeze(top, axis), lax.stop_gradient(size), terms, axis), axis)


def tied(scores, top, size, terms, axis=-1):
    """Returns the mask of the products that equal the largest along an axis up to rounding; ``top`` and ``size`` lack that axis."""
    reach = size * within_rounding(terms, scores.dtype)
    return (scores >= jnp.expand_dims(top - reach, axis)) & (scores > -jnp.inf)
