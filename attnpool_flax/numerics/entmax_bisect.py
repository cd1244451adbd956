"""alpha-entmax for any alpha >= 1: the threshold by bisection, the gradient from the weights (Peters et al. 2019)."""

import functools
import math

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.elementwise import power_series
from attnpool_flax.numerics.rounding import max_along_axis

GENTLE = 0.125
"""The power p = alpha - 1 below which the logarithm of exp(-p c) + p d is computed by log1p, as it is near log(1)."""

STEPS = 20
"""The largest number of Newton's steps to the smallest weight; fewer suffice."""


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def alpha_entmax(scores, alpha, axis):
    """Returns the weights of floating scores along ``axis``; the scores must be -inf at padding.

    With d = score - max_score and p = alpha - 1 the weights are max(0, exp(-p c) + p d)^(1/p), or exp(d - c) for p = 0.
    Each row with n > 0 scores above -inf has one c in [0, log n] for which they sum to 1; bisection finds it, because
    the sum decreases in c. Rows of -inf have weights 0. Others are NaN if a score is NaN or inf, or alpha not finite.
    ``alpha``, an array of shape () that is at least 1, has a derivative as well. The weights have its dtype; the scores
    may be narrower.
    """
    power, dtype = alpha - 1, alpha.dtype
    max_score = jnp.expand_dims(max_along_axis(scores, axis), axis).astype(dtype)
    level = jnp.where(max_score == -jnp.inf, 0, max_score)

    def distances():  # computed again in each step, because narrow scores are read faster
        some = scores > -jnp.inf
        return some, jnp.where(some, scores.astype(dtype) - level, 0)

    def weights_for(c):
        some, below = distances()
        return jnp.where(some, _powers(below, c, power), 0)

    some, below = distances()
    count = jnp.sum(some, axis, keepdims=True, dtype=dtype)
    high = jnp.log(jnp.maximum(count, 1)) + 0 * power

    def bisect(_, bounds):
        low, high = bounds
        middle = (low + high) / 2
        enough = jnp.sum(weights_for(middle), axis, keepdims=True) >= 1
        return jnp.where(enough, middle, low), jnp.where(enough, high, middle)

    steps = jnp.finfo(dtype).nmant + 8
    low, _ = lax.fori_loop(0, steps, bisect, (jnp.zeros_like(high), high))

    def refine(weights):
        return _by_smallest(-below, power * low, power, some, axis).astype(weights.dtype)

    weights = weights_for(low)
    weights = lax.cond((power > 1) & (power < jnp.inf), refine, lambda weights: weights, weights)
    total = jnp.sum(weights, axis, keepdims=True)
    weights = weights / jnp.where(total == 0, 1, total)
    undefined = jnp.isnan(max_score) | (max_score == jnp.inf) | (~jnp.isfinite(power) & (max_score > -jnp.inf))
    return jnp.where(undefined, jnp.nan, weights)


def _by_smallest(gaps, minus_log_bound, power, some, axis):
    """Computes the weights for a power p above 1 from the smallest nonzero one; there the threshold is ill-conditioned.

    Let v be the smallest nonzero weight, and the gap of a score its distance from the largest score. Then the weights
    are (v^p + p (gap of v - gap))^(1/p). Their sum is convex in v, and Newton's method takes few steps.

    Args:
      gaps: distances from the largest score.
      minus_log_bound: minus the logarithm of p times the largest gap whose weight is not 0, up to rounding.
      power: p.
      some: bool, True where a score is not -inf.
      axis: the axis of the scores.
    """
    rounding = 4 * jnp.finfo(gaps.dtype).eps * (4 + minus_log_bound)
    near = some & (power * gaps <= jnp.exp(-minus_log_bound) * (1 + rounding))

    def of_smallest(v, least):
        apart = power * jnp.maximum(least - gaps, 0)
        weights = jnp.exp(jnp.logaddexp(power * jnp.log(v), jnp.log(apart)) / power)
        return jnp.where(near & (gaps <= least), weights, 0), apart

    def sums(v, least):
        weights, apart = of_smallest(v, least)
        derivatives = jnp.where(apart == 0, 1, (v / jnp.where(weights > 0, weights, 1)) ** (power - 1))
        derivatives = jnp.where(near & (gaps <= least), derivatives, 0)
        return [jnp.sum(array, axis, keepdims=True) for array in (weights, derivatives)]

    def largest(selected):
        return jnp.max(jnp.where(selected, gaps, 0), axis, keepdims=True, initial=0)

    def too_small(least):
        return sums(jnp.zeros_like(least), least)[0] >= 1  # the other weights already sum to 1

    def lower(least):
        return jnp.where(too_small(least), largest(near & (gaps < least)), least)

    def decreases(carry):
        before, v, steps = carry
        return jnp.any(v < before) & (steps < STEPS)

    def step(carry):
        _, v, steps = carry
        total, derivative = sums(v, least)
        return v, jnp.clip(v - (total - 1) / jnp.maximum(derivative, 1), 0, 1), steps + 1

    least = lax.while_loop(lambda least: jnp.any(too_small(least)), lower, largest(near))
    one = jnp.ones_like(least)  # from above Newton's steps stay above the root
    return of_smallest(lax.while_loop(decreases, step, (2 * one, one, 0))[1], least)[0]


def _powers(below, c, power):
    """Computes max(0, exp(-power c) + power below)^(1/power); exp(below - c) where the power is 0."""
    whole, away = jnp.exp(-power * c) + power * below, jnp.expm1(-power * c) + power * below
    inside = whole > 0
    logarithm = jnp.where(power < GENTLE, jnp.log1p(jnp.where(inside, away, 0)), jnp.log(jnp.where(inside, whole, 1)))
    flat = power == 0
    exponent = jnp.where(flat, below - c, logarithm / jnp.where(flat, 1, power))
    return jnp.where(inside, jnp.exp(exponent), 0)


@alpha_entmax.defjvp
def _alpha_entmax_jvp(axis, primals, tangents):
    """Computes the tangent g (ds - sum(g ds) / sum(g)), where g = w^(2 - alpha) at weights w > 0 and 0 elsewhere.

    The tangent of alpha adds a term, which a comment below states.
    """
    (scores, alpha), (dscores, dalpha) = primals, tangents
    weights = alpha_entmax(scores, alpha, axis)
    power, support = alpha - 1, ~(weights <= 0)
    logarithm = jnp.log(jnp.where(support, weights, 1))
    first = jnp.where(support, jnp.exp((1 - power) * logarithm), 0)
    # the derivative by alpha is (q - g sum(q) / sum(g)) / p, where q / p = -w log(w)^2 (e^t - 1 - t) / t^2 at t = -p log(w)
    second = -weights * logarithm * logarithm * _exponential_remainder(-power * logarithm)
    flow = first * jnp.where(support, dscores, 0) + second * dalpha
    total = jnp.sum(first, axis, keepdims=True)
    return weights, flow - first / jnp.where(total == 0, 1, total) * jnp.sum(flow, axis, keepdims=True)


def _exponential_remainder(t):
    """Returns (e^t - 1 - t) / t^2 of t >= 0, 1/2 at 0."""
    small = t < 0.5
    near, far = jnp.where(small, t, 0), jnp.where(small, 1, t)
    near = power_series(near, lambda k: 1 / math.factorial(k + 2), radius=0.5)
    return jnp.where(small, near, (jnp.expm1(far) - far) / (far * far))
