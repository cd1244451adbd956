"""Sums of residuals (tokens minus centers) under weights, on accelerators.

For tokens x_l, centers c_k and weights w_lk, the sum of the tokens minus the sum of the centers would cancel digits
where the residuals are small. With the center c_a(l) nearest to each token,

    sum_l w_lk (x_l - c_k) = sum_l w_lk (x_l - c_a(l)) + sum_j (sum_{l: a(l) = j} w_lk) (c_j - c_k)

has terms on the right that are at most twice as large as those on the left, and both sums over tokens are matrix
products. The derivatives are those of the left side: all c_a(l) and c_j are constants; of the centers only c_k has a
gradient.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics import platforms
from attnpool_flax.numerics.elementwise import exponential
from attnpool_flax.numerics.products import exact_tokens
from attnpool_flax.numerics.remat import by_argument, remat
from attnpool_flax.numerics.sums import weighted
from attnpool_flax.reductions.loops.budget import over_first
from attnpool_flax.reductions.packed.pairs import pairs_of
from attnpool_flax.reductions.packed.segments import at


def dense(by_center, x, mask, centers, weights, dtype, precision):
    """Sums residuals of dense tokens under weights: [..., K, d].

    On TPUs these are products. On GPUs it is one reduction, into which XLA fuses the differences: it moves fewer bytes.

    Args:
      by_center: for CPUs, from (centers, weights) to the sums.
      x: [..., L, d] tokens.
      mask: bool [..., L], or None.
      centers: [K, d].
      weights: [..., K, L], 0 at padding.
      dtype: the dtype of the caller's tokens, which ``x`` holds in the computing dtype.
      precision: of the products; DEFAULT only of those of tokens and centers.
    """

    def on_tpus(centers, weights):
        return _by_products(weighted, x.astype(dtype), mask, centers, weights, precision, False)

    on_gpus = functools.partial(_at_once, x.astype(dtype), mask)
    # rematerialized: nothing is saved for a CPU
    return platforms.choose(centers, weights, cpu=by_center, tpu=remat(on_tpus), default=on_gpus)


def packed(by_center, x, segments, centers, logs, dtype, precision):
    """Sums residuals of at least one packed token under exp(log - max_score): (max_score [S, K], sums [S, K, d]).

    On accelerators these are products of chunks of sorted tokens (:mod:`attnpool_flax.reductions.packed.pairs`).

    Args:
      by_center: for CPUs, from (centers, logs) to the results.
      x: [N, d] tokens.
      segments: their :class:`~attnpool_flax.reductions.packed.segments.Segments`.
      centers: [K, d].
      logs: [K, N], logarithms of weights.
      dtype: as in :func:`dense`.
      precision: as in :func:`dense`.
    """

    def of_pairs(centers, logs, gather):
        pairs = pairs_of(segments)
        real = pairs.real[:, None]
        logs = jnp.where(real, jnp.swapaxes(pairs.of_tokens(logs.T), 1, 2), -jnp.inf)
        max_score = pairs.max(lax.stop_gradient(jnp.max(logs, -1)))
        weights = jnp.where(real, exponential(logs, at(max_score, pairs.segment)[..., None]), 0)
        tokens = pairs.of_tokens(x.astype(dtype))
        return max_score, _by_products(pairs.weighted_sums, tokens, pairs.real, centers, weights, precision, gather)

    on_tpus, on_gpus = (remat(functools.partial(of_pairs, gather=gather)) for gather in (False, True))
    return platforms.choose(centers, logs, cpu=by_center, tpu=on_tpus, default=on_gpus)


def _by_products(weighted_sums, x, real, centers, weights, precision, gather):
    """Sums residuals by products: [..., K, d].

    Args:
      weighted_sums: from weights [..., K, L], values [..., L, o] of tokens and a precision to the sums [..., K, o].
      x: [..., L, d] tokens, in the caller's dtype.
      real: bool [..., L], or None.
      centers: [K, d], in the computing dtype.
      weights: [..., K, L], 0 at padding.
      precision: as in :func:`dense`.
      gather: whether the nearest centers are gathered, as is fast on GPUs, or selected by a product.
    """
    precision, constant = exact_tokens(precision), lax.stop_gradient(centers)
    places = nearest(x, constant, precision)
    is_nearest = jax.nn.one_hot(places, centers.shape[0], dtype=centers.dtype)
    if gather:
        own = at(constant, places)
    else:
        own = jnp.einsum("...lk,kd->...ld", is_nearest, constant, precision=lax.Precision.HIGHEST)
    residuals = x.astype(centers.dtype) - own
    residuals = residuals if real is None else jnp.where(real[..., None], residuals, 0)
    if precision == lax.Precision.DEFAULT:  # exact for narrow tokens, but residuals are not narrow; HIGH has 16 bits
        precision = lax.Precision.HIGHEST if gather else lax.Precision.HIGH
    shares = jnp.moveaxis(weighted_sums(weights, is_nearest, precision), -2, 0)

    def of_center(center, shares):
        return jnp.einsum("...j,jd->...d", shares, constant - center[None], precision=precision)

    differences = over_first(of_center, (centers, shares), centers.size)
    return weighted_sums(weights, residuals, precision) + jnp.moveaxis(differences, 0, -2)


def nearest(x, centers, precision):
    """Returns integers [..., L]: the index of the center nearest to each token.

    Rounding may choose another one that is almost as near. No digits are lost by that, unless the residuals are smaller
    than the square root of the rounding error, relative to the centers.
    """
    x, halves = lax.stop_gradient(x).astype(centers.dtype), jnp.sum(centers * centers, -1) / 2
    products = jnp.einsum("...ld,kd->...kl", x, centers, precision=precision)
    scores = products - jnp.reshape(halves, (1,) * (products.ndim - 2) + (halves.shape[0], 1))
    # as integers in the same order: XLA's TPU compiler rounds the maximum of an argmax, which is not used, to bfloat16
    bits = lax.bitcast_convert_type(scores, jnp.dtype(f"int{8 * scores.dtype.itemsize}"))
    return jnp.argmax(jnp.where(bits < 0, bits ^ jnp.iinfo(bits.dtype).max, bits), -2)


@by_argument
def _at_once(x, mask, centers, weights):
    x = x if mask is None else jnp.where(mask[..., None], x, 0)
    centers = jnp.reshape(centers, (1,) * (x.ndim - 2) + (centers.shape[0], 1, centers.shape[1]))
    return jnp.sum(weights[..., None] * (x[..., None, :, :].astype(weights.dtype) - centers), -2)
