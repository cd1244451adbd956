"""Accumulators without a softmax (a weighted sum, an end token), and the merge of two chunks.

An accumulator is the partial result of a reduction over some of the tokens: a tile, the tokens of one device, or a
chunk. :class:`WeightedSum`, :class:`EndToken`, ``OnlineSoftmax`` and ``ExtremeState`` have three methods, by which
partial results merge:

* ``common()`` returns the array whose maximum over all parts is needed first, or None;
* ``rescaled(maximum)`` returns the arrays that are then summed over all parts, rescaled to that maximum;
* ``added(maximum, sums)`` returns the accumulator of all parts.

Devices all-reduce the maximum and the sum (:mod:`attnpool_flax.reductions.collectives`). For ``OnlineSoftmax``, tiles
of an example reduce an axis (:mod:`attnpool_flax.reductions.softmax`), and two chunks add with compensation
(:func:`merge_pair`). ``finalize()`` of ``OnlineSoftmax`` and ``ExtremeState`` returns the pooled vector.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp

from attnpool_flax.numerics.sums import compensated_add


class WeightedSum(NamedTuple):
    """Accumulator of a weighted sum of tokens.

    Attributes:
      sum: [..., d], the weighted sum.
      weight: [...], the sum of the weights, in the dtype of ``sum``, or the int32 count of tokens; None if not needed.
    """

    sum: Any
    weight: Any

    def common(self):
        """Returns None: there is no maximum, and sums are not rescaled."""
        return None

    def rescaled(self, maximum):
        """Returns (sum, weight)."""
        del maximum
        return tuple(self)

    def added(self, maximum, sums):
        """Returns the accumulator of all parts from the sums of :meth:`rescaled`."""
        del maximum
        return WeightedSum(*sums)

    @property
    def batch_rank(self):
        """The number of batch axes."""
        return self.sum.ndim - 1


class EndToken(NamedTuple):
    """Accumulator of the first or the last real token of a sequence.

    Attributes:
      rank: [...], int32, larger for a part nearer to the wanted end of the sequence; -1 for a part without real tokens.
      token: [..., d], the first or last real token of the part.
    """

    rank: Any
    token: Any

    def common(self):
        """Returns the ranks, whose maximum over all parts selects a part."""
        return self.rank

    def rescaled(self, rank):
        """Returns (token,), replaced by 0 unless this part has the largest rank."""
        wanted = (self.rank == rank) & (rank >= 0)
        return (jnp.where(wanted[..., None], self.token, 0),)

    def added(self, rank, sums):
        """Returns the accumulator of all parts from their largest rank and the sum of :meth:`rescaled`."""
        return EndToken(rank, *sums)

    @property
    def batch_rank(self):
        """The number of batch axes."""
        return self.rank.ndim


def merge_pair(a, b):
    """Merges the accumulators of two chunks, which have a maximum, and sums that are pairs (value, compensation)."""
    maximum = jnp.maximum(a.common(), b.common())
    return a.added(maximum, map(_add, a.rescaled(maximum), b.rescaled(maximum)))


def _add(a, b):
    return None if a is None else compensated_add(a, b)
