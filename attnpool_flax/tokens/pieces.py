"""Every pooling once, for a piece of the tokens: all of them, a tile in the cache, one device's shard, a chunk.

A piece has verbs, and a pooling is a few lines on them. B are the examples of the piece, L its tokens, h queries. Packed
tokens have no axis B: values of tokens are [L, h], and sums over tokens are terms [L, ...], which the loop adds up by
segment.
"""

import functools
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import SymbolicZero

from attnpool_flax.numerics import platforms
from attnpool_flax.numerics.elementwise import keep_real
from attnpool_flax.numerics.products import Exact, einsum, factor_precision
from attnpool_flax.numerics.remat import saveable
from attnpool_flax.numerics.rounding import max_along_axis
from attnpool_flax.numerics.softmax import exponential
from attnpool_flax.numerics.sums import LONGEST, PART, summed, weighted, with_gradient_of
from attnpool_flax.tokens.protocol import dot
from attnpool_flax.tokens.segments import at
from attnpool_flax.tokens.states import AttentionState, MaxState

UNROLLED = 16
"""The largest number of heads whose sums of packed tokens are compiled apart; more are computed in a loop."""


class Piece:
    """Dense tokens [B or 1, L, d] with a mask [B, L] or None, and the verbs.

    Attributes:
      x: the tokens in the computing dtype, 0 at padding. Inside of a loop the copy costs nothing.
    """

    def __init__(self, x, real, precision, dtype):
        self.x, self.real, self.precision = keep_real(x.astype(dtype), real), real, factor_precision(precision)

    def dot(self, rows) -> Any:
        """Multiplies the tokens with rows [B or 1, h, d] of their examples: [B, L, h]. It is the adjoint of :meth:`pull`."""
        return self._products(self.x, rows)

    def _products(self, x, rows):
        if rows.shape[0] != 1:
            return _of_rows(x, rows, self.precision)
        (batch, length, width), heads = x.shape, rows.shape[1]
        rows = rows[0, 0] if heads == 1 else rows[0].T  # XLA multiplies by a vector faster than by one column
        flat = jnp.dot(jnp.reshape(x, (batch * length, width)), rows, precision=self.precision)
        return jnp.reshape(flat, (batch, length, heads))

    def pull(self, weights) -> Any:
        """Sums the tokens under weights [B, L, h], 0 at padding: [B, h, d]."""
        if weights.shape[0] != 1 or weights.shape[1] > LONGEST or self.x.shape[0] != 1:
            return weighted(jnp.swapaxes(weights, 1, 2), self.x, self.precision)
        heads = weights.shape[2]
        rows = weights[0, :, 0] if heads == 1 else weights[0].T
        pulled = jnp.dot(rows, self.x[0], precision=self.precision)
        return jnp.reshape(pulled, (1, heads, self.x.shape[2]))

    def sum(self, divisor) -> Any:
        """Sums the tokens, each divided by ``divisor``: [B, d]; as a product, which is faster in the cache than a sum."""
        batch = self.x.shape[0] if self.real is None else self.real.shape[0]
        ones = jnp.broadcast_to(1 / divisor, (batch, self.x.shape[1], 1)).astype(self.x.dtype)
        return self.pull(self.blank(ones, 0))[:, 0]

    def total(self, values) -> Any:
        """Sums values [B, L, ...], 0 at padding, over the tokens: [B, ...]."""
        return summed(values, 1, longest=PART)  # a million equal weights, in pieces of LONGEST, would drift

    def top(self, values) -> Any:
        """Returns the largest of values [B, L, h], -inf at padding: [B, h]; without gradient."""
        return jnp.max(lax.stop_gradient(values), 1, initial=-jnp.inf)

    def each(self, values) -> Any:
        """Expands values [B, ...] of examples to their tokens."""
        return values[:, None]

    def blank(self, values, fill) -> Any:
        """Replaces values [B, L, ...] at padding."""
        if self.real is None:
            return values
        return jnp.where(jnp.expand_dims(self.real, tuple(range(2, values.ndim))), values, fill)


class Whole(Piece):
    """All tokens at once: products read them as they came, without a masked copy. NaN at padding stays in its product."""

    def __init__(self, x, real, precision, dtype):
        super().__init__(x, real, precision, dtype)
        self.raw = x.astype(dtype)

    def dot(self, rows):
        """Multiplies the tokens with rows; NaN at padding reaches only products at padding."""
        if self.real is None:
            return self._products(self.x, rows)
        raw = self._products(lax.stop_gradient(self.raw), lax.stop_gradient(rows))  # arbitrary at padding
        return with_gradient_of(raw, self._products(self.x, rows))

    def _products(self, x, rows):
        return _of_rows(x, rows, self.precision)

    def sum(self, divisor):
        """Sums the tokens, each divided by ``divisor``: [B, d]."""
        return summed(self.x / divisor, 1)


class OnAccelerators(Whole):
    """All tokens at once, on an accelerator: products read bfloat16 tokens in their own dtype."""

    def __init__(self, x, real, precision, dtype):
        super().__init__(x, real, precision, dtype)
        self.original, self.narrow = x, x.dtype == jnp.bfloat16

    def _products(self, x, rows):
        def product(x, rows):
            return _of_rows(x, rows, Exact.LEFT if self.narrow else self.precision)

        def elementwise(x, rows):
            return jnp.sum(x * rows, -1, keepdims=True)

        return product(x, rows) if rows.shape[1] != 1 else platforms.in_one_kernel(product, elementwise, x, rows)

    def sum(self, divisor):
        """Sums the tokens, each divided by ``divisor``: [B, d]; a TPU sums bfloat16 tokens faster as a product."""
        return Piece.sum(self, divisor) if self.narrow else super().sum(divisor)

    def pull(self, weights):
        """Sums the tokens under weights [B, L, h], 0 at padding: [B, h, d]."""

        def product(weights, x):
            spec, x = ("blh,ld->bhd", x[0]) if x.shape[0] == 1 != weights.shape[0] else ("blh,bld->bhd", x)
            return einsum(spec, weights, x, Exact.RIGHT if self.narrow else self.precision)

        def elementwise(weights, x):
            return jnp.sum(weights * x, 1)[:, None]

        if weights.shape[2] != 1:
            return product(weights, self.x)
        return platforms.in_one_kernel(product, elementwise, weights, self.x)

    def has_examples_of(self, rows, *others):
        """Returns whether each example of several rows [B or 1, h, d], and of arrays [B, L, h] or None, has its own tokens."""
        sizes = {array.shape[0] for array in (rows, self.real, *others) if array is not None}
        return rows.shape[1] != 1 and sizes <= {1, self.x.shape[0]}


def _of_rows(x, rows, precision):
    """Multiplies tokens [B or 1, L, d] with rows [B or 1, h, d]: [B, L, h]."""
    if rows.shape[0] == 1:
        return einsum("bld,hd->blh", x, rows[0], precision)
    if x.shape[0] == 1:
        return einsum("ld,bhd->blh", x[0], rows, precision)
    return einsum("bld,bhd->blh", x, rows, precision)


class PackedPiece:
    """A run of packed tokens [L, d] with their segments; ``tops`` come from a pass before.

    Sums over tokens are terms of tokens, which the loop adds to the sums of their segments.

    Attributes:
      ids: [L], the segment of each token.
      real: bool [L], or None: the tokens are not masked.
      tops: [count, h], the largest scores of the segments, or None.
    """

    def __init__(self, x, ids, real, precision, dtype, tops=None):
        self.x = keep_real(x.astype(dtype), real)
        self.ids, self.real, self.tops, self.precision = ids, real, tops, factor_precision(precision)

    def dot(self, rows):
        """Multiplies the tokens with rows [1 or count, h, d] of their segments: [L, h]."""
        if rows.shape[0] == 1:
            return jnp.dot(self.x, rows[0].T, precision=self.precision)
        return jnp.einsum("ld,lhd->lh", self.x, at(rows, self.ids), precision=self.precision)

    def pull(self, weights):
        """Returns the tokens under weights [L, h]: [L, h, d]."""
        # as a product, whose derivatives are products: XLA's sums of a gathered row are slow on CPUs
        return jnp.einsum("lh,ld->lhd", weights, self.x, precision=self.precision)

    def total(self, values):
        """Returns values [L, ...], 0 at padding, as terms."""
        return values

    def largest(self, values):
        """Returns values [L, ...], -inf at padding, whose largest is taken."""
        return values

    def top(self, values):
        """Returns the largest scores of all tokens: [count, h]."""
        del values
        return self.tops

    def each(self, values):
        """Expands values [1 or count, ...] of segments to their tokens."""
        return values if values.shape[0] == 1 else at(values, self.ids)

    def blank(self, values, fill):
        """Replaces values [L, ...] at padding."""
        return jnp.where(jnp.expand_dims(self.real, tuple(range(1, values.ndim))), values, fill)


class WholePacked(PackedPiece):
    """All packed tokens at once; sums over tokens are those of their segments, of one head after another."""

    def __init__(self, x, segments, masked, precision, dtype, tops=None):
        super().__init__(x, segments.ids, segments.real if masked else None, precision, dtype, tops)
        self.segments = segments

    def dot(self, rows):
        """Multiplies the tokens with rows [1 or count, h, d] of their segments: [L, h]."""
        if rows.shape[0] == 1:
            return super().dot(rows)
        return jnp.stack([jnp.sum(self.x * at(rows[:, i], self.ids), 1) for i in range(rows.shape[1])], 1)

    def pull(self, weights):
        """Sums the tokens of each segment under weights [L, h]: [count, h, d]."""

        def of_head(weights):
            return self.segments.sum(weights[:, None] * self.x)

        if weights.shape[1] <= UNROLLED:
            return jnp.stack([of_head(weights[:, i]) for i in range(weights.shape[1])], 1)
        return jnp.swapaxes(lax.map(of_head, weights.T), 0, 1)

    def total(self, values):
        """Sums values [L, ...], 0 at padding, by segment: [count, ...]."""
        return self.segments.sum(values)

    def largest(self, values):
        """Returns the largest of values [L, ...], -inf at padding, of each segment: [count, ...]."""
        return self.segments.max(values)


# --------------------------------------------------------------------------------------------------------------
# Poolings of a piece: (values of its tokens, the state of its examples)


def masked_scores(piece, scores, bias):
    """Returns scores [B, L, h] plus a bias [B, L, h] or None; -inf at padding."""
    return piece.blank(saveable(scores) if bias is None else saveable(scores) + bias, -jnp.inf)


def softmax(piece, score, arrays=(), multiplier=None, bias=None):
    """Returns the average under the softmax of scores: (scores, :class:`AttentionState`, sums of the applied weights).

    The scores [B, L, h] are -inf at padding. The sums [B, h] are those of the weights times the multiplier, if there is one.

    Args:
      piece: the tokens.
      score: from the piece and the arrays to scores [B, L, h], arbitrary at padding.
      arrays: what the score takes besides the piece.
      multiplier: [B, L, h] of the weights in the sum (dropout), or None.
      bias: [B, L, h], added to the scores, or None.
    """
    if score is dot and isinstance(piece, OnAccelerators) and piece.has_examples_of(*arrays, multiplier, bias):
        return _softmax_of_products(piece.precision, piece.original, piece.real, *arrays, multiplier, bias)[:3]
    return _softmax_of_scores(piece, score(piece, *arrays), multiplier, bias)[:3]


def _softmax_of_scores(piece, scores, multiplier, bias):
    """Returns the results of :func:`softmax`, and the applied weights [B, L, h]."""
    scores = masked_scores(piece, scores, bias)
    top = piece.top(scores)
    weights = exponential(scores, piece.each(top))
    applied = weights if multiplier is None else weights * piece.blank(multiplier, 0)
    state = AttentionState(top, piece.total(weights), None, piece.pull(applied), None)
    return scores, state, None if multiplier is None else piece.total(applied), applied


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _softmax_of_products(precision, x, real, rows, multiplier, bias):
    """Computes :func:`_softmax_of_scores` of the tokens' products with rows, on accelerators.

    Its rule differs from JAX's in one way: both products of dx are computed by :func:`platforms.dot_and_pull`.
    """
    piece = OnAccelerators(x, real, precision, rows.dtype)
    return _softmax_of_scores(piece, piece.dot(rows), multiplier, bias)


@functools.partial(_softmax_of_products.defjvp, symbolic_zeros=True)
def _softmax_of_products_jvp(precision, primals, tangents):
    (x, real, rows, *others), (dx, _, drows, *dothers) = primals, tangents
    piece, dproducts, dsum = OnAccelerators(x, real, precision, rows.dtype), None, 0
    if not isinstance(dx, SymbolicZero):
        applied = _softmax_of_products(precision, *primals)[-1]
        dx = keep_real(dx.astype(rows.dtype), real)
        dproducts, dsum = platforms.dot_and_pull(dx, rows, applied, piece.precision)
    given, dgiven = (0 if dproducts is None else jnp.zeros_like(dproducts), rows, *others), (dproducts, drows, *dothers)
    moving = [i for i, own in enumerate(dgiven) if not (own is None or isinstance(own, SymbolicZero))]

    def of_moving(*some):
        own = dict(zip(moving, some, strict=True))
        moved, rows, *others = (own.get(i, array) for i, array in enumerate(given))
        return _softmax_of_scores(piece, piece.dot(rows) + moved, *others)

    results, (dscores, dstate, *dsums) = jax.jvp(of_moving, [given[i] for i in moving], [dgiven[i] for i in moving])
    return results, (dscores, replace(dstate, sum=dstate.sum + dsum), *dsums)


def weights_of(piece, scores, state):
    """Returns the weights [B, L, h] of scores, -inf at padding, under the state of all tokens."""
    total = jnp.where(state.total == 0, 1, state.total)
    weights = exponential(scores, piece.each(state.top)) / piece.each(total)
    return jnp.where(scores == -jnp.inf, 0, weights)  # NaN of a real token must not reach padding


def extremes(piece, least):
    """Returns ((), :class:`MaxState`) of dense tokens, of -x with ``least``; without gradient."""
    x = lax.stop_gradient(piece.x)
    values = piece.blank(-x if least else x, -jnp.inf)
    extreme = max_along_axis(values, 1)
    real = jnp.ones(x.shape[:2], bool) if piece.real is None else piece.real
    tied = real[..., None] & (values == extreme[:, None])
    return (), MaxState(extreme, jnp.sum(tied, 1, dtype=jnp.int32), jnp.any(real, 1))
