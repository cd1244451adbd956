"""Averages under a softmax as GPUs compute them from given scores, and as TPUs compute them from products.

n are the queries, m the keys and values, d and v their widths.

GPUs compute the weights first, then one product with the values (:func:`softmax_average`). XLA's GPU compiler makes one
kernel, which reads the scores of a row once, of a softmax that combines scores, maximum and sum by arithmetic without
selections. CPUs and TPUs divide the sums of the values instead of the weights, which are more.

TPUs, without gradients, compute the products twice (:class:`Products`). XLA's TPU compiler computes the largest score
of a query with the products, and also the sum of the exponentials if the largest score is known before. If the products
are computed first for the largest score and then again for the exponentials, the exponentials are written once and read
once. Otherwise the scores are written once and read twice. That compiler makes a kernel of its own of
``jax.nn.softmax`` and the product with the values. This kernel returns NaN for a query whose first 1024 scores are
-inf, as those of padding are, because it subtracts -inf from -inf.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.products import einsum
from attnpool_flax.numerics.rounding import largest_product
from attnpool_flax.numerics.softmax import exponential, unmasked_softmax
from attnpool_flax.numerics.sums import weighted, weighted_tangents


def softmax_average(scores, mask, value, precision):
    """Averages values [..., m, v] under the softmax of scores [..., n, m]: [..., n, v]; 0 for a fully masked row.

    Args:
      scores: in float32 or float64; those at padding are never used.
      mask: bool, broadcastable to the scores, or None.
      value: 0 where no query sees it.
      precision: of the product.
    """
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    return _softmax_average(scores, value, precision)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def _softmax_average(scores, value, precision):
    return weighted(unmasked_softmax(scores, -1), value, precision)


@_softmax_average.defjvp
def _softmax_average_jvp(precision, primals, tangents):
    """Computes the tangent from the result: its transpose sums over the features, often fewer than the keys."""
    (scores, value), (dscores, dvalue) = primals, tangents
    weights = unmasked_softmax(scores, -1)
    result = weighted(weights, value, precision)
    dweights = weights * dscores
    change = weighted_tangents(dweights, value, precision) - jnp.sum(dweights, -1, keepdims=True) * result
    return result, change + weighted_tangents(weights, dvalue, precision)


class Products(NamedTuple):
    """Scores of queries that are products with keys.

    Attributes:
      operands: from arrays to (queries [..., n, d], keys [..., m, d], bias that is added to the products, or None).
      precision: of the products.
    """

    operands: Callable[..., Any]
    precision: Any

    def __call__(self, *arrays):
        """Returns the scores [..., n, m] from the arguments of ``operands``."""
        return _scores(self.precision, *self.operands(*arrays))

    def average(self, once, arrays, mask, value, size=None):
        """Averages values [..., m, v] under the softmax of the scores: [..., n, v]; 0 if a query sees no key.

        With ``size`` it returns (averages, the largest score of each query [..., n, 1]).

        Args:
          once: from (scores, mask, value) to the averages; the gradient is that of this function.
          arrays: the arguments of ``operands``.
          mask: bool, broadcastable to the scores, or None.
          value: 0 where no query sees it.
          size: None, or [..., n], a bound of the scores of a query, by which ties are found
            (:func:`~attnpool_flax.numerics.rounding.largest_product`).
        """
        return _product_average(once, self.precision, *self.operands(*arrays), mask, value, size)


def _scores(precision, queries, keys, bias):
    products = einsum("...nd,...md->...nm", queries, keys, precision)
    return products if bias is None else products + bias


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _product_average(once, precision, queries, keys, bias, mask, value, size):
    def masked(queries):
        scores = _scores(precision, queries, keys, bias)
        return scores if mask is None else jnp.where(mask, scores, -jnp.inf)

    max_score = jnp.max(masked(queries), -1, keepdims=True, initial=-jnp.inf)
    queries, max_score = lax.optimization_barrier((queries, max_score))  # XLA would keep the scores
    unnormalized = exponential(masked(queries), max_score)
    denominator = jnp.sum(unnormalized, -1, keepdims=True)
    # without this barrier XLA makes a loop for a v6e, which takes three times as many cycles
    unnormalized, denominator = lax.optimization_barrier((unnormalized, denominator))
    result = weighted(unnormalized, value, precision) / jnp.where(denominator == 0, 1, denominator)
    return result if size is None else (result, max_score)


@_product_average.defjvp
def _product_average_jvp(once, precision, primals, tangents):
    def of_scores(queries, keys, bias, mask, value, size):
        scores = _scores(precision, queries, keys, bias)
        result = once(scores, mask, value)
        if size is None:
            return result
        return result, largest_product(scores, mask, size, 2 * queries.shape[-1])[..., None]

    return jax.jvp(of_scores, primals, tangents)
