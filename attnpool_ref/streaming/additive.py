"""Chunked additive attention pooling."""

import numpy as np

from attnpool_ref.additive import additive_scores
from attnpool_ref.contract.definition import definition
from attnpool_ref.streaming.pooling import exponential_sums
from attnpool_ref.streaming.states import AdditiveAttentionState


@definition
def additive_attention_state(
    x,
    mask=None,
    *,
    lengths=None,
    kernel,
    out_kernel,
    bias=None,
    gate_kernel=None,
    gate_bias=None,
    out_bias=None,
    value=None,
    activation="tanh",
):
    r"""Returns the state of one chunk of a sequence for additive attention pooling, with an online softmax.

    .. math:: \Big( t_i, \; \sum_{l : k_l} e^{s_{il} - t_i}, \; \sum_{l : k_l} e^{s_{il} - t_i} v_l \Big), \qquad
              t_i = \max_{l : k_l} s_{il}, \quad s_{il} = \big(\phi(x_l W + b) \odot \sigma(x_l U + g)\big) \cdot K_i + c_i

    A chunk has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens. :math:`i` counts the hops, :math:`t_i` is the largest score, and the three
    entries are max, denominator and numerator of the average. :math:`K_i` is column :math:`i` of ``out_kernel``,
    :math:`\phi` the activation and :math:`\sigma` the sigmoid; without ``gate_kernel`` the factor
    :math:`\sigma(\cdot)` is 1. :math:`v_l` is row :math:`l` of ``value``, or token :math:`l` without ``value``.

    Args:
      x: [..., L, d] tokens of the chunk.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.
      kernel: [d, h], :math:`W`, for h hidden units.
      out_kernel: :math:`K`: [h] for one hop; [h, n] for n hops, for example one for each class.
      bias: [h], :math:`b`, or None.
      gate_kernel: [d, h], :math:`U`, or None.
      gate_bias: [h], :math:`g`, or None; only with ``gate_kernel``.
      out_bias: :math:`c`: a number, or [n] with n hops; or None.
      value: [..., L, v] the values to average, of width v, or None for the tokens.
      activation: :math:`\phi`: "tanh", "relu", "gelu" (exact) or "identity".

    Returns:
      An ``AdditiveAttentionState``, for :func:`merge_states` and then :func:`finalize_state`, which returns [..., v],
      or [..., n, v] with n hops.

    Raises:
      ValueError: if shapes disagree, if the mask has a float dtype, if ``gate_bias`` is given without ``gate_kernel``,
        or if the activation is unknown.

    Source:
      Ilse et al. 2018, equations 8 and 9.

    >>> parameters = {"kernel": np.zeros((2, 4)), "out_kernel": np.ones(4)}
    >>> one, other = (additive_attention_state([[first, 0.0]], **parameters) for first in (1.0, 3.0))
    >>> finalize_state(merge_states(one, other))
    array([2., 0.])
    """
    parameters = kernel, out_kernel, bias, gate_kernel, gate_bias, out_bias, activation
    scores = additive_scores(np.where(mask[..., None], x, 0), *parameters)
    value = np.where(mask[..., None], x if value is None else value, 0)
    max_score, denominator, numerator = exponential_sums(scores, value[..., None, :, :], mask[..., None, :])
    if out_kernel.ndim == 1:
        max_score, denominator, numerator = max_score[..., 0], denominator[..., 0], numerator[..., 0, :]
    return AdditiveAttentionState(max_score, denominator, numerator)
