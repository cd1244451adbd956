"""Two sequences in one walk: each averaged under the softmax of its products with the sum or the mean of the other.

An example of both sides fits into the cache, where its tokens are read as often as they are needed. With Y the other's
sum, s the scale and g the gradients of what is returned, the gradient of the scores is
ds = w (x . g + g_w - (their average under w)), that of Y is s times the sum of ds x, and that of x is
w g + s ds Y + the gradient of x's own sum: x is read once more and its gradient written once.
"""

import functools
import operator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.sizes import known
from attnpool_flax.reductions import tiling
from attnpool_flax.reductions.rules import reverse_rule
from attnpool_flax.reductions.softmax import exponential
from attnpool_flax.reductions.sums import computing, in_slices


class Side(NamedTuple):
    """Result for one of the two sequences; inside of a loop's step it has no batch axis.

    Attributes:
      pooled: [B, d].
      weights: [B, L].
      summary: [B, d], the sum or the mean of the real tokens.
    """

    pooled: Any
    weights: Any
    summary: Any


def fits(x, y):
    """Returns whether [B, L, d] and [B, T, d] can share one loop, and are large enough for it."""
    if x.shape[0] != y.shape[0] or not known(*x.shape[1:], *y.shape[1:]):
        return False
    rows = [array.shape[1] * array.shape[2] * array.dtype.itemsize for array in (x, y)]
    batch = x.shape[0]
    large = not known(batch) or batch * max(rows) > tiling.WHOLE
    return large and min(rows) > 0 and max(rows) <= tiling.TILE


def _forward(x, y, x_mask, y_mask, scale, mean, precision):
    example = functools.partial(_example, scale=scale, mean=mean, precision=precision)
    return _each(example, x, y, x_mask, y_mask)


def _each(function, *arrays):
    """Maps a function over examples: one after another on CPUs, all at once elsewhere."""

    def in_turn(*arrays):
        def at(i, array):
            array, i = tiling.of_trip(array, i)
            return lax.dynamic_index_in_dim(array, i, 0, False)

        def trip(i):
            return function(*jax.tree.map(functools.partial(at, i), arrays))

        return lax.map(trip, jnp.arange(arrays[0].shape[0]))

    return lax.platform_dependent(*arrays, cpu=in_turn, default=lambda *arrays: jax.vmap(function)(*arrays))


def _example(x, y, x_mask, y_mask, *, scale, mean, precision):
    x, y = _clean(x, x_mask), _clean(y, y_mask)
    of_x, of_y = _summary(x, x_mask, mean, precision), _summary(y, y_mask, mean, precision)
    return (
        Side(*_pooled(x, x_mask, scale * of_y, y_mask, precision), of_x),
        Side(*_pooled(y, y_mask, scale * of_x, x_mask, precision), of_y),
    )


def _clean(x, mask):
    x = x.astype(computing(x.dtype))
    return x if mask is None else jnp.where(mask[:, None], x, 0)


def _sum(weights, x, precision):
    """Sums [L, d] under weights [L]: [d]."""
    return in_slices(lambda part: jnp.dot(weights[part], x[part], precision=precision), x.shape[0])


def _part(mean, length):
    """Returns a power of two that divides the terms of a mean to avoid overflow."""
    return 2 ** length.bit_length() if mean else 1


def _shares(mask, mean, like):
    """Returns [L]: how much of each token is in the sum, or in the mean, over the part."""
    length = like.shape[-2]
    real = jnp.ones(like.shape[:-1], computing(like.dtype)) if mask is None else mask.astype(computing(like.dtype))
    return real / _part(mean, length)


def _summary(x, mask, mean, precision):
    shares = _shares(mask, mean, x)
    total = _sum(shares, x, precision)
    return total / _count(shares)[..., None] if mean else total


def _count(shares):
    total = jnp.sum(shares, -1)
    return jnp.where(total == 0, 1, total)


def _pooled(x, mask, query, other, precision):
    """Returns (pooled [d], weights [L]); the scores are 0 where nothing of the other side is real, whatever x holds."""
    scores = jnp.dot(x, query, precision=precision)
    if other is not None:
        scores = jnp.where(jnp.any(other), scores, 0)
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    top = jnp.max(scores)
    heights = exponential(scores, top)
    total = jnp.sum(heights)
    total = jnp.where(total == 0, 1, total)
    weights = heights / total
    if mask is not None:
        weights = jnp.where(mask, weights, 0)  # a real NaN stays out of the padding
    return _sum(heights, x, precision) / total, weights


def _keep(x, y, x_mask, y_mask, scale, mean, precision):
    sides = _forward(x, y, x_mask, y_mask, scale, mean, precision)
    return tuple((side.pooled, side.weights) for side in sides), (x, y, x_mask, y_mask, scale, sides)


def _backward(mean, precision, kept, cotangents):
    x, y, x_mask, y_mask, scale, sides = kept
    slopes = functools.partial(_slopes, precision=precision)
    (x_slope, x_moved), (y_slope, y_moved) = _each(slopes, x, y, x_mask, y_mask, sides, cotangents)
    (of_x, _), (of_y, _) = cotangents
    own, other = sides
    found = (
        _written(x, x_mask, own.weights, of_x, scale * x_slope, other.summary, scale * y_moved, mean),
        _written(y, y_mask, other.weights, of_y, scale * y_slope, own.summary, scale * x_moved, mean),
    )
    of_scale = jnp.sum(x_moved * other.summary) + jnp.sum(y_moved * own.summary)
    return *found, None, None, of_scale


def _slopes(x, y, x_mask, y_mask, sides, cotangents, *, precision):
    """Returns for each side (gradient of its products [L], the sum of the tokens under it [d])."""
    (own, other), (of_x, of_y) = sides, cotangents
    return _slope(x, x_mask, own, of_x, y_mask, precision), _slope(y, y_mask, other, of_y, x_mask, precision)


def _slope(x, mask, side, cotangents, other, precision):
    x, (of_pooled, of_weights) = _clean(x, mask), cotangents
    if mask is not None:
        of_weights = jnp.where(mask, of_weights, 0)
    average = jnp.dot(side.pooled, of_pooled, precision=precision) + jnp.sum(side.weights * of_weights)
    slope = side.weights * (jnp.dot(x, of_pooled, precision=precision) + of_weights - average)
    if mask is not None:
        slope = jnp.where(mask, slope, 0)
    if other is not None:
        slope = jnp.where(jnp.any(other), slope, 0)
    return slope, _sum(slope, x, precision)


def _written(x, mask, weights, of_pooled, slope, query, of_summary, mean):
    """Computes ``dx`` [B, L, d]: through the average, the scores, and the sum that the other side is scored by."""
    shares = _shares(mask, mean, x)
    if mean:
        shares = shares / _count(shares)[..., None]
    terms = (weights, of_pooled), (slope, query), (shares, of_summary)
    of_x = functools.reduce(operator.add, (a[..., None] * b[:, None] for a, b in terms))
    return (of_x if mask is None else jnp.where(mask[..., None], of_x, 0)).astype(x.dtype)


@reverse_rule(_keep, _backward, nondiff_argnums=(5, 6))
def tiled(x, y, x_mask, y_mask, scale, mean, precision):
    """Returns ((pooled [B, d], weights [B, L]) of x, the same of y).

    Args:
      x: [B, L, d] tokens, in any floating dtype.
      y: [B, T, d] tokens.
      x_mask: bool [B, L], or None.
      y_mask: bool [B, T], or None.
      scale: of the scores, in the computing dtype.
      mean: whether a token meets the mean of the other side, not its sum.
      precision: of the products.
    """
    sides = _forward(x, y, x_mask, y_mask, scale, mean, precision)
    return tuple((side.pooled, side.weights) for side in sides)
