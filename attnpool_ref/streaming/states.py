"""Accumulator states of chunked pooling: a named tuple for each kind of pooling, all of them commutative monoids.

A state has the batch axes of its chunk and holds float64; ``dtype`` is the result's dtype (None if all data are
integers). Some states also hold options of their function; states with different options do not merge.
"""

from typing import Any, NamedTuple

import numpy as np

from attnpool_ref.numerics.rounding import power_of_two

NOWHERE = np.iinfo(np.int64)
"""Its limits are the positions of an absent token: later, or earlier, than any real position."""


_KINDS = []


def kind(state):
    """Registers a class of states."""
    _KINDS.append(state)
    return state


def kinds():
    """Returns all classes of states, a tuple."""
    return tuple(_KINDS)


@kind
class MeanState(NamedTuple):
    """State of :func:`~attnpool_ref.streaming.mean_state`: the mean [..., d] of the real tokens, and their number [...]."""

    mean: Any
    count: Any
    dtype: Any = None

    @property
    def shape(self):
        """The shape of the result."""
        return self.mean.shape

    def merged(self, other):
        """Merges the states of both chunks."""
        count = self.count + other.count
        whole = np.maximum(count, 1)
        parts = [state.mean * (state.count / whole)[..., None] for state in (self, other)]
        return type(self)(parts[0] + parts[1], count)

    def finalized(self):
        """Returns [..., d]; 0 for a fully masked row."""
        return self.mean


@kind
class MaxState(NamedTuple):
    """State of :func:`~attnpool_ref.streaming.max_state`: the largest values [..., d], -inf for a fully masked row; whether any is real [...]."""

    extreme: Any
    real: Any
    dtype: Any = None

    @property
    def shape(self):
        """The shape of the result."""
        return self.extreme.shape

    def merged(self, other):
        """Merges the states of both chunks."""
        return MaxState(np.maximum(self.extreme, other.extreme), self.real | other.real)

    def finalized(self):
        """Returns [..., d]; 0 for a fully masked row."""
        return np.where(self.real[..., None], self.extreme, 0)


@kind
class MeanMaxState(NamedTuple):
    """State of :func:`~attnpool_ref.streaming.mean_max_state`: the fields of the mean's and of the maximum's state."""

    mean: Any
    count: Any
    extreme: Any
    dtype: Any = None

    @property
    def shape(self):
        """The shape of the result."""
        return (*self.mean.shape[:-1], 2 * self.mean.shape[-1])

    def _parts(self):
        return MeanState(self.mean, self.count), MaxState(self.extreme, self.count > 0)

    def merged(self, other):
        """The state of both chunks."""
        ours, theirs = self._parts(), other._parts()
        mean, largest = ours[0].merged(theirs[0]), ours[1].merged(theirs[1])
        return MeanMaxState(mean.mean, mean.count, largest.extreme)

    def finalized(self):
        """[..., 2d]; 0 for a fully masked row."""
        return np.concatenate([part.finalized() for part in self._parts()], -1)


@kind
class FirstState(NamedTuple):
    """State of :func:`~attnpool_ref.streaming.first_state`: the first real position [...], and its token [..., d]."""

    position: Any
    token: Any
    dtype: Any = None

    @property
    def shape(self):
        """The shape of the result."""
        return self.token.shape

    def merged(self, other):
        """Merges the states of both chunks."""
        wanted = (self.position <= other.position)[..., None]
        return FirstState(np.minimum(self.position, other.position), np.where(wanted, self.token, other.token))

    def finalized(self):
        """Returns [..., d]; 0 for a fully masked row."""
        return self.token


@kind
class LastState(NamedTuple):
    """State of :func:`~attnpool_ref.streaming.last_state`: the last real position [...], and its token [..., d]."""

    position: Any
    token: Any
    dtype: Any = None

    @property
    def shape(self):
        """The shape of the result."""
        return self.token.shape

    def merged(self, other):
        """Merges the states of both chunks."""
        wanted = (self.position >= other.position)[..., None]
        return LastState(np.maximum(self.position, other.position), np.where(wanted, self.token, other.token))

    def finalized(self):
        """Returns [..., d]; 0 for a fully masked row."""
        return self.token


@kind
class WeightedState(NamedTuple):
    """State of :func:`~attnpool_ref.streaming.weighted_state`: sums in a unit that is a power of two, so that it is exact.

    The unit is ``size`` times a power of two above ``mass``: no sum in it exceeds the largest token, whatever the weights.

    Attributes:
      size: [...], the power of two below the largest weight; 0 if all are 0.
      mass: [...], the sum of the absolute weights over ``size``.
      total: [...], the sum of the weights in that unit, which may be 0 although there are real tokens.
      sum: [..., d], the sum of the weighted tokens in that unit.
      dtype: the dtype of the result.
    """

    size: Any
    mass: Any
    total: Any
    sum: Any
    dtype: Any = None

    @property
    def shape(self):
        """The shape of the result."""
        return self.sum.shape

    def merged(self, other):
        """Merges the states of both chunks."""
        size = np.maximum(self.size, other.size)
        ratios = [state.size / np.where(size == 0, 1, size) for state in (self, other)]
        mass = self.mass * ratios[0] + other.mass * ratios[1]
        scales = [r * (divisor_of(s.mass) / divisor_of(mass)) for r, s in zip(ratios, (self, other), strict=True)]
        total = self.total * scales[0] + other.total * scales[1]
        pooled = self.sum * self.expand_to_features(scales[0]) + other.sum * self.expand_to_features(scales[1])
        return type(self)(size, mass, total, pooled)

    def finalized(self):
        """Returns [..., d]; 0 for a fully masked row, or if the weights cancel."""
        total = self.expand_to_features(self.total)
        return np.where(total == 0, 0 * self.sum, self.sum / np.where(total == 0, 1, total))

    def expand_to_features(self, values):
        """Returns an array of the weights' shape with a feature axis, to broadcast against tokens."""
        return values[..., None]


@kind
class ChannelState(WeightedState):
    """State of :func:`~attnpool_ref.streaming.weighted_state` with weights for each channel: ``size``, ``mass`` and ``total`` too are [..., d]."""

    def expand_to_features(self, values):
        """Returns the array unchanged: these weights have a feature axis."""
        return values


def divisor_of(mass):
    """A power of two above the mass; 2 for none."""
    return 2 * power_of_two(mass)


@kind
class AttentionState(NamedTuple):
    """State of :func:`~attnpool_ref.streaming.attention_state`: an online softmax before the division.

    Attributes:
      top: [...], the largest score; -inf for a fully masked row.
      total: [...], the sum of exp(score - top).
      sum: [..., d], the sum of exp(score - top) times the token.
      dtype: the dtype of the result.
    """

    top: Any
    total: Any
    sum: Any
    dtype: Any = None

    @property
    def shape(self):
        """The shape of the result."""
        return self.sum.shape

    def merged(self, other):
        """Merges the states of both chunks, rescaled to the larger maximum."""
        return type(self)(*_merged(self, other))

    def finalized(self):
        """Returns [..., d]; 0 for a fully masked row."""
        return self.sum / np.where(self.total == 0, 1, self.total)[..., None]


@kind
class MultiHeadAttentionState(AttentionState):
    """State of :func:`~attnpool_ref.streaming.multi_head_attention_state`: an :class:`AttentionState` for each query and head.

    Attributes:
      top: [..., n, H], the largest score; -inf for a fully masked row.
      total: [..., n, H], the sum of exp(score - top).
      sum: [..., n, H, d], the sum of exp(score - top) times the token.
      dtype: the dtype of the result.
    """


@kind
class AdditiveAttentionState(AttentionState):
    """State of :func:`~attnpool_ref.streaming.additive_attention_state`: an :class:`AttentionState`, of n hops for each of them.

    Attributes:
      top: [...] or [..., n], the largest score; -inf for a fully masked row.
      total: [...] or [..., n], the sum of exp(score - top).
      sum: [..., v] or [..., n, v], the sum of exp(score - top) times the value.
      dtype: the dtype of the result.
    """


def _merged(a, b):
    max_score = np.maximum(a.top, b.top)
    with np.errstate(invalid="ignore"):  # inf - inf: a real score of +inf is NaN by definition
        a_scale, b_scale = (np.exp(state.top - np.where(max_score == -np.inf, 0, max_score)) for state in (a, b))
    return max_score, a.total * a_scale + b.total * b_scale, a.sum * a_scale[..., None] + b.sum * b_scale[..., None]
