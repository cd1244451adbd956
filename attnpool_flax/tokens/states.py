"""States of reductions over a part of the tokens, and their merge: of pieces, chunks, and the devices of a mesh.

A state is the partial result of some of the tokens: of a piece in a loop, of a chunk of a stream, of one device. Each class
has three methods, by which the states of the parts merge:

* ``common()`` returns the array whose maximum over all parts is needed first, or None;
* ``rescaled(maximum)`` returns the arrays that are then summed over all parts, rescaled to that maximum;
* ``added(maximum, sums)`` returns the state of all parts.

:class:`MaxState` and :class:`AttentionState` are also the states that functions of chunks return.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.call.states import State, kind
from attnpool_flax.numerics.rounding import max_along_axis
from attnpool_flax.numerics.softmax import exponential
from attnpool_flax.numerics.sums import compensated_add, summed, with_gradient_of


@kind
class AttentionState(State):
    """State of :func:`~attnpool_flax.streaming.attention_state`: an average under a softmax, before the division.

    The sums of chunks are compensated; those of pieces and devices have None for their compensations (Milakov and
    Gimelshein 2018, Online normalizer calculation for softmax).

    Attributes:
      top: [...], the largest score; -inf for a fully masked row. A constant in the gradient, because it cancels.
      total: [...], the denominator: the sum of exp(score - top).
      total_rest: [...], the compensation of ``total``.
      sum: [..., d], the numerator: the sum of exp(score - top) times the token.
      rest: [..., d], the compensation of ``sum``.
    """

    top: Any
    total: Any
    total_rest: Any
    sum: Any
    rest: Any

    def common(self):
        """Returns the largest scores."""
        return lax.stop_gradient(self.top)

    def rescaled(self, top):
        """Returns the sums for a common largest score."""
        scale = exponential(self.common(), top)
        totals, sums = (self.total, self.total_rest), (self.sum, self.rest)
        return tuple(
            None if array is None else array * own
            for arrays, own in ((totals, scale), (sums, scale[..., None]))
            for array in arrays
        )

    def added(self, top, sums):
        """Returns the state of all parts."""
        return type(self)(top, *sums)

    @property
    def batch_rank(self):
        """The number of batch axes of the state of a piece."""
        return 1

    def merged(self, other):
        """Merges the states of both chunks."""
        top = jnp.maximum(self.common(), other.common())
        pairs = zip(self.rescaled(top), other.rescaled(top), strict=True)
        (total, total_rest, total_sum, rest) = pairs
        totals = () if total[0] is None else compensated_add(*zip(total, total_rest, strict=True))
        sums = compensated_add(*zip(total_sum, rest, strict=True))
        return type(self)(top, *(totals or (None, None)), *sums)

    def finalized(self):
        """Returns the averages [..., d]; 0 for a fully masked row."""
        total, pooled = self.total, self.sum
        if self.rest is not None:
            total, pooled = total + self.total_rest, pooled + self.rest
        return pooled / jnp.where(total == 0, 1, total)[..., None]


@kind
class MaxState(State):
    """State of :func:`~attnpool_flax.streaming.max_state`.

    Attributes:
      extreme: [..., d], the largest values; -inf for a fully masked row.
      count: [..., d], int32, the number of real tokens that equal the largest value and share its gradient; float32 if the
        devices of a mesh sum it.
      real: [...], whether any token was real.
    """

    extreme: Any
    count: Any
    real: Any

    shaped_as = "extreme"

    def common(self):
        """Returns the largest values."""
        return lax.stop_gradient(self.extreme)

    def rescaled(self, extreme):
        """Returns (count,) of the tokens that equal the common maximum.

        If this part has NaN, the count is NaN, because the maximum over a mesh (``pmax``) may lose NaN.
        """
        count = jnp.where(self.extreme == extreme, self.count, 0).astype(jnp.float32)
        return (jnp.where(jnp.isnan(self.extreme), jnp.nan, count),)

    def added(self, extreme, sums):
        """Returns the state of all parts."""
        (count,) = sums
        return MaxState(jnp.where(jnp.isnan(count), jnp.nan, extreme), count, jnp.any(count != 0, -1))

    @property
    def batch_rank(self):
        """The number of batch axes of the state of a piece."""
        return 1

    def merged(self, other):
        """Merges the states of both chunks; equal maxima share the gradient in proportion to their numbers of tokens."""
        extreme = jnp.maximum(self.extreme, other.extreme)
        counts = [jnp.where(lax.stop_gradient(state.extreme == extreme), state.count, 0) for state in (self, other)]
        number = counts[0] + counts[1]
        shares = [own.astype(extreme.dtype) / jnp.maximum(number, 1).astype(extreme.dtype) for own in counts]
        total = sum(jnp.where(s == 0, 0, s * state.extreme) for s, state in zip(shares, (self, other), strict=True))
        return MaxState(with_gradient_of(extreme, total), number, self.real | other.real)

    def finalized(self):
        """Returns the result [..., d]; 0 for a fully masked row."""
        return jnp.where(self.real[..., None], self.extreme, 0)


class WeightedSum(NamedTuple):
    """State of a weighted sum of tokens.

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
        """Returns the state of all parts."""
        del maximum
        return WeightedSum(*sums)

    @property
    def batch_rank(self):
        """The number of batch axes."""
        return self.sum.ndim - 1


class EndToken(NamedTuple):
    """State of the first or the last real token of a sequence.

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
        """Returns the state of all parts."""
        return EndToken(rank, *sums)

    @property
    def batch_rank(self):
        """The number of batch axes."""
        return self.rank.ndim


def merge_pieces(state):
    """Merges the states of the pieces of each example, a state with fields [B, pieces, ...]; NaN stays NaN."""
    if state == ():
        return ()
    top = state.common()
    if (state.sum if top is None else top).shape[1] == 1:
        return jax.tree.map(lambda array: array[:, 0], state)
    if isinstance(state, MaxState):  # in integers: pieces lose no NaN
        extreme = max_along_axis(state.extreme, 1)
        count = jnp.where(state.extreme == extreme[:, None], state.count, 0)
        return MaxState(extreme, jnp.sum(count, 1, dtype=jnp.int32), jnp.any(state.real, 1))
    if top is not None:
        top = jnp.max(top, 1)
    sums = state.rescaled(None if top is None else top[:, None])
    return state.added(top, [None if array is None else summed(array) for array in sums])
