"""Chunked statistics: moments about a center, merged without subtracting large squares (Chan et al. 1983)."""

from typing import Any

import jax.numpy as jnp
from jax import lax

from attnpool_flax.call.compiled import compiled
from attnpool_flax.call.states import State, kind
from attnpool_flax.numerics.remat import remat
from attnpool_flax.numerics.softmax import exponential
from attnpool_flax.statistics import scores_of
from attnpool_flax.tokens import DenseChannels
from attnpool_flax.tokens.channels import exp_scores
from attnpool_flax.tokens.moments import StdState, mean_and_deviation, merged_moments, moments


@kind
class StatisticsState(StdState):
    """State of :func:`~attnpool_flax.streaming.statistics_state`: the fields are those of :class:`StdState`."""

    @property
    def shape(self):
        """The shape of the result."""
        return _doubled(self.second.shape)

    def finalized(self):
        """Returns the result [..., 2d]; 0 for a fully masked row, or if the weights cancel."""
        return jnp.concatenate(mean_and_deviation(self, self.ddof, self.epsilon), -1)


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
        return AttentiveStatisticsState(max_score, *merged_moments(self, other, ratios), self.epsilon)

    def finalized(self):
        """Returns the result [..., 2d]; 0 for a fully masked row."""
        return jnp.concatenate(mean_and_deviation(self, 0, self.epsilon), -1)


def _doubled(shape):
    return (*shape[:-1], 2 * shape[-1])


def _with_compensation(sums):
    """Returns the fields of a :class:`StdState` from ``scale`` to ``second_rest``, with compensations of 0."""
    total, squares, second = ((value, jnp.zeros_like(value)) for value in (sums.total, sums.squares, sums.second))
    return sums.scale, sums.center, sums.mass, *total, *squares, sums.first, *second


def _number(value, x):
    return jnp.reshape(value, (1,) * (x.ndim - 1))


@compiled(as_they_come=("x",))
def std_state(x, mask=None, weights=None, *, lengths=None, ddof=0, epsilon=0.0):
    """Twin of :func:`attnpool_ref.std_state`; more chunks hardly add rounding error (Kahan summation).

    >>> whole = merge_states(std_state(jnp.array([[1.0], [2.0]])), std_state(jnp.array([[6.0]])))
    >>> finalize_state(whole).round(5)
    Array([2.16025], dtype=float32)
    """
    return _state(StdState, x, mask, weights, ddof, epsilon)


@compiled(as_they_come=("x",))
def statistics_state(x, mask=None, weights=None, *, lengths=None, ddof=0, epsilon=0.0):
    """Twin of :func:`attnpool_ref.statistics_state`; more chunks hardly add rounding error (Kahan summation).

    >>> whole = merge_states(statistics_state(jnp.array([[1.0], [1.0]])), statistics_state(jnp.array([[3.0], [3.0]])))
    >>> finalize_state(whole)
    Array([2., 1.], dtype=float32)
    """
    return _state(StatisticsState, x, mask, weights, ddof, epsilon)


def _state(kind, x, mask, weights, ddof, epsilon):
    """Returns the state, a :class:`StdState`, of a chunk under the caller's weights; None is 1 each."""

    def compute(x, mask, weights):
        channels = DenseChannels(x, mask)
        if weights is not None:
            weights = channels.fill_padding(channels.expand_to_features(weights))
        return moments(channels, weights)

    sums = remat(compute)(x, mask, weights)
    return kind(sums.unit, *_with_compensation(sums), _number(ddof, x), _number(epsilon, x))


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
    return AttentiveStatisticsState(max_score, *_with_compensation(sums), _number(epsilon, x))
