"""Attention pooling with one query."""

from attnpool_ref.contract.definition import definition
from attnpool_ref.layers import layer_norm
from attnpool_ref.normalizers import normalize
from attnpool_ref.primitives import drop, fill_padding, inverse_root, matvec, mean, only_real, vecmat, weighted_sum


@definition
def attention_pooling(
    x,
    mask=None,
    query=None,
    *,
    lengths=None,
    query_kernel=None,
    key_kernel=None,
    normalize_query=False,
    query_norm_scale=None,
    query_norm_bias=None,
    epsilon=1e-6,
    scale=None,
    bias=None,
    normalizer="softmax",
    sink=None,
    dropout_multiplier=None,
    return_weights=False,
):
    r"""Pools the real tokens by softmax attention to one query, by default the mean of the tokens.

    .. math:: o = \sum_l w_l x_l, \qquad
              w = \mathrm{softmax}_{l : k_l}\Big(\frac{(x_l W_k) \cdot (\hat q W_q)}{\sqrt c} + b_l\Big)

    A sequence has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens.

    :math:`\hat q` is the query, or with ``normalize_query`` its layer normalization (:func:`layer_norm`) with scale
    :math:`\gamma` and bias :math:`\beta`. The values are the raw tokens, without a projection. With ``query=None`` the
    query of each sequence is the mean of its real tokens, and there is no query to learn.

    Args:
      x: [..., L, d] tokens.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      query: [d], shared by all sequences, or [..., d] for each; without ``query_kernel`` its width is c. None is the
        mean. A matrix has one query for each sequence, never several for all.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.
      query_kernel: [d, c], :math:`W_q`, or None.
      key_kernel: [d, c], :math:`W_k`, or None.
      normalize_query: apply layer normalization to the query, before its kernel.
      query_norm_scale: [d], :math:`\gamma`, 1 if None; as wide as the query, if that is not d.
      query_norm_bias: [d], :math:`\beta`, 0 if None; as wide as the query, if that is not d.
      epsilon: the epsilon of the layer normalization, a number.
      scale: a number that multiplies the products; None is :math:`1/\sqrt c`, where c = d without kernels.
      bias: broadcastable to [..., L], :math:`b`, or None; does not affect the result's dtype. It is never read at
        padding.
      normalizer: "softmax", "sparsemax", "entmax15", "sigmoid" (whose weights do not sum to 1), "hardmax", or a
        function (scores, mask) -> weights, as described in :func:`attend`. Packed tokens take only "softmax" and
        "sigmoid".
      sink: a number, or [...] with one for each sequence, a score in the denominator of the softmax only (attention sink; 0 is "softmax off by
        one"), or None. It is neither scaled nor biased, and does not affect the result's dtype.
      dropout_multiplier: broadcastable to [..., L] or None; dropout factors of the weights, 0 or ``1/(1 - rate)``.
      return_weights: also return the weights before dropout.

    Returns:
      [..., d] pooled vectors; with ``return_weights`` a tuple of these and the weights [..., L]. Both are 0 in
      a fully masked row.

    Raises:
      ValueError: if shapes disagree, if the mask has a float dtype, if the normalizer is unknown, or if norm parameters
        are given without ``normalize_query``.

    Source:
      Vaswani et al. 2017, equation 1, with one learned query; the layer normalization of the query is from notebook 001
      (docs/notebooks).

    >>> attention_pooling([[1.0, 0.0], [3.0, 0.0], [9.0, 9.0]], [True, True, False], [0.0, 1.0])
    array([2., 0.])

    Packed:

    >>> segment_attention_pooling([[1.0, 0.0], [9.0, 9.0], [3.0, 0.0]], [0, 1, 0], 2, query=[0.0, 1.0])
    array([[2., 0.],
           [9., 9.]])
    """
    x = fill_padding(x, mask)
    if query is None:
        query = mean(x, mask)
    normalization = normalize_query, query_norm_scale, query_norm_bias, epsilon
    scores = attention_scores(x, query, query_kernel, key_kernel, normalization, scale)
    if bias is not None:
        scores = scores + only_real(bias, mask)
    weights = normalize(scores, mask, normalizer, sink)
    pooled = weighted_sum(drop(weights, dropout_multiplier, mask), x)
    return (pooled, weights) if return_weights else pooled


def attention_scores(x, query, query_kernel, key_kernel, normalization, scale):
    """Returns scores [..., L] of tokens that are 0 at padding.

    The argument ``normalization`` is (normalize_query, query_norm_scale, query_norm_bias, epsilon). These and the
    others are arguments of :func:`attention_pooling`.
    """
    normalize_query, query_norm_scale, query_norm_bias, epsilon = normalization
    if normalize_query:
        query = layer_norm.body(query, query_norm_scale, query_norm_bias, epsilon=epsilon)
    if query_kernel is not None:
        query = vecmat(query, query_kernel)
    key = x if key_kernel is None else x @ key_kernel
    if scale is None:
        scale = inverse_root(key.shape[-1])
    return scale * matvec(key, query)
