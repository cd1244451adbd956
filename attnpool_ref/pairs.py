"""Poolings of two sequences with two masks: the tokens of each are weighted by their scores with the other sequence."""

import numpy as np

from attnpool_ref.contract.definition import definition
from attnpool_ref.normalizers import masked_softmax


@definition
def cross_attention_pooling(
    x,
    y,
    x_mask=None,
    y_mask=None,
    *,
    x_lengths=None,
    y_lengths=None,
    x_kernel=None,
    y_kernel=None,
    reduction="sum",
    scale=1.0,
    return_weights=False,
):
    r"""Pools each of two sequences by its tokens' scores over the other one (cross pooling, SimKGC).

    .. math:: A_{lt} = \alpha\, (x_l W_x) \cdot (y_t W_y), \qquad
              o_x = \sum_l \mathrm{softmax}_l\big(\mathrm{reduce}_t A_{lt}\big) x_l, \qquad
              o_y = \sum_t \mathrm{softmax}_t\big(\mathrm{reduce}_l A_{lt}\big) y_t

    Softmax and reduction run over real tokens only. If y has no real token, its sum, mean or maximum is 0, so that
    :math:`o_x` is the mean of the real tokens of x and :math:`o_y` is 0; and vice versa. Products are multiplied by the
    scale before the reduction, which matters for a negative scale with "max". Tokens that tie share the gradient of "max"
    evenly.

    Args:
      x: [..., L, d] tokens.
      y: [..., T, e] tokens; e = d without kernels.
      x_mask: bool, broadcastable to [..., L], True = real.
      y_mask: bool, broadcastable to [..., T], True = real.
      x_lengths: number of real tokens of x, counted from the left: int [...] or (). Give this or ``x_mask``.
      y_lengths: number of real tokens of y, counted from the left: int [...] or (). Give this or ``y_mask``.
      x_kernel: [d, c], :math:`W_x`, only for the scores.
      y_kernel: [e, c], :math:`W_y`, only for the scores.
      reduction: "sum", "mean" or "max" of the scores over the other side.
      scale: :math:`\alpha`, a number.
      return_weights: also return both weights.

    Returns:
      (x_pooled [..., d], y_pooled [..., e]), and with ``return_weights``
      ((x_pooled, y_pooled), (x_weights [..., L], y_weights [..., T])).

    Raises:
      ValueError: shapes disagree, a float mask, an unknown reduction.

    Source:
      Notebook 000 (docs/notebooks), for SimKGC, with only real tokens, as the notebook says.

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
    """Computes the sum, mean or maximum over the real pairs along an axis; 0 if there are none."""
    if reduction == "max":
        largest = np.max(np.where(real, scores, -np.inf), axis, initial=-np.inf)
        return np.where(np.any(real, axis), largest, 0)
    total = np.sum(np.where(real, scores, 0), axis)
    return total / np.maximum(np.sum(real, axis), 1) if reduction == "mean" else total


@definition
def cross_attention_pooling_all_pairs(
    x,
    y,
    x_mask=None,
    y_mask=None,
    *,
    x_lengths=None,
    y_lengths=None,
    x_kernel=None,
    y_kernel=None,
    reduction="sum",
    scale=1.0,
    return_weights=False,
):
    r"""Pools every sequence of one batch with every sequence of another: B·C calls of ``cross_attention_pooling``.

    .. math:: (o^x_{bc}, o^y_{bc}) = \mathrm{cross}(x_b, y_c)

    This is for contrastive losses with in-batch negatives, where each negative is pooled together with its query.

    Args:
      x: [B, L, d] tokens.
      y: [C, T, e] tokens; e = d without kernels.
      x_mask: bool, broadcastable to [B, L], True = real.
      y_mask: bool, broadcastable to [C, T], True = real.
      x_lengths: number of real tokens of x, counted from the left: int [B] or (). Give this or ``x_mask``.
      y_lengths: number of real tokens of y, counted from the left: int [C] or (). Give this or ``y_mask``.
      x_kernel: [d, c], :math:`W_x`, only for the scores.
      y_kernel: [e, c], :math:`W_y`, only for the scores.
      reduction: "sum", "mean" or "max" of the scores over the other side.
      scale: :math:`\alpha`, a number.
      return_weights: also return both weights.

    Returns:
      (x_pooled [B, C, d], y_pooled [B, C, e]), and with ``return_weights``
      ((x_pooled, y_pooled), (x_weights [B, C, L], y_weights [B, C, T])).

    Raises:
      ValueError: shapes disagree, other than one batch axis a side, a float mask, an unknown reduction.

    Source:
      Notebook 000 (docs/notebooks), extended to all pairs that SimKGC scores; the notebook pools only matching pairs.

    >>> x_pooled, y_pooled = cross_attention_pooling_all_pairs([[[1.0], [2.0]]], [[[1.0]], [[0.0]]])
    >>> x_pooled[0].round(6)
    array([[1.731059],
           [1.5     ]])
    """
    pairs = x.shape[0], y.shape[0]

    def paired(array, axis):
        """Broadcasts an array to pairs: [B, C, ...]."""
        return np.broadcast_to(np.expand_dims(array, axis), pairs + array.shape[1:])

    return cross_attention_pooling(
        paired(x, 1),
        paired(y, 0),
        paired(x_mask, 1),
        paired(y_mask, 0),
        x_kernel=x_kernel,
        y_kernel=y_kernel,
        reduction=reduction,
        scale=scale,
        return_weights=return_weights,
    )


@definition
def maxsim_score(x, y, x_mask=None, y_mask=None, *, x_lengths=None, y_lengths=None, mean=False):
    r"""Scores a document by the best product of each query token (MaxSim, ColBERT's late interaction).

    .. math:: s = \sum_l \max_t\; x_l \cdot y_t

    Sum and maximum run over real tokens only. x is the query and y the document; the two are not interchangeable. Tokens
    are not normalized; the source does so first (:func:`l2_normalize`). Tokens that tie share the gradient of the maximum
    evenly. A document without real tokens has score 0, and would outrank one with a negative score: rank only documents
    with ``y_mask.any(-1)``.

    Args:
      x: [..., L, d] tokens of the query.
      y: [..., T, d] tokens of the document.
      x_mask: bool, broadcastable to [..., L], True = real.
      y_mask: bool, broadcastable to [..., T], True = real.
      x_lengths: number of real tokens of x, counted from the left: int [...] or (). Give this or ``x_mask``.
      y_lengths: number of real tokens of y, counted from the left: int [...] or (). Give this or ``y_mask``.
      mean: divide by the number of the query's real tokens.

    Returns:
      [...]; 0 where either side is empty.

    Raises:
      ValueError: shapes disagree or a float mask.

    Source:
      Khattab and Zaharia 2020, equation 3; ``mean`` as in sentence-transformers.

    >>> float(maxsim_score([[1.0, 0.0], [0.0, 1.0]], [[2.0, 1.0], [0.0, 3.0]]))
    5.0
    """
    x, y = np.where(x_mask[..., None], x, 0), np.where(y_mask[..., None], y, 0)
    real = x_mask[..., :, None] & y_mask[..., None, :]
    total = np.sum(_reduce(x @ np.swapaxes(y, -1, -2), real, "max", -1), -1)
    return total / np.maximum(np.sum(x_mask, -1), 1) if mean else total


@definition
def maxsim_score_all_pairs(x, y, x_mask=None, y_mask=None, *, x_lengths=None, y_lengths=None, mean=False):
    r"""Scores every document of one batch by every query of another: B·C calls of ``maxsim_score``.

    .. math:: s_{bc} = \mathrm{maxsim}(x_b, y_c)

    Args:
      x: [B, L, d] tokens of the queries.
      y: [C, T, d] tokens of the documents.
      x_mask: bool, broadcastable to [B, L], True = real.
      y_mask: bool, broadcastable to [C, T], True = real.
      x_lengths: number of real tokens of x, counted from the left: int [B] or (). Give this or ``x_mask``.
      y_lengths: number of real tokens of y, counted from the left: int [C] or (). Give this or ``y_mask``.
      mean: divide by the number of the query's real tokens.

    Returns:
      [B, C]; 0 where either side is empty.

    Raises:
      ValueError: shapes disagree, other than one batch axis a side, a float mask.

    Source:
      Khattab and Zaharia 2020, equation 3; ``mean`` as in sentence-transformers.

    >>> maxsim_score_all_pairs([[[1.0, 0.0], [0.0, 1.0]]], [[[2.0, 1.0]], [[0.0, 3.0]]])
    array([[3., 3.]])
    """
    columns = [
        maxsim_score(x, np.broadcast_to(one, (len(x), *one.shape)), x_mask, real, mean=mean)
        for one, real in zip(y, y_mask, strict=True)
    ]
    return np.stack(columns, -1) if columns else np.zeros((len(x), 0))


@definition
def code_wise_attention(
    query,
    context,
    query_mask=None,
    context_mask=None,
    *,
    query_lengths=None,
    context_lengths=None,
    scale=1.0,
    return_weights=False,
):
    r"""Pools the context under the softmax of each token's best score with a label (code-wise attention).

    .. math:: S_{ij} = \alpha\, d_i \cdot g_j, \qquad w = \mathrm{softmax}_i\big(\max_j S_{ij}\big), \qquad
              o = \sum_i w_i d_i

    The argument ``query`` holds the labels :math:`g_j`, over which the maximum runs; ``context`` holds keys and values.
    Maximum and softmax run over real labels and tokens only. Without a real label, weights and result are 0. Products are
    multiplied by the scale before the maximum, which matters for a negative scale. Labels that tie share the gradient
    evenly.

    Args:
      query: [..., k, d] labels, :math:`G`; often a [k, d] that all examples share.
      context: [..., n, d] tokens, :math:`D`.
      query_mask: bool, broadcastable to [..., k], True = real.
      context_mask: bool, broadcastable to [..., n], True = real.
      query_lengths: number of real query tokens, counted from the left: int [...] or (). Give this or ``query_mask``.
      context_lengths: number of real context tokens, counted from the left: int [...] or (). Give this or
        ``context_mask``.
      scale: :math:`\alpha`, a number; the source has none.
      return_weights: also return the weights.

    Returns:
      [..., d], and with ``return_weights`` the weights [..., n].

    Raises:
      ValueError: shapes disagree or a float mask.

    Source:
      Yue et al. 2021, ``Code_Wise_Attention`` in the authors' code. The formulas are those of the code; they have not been
      compared with the paper's equations.

    >>> code_wise_attention([[-1.0, 0.0], [-2.0, 0.0]], [[1.0, 0.0], [2.0, 0.0]]).round(6)
    array([1.268941, 0.      ])
    """
    query, context = np.where(query_mask[..., None], query, 0), np.where(context_mask[..., None], context, 0)
    scores = scale * (context @ np.swapaxes(query, -1, -2))
    real = context_mask[..., :, None] & query_mask[..., None, :]
    weights = masked_softmax(_reduce(scores, real, "max", -1), np.any(real, -1))
    pooled = np.sum(weights[..., None] * context, -2)
    return (pooled, weights) if return_weights else pooled


@definition
def mask_attention(
    query,
    context,
    query_mask=None,
    context_mask=None,
    *,
    query_lengths=None,
    context_lengths=None,
    scale=1.0,
    return_weights=False,
):
    r"""Computes for each token of the context its average of the query's tokens (mask attention).

    .. math:: E_{ij} = \alpha\, d_i \cdot c_j, \qquad P_i = \mathrm{softmax}_j(E_{ij}), \qquad
              \tilde c_i = \sum_j P_{ij} c_j

    The argument ``query`` holds keys and values; ``context`` holds the queries, and the result has a vector for each of its
    tokens. A product of exactly 0 is not treated as padding.

    Args:
      query: [..., k, d] tokens to choose from, :math:`C`.
      context: [..., n, d] tokens that choose, :math:`D`.
      query_mask: bool, broadcastable to [..., k], True = real.
      context_mask: bool, broadcastable to [..., n], True = real.
      query_lengths: number of real query tokens, counted from the left: int [...] or (). Give this or ``query_mask``.
      context_lengths: number of real context tokens, counted from the left: int [...] or (). Give this or
        ``context_mask``.
      scale: :math:`\alpha`, a number; the source has none.
      return_weights: also return the weights.

    Returns:
      [..., n, d], 0 in the rows of padded context, and with ``return_weights`` the weights [..., n, k].

    Raises:
      ValueError: shapes disagree or a float mask.

    Source:
      Yue et al. 2021, ``Mask_Attention`` in the authors' code, but with masks. The formulas are those of the code; they
      have not been compared with equations 5 and 6 of the paper.

    >>> mask_attention([[1.0, 0.0], [0.0, 2.0]], [[3.0, 0.0], [1.0, 1.0]]).round(6)
    array([[0.952574, 0.094852],
           [0.268941, 1.462117]])
    """
    query, context = np.where(query_mask[..., None], query, 0), np.where(context_mask[..., None], context, 0)
    scores = scale * (context @ np.swapaxes(query, -1, -2))
    weights = masked_softmax(scores, context_mask[..., :, None] & query_mask[..., None, :])
    pooled = np.where(context_mask[..., None], weights @ query, 0)
    return (pooled, weights) if return_weights else pooled


@definition
def bidaf_attention(
    context,
    query,
    kernel,
    context_mask=None,
    query_mask=None,
    *,
    context_lengths=None,
    query_lengths=None,
    return_weights=False,
):
    r"""Concatenates each context token with context-to-query and query-to-context attention (BiDAF).

    .. math:: S_{tj} = w \cdot [h_t ; u_j ; h_t \circ u_j]

    .. math:: a_t = \mathrm{softmax}_j(S_{tj}), \quad \tilde u_t = \sum_j a_{tj} u_j, \qquad
              b = \mathrm{softmax}_t\big(\max_j S_{tj}\big), \quad \tilde h = \sum_t b_t h_t

    .. math:: G_t = [h_t ; \tilde u_t ; h_t \circ \tilde u_t ; h_t \circ \tilde h]

    Maximum and both softmaxes run over real tokens only. Rows of padded context are 0. Without a real token in the query,
    the rows are [h; 0; 0; 0]. Tokens that tie share the gradient of the maximum evenly.

    Args:
      context: [..., T, d] tokens, :math:`h`.
      query: [..., J, d] tokens, :math:`u`.
      kernel: [3d], :math:`w`; the paper's :math:`w_S`. A bias would cancel in both softmaxes.
      context_mask: bool, broadcastable to [..., T], True = real.
      query_mask: bool, broadcastable to [..., J], True = real.
      context_lengths: number of real context tokens, counted from the left: int [...] or (). Give this or
        ``context_mask``.
      query_lengths: number of real query tokens, counted from the left: int [...] or (). Give this or ``query_mask``.
      return_weights: also return both weights.

    Returns:
      [..., T, 4d], and with ``return_weights`` also (a [..., T, J], b [..., T]).

    Raises:
      ValueError: shapes disagree or a float mask.

    Source:
      Seo et al. 2017, equations 1 to 4.

    >>> bidaf_attention([[1.0], [2.0]], [[1.0], [0.0]], [0.0, 0.0, 1.0]).round(6)
    array([[1.      , 0.731059, 0.731059, 1.731059],
           [2.      , 0.880797, 1.761594, 3.462117]])
    """
    context, query = np.where(context_mask[..., None], context, 0), np.where(query_mask[..., None], query, 0)
    h, u = np.broadcast_arrays(context[..., :, None, :], query[..., None, :, :])
    scores = np.concatenate([h, u, h * u], -1) @ kernel
    real = context_mask[..., :, None] & query_mask[..., None, :]
    to_query = masked_softmax(scores, real)
    to_context = masked_softmax(_reduce(scores, real, "max", -1), np.any(real, -1))
    chosen = to_query @ query
    summary = np.sum(to_context[..., None] * context, -2)[..., None, :]
    joined = np.concatenate([context, chosen, context * chosen, context * summary], -1)
    joined = np.where(context_mask[..., None], joined, 0)
    return (joined, (to_query, to_context)) if return_weights else joined
