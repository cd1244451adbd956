"""Chunked statistics: moments about a center, merged without subtracting large squares (Chan et al. 1983)."""

from typing import Any

import jax.numpy as jnp
from jax import lax

from attnpool_flax.call.compiled import compiled
from attnpool_flax.call.states import State, kind
from attnpool_flax.numerics.moments import Moments, mean_and_deviation, moments
from attnpool_flax.numerics.remat import remat
from attnpool_flax.numerics.softmax import exponential
from attnpool_flax.numerics.sums import compensated_add
from attnpool_flax.statistics import scores_of
from attnpool_flax.tokens import DenseChannels
from attnpool_flax.tokens.channels import exp_scores

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
class StdState(State):
    """State of :func:`~attnpool_flax.streaming.std_state`: moments, [..., d], or [..., 1] if the channels share them.

    ``unit``, ``scale``, ``center`` and ``mass`` are constants in the gradient, because they cancel. All sums are
    of weights divided by ``unit`` and distances divided by ``scale``, so that squares neither under- nor overflow.

    Attributes:
      unit: the unit of the weights, a power of two.
      scale: the unit of distances, a power of two.
      center: the mean under the absolute weights, not divided; distances are tokens minus the center.
      mass: the sum of the absolute weights.
      total: the sum of the weights.
      total_rest: the compensation of ``total``.
      squares: the sum of the squared weights.
      squares_rest: the compensation of ``squares``.
      first: the sum of weight times distance, which corrects the rounding error of the center.
      second: the sum of weight times squared distance.
      second_rest: the compensation of ``second``.
      ddof: [..., 1], the option ``ddof``.
      epsilon: [..., 1], the option ``epsilon``.
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

    options = "ddof", "epsilon"
    shaped_as = "second"

    def merged(self, other):
        """Merges the states of both chunks, about a center between those of the states."""
        unit = jnp.maximum(self.unit, other.unit)
        ratios = [state.unit / unit for state in (self, other)]
        return type(self)(unit, *_merged(self, other, ratios), self.ddof, self.epsilon)

    def finalized(self):
        """Returns the result [..., d]; 0 for a fully masked row, or if the weights cancel."""
        return _statistics(self, self.ddof)[1]


@kind
class StatisticsState(StdState):
    """State of :func:`~attnpool_flax.streaming.statistics_state`: the fields are those of :class:`StdState`."""

    @property
    def shape(self):
        """The shape of the result."""
        return _doubled(self.second.shape)

    def finalized(self):
        """Returns the result [..., 2d]; 0 for a fully masked row, or if the weights cancel."""
        return jnp.concatenate(_statistics(self, self.ddof), -1)


@kind
class AttentiveStatisticsState(State):
    """State of :func:`~attnpool_flax.streaming.attentive_statistics_state`: moments under weights exp(score - top).

    Attributes:
      top: [..., d] or [..., 1], the largest score; -inf for a fully masked row. It is a constant in the gradient.
      scale: the unit of distances, a power of two; [..., d] or [..., 1], as the fields up to ``second_rest``.
      center: the mean; distances are tokens minus the center.
      mass: the sum of the weights.
      total: the sum of the weights.
      total_rest: the compensation of ``total``.
      squares: the sum of the squared weights.
      squares_rest: the compensation of ``squares``.
      first: the sum of weight times distance, in units of ``scale``; it corrects the rounding error of the center.
      second: the sum of weight times squared distance, in units of ``scale`` squared.
      second_rest: the compensation of ``second``.
      epsilon: [..., 1], the option ``epsilon``.
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

    options = ("epsilon",)

    @property
    def shape(self):
        """The shape of the result."""
        return _doubled(self.second.shape)

    def merged(self, other):
        """Merges the states of both chunks."""
        max_score = lax.stop_gradient(jnp.maximum(self.top, other.top))
        ratios = [exponential(lax.stop_gradient(state.top), max_score) for state in (self, other)]
        return AttentiveStatisticsState(max_score, *_merged(self, other, ratios), self.epsilon)

    def finalized(self):
        """Returns the result [..., 2d]; 0 for a fully masked row."""
        return jnp.concatenate(_statistics(self, 0), -1)


def _doubled(shape):
    return (*shape[:-1], 2 * shape[-1])


def _merged(a, b, ratios):
    """Returns the merged moments of two states in the order of ``_MOMENTS``; ``ratios`` rescale the weights of each."""
    scale = jnp.maximum(a.scale, b.scale)
    masses = [state.mass * ratio for state, ratio in zip((a, b), ratios, strict=True)]
    mass = masses[0] + masses[1]
    fraction = masses[1] / jnp.where(mass == 0, 1, mass)
    center = jnp.where(masses[0] == 0, b.center, a.center + (b.center - a.center) * fraction)
    center = jnp.where(masses[1] == 0, a.center, center)
    first, totals, squares, seconds = 0, [], [], []
    for state, own, ratio in zip((a, b), masses, ratios, strict=True):
        here = (own == 0) | (state.center == center)
        shift, shrunk = jnp.where(here, 0, state.center / scale - center / scale), state.scale / scale
        own_first = shrunk * state.first
        first = first + ratio * (own_first + shift * state.total)
        totals.append((state.total * ratio, state.total_rest * ratio))
        squares.append((state.squares * ratio * ratio, state.squares_rest * ratio * ratio))
        second = shrunk * shrunk * state.second + shift * (2 * own_first + shift * state.total)
        seconds.append((ratio * second, ratio * shrunk * shrunk * state.second_rest))
    return scale, center, mass, *compensated_add(*totals), *compensated_add(*squares), first, *compensated_add(*seconds)


def _statistics(state, ddof):
    total, squares, second = state.total + state.total_rest, state.squares + state.squares_rest, state.second
    sums = total, squares, state.first, second + state.second_rest
    merged = Moments(jnp.ones_like(total), state.scale, state.center / state.scale, state.mass, *sums)
    return mean_and_deviation(merged, ddof, state.epsilon)


def _fields(sums):
    """Returns the :class:`Moments` of a chunk in the order of ``_MOMENTS``, with compensations of 0."""
    total, squares, second = ((value, jnp.zeros_like(value)) for value in (sums.total, sums.squares, sums.second))
    return sums.scale, sums.scale * sums.center, sums.mass, *total, *squares, sums.first, *second


def _number(value, x):
    return jnp.reshape(value, (1,) * (x.ndim - 1))


@compiled(as_they_come=("x",))
def std_state(x, mask=None, weights=None, *, lengths=None, ddof=0, epsilon=0.0):
    """Twin of :func:`attnpool_ref.std_state`; more chunks hardly add rounding error (Kahan summation).

    >>> whole = merge_states(std_state(jnp.array([[1.0], [2.0]])), std_state(jnp.array([[6.0]])))
    >>> finalize_state(whole).round(5)
    Array([2.16025], dtype=float32)
    """
    return StdState(*_given(x, mask, weights), _number(ddof, x), _number(epsilon, x))


@compiled(as_they_come=("x",))
def statistics_state(x, mask=None, weights=None, *, lengths=None, ddof=0, epsilon=0.0):
    """Twin of :func:`attnpool_ref.statistics_state`; more chunks hardly add rounding error (Kahan summation).

    >>> whole = merge_states(statistics_state(jnp.array([[1.0], [1.0]])), statistics_state(jnp.array([[3.0], [3.0]])))
    >>> finalize_state(whole)
    Array([2., 1.], dtype=float32)
    """
    return StatisticsState(*_given(x, mask, weights), _number(ddof, x), _number(epsilon, x))


def _given(x, mask, weights):
    """Returns (unit, *moments in the order of ``_MOMENTS``) of a chunk under the caller's weights; None is 1 each."""

    def compute(x, mask, weights):
        channels = DenseChannels(x, mask)
        return moments(
            channels, None if weights is None else channels.fill_padding(channels.expand_to_features(weights))
        )

    sums = remat(compute)(x, mask, weights)
    return sums.unit, *_fields(sums)


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
    """Twin of :func:`attnpool_ref.attentive_statistics_state`; more chunks hardly add rounding error (Kahan summation).

    >>> kernels = {"kernel": jnp.array([[0.0]]), "out_kernel": jnp.array([1.0])}
    >>> whole = merge_states(*(attentive_statistics_state(jnp.array([[token]]), **kernels) for token in (1.0, 3.0)))
    >>> finalize_state(whole)
    Array([2., 1.], dtype=float32)
    """

    def compute(x, mask, kernel, bias, norm_scale, norm_bias, out_kernel):
        channels = DenseChannels(x, mask)
        network = kernel, bias, norm_scale, norm_bias, activation, out_kernel
        weights, max_score = exp_scores(channels, scores_of(channels, network, None, precision))
        return max_score, moments(channels, weights)

    max_score, sums = remat(compute)(x, mask, kernel, bias, norm_scale, norm_bias, out_kernel)
    return AttentiveStatisticsState(max_score, *_fields(sums), _number(epsilon, x))
