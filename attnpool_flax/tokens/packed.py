"""Packed tokens: many sequences one after another, with the segment number of each token, and their reductions."""

import copy
import functools

import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.platforms import unify_varying
from attnpool_flax.numerics.sizes import known
from attnpool_flax.numerics.softmax import exponential
from attnpool_flax.numerics.sums import computing_dtype, divisor_of
from attnpool_flax.reductions import perceptron, vlad
from attnpool_flax.reductions.dispatch import KERNEL, KernelRefusal, by_implementation, log_dispatch
from attnpool_flax.reductions.loops.blocks import packed_sum_of_map
from attnpool_flax.reductions.packed import softmax as packed_softmax
from attnpool_flax.reductions.packed import sums as packed_sums
from attnpool_flax.reductions.packed.segments import at, segments_of
from attnpool_flax.reductions.softmax import weight_sums
from attnpool_flax.tokens.channels import PackedChannels
from attnpool_flax.tokens.protocol import Tokens


class Packed(Tokens):
    """Packed tokens [N, d] in the caller's dtype: their segments, their mask, and the requested implementation.

    Each method does what the method of :class:`~attnpool_flax.tokens.dense.Dense` with this name does, with S
    segments as the examples. Values of segments have the shape [S, ...]. Values of tokens have the shape [N], or [h, N]
    for h queries. ``ordered`` says that the segment ids never decrease.
    """

    axis_name = None
    """None: packed tokens are not sharded over a mesh."""

    def __init__(self, x, segment_ids, num_segments, mask, ordered, implementation, precision=None):
        self.requested, self.precision = implementation, precision
        self.dtype, self.number = computing_dtype(x.dtype), num_segments
        self.x, segment_ids, mask = unify_varying(x, segment_ids, mask)
        self.segments = segments_of(segment_ids, mask, num_segments, ordered)

    def sum(self, weights=None):
        """Sums the real tokens of each segment under weights [N], or unweighted: [S, d]."""
        return self._total(None) if weights is None else self._weighted_sums(weights[:, None])[: self.number, 0]

    def total(self):
        """Sums the real tokens of each segment: [S, d]."""
        return self.sum()

    def sum_of_map(self, function, width):
        """Sums ``function(tokens)`` [S, o] of each segment's real tokens; arguments: :func:`packed_sum_of_map`."""
        return packed_sum_of_map(function, self.x, self.segments, width)[: self.number]

    def channels(self):
        """Returns the tokens as :class:`PackedChannels`, for reductions of each channel separately."""
        return PackedChannels(self.x, self.segments, self.number)

    def mean(self):
        """Averages each segment's real tokens: [S, d]; 0 if fully masked. Terms are divided first to avoid overflow."""
        count = jnp.maximum(self.sum_over_tokens(self.segments.real.astype(jnp.int32)), 1).astype(self.dtype)
        divisor = divisor_of(count)
        return self._total(self._at_least_one(1 / divisor)) / (count / divisor)[:, None]

    def _total(self, factor):
        """Sums the real tokens of each segment, multiplied by ``factor`` [max(S, 1)], if it is not None: [S, d]."""
        x, factor = unify_varying(self.x, factor)
        kernels = packed_sums.tiled_total, packed_sums.plain_total
        return by_implementation(self.requested, *kernels, (x, self.segments, factor))[: self.number]

    def zero_padded(self):
        """Returns the tokens in the computing dtype ``dtype``, padding as 0."""
        return jnp.where(self.segments.real[:, None], self.x.astype(self.dtype), 0)

    def minus(self, origin):
        """Returns the tokens minus an origin [d], in the computing dtype ``dtype``; values at padding are arbitrary."""
        other = copy.copy(self)
        other.x = self.x.astype(self.dtype) - origin[None]
        return other

    def sums_of_residuals(self, centers, logs, dtype, precision):
        """Computes :meth:`Tokens.sums_of_residuals`; on accelerators by products of chunks of sorted tokens."""
        by_center = functools.partial(super().sums_of_residuals, dtype=dtype, precision=precision)
        if not known(*self.x.shape) or not self.x.shape[0]:
            return by_center(centers, logs)
        arrays = self.x, self.segments, centers, logs
        max_score, sums = vlad.packed(by_center, *arrays, dtype, precision)
        return max_score[: self.number], sums[: self.number]

    def exp_scores(self, scores):
        """Returns (exp(score - max_score) of scores [h, N], 0 at padding; max_score [S, h], without gradient)."""
        scores = jnp.where(self.segments.real, scores, -jnp.inf).T
        max_score = lax.stop_gradient(self.segments.max(scores))
        exp_scores = exponential(scores, self.segments.expand_to_tokens(max_score))
        return self.fill_padding(exp_scores.T), max_score[: self.number]

    def all_reduce_softmax(self, max_score, numerator):
        """Returns its arguments unchanged: packed tokens are never sharded."""
        return max_score, numerator

    def softmax(self, queries, multiplier=None, has_query=None, bias=None):
        """Averages the tokens of each segment under the softmax of their products with queries [h, d], or [S, h, d].

        Args:
          queries: in the computing dtype ``dtype``, multiplied by the scale.
          multiplier: [h, N], multiplied with the weights before the average, or None.
          has_query: bool [S], or None; False for a segment without a query: its scores are 0, even for NaN tokens,
            except that with "tiles" on TPUs, if x exceeds ``tiling.WHOLE`` bytes, NaN tokens have NaN.
          bias: [h, N], added to the products, or None.

        Returns:
          (pooled [S, h, d], weights [h, N]); both are 0 for a fully masked segment.
        """
        return self._softmax_averages(*self._softmax(queries, multiplier, has_query, bias))

    def _softmax(self, queries, multiplier, has_query, bias):
        """Returns (scores [N, h], :class:`OnlineSoftmax` of the segments); arguments as in :meth:`softmax`."""
        queries = queries[None] if queries.ndim == 2 else self._at_least_one(queries)
        has_query = None if has_query is None else self._at_least_one(has_query)
        multiplier, bias = (None if array is None else array.T for array in (multiplier, bias))
        x, has_query, queries, multiplier, bias = unify_varying(self.x, has_query, queries, multiplier, bias)
        arrays = x, self.segments, has_query, queries, multiplier, bias
        if self.requested == KERNEL:
            raise KernelRefusal(
                '`implementation` is \'pallas\', whose kernels take no packed tokens; pass None, "einsum" or "tiles"'
            )
        kernels = packed_softmax.tiled, packed_softmax.plain
        return by_implementation(self.requested, *kernels, arrays, self.precision)

    def _softmax_averages(self, scores, state):
        """Returns (pooled [S, h, d], weights [h, N]) from scores [N, h] and the segments' :class:`OnlineSoftmax`."""
        denominator = self.segments.expand_to_tokens(jnp.where(state.denominator == 0, 1, state.denominator))
        weights = exponential(scores, self.segments.expand_to_tokens(state.max_score)) / denominator
        weights = jnp.where(scores == -jnp.inf, 0, weights)  # NaN of a real token must not reach padding
        return state.finalize()[: self.number], weights.T

    def perceptron(self, kernel, bias, out_kernel, activation):
        """Scores each token by a perceptron with one hidden layer; the arguments are those of :func:`perceptron.plain`.

        Returns:
          (n scores of each token [n, N], tokens). Later reductions must read the returned :class:`Packed`: the gradient
          through the scores is added to their gradient of x, so no second array of the size of x is needed.
        """
        after, arrays = copy.copy(self), unify_varying(self.x, self.segments.real, kernel, bias, out_kernel)
        kernels = perceptron.tiled, perceptron.with_tokens(perceptron.plain)
        scores, after.x = by_implementation(self.requested, *kernels, arrays, activation, self.precision, True)
        return scores.T, after

    def softmax_of_scores(self, scores):
        """Averages the tokens under the softmax of given scores [h, N]; returns what :meth:`softmax` returns."""
        state = packed_softmax.state_of_products(scores.T, self.segments, self._weighted_sums)
        return self._softmax_averages(*state)

    def softmax_with_weight_sums(self, queries, multiplier=None, bias=None):
        """Computes :meth:`softmax`, and the sums [S, h] of the weights after the multiplier."""
        scores, state = self._softmax(queries, multiplier, None, bias)
        pooled, weights = self._softmax_averages(scores, state)
        if multiplier is None:
            return pooled, weights, weight_sums(state)[: self.number]
        return pooled, weights, self.sum_over_tokens(weights * self.fill_padding(multiplier))

    def weighted_sums(self, queries, normalize, offsets=None, bias=None, multiplier=None):
        """Sums the tokens under weights that are not those of a softmax, as :meth:`.Dense.weighted_sums`.

        ``queries`` is [h, d] or [S, h, d], ``offsets`` is [h] or [S, h], and other arrays are [h, N]. ``normalize``
        must be elementwise.
        """
        log_dispatch("einsum")
        queries = queries[None] if queries.ndim == 2 else self._at_least_one(queries)
        scores = packed_softmax.plain_scores(self.x, self.segments, queries, self.precision).T
        if offsets is not None:
            of_tokens = self.expand_to_tokens(offsets).T if offsets.ndim == 2 else offsets[:, None]
            scores = scores + jnp.broadcast_to(of_tokens, scores.shape)
        if bias is not None:
            scores = scores + self.fill_padding(bias)
        weights = normalize(scores, self.segments.real[None])
        applied = weights if multiplier is None else weights * self.fill_padding(multiplier)
        pooled = packed_sums.plain_sums(self.x, self.segments, applied.T)[: self.number]
        return pooled, weights, self.sum_over_tokens(applied)

    def cross_softmax(self, other, scale, mean):
        """Returns None: there is no loop over two packed sequences at once."""
        del other, scale, mean

    def max(self):
        """Computes the max over real tokens of each feature: [S, d]; 0 for a fully masked segment."""
        return self._extreme(False)

    def min(self):
        """Computes the min over real tokens of each feature: [S, d]; 0 for a fully masked segment."""
        return 0 - self._extreme(True)

    def _extreme(self, least):
        kernels = packed_sums.tiled_max, packed_sums.plain_max
        extreme = by_implementation(self.requested, *kernels, (self.x, self.segments), least)
        extreme = extreme.astype(self.dtype)[: self.number]
        return jnp.where(self.has_real_token()[:, None], extreme, 0)

    def end_token(self, last):
        """Returns the last real token of each segment, or the first if not ``last``: [S, d]; 0 if fully masked."""
        sign = 1 if last else -1
        length = self.x.shape[0]
        if not length:
            return jnp.zeros((self.number, self.x.shape[1]), self.x.dtype)
        place = jnp.where(self.segments.real, sign * jnp.arange(length, dtype=jnp.int32), -length)
        found = self.segments.max(place)[: self.number]
        token = at(self.x, jnp.clip(sign * found, 0, length - 1))
        return jnp.where(self.has_real_token()[:, None], token, 0)

    def has_real_token(self):
        """Returns bool [S]: whether a segment has a real token."""
        return self.sum_over_tokens(self.segments.real.astype(jnp.int32)) > 0

    def fill_padding(self, weights):
        """Sets weights [N] or [h, N] to 0 at padding."""
        return jnp.where(self.segments.real, weights, 0)

    def sum_over_tokens(self, weights):
        """Sums weights [N] or [h, N], 0 at padding, over the tokens of each segment: [S], or [S, h]."""
        return self.segments.sum(weights.T)[: self.number]

    def max_over_tokens(self, weights):
        """Computes the maximum of [N] over the tokens of each segment, at least 0: [S]."""
        return jnp.maximum(self.segments.max(self.fill_padding(weights)), 0)[: self.number]

    def expand_to_tokens(self, values):
        """Expands values of segments [S] to their tokens [N]; arbitrary at padding."""
        return self.segments.expand_to_tokens(self._at_least_one(values))

    def _at_least_one(self, values):
        """Returns the values [S, ...] unchanged; zeros [1, ...] if S is 0, because indexing needs a segment."""
        return values if self.number else jnp.zeros((1, *values.shape[1:]), values.dtype)

    def weighted_sums_of_scores(self, scores, normalize):
        """Returns (sums [S, h, d], weights [h, N]) of given scores; ``normalize`` as in :meth:`weighted_sums`."""
        weights = normalize(scores, self.segments.real[None])
        return self._weighted_sums(weights.T)[: self.number], weights

    def _weighted_sums(self, weights):
        """Sums tokens under weights [N, h]: [max(S, 1), h, d]."""
        x, weights = unify_varying(self.x, weights)
        return by_implementation(
            self.requested, packed_sums.tiled_sums, packed_sums.plain_sums, (x, self.segments, weights)
        )
