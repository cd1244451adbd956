"""The alpha-entmax of any alpha: its threshold by bisection, its gradient from the weights."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

GENTLE = 0.125
"""A power below which the sum that a logarithm is taken of is written as its distance from 1."""

STEPS = 20
"""More of Newton's steps to the smallest weight than any sum takes."""

TERMS = 16
"""Terms of a series in an argument of at most 1/2 that float64 does not tell from the whole."""


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def alpha_entmax(scores, alpha, axis):
    """Returns weights of scores, of which those of padding are -inf.

    Written with the distances d from the largest score they are max(0, exp(-p c) + p d)^(1/p), p = alpha - 1, with one c in
    [0, log n] for each row: exp(d - c) where p is 0. The sum falls as c grows.
    """
    power = alpha - 1
    top = jnp.max(scores, axis, keepdims=True, initial=-jnp.inf)
    some = scores > -jnp.inf
    below = jnp.where(some, scores - jnp.where(top == -jnp.inf, 0, top), 0)
    count = jnp.sum(some, axis, keepdims=True, dtype=scores.dtype)
    high = jnp.log(jnp.maximum(count, 1)) + 0 * power

    def heights(c):
        return jnp.where(some, _powers(below, c, power), 0)

    def halved(_, bounds):
        low, high = bounds
        middle = (low + high) / 2
        enough = jnp.sum(heights(middle), axis, keepdims=True) >= 1
        return jnp.where(enough, middle, low), jnp.where(enough, high, middle)

    trips = jnp.finfo(scores.dtype).nmant + 8
    low, _ = lax.fori_loop(0, trips, halved, (jnp.zeros_like(high), high))

    def refined(weights):
        return _by_smallest(-below, power * low, power, some, axis).astype(weights.dtype)

    weights = heights(low)
    weights = lax.cond((power > 1) & (power < jnp.inf), refined, lambda weights: weights, weights)
    total = jnp.sum(weights, axis, keepdims=True)
    weights = weights / jnp.where(total == 0, 1, total)
    lost = jnp.isnan(top) | (top == jnp.inf) | (~jnp.isfinite(power) & (top > -jnp.inf))
    return jnp.where(lost, jnp.nan, weights)


def _by_smallest(gaps, height, power, some, axis):
    """Finds the weights for a power above 1 by the smallest nonzero weight v, where the threshold is ill-conditioned.

    They are (v^p + p (that one's gap - the gap))^(1/p). The sum is convex in v, and Newton's steps are few.

    Args:
      gaps: distances from the largest score.
      height: minus the logarithm of what p times a gap must be below for a weight, but for rounding.
      power: p.
      some: which scores are not -inf.
      axis: the axis of the scores.
    """
    rounding = 4 * jnp.finfo(gaps.dtype).eps * (4 + height)
    near = some & (power * gaps <= jnp.exp(-height) * (1 + rounding))

    def of_smallest(v, least):
        apart = power * jnp.maximum(least - gaps, 0)
        heights = jnp.exp(jnp.logaddexp(power * jnp.log(v), jnp.log(apart)) / power)
        return jnp.where(near & (gaps <= least), heights, 0), apart

    def sums(v, least):
        found, apart = of_smallest(v, least)
        slopes = jnp.where(apart == 0, 1, (v / jnp.where(found > 0, found, 1)) ** (power - 1))
        slopes = jnp.where(near & (gaps <= least), slopes, 0)
        return [jnp.sum(part, axis, keepdims=True) for part in (found, slopes)]

    def largest(taken):
        return jnp.max(jnp.where(taken, gaps, 0), axis, keepdims=True, initial=0)

    def unfit(least):
        return sums(jnp.zeros_like(least), least)[0] >= 1  # the others leave nothing to it

    def lowered(least):
        return jnp.where(unfit(least), largest(near & (gaps < least)), least)

    def falls(found):
        before, v, steps = found
        return jnp.any(v < before) & (steps < STEPS)

    def step(found):
        _, v, steps = found
        total, slope = sums(v, least)
        return v, jnp.clip(v - (total - 1) / jnp.maximum(slope, 1), 0, 1), steps + 1

    least = lax.while_loop(lambda least: jnp.any(unfit(least)), lowered, largest(near))
    one = jnp.ones_like(least)  # from above no step passes the root
    return of_smallest(lax.while_loop(falls, step, (2 * one, one, 0))[1], least)[0]


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
    """Computes g (ds - sum(g ds) / sum(g)) with g = w^(2 - alpha) on the support, and the analogue for alpha."""
    (scores, alpha), (of_scores, of_alpha) = primals, tangents
    weights = alpha_entmax(scores, alpha, axis)
    power, support = alpha - 1, ~(weights <= 0)
    logarithm = jnp.log(jnp.where(support, weights, 1))
    slopes = jnp.where(support, jnp.exp((1 - power) * logarithm), 0)
    # by alpha: (q - g sum(q) / sum(g)) / p, where q / p = -w log(w)^2 (e^t - 1 - t) / t^2 at t = -p log(w)
    bends = -weights * logarithm * logarithm * _bend(-power * logarithm)
    flow = slopes * jnp.where(support, of_scores, 0) + bends * of_alpha
    total = jnp.sum(slopes, axis, keepdims=True)
    return weights, flow - slopes / jnp.where(total == 0, 1, total) * jnp.sum(flow, axis, keepdims=True)


def _bend(t):
    """Returns (e^t - 1 - t) / t^2 of t >= 0, 1/2 at 0."""
    small = t < 0.5
    near, far = jnp.where(small, t, 0), jnp.where(small, 1, t)
    series = jnp.ones_like(t)
    for k in range(TERMS, 2, -1):
        series = 1 + near * series / k
    return jnp.where(small, series / 2, (jnp.expm1(far) - far) / (far * far))
