"""Chunked mean, max, mean-max, first, last, weighted, attention and multi-head attention pooling."""

import numpy as np

from attnpool_ref.contract.definition import definition
from attnpool_ref.numerics.rounding import power_of_two
from attnpool_ref.pooling import first_pooling, last_pooling, mean_pooling
from attnpool_ref.pooling.attention import attention_scores
from attnpool_ref.streaming.states import (
    NOWHERE,
    AttentionState,
    ChannelState,
    FirstState,
    LastState,
    MaxState,
    MeanMaxState,
    MeanState,
    MultiHeadAttentionState,
    WeightedState,
    divisor_of,
)


@definition
def mean_state(x, mask=None, *, lengths=None):
    r"""Returns the state of one chunk of a sequence for mean pooling.

    .. math:: \Big( \frac 1 N \sum_{l : k_l} x_l, \; N \Big), \qquad N = \sum_l k_l

    A chunk has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens.

    Args:
      x: [..., L, d] tokens of the chunk.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.

    Returns:
      A ``MeanState``, for :func:`merge_states` and then :func:`finalize_state`, which returns [..., d].

    Raises:
      ValueError: if shapes disagree, or if the mask has a float dtype.

    Source:
      Reimers and Gurevych 2019, section 3, MEAN.

    >>> whole = merge_states(mean_state([[1.0], [3.0]]), mean_state([[8.0], [99.0]], [True, False]))
    >>> finalize_state(whole)
    array([4.])
    """
    return MeanState(mean_pooling(x, mask), np.sum(mask, -1))


@definition
def max_state(x, mask=None, *, lengths=None):
    r"""Returns the state of one chunk of a sequence for max pooling.

    .. math:: \max_{l : k_l} x_{lc}

    A chunk has L tokens of width d; :math:`x_{lc}` is feature :math:`c` of token :math:`l`. :math:`k_l` is 1 if token
    :math:`l` is real, 0 if it is padding; :math:`l : k_l` are the real tokens.

    Args:
      x: [..., L, d] tokens of the chunk.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.

    Returns:
      A ``MaxState``, for :func:`merge_states` and then :func:`finalize_state`, which returns [..., d].

    Raises:
      ValueError: if shapes disagree, or if the mask has a float dtype.

    Source:
      Reimers and Gurevych 2019, section 3, MAX.

    >>> whole = merge_states(max_state([[-1.0], [-3.0]]), max_state([[99.0]], [False]))
    >>> finalize_state(whole)
    array([-1.])
    """
    return MaxState(np.max(np.where(mask[..., None], x, -np.inf), -2, initial=-np.inf), np.any(mask, -1))


@definition
def mean_max_state(x, mask=None, *, lengths=None):
    r"""Returns the state of one chunk of a sequence for :func:`mean_max_pooling`.

    .. math:: \Big( \frac 1 N \sum_{l : k_l} x_l, \; N, \; \max_{l : k_l} x_{lc} \Big), \qquad N = \sum_l k_l

    A chunk has L tokens of width d; :math:`x_{lc}` is feature :math:`c` of token :math:`l`. :math:`k_l` is 1 if token
    :math:`l` is real, 0 if it is padding; :math:`l : k_l` are the real tokens.

    Args:
      x: [..., L, d] tokens of the chunk.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.

    Returns:
      A ``MeanMaxState``, for :func:`merge_states` and then :func:`finalize_state`, which returns [..., 2d].

    Raises:
      ValueError: if shapes disagree, or if the mask has a float dtype.

    Source:
      Howard and Ruder 2018, section 3.3, concat pooling without its last hidden state.

    >>> finalize_state(merge_states(mean_max_state([[1.0], [3.0]]), mean_max_state([[8.0]])))
    array([4., 8.])
    """
    return MeanMaxState(*mean_state(x, mask)[:2], max_state(x, mask).extreme)


@definition
def first_state(x, mask=None, *, lengths=None, start):
    r"""Returns the state of one chunk of a sequence for :func:`first_pooling`: the first real token and its position.

    .. math:: (s + l, \; x_l), \qquad l = \min \{ l : k_l \}

    A chunk has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens. :math:`s` is ``start``.

    Args:
      x: [..., L, d] tokens of the chunk.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.
      start: :math:`s`, an integer, the same for all examples: how many positions of the sequence, padding included,
        come before this chunk.

    Returns:
      A ``FirstState``, for :func:`merge_states` and then :func:`finalize_state`, which returns [..., d].

    Raises:
      ValueError: if shapes disagree, if the mask has a float dtype, or if ``start`` is not an integer or is negative
        (``attnpool_flax`` does not check the value of a JAX array).

    Source:
      Reimers and Gurevych 2019, section 3, CLS.

    >>> later, earlier = first_state([[1.0], [2.0]], start=2), first_state([[8.0], [9.0]], [False, True], start=0)
    >>> finalize_state(merge_states(later, earlier))
    array([9.])
    """
    position = np.asarray(start).astype(np.int64) + (np.argmax(mask, -1) if mask.shape[-1] else 0)
    return FirstState(np.where(np.any(mask, -1), position, NOWHERE.max), first_pooling(x, mask))


@definition
def last_state(x, mask=None, *, lengths=None, start):
    r"""Returns the state of one chunk of a sequence for :func:`last_pooling`: the last real token and its position.

    .. math:: (s + l, \; x_l), \qquad l = \max \{ l : k_l \}

    A chunk has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens. :math:`s` is ``start``.

    Args:
      x: [..., L, d] tokens of the chunk.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.
      start: :math:`s`, an integer, the same for all examples: how many positions of the sequence, padding included,
        come before this chunk.

    Returns:
      A ``LastState``, for :func:`merge_states` and then :func:`finalize_state`, which returns [..., d].

    Raises:
      ValueError: if shapes disagree, if the mask has a float dtype, or if ``start`` is not an integer or is negative
        (``attnpool_flax`` does not check the value of a JAX array).

    Source:
      The last-token pooling of embedding models that are decoders, as in sentence-transformers (reimers2019).

    >>> later, earlier = last_state([[1.0], [2.0]], [True, False], start=2), last_state([[8.0], [9.0]], start=0)
    >>> finalize_state(merge_states(later, earlier))
    array([1.])
    """
    length = mask.shape[-1]
    position = np.asarray(start).astype(np.int64) + (length - 1 - np.argmax(mask[..., ::-1], -1) if length else 0)
    return LastState(np.where(np.any(mask, -1), position, NOWHERE.min), last_pooling(x, mask))


@definition
def weighted_state(x, weights=None, mask=None, *, lengths=None):
    r"""Returns the state of one chunk of a sequence for the average under given weights.

    .. math:: \Big( \sum_{l : k_l} w_l, \; \sum_{l : k_l} w_l x_l \Big)

    A chunk has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens.

    :func:`finalize_state` divides by the sum of the weights of all chunks; those of one chunk may sum to 0. The state
    stores both sums divided by a power of two, so that they do not overflow.

    Args:
      x: [..., L, d] tokens of the chunk.
      weights: [L], shared by all examples; [..., L], for each example; or [..., L, d], for each feature. The number of
        axes, compared with that of x, decides which; it must be the same for all chunks. None gives each token weight
        1.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.

    Returns:
      A ``WeightedState``, or with weights for each feature a ``ChannelState``, for :func:`merge_states` and then
      :func:`finalize_state`, which returns [..., d].

    Raises:
      ValueError: if shapes disagree, if the mask has a float dtype, or if the weights are boolean (then they are
        probably a mask).

    Source:
      Muennighoff 2022 (SGPT), section 3.2, with any weights instead of the positions.

    >>> whole = merge_states(weighted_state([[1.0], [2.0]], [1.0, -1.0]), weighted_state([[5.0]], [2.0]))
    >>> finalize_state(whole)
    array([4.5])
    """
    by_channel = weights is not None and weights.ndim == x.ndim
    if not by_channel:
        weights = np.where(mask, 1.0 if weights is None else weights, 0)[..., None]
    weights = np.where(mask[..., None], weights, 0)
    largest = np.max(np.abs(weights), -2, initial=0)
    size = np.where(largest == 0, 0, power_of_two(largest))
    weights = weights / np.where(size == 0, 1, size)[..., None, :]
    mass = np.sum(np.abs(weights), -2)
    weights = weights / divisor_of(mass)[..., None, :]
    total, pooled = np.sum(weights, -2), np.sum(weights * _clean(x, mask), -2)
    if by_channel:
        return ChannelState(size, mass, total, pooled)
    return WeightedState(size[..., 0], mass[..., 0], total[..., 0], pooled)


def _clean(x, mask):
    return np.where(mask[..., None], x, 0)


@definition
def attention_state(
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
):
    r"""Returns the state of one chunk of a sequence for attention pooling, with an online softmax.

    .. math:: \Big( t, \; \sum_{l : k_l} e^{s_l - t}, \; \sum_{l : k_l} e^{s_l - t} x_l \Big), \qquad
              t = \max_{l : k_l} s_l, \quad s_l = \frac{(x_l W_k) \cdot (\hat q W_q)}{\sqrt c} + b_l

    A chunk has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens. :math:`t` is the largest score, and the three entries are max, denominator and
    numerator of the average. :math:`\hat q` is the query, or its layer normalization with ``normalize_query``.

    A query is required: its default in :func:`attention_pooling` is the mean of all tokens, which is not known before
    the last chunk.

    Args:
      x: [..., L, d] tokens of the chunk.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      query: [d], shared by all sequences, or [..., d] for each; without ``query_kernel`` its width is c.
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.
      query_kernel: [d, c], :math:`W_q`, or None.
      key_kernel: [d, c], :math:`W_k`, or None.
      normalize_query: apply layer normalization to the query, before its kernel.
      query_norm_scale: [d], 1 if None; as wide as the query, if that is not d.
      query_norm_bias: [d], 0 if None; as wide as the query, if that is not d.
      epsilon: the epsilon of the layer normalization, a number.
      scale: a number that multiplies the products; None is :math:`1/\sqrt c`, where c = d without kernels.
      bias: broadcastable to [..., L] of the chunk, :math:`b`, or None; never read at padding.

    Returns:
      An ``AttentionState``, for :func:`merge_states` and then :func:`finalize_state`, which returns [..., d].

    Raises:
      ValueError: if shapes disagree, if the mask has a float dtype, or if norm parameters are given without
        ``normalize_query``.
      TypeError: if the query is missing.

    Source:
      Vaswani et al. 2017, equation 1, with one learned query; the layer normalization of the query is from notebook 001
      (docs/notebooks).

    >>> query = [0.0, 1.0]
    >>> whole = merge_states(attention_state([[1.0, 0.0]], None, query), attention_state([[3.0, 0.0]], None, query))
    >>> finalize_state(whole)
    array([2., 0.])
    """
    x = _clean(x, mask)
    normalization = normalize_query, query_norm_scale, query_norm_bias, epsilon
    scores = attention_scores(x, query, query_kernel, key_kernel, normalization, scale)
    if bias is not None:
        scores = scores + np.where(mask, bias, 0)
    return AttentionState(*exponential_sums(scores, x, mask))


@definition
def multi_head_attention_state(
    x,
    mask=None,
    *,
    lengths=None,
    query,
    query_kernel=None,
    key_kernel,
    query_bias=None,
    key_bias=None,
    scale=None,
    bias=None,
):
    r"""Returns the state of one chunk of a sequence for multi-head attention pooling, with an online softmax.

    .. math:: \Big( t, \; \sum_{l : k_l} e^{s_l - t}, \; \sum_{l : k_l} e^{s_l - t} x_l \Big)_{ih}, \qquad
              s_l = \frac{(q_i W_q^h + b_q^h) \cdot (x_l W_k^h)}{\sqrt c} + B_{hil}

    A chunk has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens. :math:`i` counts queries and :math:`h` heads. For each pair of them,
    :math:`t` is the largest of the real tokens' scores :math:`s_l`, and the three entries are max, denominator and
    numerator of the average of the raw tokens.

    The value kernel is applied to the averages, in :func:`finalize_state`. The key bias is ignored, because it cancels
    in the softmax.

    Args:
      x: [..., L, d] tokens of the chunk.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.
      query: [n, q] n learned queries of width q, or [..., n, q] for each example; [n, H, c] without ``query_kernel``.
      query_kernel: [q, H, c], :math:`W_q`, for H heads of width c, or None.
      key_kernel: [d, H, c], :math:`W_k`.
      query_bias: [H, c], :math:`b_q`, or None; only with ``query_kernel``.
      key_bias: [H, c], or None.
      scale: a number that multiplies the products; None is :math:`1/\sqrt c`.
      bias: broadcastable to [..., H, n, L] of the chunk, :math:`B`, or None.

    Returns:
      A ``MultiHeadAttentionState``, for :func:`merge_states` and then :func:`finalize_state`, which returns
      [..., n, H, d], or [..., n, o] if it is given a ``value_kernel``.

    Raises:
      ValueError: if shapes disagree, if the mask has a float dtype, or if ``query_bias`` is given without
        ``query_kernel``.

    Source:
      Vaswani et al. 2017, section 3.2.2, with learned queries.

    >>> kernel = np.eye(2).reshape(2, 2, 1)
    >>> parameters = {"query": [[0.0, 0.0]], "query_kernel": kernel, "key_kernel": kernel}
    >>> chunks = [[1.0, 2.0]], [[3.0, 4.0]]
    >>> whole = merge_states(*(multi_head_attention_state(chunk, **parameters) for chunk in chunks))
    >>> finalize_state(whole)
    array([[[2., 3.],
            [2., 3.]]])
    """
    x = _clean(x, mask)
    queries = query
    if query_kernel is not None:
        queries = np.einsum("...nq,qhc->...nhc", query, query_kernel) + (0 if query_bias is None else query_bias)
    keys = np.einsum("...ld,dhc->...lhc", x, key_kernel)
    scores = np.einsum("...nhc,...lhc->...nhl", queries, keys)
    scores = scores * (1 / np.sqrt(queries.shape[-1]) if scale is None else scale)
    if bias is not None:
        scores = scores + np.swapaxes(np.where(mask[..., None, None, :], bias, 0), -3, -2)
    return MultiHeadAttentionState(*exponential_sums(scores, x[..., None, None, :, :], mask[..., None, None, :]))


def exponential_sums(scores, x, mask):
    """Returns (max_score, denominator, numerator) of the softmax average of tokens; (-inf, 0, 0) if fully masked.

    They are the largest of the real tokens' scores [..., L], and the sums over tokens of exp(score - max_score) and of
    its product with x. The tokens x [..., L, d] must already be 0 at padding.
    """
    scores = np.where(mask, scores, -np.inf)
    max_score = np.max(scores, -1, initial=-np.inf)
    with np.errstate(invalid="ignore"):  # inf - inf: a real score of +inf gives NaN by definition
        unnormalized = np.exp(scores - np.where(max_score == -np.inf, 0, max_score)[..., None])
    unnormalized = np.where(mask, unnormalized, 0)
    return max_score, np.sum(unnormalized, -1), np.sum(unnormalized[..., None] * x, -2)
