"""Cross attention of two sequences in one loop: each is averaged under its products with the sum or mean of the other.

B are the examples, L and T the tokens of the two sequences (sides), d features. One example of both sides fits into the
cache of a CPU, where its tokens can be read several times; on accelerators all examples are computed at once. Let x be
the tokens of a side, Y the sum or mean of the other side, s the scale, w the weights of x, and dpooled and dw the
cotangents of the pooled vector and of the weights. Then

    dscores = w (x . dpooled + dw - (their average under w))
    dY      = s sum_l dscores_l x_l
    dx      = w dpooled + s dscores Y + (the gradient through the sum or mean of x)

and on CPUs the backward pass reads x once more. It writes dx once.
"""

import functools
import operator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics import platforms
from attnpool_flax.numerics.elementwise import keep_real
from attnpool_flax.numerics.products import factor_precision, is_narrow, token_products, token_sums
from attnpool_flax.numerics.sizes import known
from attnpool_flax.numerics.softmax import exponential
from attnpool_flax.numerics.sums import computing_dtype, in_slices
from attnpool_flax.reductions.loops import tiling
from attnpool_flax.reductions.loops.blocks import inside_loop
from attnpool_flax.reductions.rules import reverse_rule

EXAMPLE = 2**21
"""The largest number of bytes of one example of a side, which a CPU's cache holds."""


class Side(NamedTuple):
    """Result for one of the two sequences; inside of the loop it has no batch axis B.

    Attributes:
      pooled: [B, d].
      weights: [B, L], or [B, T] of y.
      summary: [B, d], the sum or the mean of the real tokens.
    """

    pooled: Any
    weights: Any
    summary: Any


def fits(x, y):
    """Returns whether [B, L, d] and [B, T, d] can share one loop, and are large enough to need one.

    B must be the same, the other sizes no symbols and not 0. One example of a side must not exceed ``EXAMPLE``
    bytes, and all examples of the larger side must exceed ``tiling.WHOLE`` bytes, unless B is a symbol.
    """
    if x.shape[0] != y.shape[0] or not known(*x.shape[1:], *y.shape[1:]):
        return False
    rows = [array.shape[1] * array.shape[2] * array.dtype.itemsize for array in (x, y)]
    batch = x.shape[0]
    large = not known(batch) or batch * max(rows) > tiling.WHOLE
    return large and min(rows) > 0 and max(rows) <= EXAMPLE


def _map_examples(function, *arrays):
    """Maps a function over examples: by a loop on CPUs, by ``vmap`` elsewhere.

    Under ``vmap`` the function gets ``on_gpus``: True on GPUs, False on TPUs.
    """

    def loop(*arrays):
        def example(step, array):
            array, step = inside_loop(array, step)
            return lax.dynamic_index_in_dim(array, step, 0, False)

        def example_step(step):
            return function(*jax.tree.map(functools.partial(example, step), arrays))

        return lax.map(example_step, jnp.arange(arrays[0].shape[0]))

    def whole(*arrays, on_gpus):
        return jax.vmap(functools.partial(function, on_gpus=on_gpus))(*arrays)

    return platforms.choose(*arrays, cpu=loop, **platforms.on_accelerators(whole))


def _example(x, y, x_mask, y_mask, *, scale, mean, precision, on_gpus=None):
    x, y = _Tokens(x, x_mask, precision, on_gpus), _Tokens(y, y_mask, precision, on_gpus)
    x_summary, y_summary = x.summary(mean), y.summary(mean)
    return (
        Side(*_pooled(x, scale * y_summary, y_mask), x_summary),
        Side(*_pooled(y, scale * x_summary, x_mask), y_summary),
    )


class _Tokens:
    """Tokens [L, d] of one example, 0 at padding.

    They are in the computing dtype, float32 or float64; on accelerators bfloat16 and float16 tokens keep their dtype.
    ``on_gpus`` is as in :func:`_map_examples`, or None on CPUs.
    """

    def __init__(self, x, mask, precision, on_gpus):
        self.narrow = on_gpus is not None and is_narrow(x)
        x = x if self.narrow else x.astype(computing_dtype(x.dtype))
        self.x = keep_real(x, mask)
        self.mask, self.precision, self.multiply = mask, precision, bool(on_gpus)

    def products(self, query):
        """Returns the products [L] with a query [d]."""
        if self.narrow:
            return token_products(self.x[None], query[None, None], self.precision, self.multiply)[0, :, 0]
        return jnp.dot(self.x, query, precision=self.precision)

    def sum(self, weights):
        """Sums the tokens under weights [L]: [d]."""
        if self.narrow:
            return token_sums(weights[None, :, None], self.x[None], None, self.precision, self.multiply)[0, 0]
        return in_slices(lambda rows: jnp.dot(weights[rows], self.x[rows], precision=self.precision), self.x.shape[0])

    def summary(self, mean):
        """Returns the sum or the mean [d] of the real tokens."""
        terms = _terms(self.mask, mean, self.x)
        total = self.sum(terms)
        return total / _count(terms)[..., None] if mean else total


def _divisor(mean, length):
    """Returns a power of two by which each term of a mean is divided to avoid overflow; 1 for a sum."""
    return 2 ** length.bit_length() if mean else 1


def _terms(mask, mean, like):
    """Returns the weight [L] of each token: 1 in a sum, in a mean 1 / :func:`_divisor`; 0 at padding."""
    length = like.shape[-2]
    dtype = computing_dtype(like.dtype)
    real = jnp.ones(like.shape[:-1], dtype) if mask is None else mask.astype(dtype)
    return real / _divisor(mean, length)


def _count(terms):
    total = jnp.sum(terms, -1)
    return jnp.where(total == 0, 1, total)


def _pooled(tokens, query, other):
    """Returns (pooled [d], weights [L]) of one side.

    If the other side, whose mask is ``other``, is fully masked, all scores are 0, whatever the tokens hold.
    """
    scores, mask = tokens.products(query), tokens.mask
    if other is not None:
        scores = jnp.where(jnp.any(other), scores, 0)
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    exp_scores = exponential(scores, jnp.max(scores))
    denominator = jnp.sum(exp_scores)
    denominator = jnp.where(denominator == 0, 1, denominator)
    weights = exp_scores / denominator
    if mask is not None:
        weights = jnp.where(mask, weights, 0)  # NaN of a real token must not reach padding
    return tokens.sum(exp_scores) / denominator, weights


def _cross_fwd(x, y, x_mask, y_mask, scale, mean, precision):
    example = functools.partial(_example, scale=scale, mean=mean, precision=precision)
    sides = _map_examples(example, x, y, x_mask, y_mask)
    return tuple((side.pooled, side.weights) for side in sides), (x, y, x_mask, y_mask, scale, sides)


def _cross_bwd(mean, precision, residuals, cotangents):
    x, y, x_mask, y_mask, scale, sides = residuals
    bwd_example = functools.partial(_bwd_example, precision=precision)
    (dx_scores, dy_summary), (dy_scores, dx_summary) = _map_examples(
        bwd_example, x, y, x_mask, y_mask, sides, cotangents
    )
    (dx_pooled, _), (dy_pooled, _) = cotangents
    x_side, y_side = sides
    dx = _dx(x, x_mask, x_side.weights, dx_pooled, scale * dx_scores, y_side.summary, scale * dx_summary, mean)
    dy = _dx(y, y_mask, y_side.weights, dy_pooled, scale * dy_scores, x_side.summary, scale * dy_summary, mean)
    dscale = jnp.sum(dy_summary * y_side.summary) + jnp.sum(dx_summary * x_side.summary)
    return dx, dy, None, None, dscale


def _bwd_example(x, y, x_mask, y_mask, sides, cotangents, *, precision, on_gpus=None):
    """Returns for each side (dscores [L], the sum [d] of its tokens under them).

    Times the scale, this sum is the gradient of the other side's sum or mean, dY.
    """
    (x_side, y_side), (dx_side, dy_side) = sides, cotangents
    x, y = _Tokens(x, x_mask, precision, on_gpus), _Tokens(y, y_mask, precision, on_gpus)
    return _bwd_side(x, x_side, dx_side, y_mask), _bwd_side(y, y_side, dy_side, x_mask)


def _bwd_side(tokens, side, cotangents, other_mask):
    mask, (dpooled, dweights) = tokens.mask, cotangents
    if mask is not None:
        dweights = jnp.where(mask, dweights, 0)
    average = jnp.dot(side.pooled, dpooled, precision=factor_precision(tokens.precision))
    average = average + jnp.sum(side.weights * dweights)
    dscores = side.weights * (tokens.products(dpooled) + dweights - average)
    if mask is not None:
        dscores = jnp.where(mask, dscores, 0)
    if other_mask is not None:
        dscores = jnp.where(jnp.any(other_mask), dscores, 0)
    return dscores, tokens.sum(dscores)


def _dx(x, mask, weights, dpooled, dscores, query, dsummary, mean):
    """Computes ``dx`` [B, L, d]: the gradients through the average, the scores, and the sum or mean of x.

    ``dscores`` are multiplied by the scale; ``query`` is the sum or mean of the other side, ``dsummary`` the cotangent
    of that of x.
    """
    terms = _terms(mask, mean, x)
    if mean:
        terms = terms / _count(terms)[..., None]
    products = (weights, dpooled), (dscores, query), (terms, dsummary)
    dx = functools.reduce(operator.add, (a[..., None] * b[:, None] for a, b in products))
    return keep_real(dx, mask).astype(x.dtype)


def _cross(x, y, x_mask, y_mask, scale, mean, precision):
    """Returns ((pooled [B, d], weights [B, L]) of x, (pooled [B, d], weights [B, T]) of y).

    Args:
      x: [B, L, d] tokens, in any floating dtype.
      y: [B, T, d] tokens.
      x_mask: bool [B, L], or None.
      y_mask: bool [B, T], or None.
      scale: of the scores, an array of shape () in the computing dtype.
      mean: whether scores are products with the mean of the other side, not its sum.
      precision: of the products.
    """
    return _cross_fwd(x, y, x_mask, y_mask, scale, mean, precision)[0]


tiled = reverse_rule(_cross, _cross_fwd, _cross_bwd, nondiff_argnums=(5, 6))
