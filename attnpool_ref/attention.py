"""Attention: the result of each query is a weighted sum of the values, which some functions then project."""

import numpy as np

from attnpool_ref.contract.definition import definition
from attnpool_ref.normalizers import normalize
from attnpool_ref.numerics.rounding import power_of_two
from attnpool_ref.primitives import (
    concatenate_heads,
    drop,
    fill_padding,
    joined,
    mask_of_heads,
    only_real,
    project_to_heads,
    shares,
)
from attnpool_ref.scores import additive_score, gaussian_score, location_score, scaled_dot_score, tanh_sum_score


@definition
def attend(
    scores,
    value,
    mask=None,
    *,
    lengths=None,
    normalizer="softmax",
    sink=None,
    dropout_multiplier=None,
    return_weights=False,
):
    r"""Averages values by normalized scores: attention with scores that you compute.

    .. math:: o_i = \sum_j w_{ij} v_j, \qquad w_i = \mathrm{normalizer}(s_i)

    :math:`s_i` are the scores of query :math:`i`, one for each value :math:`v_j`; the normalizer turns those of the
    values that the query sees into weights. A value that no query of its example sees is padding, and is never read.
    The result of a query that sees no value is 0.

    Args:
      scores: [..., n, m] scores of n queries and m values.
      value: [..., m, v] values of width v.
      mask: bool, broadcastable to [..., n, m]: True where the query sees the value; None if every query sees all.
      lengths: number of values that each query sees, counted from the left: int [..., n], [...] or (). Give this or
        ``mask``.
      normalizer: "softmax", "sparsemax", "entmax15", "sigmoid" (whose weights do not sum to 1), "hardmax", or a
        function (scores, mask) -> weights, such as ``partial(entmax, alpha=1.3)``. The function receives the mask as a
        boolean array of the scores' shape, and scores that are 0 at padding; its weights at padding are replaced by 0.
        It may be called for some examples at a time. JAX compiles anew for each new function object, so create it once.
      sink: broadcastable to [..., n], a score in the denominator of the softmax only (attention sink; 0 is "softmax off by
        one"), or None; one for each head has a last axis of 1. The weights then sum to less than 1. It does not affect
        the result's dtype.
      dropout_multiplier: broadcastable to [..., n, m] or None; dropout factors of the weights, 0 or ``1/(1 - rate)``.
      return_weights: also return the weights before dropout.

    Returns:
      [..., n, v] averages; with ``return_weights`` a tuple of these and the weights [..., n, m].

    Source:
      Vaswani et al. 2017, equation 1, generalized to any scores.

    >>> attend([[0.0, 0.0, 9.0]], [[1.0], [3.0], [99.0]], [[True, True, False]])
    array([[2.]])
    """
    value = fill_padding(value, np.any(mask, -2))
    weights = normalize(scores, mask, normalizer, sink)
    pooled = drop(weights, dropout_multiplier, mask) @ value
    return (pooled, weights) if return_weights else pooled


@definition
def dot_product_attention(
    query,
    key,
    value,
    mask=None,
    *,
    lengths=None,
    bias=None,
    scale=None,
    sink=None,
    dropout_multiplier=None,
    return_weights=False,
):
    r"""Computes scaled dot-product attention (Vaswani et al. 2017).

    .. math:: O = \mathrm{softmax}\Big(\frac{Q K^\top}{\sqrt d} + B\Big) V

    Each row of the softmax runs over the keys that its query sees. A query that sees no key has weights and result 0.

    Args:
      query: [..., n, d] queries, :math:`Q`.
      key: [..., m, d] keys, :math:`K`.
      value: [..., m, v] values of width v, :math:`V`.
      mask: bool, broadcastable to [..., n, m]: True where the query sees the key; None if each query sees every key.
      lengths: number of keys each query sees, counted from the left: int [..., n], [...] or (). Give this or ``mask``.
      bias: broadcastable to [..., n, m], :math:`B`, or None; does not affect the result's dtype.
      scale: a number that multiplies the products; None is :math:`1/\sqrt d`.
      sink: broadcastable to [..., n], a score in the denominator of the softmax only (attention sink; 0 is "softmax off by
        one"), or None; one for each head has a last axis of 1. It is neither scaled nor biased, and does not affect the
        result's dtype.
      dropout_multiplier: broadcastable to [..., n, m] or None; dropout factors of the weights, 0 or ``1/(1 - rate)``.
      return_weights: also return the weights before dropout.

    Returns:
      [..., n, v] results; with ``return_weights`` a tuple of these and the weights [..., n, m].

    Source:
      Vaswani et al. 2017, equation 1.

    >>> dot_product_attention([[0.0]], [[1.0], [2.0]], [[4.0], [8.0]])
    array([[6.]])
    """
    query, key = _only_seen(query, key, mask)
    scores = scaled_dot_score.body(query, key, scale=scale)
    if bias is not None:
        scores = scores + only_real(bias, mask)
    return attend.body(
        scores, value, mask, sink=sink, dropout_multiplier=dropout_multiplier, return_weights=return_weights
    )


def _only_seen(query, key, mask):
    """Returns queries and keys; those that are padding under the mask [..., n, m] become 0."""
    return fill_padding(query, np.any(mask, -1)), fill_padding(key, np.any(mask, -2))


@definition
def additive_attention(
    query,
    key,
    value,
    query_kernel,
    key_kernel,
    out_kernel,
    mask=None,
    *,
    lengths=None,
    bias=None,
    sink=None,
    dropout_multiplier=None,
    return_weights=False,
):
    r"""Computes additive attention (Bahdanau): an MLP with one hidden layer computes each score from query and key.

    .. math:: o_i = \sum_j w_{ij} v_j, \qquad w_i = \mathrm{softmax}_j\big(w^\top \tanh(W_q q_i + W_k k_j + b)\big)

    :math:`w_{ij}` are the weights of query :math:`i` over the keys :math:`j` that it sees; :math:`w` is ``out_kernel``.

    Args:
      query: [..., n, d] queries, the paper's :math:`s_{i-1}`.
      key: [..., m, e] keys, the paper's :math:`h_j`.
      value: [..., m, v] values; the paper takes the keys.
      query_kernel: [d, h], :math:`W_q` transposed, for h hidden units; the paper's :math:`W_a`.
      key_kernel: [e, h], :math:`W_k` transposed; the paper's :math:`U_a`.
      out_kernel: [h], :math:`w`; the paper's :math:`v_a`.
      mask: bool, broadcastable to [..., n, m]: True where the query sees the key; None if each query sees every key.
      lengths: number of keys each query sees, counted from the left: int [..., n], [...] or (). Give this or ``mask``.
      bias: [h], :math:`b`, or None.
      sink: broadcastable to [..., n], a score in the denominator of the softmax only (attention sink; 0 is "softmax off by
        one"), or None; one for each head has a last axis of 1. It is neither scaled nor biased, and does not affect the
        result's dtype.
      dropout_multiplier: broadcastable to [..., n, m] or None; dropout factors of the weights, 0 or ``1/(1 - rate)``.
      return_weights: also return the weights before dropout.

    Returns:
      [..., n, v] results; with ``return_weights`` a tuple of these and the weights [..., n, m]. Both are
      0 for a query that sees no key.

    Source:
      Bahdanau et al. 2015, equations 5 and 6 and section A.1.2.

    >>> one = np.ones((1, 1))
    >>> additive_attention([[0.0]], [[0.0], [0.0], [5.0]], [[2.0], [4.0], [9.0]], one, one, [1.0], [[1, 1, 0]])
    array([[3.]])
    """
    query, key = _only_seen(query, key, mask)
    scores = additive_score.body(query, key, query_kernel, key_kernel, out_kernel, bias=bias)
    return attend.body(
        scores, value, mask, sink=sink, dropout_multiplier=dropout_multiplier, return_weights=return_weights
    )


@definition
def tanh_sum_attention(query, key, value, kernel, mask=None, *, lengths=None, bias=None, return_weights=False):
    r"""Computes attention whose scores are the sum of a hidden layer over query and key, concatenated.

    .. math:: o_i = \sum_j w_{ij} v_j, \qquad w_i = \mathrm{softmax}_j\Big(\sum_h \tanh(W [q_i; k_j] + b)_h\Big)

    :math:`[q_i; k_j]` is query :math:`i` concatenated with a key :math:`j` that it sees; :math:`h` counts hidden units.

    Args:
      query: [..., n, d] queries.
      key: [..., m, e] keys.
      value: [..., m, v] values.
      kernel: [d+e, h], :math:`W` transposed, the query's rows first.
      mask: bool, broadcastable to [..., n, m]: True where the query sees the key; None if each query sees every key.
      lengths: number of keys each query sees, counted from the left: int [..., n], [...] or (). Give this or ``mask``.
      bias: [h], :math:`b`, or None.
      return_weights: also return the weights.

    Returns:
      [..., n, v] results; with ``return_weights`` a tuple of these and the weights [..., n, m]. Both are 0 for a
      query that sees no key.

    Source:
      Bahdanau, Cho, Bengio 2015, appendix A.1.2, with ones for :math:`v_a`: rule 2 of notebook 002 (docs/notebooks).

    >>> kernel = np.ones((2, 3))
    >>> tanh_sum_attention([[0.0]], [[0.0], [0.0], [5.0]], [[2.0], [4.0], [9.0]], kernel, [[1, 1, 0]])
    array([[3.]])
    """
    query, key = _only_seen(query, key, mask)
    return attend.body(tanh_sum_score.body(query, key, kernel, bias=bias), value, mask, return_weights=return_weights)


@definition
def location_attention(query, state, value, kernel, bias, out_kernel, out_bias, mask=None, *, return_weights=False):
    r"""Computes location-based attention: scores of slots from query and state, then a linear map of query and context.

    .. math:: o_i = W_o [q_i; c_i] + b_o, \qquad c_i = \sum_j w_{ij} v_j, \qquad
              w_i = \mathrm{softmax}_j\big((W [q_i; k_i] + b)_j\big)

    A slot :math:`j` is one of m positions, with the value :math:`v_j`; the values do not affect the weights.
    :math:`c_i` is the context of query :math:`i`. If no slot is real, :math:`c_i = 0` and
    :math:`o_i = W_o [q_i; 0] + b_o`.

    Args:
      query: [..., n, d] queries, :math:`q`.
      state: [..., n, e] one state for each query, :math:`k`.
      value: [..., m, v] the contents of the slots.
      kernel: [d+e, m], :math:`W` transposed: the query's rows first, and a column for each slot.
      bias: [m], :math:`b`.
      out_kernel: [d+v, o], :math:`W_o` transposed, the query's rows first, for o features of the result.
      out_bias: [o], :math:`b_o`.
      mask: bool, broadcastable to [..., m]: True at real slots, False at padding; None if all slots are real.
      return_weights: also return the weights.

    Returns:
      [..., n, o] results; with ``return_weights`` a tuple of these and the weights [..., n, m].

    Source:
      Luong, Pham, Manning 2015, equation 8, of query and state: rule 1 and class ``Attn`` of notebook 002
      (docs/notebooks).

    >>> location_attention([[1.0]], [[2.0]], [[2.0], [4.0]], np.zeros((2, 2)), np.zeros(2), [[10.0], [1.0]], [0.5])
    array([[13.5]])
    """
    mask = np.broadcast_to(mask[..., None, :], (*query.shape[:-1], mask.shape[-1]))
    state = fill_padding(state, np.any(mask, -1))
    scores = location_score.body(query, state, kernel, bias=bias)
    context, weights = attend.body(scores, value, mask, return_weights=True)
    result = joined(query, context) @ out_kernel + out_bias
    return (result, weights) if return_weights else result


@definition
def multi_head_attention(
    query,
    key,
    value,
    mask=None,
    *,
    lengths=None,
    query_kernel,
    key_kernel,
    value_kernel,
    out_kernel,
    query_bias=None,
    key_bias=None,
    value_bias=None,
    out_bias=None,
    sink=None,
    dropout_multiplier=None,
    return_weights=False,
):
    r"""Computes multi-head attention: scaled dot products in H projections, then an output projection of all heads.

    .. math:: O = \sum_h \mathrm{softmax}\Big(\frac{Q_h K_h^\top}{\sqrt c}\Big) V_h W_o^h + b_o, \qquad
              Q_h = Q W_q^h + b_q^h, \quad K_h = K W_k^h + b_k^h, \quad V_h = V W_v^h + b_v^h

    :math:`h` counts the H heads, whose queries and keys have width c. The softmax runs over the keys that the query
    sees. If it sees none, the heads' outputs are 0, and its result is :math:`b_o`.

    Args:
      query: [..., n, d] queries, :math:`Q`.
      key: [..., m, e] keys, :math:`K`.
      value: [..., m, v] values, :math:`V`.
      mask: bool, broadcastable to [..., n, m], or, if it has one axis more than that, to [..., H, n, m]: True where the
        query sees the key; None if each query sees every key.
      lengths: number of keys each query sees, counted from the left: int [..., n], [...] or (). Give this or ``mask``.
      query_kernel: [d, H, c], :math:`W_q`.
      key_kernel: [e, H, c], :math:`W_k`.
      value_kernel: [v, H, c'], :math:`W_v`, for projected values of width c'.
      out_kernel: [H, c', o], :math:`W_o`, for o features of the result.
      query_bias: [H, c], :math:`b_q`, or None.
      key_bias: [H, c], :math:`b_k`, or None.
      value_bias: [H, c'], :math:`b_v`, or None.
      out_bias: [o], :math:`b_o`, or None.
      sink: a number, or [H] with one for each head, a score in the denominator of the softmax only (attention sink; 0 is "softmax off by
        one"), or None. It is neither scaled nor biased, and does not affect the result's dtype.
      dropout_multiplier: broadcastable to [..., H, n, m] or None; dropout factors of weights, 0 or ``1/(1 - rate)``.
      return_weights: also return the weights before dropout.

    Returns:
      [..., n, o] results; with ``return_weights`` a tuple of these and the weights [..., H, n, m].

    Source:
      Vaswani et al. 2017, section 3.2.2; biases as in common implementations.

    >>> kernel = np.eye(2).reshape(2, 2, 1)
    >>> multi_head_attention(
    ...     [[0.0, 0.0]],
    ...     [[1.0, 2.0], [3.0, 4.0]],
    ...     [[2.0, 4.0], [4.0, 8.0]],
    ...     query_kernel=kernel,
    ...     key_kernel=kernel,
    ...     value_kernel=kernel,
    ...     out_kernel=kernel.reshape(2, 1, 2),
    ... )
    array([[3., 6.]])
    """
    if mask.ndim == query.ndim:
        mask = mask_of_heads(mask, query_kernel.shape[1])
    mask = np.broadcast_to(mask, (*mask.shape[:-3], query_kernel.shape[1], *mask.shape[-2:]))
    query, key = _only_seen(query, key, np.any(mask, -3))
    value = fill_padding(value, np.any(mask, (-3, -2)))
    queries = project_to_heads(query, query_kernel, query_bias)
    keys = project_to_heads(key, key_kernel, key_bias)
    values = project_to_heads(value, value_kernel, value_bias)
    attended, weights = attend.body(
        scaled_dot_score.body(queries, keys),
        values,
        mask,
        sink=None if sink is None else sink[:, None],
        dropout_multiplier=dropout_multiplier,
        return_weights=True,
    )
    result = output_of_heads(attended, out_kernel, out_bias)
    return (result, weights) if return_weights else result


def output_of_heads(heads, kernel, bias):
    """Projects heads [..., H, n, c] by a kernel [H, c, o], sums over the heads, and adds a bias [o] unless it is None."""
    result = concatenate_heads(heads) @ kernel.reshape(-1, kernel.shape[-1])
    return result if bias is None else result + bias


@definition
def kernel_regression(
    query, key, value, mask=None, *, lengths=None, kernel="gaussian", bandwidth=1.0, return_weights=False
):
    r"""Averages values under a kernel of the distance between query and key (Nadaraya-Watson regression).

    .. math:: o_i = \frac{\sum_j K(u_{ij}) v_j}{\sum_j K(u_{ij})}, \qquad u_{ij} = \frac{\lVert q_i - k_j \rVert}{\sigma}

    :math:`i` counts queries, and :math:`j` the keys that the query sees. The kernels :math:`K` are gaussian
    :math:`e^{-u^2/2}`, boxcar (1 if :math:`u \le 1`, else 0), triangular :math:`\max(0, 1 - u)`, epanechnikov
    :math:`\frac 3 4 \max(0, 1 - u^2)` and constant 1. A query for which all kernel values are 0 has result 0. The
    Gaussian kernel is computed as a softmax, so that its values cannot all underflow to 0.

    The gradient of the boxcar kernel is 0, and so is that of the triangular kernel at distance 0. At :math:`u = 1` the
    triangular and the epanechnikov kernel have half of their gradient just below 1.

    Args:
      query: [..., n, d] queries, :math:`q`.
      key: [..., m, d] keys, :math:`k`.
      value: [..., m, v] values of width v, :math:`v`.
      mask: bool, broadcastable to [..., n, m]: True where the query sees the key; None if each query sees every key.
      lengths: number of keys each query sees, counted from the left: int [..., n], [...] or (). Give this or ``mask``.
      kernel: "gaussian", "boxcar", "triangular", "epanechnikov" or "constant".
      bandwidth: :math:`\sigma`, a positive number, which is not checked.
      return_weights: also return the weights.

    Returns:
      [..., n, v] averages; with ``return_weights`` a tuple of these and the weights [..., n, m].

    Source:
      Zhang et al. (d2l), chapter Attention Pooling by Similarity, which calls the triangular kernel Epanechikov.

    >>> kernel_regression([[0.0]], [[0.5], [-1.0], [2.0]], [[1.0], [3.0], [9.0]], kernel="boxcar")
    array([[2.]])
    >>> kernel_regression([[0.0]], [[5.0]], [[1.0]], kernel="triangular")
    array([[0.]])
    """
    query, key = _only_seen(query, key, mask)
    if kernel == "gaussian":
        scores = gaussian_score.body(query, key, bandwidth=bandwidth)
        return attend.body(scores, value, mask, return_weights=return_weights)
    part = power_of_two(bandwidth)  # division is exact; the square of a small bandwidth would underflow
    squared, bandwidth = np.sum(((query[..., :, None, :] - key[..., None, :, :]) / part) ** 2, -1), bandwidth / part
    unnormalized = np.where(mask, KERNELS[kernel](squared, bandwidth), 0)
    weights = np.where(mask, shares(unnormalized), 0)  # NaN at one position must not reach the padding
    pooled = weights @ fill_padding(value, np.any(mask, -2))
    return (pooled, weights) if return_weights else pooled


def _boxcar(squared, bandwidth):
    return np.where(np.isnan(squared), np.nan, squared <= bandwidth**2)


def _triangular(squared, bandwidth):
    return np.maximum(1 - np.sqrt(squared) / bandwidth, 0)


def _epanechnikov(squared, bandwidth):
    return 3 / 4 * np.maximum(1 - squared / bandwidth**2, 0)


def _constant(squared, bandwidth):
    return np.ones_like(squared)


KERNELS = {"boxcar": _boxcar, "triangular": _triangular, "epanechnikov": _epanechnikov, "constant": _constant}
"""Kernels by name, as functions of squared distance and bandwidth; the Gaussian is computed as a softmax instead."""
