"""Pooling: from one sequence of vectors and its mask to one vector."""

import functools

import numpy as np

from attnpool_ref.attention import attend, project_to_heads
from attnpool_ref.blocks import over_tokens
from attnpool_ref.definition import definition
from attnpool_ref.layers import layer_norm
from attnpool_ref.normalizers import normalize
from attnpool_ref.rounding import power_of_two
from attnpool_ref.scores import scaled_dot_score


@definition(as_they_come=["x"])
def mean_pooling(x, mask=None, *, lengths=None):
    r"""Averages the real tokens.

    .. math:: o = \frac 1 N \sum_{l : k_l} x_l, \qquad N = \sum_l k_l

    Args:
      x: [..., L, d] tokens.
      mask: bool, broadcastable to [..., L], True = real.
      lengths: integers [...] or (), in place of ``mask``: so many tokens, from the left, are real.

    Returns:
      [..., d]; 0 where nothing is real.

    Raises:
      ValueError: shapes disagree or a float mask.

    Source:
      Reimers and Gurevych 2019, section 3, MEAN; without a floor under the count.

    >>> mean_pooling([[1.0], [3.0], [99.0]], [True, True, False])
    array([2.])
    """
    count = np.maximum(np.sum(mask, -1), 1)[..., None]
    part = 2 * power_of_two(count)  # exact, so that a sum of large numbers does not overflow

    def share(x, mask, part):
        return np.where(mask[..., None], x, 0) / part

    return over_tokens(np.sum, share, x, mask, part[..., None, :]) / (count / part)


@definition(as_they_come=["x"])
def max_pooling(x, mask=None, *, lengths=None):
    r"""Takes the largest real value of each feature.

    .. math:: o_c = \max_{l : k_l} x_{lc}

    The gradient is shared evenly among ties.

    Args:
      x: [..., L, d] tokens.
      mask: bool, broadcastable to [..., L], True = real.
      lengths: integers [...] or (), in place of ``mask``: so many tokens, from the left, are real.

    Returns:
      [..., d]; 0 where nothing is real. -inf at a real token is data.

    Raises:
      ValueError: shapes disagree or a float mask.

    Source:
      Reimers and Gurevych 2019, section 3, MAX.

    >>> max_pooling([[-1.0], [-3.0], [99.0]], [True, True, False])
    array([-1.])
    """

    def real(x, mask):
        return np.where(mask[..., None], x, -np.inf)

    largest = over_tokens(functools.partial(np.max, initial=-np.inf), real, x, mask)
    return np.where(np.any(mask, -1)[..., None], largest, 0)


@definition(as_they_come=["x"])
def first_pooling(x, mask=None, *, lengths=None):
    r"""Takes the first real token, on whichever side the padding is.

    .. math:: o = x_l, \qquad l = \min \{ l : k_l \}

    Args:
      x: [..., L, d] tokens.
      mask: bool, broadcastable to [..., L], True = real.
      lengths: integers [...] or (), in place of ``mask``: so many tokens, from the left, are real.

    Returns:
      [..., d]; 0 where nothing is real.

    Raises:
      ValueError: shapes disagree or a float mask.

    Source:
      Reimers and Gurevych 2019, section 3, CLS.

    >>> first_pooling([[99.0], [1.0], [2.0]], [False, True, True])
    array([1.])
    """
    return _token_at(x, mask, lambda: np.argmax(mask, -1))


@definition(as_they_come=["x"])
def last_pooling(x, mask=None, *, lengths=None):
    r"""Takes the last real token, on whichever side the padding is.

    .. math:: o = x_l, \qquad l = \max \{ l : k_l \}

    Args:
      x: [..., L, d] tokens.
      mask: bool, broadcastable to [..., L], True = real.
      lengths: integers [...] or (), in place of ``mask``: so many tokens, from the left, are real.

    Returns:
      [..., d]; 0 where nothing is real.

    Raises:
      ValueError: shapes disagree or a float mask.

    Source:
      The last-token pooling of decoder encoders, as in sentence-transformers (reimers2019).

    >>> last_pooling([[1.0], [2.0], [99.0]], [True, True, False])
    array([2.])
    """
    return _token_at(x, mask, lambda: mask.shape[-1] - 1 - np.argmax(mask[..., ::-1], -1))


def _token_at(x, mask, position):
    """The token at ``position()``; 0 where nothing is real, which a sequence of length 0 is as well."""
    if x.shape[-2] == 0:
        return np.sum(x.astype(np.float64), -2)
    token = np.take_along_axis(x, position()[..., None, None], -2)[..., 0, :].astype(np.float64)
    return np.where(np.any(mask, -1)[..., None], token, 0)


@definition(as_they_come=["x"])
def weighted_pooling(x, weights=None, mask=None, *, lengths=None):
    r"""Averages the real tokens under given weights.

    .. math:: o_c = \frac{\sum_{l : k_l} w_{lc} x_{lc}}{\sum_{l : k_l} w_{lc}}

    Weights belong to slots; they may be negative. Where the sum of the real ones is exactly 0, the row is empty, or
    that channel of it where each has its own weights. What weights hold at padding is never read.

    Args:
      x: [..., L, d] tokens.
      weights: [L] for all examples, [..., L] for each one, or [..., L, d] for each channel: their rank beside that of x
        says which. None is uniform.
      mask: bool, broadcastable to [..., L], True = real.
      lengths: integers [...] or (), in place of ``mask``: so many tokens, from the left, are real.

    Returns:
      [..., d]; 0 where nothing is real or the weights cancel.

    Raises:
      ValueError: shapes disagree, a float mask, boolean weights (which are a mask).

    Source:
      Muennighoff 2022 (SGPT), section 3.2, with any weights for its positions.

    >>> weighted_pooling([[1.0], [4.0], [99.0]], [2.0, 1.0, 5.0], [True, True, False])
    array([2.])
    """
    if weights is None or weights.ndim < x.ndim:
        weights = np.where(mask, 1.0 if weights is None else weights, 0)[..., None]
    weights = np.where(mask[..., None], weights, 0)
    weights = weights / power_of_two(np.max(np.abs(weights), -2, keepdims=True, initial=0))  # the sum may overflow
    total = np.sum(weights, -2, keepdims=True)
    weights = np.where(total == 0, 0, weights / np.where(total == 0, 1, total))
    return _average(weights, x, mask)


def _average(weights, x, mask):
    """Sum of the tokens under weights [..., L, 1] or [..., L, d] that already know the mask."""

    def share(x, weights, mask):
        return weights * np.where(mask[..., None], x, 0)

    return over_tokens(np.sum, share, x, weights, mask)


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
    dropout_multiplier=None,
    return_weights=False,
):
    r"""Averages the real tokens by how well they suit a query; without ``query`` nothing is learned.

    .. math:: o = \sum_l w_l x_l, \qquad
              w = \mathrm{softmax}_{l : k_l}\Big(\frac{(x_l W_k) \cdot (\hat q W_q)}{\sqrt c} + b_l\Big)

    :math:`\hat q` is the query, or with ``normalize_query`` its layer normalisation
    :math:`\gamma (q - \bar q) / \sqrt{\mathrm{var}(q) + \epsilon} + \beta`. The values are the raw tokens.
    ``query=None`` takes the mean of each example's real tokens as its query: deterministic and without parameters.

    Args:
      x: [..., L, d] tokens.
      mask: bool, broadcastable to [..., L], True = real.
      query: [d], or [..., d] per example; of width c where there is no ``query_kernel``.
      lengths: integers [...] or (), in place of ``mask``: so many tokens, from the left, are real.
      query_kernel: [d, c], :math:`W_q`.
      key_kernel: [d, c], :math:`W_k`.
      normalize_query: apply layer normalisation to the query, before its kernel.
      query_norm_scale: [d], :math:`\gamma`, 1 if None; the query's width where that is not d.
      query_norm_bias: [d], :math:`\beta`, 0 if None.
      epsilon: :math:`\epsilon`, a number.
      scale: a number in place of :math:`1/\sqrt c`; c is d without kernels.
      bias: broadcastable to [..., L], :math:`b`; does not decide the result's dtype, and may hold anything at padding.
      normalizer: "softmax", "sparsemax", "entmax15", "sigmoid" (whose weights do not sum to 1), "hardmax", or a function
        (scores, mask) -> weights, as in :func:`attend`. Packed tokens take "softmax" and "sigmoid" alone.
      dropout_multiplier: broadcastable to [..., L]; multiplies the weights.
      return_weights: also return the weights, as they are before dropout.

    Returns:
      [..., d], and with ``return_weights`` the weights [..., L]; 0 where nothing is real.

    Raises:
      ValueError: shapes disagree, a float mask, norm parameters without ``normalize_query``.

    Source:
      Vaswani et al. 2017, equation 1, with one learned query; the query's norm is of docs/notebooks, 001.

    >>> attention_pooling([[1.0, 0.0], [3.0, 0.0], [9.0, 9.0]], [True, True, False], [0.0, 1.0])
    array([2., 0.])
    """
    x = np.where(mask[..., None], x, 0)
    if query is None:
        query = mean_pooling(x, mask)
    normalization = normalize_query, query_norm_scale, query_norm_bias, epsilon
    scores = attention_scores(x, query, query_kernel, key_kernel, normalization, scale)
    if bias is not None:
        scores = scores + np.where(mask, bias, 0)
    weights = normalize(scores, mask, normalizer)
    applied = weights if dropout_multiplier is None else weights * np.where(mask, dropout_multiplier, 0)
    pooled = _average(applied[..., None], x, mask)
    return (pooled, weights) if return_weights else pooled


def attention_scores(x, query, query_kernel, key_kernel, normalization, scale):
    """The scores [..., L] of clean tokens under a query, in its normalisation (flag, scale, bias, epsilon)."""
    normalize_query, query_norm_scale, query_norm_bias, epsilon = normalization
    if normalize_query:
        query = layer_norm(query, query_norm_scale, query_norm_bias, epsilon=epsilon)
    if query_kernel is not None:
        query = query @ query_kernel
    key = x if key_kernel is None else x @ key_kernel
    if scale is None:
        scale = 1 / np.sqrt(key.shape[-1])
    return scale * np.sum(key * query[..., None, :], -1)


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
    dropout_multiplier=None,
    return_weights=False,
):
    r"""Pools the real tokens by learned queries in several heads: one vector for each query.

    .. math:: O = \sum_h \mathrm{softmax}_{l : k_l}\Big(\frac{Q_h K_h^\top}{\sqrt c} + B_h\Big) V_h W_o^h + b_o, \qquad
              Q_h = Q W_q^h + b_q^h, \quad K_h = X W_k^h + b_k^h, \quad V_h = X W_v^h + b_v^h

    The same numbers as :func:`multi_head_attention` with that query. Without ``query_kernel`` the queries are given as
    the heads take them; without ``out_kernel`` the result is what the heads attend to, side by side. The key bias adds
    the same to every score of a head and query: where such a constant cancels ("softmax", "sparsemax", "entmax15",
    "hardmax") it is not read. Where nothing is real the result is :math:`b_o`, or 0.

    Args:
      x: [..., L, d] tokens, :math:`X`.
      mask: bool, broadcastable to [..., L], True = real.
      lengths: integers [...] or (), in place of ``mask``: so many tokens, from the left, are real.
      query: [n, q] learned queries, :math:`Q`, or [..., n, q] per example; [n, H, c] without ``query_kernel``.
      query_kernel: [q, H, c], :math:`W_q`, or None.
      key_kernel: [d, H, c], :math:`W_k`.
      value_kernel: [d, H, c'], :math:`W_v`.
      out_kernel: [H, c', o], :math:`W_o`, or None.
      query_bias: [H, c], :math:`b_q`, or None; only with ``query_kernel``.
      key_bias: [H, c], :math:`b_k`, or None.
      value_bias: [H, c'], :math:`b_v`, or None.
      out_bias: [o], :math:`b_o`, or None; only with ``out_kernel``.
      scale: a number in place of :math:`1/\sqrt c`.
      bias: broadcastable to [..., H, n, L], :math:`B`; does not decide the result's dtype.
      normalizer: "softmax", "sparsemax", "entmax15", "sigmoid", "hardmax", or a function, as :func:`attend` takes it.
      dropout_multiplier: broadcastable to [..., H, n, L]; multiplies the weights.
      return_weights: also return the weights, as they are before dropout.

    Returns:
      [..., n, o], where o = Hc' without ``out_kernel``; and with ``return_weights`` the weights [..., H, n, L].

    Raises:
      ValueError: shapes disagree, a float mask, an unknown normaliser, ``query_bias`` or ``out_bias`` without its kernel.

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
    """
    x = np.where(mask[..., None], x, 0)
    cancels = normalizer in ("softmax", "sparsemax", "entmax15", "hardmax")
    queries = np.swapaxes(query, 0, 1) if query_kernel is None else project_to_heads(query, query_kernel, query_bias)
    keys = project_to_heads(x, key_kernel, None if cancels else key_bias)
    values = project_to_heads(x, value_kernel, value_bias)
    scores = scaled_dot_score(np.broadcast_to(queries, (*keys.shape[:-2], *queries.shape[-2:])), keys, scale=scale)
    if bias is not None:
        scores = scores + np.where(mask[..., None, None, :], bias, 0)
    attended, weights = attend(
        scores,
        values,
        mask[..., None, None, :],
        normalizer=normalizer,
        dropout_multiplier=dropout_multiplier,
        return_weights=True,
    )
    if out_kernel is None:
        attended = np.swapaxes(attended, -3, -2)
        result = attended.reshape(*attended.shape[:-2], attended.shape[-2] * attended.shape[-1])
    else:
        result = np.einsum("...hnc,hco->...no", attended, out_kernel) + (0 if out_bias is None else out_bias)
    return (result, weights) if return_weights else result
