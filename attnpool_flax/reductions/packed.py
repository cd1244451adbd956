"""Tokens of many sequences that stand in one array, with the number of the segment of each."""

import copy
from typing import Any

import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.rounding import power_of_two
from attnpool_flax.reductions import packed_kernels as walks
from attnpool_flax.reductions import perceptron
from attnpool_flax.reductions.dispatch import log_dispatch, resolve, unify_varying
from attnpool_flax.reductions.segment_sums import at, segments_of
from attnpool_flax.reductions.softmax import SoftmaxState, finalize
from attnpool_flax.reductions.sums import computing


class Packed:
    """Tokens [N, d] in the caller's dtype, the segment numbers of each, their mask [N] or None, and how they are walked.

    Its methods are those of :class:`~attnpool_flax.reductions.dense.Dense`, with the segments as the examples: what one
    has is [S, ...], what a token has [N], or [h, N] of several queries.
    """

    axis_name = None
    """No mesh axis: packed tokens are not split."""

    def __init__(self, x, segment_ids, num_segments, mask, ordered, implementation, precision=None):
        self.x, self.requested, self.precision = x, implementation, precision
        self.dtype, self.number = computing(x.dtype), num_segments
        self.x, segment_ids, mask = unify_varying(x, segment_ids, mask)
        self.segments = segments_of(segment_ids, mask, num_segments, ordered)

    def sum(self, weights=None):
        """Returns [S, d]: the sums of the tokens under weights [N] or 1."""
        if weights is None:
            return self._sums(jnp.ones(self.x.shape[0], self.dtype), False)
        return self._sums(weights, True)

    def mean(self):
        """Returns [S, d]: the means of the real tokens; the terms of their sums are small enough not to overflow."""
        count = jnp.maximum(self.sum_over_tokens(self.segments.real.astype(jnp.int32)), 1).astype(self.dtype)
        part = 2 * power_of_two(count)
        return self._sums(self.expand_to_tokens(1 / part), False) / (count / part)[:, None]

    def zero_padded(self):
        """Returns the tokens in the computing dtype, padding as 0."""
        return jnp.where(self.segments.real[:, None], self.x.astype(self.dtype), 0)

    def minus(self, origin):
        """Returns the tokens minus an origin [d], in the computing dtype; padding holds anything."""
        other = copy.copy(self)
        other.x = self.x.astype(self.dtype) - origin[None]
        return other

    def exp_scores(self, logs):
        """Returns (exp(log - top), 0 at padding, of logs [h, N]; top [S, h], the largest real one, a constant)."""
        logs = jnp.where(self.segments.real, logs, -jnp.inf).T
        top = lax.stop_gradient(self.segments.max(logs))
        return self.fill_padding(walks.exponential(logs, self.segments.expand_to_tokens(top)).T), top[: self.number]

    def all_reduce_softmax(self, top, sums):
        """Returns its arguments unchanged: packed tokens are never sharded."""
        return top, sums

    def softmax(self, queries, multiplier=None, scored=None, bias=None):
        """Averages under the softmax of the products with queries [h, d], or [S, h, d].

        Args:
          queries: in the computing dtype, scaled.
          multiplier: [h, N] of the weights that are averaged under, or None.
          scored: bool [S], or None: where it is False, all scores are 0, whatever the tokens hold.
          bias: [h, N], added to the products, or None.

        Returns:
          (pooled [S, h, d], weights [h, N]).
        """
        queries = queries[None] if queries.ndim == 2 else self._known(queries)
        scored = None if scored is None else self._known(scored)
        multiplier, bias = (None if array is None else array.T for array in (multiplier, bias))
        x, scored, queries, multiplier, bias = unify_varying(self.x, scored, queries, multiplier, bias)
        walk: Any = walks.tiled_softmax if self._tiles() else walks.plain_softmax
        scores, state = walk(x, self.segments, scored, queries, multiplier, bias, self.precision)
        return self._softmax_averages(scores, state)

    def _softmax_averages(self, scores, state):
        """Returns (pooled [S, h, d], weights [h, N]) of scores [N, h] and their state."""
        total = self.segments.expand_to_tokens(jnp.where(state.total == 0, 1, state.total))
        weights = walks.exponential(scores, self.segments.expand_to_tokens(state.top)) / total
        weights = jnp.where(scores == -jnp.inf, 0, weights)  # a real NaN stays out of the padding
        return finalize(state)[: self.number], weights.T

    def perceptron(self, kernel, bias, out_kernel, activation):
        """Returns (scores [h, N] of each token by itself, as :func:`hidden.plain` says, tokens to go on with)."""
        after, arrays = copy.copy(self), unify_varying(self.x, self.segments.real, kernel, bias, out_kernel)
        walk: Any = perceptron.tiled
        if self._tiles():
            scores, after.x = walk(*arrays, activation, self.precision, True)
        else:
            walk = perceptron.plain
            scores = walk(*arrays, activation, self.precision)
        return scores.T, after

    def softmax_of_scores(self, scores):
        """Computes :meth:`softmax` of given scores [h, N]."""
        scores, top, heights, _ = walks.heights_of(scores.T, self.segments, None, None)
        return self._softmax_averages(
            scores, SoftmaxState(top, self.segments.sum(heights), self._totals(heights, True))
        )

    def softmax_with_weight_sums(self, queries, multiplier=None, bias=None):
        """Computes :meth:`softmax`, and the sums [S, h] of the applied weights."""
        pooled, weights = self.softmax(queries, multiplier, bias=bias)
        return (
            pooled,
            weights,
            self.sum_over_tokens(weights if multiplier is None else weights * self.fill_padding(multiplier)),
        )

    def weighted_sums(self, queries, normalize, offsets=None, bias=None, multiplier=None):
        """Computes weighted sums as dense tokens do: queries [h, d] or [S, h, d], offsets [h] or [S, h], others [h, N].

        ``normalize`` looks at each score by itself.
        """
        log_dispatch("einsum")
        queries = queries[None] if queries.ndim == 2 else self._known(queries)
        scores = walks.plain_scores(self.x, self.segments, queries, self.precision).T
        if offsets is not None:
            each = self.segments.expand_to_tokens(self._known(offsets)).T if offsets.ndim == 2 else offsets[:, None]
            scores = scores + jnp.broadcast_to(each, scores.shape)
        if bias is not None:
            scores = scores + self.fill_padding(bias)
        weights = normalize(scores, self.segments.real[None])
        taken = weights if multiplier is None else weights * self.fill_padding(multiplier)
        pooled = walks.plain_sums(self.x, self.segments, taken.T)[: self.number]
        return pooled, weights, self.sum_over_tokens(taken)

    def cross_softmax(self, other, scale, mean):
        """Returns None: no loop takes two packed sequences at once."""
        del other, scale, mean

    def max(self):
        """Returns [S, d]: the largest real value of each feature, 0 where nothing is real."""
        return self._extreme(False)

    def min(self):
        """Returns [S, d]: the smallest real value of each feature, 0 where nothing is real."""
        return 0 - self._extreme(True)

    def _extreme(self, least):
        walk: Any = walks.tiled_largest if self._tiles() else walks.plain_largest
        top = walk(self.x, self.segments, least).astype(self.dtype)[: self.number]
        return jnp.where(self.has_real_token()[:, None], top, 0)

    def first(self):
        """Returns [S, d]: the first real token of each segment, 0 where nothing is real."""
        return self._token(-1)

    def last(self):
        """Returns [S, d]: the last real token of each segment, 0 where nothing is real."""
        return self._token(1)

    def _token(self, sign):
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
        """Zeroes the weights [N] or [h, N] of padding."""
        return jnp.where(self.segments.real, weights, 0)

    def sum_over_tokens(self, weights):
        """Sums weights [N] or [h, N] over the tokens of each segment: [S], or [S, h]."""
        return self.segments.sum(weights.T)[: self.number]

    def max_over_tokens(self, weights):
        """Computes the max over the tokens of each segment of [N], at least 0: [S]."""
        return jnp.maximum(self.segments.max(self.fill_padding(weights)), 0)[: self.number]

    def expand_to_tokens(self, values):
        """Expands values of segments [S] to their tokens [N]."""
        return self.segments.expand_to_tokens(self._known(values))

    def _known(self, values):
        """Returns the values of each segment; zeros for one segment if there is none."""
        return values if self.number else jnp.zeros((1, *values.shape[1:]), values.dtype)

    def weighted_sums_of_scores(self, scores, normalize):
        """Returns (sums [S, h, d], weights [h, N]) under given scores; ``normalize`` as in :meth:`weighed`."""
        weights = normalize(scores, self.segments.real[None])
        return self._totals(weights.T, True)[: self.number], weights

    def _sums(self, weights, learned):
        return self._totals(weights[:, None], learned)[: self.number, 0]

    def _totals(self, weights, learned):
        """Returns [count, h, d]: the sums of the tokens under weights [N, h]."""
        x, weights = unify_varying(self.x, weights)
        if self._tiles():
            return walks.tiled_sums(x, self.segments, weights, learned)
        return walks.plain_sums(x, self.segments, weights)

    def _tiles(self):
        return resolve(self.requested, self.x) == "tiles"
