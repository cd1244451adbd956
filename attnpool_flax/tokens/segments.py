"""Segments of packed tokens, and sums over segments that do not drift in float32.

Rounding errors of a long sum in float32 add up. The tokens of a segment are therefore summed in slots of about PART
tokens each, and the sums of slots in further slots, until one sum of at most LONGEST terms remains. The N tokens of all
segments have at most N / PART slots, plus one for each segment. Integers are summed at once.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.sizes import known
from attnpool_flax.numerics.sums import LEVELS, LONGEST, PART


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Segments:
    """Segments of packed tokens.

    Attributes:
      ids: [N], int32, the segment of each token; numbers out of range, which are padding, clipped to 0 or count - 1.
      real: [N], bool: True for tokens whose id is in range and that are not masked.
      chain: index arrays for nested sums. The first, [N], has the slot of each token, the next the slot of each slot,
        and the last the segment of each slot. For at most LONGEST tokens it has only ``ids``.
      count: the number of segments, at least 1.
      sizes: the number of sums of each array of the chain; the last is ``count``.
      ordered: whether the caller says that the ids never decrease; this makes segment sums faster and is not checked.
    """

    ids: Any
    real: Any
    chain: tuple[Any, ...]
    count: int = dataclasses.field(metadata={"static": True})
    sizes: tuple[int, ...] = dataclasses.field(metadata={"static": True})
    ordered: bool = dataclasses.field(metadata={"static": True})

    def expand_to_tokens(self, values):
        """Expands the values of segments [count, ...] to their tokens [N, ...]; arbitrary at padding."""
        return at(values, self.ids)

    def max(self, values):
        """Returns [count, ...]: the largest of values [N, ...], which must be -inf, or the smallest integer, at padding."""
        return jax.ops.segment_max(values, self.ids, self.count, indices_are_sorted=self.ordered)

    def sum(self, values):
        """Returns [count, ...]: the sum of values [N, ...], which must be 0 at padding."""
        if jnp.issubdtype(values.dtype, jnp.integer):
            return jax.ops.segment_sum(values, self.ids, self.count, indices_are_sorted=self.ordered)
        return self.sum_slots(self._summed(values, 0))

    def counts(self):
        """Returns [count]: the number of real tokens of each segment."""
        return self.sum(self.real.astype(jnp.int32))

    def sum_slots(self, sums):
        """Adds up the sums of the first slots, [sizes[0], ...], along the chain: [count, ...]."""
        for level in range(1, len(self.chain)):
            sums = self._summed(sums, level)
        return sums

    def _summed(self, values, level):
        ordered = self.ordered or level > 0
        return jax.ops.segment_sum(values, self.chain[level], self.sizes[level], indices_are_sorted=ordered)


def at(values, ids):
    """Takes rows of values by indices, which must be in range; this is not checked."""
    return values.at[ids].get(mode="promise_in_bounds")


def segments_of(segment_ids, mask, count, ordered):
    """Returns the :class:`Segments` of int32 numbers [N] and a mask [N] or None; a number out of range is padding.

    ``count`` is the number of segments, of which 0 becomes 1; ``ordered`` says that the numbers never decrease.
    """
    real = (segment_ids >= 0) & (segment_ids < count)
    if mask is not None:
        real = real & mask
    count = max(count, 1)
    ids = jnp.clip(segment_ids, 0, count - 1)  # keeps the order
    index, length = ids, ids.shape[0]
    chain, sizes, longest, in_order = [], [], length, ordered
    while longest > LONGEST if known(longest) else len(sizes) < LEVELS:
        slots, segments, number = _slots(index, sizes[-1] if sizes else length, count, in_order)
        chain.append(slots)
        sizes.append(number)
        index, longest, in_order = segments, longest // PART + 1, True
    return Segments(ids, real, (*chain, index), count, (*sizes, count), ordered)


def _slots(index, length, count, ordered):
    """Returns (the slot of each term, the segment of each slot, the largest number of slots).

    ``index`` [length] has the segment of each term; ``ordered`` says that it never decreases.
    """
    terms = jax.ops.segment_sum(jnp.ones_like(index), index, count, indices_are_sorted=ordered)
    slots = (terms + PART - 1) // PART
    place = lax.iota(jnp.int32, length)
    if ordered:  # consecutive tokens share a slot, and the slots are ordered as well
        slot = (place - at(jnp.cumsum(terms) - terms, index)) // PART
    else:  # at random: no regular pattern of ids makes one slot longer than the others
        slot = (_hashed(place) % at(slots, index).astype(jnp.uint32)).astype(jnp.int32)
    number = count + length // PART
    start, segments, _ = enumerated(slots, number)
    return at(start, index) + slot, segments, number


def enumerated(counts, total):
    """Enumerates the parts of all owners, one owner after another; owner i has ``counts[i]`` parts.

    Args:
      counts: [owners], int32, the number of parts of each owner.
      total: the number of parts in the result, at least the sum of the counts. What exceeds it belongs to the last owner.

    Returns:
      (the first part of each owner [owners]; for each part, [total], its owner and its index among the owner's parts).
    """
    start = jnp.cumsum(counts) - counts
    starting = jnp.zeros(total, jnp.int32).at[start].add(1, mode="drop", indices_are_sorted=True)
    owner = jnp.cumsum(starting) - 1
    return start, owner, lax.iota(jnp.int32, total) - at(start, owner)


def _hashed(place):
    """Hashes positions to pseudo-random numbers (Wellons 2018, lowbias32)."""
    bits = place.astype(jnp.uint32)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        bits = (bits ^ (bits >> jnp.uint32(shift))) * jnp.uint32(factor)
    return bits ^ (bits >> jnp.uint32(16))
