"""Mean and deviation by moments about a center near the mean: no large squares are subtracted (Chan et al. 1983)."""

from functools import partial
from typing import Any

import jax.numpy as jnp
from jax import lax

from attnpool_flax.call.states import State, kind
from attnpool_flax.numerics.rounding import power_of_two
from attnpool_flax.numerics.sums import compensated_add


@kind
class StdState(State):
    """State of :func:`~attnpool_flax.streaming.std_state`: moments, [..., d], or [..., 1] if the channels share them.

    ``unit``, ``scale``, ``center`` and ``mass`` are constants in the gradient, because they cancel. All sums are
    of weights divided by ``unit`` and distances divided by ``scale``, so that squares neither under- nor overflow. The
    sums of chunks are compensated; all tokens at once have None for the compensations and for the options.

    Attributes:
      unit: the unit of the weights: the largest power of two up to the largest absolute weight.
      scale: the unit of distances: the largest power of two up to the largest absolute value of a token with a weight.
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
        return type(self)(unit, *merged_moments(self, other, ratios), self.ddof, self.epsilon)

    def finalized(self):
        """Returns the result [..., d]; 0 for a fully masked row, or if the weights cancel."""
        return mean_and_deviation(self, self.ddof, self.epsilon)[1]


def moments(channels, weights):
    """Computes the :class:`StdState` of tokens in any layout under weights, which must be 0 at padding; None means 1.

    The center is the mean under absolute weights, computed as an origin plus the mean distance from it. The origin is
    the largest token with a weight, which is available in every layout; because it is a token, the deviation of equal
    tokens is exactly 0. A token of weight 0 has no influence, however large it is, except that NaN and infinities give
    NaN.
    """
    x, constant = channels.x, lax.stop_gradient(channels.x)
    if weights is None:
        sizes, weighted, weighted_constant = None, channels.fill_padding, channels.fill_padding
        origin, largest = channels.max_over_tokens(channels.fill_padding(constant, -jnp.inf), jnp.abs(constant))
        unit = jnp.ones_like(largest[..., :1])
    else:
        sizes = jnp.abs(lax.stop_gradient(weights))
        unweighted = (sizes == 0) & jnp.isfinite(constant)
        weighted_x, magnitude = jnp.where(sizes == 0, -jnp.inf, constant), jnp.where(unweighted, 0, jnp.abs(constant))
        origin, largest, heaviest = channels.max_over_tokens(weighted_x, magnitude, sizes)
        unit = _unit(heaviest)
        weights, sizes = (array / channels.expand_to_tokens(unit) for array in (weights, sizes))
        weighted, weighted_constant = partial(jnp.multiply, weights), partial(jnp.multiply, sizes)
    scale = _unit(largest)
    x, constant = (array / channels.expand_to_tokens(scale) for array in (x, constant))
    if weights is not None:  # squares of unweighted tokens may overflow, and 0 times infinity is NaN
        x, constant = (
            jnp.where(unweighted, jnp.clip(array, -_reach(constant), _reach(constant)), array)
            for array in (x, constant)
        )
    origin = jnp.where(jnp.isfinite(origin), origin, 0) / scale
    shifted = weighted_constant(constant - channels.expand_to_tokens(origin))
    mass, shifted = channels.sum_over_tokens(sizes, shifted)
    center = origin + shifted / jnp.where(mass == 0, 1, mass)
    distance = x - channels.expand_to_tokens(center)
    first = weighted(distance)
    if weights is None:
        total = squares = mass
        first, second = channels.sum_over_tokens(first, first * distance)
    else:
        sums = weights, weights * weights, first, first * distance
        total, squares, first, second = channels.sum_over_tokens(*sums)
    return StdState(unit, scale, scale * center, mass, total, None, squares, None, first, second, None, None, None)


def _reach(x):
    """Returns a power of two whose square is finite."""
    return 2.0 ** (jnp.finfo(x.dtype).maxexp // 2 - 2)


def _unit(largest):
    """Returns the largest power of two up to ``largest``; where ``largest`` is 0 or tiny, 2^-63 in float32."""
    least = 2.0 ** (jnp.finfo(largest.dtype).minexp // 2)
    return jnp.where(largest > 0, jnp.maximum(power_of_two(largest), least), least)


def merged_moments(a, b, ratios):
    """Returns the merged fields of two states from ``scale`` to ``second_rest``; ``ratios`` rescale the weights of each."""
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


def mean_and_deviation(state, ddof, epsilon):
    """Returns (mean, deviation) [..., d] of moments; 0 where the weights sum to 0.

    Args:
      state: the moments, fields of :class:`StdState`.
      ddof: delta degrees of freedom: a number, or one for each example, [..., 1]. If it leaves no degree of freedom,
        the variance is 0.
      epsilon: the least variance; where it replaces a smaller variance, no gradient goes to the tokens.
    """
    pairs = (state.total, state.total_rest), (state.squares, state.squares_rest), (state.second, state.second_rest)
    total, squares, second = (value if rest is None else value + rest for value, rest in pairs)
    nonzero = total != 0
    total = jnp.where(nonzero, total, 1)
    mean = state.scale * (state.center / state.scale + state.first / total)
    freedom, second = total - ddof * squares / total, second - state.first * state.first / total
    flat = freedom <= 0
    variance = jnp.where(flat, 0, second) / jnp.where(flat, 1, freedom)
    floor = _root(epsilon)
    low = state.scale * jnp.sqrt(jnp.maximum(lax.stop_gradient(variance), 0)) <= floor  # False for NaN
    deviation = jnp.where(low, floor, state.scale * jnp.sqrt(jnp.where(low, 1, variance)))
    return jnp.where(nonzero, mean, 0), jnp.where(nonzero, deviation, 0)


def _root(epsilon):
    """Computes the square root, without gradient at 0."""
    return jnp.where(epsilon > 0, jnp.sqrt(jnp.where(epsilon > 0, epsilon, 1)), 0)
