"""Packed tokens on GPUs: slots of consecutive tokens of one segment, gathered, multiplied and summed in one kernel.

N are the tokens, h queries, d features, count segments. A slot never has tokens of two segments, so NaN stays in its
own segment. For unsorted tokens the gather reads through :attr:`Slots.order`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.products import raw_products
from attnpool_flax.numerics.sums import LONGEST
from attnpool_flax.reductions.packed.segments import Segments, at, consecutive_slots, segments_of

LEAST = 128
"""The smallest :attr:`Slots.size`; the largest is LONGEST, up to which a plain sum does not drift."""


class Slots(NamedTuple):
    """Tokens, divided into slots of one segment each.

    The slots divide the tokens in the order of their segments.

    Attributes:
      x: [N, d], in any floating dtype, in the caller's order.
      segments: the segments of the tokens.
      order: [N], for each place in the order of the segments, the index of its token; None if the tokens are sorted.
      start: [slots], the place of a slot's first token in that order.
      end: [slots], the place behind the last token of the slot's segment.
      owner: [slots], the segment of a slot.
      size: the largest number of tokens of a slot.
    """

    x: Any
    segments: Segments
    order: Any
    start: Any
    end: Any
    owner: Any
    size: int

    def products(self, rows, precision):
        """Multiplies each token with h rows: those of all segments, [1, h, d], or of its own, [count, h, d]: [N, h].

        At padding, products with [1, h, d] are arbitrary, and products with [count, h, d] are 0.
        """
        if rows.shape[0] == 1:
            return raw_products(self.x[None], self.segments.real, rows, precision, True)[0]
        tokens = jnp.where(self.segments.real[:, None], self.x.astype(rows.dtype), 0)
        return jnp.sum(tokens[:, None] * self.segments.expand_to_tokens(rows), 2)

    def sums(self, weights):
        """Sums the real tokens of each segment under weights [N, h]: [count, h, d]."""
        number, heads = self.start.shape[0], weights.shape[1]
        # XLA would copy gathered tokens that several heads use; behind the barrier each head gathers its own, from the cache
        start = lax.optimization_barrier(jnp.broadcast_to(self.start[:, None], (number, heads)))
        place = start[:, :, None] + lax.iota(jnp.int32, self.size)[None, None]
        keep = place < self.end[:, None, None]
        place = jnp.minimum(place, self.x.shape[0] - 1)
        place = place if self.order is None else at(self.order, place)
        keep = keep & at(self.segments.real, place)
        own = at(jnp.reshape(weights, -1), place * heads + lax.iota(jnp.int32, heads)[None, :, None])
        tokens = jnp.where(keep[..., None], at(self.x, place).astype(weights.dtype), 0)
        parts = jnp.sum(jnp.where(keep, own, 0)[..., None] * tokens, 2)
        if self.x.shape[0] // self.size <= LONGEST:  # a segment has few slots
            return jax.ops.segment_sum(parts, self.owner, self.segments.count)
        return segments_of(self.owner, None, self.segments.count, False).sum(parts)


def slots_of(x, segments):
    """Returns the :class:`Slots` of at least one token [N, d]."""
    length, count = x.shape[0], segments.count
    order = None if segments.ordered else jnp.argsort(segments.ids)
    size = max(LEAST, min(LONGEST, length // count // 2))
    tokens = jax.ops.segment_sum(jnp.ones_like(segments.ids), segments.ids, count)
    _, owner, start, end = consecutive_slots(tokens, size, length // size + count)
    return Slots(x, segments, order, start, end, owner, size)
