"""Accumulator states of chunked pooling: named tuples with an associative and commutative merge.

A state has the batch axes of its chunk and holds float64 arrays, except integer positions, integer counts and boolean
flags; its field ``dtype`` is the dtype of the result, or None if all data are integers. Some states also hold options
of their function; ``merge_states`` raises a ValueError for states with different options. The method ``merged`` checks
nothing, and the state that it returns has ``dtype`` None.
"""

from typing import Any, NamedTuple

import numpy as np

from attnpool_ref.numerics.rounding import power_of_two

NOWHERE = np.iinfo(np.int64)
"""Limits of positions: the largest (or smallest) integer stands for a first (or last) token that does not exist."""


_KINDS = []


def kind(state):
    """Registers a class of states for :func:`kinds`, and returns it (a class decorator)."""
    _KINDS.append(state)
    return state


def kinds():
    """Returns a tuple of all classes of states."""
    return tuple(_KINDS)


@kind
class MeanState(NamedTuple):
    """State of :func:`~attnpool_ref.streaming.mean_state`.

    Attributes:
      mean: [..., d], the mean of the real tokens.
      count: [...], their number.
      dtype: the dtype of the result.
    """

    mean: Any
    count: Any
    dtype: Any = None

    @property
    def shape(self):
        """The shape of the result of ``finalize_state``."""
        return self.mean.shape

    def merged(self, other):
        """Returns the merged state of this chunk and of ``other``; ``merge_states`` checks both and sets ``dtype``."""
        count = self.count + other.count
        whole = np.maximum(count, 1)
        parts = [state.mean * (state.count / whole)[..., None] for state in (self, other)]
        return type(self)(parts[0] + parts[1], count)

    def finalized(self):
        """Returns the result [..., d] in float64; 0 for a fully masked row."""
        return self.mean


@kind
class MaxState(NamedTuple):
    """State of :func:`~attnpool_ref.streaming.max_state`.

    Attributes:
      extreme: [..., d], the largest real values; -inf for a fully masked row.
      real: bool [...], whether any token is real.
      dtype: the dtype of the result.
    """

    extreme: Any
    real: Any
    dtype: Any = None

    @property
    def shape(self):
        """The shape of the result of ``finalize_state``."""
        return self.extreme.shape

    def merged(self, other):
        """Returns the merged state of this chunk and of ``other``; ``merge_states`` checks both and sets ``dtype``."""
        return MaxState(np.maximum(self.extreme, other.extreme), self.real | other.real)

    def finalized(self):
        """Returns the result [..., d] in float64; 0 for a fully masked row."""
        return np.where(self.real[..., None], self.extreme, 0)


@kind
class MeanMaxState(NamedTuple):
    """State of :func:`~attnpool_ref.streaming.mean_max_state`.

    Attributes:
      mean: [..., d], the mean of the real tokens.
      count: [...], their number.
      extreme: [..., d], the largest real values; -inf for a fully masked row.
      dtype: the dtype of the result.
    """

    mean: Any
    count: Any
    extreme: Any
    dtype: Any = None

    @property
    def shape(self):
        """The shape of the result of ``finalize_state``."""
        return (*self.mean.shape[:-1], 2 * self.mean.shape[-1])

    def _parts(self):
        return MeanState(self.mean, self.count), MaxState(self.extreme, self.count > 0)

    def merged(self, other):
        """Returns the merged state of this chunk and of ``other``; ``merge_states`` checks both and sets ``dtype``."""
        ours, theirs = self._parts(), other._parts()
        mean, largest = ours[0].merged(theirs[0]), ours[1].merged(theirs[1])
        return MeanMaxState(mean.mean, mean.count, largest.extreme)

    def finalized(self):
        """Returns the result [..., 2d] in float64; 0 for a fully masked row."""
        return np.concatenate([part.finalized() for part in self._parts()], -1)


@kind
class FirstState(NamedTuple):
    """State of :func:`~attnpool_ref.streaming.first_state`.

    Attributes:
      position: int [...], the position of the first real token in the sequence; the largest integer if there is none.
      token: [..., d], that token; 0 if there is none.
      dtype: the dtype of the result.
    """

    position: Any
    token: Any
    dtype: Any = None

    @property
    def shape(self):
        """The shape of the result of ``finalize_state``."""
        return self.token.shape

    def merged(self, other):
        """Returns the merged state of this chunk and of ``other``; ``merge_states`` checks both and sets ``dtype``."""
        wanted = (self.position <= other.position)[..., None]
        return FirstState(np.minimum(self.position, other.position), np.where(wanted, self.token, other.token))

    def finalized(self):
        """Returns the result [..., d] in float64; 0 for a fully masked row."""
        return self.token


@kind
class LastState(NamedTuple):
    """State of :func:`~attnpool_ref.streaming.last_state`.

    Attributes:
      position: int [...], the position of the last real token in the sequence; the smallest integer if there is none.
      token: [..., d], that token; 0 if there is none.
      dtype: the dtype of the result.
    """

    position: Any
    token: Any
    dtype: Any = None

    @property
    def shape(self):
        """The shape of the result of ``finalize_state``."""
        return self.token.shape

    def merged(self, other):
        """Returns the merged state of this chunk and of ``other``; ``merge_states`` checks both and sets ``dtype``."""
        wanted = (self.position >= other.position)[..., None]
        return LastState(np.maximum(self.position, other.position), np.where(wanted, self.token, other.token))

    def finalized(self):
        """Returns the result [..., d] in float64; 0 for a fully masked row."""
        return self.token


@kind
class WeightedState(NamedTuple):
    """State of :func:`~attnpool_ref.streaming.weighted_state`: sums in a unit that is a power of two.

    The unit is ``size`` times the power of two above ``mass``, so the stored sum of tokens is never larger than the
    largest token, whatever the weights. Scaling by a power of two is exact.

    Attributes:
      size: [...], the largest power of two up to the largest absolute weight; 0 if all weights are 0.
      mass: [...], the sum of the absolute weights, divided by ``size``.
      total: [...], the sum of the weights divided by the unit, which may be 0 even if there are real tokens.
      sum: [..., d], the sum of the weighted tokens divided by the unit.
      dtype: the dtype of the result.
    """

    size: Any
    mass: Any
    total: Any
    sum: Any
    dtype: Any = None

    @property
    def shape(self):
        """The shape of the result of ``finalize_state``."""
        return self.sum.shape

    def merged(self, other):
        """Returns the merged state of this chunk and of ``other``; ``merge_states`` checks both and sets ``dtype``."""
        size = np.maximum(self.size, other.size)
        ratios = [state.size / np.where(size == 0, 1, size) for state in (self, other)]
        mass = self.mass * ratios[0] + other.mass * ratios[1]
        scales = [r * (divisor_of(s.mass) / divisor_of(mass)) for r, s in zip(ratios, (self, other), strict=True)]
        total = self.total * scales[0] + other.total * scales[1]
        pooled = self.sum * self.expand_to_features(scales[0]) + other.sum * self.expand_to_features(scales[1])
        return type(self)(size, mass, total, pooled)

    def finalized(self):
        """Returns the result [..., d] in float64; 0 for a fully masked row, or if the weights sum to 0."""
        total = self.expand_to_features(self.total)
        return np.where(total == 0, 0 * self.sum, self.sum / np.where(total == 0, 1, total))

    def expand_to_features(self, values):
        """Appends a feature axis to a number for each example, [...], so that it broadcasts against ``sum``."""
        return values[..., None]


@kind
class ChannelState(WeightedState):
    """State of :func:`~attnpool_ref.streaming.weighted_state` with weights for each feature.

    Its fields are those of :class:`WeightedState`, all [..., d].
    """

    def expand_to_features(self, values):
        """Returns the array [..., d] unchanged, because it has a feature axis already."""
        return values


def divisor_of(mass):
    """Returns a power of two above the mass; 2 for a mass of 0."""
    return 2 * power_of_two(mass)


@kind
class AttentionState(NamedTuple):
    """State of :func:`~attnpool_ref.streaming.attention_state`: max, denominator and numerator of an online softmax.

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
        """The shape of the result of ``finalize_state``."""
        return self.sum.shape

    def merged(self, other):
        """Returns the merged state of this chunk and of ``other``, rescaled to the larger maximum."""
        return type(self)(*_merged(self, other))

    def finalized(self):
        """Returns the result [..., d] in float64; 0 for a fully masked row."""
        return self.sum / np.where(self.total == 0, 1, self.total)[..., None]


@kind
class MultiHeadAttentionState(AttentionState):
    """State of :func:`~attnpool_ref.streaming.multi_head_attention_state`, for each of n queries and H heads.

    Attributes:
      top: [..., n, H], the largest score; -inf for a fully masked row.
      total: [..., n, H], the sum of exp(score - top).
      sum: [..., n, H, d], the sum of exp(score - top) times the token.
      dtype: the dtype of the result.
    """


@kind
class AdditiveAttentionState(AttentionState):
    """State of :func:`~attnpool_ref.streaming.additive_attention_state`, with an axis n if there are n hops.

    Attributes:
      top: [...] or [..., n], the largest score; -inf for a fully masked row.
      total: [...] or [..., n], the sum of exp(score - top).
      sum: [..., v] or [..., n, v], the sum of exp(score - top) times the value.
      dtype: the dtype of the result.
    """


def _merged(a, b):
    max_score = np.maximum(a.top, b.top)
    with np.errstate(invalid="ignore"):  # inf - inf: a real score of +inf gives NaN by definition
        a_scale, b_scale = (np.exp(state.top - np.where(max_score == -np.inf, 0, max_score)) for state in (a, b))
    return max_score, a.total * a_scale + b.total * b_scale, a.sum * a_scale[..., None] + b.sum * b_scale[..., None]
