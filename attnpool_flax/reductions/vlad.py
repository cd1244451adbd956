"""Sums of residuals (tokens minus centers) under weights, on accelerators: for VLAD.

Dense tokens on a GPU have each sum of residuals in one kernel (:func:`_at_once`). Dense tokens on a TPU, and packed
tokens on both, are sums by products. For tokens x_l, centers c_k and weights w_lk, the sum of the tokens minus the sum
of the centers would cancel digits where the residuals are small. With the center c_a(l) nearest to each token,

    sum_l w_lk (x_l - c_k) = sum_l w_lk (x_l - c_a(l)) + sum_j (sum_{l: a(l) = j} w_lk) (c_j - c_k)

has terms on the right that are at most twice as large as those on the left, and both sums over tokens are matrix
products. The derivatives are those of the left side: all c_a(l) and c_j are constants; of the centers only c_k has a
gradient.

Packed tokens are multiplied in batches for matrix products: pairs of a chunk and a segment. A chunk is a block of
consecutive tokens, sorted by segment. A pair is a chunk and a segment that may have tokens in it. J chunks and S
segments have at most J + S - 1 pairs, whatever the sizes of the segments are. The tokens of a pair are those of its
chunk; those of other segments are padding, so NaN stays in its own segment.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics import platforms
from attnpool_flax.numerics.elementwise import keep_real
from attnpool_flax.numerics.products import exact_tokens
from attnpool_flax.numerics.remat import by_argument, remat
from attnpool_flax.numerics.softmax import exponential
from attnpool_flax.numerics.sums import LONGEST, weighted
from attnpool_flax.reductions.loops.blocks import over_first
from attnpool_flax.reductions.packed.segments import at, enumerated, segments_of

FEWEST_TOKENS, MOST_TOKENS = 8, 128
"""The smallest and the largest number of tokens of a chunk.

Between them it is the largest power of two up to the average number of tokens of a segment.
"""


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

    On accelerators these are products of chunks of sorted tokens (:mod:`attnpool_flax.reductions.vlad`).

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
    residuals = keep_real(x.astype(centers.dtype) - own, real)
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
    x = keep_real(x, mask)
    centers = jnp.reshape(centers, (1,) * (x.ndim - 2) + (centers.shape[0], 1, centers.shape[1]))
    return jnp.sum(weights[..., None] * (x[..., None, :, :].astype(weights.dtype) - centers), -2)


# --------------------------------------------------------------------------------------------------------------
# Pairs of a chunk and a segment


class Pairs(NamedTuple):
    """Pairs of a chunk and a segment, in the order of the segments.

    Attributes:
      order: [N], for each place in the order of the segments, the index of its token; None if the tokens are sorted.
      chunk: [P], the chunk of each pair.
      segment: [P], the segment of each pair, ascending.
      real: bool [P, C], whether a token of the chunk is real and in the segment of the pair.
      count: the number of segments.
    """

    order: Any
    chunk: Any
    segment: Any
    real: Any
    count: int

    def of_tokens(self, values):
        """Returns the values [P, C, ...] of each pair's tokens, from values [N, ...]."""
        if self.order is not None:
            values = values.at[self.order].get(mode="promise_in_bounds", unique_indices=True)
        return at(_in_chunks(values, self.real.shape[1]), self.chunk)

    def weighted_sums(self, weights, values, precision):
        """Sums values [P, C, o] under weights [P, K, C], 0 at padding, over the tokens of each segment: [count, K, o]."""
        parts = jnp.einsum("pkc,pco->pko", weights, values, precision=precision)
        if self.real.shape[0] <= LONGEST:
            return jax.ops.segment_sum(parts, self.segment, self.count, indices_are_sorted=True)
        return segments_of(self.segment, None, self.count, True).sum(parts)

    def max(self, values):
        """Returns [count, ...]: the largest of the values [P, ...] of each segment's pairs."""
        return jax.ops.segment_max(values, self.segment, self.count, indices_are_sorted=True)


def pairs_of(segments):
    """Returns the :class:`Pairs` of at least one token."""
    length, count = segments.ids.shape[0], segments.count
    order = None if segments.ordered else jnp.argsort(segments.ids)
    ids, real = ((own if order is None else at(own, order)) for own in (segments.ids, segments.real))
    size = max(FEWEST_TOKENS, min(MOST_TOKENS, 2 ** (length // count).bit_length() // 2))
    ids, real = _in_chunks(ids, size, count - 1), _in_chunks(real, size)
    chunks = ids.shape[0]
    least, most = ids[:, 0], ids[:, -1]
    _, chunk, index = enumerated(most - least + 1, chunks + count - 1)
    segment = at(least, chunk) + index  # behind the last pair there are segments without a token
    real = at(real, chunk) & (at(ids, chunk) == segment[:, None])
    return Pairs(order, chunk, jnp.minimum(segment, count - 1), real, count)


def _in_chunks(values, size, fill=0):
    """Reshapes values [N, ...] to [J, size, ...]; the last chunk is filled up."""
    missing = -values.shape[0] % size
    if missing:
        values = jnp.pad(values, ((0, missing), *((0, 0),) * (values.ndim - 1)), constant_values=fill)
    return jnp.reshape(values, (-1, size, *values.shape[1:]))
