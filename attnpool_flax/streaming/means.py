"""Chunked sums and generalized means: states and state functions."""

from typing import Any

import jax.numpy as jnp
from jax import lax

from attnpool_flax.call.compiled import compiled
from attnpool_flax.call.states import State, kind
from attnpool_flax.means import (
    doubled_magnitude,
    either,
    finished_logsumexp,
    finished_power_mean,
    finished_softmax,
    logsumexp_sums,
    noisy_or,
    power_mean_sums,
    softmax_sums,
    times_sign,
)
from attnpool_flax.numerics.exponents import Exponents, depths, exponential_times, half, scaled, slackened
from attnpool_flax.numerics.sums import compensated_add, divisor_of
from attnpool_flax.streaming.states import MaxState
from attnpool_flax.tokens import Dense, DenseChannels


@kind
class SumState(State):
    """State of :func:`~attnpool_flax.streaming.sum_state`.

    Attributes:
      sum: [..., d], the sum of the real tokens.
      rest: [..., d], the compensation of ``sum``.
    """

    sum: Any
    rest: Any

    def merged(self, other):
        """Merges the states of both chunks."""
        return type(self)(*compensated_add((self.sum, self.rest), (other.sum, other.rest)))

    def finalized(self):
        """Returns the result [..., d]; 0 for a fully masked row."""
        return self.sum + self.rest


@kind
class MinState(MaxState):
    """State of :func:`~attnpool_flax.streaming.min_state`.

    Attributes:
      extreme: [..., d], the smallest values; inf for a fully masked row.
      count: [..., d], int32, the number of real tokens that equal the smallest value and share its gradient.
      real: [...], whether any token was real.
    """

    def merged(self, other):
        """Merges the states of both chunks."""
        one, two = (MaxState(-state.extreme, state.count, state.real) for state in (self, other))
        both = one.merged(two)
        return MinState(-both.extreme, both.count, both.real)


@kind
class NoisyOrState(State):
    """State of :func:`~attnpool_flax.streaming.noisy_or_state`.

    Attributes:
      probability: [..., d], the noisy-or of the real tokens.
      rest: [..., d], the compensation of ``probability``.
    """

    probability: Any
    rest: Any

    shaped_as = "probability"

    def merged(self, other):
        """Merges the states of both chunks, with probabilities a and b, by a + (b - a b)."""
        infinite = jnp.isinf(self.probability) | jnp.isinf(other.probability)
        finite, rest = (jnp.where(infinite, 0, value) for value in (self.probability, self.rest))
        complement = 1 - finite
        addend = other.probability * complement, other.rest * complement - other.probability * rest
        probability, rest = compensated_add((finite, rest), addend)
        both = either(self.probability, other.probability)
        return NoisyOrState(jnp.where(infinite, both, probability), jnp.where(infinite, 0, rest))

    def finalized(self):
        """Returns the result [..., d]; 0 for a fully masked row."""
        return self.probability + self.rest


@kind
class PowerMeanState(State):
    """State of :func:`~attnpool_flax.streaming.power_mean_state`: exponential sums of logarithms.

    Attributes:
      extreme: [..., d], the largest value, the smallest for p < 0; fully masked 0, for p < 0 inf; without gradient.
      total: [..., d], the sum of exp(|p| depth), where depth is sign(p) log(x) minus its largest value.
      total_rest: [..., d], the compensation of ``total``.
      slack: [..., d], the sum of expm1(|p| depth) / |p|, divided by a power of two above the count.
      rest: [..., d], the compensation of ``slack``.
      zeros: [..., d], 0; at p = 1 it carries the gradient of tokens that are 0, whose logarithm has none.
      count: [...], int32, the number of real tokens.
      p: [..., d], the same in all chunks.
    """

    extreme: Any
    total: Any
    total_rest: Any
    slack: Any
    rest: Any
    zeros: Any
    count: Any
    p: Any

    options = ("p",)
    shaped_as = "total"

    def merged(self, other):
        """Merges the states of both chunks, rescaled to the common extreme."""
        logarithms = [times_sign(jnp.log(state.extreme), self.p) for state in (self, other)]
        first, second = (times_sign(state.extreme, self.p) for state in (self, other))
        extreme = times_sign(jnp.maximum(first, second), self.p)
        below = depths(jnp.minimum(*logarithms), jnp.maximum(*logarithms), self.p)
        gaps = [jnp.where(state.extreme == extreme, 0, below) for state in (self, other)]
        sums = _merge_exponents((self, other), gaps, times_sign(self.p, self.p))
        return PowerMeanState(extreme, *sums, self.zeros + other.zeros, self.count + other.count, self.p)

    def finalized(self):
        """Returns the result [..., d]; 0 for a fully masked row."""
        return finished_power_mean(self.extreme, _exponents(self), self.zeros, self.p)


@kind
class LogsumexpState(State):
    """State of :func:`~attnpool_flax.streaming.logsumexp_state`: exponential sums of values.

    Attributes:
      extreme: [..., d], the largest value, or the smallest for scale < 0; infinite if fully masked; without gradient.
      total: [..., d], the sum of exp(|scale| depth), where depth is sign(scale) x minus its largest value.
      total_rest: [..., d], the compensation of ``total``.
      slack: [..., d], half the sum of expm1(|scale| depth) / |scale|, divided by a power of two above the count.
      rest: [..., d], the compensation of ``slack``.
      count: [...], int32, the number of real tokens.
      scale: [..., d], the same in all chunks.
      mean: the option ``mean``; static.
    """

    extreme: Any
    total: Any
    total_rest: Any
    slack: Any
    rest: Any
    count: Any
    scale: Any
    mean: bool

    options = "scale", "mean"
    shaped_as = "total"

    def merged(self, other):
        """Merges the states of both chunks, rescaled to the common extreme."""
        extreme, gaps = _common_extreme(self, other)
        sums = _merge_exponents((self, other), gaps, doubled_magnitude(self.scale))
        return LogsumexpState(extreme, *sums, self.count + other.count, self.scale, self.mean)

    def finalized(self):
        """Returns the result [..., d]; 0 for a fully masked row."""
        return finished_logsumexp(self.extreme, _exponents(self), self.scale, self.mean)


@kind
class SoftmaxState(State):
    """State of :func:`~attnpool_flax.streaming.softmax_state`: an exponential average of each channel, not yet divided.

    Attributes:
      extreme: [..., d], the largest value, or the smallest for scale < 0; infinite if fully masked; without gradient.
      total: [..., d], the sum of exp(|scale| depth), where depth is sign(scale) x minus its largest value.
      total_rest: [..., d], the compensation of ``total``.
      excess: [..., d], half the sum of exp(|scale| depth) depth, divided by a power of two above the total.
      rest: [..., d], the compensation of ``excess``.
      scale: [..., d], the same in all chunks.
    """

    extreme: Any
    total: Any
    total_rest: Any
    excess: Any
    rest: Any
    scale: Any

    options = ("scale",)
    shaped_as = "excess"

    def merged(self, other):
        """Merges the states of both chunks, rescaled to the common extreme."""
        extreme, gaps = _common_extreme(self, other)
        exponents = [scaled(below, doubled_magnitude(self.scale)) for below in gaps]
        factors = [jnp.exp(exponent) for exponent in exponents]
        totals = [(s.total * factor, s.total_rest * factor) for s, factor in zip((self, other), factors, strict=True)]
        total, sums = compensated_add(*totals), []
        divisor = divisor_of(total[0])
        for state, below, exponent, factor in zip((self, other), gaps, exponents, factors, strict=True):
            infinite = jnp.isinf(below)
            more = state.total * exponential_times(exponent, jnp.where(infinite, 0, below) / divisor)
            more = jnp.where(infinite & (self.scale == 0) & (state.total > 0), below, more)
            ratio = factor * (divisor_of(state.total) / divisor)
            sums.append(_rescaled_plus((state.excess, state.rest), ratio, more))
        return SoftmaxState(extreme, *total, *compensated_add(*sums), self.scale)

    def finalized(self):
        """Returns the result [..., d]; 0 for a fully masked row."""
        excess = (self.excess + self.rest) * (divisor_of(self.total) / divisor_of(self.total + self.total_rest))
        return finished_softmax(self.extreme, self.total + self.total_rest, excess, self.scale)


def _common_extreme(a, b):
    """Returns (the common extreme of two states, [half of sign(scale) (extreme - common) of each, at most 0])."""
    extremes = [times_sign(state.extreme, a.scale) for state in (a, b)]
    largest = jnp.maximum(*extremes)
    return times_sign(largest, a.scale), [depths(own / 2, half(largest), a.scale) for own in extremes]


def _merge_exponents(states, gaps, scale):
    """Merges (total, total_rest, slack, rest) of two states, rescaled by exp(``gaps`` times ``scale``)."""
    counts = [state.count.astype(state.total.dtype)[..., None] for state in states]
    divisor, totals, slacks = divisor_of(counts[0] + counts[1]), [], []
    for state, below, count in zip(states, gaps, counts, strict=True):
        below = jnp.where(count == 0, 0, below)
        factor = jnp.exp(scaled(below, scale))
        totals.append((state.total * factor, state.total_rest * factor))
        more = (count / divisor) * slackened(below, scale)
        slacks.append(_rescaled_plus((state.slack, state.rest), factor * (divisor_of(count) / divisor), more))
    return *compensated_add(*totals), *compensated_add(*slacks)


def _rescaled_plus(pair, factor, more):
    """Rescales a compensated sum (value, compensation), and adds ``more``."""
    return compensated_add((pair[0] * factor, pair[1] * factor), (more, jnp.zeros_like(more)))


def _exponents(state):
    count = state.count.astype(state.total.dtype)[..., None]
    return Exponents(state.total + state.total_rest, state.slack + state.rest, count)


@compiled(as_they_come=("x",))
def sum_state(x, mask=None, *, lengths=None):
    """Twin of :func:`attnpool_ref.sum_state`; more chunks hardly add rounding error (Kahan summation).

    >>> whole = merge_states(sum_state(jnp.array([[1.0], [3.0]])), sum_state(jnp.array([[8.0]])))
    >>> finalize_state(whole)
    Array([12.], dtype=float32)
    """
    total = Dense(x, mask, of_chunk=True).sum()
    return SumState(total, jnp.zeros_like(total))


@compiled(as_they_come=("x",))
def min_state(x, mask=None, *, lengths=None):
    """Twin of :func:`attnpool_ref.min_state`; tokens of all chunks that equal the minimum share its gradient evenly.

    >>> whole = merge_states(min_state(jnp.array([[1.0], [3.0]])), min_state(jnp.array([[-99.0]]), jnp.array([False])))
    >>> finalize_state(whole)
    Array([1.], dtype=float32)
    """
    least = Dense(x, mask, of_chunk=True).extreme_state(least=True)
    return MinState(least.extreme, least.count, least.real)


@compiled(as_they_come=("x",))
def noisy_or_state(x, mask=None, *, lengths=None):
    """Twin of :func:`attnpool_ref.noisy_or_state`; small probabilities stay accurate over many chunks.

    >>> finalize_state(merge_states(noisy_or_state(jnp.array([[0.5]])), noisy_or_state(jnp.array([[0.5]]))))
    Array([0.75], dtype=float32)
    """
    probability = noisy_or(DenseChannels(x, mask))
    return NoisyOrState(probability, jnp.zeros_like(probability))


@compiled(as_they_come=("x",))
def power_mean_state(x, mask=None, p=3.0, *, lengths=None, epsilon=1e-6):
    """Twin of :func:`attnpool_ref.power_mean_state`; more chunks hardly add rounding error (Kahan summation).

    >>> whole = merge_states(power_mean_state(jnp.array([[2.0]])), power_mean_state(jnp.array([[2.0]])))
    >>> finalize_state(whole)
    Array([2.], dtype=float32)
    """
    tokens = DenseChannels(x, mask)
    extreme, sums, zeros = power_mean_sums(tokens, p, epsilon)
    count, p = _count_and_scale(sums, tokens.broadcast_features(p)[0])
    return PowerMeanState(extreme, *_with_compensation(sums), zeros, count, p)


@compiled(as_they_come=("x",))
def logsumexp_state(x, mask=None, scale=1.0, *, lengths=None, mean=True):
    """Twin of :func:`attnpool_ref.logsumexp_state`; more chunks hardly add rounding error (Kahan summation).

    >>> one, other = (logsumexp_state(jnp.array([[first]]), scale=0.0) for first in (1.0, 3.0))
    >>> finalize_state(merge_states(one, other))
    Array([2.], dtype=float32)
    """
    tokens = DenseChannels(x, mask)
    extreme, sums = logsumexp_sums(tokens, scale)
    count, scale = _count_and_scale(sums, tokens.broadcast_features(scale)[0])
    return LogsumexpState(extreme, *_with_compensation(sums), count, scale, mean)


@compiled(as_they_come=("x",))
def softmax_state(x, mask=None, scale=1.0, *, lengths=None):
    """Twin of :func:`attnpool_ref.softmax_state`; more chunks hardly add rounding error (Kahan summation).

    >>> one, other = (softmax_state(jnp.array([[first]]), scale=0.0) for first in (1.0, 3.0))
    >>> finalize_state(merge_states(one, other))
    Array([2.], dtype=float32)
    """
    tokens = DenseChannels(x, mask)
    extreme, total, excess, _ = softmax_sums(tokens, scale)
    zero, scale = jnp.zeros_like(total), jnp.broadcast_to(tokens.broadcast_features(scale)[0], total.shape)
    return SoftmaxState(extreme, total, zero, excess, zero, scale)


def _with_compensation(sums):
    """Returns the fields (total, total_rest, slack, rest) of a state, with compensations of 0."""
    zero = jnp.zeros_like(sums.total)
    return sums.total, zero, sums.slack, zero


def _count_and_scale(sums, scale):
    """Returns (the number of real tokens, int32 [...]; the scale, or p, broadcast to [..., d])."""
    return lax.stop_gradient(sums.count)[..., 0].astype(jnp.int32), jnp.broadcast_to(scale, sums.total.shape)
