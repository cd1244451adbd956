"""Averages and maxima of tokens, and products of each example by itself."""

import numpy as np

from attnpool_ref.numerics.rounding import power_of_two
from attnpool_ref.primitives.exchange import primitive
from attnpool_ref.primitives.padding import zero_if_empty


@primitive
def mean(x, mask):
    """Averages the real tokens of x [..., L, d], which is 0 at padding, under a mask [..., L]: [..., d].

    The weights of the sum are powers of two up to 1/N, so that it is as exact as one without weights, and neither it nor
    the division by the rest overflows for the largest numbers.
    """
    count = np.maximum(np.sum(mask, -1), 1)[..., None]
    part = 2 * power_of_two(count)  # the power of two in (count, 2 count], by which division is exact
    return vecmat(mask / part, x) / (count / part)  # vecmat(w, x) is the sum over l of w_l x_l


@primitive
def maximum(x, mask):
    """Returns the largest real value of each feature, [..., d]; 0 in a fully masked row. Writes into x."""
    x[~mask] = -np.inf
    largest = np.max(x, -2, initial=-np.inf)
    return zero_if_empty(largest, mask)


@primitive
def minimum(x, mask):
    """Returns the smallest real value of each feature, [..., d]; 0 in a fully masked row."""
    return 0 - maximum.__wrapped__(-x, mask)


@primitive
def reduced(scores, real, reduction, axis):
    """Reduces scores of pairs [..., n, m] along an axis by "sum", "mean" or "max" of the real ones; 0 if there are none."""
    if reduction == "max":
        largest = np.max(np.where(real, scores, -np.inf), axis, initial=-np.inf)
        return np.where(np.any(real, axis), largest, 0)
    total = np.sum(np.where(real, scores, 0), axis)
    return total / np.maximum(np.sum(real, axis), 1) if reduction == "mean" else total


@primitive
def between(low, high, share):
    """Interpolates between two values; equal ones and infinities are exact."""
    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf, 0 * inf and overflow, not selected
        result = np.where(np.isinf(high - low), (1 - share) * low + share * high, low + share * (high - low))
    return np.where(low == high, low, result)


def weighted_sum(weights, x):
    """Sums tokens x [..., L, d] under weights [..., L], or [..., L, d] with a weight for each feature."""
    if weights.ndim == x.ndim:
        return (weights * x).sum(-2)
    return vecmat(weights, x)


@primitive
def sums_of_residuals(weights, x, centers):
    """Sums the distances of tokens x [..., L, d] from each center [K, d] under weights [..., L, K]: [..., K, d]."""
    return np.stack([vecmat(weights[..., k], x - center) for k, center in enumerate(centers)], -2)


def vecmat(vector, matrix):
    """Multiplies vectors [..., n] by matrices [..., n, m]: [..., m]. Each example is a product of its own.

    One product of a batch of vectors with a shared matrix would round differently for another number of examples.
    """
    return (vector[..., None, :] @ matrix)[..., 0, :]


def matvec(matrix, vector):
    """Multiplies matrices [..., m, n] by vectors [..., n]: [..., m]."""
    return (matrix @ vector[..., None])[..., 0]
