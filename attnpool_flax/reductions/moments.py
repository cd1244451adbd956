"""First and second moments, feature by feature, about a center near the mean: no difference of large squares."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from attnpool_flax.rounding import power_of_two


class Moments(NamedTuple):
    """What is left of tokens of which the mean and the deviation are wanted. Each is [..., d], or [..., 1] for all alike.

    The first three are constants, which cancel: gradients go through the sums alone.

    Attributes:
      unit: of the weights, a power of two.
      scale: of the tokens, a power of two.
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


def moments(columns, weights=None):
    """The :class:`Moments` of tokens in any layout under weights that know the mask; None is 1.

    Any token with a weight will do as the origin, and makes a constant exactly 0: the largest is what every layout knows.
    """
    weights = columns.ones() if weights is None else weights
    x, sizes = lax.stop_gradient(columns.x), jnp.abs(lax.stop_gradient(weights))
    bounds = jnp.where(sizes == 0, -jnp.inf, x), columns.kept(x, -jnp.inf), columns.kept(-x, -jnp.inf), sizes
    origin, most, least, heaviest = columns.largest(*bounds)
    unit, scale = power_of_two(heaviest), power_of_two(most / 2 + least / 2)
    weights, sizes = (array / columns.each(unit) for array in (weights, sizes))
    origin = jnp.where(jnp.isfinite(origin), origin, 0) / scale
    mass, shifted = columns.total(sizes, sizes * (x / columns.each(scale) - columns.each(origin)))
    center = origin + shifted / jnp.where(mass == 0, 1, mass)
    away = columns.x / columns.each(scale) - columns.each(center)
    sums = columns.total(weights, weights * weights, weights * away, weights * away * away)
    return Moments(unit, scale, center, mass, *sums)


def mean_and_deviation(found, ddof, epsilon):
    """(mean, deviation) [..., d] of moments; 0 where the weights sum to 0.

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
    """The root, without gradient at 0."""
    return jnp.where(epsilon > 0, jnp.sqrt(jnp.where(epsilon > 0, epsilon, 1)), 0)
