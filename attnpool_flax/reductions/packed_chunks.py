"""Packed tokens on TPUs: products with the rows of segments, one chunk of sorted tokens at a time.

A matrix unit multiplies all tokens of a chunk with the rows of several segments at once; of the products of a token only those
with its own segment are selected. Segments are in groups of consecutive numbers. A step of a loop takes one chunk and one
group that has tokens in it: with J chunks and G groups these are at most J + G - 1 pairs, whatever the sizes of the segments.
Unsorted tokens are gathered by row, one chunk at a time, in the order of their segments.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from attnpool_flax.reductions.dispatch import cast_varying, varying_axes
from attnpool_flax.reductions.narrow_products import is_narrow, raw_products, token_products, token_sums
from attnpool_flax.reductions.query_blocks import even_rows
from attnpool_flax.reductions.segment_sums import Segments, at

ROWS = 256
"""Rows of a group: it has as many segments as have so many rows together."""

GROUP = 128
"""The largest number of segments of a group."""

FEWEST, MOST = 512, 2**24
"""Smallest number of tokens of a chunk, and the largest number of bytes."""

REPEATED = 8
"""A chunk has 1/REPEATED of the tokens of an average group: so many are read twice, where groups meet inside of a chunk."""


class Chunks(NamedTuple):
    """Tokens in the order of their segments, and the pairs of a chunk of them and a group of segments.

    Attributes:
      x: [N, d], in any floating dtype, in the caller's order.
      segments: their segments.
      ids: [N], the segment of each token, ascending.
      order: [N], the place of each token of that order; None if they are sorted.
      pairs: int32 [steps, 3], for each pair: the first token that no earlier chunk has, the group's first segment, whether
        the pair is the first of its chunk.
      size: the number of tokens of a chunk.
      group: the number of segments of a group.
    """

    x: Any
    segments: Segments
    ids: Any
    order: Any
    pairs: Any
    size: int
    group: int

    def products(self, rows, precision):
        """Multiplies each token with rows [1, h, d], or [count, h, d] of its segment.

        Returns:
          (products [N, h], arbitrary at padding; whether the numbers of a token are finite, [N]: 0 times them is 0).
        """
        heads = rows.shape[1]
        if rows.shape[0] == 1:
            rows = jnp.concatenate([rows, jnp.zeros_like(rows[:, :1])], 1)
            found = raw_products(_exact(self.x)[None], self.segments.real, rows, precision, False)[0]
            return found[:, :-1], found[:, -1] == 0
        rows, nothing = self._rows(rows), jnp.zeros((1, rows.shape[2]), rows.dtype)
        real = self._sorted(self.segments.real[:, None])

        def step(carry, pair):
            (found, tile), (first, segment, new) = carry, pair
            start = self._start(first)
            own = jnp.concatenate([self._rows_of_group(rows, segment, heads), nothing])
            tokens = jnp.where(self._of_chunk(real, start)[0, :, None], self._tokens(start), 0)
            every = token_products(tokens, own[None], lax.Precision.HIGHEST)[0].T
            part = jnp.where(self._is_own(start, segment, heads), every[:-1], 0)
            part = jnp.sum(jnp.reshape(part, (self.group, heads, self.size)), 0)
            part = jnp.concatenate([part, every[-1:]])
            tile = jnp.where(new, part, tile + part)
            return (lax.dynamic_update_slice_in_dim(found, tile, start, 1), tile), None

        shapes = (heads + 1, self.x.shape[0]), (heads + 1, self.size)
        found = self._written(step, shapes, rows.dtype, rows)
        found = found.T if self.order is None else jnp.zeros_like(found.T).at[self.order].set(found.T)
        return found[:, :-1], found[:, -1] == 0

    def sums(self, weights, finite):
        """Sums tokens under weights [N, h]: [count, h, d].

        Args:
          weights: in the computing dtype.
          finite: bool [N]: a token that is not makes the sums of its segment NaN, and no other.
        """
        heads, width = weights.shape[1], self.x.shape[1]
        weights, finite = self._zeroed(weights, finite)
        weights, finite = self._sorted(weights), self._sorted(finite[:, None])
        overlaps = self.x.shape[0] % self.size != 0

        def step(total, pair):
            first, segment, _ = pair
            start = self._start(first)
            own = self._is_own(start, segment, heads)
            if overlaps:
                own = own & (start + lax.iota(jnp.int32, self.size) >= first)[None]
            applied = jnp.where(own, self._repeated(weights, start), 0)
            part = token_sums(applied.T[None], self._tokens(start), self._of_chunk(finite, start), lax.Precision.HIGHEST)[0]
            before = self._rows_of_group(total, segment, heads)
            return lax.dynamic_update_slice_in_dim(total, before + part, segment * heads, 0), None

        total = jnp.zeros((self._number_of_rows(heads), width), weights.dtype)
        total, _ = lax.scan(step, cast_varying(total, varying_axes(self.x)), self.pairs)
        return jnp.reshape(total, (-1, heads, width))[: self.segments.count]

    def total(self, weights, finite, precision):
        """Sums all tokens under weights [N, h]: [1, h, d]."""
        weights, finite = self._zeroed(weights, finite)
        return token_sums(weights[None], _exact(self.x)[None], finite[None], precision)

    def outer(self, weights, rows, other_weights, other_rows):
        """Computes ``dx`` [N, d], written once: weights [N, h] times rows of a token's segment, plus the others.

        Args:
          weights: in the computing dtype; ``other_weights`` are not finite where a row of a token's segment is not.
          rows: [count, h, d].
          other_weights: [N, h].
          other_rows: [1, h, d] or [count, h, d].
        """
        rows = jnp.where(jnp.isfinite(rows), rows, 0)  # NaN would reach the tokens of other segments
        weights = jnp.where(self.segments.real[:, None], weights, 0)
        shared = other_rows.shape[0] == 1
        if not shared:
            other_rows = jnp.where(jnp.isfinite(other_rows), other_rows, 0)
            weights, rows = jnp.concatenate([weights, other_weights], 1), jnp.concatenate([rows, other_rows], 1)
        heads, rows = rows.shape[1], self._rows(rows)
        weights, other_weights = self._sorted(weights), self._sorted(other_weights)
        precision = lax.Precision.HIGH if is_narrow(self.x) else lax.Precision.HIGHEST  # HIGH has at least 16 bits

        def step(carry, pair):
            (dx, tile), (first, segment, new) = carry, pair
            start = self._start(first)
            factors = self._rows_of_group(rows, segment, heads)
            applied = jnp.where(self._is_own(start, segment, heads), self._repeated(weights, start), 0)
            if shared:
                own = self._of_chunk(other_weights, start)
                own = jnp.where(self._is_own(start, segment, 1).any(0), own, 0)
                applied, factors = jnp.concatenate([applied, own]), jnp.concatenate([factors, other_rows[0]])
            part = jnp.einsum("rc,rd->cd", applied, factors, precision=precision).astype(self.x.dtype)
            tile = jnp.where(new, part, tile + part)
            if self.order is None:
                return (lax.dynamic_update_slice_in_dim(dx, tile, start, 0), tile), None
            places = lax.dynamic_slice_in_dim(self.order, start, self.size)
            return (dx.at[places].set(tile, mode="promise_in_bounds", unique_indices=True), tile), None

        shapes = self.x.shape, (self.size, self.x.shape[1])
        return self._written(step, shapes, self.x.dtype, weights, rows, other_rows)

    def _written(self, step, shapes, dtype, *arrays):
        """Returns the array that the steps write, each the tile of its chunk; all of it is written."""
        axes = frozenset().union(varying_axes(self.x), *map(varying_axes, arrays))
        start = lax.empty(shapes[0], dtype), jnp.zeros(shapes[1], dtype)
        (written, _), _ = lax.scan(step, tuple(cast_varying(array, axes) for array in start), self.pairs)
        return written

    def _zeroed(self, weights, finite):
        """Returns the weights, 0 at padding and NaN at real tokens that are not finite, and which tokens are summed."""
        real = self.segments.real
        weights = jnp.where((real & ~finite)[:, None], jnp.nan, weights)
        return jnp.where(real[:, None], weights, 0), real & finite

    def _start(self, first):
        """Returns the first token of a chunk: the last one starts early to be whole."""
        return jnp.minimum(first, self.x.shape[0] - self.size)

    def _tokens(self, start):
        """Takes the tokens [1, size, d] of a chunk."""
        if self.order is None:
            return _exact(lax.dynamic_slice_in_dim(self.x, start, self.size))[None]
        return _exact(at(self.x, lax.dynamic_slice_in_dim(self.order, start, self.size)))[None]

    def _sorted(self, values):
        """Puts values [N, h] of tokens into the order of the chunks: [h, N]."""
        return (values if self.order is None else at(values, self.order)).T

    def _of_chunk(self, values, start):
        """Takes the values [h, N] of a chunk: [h, size]."""
        return lax.dynamic_slice_in_dim(values, start, self.size, 1)

    def _is_own(self, start, segment, heads):
        """Returns bool [group * heads, size]: whether a row of a group belongs to a token's segment."""
        rows = lax.iota(jnp.int32, self.group * heads) // heads + segment
        return rows[:, None] == lax.dynamic_slice_in_dim(self.ids, start, self.size)[None]

    def _repeated(self, values, start):
        """Takes the values [h, N] of a chunk, repeated for each segment of a group: [group * h, size]."""
        values = self._of_chunk(values, start)
        repeated = jnp.broadcast_to(values[None], (self.group, *values.shape))
        return jnp.reshape(repeated, (self.group * values.shape[0], self.size))

    def _number_of_rows(self, heads):
        """Returns the rows of all groups, and of one more: that of pairs which are not needed."""
        return (-(-self.segments.count // self.group) + 1) * self.group * heads

    def _rows(self, values):
        """Puts the rows [count, h, d] of all segments one after another, and adds those of no segment."""
        count, heads, width = values.shape
        return jnp.pad(jnp.reshape(values, (-1, width)), ((0, self._number_of_rows(heads) - count * heads), (0, 0)))

    def _rows_of_group(self, rows, segment, heads):
        return lax.dynamic_slice_in_dim(rows, segment * heads, self.group * heads)


def chunks_of(x, segments, heads):
    """Returns the :class:`Chunks` of tokens [N, d], at least one, for products with so many rows of each segment."""
    length, width = x.shape
    group = max(1, min(GROUP, ROWS // heads, segments.count))
    groups = -(-segments.count // group)
    size = max(FEWEST, 2 ** max(0, (length // groups // REPEATED).bit_length() - 1))
    size = even_rows(max(1, min(length, size, MOST // (width * x.dtype.itemsize))), length)
    order = None if segments.ordered else jnp.argsort(segments.ids)
    ids = segments.ids if order is None else at(segments.ids, order)
    count = -(-length // size)
    first = lax.iota(jnp.int32, count) * size
    start = jnp.minimum(first, length - size)
    least, most = at(ids, start) // group, at(ids, start + size - 1) // group
    groups_of_chunk = most - least + 1
    steps = count + (groups - 1) * (2 if length % size else 1)  # the last chunk may repeat the groups of the one before
    chunk = jnp.repeat(lax.iota(jnp.int32, count), groups_of_chunk, total_repeat_length=steps)
    index = lax.iota(jnp.int32, steps) - at(jnp.cumsum(groups_of_chunk) - groups_of_chunk, chunk)
    own = at(least, chunk) + index
    own = jnp.where(own > at(most, chunk), groups, own)
    pairs = jnp.stack([at(first, chunk), own * group, (index == 0).astype(jnp.int32)], 1)
    return Chunks(x, segments, ids, order, pairs, size, group)


def _exact(tokens):
    """Returns float16 as float32: its few exponents would need a scale for each segment."""
    return tokens.astype(jnp.float32) if tokens.dtype == jnp.float16 else tokens
