"""Attention: each query gets the average of the values under its weights."""

import numpy as np

from attnpool_ref.definition import definition
from attnpool_ref.normalizers import masked_softmax
from attnpool_ref.scores import scaled_dot_score

NORMALIZERS = {"softmax": masked_softmax}


@definition
def attend(scores, value, mask=None, *, normalizer="softmax", dropout_multiplier=None, return_weights=False):
    r"""Averages the values under normalised scores.

    .. math:: o_i = \sum_j w_{ij} v_j, \qquad w_i = \mathrm{normalizer}(s_i)

    A value is padding if no query of its example sees it. A query that sees nothing gets 0.

    Args:
      scores: [..., n, m] scores.
      value: [..., m, v] values.
      mask: bool, broadcastable to [..., n, m], True = this query sees this value.
      normalizer: "softmax".
      dropout_multiplier: broadcastable to [..., n, m]; multiplies the weights, which then no longer sum to 1.
      return_weights: also return the weights, as they are before dropout.

    Returns:
      [..., n, v], and with ``return_weights`` the weights [..., n, m].

    Raises:
      ValueError: shapes disagree, a float mask, an unknown normaliser.

    Source:
      Vaswani et al. 2017, equation 1, for any scores.

    >>> attend([[0.0, 0.0, 9.0]], [[1.0], [3.0], [99.0]], [[True, True, False]])
    array([[2.]])
    """
    value = np.where(np.any(mask, -2)[..., None], value, 0)
    weights = NORMALIZERS[normalizer](scores, mask)
    applied = weights if dropout_multiplier is None else weights * np.where(mask, dropout_multiplier, 0)
    pooled = applied @ value
    return (pooled, weights) if return_weights else pooled


@definition
def dot_product_attention(
    query, key, value, mask=None, *, bias=None, scale=None, dropout_multiplier=None, return_weights=False
):
    r"""Scaled dot-product attention.

    .. math:: O = \mathrm{softmax}\Big(\frac{Q K^\top}{\sqrt d} + B\Big) V

    Args:
      query: [..., n, d] queries, :math:`Q`.
      key: [..., m, d] keys, :math:`K`.
      value: [..., m, v] values, :math:`V`.
      mask: bool, broadcastable to [..., n, m], True = this query sees this key.
      bias: broadcastable to [..., n, m], :math:`B`; does not decide the result's dtype.
      scale: a number in place of :math:`1/\sqrt d`.
      dropout_multiplier: broadcastable to [..., n, m]; multiplies the weights.
      return_weights: also return the weights, as they are before dropout.

    Returns:
      [..., n, v], and with ``return_weights`` the weights [..., n, m].

    Raises:
      ValueError: shapes disagree or a float mask.

    Source:
      Vaswani et al. 2017, equation 1.

    >>> dot_product_attention([[0.0]], [[1.0], [2.0]], [[4.0], [8.0]])
    array([[6.]])
    """
    query = np.where(np.any(mask, -1)[..., None], query, 0)
    key = np.where(np.any(mask, -2)[..., None], key, 0)
    scores = scaled_dot_score(query, key, scale=scale)
    if bias is not None:
        scores = scores + np.where(mask, bias, 0)
    return attend(scores, value, mask, dropout_multiplier=dropout_multiplier, return_weights=return_weights)
