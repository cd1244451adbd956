"""Averages under the softmax of given scores, as GPUs compute them: weights first, then one product with the values.

XLA's GPU compiler makes one kernel, which reads the scores of a row once, of a softmax that combines scores, maximum
and sum by arithmetic without selections. CPUs and TPUs divide the sums of the values instead of the weights, which are
more.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.sums import weighted


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
    return _average(scores, value, precision)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def _average(scores, value, precision):
    return weighted(_weights(scores), value, precision)


@_average.defjvp
def _average_jvp(precision, primals, tangents):
    """Computes the tangent from the result: its transpose sums over the features, often fewer than the keys."""
    (scores, value), (dscores, dvalue) = primals, tangents
    weights = _weights(scores)
    result = weighted(weights, value, precision)
    dweights = weights * dscores
    change = weighted(dweights, value, precision) - jnp.sum(dweights, -1, keepdims=True) * result
    return result, change + weighted(weights, dvalue, precision)


def _weights(scores):
    """Returns the softmax of scores that are -inf at padding; 0 for a fully masked row."""
    max_score = lax.stop_gradient(jnp.max(scores, -1, keepdims=True, initial=-jnp.inf))
    unnormalized = jnp.exp(scores - jnp.maximum(max_score, jnp.finfo(scores.dtype).min))  # -inf - -inf would be NaN
    denominator = jnp.sum(unnormalized, -1, keepdims=True)
    return unnormalized / jnp.maximum(denominator, 0.5)  # it is at least 1, or 0
