"""Attention pooling with learned queries in several heads."""

import numpy as np

from attnpool_ref.attention import attend, output_of_heads
from attnpool_ref.contract.definition import definition
from attnpool_ref.primitives import concatenate_heads, fill_padding, mask_of_heads, only_real, project_to_heads
from attnpool_ref.scores import scaled_dot_score


@definition
def multi_head_attention_pooling(
    x,
    mask=None,
    *,
    lengths=None,
    query,
    query_kernel=None,
    key_kernel,
    value_kernel,
    out_kernel=None,
    query_bias=None,
    key_bias=None,
    value_bias=None,
    out_bias=None,
    scale=None,
    bias=None,
    normalizer="softmax",
    sink=None,
    dropout_multiplier=None,
    return_weights=False,
):
    r"""Pools the real tokens by multi-head attention with learned queries, to one vector per query.

    .. math:: O = \sum_h \mathrm{softmax}_{l : k_l}\Big(\frac{Q_h K_h^\top}{\sqrt c} + B_h\Big) V_h W_o^h + b_o, \qquad
              Q_h = Q W_q^h + b_q^h, \quad K_h = X W_k^h + b_k^h, \quad V_h = X W_v^h + b_v^h

    A sequence has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens.

    The sum runs over H heads, whose queries and keys have width c. With both optional kernels, and without ``scale``,
    ``bias`` and ``normalizer``, the result equals that of :func:`multi_head_attention` with the same queries. Without
    ``query_kernel`` the queries are already projected, [n, H, c]; without ``out_kernel`` the outputs of the heads are
    concatenated. ``key_bias`` adds one constant to all scores of a head and query; normalizers in which it cancels
    ("softmax", "sparsemax", "entmax15", "hardmax") ignore it. In a fully masked row the result is :math:`b_o`, or 0
    without it.

    Args:
      x: [..., L, d] tokens, :math:`X`.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.
      query: [n, q] n learned queries of width q, :math:`Q`, or [..., n, q] for each sequence; [n, H, c] without
        ``query_kernel``.
      query_kernel: [q, H, c], :math:`W_q`, or None.
      key_kernel: [d, H, c], :math:`W_k`.
      value_kernel: [d, H, c'], :math:`W_v`, for values of width c'.
      out_kernel: [H, c', o], :math:`W_o`, for o features of the result, or None.
      query_bias: [H, c], :math:`b_q`, or None; only with ``query_kernel``.
      key_bias: [H, c], :math:`b_k`, or None.
      value_bias: [H, c'], :math:`b_v`, or None.
      out_bias: [o], :math:`b_o`, or None; only with ``out_kernel``.
      scale: a number that multiplies the products; None is :math:`1/\sqrt c`.
      bias: broadcastable to [..., H, n, L], :math:`B`, or None; does not affect the result's dtype.
      normalizer: "softmax", "sparsemax", "entmax15", "sigmoid" (whose weights do not sum to 1), "hardmax", or a
        function (scores, mask) -> weights, as described in :func:`attend`.
      sink: a number, or [H] with one for each head, a score in the denominator of the softmax only (attention sink; 0 is "softmax off by
        one"), or None. It is neither scaled nor biased, and does not affect the result's dtype.
      dropout_multiplier: broadcastable to [..., H, n, L] or None; dropout factors of weights, 0 or ``1/(1 - rate)``.
      return_weights: also return the weights before dropout.

    Returns:
      [..., n, o], where o = Hc' without ``out_kernel``; with ``return_weights`` a tuple of this and the
      weights [..., H, n, L].

    Raises:
      ValueError: if shapes disagree, if the mask has a float dtype, if the normalizer is unknown, or if ``query_bias``
        or ``out_bias`` is given without its kernel.

    Source:
      Vaswani et al. 2017, section 3.2.2, with learned queries.

    >>> kernel = np.eye(2).reshape(2, 2, 1)
    >>> multi_head_attention_pooling(
    ...     [[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]],
    ...     [True, True, False],
    ...     query=[[0.0, 0.0]],
    ...     query_kernel=kernel,
    ...     key_kernel=kernel,
    ...     value_kernel=kernel,
    ...     out_kernel=kernel.reshape(2, 1, 2),
    ... )
    array([[2., 3.]])

    Packed:

    >>> kernel = np.eye(2).reshape(2, 2, 1)
    >>> segment_multi_head_attention_pooling(
    ...     [[1.0, 2.0], [9.0, 9.0], [3.0, 4.0]],
    ...     [0, 1, 0],
    ...     2,
    ...     query=[[0.0, 0.0]],
    ...     query_kernel=kernel,
    ...     key_kernel=kernel,
    ...     value_kernel=kernel,
    ...     out_kernel=kernel.reshape(2, 1, 2),
    ... )
    array([[[2., 3.]],
    <BLANKLINE>
           [[9., 9.]]])
    """
    x = fill_padding(x, mask)
    cancels = normalizer in ("softmax", "sparsemax", "entmax15", "hardmax")
    queries = np.swapaxes(query, 0, 1) if query_kernel is None else project_to_heads(query, query_kernel, query_bias)
    keys = project_to_heads(x, key_kernel, None if cancels else key_bias)
    values = project_to_heads(x, value_kernel, value_bias)
    scores = scaled_dot_score.body(queries, keys, scale=scale)
    if bias is not None:
        scores = scores + only_real(bias, mask[..., None, None, :])
    attended, weights = attend.body(
        scores,
        values,
        np.broadcast_to(mask_of_heads(mask[..., None, :], scores.shape[-3]), scores.shape),
        normalizer=normalizer,
        sink=None if sink is None else sink[:, None],
        dropout_multiplier=dropout_multiplier,
        return_weights=True,
    )
    result = concatenate_heads(attended) if out_kernel is None else output_of_heads(attended, out_kernel, out_bias)
    return (result, weights) if return_weights else result
