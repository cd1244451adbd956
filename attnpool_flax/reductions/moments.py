"""First and second moments, feature by feature, about a center near the mean: no difference of large squares."""

from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.rounding import power_of_two


class Moments(NamedTuple):
    """State of the weighted mean and deviation of tokens. Each array is [..., d], or [..., 1] if all channels share it.

    The first three are treated as constants in the gradient, because they cancel.

    Attributes:
      unit: of the weights, the power of two under the largest.
      scale: of the tokens, the power of two under the largest; no difference of two of them is too small to be squared.
      center: in units of the scale: the mean, if no weight is negative.
      mass: the sum of the weights' magnitudes, in their unit.
      total: the sum of the weights, in their unit.
      squares: the sum of their squares, in the unit's.
      first: the sum of weight times distance from the center, which is 0 but for rounding if no weight is negative.
      second: the sum of weight times squared distance.
    """

    unit: Any
    scale: Any
    center: Any
    mass: Any
    total: Any
    squares: Any
    first: Any
    second: Any


def moments(channels, weights=None):
    """Computes the :class:`Moments` of tokens in any layout under weights that are 0 at padding; None is 1.

    Any token with a weight will do as the origin, and makes a constant exactly 0: the largest is what every layout knows.
    Tokens without weight decide nothing, however large; what is not finite among them is kept, and makes NaN.
    """
    x, still = channels.x, lax.stop_gradient(channels.x)
    if weights is None:
        sizes, weighted, weighted_still = None, channels.fill_padding, channels.fill_padding
        origin, most = channels.max_over_tokens(channels.fill_padding(still, -jnp.inf), jnp.abs(still))
        unit = jnp.ones_like(most[..., :1])
    else:
        sizes = jnp.abs(lax.stop_gradient(weights))
        idle = (sizes == 0) & jnp.isfinite(still)
        used, spread = jnp.where(sizes == 0, -jnp.inf, still), jnp.where(idle, 0, jnp.abs(still))
        origin, most, heaviest = channels.max_over_tokens(used, spread, sizes)
        unit = _unit(heaviest)
        weights, sizes = (array / channels.expand_to_tokens(unit) for array in (weights, sizes))
        weighted, weighted_still = partial(jnp.multiply, weights), partial(jnp.multiply, sizes)
    scale = _unit(most)
    x, still = (array / channels.expand_to_tokens(scale) for array in (x, still))
    if weights is not None:  # the square of one without weight overflows, and 0 times infinity is NaN
        x, still = (jnp.where(idle, jnp.clip(array, -_reach(still), _reach(still)), array) for array in (x, still))
    origin = jnp.where(jnp.isfinite(origin), origin, 0) / scale
    shifted = weighted_still(still - channels.expand_to_tokens(origin))
    mass, shifted = channels.sum_over_tokens(sizes, shifted)
    center = origin + shifted / jnp.where(mass == 0, 1, mass)
    away = x - channels.expand_to_tokens(center)
    near = weighted(away)
    if weights is None:
        return Moments(unit, scale, center, mass, mass, mass, *channels.sum_over_tokens(near, near * away))
    return Moments(unit, scale, center, mass, *channels.sum_over_tokens(weights, weights * weights, near, near * away))


def _reach(x):
    """Returns a power of two whose square is finite."""
    return 2.0 ** (jnp.finfo(x.dtype).maxexp // 2 - 2)


def _unit(most):
    """Returns the power of two below the largest value; for 0 one that is negligible against others."""
    least = 2.0 ** (jnp.finfo(most.dtype).minexp // 2)
    return jnp.where(most > 0, jnp.maximum(power_of_two(most), least), least)


def mean_and_deviation(found, ddof, epsilon):
    """Returns (mean, deviation) [..., d] of moments; 0 where the weights sum to 0.

    Args:
      found: the :class:`Moments`.
      ddof: a number, or one for each example, [..., 1].
      epsilon: the floor of the variance; at it there is no gradient.
    """
    some = found.total != 0
    total = jnp.where(some, found.total, 1)
    mean = found.scale * (found.center + found.first / total)
    whole, second = total - ddof * found.squares / total, found.second - found.first * found.first / total
    nothing = whole <= 0
    variance = jnp.where(nothing, 0, second) / jnp.where(nothing, 1, whole)
    floor = _root(epsilon)
    low = found.scale * jnp.sqrt(jnp.maximum(lax.stop_gradient(variance), 0)) <= floor  # a NaN is not
    deviation = jnp.where(low, floor, found.scale * jnp.sqrt(jnp.where(low, 1, variance)))
    return jnp.where(some, mean, 0), jnp.where(some, deviation, 0)


def _root(epsilon):
    """Computes the square root, without gradient at 0."""
    return jnp.where(epsilon > 0, jnp.sqrt(jnp.where(epsilon > 0, epsilon, 1)), 0)
