"""The states of sums and generalised means. Twin of :mod:`attnpool_ref.streaming.means`: sums keep what rounding takes."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import lax

from attnpool_flax.call.compiled import compiled
from attnpool_flax.means import (
    doubled,
    either,
    finished_logsumexp,
    finished_power_mean,
    finished_softmax,
    logsumexp_sums,
    noisy_or,
    power_mean_sums,
    softmax_sums,
    turned,
)
from attnpool_flax.reductions import Dense, DenseChannels
from attnpool_flax.reductions.exponents import Exponents, depths, exponential_times, half, scaled, slackened
from attnpool_flax.reductions.state import MaxState
from attnpool_flax.reductions.state_base import State, kind, pytree
from attnpool_flax.reductions.sums import compensated_add, divisor_of


@kind
@pytree("sum", "rest")
@dataclass(frozen=True, eq=False)
class SumState(State):
    """Of :func:`~attnpool_flax.streaming.sum_state`.

    Attributes:
      sum: [..., d], the sum of the real tokens.
      rest: [..., d], what rounding took from it.
      decided: the name of the result's dtype; empty where integers alone decide none.
    """

    sum: Any
    rest: Any
    decided: str = ""

    @property
    def shape(self):
        """The shape of the result."""
        return self.sum.shape

    def merged(self, other):
        """Merges the states of both chunks."""
        return SumState(*compensated_add((self.sum, self.rest), (other.sum, other.rest)))

    def finalized(self):
        """Returns [..., d]; 0 for a fully masked row."""
        return self.sum + self.rest


@kind
@pytree("extreme", "count", "real")
@dataclass(frozen=True, eq=False)
class MinState(State):
    """Of :func:`~attnpool_flax.streaming.min_state`.

    Attributes:
      extreme: [..., d], the smallest values; inf without any.
      count: [..., d], int32, how many real tokens reach it: they share its gradient.
      real: [...], whether any token was real.
      decided: the name of the result's dtype; empty where integers alone decide none.
    """

    extreme: Any
    count: Any
    real: Any
    decided: str = ""

    @property
    def shape(self):
        """The shape of the result."""
        return self.extreme.shape

    def merged(self, other):
        """Merges the states of both chunks."""
        one, two = (MaxState(-state.extreme, state.count, state.real) for state in (self, other))
        both = one.merged(two)
        return MinState(-both.extreme, both.count, both.real)

    def finalized(self):
        """Returns [..., d]; 0 for a fully masked row."""
        return jnp.where(self.real[..., None], self.extreme, 0)


@kind
@pytree("probability", "rest")
@dataclass(frozen=True, eq=False)
class NoisyOrState(State):
    """Of :func:`~attnpool_flax.streaming.noisy_or_state`.

    Attributes:
      probability: [..., d], that anything happened.
      rest: [..., d], what rounding took from it.
      decided: the name of the result's dtype; empty where integers alone decide none.
    """

    probability: Any
    rest: Any
    decided: str = ""

    @property
    def shape(self):
        """The shape of the result."""
        return self.probability.shape

    def merged(self, other):
        """Merges the states of both chunks: a + (b - a b)."""
        infinite = jnp.isinf(self.probability) | jnp.isinf(other.probability)
        ours, rest = (jnp.where(infinite, 0, part) for part in (self.probability, self.rest))
        left = 1 - ours
        theirs = other.probability * left, other.rest * left - other.probability * rest
        probability, rest = compensated_add((ours, rest), theirs)
        both = either(self.probability, other.probability)
        return NoisyOrState(jnp.where(infinite, both, probability), jnp.where(infinite, 0, rest))

    def finalized(self):
        """Returns [..., d]; 0 for a fully masked row."""
        return self.probability + self.rest


@kind
@pytree("extreme", "total", "total_rest", "slack", "rest", "zeros", "count", "p", static=("known",))
@dataclass(frozen=True, eq=False)
class PowerMeanState(State):
    """Of :func:`~attnpool_flax.streaming.power_mean_state`: sums under p of how far logarithms lie below the largest.

    Attributes:
      extreme: [..., d], the largest value, the smallest where p is negative; 0 or inf without any. A constant.
      total: [..., d], the sum of exp(depth), of depths at most 0.
      total_rest: [..., d], what rounding took from it.
      slack: [..., d], the sum of (exp(depth) - 1) over the magnitude of p, over a power of two above the count.
      rest: [..., d], what rounding took from it.
      zeros: [..., d], what tokens that are 0 add: nothing but a gradient, where p is 1.
      count: [...], int32, the number of real tokens.
      p: [..., d], that of all chunks.
      known: the options as far as the caller gave numbers; static.
      decided: the name of the result's dtype; empty where integers alone decide none.
    """

    extreme: Any
    total: Any
    total_rest: Any
    slack: Any
    rest: Any
    zeros: Any
    count: Any
    p: Any
    known: tuple = ()
    decided: str = ""

    options = ("p",)

    @property
    def shape(self):
        """The shape of the result."""
        return self.total.shape

    def merged(self, other):
        """Merges both chunks, rescaled to the larger one."""
        logarithms = [turned(jnp.log(state.extreme), self.p) for state in (self, other)]
        first, second = (turned(state.extreme, self.p) for state in (self, other))
        apart = turned(jnp.maximum(first, second), self.p)
        below = depths(jnp.minimum(*logarithms), jnp.maximum(*logarithms), self.p)
        under = [jnp.where(state.extreme == apart, 0, below) for state in (self, other)]
        sums = _exponents_merged((self, other), under, turned(self.p, self.p))
        return PowerMeanState(apart, *sums, self.zeros + other.zeros, self.count + other.count, self.p)

    def finalized(self):
        """Returns [..., d]; 0 for a fully masked row."""
        return finished_power_mean(self.extreme, _exponents(self), self.zeros, self.p)


@kind
@pytree("extreme", "total", "total_rest", "slack", "rest", "count", "scale", static=("mean", "known"))
@dataclass(frozen=True, eq=False)
class LogsumexpState(State):
    """Of :func:`~attnpool_flax.streaming.logsumexp_state`: sums of how far values lie below the largest.

    Attributes:
      extreme: [..., d], the largest value, the smallest where the scale is negative; an infinity without any. A constant.
      total: [..., d], the sum of exp(scale depth), of depths at most 0.
      total_rest: [..., d], what rounding took from it.
      slack: [..., d], half the sum of (exp(scale depth) - 1) over the magnitude of the scale, over a power of two above the
        count: it does not overflow.
      rest: [..., d], what rounding took from it.
      count: [...], int32, the number of real tokens.
      scale: [..., d], that of all chunks.
      mean: whether it ends in a mean; static.
      known: the options as far as the caller gave numbers; static.
      decided: the name of the result's dtype; empty where integers alone decide none.
    """

    extreme: Any
    total: Any
    total_rest: Any
    slack: Any
    rest: Any
    count: Any
    scale: Any
    mean: bool
    known: tuple = ()
    decided: str = ""

    options = "scale", "mean"

    @property
    def shape(self):
        """The shape of the result."""
        return self.total.shape

    def merged(self, other):
        """Merges both chunks, rescaled to the larger exponent."""
        extreme, under = _met(self, other)
        sums = _exponents_merged((self, other), under, doubled(self.scale))
        return LogsumexpState(extreme, *sums, self.count + other.count, self.scale, self.mean)

    def finalized(self):
        """Returns [..., d]; 0 for a fully masked row."""
        return finished_logsumexp(self.extreme, _exponents(self), self.scale, self.mean)


@kind
@pytree("extreme", "total", "total_rest", "excess", "rest", "scale", static=("known",))
@dataclass(frozen=True, eq=False)
class SoftmaxState(State):
    """Of :func:`~attnpool_flax.streaming.softmax_state`: an exponential average of each channel before its division.

    Attributes:
      extreme: [..., d], the largest value, the smallest where the scale is negative; an infinity without any. A constant.
      total: [..., d], the sum of exp(scale depth), of depths at most 0.
      total_rest: [..., d], what rounding took from it.
      excess: [..., d], half the sum of exp(scale depth) times the depth, over a power of two above the total: it does not
        overflow.
      rest: [..., d], what rounding took from it.
      scale: [..., d], that of all chunks.
      known: the options as far as the caller gave numbers; static.
      decided: the name of the result's dtype; empty where integers alone decide none.
    """

    extreme: Any
    total: Any
    total_rest: Any
    excess: Any
    rest: Any
    scale: Any
    known: tuple = ()
    decided: str = ""

    options = ("scale",)

    @property
    def shape(self):
        """The shape of the result."""
        return self.excess.shape

    def merged(self, other):
        """Merges both chunks, rescaled to the larger exponent."""
        extreme, under = _met(self, other)
        exponents = [scaled(below, doubled(self.scale)) for below in under]
        shares = [jnp.exp(exponent) for exponent in exponents]
        totals = [(s.total * share, s.total_rest * share) for s, share in zip((self, other), shares, strict=True)]
        total, sums = compensated_add(*totals), []
        part = divisor_of(total[0])
        for state, below, exponent, share in zip((self, other), under, exponents, shares, strict=True):
            infinite = jnp.isinf(below)
            more = state.total * exponential_times(exponent, jnp.where(infinite, 0, below) / part)
            more = jnp.where(infinite & (self.scale == 0) & (state.total > 0), below, more)
            sums.append(_moved((state.excess, state.rest), share * (divisor_of(state.total) / part), more))
        return SoftmaxState(extreme, *total, *compensated_add(*sums), self.scale)

    def finalized(self):
        """Returns [..., d]; 0 for a fully masked row."""
        excess = (self.excess + self.rest) * (divisor_of(self.total) / divisor_of(self.total + self.total_rest))
        return finished_softmax(self.extreme, self.total + self.total_rest, excess, self.scale)


def _met(a, b):
    """Returns the extreme of two states, and half of each one's distance from it in the scale's sign, at most 0."""
    tops = [turned(state.extreme, a.scale) for state in (a, b)]
    top = jnp.maximum(*tops)
    return turned(top, a.scale), [depths(own / 2, half(top), a.scale) for own in tops]


def _exponents_merged(states, under, scale):
    """Merges (total, its rest, slack, its rest) of two states that lie ``under`` the larger one; the scale is >= 0."""
    counts = [state.count.astype(state.total.dtype)[..., None] for state in states]
    part, totals, slacks = divisor_of(counts[0] + counts[1]), [], []
    for state, below, count in zip(states, under, counts, strict=True):
        below = jnp.where(count == 0, 0, below)
        share = jnp.exp(scaled(below, scale))
        totals.append((state.total * share, state.total_rest * share))
        more = (count / part) * slackened(below, scale)
        slacks.append(_moved((state.slack, state.rest), share * (divisor_of(count) / part), more))
    return *compensated_add(*totals), *compensated_add(*slacks)


def _moved(pair, share, more):
    """Rescales a compensated sum (value, rest) by ``share``, and adds ``more``."""
    return compensated_add((pair[0] * share, pair[1] * share), (more, jnp.zeros_like(more)))


def _exponents(state):
    count = state.count.astype(state.total.dtype)[..., None]
    return Exponents(state.total + state.total_rest, state.slack + state.rest, count)


@compiled(as_they_come=("x",))
def sum_state(x, mask=None, *, lengths=None, implementation=None):
    """Twin of :func:`attnpool_ref.sum_state`; the sum keeps what rounding takes from it, and does not drift.

    >>> whole = merge_states(sum_state(jnp.array([[1.0], [3.0]])), sum_state(jnp.array([[8.0]])))
    >>> finalize_state(whole)
    Array([12.], dtype=float32)
    """
    total = Dense(x, mask, implementation, recompute=True).sum()
    return SumState(total, jnp.zeros_like(total))


@compiled(as_they_come=("x",))
def min_state(x, mask=None, *, lengths=None, implementation=None):
    """Twin of :func:`attnpool_ref.min_state`; ties are counted, and share the gradient whichever chunks they stand in.

    >>> whole = merge_states(min_state(jnp.array([[1.0], [3.0]])), min_state(jnp.array([[-99.0]]), jnp.array([False])))
    >>> finalize_state(whole)
    Array([1.], dtype=float32)
    """
    top, count, real = Dense(x, mask, implementation, recompute=True).max_state(least=True)
    return MinState(-top, count, real)


@compiled(as_they_come=("x",))
def noisy_or_state(x, mask=None, *, lengths=None):
    """Twin of :func:`attnpool_ref.noisy_or_state`; small probabilities of many chunks do not drift.

    >>> finalize_state(merge_states(noisy_or_state(jnp.array([[0.5]])), noisy_or_state(jnp.array([[0.5]]))))
    Array([0.75], dtype=float32)
    """
    probability = noisy_or(DenseChannels(x, mask))
    return NoisyOrState(probability, jnp.zeros_like(probability))


@compiled(as_they_come=("x",))
def power_mean_state(x, mask=None, p=3.0, *, lengths=None, epsilon=1e-6):
    """Twin of :func:`attnpool_ref.power_mean_state`; the sums keep what rounding takes from them.

    >>> whole = merge_states(power_mean_state(jnp.array([[2.0]])), power_mean_state(jnp.array([[2.0]])))
    >>> finalize_state(whole)
    Array([2.], dtype=float32)
    """
    tokens = DenseChannels(x, mask)
    extreme, sums, zeros = power_mean_sums(tokens, p, epsilon)
    count, p = _counted(sums, tokens.broadcast_features(p)[0])
    return PowerMeanState(extreme, *_with_compensation(sums), zeros, count, p)


@compiled(as_they_come=("x",))
def logsumexp_state(x, mask=None, scale=1.0, *, lengths=None, mean=True):
    """Twin of :func:`attnpool_ref.logsumexp_state`; the sums keep what rounding takes from them.

    >>> one, other = (logsumexp_state(jnp.array([[first]]), scale=0.0) for first in (1.0, 3.0))
    >>> finalize_state(merge_states(one, other))
    Array([2.], dtype=float32)
    """
    tokens = DenseChannels(x, mask)
    extreme, sums = logsumexp_sums(tokens, scale)
    count, scale = _counted(sums, tokens.broadcast_features(scale)[0])
    return LogsumexpState(extreme, *_with_compensation(sums), count, scale, mean)


@compiled(as_they_come=("x",))
def softmax_state(x, mask=None, scale=1.0, *, lengths=None):
    """Twin of :func:`attnpool_ref.softmax_state`; the sums keep what rounding takes from them.

    >>> one, other = (softmax_state(jnp.array([[first]]), scale=0.0) for first in (1.0, 3.0))
    >>> finalize_state(merge_states(one, other))
    Array([2.], dtype=float32)
    """
    tokens = DenseChannels(x, mask)
    extreme, total, excess, _ = softmax_sums(tokens, scale)
    nothing = jnp.zeros_like(total)
    return SoftmaxState(
        extreme, total, nothing, excess, nothing, jnp.broadcast_to(tokens.broadcast_features(scale)[0], total.shape)
    )


def _with_compensation(sums):
    """Returns (total, its rest, slack, its rest)."""
    nothing = jnp.zeros_like(sums.total)
    return sums.total, nothing, sums.slack, nothing


def _counted(sums, scale):
    """Returns (the number of real tokens [...], the scale [..., d])."""
    return lax.stop_gradient(sums.count)[..., 0].astype(jnp.int32), jnp.broadcast_to(scale, sums.total.shape)
