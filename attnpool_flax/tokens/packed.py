"""Packed tokens: many sequences one after another, with the segment number of each token, and their reductions."""

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics import platforms
from attnpool_flax.numerics.platforms import unify_varying
from attnpool_flax.numerics.remat import remat
from attnpool_flax.numerics.softmax import share_beside_sink
from attnpool_flax.numerics.sums import computing_dtype, divisor_of, with_gradient_of
from attnpool_flax.tokens.channels import PackedChannels
from attnpool_flax.tokens.pieces import PackedPiece, WholePacked, masked_scores, softmax, weights_of
from attnpool_flax.tokens.protocol import Tokens, given, times_share
from attnpool_flax.tokens.segments import at, segments_of
from attnpool_flax.tokens.states import AttentionState
from attnpool_flax.tokens.tiles import over_runs, run_of, unless_differentiated


class Packed(Tokens):
    """Packed tokens [N, d] in the caller's dtype, with their segments and their mask.

    Methods without a docstring have that of :class:`~attnpool_flax.tokens.protocol.Tokens`, which says their shapes.
    ``ordered`` says that the segment ids never decrease.
    """

    axis_name = None
    """None: packed tokens are not sharded over a mesh."""

    def __init__(self, x, segment_ids, num_segments, mask, ordered, precision=None):
        self.precision, self.dtype, self.number = precision, computing_dtype(x.dtype), num_segments
        self.x, segment_ids, mask = unify_varying(x, segment_ids, mask)
        self.segments = segments_of(segment_ids, mask, num_segments, ordered)

    # ----------------------------------------------------------------------------------------------------------
    # Softmax

    def softmax_of(self, score, examples=(), shared=(), tokens=(), multiplier=None, bias=None, sink=None):
        scores, state, applied = self._softmax(score, examples, shared, tokens, multiplier, bias)
        whole = PackedPiece(jnp.zeros((1, 1)), self.segments.ids, self.segments.real, None, self.dtype)
        weights, nonzero = weights_of(whole, scores, state), jnp.where(state.total == 0, 1, state.total)
        if applied is None:
            sums = lax.stop_gradient(state.total) / lax.stop_gradient(nonzero)
        else:
            sums = applied / nonzero
        pooled, weights = state.finalized(), weights.T
        if sink is not None:
            sink = sink[None] if sink.ndim == 1 else self._at_least_one(sink)
            share = share_beside_sink(state.top, state.total, sink)
            pooled, weights, sums = times_share(share, pooled, weights, at(share, self.segments.ids).T, sums)
        return pooled[: self.number], weights, sums[: self.number]

    def _softmax(self, score, examples=(), shared=(), tokens=(), multiplier=None, bias=None):
        """Returns (scores [N, h], :class:`AttentionState` [count, ...], the sums of the applied weights or None).

        The scores come first, without gradient, because a segment's largest score is needed before its sums. The loop
        computes them again only for gradients.
        """
        arrays = tokens, examples, shared
        constant = self._raw_scores(score, *arrays)
        raised = constant if bias is None else constant + bias
        top = self.segments.max(lax.stop_gradient(jnp.where(self.segments.real, raised, -jnp.inf)).T)

        def body(piece, constant, multiplier, bias, *arrays):
            def known(piece):
                return with_gradient_of(constant, score(piece, *arrays))

            scores, state, applied = softmax(piece, known, (), multiplier, bias)
            return scores, (state.total, state.sum, applied)

        of_tokens = constant, multiplier, bias, *tokens
        scores, (total, pooled, applied) = self._over(body, of_tokens, examples, shared, tops=top)
        return scores, AttentionState(top, total, None, pooled, None), applied

    def _raw_scores(self, score, tokens, examples, shared):
        """Returns the scores [h, N] of the tokens as they came, without gradient; arbitrary at padding."""

        def body(piece, *arrays):
            return score(piece, *arrays), ()

        constants = jax.tree.map(
            lambda a: lax.stop_gradient(a) if isinstance(a, jax.Array) else a, (tokens, examples, shared)
        )
        one_product = self.x.dtype == self.dtype and not shared and all(array.ndim == own for array, own in examples)
        raw = self._with(lax.stop_gradient(self.x))
        return lax.stop_gradient(raw._over(body, *constants, masked=False, in_place=one_product)[0]).T

    def scores_of(self, score, examples=(), shared=(), bias=None):
        def body(piece, bias, *arrays):
            return masked_scores(piece, score(piece, *arrays), bias), ()

        return self._over(body, (bias,), examples, shared)[0].T

    def softmax_sums(self, scores):
        _, state, _ = self._softmax(given, tokens=(scores,))
        return state.top[: self.number], state.sum[: self.number]

    # ----------------------------------------------------------------------------------------------------------
    # Sums and means

    def sum(self):
        return self._sum(None)[: self.number]

    def mean(self):
        """Averages each segment's real tokens: [S, d]; 0 if fully masked. Terms are divided first to avoid overflow."""
        count = jnp.maximum(self.segments.counts(), 1).astype(self.dtype)
        divisor = divisor_of(count)
        return (self._sum(1 / divisor) / (count / divisor)[:, None])[: self.number]

    def _sum(self, factor):
        """Sums the real tokens of each segment, multiplied by ``factor`` [count], if it is not None: [count, d]."""

        def body(piece, *factors):
            return (), piece.total(piece.x * piece.each(factors[0]) if factors else piece.x)

        def plain(x, segments, *factors):
            x = jnp.where(segments.real[:, None], x.astype(self.dtype), 0)
            return segments.sum(x * at(factors[0], segments.ids) if factors else x)

        factors = [] if factor is None else [factor[:, None]]
        constant = self._with(lax.stop_gradient(self.x))._over(body, examples=[(own, 1) for own in factors])[1]
        # the gradient of whole tokens is one expression, which XLA adds to that of a loop in one write
        return with_gradient_of(constant, remat(plain)(self.x, self.segments, *factors))

    def weighted_sums_of(self, weights):
        def body(piece, weights):
            return (), piece.pull(piece.blank(weights, 0))

        return self._over(body, (weights,))[1][: self.number]

    def sums_under(self, scores, normalize, multiplier=None):
        weights = normalize(scores, self.segments.real[None])
        applied = weights if multiplier is None else weights * self.fill_padding(multiplier)
        return self.weighted_sums_of(applied), weights, self.segments.sum(applied.T)[: self.number]

    def sum_of_map(self, function, width, *parameters):
        def body(piece, *parameters):
            return (), piece.total(piece.blank(function(piece.x, *parameters), 0))

        return self._over(body, shared=parameters, width=width)[1][: self.number]

    def channels(self):
        return PackedChannels(self.x, self.segments, self.number)

    # ----------------------------------------------------------------------------------------------------------
    # Max, min, first and last

    def max(self):
        return self._extreme(False)

    def min(self):
        return 0 - self._extreme(True)

    def _extreme(self, least):
        def signed(x):
            return -x if least else x

        def largest(piece):
            return (), piece.largest(piece.blank(signed(piece.x), -jnp.inf))

        def ties(piece, extreme):
            tied = piece.blank(signed(piece.x) == piece.each(extreme), False)
            return (), (piece.total(jnp.where(tied, signed(piece.x), 0)), piece.total(tied.astype(jnp.int32)))

        constant = self._with(lax.stop_gradient(self.x))
        extreme = constant._over(largest, largest=True)[1]
        # without a gradient XLA removes the loop over the ties
        total, count = self._over(ties, examples=[(extreme, 1)])[1]
        some = (self.segments.counts() > 0)[:, None]
        share = total / jnp.maximum(count, 1).astype(total.dtype)
        return with_gradient_of(jnp.where(some, extreme, 0), share)[: self.number]

    def end_token(self, last):
        sign = 1 if last else -1
        length = self.x.shape[0]
        if not length:
            return jnp.zeros((self.number, self.x.shape[1]), self.x.dtype)
        place = jnp.where(self.segments.real, sign * jnp.arange(length, dtype=jnp.int32), -length)
        found = self.segments.max(place)[: self.number]
        token = at(self.x, jnp.clip(sign * found, 0, length - 1))
        return jnp.where(self.has_real_token()[:, None], token, 0)

    # ----------------------------------------------------------------------------------------------------------
    # Tokens and padding

    def zero_padded(self):
        return jnp.where(self.segments.real[:, None], self.x.astype(self.dtype), 0)

    def has_real_token(self):
        return self.segments.counts()[: self.number] > 0

    def fill_padding(self, weights):
        return jnp.where(self.segments.real, weights, 0)

    # ----------------------------------------------------------------------------------------------------------
    # Pieces

    def _over(
        self,
        body,
        tokens=(),
        examples=(),
        shared=(),
        *,
        tops=None,
        largest=False,
        width=None,
        masked=True,
        in_place=False,
    ):
        """Computes ``body(piece, *tokens, *examples, *shared)``, a pair (values of tokens, terms of tokens).

        On CPUs it loops over runs of many tokens (:func:`over_runs`).

        Args:
          body: from a :class:`PackedPiece` and the arrays of its tokens and of all segments to (a tree [L, ...], a tree of
            terms [L, ...], 0 at padding). It closes over no traced array.
          tokens: arrays [h, N], which the body gets as [L, h]; or None.
          examples: pairs (array [S, own axes], or shared [own axes], the number of its own axes), which the body gets as
            [count or 1, own axes].
          shared: arrays that all segments share.
          tops: the largest scores of the segments [count, h] for the piece, or None.
          largest: whether the largest terms are taken, -inf at padding, in place of their sums.
          width: the number of array elements that the body holds for one token; None is that of a term.
          masked: whether the piece has 0 at padding, not the tokens as they came.
          in_place: whether the body only multiplies tokens by one matrix, which reads them in place: no loop.

        Returns:
          (values [N, ...], a tree of sums [count, ...]).
        """
        tokens = [None if array is None else array.T for array in tokens]
        of_segments = [array[None] if array.ndim == own else self._at_least_one(array) for array, own in examples]
        x, tops, *arrays = unify_varying(self.x, tops, *tokens, *of_segments, *shared)
        count = len(tokens)

        def whole(x, segments, tops, *arrays):
            return body(WholePacked(x, segments, masked, self.precision, self.dtype, tops), *arrays)

        def tiled(x, segments, tops, *arrays):
            def piece(ids, real, x, *own):
                run = PackedPiece(x, ids, real if masked else None, self.precision, self.dtype, tops)
                return body(run, *own, *arrays[count:])

            return over_runs(piece, segments, (x, *arrays[:count]), run, largest)

        _, sums = jax.eval_shape(whole, x, self.segments, tops, *arrays)
        heads = max((leaf.shape[1] for leaf in jax.tree.leaves(sums) if leaf.ndim == 3), default=1)
        run = run_of(x, max(1, heads, -(-(width or 0) // max(1, x.shape[1]))))
        if run is None or in_place:
            return remat(whole)(x, self.segments, tops, *arrays)
        looped = whole if platforms.may_be_split(x) else unless_differentiated(tiled, tiled)
        return platforms.by_pieces(looped, remat(whole), x, self.segments, tops, *arrays)

    def _with(self, x):
        """Returns a copy of this object with other tokens, whose segments are the same."""
        other = self.with_values(x)
        other.dtype = self.dtype
        return other

    def _at_least_one(self, values):
        """Returns the values [S, ...] unchanged; zeros [1, ...] if S is 0, because indexing needs a segment."""
        return values if self.number else jnp.zeros((1, *values.shape[1:]), values.dtype)
