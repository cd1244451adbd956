"""Weights from scores by the name of a normalizer, or by the caller's function."""

import numpy as np

from attnpool_ref import contract
from attnpool_ref.normalizers import entmax15, hardmax, masked_sigmoid, masked_softmax, sparsemax

NORMALIZERS = {
    "softmax": masked_softmax,
    "sparsemax": sparsemax,
    "entmax15": entmax15,
    "sigmoid": masked_sigmoid,
    "hardmax": hardmax,
}


def normalize(scores, mask, normalizer):
    """Returns weights over the last axis, 0 at padding.

    Args:
      scores: [..., m] scores in float64.
      mask: bool, of the scores' shape.
      normalizer: a key of ``NORMALIZERS``, or the caller's function (scores, mask) -> weights. The function receives
        scores that are 0 at padding, and its weights at padding are replaced by 0.

    Raises:
      ValueError: if the function returns weights of another shape than the scores.
      TypeError: if the function does not return an array of numbers.
    """
    if isinstance(normalizer, str):
        return NORMALIZERS[normalizer](scores, mask)
    weights = normalizer(np.where(mask, scores, 0), mask.copy())
    contract.check_weights(normalizer, weights, scores.shape)
    return np.where(mask, np.asarray(weights).astype(np.float64), 0)
