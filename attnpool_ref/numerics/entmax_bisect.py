"""Alpha-entmax by bisection: for the threshold if alpha is at most 2, else for the smallest weight above 0."""

import numpy as np


def gentle_entmax(below, count, power):
    """Returns weights [..., m] for a power from 0 to 1, by bisection for the threshold.

    Args:
      below: [..., m] scores minus the largest one, -inf at padding.
      count: [..., 1] number of scores above -inf.
      power: alpha - 1.
    """
    logarithm = np.log(np.maximum(count, 1))
    # the threshold is (alpha - 1) max s - 1 + (alpha - 1) r, with r between 0 and its value for a uniform row
    low, high = np.zeros(count.shape), logarithm if power == 0 else -np.expm1(-power * logarithm) / power
    for _ in range(100):
        middle = (low + high) / 2
        enough = np.sum(_powers(below - middle, power), -1, keepdims=True) >= 1
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    weights = _powers(below - low, power)
    total = np.sum(weights, -1, keepdims=True)
    return weights / np.where(total == 0, 1, total)


def _powers(x, power):
    """Computes max(0, 1 + power * x) ** (1 / power), or its limit exp(x) for a power of 0."""
    if power == 0:
        return np.exp(x)
    inside = power * x
    return np.where(inside <= -1, 0, np.exp(np.log1p(np.where(inside <= -1, 0, inside)) / power))


def steep_entmax(below, count, power):
    """Returns weights [..., m] for a power above 1, by bisection for the smallest weight v above 0.

    With p = ``power``, v determines each other weight w of a score s: w^p = v^p + p (s - s_k), where s_k is the
    smallest score that has a weight. The bisection is not for the threshold, because small changes of it would change
    the sum of the weights too much.

    Args:
      below: [..., m] scores minus the largest one, -inf at padding.
      count: [..., 1] number of scores above -inf.
      power: alpha - 1.
    """
    if np.isinf(power) or not below.shape[-1]:
        return np.where(count > 0, np.nan, np.zeros(below.shape))
    lost = np.any(np.isnan(below), -1, keepdims=True)
    with np.errstate(over="ignore"):
        gaps = np.minimum(-power * np.where(np.isnan(below), 0, below), 2)  # scores with a gap above 1 have weight 0
    ordered = np.sort(gaps, -1)

    def weights(gaps, least, v):
        with np.errstate(divide="ignore"):  # log(0)
            logarithms = power * np.log(v), np.log(np.maximum(least - gaps, 0))
        return np.where(gaps <= least, np.exp(np.logaddexp(*logarithms) / power), 0)

    low, high = np.zeros(count.shape, int), np.maximum(count - 1, 0)
    while np.any(low < high):  # find the last score with a weight: if its own were 0, the sum would be less than 1
        middle = (low + high + 1) // 2
        least = np.take_along_axis(ordered, middle, -1)
        fits = np.sum(weights(ordered, least, 0.0), -1, keepdims=True) < 1
        low, high = np.where(fits, middle, low), np.where(fits, high, middle - 1)
    least = np.take_along_axis(ordered, low, -1)
    low, high = np.zeros(count.shape), np.ones(count.shape)
    for _ in range(100):
        middle = (low + high) / 2
        enough = np.sum(weights(gaps, least, middle), -1, keepdims=True) >= 1
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    found = weights(gaps, least, high)
    found = found / np.sum(found, -1, keepdims=True)
    return np.where(lost, np.nan, np.where(count > 0, found, 0))
