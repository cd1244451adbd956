"""Mean and standard deviation of the tokens of a sequence, feature by feature."""

import numpy as np

from attnpool_ref.numerics.rounding import power_of_two
from attnpool_ref.primitives.exchange import primitive


@primitive
def moments(x, mask, weights, ddof, epsilon):
    """Returns (mean, deviation) [..., d] of the real tokens under weights [..., L] or [..., L, d]; None is 1."""
    mask = np.broadcast_to(mask[..., None], x.shape)
    if weights is None:
        weights = np.ones(x.shape)
    weights = np.where(mask, weights if weights.ndim == x.ndim else weights[..., None], 0)
    weights = weights / power_of_two(np.max(np.abs(weights), -2, keepdims=True, initial=0))  # squares may overflow
    total, squares = np.sum(weights, -2), np.sum(weights**2, -2)
    origin = _first_used(x, weights)  # distances from it are exactly 0 if all tokens are equal
    with np.errstate(invalid="ignore"):  # inf - inf: an infinite token has no deviation
        shifted = np.where(mask & _counting(x, weights), x, origin) - origin
        size = power_of_two(np.max(np.abs(shifted), -2, keepdims=True, initial=0))  # no square over- or underflows
        shifted = shifted / size
        mean = np.sum(weights * shifted, -2, keepdims=True) / np.where(total == 0, 1, total)[..., None, :]
        second = np.sum(weights * (shifted - mean) ** 2, -2)
        mean = (origin + size * mean)[..., 0, :]
    return np.where(total == 0, 0, mean), _deviation(total, squares, second, ddof, epsilon, size[..., 0, :])


def _deviation(total, squares, second, ddof, epsilon, size=1):
    """Computes the standard deviation from sums of weights, of their squares, and of weighted squared distances.

    The distances are in units of ``size``; the minimum ``epsilon`` of the variance is not.
    """
    whole = total - ddof * squares / np.where(total == 0, 1, total)
    variance = np.where(whole <= 0, 0, second) / np.where(whole <= 0, 1, whole)
    deviation, floor = size * np.sqrt(np.where(variance < 0, 0, variance)), np.sqrt(epsilon)
    return np.where(total == 0, 0, np.where(deviation <= floor, floor, deviation))


def _counting(x, weights):
    """Returns a mask of tokens that affect the result: those with a nonzero weight or a value that is not finite."""
    return (weights != 0) | ~np.isfinite(x)


def _first_used(x, weights):
    """Returns [..., 1, d]: for each feature the first token whose weight is not 0; 0 if there is none."""
    if x.shape[-2] == 0:
        return np.sum(x, -2, keepdims=True)
    used = np.broadcast_to(weights != 0, x.shape)
    first = np.take_along_axis(x, np.argmax(used, -2)[..., None, :], -2)
    return np.where(np.any(used, -2, keepdims=True), first, 0)
