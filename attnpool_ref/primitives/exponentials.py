"""Logarithms of mean exponentials of the tokens, feature by feature."""

import numpy as np

from attnpool_ref.numerics.rounding import LARGE, SMALLER
from attnpool_ref.primitives.exchange import primitive
from attnpool_ref.primitives.weights import shares


def in_range(x, real, scale):
    """Returns (x / unit, scale * unit, unit [..., d]). The unit is 1, or 2**200 if a real value exceeds 2**900."""
    most = np.max(np.where(real & np.isfinite(x), np.abs(x), 0), -2, keepdims=True, initial=0)
    unit = np.where(most > LARGE, SMALLER, 1.0)
    with np.errstate(over="ignore"):  # a scale that overflows to inf still selects the largest token
        return x / unit, scale * unit, unit[..., 0, :]


def below_maximum(values, top, scale):
    """Returns ``values - top``, with 0 at equal infinities; ``top`` is at least the maximum of ``values``.

    Under a scale of 0 a log-sum-exp is the mean, computed as ``top`` plus the mean of these differences. So finite
    values below a ``top`` of inf give 0 too: the mean is then inf, not NaN. A value of -inf keeps the difference -inf.
    """
    level = (values == top) | ((top == np.inf) & (scale == 0) & (values > -np.inf))
    with np.errstate(invalid="ignore"):  # inf - inf, which is not selected
        return np.where(level, 0, values - top)


def below_the_top(x, real, scale):
    """Returns (depth, abs(scale) * depth, extreme) of each feature.

    The extreme [..., d] is the largest real x, or the smallest for a negative scale. The depth [..., L, d] is minus the
    distance of x from the extreme, and 0 at padding.
    """
    signed = np.where(scale < 0, -x, x)
    top = np.max(np.where(real, signed, -np.inf), -2, keepdims=True, initial=-np.inf)
    below = np.where(real, below_maximum(np.where(real, signed, top), top, scale), 0)
    with np.errstate(invalid="ignore", over="ignore"):  # 0 * inf, which is not selected; -inf has weight 0
        scaled = np.where((below == 0) | (scale == 0), 0, np.abs(scale) * below)
    return below, scaled, np.where(scale < 0, -top, top)[..., 0, :]


@primitive
def softmax_of_products(x, scale, mask):
    """Returns the softmax [..., L, d] over the tokens of ``scale * x``, each feature by itself; finite for any scale."""
    unnormalized = np.where(mask, np.exp(below_the_top(x, mask, scale)[1]), 0)
    return np.where(mask, shares.__wrapped__(unnormalized, -2), 0)


@primitive
def mean_of_exponentials(x, real, scale, mean):
    """Computes ln(mean exp(scale x)) / scale, or of the sum if not ``mean``; arbitrary for a fully masked row."""
    x, scale, unit = in_range(x, real, scale)
    scale = np.broadcast_to(scale, (*x.shape[:-2], 1, x.shape[-1]))
    below_top, scaled, top = below_the_top(x, real, scale)
    scale = scale[..., 0, :]
    count = np.maximum(np.sum(real, -2), 1)
    with np.errstate(invalid="ignore", divide="ignore"):  # fully masked rows, scales of 0, rows of infinite tokens
        logarithm = np.log(np.sum(np.where(real, np.exp(scaled), 0), -2) / (count if mean else 1))
        if mean:  # the logarithm of a mean near 1 would lose digits
            rest = np.sum(np.where(real, np.expm1(scaled), 0), -2) / count
            logarithm = np.where(rest > -0.5, np.log1p(np.maximum(rest, -0.5)), logarithm)
            limit = np.sum(below_top, -2) / count
        else:
            limit = np.where(logarithm == 0, 0, np.inf)
        below = np.where(scale == 0, limit, logarithm / scale)
        return unit * (top + below)
