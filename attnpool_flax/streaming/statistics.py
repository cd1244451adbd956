"""The states of statistics pooling: moments about a center, of which no merging subtracts large squares."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import lax

from attnpool_flax.call.compiled import compiled
from attnpool_flax.numerics.remat import remat
from attnpool_flax.reductions import DenseChannels, exp_scores, moments
from attnpool_flax.reductions.moments import Moments, mean_and_deviation
from attnpool_flax.reductions.softmax import exponential
from attnpool_flax.reductions.state_base import State, kind, pytree
from attnpool_flax.reductions.sums import compensated_add
from attnpool_flax.statistics import scores_of

_MOMENTS = (
    "scale",
    "center",
    "mass",
    "total",
    "total_rest",
    "squares",
    "squares_rest",
    "first",
    "second",
    "second_rest",
)


@kind
@pytree("unit", *_MOMENTS, "ddof", "epsilon", static=("known",))
@dataclass(frozen=True, eq=False)
class StdState(State):
    """Of :func:`~attnpool_flax.streaming.std_state`: moments, each [..., d], or [..., 1] for all features alike.

    Attributes:
      unit: of the weights, a power of two. It is a constant, as are scale, center and mass: they cancel.
      scale: of distances, a power of two.
      center: the mean, where no weight is negative.
      mass: the sum of the weights' magnitudes, in their unit.
      total: the sum of the weights, in their unit.
      total_rest: what rounding took from it.
      squares: the sum of the squared weights, in their unit's square.
      squares_rest: what rounding took from it.
      first: the sum of weight times distance from the center: what rounding took from the center.
      second: the sum of weight times squared distance.
      second_rest: what rounding took from it.
      ddof: [..., 1], as it was given.
      epsilon: [..., 1], as it was given.
      known: the options as far as the caller gave numbers; static.
      decided: the name of the result's dtype; empty where integers alone decide none.
    """

    unit: Any
    scale: Any
    center: Any
    mass: Any
    total: Any
    total_rest: Any
    squares: Any
    squares_rest: Any
    first: Any
    second: Any
    second_rest: Any
    ddof: Any
    epsilon: Any
    known: tuple = ()
    decided: str = ""

    options = "ddof", "epsilon"

    @property
    def shape(self):
        """The shape of the result."""
        return self.second.shape

    def merged(self, other):
        """Merges both chunks, about a center between theirs."""
        unit = jnp.maximum(self.unit, other.unit)
        ratios = [state.unit / unit for state in (self, other)]
        return type(self)(unit, *_merged(self, other, ratios), self.ddof, self.epsilon)

    def finalized(self):
        """Returns [..., d]; 0 for a fully masked row, or weights that cancel."""
        return _statistics(self, self.ddof)[1]


@kind
@pytree("unit", *_MOMENTS, "ddof", "epsilon", static=("known",))
@dataclass(frozen=True, eq=False)
class StatisticsState(StdState):
    """Of :func:`~attnpool_flax.streaming.statistics_state`: a :class:`StdState`."""

    @property
    def shape(self):
        """The shape of the result."""
        return _doubled(self.second.shape)

    def finalized(self):
        """Returns [..., 2d]; 0 for a fully masked row, or weights that cancel."""
        return jnp.concatenate(_statistics(self, self.ddof), -1)


@kind
@pytree("top", *_MOMENTS, "epsilon", static=("known",))
@dataclass(frozen=True, eq=False)
class AttentiveStatisticsState(State):
    """Of :func:`~attnpool_flax.streaming.attentive_statistics_state`: moments under exp(score - top).

    Attributes:
      top: [..., d] or [..., 1], the largest score; -inf without any. A constant, as it cancels.
      scale: as those of :class:`StdState`, as are all others, with exp(score - top) as the weight.
      center: the mean.
      mass: the sum of the weights.
      total: the sum of the weights.
      total_rest: what rounding took from it.
      squares: the sum of the squared weights.
      squares_rest: what rounding took from it.
      first: the sum of weight times distance from the center.
      second: the sum of weight times squared distance.
      second_rest: what rounding took from it.
      epsilon: [..., 1], as it was given.
      known: the options as far as the caller gave numbers; static.
      decided: the name of the result's dtype; empty where integers alone decide none.
    """

    top: Any
    scale: Any
    center: Any
    mass: Any
    total: Any
    total_rest: Any
    squares: Any
    squares_rest: Any
    first: Any
    second: Any
    second_rest: Any
    epsilon: Any
    known: tuple = ()
    decided: str = ""

    options = ("epsilon",)

    @property
    def shape(self):
        """The shape of the result."""
        return _doubled(self.second.shape)

    def merged(self, other):
        """Merges both chunks, rescaled to the larger maximum."""
        top = lax.stop_gradient(jnp.maximum(self.top, other.top))
        ratios = [exponential(lax.stop_gradient(state.top), top) for state in (self, other)]
        return AttentiveStatisticsState(top, *_merged(self, other, ratios), self.epsilon)

    def finalized(self):
        """Returns [..., 2d]; 0 for a fully masked row."""
        return jnp.concatenate(_statistics(self, 0), -1)


def _doubled(shape):
    return (*shape[:-1], 2 * shape[-1])


def _merged(a, b, ratios):
    """Merges the moments of two states whose weights are multiplied by ``ratios``, in the order of the fields."""
    scale = jnp.maximum(a.scale, b.scale)
    masses = [state.mass * ratio for state, ratio in zip((a, b), ratios, strict=True)]
    mass = masses[0] + masses[1]
    share = masses[1] / jnp.where(mass == 0, 1, mass)
    center = jnp.where(masses[0] == 0, b.center, a.center + (b.center - a.center) * share)
    center = jnp.where(masses[1] == 0, a.center, center)
    first, totals, squares, seconds = 0, [], [], []
    for state, own, ratio in zip((a, b), masses, ratios, strict=True):
        here = (own == 0) | (state.center == center)
        moved, shrunk = jnp.where(here, 0, state.center / scale - center / scale), state.scale / scale
        near = shrunk * state.first
        first = first + ratio * (near + moved * state.total)
        totals.append((state.total * ratio, state.total_rest * ratio))
        squares.append((state.squares * ratio * ratio, state.squares_rest * ratio * ratio))
        second = shrunk * shrunk * state.second + moved * (2 * near + moved * state.total)
        seconds.append((ratio * second, ratio * shrunk * shrunk * state.second_rest))
    return scale, center, mass, *compensated_add(*totals), *compensated_add(*squares), first, *compensated_add(*seconds)


def _statistics(state, ddof):
    total, squares, second = state.total + state.total_rest, state.squares + state.squares_rest, state.second
    sums = total, squares, state.first, second + state.second_rest
    found = Moments(jnp.ones_like(total), state.scale, state.center / state.scale, state.mass, *sums)
    return mean_and_deviation(found, ddof, state.epsilon)


def _fields(found):
    """Returns the moments of a chunk in the order of the fields."""
    pairs = [(part, jnp.zeros_like(part)) for part in (found.total, found.squares)]
    center = found.scale * found.center
    return (
        found.scale,
        center,
        found.mass,
        *pairs[0],
        *pairs[1],
        found.first,
        found.second,
        jnp.zeros_like(found.second),
    )


def _number(value, x):
    return jnp.reshape(value, (1,) * (x.ndim - 1))


@compiled(as_they_come=("x",))
def std_state(x, mask=None, weights=None, *, lengths=None, ddof=0, epsilon=0.0):
    """Twin of :func:`attnpool_ref.std_state`; the sums keep what rounding takes from them, and do not drift.

    >>> whole = merge_states(std_state(jnp.array([[1.0], [2.0]])), std_state(jnp.array([[6.0]])))
    >>> finalize_state(whole).round(5)
    Array([2.16025], dtype=float32)
    """
    return StdState(*_given(x, mask, weights), _number(ddof, x), _number(epsilon, x))


@compiled(as_they_come=("x",))
def statistics_state(x, mask=None, weights=None, *, lengths=None, ddof=0, epsilon=0.0):
    """Twin of :func:`attnpool_ref.statistics_state`; the sums keep what rounding takes from them, and do not drift.

    >>> whole = merge_states(statistics_state(jnp.array([[1.0], [1.0]])), statistics_state(jnp.array([[3.0], [3.0]])))
    >>> finalize_state(whole)
    Array([2., 1.], dtype=float32)
    """
    return StatisticsState(*_given(x, mask, weights), _number(ddof, x), _number(epsilon, x))


def _given(x, mask, weights):
    """Computes the unit and the moments of a chunk under given weights."""

    def found(x, mask, weights):
        channels = DenseChannels(x, mask)
        return moments(
            channels, None if weights is None else channels.fill_padding(channels.expand_to_features(weights))
        )

    found = remat(found)(x, mask, weights)
    return found.unit, *_fields(found)


@compiled(as_they_come=("x",))
def attentive_statistics_state(
    x,
    mask=None,
    *,
    lengths=None,
    kernel,
    out_kernel,
    bias=None,
    out_bias=None,
    norm_scale=None,
    norm_bias=None,
    activation="tanh",
    global_context=False,
    epsilon=0.0,
    precision=None,
):
    """Twin of :func:`attnpool_ref.attentive_statistics_state`; the sums keep what rounding takes from them.

    >>> kernels = {"kernel": jnp.array([[0.0]]), "out_kernel": jnp.array([1.0])}
    >>> whole = merge_states(*(attentive_statistics_state(jnp.array([[token]]), **kernels) for token in (1.0, 3.0)))
    >>> finalize_state(whole)
    Array([2., 1.], dtype=float32)
    """

    def found(x, mask, kernel, bias, norm_scale, norm_bias, out_kernel):
        channels = DenseChannels(x, mask)
        network = kernel, bias, norm_scale, norm_bias, activation, out_kernel
        weights, top = exp_scores(channels, scores_of(channels, network, None, precision))
        return top, moments(channels, weights)

    top, own = remat(found)(x, mask, kernel, bias, norm_scale, norm_bias, out_kernel)
    return AttentiveStatisticsState(top, *_fields(own), _number(epsilon, x))
