"""Weights from scores: the softmax and its logarithm, shares of a sum, and the factor of scaled products."""

import numpy as np

from attnpool_ref.numerics.rounding import power_of_two
from attnpool_ref.primitives.exchange import primitive


@primitive
def softmax(scores, mask, axis=-1):
    """Returns the softmax over the real positions; 0 at padding, in fully masked rows, and if all real scores are -inf.

    A real score of +inf makes all real weights of its row NaN. The mask has the shape of the scores.
    """
    unnormalized = np.exp(_below_the_largest(scores, mask, axis))
    total = np.sum(unnormalized, axis, keepdims=True)
    return np.where(mask, unnormalized / np.where(total == 0, 1, total), 0)


@primitive
def log_softmax(scores, mask, axis=-1):
    """Returns the logarithm of :func:`softmax`, without underflow: -inf where the softmax is 0 by definition."""
    below = _below_the_largest(scores, mask, axis)
    total = np.sum(np.exp(below), axis, keepdims=True)
    return np.where(mask, below - np.log(np.where(total == 0, 1, total)), -np.inf)


@primitive
def share_beside_sink(scores, mask, sink, axis=-1):
    """Returns what the softmax with a sink leaves for the real positions: the sum of their weights, of size 1 along axis.

    ``sink`` has the axes of the scores without ``axis``. Without a real score above -inf the share is 0.
    """
    scores = np.where(mask, scores, -np.inf)
    top = np.max(scores, axis, keepdims=True, initial=-np.inf)
    sink = np.expand_dims(sink, axis)
    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf where a score or the sink is +inf
        largest = np.maximum(top, sink)
        largest = np.where(np.isinf(largest), 0, largest)
        total = np.sum(np.exp(scores - largest), axis, keepdims=True)
        share = total / (total + np.exp(sink - largest))
    return np.where((top == -np.inf) | (sink == np.inf), 0, share)


def _below_the_largest(scores, mask, axis):
    """Returns the scores minus the largest real one of their row; -inf at padding."""
    scores = np.where(mask, scores, -np.inf)
    top = np.max(scores, axis, keepdims=True, initial=-np.inf)
    with np.errstate(invalid="ignore"):  # inf - inf: a real score of +inf gives NaN by definition
        return scores - np.where(top == -np.inf, 0, top)


@primitive
def shares(values, axis=-1):
    """Divides values by their sum along an axis; 0 where the sum is 0.

    They are divided by a power of two first, because the sum of the largest numbers would overflow.
    """
    values = values / power_of_two(np.max(np.abs(values), axis, keepdims=True, initial=0))
    total = np.sum(values, axis, keepdims=True)
    return np.where(total == 0, 0, values / np.where(total == 0, 1, total))


@primitive
def inverse_root(width):
    """Returns the factor of scaled dot products of vectors of this width."""
    return 1 / np.sqrt(width)
