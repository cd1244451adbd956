"""The exponential reduction: sums of exp(scale x) of each channel, and means that keep their digits at any scale.

Exponents are measured from the largest one. Where the scale is small the exponentials are all nearly 1, and what tells
them apart is kept by itself, as the slack. Scales are at least 0 here, infinite ones too: who has a negative one turns
the sign of x. Data are measured in halves, under twice the scale: the distance of two numbers may be larger than any number.

No reduction has a rule for gradients. What plain differentiation would lose are five functions of single numbers.
"""

import functools
import itertools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import SymbolicZero

from attnpool_flax.reductions.sums import divisor_of

NEAR, CLOSE = 0.25, 0.125
"""Limits of the power series: exponents below NEAR, for the derivative by the scale, and means within CLOSE of 1.

XLA's own ln(1 + x) loses two digits of float64 on some CPUs."""


class Exponents(NamedTuple):
    """State of an exponential reduction, separate for each channel.

    Attributes:
      total: the sum of exp(scale depth), where the depth of a token is its value minus the largest one, at most 0.
      slack: the sum of (exp(scale depth) - 1) / scale, or of the depths where the scale is 0, over
        :func:`~attnpool_flax.reductions.sums.divisor_of` the count, so that it does not overflow.
      count: the number of real tokens.
    """

    total: Any
    slack: Any
    count: Any


def depths(values, top, scale):
    """Returns distances of values from the largest one, at most 0.

    Beside an infinite one infinite values that equal it have 0; so have finite ones at a scale of 0, where the mean of all
    is infinite as well.
    """
    level = (values == top) | ((scale == 0) & (values > -jnp.inf))
    return jnp.where(level & jnp.isinf(top), 0, values - top)


def half(top):
    """Halves a largest value; XLA would fuse its difference from other halves into one product, which overflows."""
    return lax.optimization_barrier(top / 2)


def lowered(top, half):
    """Returns the largest value plus twice ``half``, which is at most 0: values between finite ones stay finite."""
    return (top + half) + half


def exponents_of(channels, below, scale, *others):
    """Computes the :class:`Exponents` of tokens' depths, and sums of other arrays in a list, which are 0 at padding."""
    shares, slack = (
        channels.fill_padding(jnp.exp(scaled(below, scale))),
        channels.fill_padding(slackened(below, scale) / channels.divisor),
    )
    total, slack, count, *others = channels.sum_over_tokens(shares, slack, None, *others)
    return Exponents(total, slack * (channels.divisor / divisor_of(count)), count), others


def scaled(below, scale):
    """Computes scale depth; an infinite scale gives 0 for the largest tokens, -inf for all others, and no gradient."""
    odd = jnp.isinf(below) | jnp.isinf(scale)
    regular = jnp.where(jnp.isinf(scale), 1, scale) * jnp.where(jnp.isinf(below), 0, below)
    return jnp.where(odd, jnp.where((below < 0) & (scale > 0), -jnp.inf, 0), regular)


@jax.custom_jvp
def exponential_times(exponent, factor):
    """Computes exp(exponent) times a factor of any size: no derivative is larger than the product."""
    return jnp.exp(exponent) * factor


@exponential_times.defjvp
def _exponential_times_jvp(primals, tangents):
    value = exponential_times(*primals)
    return value, value * tangents[0] + jnp.exp(primals[0]) * tangents[1]


@jax.custom_jvp
def average(excess, total):
    """Divides the excess, given over :func:`~attnpool_flax.reductions.sums.divisor_of` the total, by the nonzero total."""
    return excess / _in_parts(total)


@average.defjvp
def _average_jvp(primals, tangents):
    value, total = average(*primals), primals[1]
    return value, tangents[0] / _in_parts(total) - (value / total) * tangents[1]


def _in_parts(total):
    """Divides a total by its :func:`~attnpool_flax.reductions.sums.divisor_of`; XLA would multiply the dividend by it."""
    return lax.optimization_barrier(total / divisor_of(total))


@jax.custom_jvp
def slackened(below, scale):
    """Returns (exp(scale depth) - 1) / scale; the depth at a scale of 0."""
    exponent = scaled(below, scale)
    return jnp.where(_is_flat(exponent), below, jnp.expm1(exponent) / _divisor(scale))


def _slackened_jvp(primals, tangents):
    below, scale = primals
    exponent = scaled(below, scale)
    of_below = _times(jnp.exp(exponent), tangents[0])
    if isinstance(tangents[1], SymbolicZero):
        return slackened(below, scale), of_below
    near = exponent > -NEAR
    close, far = jnp.where(near, exponent, 0), jnp.where(near | jnp.isinf(exponent), 0, exponent)
    height = jnp.where(jnp.isinf(below), 0, below)
    series = height * height * _series(close, lambda k: (k + 1) / math.factorial(k + 2), NEAR)
    bend = jnp.where(near, series, (far * jnp.exp(far) - jnp.expm1(exponent)) / _divisor(scale) / _divisor(scale))
    return slackened(below, scale), of_below + bend * tangents[1]


slackened.defjvp(_slackened_jvp, symbolic_zeros=True)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def logarithm(sums, scale, mean):
    """Computes ln(total / count) / scale, without ``mean`` ln(total) / scale; 0 for a fully masked row.

    The gradient by the slack, as a sum, is 1 / total: it is all that of the tokens, as total = count + scale slack.
    """
    whole, rest, slack = _parts(sums, scale)
    if not mean:
        logarithm = jnp.log(whole)
        return jnp.where(logarithm == 0, 0, logarithm / scale)
    near = jnp.abs(rest) < CLOSE
    shallow = slack * _series(jnp.where(near, rest, 0), lambda k: (-1) ** k / (k + 1), CLOSE)
    return jnp.where(near, shallow, jnp.log(whole / jnp.maximum(sums.count, 1)) / _divisor(scale))


def _parts(sums, scale):
    """Returns (total, 1 where nothing is real; total / count - 1; slack / count)."""
    slack = sums.slack / _in_parts(jnp.maximum(sums.count, 1))
    rest = jnp.where(scale == 0, 0, jnp.where(jnp.isinf(scale), 1, scale) * jnp.where(scale == 0, 0, slack))
    return jnp.where(sums.count == 0, 1, sums.total), jnp.where(jnp.isinf(scale), -1, rest), slack


def _logarithm_jvp(mean, primals, tangents):
    sums, scale = primals
    of_sums, of_scale = tangents
    whole, rest, slack = _parts(sums, scale)
    value = logarithm(sums, scale, mean)
    slope = _times(divisor_of(sums.count) / whole, of_sums.slack)
    if isinstance(of_scale, SymbolicZero):
        return value, slope
    count = jnp.maximum(sums.count, 1)
    part = whole / count if mean else whole
    bend = ((whole - sums.count) / whole - jnp.log(part)) / _divisor(scale) / _divisor(scale)
    bend = jnp.where(sums.count == 0, 0, bend)
    if mean:
        near, slack = jnp.abs(rest) < CLOSE, jnp.where(jnp.isinf(slack), 0, slack)
        series = _series(jnp.where(near, rest, 0), lambda k: (-1) ** (k + 1) * (k + 1) / (k + 2), CLOSE)
        bend = jnp.where(near, slack * slack * series, bend)
    return value, slope + bend * of_scale


logarithm.defjvp(_logarithm_jvp, symbolic_zeros=True)


def _is_flat(exponent):
    """Returns the mask of exponents x for which exp(x) - 1 rounds to x."""
    return jnp.abs(exponent) < jnp.finfo(exponent.dtype).eps


def _divisor(scale):
    return jnp.where(scale == 0, 1, scale)


def _times(slope, tangent):
    return jnp.zeros_like(slope) if isinstance(tangent, SymbolicZero) else slope * tangent


def _series(x, coefficient, radius):
    """Evaluates a power series by Horner's rule, with as many terms as the dtype resolves for x below the radius."""
    taken = itertools.takewhile(
        lambda term: abs(term[1]) * radius ** term[0] > jnp.finfo(x.dtype).eps / 4,
        ((k, coefficient(k)) for k in itertools.count()),
    )
    result = jnp.zeros_like(x)
    for _, factor in reversed(list(taken)):
        result = result * x + factor
    return result


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
