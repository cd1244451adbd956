"""Sums of exp(scale * x) over chunks, relative to the extreme value: accumulated, merged and finalized.

The extreme is the largest x, or the smallest for a negative scale. Distances from it are stored as halves of at most 0,
because the difference of two large numbers may overflow.
"""

import numpy as np

from attnpool_ref.means import below_maximum


def common_extreme(a, b, scale):
    """Returns (the extreme of two states, half of the first one's distance from it, half of the second one's)."""
    signed = [np.where(scale < 0, -state.extreme, state.extreme) for state in (a, b)]
    largest = np.maximum(*signed)
    return np.where(scale < 0, -largest, largest), *(below_maximum(own / 2, largest / 2, scale) for own in signed)


def exponent(scale, half):
    """Computes 2 * abs(scale) * half; 0 if one factor is 0, even if the other is infinite."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where((half == 0) | (scale == 0), 0, 2 * (np.abs(scale) * half))


def slack_of(scale, half):
    """Computes (exp(2 * abs(scale) * half) - 1) / (2 * abs(scale)), and its limit ``half`` for a scale of 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(scale == 0, half, np.expm1(exponent(scale, half)) / 2 / np.abs(scale))


def merge(a, b, scale):
    """Returns (extreme, total, slack) of two states together, as :class:`~.means.LogsumexpState` describes them."""
    extreme, *halves = common_extreme(a, b, scale)
    count = np.maximum(a.count + b.count, 1)
    total, slack = 0, 0
    for state, half in zip((a, b), halves, strict=True):
        factor, ratio = np.exp(exponent(scale, half)), (state.count / count)[..., None]
        total = total + state.total * factor
        slack = slack + np.where(
            ratio == 0, 0, ratio * (state.slack * factor + slack_of(scale, np.where(ratio == 0, 0, half)))
        )
    return extreme, total, slack


def finalize(state, scale, mean):
    """Computes ln(mean exp(scale x)) / scale, or of the sum if not ``mean``; arbitrary for a fully masked row."""
    count = np.maximum(state.count, 1)[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):  # fully masked rows, scales of 0, rows of infinite tokens
        logarithm = np.log(state.total / (count if mean else 1))
        if mean:
            difference = np.where(np.isinf(scale), -1, exponent(scale, state.slack))
            logarithm = np.where(difference > -0.5, np.log1p(np.maximum(difference, -0.5)), logarithm)
        limit = state.slack if mean else np.where(logarithm == 0, 0, np.inf)
        half = np.where(scale == 0, limit, logarithm / 2 / scale)
        return (state.extreme + half) + half


def accumulate(x, mask, scale):
    """Returns (extreme, total, slack, count, scale) of tokens, which must be 0 at padding."""
    scale, real = np.broadcast_to(scale, (*x.shape[:-2], x.shape[-1])), mask[..., None]
    extreme, halves = relative_to_extreme(x, mask, scale)
    each, count = scale[..., None, :], np.maximum(np.sum(real, -2, keepdims=True), 1)
    total = np.sum(np.where(real, np.exp(exponent(each, halves)), 0), -2)
    slack = np.sum(np.where(real, slack_of(each, halves) / count, 0), -2)
    return extreme, total, slack, np.sum(mask, -1), scale


def relative_to_extreme(x, mask, scale):
    """Returns (extreme [..., d], half of each real token's distance from it [..., L, d]); 0 at padding."""
    real, each = mask[..., None], scale[..., None, :]
    signed = np.where(each < 0, -x, x)
    largest = np.max(np.where(real, signed, -np.inf), -2, keepdims=True, initial=-np.inf)
    halves = np.where(real, below_maximum(np.where(real, signed, largest) / 2, largest / 2, each), 0)
    return np.where(each < 0, -largest, largest)[..., 0, :], halves
