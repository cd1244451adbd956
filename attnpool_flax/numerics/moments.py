"""Mean and deviation by moments about a center near the mean: no large squares are subtracted (Chan et al. 1983)."""

from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.rounding import power_of_two


class Moments(NamedTuple):
    """Accumulator of the weighted mean and deviation. Each array is [..., d], or [..., 1] if all channels share it.

    ``unit``, ``scale`` and ``center`` are constants in the gradient, because they cancel.

    Attributes:
      unit: the unit of the weights: the largest power of two up to the largest absolute weight.
      scale: the unit of the tokens: the largest power of two up to the largest absolute value of a token with a weight;
        squares of differences then neither under- nor overflow.
      center: the point about which moments are taken, in units of ``scale``: the mean, if no weight is negative.
      mass: the sum of the absolute weights, in units of ``unit``.
      total: the sum of the weights, in units of ``unit``.
      squares: the sum of the squared weights, in units of ``unit`` squared.
      first: the sum of weight times distance from the center, in units of ``unit`` times ``scale``: only a rounding
        error, if no weight is negative.
      second: the sum of weight times squared distance, in units of ``unit`` times ``scale`` squared.
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
    """Computes the :class:`Moments` of tokens in any layout under weights, which must be 0 at padding; None means 1.

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
        return Moments(unit, scale, center, mass, mass, mass, *channels.sum_over_tokens(first, first * distance))
    sums = channels.sum_over_tokens(weights, weights * weights, first, first * distance)
    return Moments(unit, scale, center, mass, *sums)


def _reach(x):
    """Returns a power of two whose square is finite."""
    return 2.0 ** (jnp.finfo(x.dtype).maxexp // 2 - 2)


def _unit(largest):
    """Returns the largest power of two up to ``largest``; where ``largest`` is 0 or tiny, 2^-63 in float32."""
    least = 2.0 ** (jnp.finfo(largest.dtype).minexp // 2)
    return jnp.where(largest > 0, jnp.maximum(power_of_two(largest), least), least)


def mean_and_deviation(moments, ddof, epsilon):
    """Returns (mean, deviation) [..., d] of moments; 0 where the weights sum to 0.

    Args:
      moments: the :class:`Moments`.
      ddof: delta degrees of freedom: a number, or one for each example, [..., 1]. If it leaves no degree of freedom,
        the variance is 0.
      epsilon: the least variance; where it replaces a smaller variance, no gradient goes to the tokens.
    """
    nonzero = moments.total != 0
    total = jnp.where(nonzero, moments.total, 1)
    mean = moments.scale * (moments.center + moments.first / total)
    freedom, second = total - ddof * moments.squares / total, moments.second - moments.first * moments.first / total
    flat = freedom <= 0
    variance = jnp.where(flat, 0, second) / jnp.where(flat, 1, freedom)
    floor = _root(epsilon)
    low = moments.scale * jnp.sqrt(jnp.maximum(lax.stop_gradient(variance), 0)) <= floor  # False for NaN
    deviation = jnp.where(low, floor, moments.scale * jnp.sqrt(jnp.where(low, 1, variance)))
    return jnp.where(nonzero, mean, 0), jnp.where(nonzero, deviation, 0)


def _root(epsilon):
    """Computes the square root, without gradient at 0."""
    return jnp.where(epsilon > 0, jnp.sqrt(jnp.where(epsilon > 0, epsilon, 1)), 0)
