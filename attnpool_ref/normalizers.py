"""Normalisers: from scores to weights, and from vectors to unit vectors."""

import numpy as np

from attnpool_ref.definition import definition
from attnpool_ref.masks import lengths_to_mask


@definition
def masked_softmax(scores, mask=None, *, lengths=None, axis=-1):
    r"""Softmax over the real positions; padding has weight exactly 0.

    .. math:: w_j = \frac{k_j \exp(s_j - c)}{\sum_{i : k_i} \exp(s_i - c)}, \qquad c = \max_{i : k_i} s_i

    Where nothing is real, or every real score is :math:`-\infty`, all weights are 0. A real score of
    :math:`+\infty` gives NaN in its own row.

    Args:
      scores: [..., m] scores; ``axis`` may name another axis than the last.
      mask: bool, broadcastable to ``scores``, True = real.
      lengths: integer, () or the first axes of ``scores`` without ``axis``: the first ``lengths`` positions are
        real (d2l's ``valid_lens``). Not together with ``mask``.
      axis: the axis that is normalised.

    Returns:
      Weights of the shape of ``scores``.

    Raises:
      ValueError: mask and lengths together, a float mask, a mask that does not broadcast, lengths that do not fit.

    Source:
      Zhang et al. (d2l), ``masked_softmax``, without its fill of -1e6.

    >>> masked_softmax([1.0, 2.0, 3.0, 4.0], lengths=3).round(6)
    array([0.090031, 0.244728, 0.665241, 0.      ])
    >>> masked_softmax([1.0, 2.0], [False, False])
    array([0., 0.])
    """
    if lengths is not None:
        mask = _real_by_length(lengths, scores.shape, axis)
    scores = np.where(mask, scores, -np.inf)
    top = np.max(scores, axis, keepdims=True, initial=-np.inf)
    with np.errstate(invalid="ignore"):  # inf - inf: a real score of +inf is NaN by definition
        unnormalized = np.exp(scores - np.where(top == -np.inf, 0, top))
    total = np.sum(unnormalized, axis, keepdims=True)
    return np.where(mask, unnormalized / np.where(total == 0, 1, total), 0)


def _real_by_length(lengths, shape, axis):
    """Lengths on the first axes of ``shape`` without ``axis``, as a mask of that shape."""
    mask = lengths_to_mask(lengths, shape[axis])
    others = mask.shape[:-1] + (1,) * (len(shape) - mask.ndim) + mask.shape[-1:]
    return np.broadcast_to(np.moveaxis(mask.reshape(others), -1, axis), shape)


@definition
def l2_normalize(x, *, axis=-1):
    r"""Divides by the Euclidean norm; the zero vector stays 0.

    .. math:: y = x / \lVert x \rVert_2

    The gradient at the zero vector is 0.

    Args:
      x: [...] vectors along ``axis``.
      axis: the axis of the vectors.

    Returns:
      The shape of ``x``; norms are 1, or 0.

    Raises:
      ValueError: ``axis`` is not an axis of ``x``.

    Source:
      Wang et al. 2022 (SimKGC), ``_pool_output``, without its floor of 1e-12 under the norm.

    >>> l2_normalize([[3.0, 4.0], [0.0, 0.0]])
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    largest = np.max(np.abs(x), axis, keepdims=True, initial=0)
    scaled = x / np.where(largest == 0, 1, largest)  # squares of 1e-300 would underflow
    norm = np.sqrt(np.sum(scaled**2, axis, keepdims=True))
    return scaled / np.where(norm == 0, 1, norm)
