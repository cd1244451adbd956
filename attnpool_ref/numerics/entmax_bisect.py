"""The alpha-entmax of a large alpha, by bisection for its smallest weight."""

import numpy as np


def steep_entmax(below, count, power):
    """Weights of scores less the largest one, for a power above 1, padding being -inf; by the smallest weight v above 0.

    The others follow from it: w^p = v^p + p (s - s_k), with s_k the smallest score that has a weight. Nothing is steep in
    v, as it is in the threshold, from which v is a small difference.
    """
    if np.isinf(power) or not below.shape[-1]:
        return np.where(count > 0, np.nan, np.zeros(below.shape))
    lost = np.any(np.isnan(below), -1, keepdims=True)
    with np.errstate(over="ignore"):
        gaps = np.minimum(-power * np.where(np.isnan(below), 0, below), 2)  # nothing beyond 1 has a weight
    ordered = np.sort(gaps, -1)

    def weights(gaps, least, v):
        with np.errstate(divide="ignore"):  # a logarithm of 0
            logarithms = power * np.log(v), np.log(np.maximum(least - gaps, 0))
        return np.where(gaps <= least, np.exp(np.logaddexp(*logarithms) / power), 0)

    low, high = np.zeros(count.shape, int), np.maximum(count - 1, 0)
    while np.any(low < high):  # how many scores have a weight: the last of them leaves something of 1 to itself
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
