"""Accumulator states of chunked pooling: pytrees with compensated sums.

The class and the dtype of the result are static. The leaves have the batch axes ``...`` of the chunk, and are integers,
booleans, or floats of at least 32 bits. A field ``rest`` or ``total_rest`` is the compensation of the sum before it:
the rounding error of that sum, without gradient (two-sum).
"""

from typing import Any

import jax.numpy as jnp

from attnpool_flax.call.states import State, kind
from attnpool_flax.numerics.sums import compensated_add, divisor_of
from attnpool_flax.tokens.states import AttentionState, MaxState


@kind
class MeanState(State):
    """State of :func:`~attnpool_flax.streaming.mean_state`.

    Attributes:
      sum: [..., d], the sum of the real tokens, divided by a power of two above their number to avoid overflow.
      rest: [..., d], the compensation of ``sum``.
      count: [...], int32, the number of real tokens.
    """

    sum: Any
    rest: Any
    count: Any

    def merged(self, other):
        """Merges the states of both chunks."""
        count = self.count + other.count
        divisor = divisor_of(_as_float(count, self))
        ratios = [(divisor_of(_as_float(state.count, self)) / divisor)[..., None] for state in (self, other)]
        return type(self)(*compensated_add(*_scaled((self, other), ratios)), count)

    def finalized(self):
        """Returns the result [..., d]; 0 for a fully masked row."""
        count = _as_float(jnp.maximum(self.count, 1), self)
        return (self.sum + self.rest) / (count / divisor_of(count))[..., None]


@kind
class MeanMaxState(State):
    """State of :func:`~attnpool_flax.streaming.mean_max_state`: a :class:`MeanState` and a :class:`MaxState`.

    Attributes:
      sum: [..., d], the sum of the real tokens, divided by a power of two above their number to avoid overflow.
      rest: [..., d], the compensation of ``sum``.
      count: [...], int32, the number of real tokens.
      extreme: [..., d], the largest values; -inf for a fully masked row.
      ties: [..., d], int32, the number of real tokens that equal ``extreme``.
    """

    sum: Any
    rest: Any
    count: Any
    extreme: Any
    ties: Any

    @property
    def shape(self):
        """The shape of the result."""
        return (*self.sum.shape[:-1], 2 * self.sum.shape[-1])

    def _parts(self):
        return MeanState(self.sum, self.rest, self.count), MaxState(self.extreme, self.ties, self.count > 0)

    def merged(self, other):
        """Merges the states of both chunks."""
        ours, theirs = self._parts(), other._parts()
        mean, largest = ours[0].merged(theirs[0]), ours[1].merged(theirs[1])
        return MeanMaxState(mean.sum, mean.rest, mean.count, largest.extreme, largest.count)

    def finalized(self):
        """Returns the result [..., 2d]; 0 for a fully masked row."""
        return jnp.concatenate([part.finalized() for part in self._parts()], -1)


@kind
class FirstState(State):
    """State of :func:`~attnpool_flax.streaming.first_state`.

    Attributes:
      position: [...], JAX's default integers: the first real position; the largest integer for a fully masked row.
      token: [..., d], the token at that position.
    """

    position: Any
    token: Any

    shaped_as = "token"

    def merged(self, other):
        """Merges the states of both chunks."""
        wanted = (self.position <= other.position)[..., None]
        return FirstState(jnp.minimum(self.position, other.position), jnp.where(wanted, self.token, other.token))

    def finalized(self):
        """Returns the result [..., d]; 0 for a fully masked row."""
        return self.token


@kind
class LastState(FirstState):
    """State of :func:`~attnpool_flax.streaming.last_state`.

    Attributes:
      position: [...], JAX's default integers: the last real position; the smallest integer for a fully masked row.
      token: [..., d], the token at that position.
    """

    def merged(self, other):
        """Merges the states of both chunks."""
        wanted = (self.position >= other.position)[..., None]
        return LastState(jnp.maximum(self.position, other.position), jnp.where(wanted, self.token, other.token))


@kind
class WeightedState(State):
    """State of :func:`~attnpool_flax.streaming.weighted_state`: sums divided by a unit, which is a power of two.

    The unit is ``size`` times a power of two above ``mass``, so ``sum`` does not exceed the largest token, whatever the
    weights are.

    Attributes:
      size: [...], the largest power of two up to the largest absolute weight; 0 if all weights are 0. It is a constant
        in the gradient, because it cancels.
      mass: [...], the sum of the absolute weights, divided by ``size``; a constant in the gradient as well.
      total: [...], the sum of the weights, divided by the unit; 0 if the weights cancel.
      total_rest: [...], the compensation of ``total``.
      sum: [..., d], the sum of the weighted tokens, divided by the unit.
      rest: [..., d], the compensation of ``sum``.
    """

    size: Any
    mass: Any
    total: Any
    total_rest: Any
    sum: Any
    rest: Any

    def merged(self, other):
        """Merges the states of both chunks."""
        both = self, other
        size = jnp.maximum(self.size, other.size)
        ratios = [state.size / jnp.where(size == 0, 1, size) for state in both]
        mass = self.mass * ratios[0] + other.mass * ratios[1]
        scales = [ratio * (divisor_of(s.mass) / divisor_of(mass)) for ratio, s in zip(ratios, both, strict=True)]
        sums = compensated_add(*_scaled(both, [self.expand_to_features(scale) for scale in scales]))
        return type(self)(size, mass, *compensated_add(*_totals(both, scales)), *sums)

    def finalized(self):
        """Returns the result [..., d]; 0 for a fully masked row, or if the weights cancel."""
        total, pooled = self.expand_to_features(self.total + self.total_rest), self.sum + self.rest
        return jnp.where(total == 0, 0 * pooled, pooled / jnp.where(total == 0, 1, total))

    def expand_to_features(self, values):
        """Adds a feature axis to values of the shape [...] of the weights, so that they broadcast against tokens."""
        return values[..., None]


@kind
class ChannelState(WeightedState):
    """State of :func:`~attnpool_flax.streaming.weighted_state` for weights of each channel.

    Attributes:
      size: [..., d], for each channel what :class:`WeightedState` has for all; so are the other fields.
      mass: [..., d].
      total: [..., d].
      total_rest: [..., d].
      sum: [..., d].
      rest: [..., d].
    """

    def expand_to_features(self, values):
        """Returns the values: weights of each channel already have the shape of tokens."""
        return values


@kind
class MultiHeadAttentionState(AttentionState):
    """State of :func:`~attnpool_flax.streaming.multi_head_attention_state`: attention states of n queries and H heads.

    Attributes:
      top: [..., n, H]; the fields are those of :class:`AttentionState`.
      total: [..., n, H].
      total_rest: [..., n, H].
      sum: [..., n, H, d].
      rest: [..., n, H, d].
    """


@kind
class AdditiveAttentionState(AttentionState):
    """State of :func:`~attnpool_flax.streaming.additive_attention_state`: an attention state, or n of them (hops).

    Attributes:
      top: [...] or [..., n]; the fields are those of :class:`AttentionState`.
      total: [...] or [..., n].
      total_rest: [...] or [..., n].
      sum: [..., v] or [..., n, v], where v is the width of the values.
      rest: [..., v] or [..., n, v].
    """


def _scaled(states, scales):
    return [(state.sum * scale, state.rest * scale) for state, scale in zip(states, scales, strict=True)]


def _totals(states, scales):
    return [(state.total * scale, state.total_rest * scale) for state, scale in zip(states, scales, strict=True)]


def _as_float(count, state):
    return count.astype(state.sum.dtype)
