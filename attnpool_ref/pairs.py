"""Pooling of two sequences, each with its own mask, by scores between their tokens."""

import numpy as np

from attnpool_ref.contract.definition import definition
from attnpool_ref.numerics.blocks import call_in_blocks
from attnpool_ref.primitives import (
    bucket_numbers,
    drop,
    fill_padding,
    inverse_root,
    joined,
    nearest_token,
    pairs_of,
    reduced,
    softmax,
    sum_of_bucket,
    weighted_sum,
)


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
    x_dropout_multiplier=None,
    y_dropout_multiplier=None,
    return_weights=False,
):
    r"""Pools each of two sequences by its tokens' scores over the other sequence (cross pooling, SimKGC).

    .. math:: A_{lt} = \alpha\, (x_l W_x) \cdot (y_t W_y), \qquad
              o_x = \sum_l \mathrm{softmax}_l\big(\mathrm{reduce}_t A_{lt}\big) x_l, \qquad
              o_y = \sum_t \mathrm{softmax}_t\big(\mathrm{reduce}_l A_{lt}\big) y_t

    :math:`A_{lt}` is the score of token :math:`x_l` with token :math:`y_t`. Softmax and reduction run over real tokens
    only. If y has no real token, all reduced scores of x are 0, so that :math:`o_x` is the mean of the real tokens of
    x, and :math:`o_y` is 0; and vice versa. The scale multiplies the products before the reduction, which matters for a
    negative scale with "max". Tokens that tie share the gradient of "max" evenly.

    Args:
      x: [..., L, d] L tokens of width d.
      y: [..., T, e] T tokens of width e; e = d without kernels.
      x_mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all are real.
      y_mask: bool, broadcastable to [..., T]: True at real tokens, False at padding; None if all are real.
        Exchanged masks of the same shape are not detected.
      x_lengths: number of real tokens of x, counted from the left: int [...] or (). Give this or ``x_mask``.
      y_lengths: number of real tokens of y, counted from the left: int [...] or (). Give this or ``y_mask``.
      x_kernel: [d, c], :math:`W_x`, projects x to width c, only for the scores; or None.
      y_kernel: [e, c], :math:`W_y`, projects y to width c, only for the scores; or None.
      reduction: "sum", "mean" or "max" of the scores over the tokens of the other sequence.
      scale: :math:`\alpha`, a number; None is :math:`1/\sqrt c` (:math:`1/\sqrt d` without kernels).
      x_dropout_multiplier: broadcastable to [..., L] or None; dropout factors of x's weights, 0 or ``1/(1 - rate)``.
      y_dropout_multiplier: broadcastable to [..., T] or None; dropout factors of y's weights.
      return_weights: also return both weights, before dropout.

    Returns:
      (x_pooled [..., d], y_pooled [..., e]), or with ``return_weights``
      ((x_pooled, y_pooled), (x_weights [..., L], y_weights [..., T])).

    Source:
      Notebook 000 (docs/notebooks), for SimKGC; only real tokens count, as the notebook says.

    >>> x_pooled, y_pooled = cross_attention_pooling([[1.0], [2.0]], [[1.0]])
    >>> x_pooled.round(6), y_pooled
    (array([1.731059]), array([1.]))
    """
    x, y = fill_padding(x, x_mask), fill_padding(y, y_mask)
    x_key = x if x_kernel is None else x @ x_kernel
    y_key = y if y_kernel is None else y @ y_kernel
    scores = (inverse_root(x_key.shape[-1]) if scale is None else scale) * (x_key @ np.swapaxes(y_key, -1, -2))
    real = pairs_of(x_mask, y_mask)
    x_weights = softmax(reduced(scores, real, reduction, -1), x_mask)
    y_weights = softmax(reduced(scores, real, reduction, -2), y_mask)
    x_pooled = weighted_sum(drop(x_weights, x_dropout_multiplier, x_mask), x)
    y_pooled = weighted_sum(drop(y_weights, y_dropout_multiplier, y_mask), y)
    pooled = x_pooled, y_pooled
    return (pooled, (x_weights, y_weights)) if return_weights else pooled


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
    r"""Pools every sequence of one batch with every sequence of another, like B·C calls of ``cross_attention_pooling``.

    .. math:: (o^x_{bc}, o^y_{bc}) = \mathrm{cross}(x_b, y_c)

    :math:`x_b` and :math:`y_c` are sequences of the two batches, and cross is :func:`cross_attention_pooling`. This is
    for contrastive losses with in-batch negatives, where each negative is pooled together with its query.

    Args:
      x: [B, L, d] B sequences of L tokens of width d.
      y: [C, T, e] C sequences of T tokens of width e; e = d without kernels.
      x_mask: bool, broadcastable to [B, L]: True at real tokens, False at padding; None if all are real.
      y_mask: bool, broadcastable to [C, T]: True at real tokens, False at padding; None if all are real.
        Exchanged masks of the same shape are not detected.
      x_lengths: number of real tokens of x, counted from the left: int [B] or (). Give this or ``x_mask``.
      y_lengths: number of real tokens of y, counted from the left: int [C] or (). Give this or ``y_mask``.
      x_kernel: [d, c], projects x to width c, only for the scores; or None.
      y_kernel: [e, c], projects y to width c, only for the scores; or None.
      reduction: "sum", "mean" or "max" of the scores over the tokens of the other sequence.
      scale: a number that multiplies the scores; None is :math:`1/\sqrt c` (:math:`1/\sqrt d` without kernels).
      return_weights: also return both weights.

    Returns:
      (x_pooled [B, C, d], y_pooled [B, C, e]), or with ``return_weights``
      ((x_pooled, y_pooled), (x_weights [B, C, L], y_weights [B, C, T])).

    Raises:
      ValueError: if shapes disagree, if x or y has other than one batch axis, if a mask has a float dtype, or if the
        reduction is unknown.

    Source:
      Notebook 000 (docs/notebooks), which pools only matching pairs, extended to all pairs that SimKGC scores.

    >>> x_pooled, y_pooled = cross_attention_pooling_all_pairs([[[1.0], [2.0]]], [[[1.0]], [[0.0]]])
    >>> x_pooled[0].round(6)
    array([[1.731059],
           [1.5     ]])
    """
    options = {"x_kernel": x_kernel, "y_kernel": y_kernel, "reduction": reduction, "scale": scale}
    return _over_pairs(cross_attention_pooling.body, x, y, x_mask, y_mask, options | {"return_weights": return_weights})


def _over_pairs(body, x, y, x_mask, y_mask, options):
    """Calls a body for every pair of a sequence [B, L, d] and another [C, T, e], in blocks of pairs."""
    pairs = len(x), len(y)

    def paired(array, axis):
        """Inserts an axis into an array and broadcasts it to pairs: [B, C, ...]."""
        return np.broadcast_to(np.expand_dims(array, axis), pairs + array.shape[1:]), array.dtype

    batched = {"x": paired(x, 1), "y": paired(y, 0), "x_mask": paired(x_mask, 1), "y_mask": paired(y_mask, 0)}
    return call_in_blocks(body, pairs, batched, options, np.float64)


@definition
def maxsim_score(x, y, x_mask=None, y_mask=None, *, x_lengths=None, y_lengths=None, mean=False, result_dtype=None):
    r"""Scores a document by the sum of each query token's largest product with its tokens (MaxSim, late interaction).

    .. math:: s = \sum_l \max_t\; x_l \cdot y_t

    :math:`x_l` are the tokens of a query, and :math:`y_t` those of a document; exchanging the two changes the score.
    Sum and maximum run over real tokens only. The tokens are not normalized here; in the source they are
    (:func:`l2_normalize`). Tokens that tie share the gradient of the maximum evenly. A document without real tokens has
    score 0, and would outrank one with a negative score: rank only documents with ``y_mask.any(-1)``.

    Args:
      x: [..., L, d] L tokens of the query, of width d.
      y: [..., T, d] T tokens of the document.
      x_mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all are real.
      y_mask: bool, broadcastable to [..., T]: True at real tokens, False at padding; None if all are real.
        Exchanged masks of the same shape are not detected.
      x_lengths: number of real tokens of x, counted from the left: int [...] or (). Give this or ``x_mask``.
      y_lengths: number of real tokens of y, counted from the left: int [...] or (). Give this or ``y_mask``.
      mean: divide by the number of the query's real tokens.
      result_dtype: the dtype to which the result is rounded, float32 or float64, not narrower than the arguments; None is
        theirs. The sum of 32 cosines in bfloat16 has steps of 1/16 or more, which many documents share.

    Returns:
      [...] scores; 0 if x or y has no real token.

    Source:
      Khattab and Zaharia 2020, equation 3; ``mean`` as in sentence-transformers.

    >>> float(maxsim_score([[1.0, 0.0], [0.0, 1.0]], [[2.0, 1.0], [0.0, 3.0]]))
    5.0
    """
    x, y = fill_padding(x, x_mask), fill_padding(y, y_mask)
    real = pairs_of(x_mask, y_mask)
    total = np.sum(reduced(x @ np.swapaxes(y, -1, -2), real, "max", -1), -1)
    return total / np.maximum(np.sum(x_mask, -1), 1) if mean else total


@definition
def maxsim_score_all_pairs(
    x, y, x_mask=None, y_mask=None, *, x_lengths=None, y_lengths=None, mean=False, result_dtype=None
):
    r"""Scores every document of one batch by every query of another, like B·C calls of ``maxsim_score``.

    .. math:: s_{bc} = \mathrm{maxsim}(x_b, y_c)

    :math:`x_b` is a query, :math:`y_c` a document, and maxsim is :func:`maxsim_score`.

    Args:
      x: [B, L, d] B queries of L tokens of width d.
      y: [C, T, d] C documents of T tokens.
      x_mask: bool, broadcastable to [B, L]: True at real tokens, False at padding; None if all are real.
      y_mask: bool, broadcastable to [C, T]: True at real tokens, False at padding; None if all are real.
        Exchanged masks of the same shape are not detected.
      x_lengths: number of real tokens of x, counted from the left: int [B] or (). Give this or ``x_mask``.
      y_lengths: number of real tokens of y, counted from the left: int [C] or (). Give this or ``y_mask``.
      mean: divide by the number of the query's real tokens.
      result_dtype: the dtype to which the result is rounded, float32 or float64, not narrower than the arguments; None is
        theirs. The sum of 32 cosines in bfloat16 has steps of 1/16 or more, which many documents share.

    Returns:
      [B, C] scores; 0 where the query or the document has no real token, which ranks above negative scores.

    Raises:
      ValueError: if shapes disagree, if x or y has other than one batch axis, or if a mask has a float dtype.

    Source:
      Khattab and Zaharia 2020, equation 3; ``mean`` as in sentence-transformers.

    >>> maxsim_score_all_pairs([[[1.0, 0.0], [0.0, 1.0]]], [[[2.0, 1.0]], [[0.0, 3.0]]])
    array([[3., 3.]])
    """
    return _over_pairs(maxsim_score.body, x, y, x_mask, y_mask, {"mean": mean})


@definition
def muvera_query_encoding(x, mask=None, *, lengths=None, planes, projection=None):
    r"""Encodes the tokens of a query as one vector, whose product with a document's approximates MaxSim (MUVERA, FDE).

    .. math:: q_{rc} = \sum_{l : k_l,\, \varphi_r(x_l) = c} x_l P_r, \qquad \varphi_r(x) = \big([h_{rj} \cdot x > 0]\big)_{j < b}

    :math:`k_l` is 1 if token :math:`l` is real, else 0. A bucket :math:`c` of repetition :math:`r` has b bits. Bit
    :math:`j` of token :math:`x_l` is 1 if :math:`h_{rj} \cdot x_l > 0`, in the computing dtype: it is 0 if the product is
    0 or NaN, and rounding may decide it near 0. The bits are a binary number, of which :math:`j = 0` is the highest: there
    is no Gray code, so that vectors of libraries with another order do not mix with these. The block of a bucket is the
    sum of its real tokens. The dot product of both encodings ranks documents like :func:`maxsim_score`. No gradient
    passes through the bits; there is no chunked and no sharded version.

    Args:
      x: [..., L, d] L tokens of the query, of width d.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.
      planes: [R, b, d] normals :math:`h_{rj}` of b hyperplanes, from 1 to 12, for each of R repetitions; the same for
        queries and documents, drawn from a normal distribution. They do not affect the result's dtype, and get no gradient.
      projection: [R, d, p], :math:`P_r`, for example of random signs over the root of p; or None, and p is d.

    Returns:
      [..., R*2^b*p], repetition after repetition, bucket after bucket; 0 in a fully masked row.

    Source:
      Dhulipala et al. 2024 (MUVERA), section 2.1, query encoding.

    >>> muvera_query_encoding([[1.0, 2.0], [3.0, -1.0], [-2.0, 5.0]], planes=[[[1.0, 0.0]]])
    array([-2.,  5.,  4.,  1.])

    Packed:

    >>> x = [[1.0, 2.0], [3.0, -1.0], [-2.0, 5.0]]
    >>> segment_muvera_query_encoding(x, [0, 1, 0], 2, planes=[[[1.0, 0.0]]])
    array([[-2.,  5.,  1.,  2.],
           [ 0.,  0.,  3., -1.]])
    """
    return _encoding(x, mask, planes, projection, False)


@definition
def muvera_document_encoding(x, mask=None, *, lengths=None, planes, projection=None):
    r"""Encodes the tokens of a document as one vector, whose product with a query's approximates MaxSim (MUVERA, FDE).

    .. math:: y_{rc} = \frac{1}{|C|} \sum_{l \in C} x_l P_r, \qquad C = \{l : k_l,\, \varphi_r(x_l) = c\}, \qquad
              \varphi_r(x) = \big([h_{rj} \cdot x > 0]\big)_{j < b}

    :math:`k_l` is 1 if token :math:`l` is real, else 0. Bits and buckets are those of :func:`muvera_query_encoding`, and no
    gradient passes through them. The block of a bucket is the mean of its real tokens; of an empty bucket, the real token
    whose bits differ from the bucket's in the fewest places, and of several the first. The dot product of both encodings
    ranks documents like :func:`maxsim_score`. There is no chunked and no sharded version.

    Args:
      x: [..., L, d] L tokens of the document, of width d.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.
      planes: [R, b, d] normals :math:`h_{rj}` of b hyperplanes, from 1 to 12, for each of R repetitions; the same for
        queries and documents, drawn from a normal distribution. They do not affect the result's dtype, and get no gradient.
      projection: [R, d, p], :math:`P_r`, for example of random signs over the root of p; or None, and p is d.

    Returns:
      [..., R*2^b*p], repetition after repetition, bucket after bucket; 0 in a fully masked row.

    Source:
      Dhulipala et al. 2024 (MUVERA), section 2.1, document encoding with fill_empty_clusters.

    >>> muvera_document_encoding([[1.0, 2.0], [3.0, -1.0]], planes=[[[1.0, 0.0]]])
    array([1. , 2. , 2. , 0.5])

    Packed:

    >>> x = [[1.0, 2.0], [3.0, -1.0], [-2.0, 5.0]]
    >>> segment_muvera_document_encoding(x, [0, 1, 0], 2, planes=[[[1.0, 0.0]]])
    array([[-2.,  5.,  1.,  2.],
           [ 3., -1.,  3., -1.]])
    """
    return _encoding(x, mask, planes, projection, True)


def _encoding(x, mask, planes, projection, of_document):
    """Returns the encoding of :func:`muvera_query_encoding`, or :func:`muvera_document_encoding`."""
    x = fill_padding(x, mask)
    with np.errstate(invalid="ignore"):  # inf - inf: NaN has the bit 0
        buckets = bucket_numbers(np.einsum("...ld,rbd->...rlb", x, planes) > 0)
    blocks = []
    for bucket in range(2 ** planes.shape[1]):
        block, count = sum_of_bucket(x, mask, buckets == bucket, of_document)
        if of_document and x.shape[-2]:
            token = np.take_along_axis(x, nearest_token(buckets, mask, bucket)[..., None], -2)
            filled = (count == 0) & np.any(mask, -1)[..., None]
            block = np.where(filled[..., None], token, block)
        blocks.append(block)
    encoding = np.stack(blocks, -2)  # [..., R, 2^b, d]
    if projection is not None:
        encoding = encoding @ projection
    return encoding.reshape(*x.shape[:-2], np.prod(encoding.shape[-3:]))


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
    r"""Pools a context, weighting each token by the softmax of its largest score with a label (code-wise attention).

    .. math:: S_{ij} = \alpha\, d_i \cdot g_j, \qquad w = \mathrm{softmax}_i\big(\max_j S_{ij}\big), \qquad
              o = \sum_i w_i d_i

    :math:`d_i` are the tokens of ``context``, and :math:`g_j` the labels, which are the argument ``query``. Maximum and
    softmax run over real labels and tokens only. Without real labels or tokens, weights and result are 0. The scale
    multiplies the products before the maximum, which matters for a negative scale. Labels that tie share the gradient
    evenly.

    Args:
      query: [..., k, d] k labels of width d, :math:`g`; often the same [k, d] for all examples.
      context: [..., n, d] n tokens, :math:`d_i`.
      query_mask: bool, broadcastable to [..., k]: True at real labels, False at padding; None if all are real.
      context_mask: bool, broadcastable to [..., n]: True at real tokens, False at padding; None if all are real.
        Exchanged masks of the same shape are not detected.
      query_lengths: number of real labels, counted from the left: int [...] or (). Give this or ``query_mask``.
      context_lengths: number of real context tokens, counted from the left: int [...] or (). Give this or
        ``context_mask``.
      scale: :math:`\alpha`, a number; the source has none. None is :math:`1/\sqrt d`.
      return_weights: also return the weights.

    Returns:
      [..., d] pooled vectors; with ``return_weights`` a tuple of these and the weights [..., n].

    Source:
      Yue et al. 2021, ``Code_Wise_Attention`` in the authors' code. The formulas are those of the code; they have not
      been compared with the paper's equations.

    >>> code_wise_attention([[-1.0, 0.0], [-2.0, 0.0]], [[1.0, 0.0], [2.0, 0.0]]).round(6)
    array([1.268941, 0.      ])
    """
    query, context = fill_padding(query, query_mask), fill_padding(context, context_mask)
    scores = (inverse_root(context.shape[-1]) if scale is None else scale) * (context @ np.swapaxes(query, -1, -2))
    real = pairs_of(context_mask, query_mask)
    weights = softmax(reduced(scores, real, "max", -1), np.any(real, -1))
    pooled = weighted_sum(weights, context)
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
    r"""Averages the query's tokens for each context token, by the softmax of their products with it (mask attention).

    .. math:: E_{ij} = \alpha\, d_i \cdot c_j, \qquad P_i = \mathrm{softmax}_j(E_{ij}), \qquad
              \tilde c_i = \sum_j P_{ij} c_j

    :math:`c_j` are the tokens of ``query``, which serve as keys and values. :math:`d_i` are the tokens of ``context``,
    which serve as queries; the result has a vector for each of them. Only the masks mark padding: a product of exactly 0
    counts like any other.

    Args:
      query: [..., k, d] k tokens of width d to average, :math:`c`.
      context: [..., n, d] n tokens, :math:`d_i`, each of which gets an average.
      query_mask: bool, broadcastable to [..., k]: True at real tokens, False at padding; None if all are real.
      context_mask: bool, broadcastable to [..., n]: True at real tokens, False at padding; None if all are real.
        Exchanged masks of the same shape are not detected.
      query_lengths: number of real query tokens, counted from the left: int [...] or (). Give this or ``query_mask``.
      context_lengths: number of real context tokens, counted from the left: int [...] or (). Give this or
        ``context_mask``.
      scale: :math:`\alpha`, a number; the source has none. None is :math:`1/\sqrt d`.
      return_weights: also return the weights.

    Returns:
      [..., n, d], 0 at padded tokens of the context, and everywhere if no query token is real; with
      ``return_weights`` a tuple of this and the weights [..., n, k].

    Source:
      Yue et al. 2021, ``Mask_Attention`` in the authors' code, with explicit masks. The formulas are those of the code;
      they have not been compared with equations 5 and 6 of the paper.

    >>> mask_attention([[1.0, 0.0], [0.0, 2.0]], [[3.0, 0.0], [1.0, 1.0]]).round(6)
    array([[0.952574, 0.094852],
           [0.268941, 1.462117]])
    """
    query, context = fill_padding(query, query_mask), fill_padding(context, context_mask)
    scores = (inverse_root(context.shape[-1]) if scale is None else scale) * (context @ np.swapaxes(query, -1, -2))
    weights = softmax(scores, pairs_of(context_mask, query_mask))
    pooled = fill_padding(weights @ query, context_mask)
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

    [;] concatenates vectors, and :math:`\circ` is the elementwise product; :math:`h_t` are context tokens, :math:`u_j`
    query tokens. Maximum and both softmaxes run over real tokens only. Rows of padded context are 0. Without a real
    token in the query, the rows are [h; 0; 0; 0]. Tokens that tie share the gradient of the maximum evenly.

    Args:
      context: [..., T, d] T tokens of width d, :math:`h`.
      query: [..., J, d] J tokens, :math:`u`.
      kernel: [3d], :math:`w`; the paper's :math:`w_S`. A bias would cancel in both softmaxes.
      context_mask: bool, broadcastable to [..., T]: True at real tokens, False at padding; None if all are real.
      query_mask: bool, broadcastable to [..., J]: True at real tokens, False at padding; None if all are real.
        Exchanged masks of the same shape are not detected.
      context_lengths: number of real context tokens, counted from the left: int [...] or (). Give this or
        ``context_mask``.
      query_lengths: number of real query tokens, counted from the left: int [...] or (). Give this or ``query_mask``.
      return_weights: also return both weights.

    Returns:
      [..., T, 4d], :math:`G`; with ``return_weights`` a tuple of this and the weights (a [..., T, J], b
      [..., T]).

    Source:
      Seo et al. 2017, equations 1 to 4.

    >>> bidaf_attention([[1.0], [2.0]], [[1.0], [0.0]], [0.0, 0.0, 1.0]).round(6)
    array([[1.      , 0.731059, 0.731059, 1.731059],
           [2.      , 0.880797, 1.761594, 3.462117]])
    """
    context, query = fill_padding(context, context_mask), fill_padding(query, query_mask)
    h, u = np.broadcast_arrays(context[..., :, None, :], query[..., None, :, :])
    scores = joined(h, u, h * u) @ kernel
    real = pairs_of(context_mask, query_mask)
    to_query = softmax(scores, real)
    to_context = softmax(reduced(scores, real, "max", -1), np.any(real, -1))
    chosen = to_query @ query
    summary = weighted_sum(to_context, context)[..., None, :]
    result = joined(context, chosen, context * chosen, context * summary)
    result = fill_padding(result, context_mask)
    return (result, (to_query, to_context)) if return_weights else result
