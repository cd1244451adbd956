"""Pairs: two sequences, two masks, each pooled by what the other one holds."""

import numpy as np

from attnpool_ref.definition import definition
from attnpool_ref.normalizers import masked_softmax


@definition
def cross_attention_pooling(
    x,
    y,
    x_mask=None,
    y_mask=None,
    *,
    x_kernel=None,
    y_kernel=None,
    reduction="sum",
    scale=1.0,
    return_weights=False,
):
    r"""Pools each of two sequences by its tokens' scores over the other one.

    .. math:: A_{lt} = \alpha\, (x_l W_x) \cdot (y_t W_y), \qquad
              o_x = \sum_l \mathrm{softmax}_l\big(\mathrm{reduce}_t A_{lt}\big) x_l, \qquad
              o_y = \sum_t \mathrm{softmax}_t\big(\mathrm{reduce}_l A_{lt}\big) y_t

    Softmax and reduction run over real tokens. Where the other side is empty its sum, mean or maximum is 0, so that
    the result is the mean of the real tokens; an empty side itself gives 0. The products are scaled first, which
    matters for a negative scale with ``max``; the gradient of ``max`` is shared evenly among ties.

    Args:
      x: [..., L, d] tokens.
      y: [..., T, e] tokens; e = d unless kernels say otherwise.
      x_mask: bool, broadcastable to [..., L], True = real.
      y_mask: bool, broadcastable to [..., T], True = real.
      x_kernel: [d, c], :math:`W_x`, for the scores alone.
      y_kernel: [e, c], :math:`W_y`, for the scores alone.
      reduction: "sum", "mean" or "max" of the scores over the other side.
      scale: :math:`\alpha`, a number.
      return_weights: also return both weights.

    Returns:
      (x_pooled [..., d], y_pooled [..., e]), and with ``return_weights``
      ((x_pooled, y_pooled), (x_weights [..., L], y_weights [..., T])).

    Raises:
      ValueError: shapes disagree, a float mask, an unknown reduction.

    Source:
      Notebook 000, ``_pool_output``, with "crop to the valid lengths" taken at its word.

    >>> x_pooled, y_pooled = cross_attention_pooling([[1.0], [2.0]], [[1.0]])
    >>> x_pooled.round(6), y_pooled
    (array([1.731059]), array([1.]))
    """
    x, y = np.where(x_mask[..., None], x, 0), np.where(y_mask[..., None], y, 0)
    x_key = x if x_kernel is None else x @ x_kernel
    y_key = y if y_kernel is None else y @ y_kernel
    scores = scale * (x_key @ np.swapaxes(y_key, -1, -2))
    real = x_mask[..., :, None] & y_mask[..., None, :]
    x_weights = masked_softmax(_reduce(scores, real, reduction, -1), x_mask)
    y_weights = masked_softmax(_reduce(scores, real, reduction, -2), y_mask)
    pooled = np.sum(x_weights[..., None] * x, -2), np.sum(y_weights[..., None] * y, -2)
    return (pooled, (x_weights, y_weights)) if return_weights else pooled


def _reduce(scores, real, reduction, axis):
    """Sum, mean or maximum over the real pairs along an axis; 0 where there are none."""
    if reduction == "max":
        largest = np.max(np.where(real, scores, -np.inf), axis, initial=-np.inf)
        return np.where(np.any(real, axis), largest, 0)
    total = np.sum(np.where(real, scores, 0), axis)
    return total / np.maximum(np.sum(real, axis), 1) if reduction == "mean" else total
