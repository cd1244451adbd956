"""Packed tokens on accelerators in batches for matrix products: pairs of a chunk and a segment.

A chunk is a block of consecutive tokens, sorted by segment. A pair is a chunk and a segment that may have tokens in it.
J chunks and S segments have at most J + S - 1 pairs, whatever the sizes of the segments are. The tokens of a pair are
those of its chunk; those of other segments are padding, so NaN stays in its own segment.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from attnpool_flax.numerics.sums import LONGEST
from attnpool_flax.reductions.packed.segments import at, enumerated, segments_of

FEWEST, MOST = 8, 128
"""The smallest and the largest number of tokens of a chunk.

Between them it is the largest power of two up to the average number of tokens of a segment.
"""


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
    size = max(FEWEST, min(MOST, 2 ** (length // count).bit_length() // 2))
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
