"""Tokens of many sequences that stand in one array, with the number of the segment of each."""

import functools
from typing import Any

import jax.numpy as jnp

from attnpool_flax.reductions import packed_walks as walks
from attnpool_flax.reductions.implementations import alike, chosen
from attnpool_flax.reductions.segments import at, segments_of
from attnpool_flax.reductions.softmax import finalize
from attnpool_flax.reductions.sums import computing
from attnpool_flax.rounding import power_of_two


class Packed:
    """Tokens [N, d] in the caller's dtype, the segment numbers of each, their mask [N] or None, and how they are walked.

    Its methods are those of :class:`~attnpool_flax.reductions.dense.Dense`, with the segments as the examples: what one
    has is [S, ...], what a token has [N], or [h, N] of several queries.
    """

    axis_name = None
    """No mesh axis: packed tokens are not split."""

    def __init__(self, x, segment_ids, num_segments, mask, ordered, implementation, precision=None):
        self.x, self.asked, self.precision = x, implementation, precision
        self.dtype, self.number = computing(x.dtype), num_segments
        self.x, segment_ids, mask = alike(x, segment_ids, mask)
        self.segments = segments_of(segment_ids, mask, num_segments, ordered)

    def total(self, weights=None):
        """[S, d]: the sums of the tokens under weights [N] or 1."""
        if weights is None:
            return self._sums(jnp.ones(self.x.shape[0], self.dtype), False)
        return self._sums(weights, True)

    def mean(self):
        """[S, d]: the means of the real tokens; the terms of their sums are small enough not to overflow."""
        count = jnp.maximum(self.sum_of(self.segments.real.astype(jnp.int32)), 1).astype(self.dtype)
        part = 2 * power_of_two(count)
        return self._sums(self.each(1 / part), False) / (count / part)[:, None]

    def softmax(self, queries, multiplier=None, scored=None):
        """Averages under the softmax of the products with queries [h, d], or [S, h, d].

        Args:
          queries: in the computing dtype, scaled.
          multiplier: [h, N] of the weights that are averaged under, or None.
          scored: bool [S], or None: where it is False, all scores are 0, whatever the tokens hold.

        Returns:
          (pooled [S, h, d], weights [h, N]).
        """
        queries = queries[None] if queries.ndim == 2 else self._known(queries)
        scored = None if scored is None else self._known(scored)
        multiplier = None if multiplier is None else multiplier.T
        x, scored, queries, multiplier = alike(self.x, scored, queries, multiplier)
        walk: Any = walks.tiled_softmax if self._tiles() else walks.plain_softmax
        scores, state = walk(x, self.segments, scored, queries, multiplier, self.precision)
        total = self.segments.each(jnp.where(state.total == 0, 1, state.total))
        weights = walks.exponential(scores, self.segments.each(state.top)) / total
        weights = jnp.where(scores == -jnp.inf, 0, weights)  # a real NaN stays out of the padding
        return finalize(state)[: self.number], weights.T

    def softmax_with_shares(self, queries, multiplier=None):
        """As :meth:`softmax`, with [S, h]: what the weights that are averaged under sum to."""
        pooled, weights = self.softmax(queries, multiplier)
        return pooled, weights, self.sum_of(weights if multiplier is None else weights * self.kept(multiplier))

    def beside(self, other, scale, mean):
        """None: no walk takes two packed sequences at once."""
        del other, scale, mean

    def largest(self):
        """[S, d]: the largest real value of each feature, 0 where nothing is real."""
        return self._extreme(False)

    def smallest(self):
        """[S, d]: the smallest real value of each feature, 0 where nothing is real."""
        return 0 - self._extreme(True)

    def _extreme(self, least):
        walk: Any = walks.tiled_largest if self._tiles() else walks.plain_largest
        top = walk(self.x, self.segments, least).astype(self.dtype)[: self.number]
        return jnp.where(self.real()[:, None], top, 0)

    def first(self):
        """[S, d]: the first real token of each segment, 0 where nothing is real."""
        return self._token(-1)

    def last(self):
        """[S, d]: the last real token of each segment, 0 where nothing is real."""
        return self._token(1)

    def _token(self, sign):
        length = self.x.shape[0]
        if not length:
            return jnp.zeros((self.number, self.x.shape[1]), self.x.dtype)
        place = jnp.where(self.segments.real, sign * jnp.arange(length, dtype=jnp.int32), -length)
        found = self.segments.largest(place)[: self.number]
        token = at(self.x, jnp.clip(sign * found, 0, length - 1))
        return jnp.where(self.real()[:, None], token, 0)

    def real(self):
        """Bool [S]: which segments have any real token."""
        return self.sum_of(self.segments.real.astype(jnp.int32)) > 0

    def kept(self, weights):
        """Weights [N] or [h, N] with those of padding as 0."""
        return jnp.where(self.segments.real, weights, 0)

    def sum_of(self, weights):
        """[S], or [S, h]: the sums of what a token has, [N] or [h, N]."""
        return self.segments.total(weights.T)[: self.number]

    def most_of(self, weights):
        """[S]: the largest of what a token has, [N]; 0 where nothing is."""
        return jnp.maximum(self.segments.largest(self.kept(weights)), 0)[: self.number]

    def each(self, values):
        """[N]: what the token's segment has, [S]."""
        return self.segments.each(self._known(values))

    def _known(self, values):
        """What each segment has; of one without tokens where there is none."""
        return values if self.number else jnp.zeros((1, *values.shape[1:]), values.dtype)

    def _sums(self, weights, learned):
        x, weights = alike(self.x, weights[:, None])
        tiled = functools.partial(walks.tiled_sums, learned=learned)
        sums = (tiled if self._tiles() else walks.plain_sums)(x, self.segments, weights)
        return sums[: self.number, 0]

    def _tiles(self):
        return chosen(self.asked, self.x) == "tiles"
