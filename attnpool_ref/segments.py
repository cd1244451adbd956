"""Packed sequences: tokens [N, d] in one array, and the number of the segment that each belongs to.

Each function is the dense one, segment by segment.
"""

import numpy as np

from attnpool_ref import pairs, pooling
from attnpool_ref.definition import as_array, definition
from attnpool_ref.sequences import checked_packed, checked_sequences, sequence_arrays


def _each(pooled, segment_ids, num_segments):
    """``pooled(s, tokens)`` of each segment, one after another, as one array; ``tokens`` says which are its own."""
    return np.stack([pooled(s, segment_ids == s) for s in range(num_segments)])


@definition
def segment_mean_pooling(x, segment_ids, num_segments, mask=None, *, indices_are_sorted=False):
    r"""Averages the real tokens of each segment.

    .. math:: o_s = \frac 1 {N_s} \sum_{i : k_i, \sigma_i = s} x_i, \qquad N_s = \#\{i : k_i, \sigma_i = s\}

    The same numbers as :func:`mean_pooling` of each segment.

    Args:
      x: [N, d] tokens of all segments.
      segment_ids: int [N], the segment of each token, from 0 to ``num_segments`` - 1, in any order.
      num_segments: the number of segments, an integer.
      mask: bool, broadcastable to [N], True = real.
      indices_are_sorted: a promise that the numbers never decrease.

    Returns:
      [num_segments, d]; 0 where nothing of a segment is real.

    Raises:
      ValueError: shapes disagree, a float mask, segment numbers that are no integers or out of range.

    Source:
      Reimers and Gurevych 2019, section 3, MEAN; a segment is a sequence.

    >>> segment_mean_pooling([[1.0], [5.0], [3.0]], [0, 1, 0], 2)
    array([[2.],
           [5.]])
    """
    del indices_are_sorted  # nothing is read faster here
    if not num_segments:
        return np.zeros((0, x.shape[1]))

    def pooled(_, own):
        return pooling.mean_pooling(x[own], mask[own])

    return _each(pooled, segment_ids, num_segments)


@definition
def segment_max_pooling(x, segment_ids, num_segments, mask=None, *, indices_are_sorted=False):
    r"""Takes the largest real value of each feature in each segment.

    .. math:: o_{sc} = \max_{i : k_i, \sigma_i = s} x_{ic}

    The same numbers as :func:`max_pooling` of each segment. The gradient is shared evenly among ties.

    Args:
      x: [N, d] tokens of all segments.
      segment_ids: int [N], the segment of each token, from 0 to ``num_segments`` - 1, in any order.
      num_segments: the number of segments, an integer.
      mask: bool, broadcastable to [N], True = real.
      indices_are_sorted: a promise that the numbers never decrease.

    Returns:
      [num_segments, d]; 0 where nothing of a segment is real.

    Raises:
      ValueError: shapes disagree, a float mask, segment numbers that are no integers or out of range.

    Source:
      Reimers and Gurevych 2019, section 3, MAX; a segment is a sequence.

    >>> segment_max_pooling([[1.0], [-5.0], [3.0]], [0, 1, 0], 2)
    array([[ 3.],
           [-5.]])
    """
    del indices_are_sorted  # nothing is read faster here
    if not num_segments:
        return np.zeros((0, x.shape[1]))

    def pooled(_, own):
        return pooling.max_pooling(x[own], mask[own])

    return _each(pooled, segment_ids, num_segments)


@definition
def segment_first_pooling(x, segment_ids, num_segments, mask=None, *, indices_are_sorted=False):
    r"""Takes the first real token of each segment.

    .. math:: o_s = x_i, \qquad i = \min \{ i : k_i, \sigma_i = s \}

    The same numbers as :func:`first_pooling` of each segment. First is meant by the position in ``x``.

    Args:
      x: [N, d] tokens of all segments.
      segment_ids: int [N], the segment of each token, from 0 to ``num_segments`` - 1, in any order.
      num_segments: the number of segments, an integer.
      mask: bool, broadcastable to [N], True = real.
      indices_are_sorted: a promise that the numbers never decrease.

    Returns:
      [num_segments, d]; 0 where nothing of a segment is real.

    Raises:
      ValueError: shapes disagree, a float mask, segment numbers that are no integers or out of range.

    Source:
      Reimers and Gurevych 2019, section 3, CLS; a segment is a sequence.

    >>> segment_first_pooling([[1.0], [5.0], [3.0]], [0, 1, 0], 2)
    array([[1.],
           [5.]])
    """
    del indices_are_sorted  # nothing is read faster here
    if not num_segments:
        return np.zeros((0, x.shape[1]))

    def pooled(_, own):
        return pooling.first_pooling(x[own], mask[own])

    return _each(pooled, segment_ids, num_segments)


@definition
def segment_last_pooling(x, segment_ids, num_segments, mask=None, *, indices_are_sorted=False):
    r"""Takes the last real token of each segment.

    .. math:: o_s = x_i, \qquad i = \max \{ i : k_i, \sigma_i = s \}

    The same numbers as :func:`last_pooling` of each segment. Last is meant by the position in ``x``.

    Args:
      x: [N, d] tokens of all segments.
      segment_ids: int [N], the segment of each token, from 0 to ``num_segments`` - 1, in any order.
      num_segments: the number of segments, an integer.
      mask: bool, broadcastable to [N], True = real.
      indices_are_sorted: a promise that the numbers never decrease.

    Returns:
      [num_segments, d]; 0 where nothing of a segment is real.

    Raises:
      ValueError: shapes disagree, a float mask, segment numbers that are no integers or out of range.

    Source:
      The last-token pooling of decoder encoders, as in sentence-transformers (reimers2019); a segment is a sequence.

    >>> segment_last_pooling([[1.0], [5.0], [3.0]], [0, 1, 0], 2)
    array([[3.],
           [5.]])
    """
    del indices_are_sorted  # nothing is read faster here
    if not num_segments:
        return np.zeros((0, x.shape[1]))

    def pooled(_, own):
        return pooling.last_pooling(x[own], mask[own])

    return _each(pooled, segment_ids, num_segments)


@definition
def segment_weighted_pooling(x, segment_ids, num_segments, weights=None, mask=None, *, indices_are_sorted=False):
    r"""Averages the real tokens of each segment under given weights.

    .. math:: o_s = \frac{\sum_{i : k_i, \sigma_i = s} w_i x_i}{\sum_{i : k_i, \sigma_i = s} w_i}

    The same numbers as :func:`weighted_pooling` of each segment.
    Where the weights of a segment sum to exactly 0, it is empty.

    Args:
      x: [N, d] tokens of all segments.
      segment_ids: int [N], the segment of each token, from 0 to ``num_segments`` - 1, in any order.
      num_segments: the number of segments, an integer.
      weights: [N]; None is uniform.
      mask: bool, broadcastable to [N], True = real.
      indices_are_sorted: a promise that the numbers never decrease.

    Returns:
      [num_segments, d]; 0 where nothing of a segment is real.

    Raises:
      ValueError: shapes disagree, a float mask, segment numbers that are no integers or out of range.

    Source:
      Notebook 001, ``normal_pooling``, with the weights normalised over what is real; a segment is a sequence.

    >>> segment_weighted_pooling([[1.0], [5.0], [4.0]], [0, 1, 0], 2, [2.0, 3.0, 1.0])
    array([[2.],
           [5.]])
    """
    del indices_are_sorted  # nothing is read faster here
    weights = np.ones(len(x)) if weights is None else weights
    if not num_segments:
        return np.zeros((0, x.shape[1]))

    def pooled(_, own):
        return pooling.weighted_pooling(x[own], weights[own], mask[own])

    return _each(pooled, segment_ids, num_segments)


@definition
def segment_attention_pooling(
    x,
    segment_ids,
    num_segments,
    mask=None,
    query=None,
    *,
    query_kernel=None,
    key_kernel=None,
    normalize_query=False,
    query_norm_scale=None,
    query_norm_bias=None,
    epsilon=1e-6,
    scale=None,
    dropout_multiplier=None,
    indices_are_sorted=False,
    return_weights=False,
):
    r"""Averages the real tokens of each segment by how well they suit a query; without ``query`` nothing is learned.

    .. math:: o_s = \sum_{i : \sigma_i = s} w_i x_i, \qquad
              w = \mathrm{softmax}_{i : k_i, \sigma_i = s}\Big(\frac{(x_i W_k) \cdot (\hat q_s W_q)}{\sqrt c}\Big)

    The same numbers as :func:`attention_pooling` of each segment: ``query=None`` takes the mean of its real tokens.

    Args:
      x: [N, d] tokens of all segments.
      segment_ids: int [N], the segment of each token, from 0 to ``num_segments`` - 1, in any order.
      num_segments: the number of segments, an integer.
      mask: bool, broadcastable to [N], True = real.
      query: [q] for all segments, or [num_segments, q], one for each.
      query_kernel: [d, c], :math:`W_q`.
      key_kernel: [d, c], :math:`W_k`.
      normalize_query: apply layer normalisation to the query, before its kernel.
      query_norm_scale: [d], :math:`\gamma`, 1 if None; the query's width where that is not d.
      query_norm_bias: [d], :math:`\beta`, 0 if None.
      epsilon: :math:`\epsilon`, a number.
      scale: a number in place of :math:`1/\sqrt c`; c is d without kernels.
      dropout_multiplier: broadcastable to [N]; multiplies the weights.
      indices_are_sorted: a promise that the numbers never decrease.
      return_weights: also return the weights, as they are before dropout.

    Returns:
      [num_segments, d], and with ``return_weights`` the weights [N]; 0 where nothing of a segment is real.

    Raises:
      ValueError: shapes disagree, a float mask, segment numbers that are no integers or out of range, norm parameters
        without ``normalize_query``.

    Source:
      Notebook 001, ``attention_pooling``, as its comments mean it; a segment is a sequence.

    >>> segment_attention_pooling([[1.0, 0.0], [9.0, 9.0], [3.0, 0.0]], [0, 1, 0], 2, query=[0.0, 1.0])
    array([[2., 0.],
           [9., 9.]])
    """
    del indices_are_sorted  # nothing is read faster here
    weights, results = np.zeros(len(x)), np.zeros((num_segments, x.shape[1]))
    for s in range(num_segments):
        own = segment_ids == s
        results[s], weights[own] = pooling.attention_pooling(
            x[own],
            mask[own],
            query if query is None or query.ndim == 1 else query[s],
            query_kernel=query_kernel,
            key_kernel=key_kernel,
            normalize_query=normalize_query,
            query_norm_scale=query_norm_scale,
            query_norm_bias=query_norm_bias,
            epsilon=epsilon,
            scale=scale,
            dropout_multiplier=None if dropout_multiplier is None else dropout_multiplier[own],
            return_weights=True,
        )
    return (results, weights) if return_weights else results


@definition
def segment_multi_head_attention_pooling(
    x,
    segment_ids,
    num_segments,
    mask=None,
    *,
    query,
    query_kernel,
    key_kernel,
    value_kernel,
    out_kernel,
    query_bias=None,
    key_bias=None,
    value_bias=None,
    out_bias=None,
    dropout_multiplier=None,
    indices_are_sorted=False,
    return_weights=False,
):
    r"""Pools the real tokens of each segment by learned queries in several heads: one vector for each query.

    .. math:: O_s = \sum_h \mathrm{softmax}_{i : k_i, \sigma_i = s}\Big(\frac{Q_h K_h^\top}{\sqrt c}\Big) V_h W_o^h + b_o

    The same numbers as :func:`multi_head_attention_pooling` of each segment. The key bias cancels and is not read.
    Where nothing of a segment is real the result is :math:`b_o`.

    Args:
      x: [N, d] tokens of all segments.
      segment_ids: int [N], the segment of each token, from 0 to ``num_segments`` - 1, in any order.
      num_segments: the number of segments, an integer.
      mask: bool, broadcastable to [N], True = real.
      query: [n, d] learned queries, :math:`Q`.
      query_kernel: [d, H, c], :math:`W_q`.
      key_kernel: [d, H, c], :math:`W_k`.
      value_kernel: [d, H, c'], :math:`W_v`.
      out_kernel: [H, c', o], :math:`W_o`.
      query_bias: [H, c], :math:`b_q`, or None.
      key_bias: [H, c], :math:`b_k`, or None.
      value_bias: [H, c'], :math:`b_v`, or None.
      out_bias: [o], :math:`b_o`, or None.
      dropout_multiplier: broadcastable to [H, n, N]; multiplies the weights.
      indices_are_sorted: a promise that the numbers never decrease.
      return_weights: also return the weights, as they are before dropout.

    Returns:
      [num_segments, n, o], and with ``return_weights`` the weights [H, n, N].

    Raises:
      ValueError: shapes disagree, a float mask, segment numbers that are no integers or out of range.

    Source:
      Vaswani et al. 2017, section 3.2.2, with learned queries; a segment is a sequence.

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
    del indices_are_sorted  # nothing is read faster here
    weights = np.zeros((query_kernel.shape[1], len(query), len(x)))
    results = np.zeros((num_segments, len(query), out_kernel.shape[-1]))
    for s in range(num_segments):
        own = segment_ids == s
        results[s], weights[..., own] = pooling.multi_head_attention_pooling(
            x[own],
            mask[own],
            query=query,
            query_kernel=query_kernel,
            key_kernel=key_kernel,
            value_kernel=value_kernel,
            out_kernel=out_kernel,
            query_bias=query_bias,
            key_bias=key_bias,
            value_bias=value_bias,
            out_bias=out_bias,
            dropout_multiplier=None if dropout_multiplier is None else dropout_multiplier[..., own],
            return_weights=True,
        )
    return (results, weights) if return_weights else results


@definition
def segment_cross_attention_pooling(
    x,
    x_segment_ids,
    y,
    y_segment_ids,
    num_segments,
    x_mask=None,
    y_mask=None,
    *,
    x_kernel=None,
    y_kernel=None,
    reduction="sum",
    scale=1.0,
    indices_are_sorted=False,
    return_weights=False,
):
    r"""Pools each of two packed sequences by its tokens' scores over the other one's segment of the same number.

    .. math:: o^x_s = \sum_{i : \sigma_i = s} \mathrm{softmax}_i\big(\mathrm{reduce}_{j : \tau_j = s}\,
              \alpha\, (x_i W_x) \cdot (y_j W_y)\big) x_i

    and :math:`o^y_s` likewise: the same numbers as :func:`cross_attention_pooling` of each pair of segments. Where the
    other side's segment is empty, the result is the mean of the own one. ``reduction="max"`` is refused: the largest
    score needs every pair of tokens.

    Args:
      x: [N, d] tokens of all segments.
      x_segment_ids: int [N], the segment of each token of x, from 0 to ``num_segments`` - 1, in any order.
      y: [M, e] tokens of all segments; e = d unless kernels say otherwise.
      y_segment_ids: int [M], the segment of each token of y.
      num_segments: the number of segments, an integer.
      x_mask: bool, broadcastable to [N], True = real.
      y_mask: bool, broadcastable to [M], True = real.
      x_kernel: [d, c], :math:`W_x`, for the scores alone.
      y_kernel: [e, c], :math:`W_y`, for the scores alone.
      reduction: "sum" or "mean" of the scores over the other side.
      scale: :math:`\alpha`, a number.
      indices_are_sorted: a promise that the numbers never decrease, of both sides.
      return_weights: also return both weights.

    Returns:
      (x_pooled [num_segments, d], y_pooled [num_segments, e]), and with ``return_weights``
      ((x_pooled, y_pooled), (x_weights [N], y_weights [M])).

    Raises:
      ValueError: shapes disagree, a float mask, segment numbers that are no integers or out of range, an unknown
        reduction.

    Source:
      Notebook 000, ``_pool_output``, with "crop to the valid lengths" taken at its word; a segment is a sequence.

    >>> x_pooled, y_pooled = segment_cross_attention_pooling([[1.0], [2.0]], [0, 0], [[1.0]], [0], 1)
    >>> x_pooled.round(6), y_pooled
    (array([[1.731059]]), array([[1.]]))
    """
    del indices_are_sorted  # nothing is read faster here
    pooled = np.zeros((num_segments, x.shape[1])), np.zeros((num_segments, y.shape[1]))
    weights = np.zeros(len(x)), np.zeros(len(y))
    for s in range(num_segments):
        of_x, of_y = x_segment_ids == s, y_segment_ids == s
        (pooled[0][s], pooled[1][s]), (weights[0][of_x], weights[1][of_y]) = pairs.cross_attention_pooling(
            x[of_x],
            y[of_y],
            x_mask[of_x],
            y_mask[of_y],
            x_kernel=x_kernel,
            y_kernel=y_kernel,
            reduction=reduction,
            scale=scale,
            return_weights=True,
        )
    return (pooled, weights) if return_weights else pooled


def pack(sequences):
    """Puts sequences of any lengths after each other, with the number of the segment of each token.

    Args:
      sequences: a list of [L_i, d]; an empty sequence is an empty segment.

    Returns:
      (x [N, d], segment_ids int [N], num_segments), the numbers sorted. The dtypes of the sequences decide that of x as
      those of two arguments of one call do.

    Raises:
      ValueError: the list is empty, or two sequences disagree on the width.
      TypeError: something that is no array of numbers.

    >>> pack([[[1.0], [2.0]], [[3.0]]])
    (array([[1.],
           [2.],
           [3.]]), array([0, 0, 1]), 2)
    """
    arrays = sequence_arrays("pack", sequences, as_array)
    dtype = checked_sequences("pack", arrays) or np.dtype(np.float64)
    lengths = [len(array) for array in arrays]
    x = np.concatenate([array.astype(dtype) for array in arrays])
    return x, np.repeat(np.arange(len(arrays)), lengths), len(arrays)


def unpack(x, segment_ids, num_segments):
    """Takes packed tokens apart: the tokens of each segment, in their order; what :func:`pack` put together.

    Args:
      x: [N, d] tokens.
      segment_ids: int [N], the segment of each token, in any order.
      num_segments: the number of segments, an integer.

    Returns:
      A list of [L_i, d], one for each segment, in the dtype of x.

    Raises:
      ValueError: shapes disagree, or a number is out of range.
      TypeError: something that is no array of numbers.

    >>> unpack([[1.0], [2.0], [3.0]], [0, 1, 0], 2)
    [array([[1.],
           [3.]]), array([[2.]])]
    """
    x, segment_ids = as_array("unpack", "x", x), as_array("unpack", "segment_ids", segment_ids)
    num_segments = checked_packed(x, segment_ids, num_segments)
    return [x[segment_ids == s] for s in range(num_segments)]
