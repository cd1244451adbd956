"""Sums of exponentials over tokens, separately for each channel: means of exp(scale x), accurate at any scale.

The depth of a token is x - max x, at most 0; the sum is that of exp(scale depth). At a small scale all terms are nearly
1, and their sum loses the digits in which they differ. A second sum, the slack, keeps these digits: it adds up
expm1(scale depth) / scale.

Scales are at least 0 here, and may be infinite; for a negative scale callers change the signs of x and scale. Callers
also halve x and double the scale, which does not change scale x: the difference of two floating-point numbers may
overflow, that of their halves does not.

JAX differentiates the sums. Five elementwise functions have their own gradient rules, because JAX's would be
inaccurate.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import SymbolicZero

from attnpool_flax.numerics.elementwise import power_series
from attnpool_flax.numerics.sums import divisor_of

NEAR, CLOSE = 0.25, 0.125
"""Radii within which power series are evaluated.

NEAR is for exponents near 0, in the derivative by the scale. CLOSE is for means near 1, in the logarithm, because XLA's
log1p loses two digits of float64 on some CPUs.
"""


class Exponents(NamedTuple):
    """Accumulator of exponential sums, separate for each channel.

    Attributes:
      total: the sum of exp(scale depth), where the depth of a token is its value minus the largest one, at most 0.
      slack: the sum of (exp(scale depth) - 1) / scale, or of the depths where the scale is 0, divided by
        :func:`~attnpool_flax.numerics.sums.divisor_of` the count, to avoid overflow.
      count: the number of real tokens.
    """

    total: Any
    slack: Any
    count: Any


def depths(values, largest, scale):
    """Returns the differences of values from the largest one, at most 0, for a scale that is at least 0.

    If the largest one is infinite, values equal to it have depth 0. At a scale of 0 finite values have depth 0 then as
    well, because the mean is infinite in any case.
    """
    level = (values == largest) | ((scale == 0) & (values > -jnp.inf))
    return jnp.where(level & jnp.isinf(largest), 0, values - largest)


def half(largest):
    """Halves a largest value; the barrier keeps XLA from turning x/2 - max/2 into (x - max)/2, which may overflow."""
    return lax.optimization_barrier(largest / 2)


def lowered(largest, half):
    """Returns largest + 2 half, where ``half`` is at most 0, added in two steps, because 2 half may overflow."""
    return (largest + half) + half


def exponents_of(channels, below, scale, *others):
    """Returns (the :class:`Exponents` of depths, the list of the sums of ``others`` over tokens).

    Args:
      channels: the tokens, :class:`~attnpool_flax.tokens.DenseChannels` or ``PackedChannels``.
      below: the depth of each token, arbitrary at padding.
      scale: at least 0, broadcast against the depths.
      *others: arrays of values of tokens, 0 at padding, that are summed in the same collective.
    """
    exp_scores, slack = (
        channels.fill_padding(jnp.exp(scaled(below, scale))),
        channels.fill_padding(slackened(below, scale) / channels.divisor),
    )
    total, slack, count, *others = channels.sum_over_tokens(exp_scores, slack, None, *others)
    return Exponents(total, slack * (channels.divisor / divisor_of(count)), count), others


def scaled(below, scale):
    """Multiplies depths (``below``) by the scale.

    An infinite scale gives 0 for the largest tokens and -inf for all others, and has no gradient.
    """
    odd = jnp.isinf(below) | jnp.isinf(scale)
    regular = jnp.where(jnp.isinf(scale), 1, scale) * jnp.where(jnp.isinf(below), 0, below)
    return jnp.where(odd, jnp.where((below < 0) & (scale > 0), -jnp.inf, 0), regular)


@jax.custom_jvp
def exponential_times(exponent, factor):
    """Computes exp(exponent) times a factor of any size; its derivatives overflow only where the product does."""
    return jnp.exp(exponent) * factor


@exponential_times.defjvp
def _exponential_times_jvp(primals, tangents):
    value = exponential_times(*primals)
    return value, value * tangents[0] + jnp.exp(primals[0]) * tangents[1]


@jax.custom_jvp
def average(excess, total):
    """Divides an excess by a nonzero total; callers have divided ``excess`` by :func:`divisor_of` the total."""
    return excess / _scaled_down(total)


@average.defjvp
def _average_jvp(primals, tangents):
    value, total = average(*primals), primals[1]
    return value, tangents[0] / _scaled_down(total) - (value / total) * tangents[1]


def _scaled_down(total):
    """Divides a total by its :func:`~attnpool_flax.numerics.sums.divisor_of`; the barrier forbids XLA to reorder."""
    return lax.optimization_barrier(total / divisor_of(total))


@jax.custom_jvp
def slackened(below, scale):
    """Returns (exp(scale depth) - 1) / scale of depths (``below``); at a scale of 0 the limit, which is the depth."""
    exponent = scaled(below, scale)
    return jnp.where(_is_flat(exponent), below, jnp.expm1(exponent) / _divisor(scale))


def _slackened_jvp(primals, tangents):
    below, scale = primals
    exponent = scaled(below, scale)
    dbelow = _times(jnp.exp(exponent), tangents[0])
    if isinstance(tangents[1], SymbolicZero):
        return slackened(below, scale), dbelow
    near = exponent > -NEAR
    close, far = jnp.where(near, exponent, 0), jnp.where(near | jnp.isinf(exponent), 0, exponent)
    finite = jnp.where(jnp.isinf(below), 0, below)
    series = finite * finite * power_series(close, lambda k: (k + 1) / math.factorial(k + 2), NEAR)
    second = jnp.where(near, series, (far * jnp.exp(far) - jnp.expm1(exponent)) / _divisor(scale) / _divisor(scale))
    return slackened(below, scale), dbelow + second * tangents[1]


slackened.defjvp(_slackened_jvp, symbolic_zeros=True)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def logarithm(sums, scale, mean):
    """Computes ln(total / count) / scale of :class:`Exponents`, ln(total) / scale if not ``mean``; 0 if fully masked.

    The whole gradient of the tokens flows through the slack, because total = count + scale divisor slack, where divisor
    is :func:`divisor_of` the count. The derivative by the slack is divisor / total.
    """
    whole, rest, slack = _parts(sums, scale)
    if not mean:
        logarithm = jnp.log(whole)
        return jnp.where(logarithm == 0, 0, logarithm / scale)
    near = jnp.abs(rest) < CLOSE
    shallow = slack * power_series(jnp.where(near, rest, 0), lambda k: (-1) ** k / (k + 1), CLOSE)
    return jnp.where(near, shallow, jnp.log(whole / jnp.maximum(sums.count, 1)) / _divisor(scale))


def _parts(sums, scale):
    """Returns (total, or 1 for a fully masked row; total / count - 1; divisor slack / count) of :class:`Exponents`.

    The divisor is that of :func:`logarithm`. At an infinite scale the second is -1.
    """
    slack = sums.slack / _scaled_down(jnp.maximum(sums.count, 1))
    rest = jnp.where(scale == 0, 0, jnp.where(jnp.isinf(scale), 1, scale) * jnp.where(scale == 0, 0, slack))
    return jnp.where(sums.count == 0, 1, sums.total), jnp.where(jnp.isinf(scale), -1, rest), slack


def _logarithm_jvp(mean, primals, tangents):
    sums, scale = primals
    dsums, dscale = tangents
    whole, rest, slack = _parts(sums, scale)
    value = logarithm(sums, scale, mean)
    derivative = _times(divisor_of(sums.count) / whole, dsums.slack)
    if isinstance(dscale, SymbolicZero):
        return value, derivative
    count = jnp.maximum(sums.count, 1)
    base = whole / count if mean else whole
    second = ((whole - sums.count) / whole - jnp.log(base)) / _divisor(scale) / _divisor(scale)
    second = jnp.where(sums.count == 0, 0, second)
    if mean:
        near, slack = jnp.abs(rest) < CLOSE, jnp.where(jnp.isinf(slack), 0, slack)
        series = power_series(jnp.where(near, rest, 0), lambda k: (-1) ** (k + 1) * (k + 1) / (k + 2), CLOSE)
        second = jnp.where(near, slack * slack * series, second)
    return value, derivative + second * dscale


logarithm.defjvp(_logarithm_jvp, symbolic_zeros=True)


def _is_flat(exponent):
    """Returns bool: True for exponents x at which exp(x) - 1 is x up to one unit in the last place."""
    return jnp.abs(exponent) < jnp.finfo(exponent.dtype).eps


def _divisor(scale):
    return jnp.where(scale == 0, 1, scale)


def _times(derivative, tangent):
    return jnp.zeros_like(derivative) if isinstance(tangent, SymbolicZero) else derivative * tangent


def clamped(x, floor):
    """Returns the maximum of x and a number; where they are equal the gradient is that of x."""
    return _clamped(x, jnp.broadcast_to(floor, x.shape))


@jax.custom_jvp
def _clamped(x, floor):
    return jnp.maximum(x, floor)


@_clamped.defjvp
def _clamped_jvp(primals, tangents):
    x, floor = primals
    return _clamped(x, floor), jnp.where(x < floor, tangents[1], tangents[0])
