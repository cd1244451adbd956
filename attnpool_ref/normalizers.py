"""Normalizers: functions from scores to weights, and from vectors to unit vectors."""

import numpy as np

from attnpool_ref import contract
from attnpool_ref.contract.definition import definition
from attnpool_ref.masks import real_by_length
from attnpool_ref.numerics.entmax_bisect import gentle_entmax, steep_entmax
from attnpool_ref.primitives import log_softmax, members, primitive, share_beside_sink, softmax, unit_vector


@definition
def masked_softmax(scores, mask=None, *, lengths=None, sink=None, axis=-1):
    r"""Computes the softmax over the real positions; padding has weight exactly 0.

    .. math:: w_j = \frac{k_j \exp(s_j - c)}{\exp(b - c) + \sum_{i : k_i} \exp(s_i - c)}, \qquad
              c = \max\big(b, \max_{i : k_i} s_i\big)

    :math:`k_j` is 1 at real positions :math:`j`, else 0. :math:`b` is the sink, :math:`-\infty` without one. In a fully
    masked row, or if every real score is :math:`-\infty`, all weights are 0. A real score of :math:`+\infty` makes all
    real weights of its row NaN. With a sink the weights sum to less than 1, and a constant added to every score changes
    them; a sink of :math:`+\infty` makes them 0.

    Args:
      scores: [..., m] scores; ``axis`` may name another axis than the last.
      mask: bool, broadcastable to ``scores``: True at real positions, False at padding; None if all are real.
      lengths: number of real positions, counted from the left: int (), or of the shape of the first axes of ``scores``
        without ``axis``, such as (B,) or (B, n) for (B, n, m). Give this or ``mask``.
      sink: :math:`b`, a score in the denominator only (attention sink): a number, 0 for "softmax off by one", or an array
        that broadcasts to the axes of ``scores`` without ``axis``. It does not affect the result's dtype.
      axis: the axis that is normalized.

    Returns:
      Weights of the shape of ``scores``.

    Raises:
      ValueError: if mask and lengths are both given, if shapes disagree, if the mask has a float dtype, or if there is
        no such axis.

    Source:
      Zhang et al. (d2l), ``masked_softmax``, without its fill of -1e6.

    >>> masked_softmax([1.0, 2.0, 3.0, 4.0], lengths=3).round(6)
    array([0.090031, 0.244728, 0.665241, 0.      ])
    >>> masked_softmax([1.0, 2.0], [False, False])
    array([0., 0.])
    >>> masked_softmax(np.log([1.0, 3.0]), sink=0.0).round(6)
    array([0.2, 0.6])
    """
    return _beside_sink(scores, mask if lengths is None else real_by_length(lengths, scores.shape, axis), sink, axis)


def _beside_sink(scores, mask, sink, axis=-1):
    """Returns the softmax, with a sink or None."""
    weights = softmax(scores, mask, axis)
    return weights if sink is None else np.where(mask, weights * share_beside_sink(scores, mask, sink, axis), 0)


@definition
def masked_log_softmax(scores, mask=None, *, lengths=None, axis=-1):
    r"""Computes the logarithm of the softmax over the real positions, without underflow; padding has -inf.

    .. math:: \log w_j = s_j - c - \log \sum_{i : k_i} \exp(s_i - c), \qquad c = \max_{i : k_i} s_i

    :math:`k_i` is 1 at real positions :math:`i`, else 0. A fully masked row and a real score of :math:`-\infty` give
    :math:`-\infty`, too. There cotangents are ignored, and the gradient is 0. NaN or :math:`+\infty` at a real position
    makes all real results of its row NaN.

    Args:
      scores: [..., m] scores; ``axis`` may name another axis than the last.
      mask: bool, broadcastable to ``scores``: True at real positions, False at padding; None if all are real.
      lengths: number of real positions, counted from the left, as for :func:`masked_softmax`. Give this or ``mask``.
      axis: the axis that is normalized.

    Returns:
      Logarithms of the weights, of the shape of ``scores``.

    Raises:
      ValueError: if mask and lengths are both given, if shapes or the axis disagree, or if the mask has a float dtype.

    Source:
      ONNX, operator LogSoftmax (onnx), with a mask.

    >>> masked_log_softmax([0.0, -900.0, 9.0], lengths=2)
    array([   0., -900.,  -inf])
    >>> masked_log_softmax([1.0, 2.0], [False, False])
    array([-inf, -inf])
    """
    return log_softmax(scores, mask if lengths is None else real_by_length(lengths, scores.shape, axis), axis)


@definition
def segment_softmax(scores, segment_ids, num_segments, mask=None, *, indices_are_sorted=False):
    r"""Computes the softmax over the real tokens of each segment of packed tokens (scatter_softmax, edge softmax).

    .. math:: w_j = \frac{k_j \exp(s_j - c_S)}{\sum_{i \in S : k_i} \exp(s_i - c_S)}, \qquad
              c_S = \max_{i \in S : k_i} s_i, \qquad j \in S

    :math:`k_j` is 1 at real tokens :math:`j`, else 0; :math:`S` is the segment of :math:`j`. Each column of scores
    [N, h] is normalized by itself. If every real score of a segment is :math:`-\infty`, its weights are 0. NaN or
    :math:`+\infty` at a real token makes all real weights of its segment and column NaN.

    Args:
      scores: [N] scores, one for each of N tokens, or [N, h], h for each.
      segment_ids: int [N], the segment of each token, from 0 to ``num_segments`` - 1, in any order.
      num_segments: the number of segments, an integer.
      mask: bool, broadcastable to [N], one for each token: True at real tokens, False at padding; None if all are real.
      indices_are_sorted: True if the segment numbers never decrease, those of padding included: faster in JAX, but not
        checked; if they do decrease, the result in JAX may be wrong.

    Returns:
      Weights of the shape of ``scores``; 0 at padding.

    Source:
      Fey and Lenssen 2019, ``torch_geometric.utils.softmax``, without its 1e-16 in the denominator.

    >>> segment_softmax([1.0, 5.0, 1.0], [0, 1, 0], 2)
    array([0.5, 1. , 0.5])
    """
    del indices_are_sorted  # NumPy uses one algorithm for both
    return _of_segments(softmax, scores, segment_ids, num_segments, mask, 0)


@definition
def segment_log_softmax(scores, segment_ids, num_segments, mask=None, *, indices_are_sorted=False):
    r"""Computes the logarithm of the softmax over the real tokens of each segment, without underflow.

    .. math:: \log w_j = s_j - c_S - \log \sum_{i \in S : k_i} \exp(s_i - c_S), \qquad
              c_S = \max_{i \in S : k_i} s_i, \qquad j \in S

    :math:`k_i` is 1 at real tokens :math:`i`, else 0; :math:`S` is the segment of :math:`j`. Padding and a real score of
    :math:`-\infty` give :math:`-\infty`. There cotangents are ignored, and the gradient is 0. NaN or :math:`+\infty` at
    a real token makes all real results of its segment and column NaN.

    Args:
      scores: [N] scores, one for each of N tokens, or [N, h], h for each.
      segment_ids: int [N], the segment of each token, from 0 to ``num_segments`` - 1, in any order.
      num_segments: the number of segments, an integer.
      mask: bool, broadcastable to [N], one for each token: True at real tokens, False at padding; None if all are real.
      indices_are_sorted: as for :func:`segment_softmax`.

    Returns:
      Logarithms of the weights, of the shape of ``scores``; -inf at padding.

    Source:
      Fey and Lenssen 2019, torch_scatter's ``scatter_log_softmax``, without its epsilon.

    >>> segment_log_softmax([0.0, 5.0, -900.0], [0, 1, 0], 2)
    array([   0.,    0., -900.])
    """
    del indices_are_sorted  # NumPy uses one algorithm for both
    return _of_segments(log_softmax, scores, segment_ids, num_segments, mask, -np.inf)


def _of_segments(function, scores, segment_ids, num_segments, mask, fill):
    """Applies a softmax to the scores of one segment after another; tokens of no segment have the value ``fill``."""
    result = np.full(scores.shape, fill, np.float64)
    mask = np.broadcast_to(mask.reshape(mask.shape + (1,) * (scores.ndim - 1)), scores.shape)
    for s in range(num_segments):
        own = members(segment_ids, s)
        result[own] = function(scores[own].astype(np.float64), mask[own], 0)
    return result


@definition
def sparsemax(scores, mask=None, *, axis=-1):
    r"""Projects the real scores onto the simplex (sparsemax): scores far below the largest have weight exactly 0.

    .. math:: w = \operatorname*{argmin}_{p \in \Delta} \lVert p - s \rVert^2, \qquad
              w_j = \max(0, s_j - \tau), \qquad \tau = \max_k \frac{s_{(1)} + \dots + s_{(k)} - 1}{k}

    :math:`\Delta` is the simplex: weights of at least 0 that sum to 1. :math:`s_{(1)} \ge s_{(2)} \ge \dots` are the
    real scores in order; the maximum over :math:`k` equals the threshold of the paper. In a fully masked row, or if
    every real score is :math:`-\infty`, all weights are 0. A real score of :math:`+\infty` makes all real weights of
    its row NaN. A score that equals :math:`\tau` has gradient 0, as the scores below it.

    Args:
      scores: [..., m] scores, the paper's :math:`z`; ``axis`` may name another axis than the last.
      mask: bool, broadcastable to ``scores``: True at real positions, False at padding; None if all are real.
      axis: the axis that is normalized.

    Returns:
      Weights of the shape of ``scores``.

    Source:
      Martins and Astudillo 2016, equation 2, proposition 1 and algorithm 1.

    >>> sparsemax([0.5, 0.25, -1.0, 9.0], [True, True, True, False])
    array([0.625, 0.375, 0.   , 0.   ])
    """
    below, mask, empty = _below_largest(scores, mask, axis)
    ordered, count = _from_the_largest(below)
    threshold = np.max((np.cumsum(ordered, -1) - 1) / count, -1, keepdims=True, initial=-np.inf)
    weights = np.where(mask & ~empty, np.maximum(below - threshold, 0), 0)
    return np.moveaxis(weights, -1, axis)


@definition
def entmax15(scores, mask=None, *, axis=-1):
    r"""Normalizes scores by 1.5-entmax, which is smooth; scores far below the largest have weight exactly 0.

    .. math:: w_j = \max(0, s_j / 2 - \tau)^2, \qquad
              \tau = M_k - \sqrt{(1 - V_k) / k}, \qquad
              k = \max \Big\{ i : \sum_{j \le i} \big(\tfrac 1 2 s_{(j)} - \tfrac 1 2 s_{(i)}\big)^2 < 1 \Big\}

    :math:`s_{(1)} \ge s_{(2)} \ge \dots` are the real scores in order. :math:`M_k` is the mean of the :math:`k` largest
    halved scores, :math:`V_k` the sum of their squared deviations from it. In a fully masked row, or if every real
    score is :math:`-\infty`, all weights are 0. A real score of :math:`+\infty` makes all real weights of its row NaN.

    Args:
      scores: [..., m] scores, the paper's :math:`z`; ``axis`` may name another axis than the last.
      mask: bool, broadcastable to ``scores``: True at real positions, False at padding; None if all are real.
      axis: the axis that is normalized.

    Returns:
      Weights of the shape of ``scores``.

    Source:
      Peters, Niculae and Martins 2019, algorithm 2.

    >>> entmax15([2.0, 2.0, -2.0, 9.0], [True, True, True, False]).round(6)
    array([0.5, 0.5, 0. , 0. ])
    """
    below, mask, empty = _below_largest(scores / 2, mask, axis)
    ordered, count = _from_the_largest(below)
    total, squares = np.cumsum(ordered, -1), np.cumsum(ordered**2, -1)
    mean = total / count
    spread = squares - total * mean
    in_support = squares - 2 * ordered * total + count * ordered**2 < 1  # the sum of (s_(j) - s_(k))^2 over j <= k
    thresholds = mean - np.sqrt(np.maximum(1 - spread, 0) / count)
    last = np.maximum(np.sum(in_support, -1, keepdims=True), 1) - 1
    threshold = np.take_along_axis(thresholds, last, -1) if count.size else np.zeros_like(last)
    weights = np.where(mask & ~empty, np.maximum(below - threshold, 0) ** 2, 0)
    return np.moveaxis(weights, -1, axis)


def _below_largest(scores, mask, axis):
    """Returns (scores minus the largest real one, at least -1; mask; rows of -inf only), with ``axis`` moved last."""
    mask = np.moveaxis(mask, axis, -1)
    scores = np.where(mask, np.moveaxis(scores, axis, -1), -np.inf)
    largest = np.max(scores, -1, keepdims=True, initial=-np.inf)
    empty = largest == -np.inf
    largest = np.where(largest == np.inf, np.nan, np.where(empty, 0, largest))
    return np.maximum(scores - largest, -1), mask, empty  # no threshold is below -1


def _from_the_largest(scores):
    """Returns the scores in descending order along the last axis, NaN first, and their ranks 1, 2, 3, ..."""
    return np.sort(scores, -1)[..., ::-1], np.arange(1, scores.shape[-1] + 1)


@definition
def entmax(scores, mask=None, *, alpha=1.5, axis=-1):
    r"""Normalizes scores by alpha-entmax: softmax at 1, 1.5-entmax at 1.5, sparsemax at 2, or any alpha of at least 1.

    .. math:: w_j = \big[(\alpha - 1) s_j - \tau\big]_+^{1 / (\alpha - 1)}, \qquad \sum_{j : k_j} w_j = 1

    :math:`k_j` is 1 at real positions :math:`j`, else 0; :math:`[x]_+` is :math:`\max(0, x)`. In a fully masked row, or
    if every real score is :math:`-\infty`, all weights are 0. A real score of :math:`+\infty` makes all real weights of
    its row NaN, and so does an :math:`\alpha` that is not finite. A score whose bracket is exactly 0 has gradient 0.

    Args:
      scores: [..., m] scores, the paper's :math:`z`; ``axis`` may name another axis than the last.
      mask: bool, broadcastable to ``scores``: True at real positions, False at padding; None if all are real.
      alpha: :math:`\alpha`, a finite number of at least 1; the range is not checked.
      axis: the axis that is normalized.

    Returns:
      Weights of the shape of ``scores``.

    Source:
      Peters, Niculae and Martins 2019, section 3, computed by bisection, like their algorithm 1.

    >>> entmax([1.0, 2.0, 0.5, 9.0], [True, True, True, False], alpha=1.25).round(6)
    array([0.200027, 0.712547, 0.087426, 0.      ])
    """
    power = alpha - 1
    mask = np.moveaxis(mask, axis, -1)
    scores = np.where(mask, np.moveaxis(scores, axis, -1), -np.inf)
    top = np.max(scores, -1, keepdims=True, initial=-np.inf)
    count = np.sum(scores > -np.inf, -1, keepdims=True)
    with np.errstate(invalid="ignore"):  # inf - inf: a real score of +inf gives NaN by definition
        below = scores - np.where(top == -np.inf, 0, top)
    weights = steep_entmax(below, count, power) if power > 1 else gentle_entmax(below, count, power)
    return np.moveaxis(np.where(mask, weights, 0), -1, axis)


@definition
def top_k_softmax(scores, mask=None, *, k, axis=-1):
    r"""Computes the softmax over the k largest real scores; all others have weight exactly 0.

    .. math:: w = \mathrm{softmax}_{j : k_j, s_j \ge t}(s), \qquad t \text{ the k-th largest real score}

    :math:`k_j` is 1 at real positions :math:`j`, else 0. :math:`k` without an index is the argument. All scores that
    tie with the k-th largest have a weight, and all real ones if there are fewer than k. In a fully masked row, or if
    every real score is :math:`-\infty`, all weights are 0. NaN or :math:`+\infty` at a real position makes all real
    weights of its row NaN. The gradient is that of the softmax over these scores.

    Args:
      scores: [..., m] scores; ``axis`` may name another axis than the last.
      mask: bool, broadcastable to ``scores``: True at real positions, False at padding; None if all are real.
      k: number of scores with a weight, a Python integer of at least 1.
      axis: the axis that is normalized.

    Returns:
      Weights of the shape of ``scores``.

    Raises:
      ValueError: if ``k`` is less than 1, if the mask has a float dtype or does not broadcast, or if there is no such
        axis.

    Source:
      Shazeer et al. 2017, equations 3 and 5, without their noise.

    >>> top_k_softmax([1.0, 2.0, 0.5, 9.0], [True, True, True, False], k=2).round(6)
    array([0.268941, 0.731059, 0.      , 0.      ])
    """
    ordered = np.sort(np.where(mask, scores, -np.inf), axis)
    largest = np.take(ordered, range(max(ordered.shape[axis] - k, 0), ordered.shape[axis]), axis)
    finite = np.all(np.isfinite(largest) | (largest == -np.inf), axis, keepdims=True)
    threshold = np.where(finite, np.min(largest, axis, keepdims=True, initial=np.inf), -np.inf)
    weights = softmax(scores, mask & ~(scores < threshold), axis)
    return np.where(mask & ~finite, np.nan, weights)


@definition
def gumbel_softmax(scores, mask=None, noise=None, *, temperature=1.0, hard=False, axis=-1):
    r"""Computes the softmax of scores plus Gumbel noise that you draw: a sample with a gradient.

    .. math:: w = \mathrm{softmax}_{j : k_j}\Big(\frac{s + g}{T}\Big)

    :math:`k_j` is 1 at real positions :math:`j`, else 0. In a fully masked row, or if every real score is
    :math:`-\infty`, all weights are 0. A real score of :math:`+\infty` makes all real weights of its row NaN. With
    ``hard`` the value is :func:`hardmax` of :math:`s + g`, and the gradient stays that of the soft weights.

    Args:
      scores: [..., m] scores, the paper's :math:`\log \pi`; ``axis`` may name another axis than the last.
      mask: bool, broadcastable to ``scores``: True at real positions, False at padding; None if all are real.
      noise: broadcastable to ``scores``, :math:`g`: ``rng.gumbel(size=shape)``, ``jax.random.gumbel(key, shape)``; None
        is 0. The noise does not affect the result's dtype, and its values at padding are never read.
      temperature: :math:`T`, a positive number, which is not checked.
      hard: give weight 1 to the first of the largest sums :math:`s + g`, and 0 to the others.
      axis: the axis that is normalized.

    Returns:
      Weights of the shape of ``scores``.

    Raises:
      ValueError: if the mask has a float dtype, if mask or noise does not broadcast, or if there is no such axis.

    Source:
      Jang, Gu and Poole 2017, equation 2, and section 2.2 for ``hard``.

    >>> gumbel_softmax([1.0, 2.0, 0.5], None, [0.3, -0.2, 1.9]).round(6)
    array([0.176901, 0.29166 , 0.531439])
    >>> gumbel_softmax([1.0, 2.0, 0.5], None, [0.3, -0.2, 1.9], hard=True)
    array([0., 0., 1.])
    """
    scores = np.where(mask, scores, 0) + (0 if noise is None else np.where(mask, noise, 0))
    if hard:
        return hardmax.body(scores, mask, axis=axis)
    return softmax(scores / temperature, mask, axis)


@definition
def masked_sigmoid(scores, mask=None, *, normalize=False, axis=-1):
    r"""Weights each real position by its sigmoid, between 0 and 1; padding has weight exactly 0.

    .. math:: w_j = \sigma(s_j) = \frac 1 {1 + e^{-s_j}}, \qquad
              \text{or with normalize } \frac{\sigma(s_j)}{\sum_{i : k_i} \sigma(s_i)}

    :math:`k_i` is 1 at real positions :math:`i`, else 0. The weights need not sum to 1, and a constant added to every
    score changes them. With ``normalize`` they sum to 1, even where every :math:`\sigma(s_j)` rounds to 0; in a fully
    masked row, or if every real score is :math:`-\infty`, they are 0. A real score of :math:`+\infty` has weight NaN;
    with ``normalize`` all real weights of its row are NaN.

    Args:
      scores: [..., m] scores; ``axis`` may name another axis than the last.
      mask: bool, broadcastable to ``scores``: True at real positions, False at padding; None if all are real.
      normalize: divide by the sum over the real positions.
      axis: the axis of the sum; without ``normalize`` it has no effect.

    Returns:
      Weights of the shape of ``scores``.

    Source:
      Ramapuram et al. 2025, without the bias.

    >>> masked_sigmoid([0.0, 0.0, 9.0], [True, True, False])
    array([0.5, 0.5, 0. ])
    >>> masked_sigmoid([-1000.0, -1000.0], normalize=True)
    array([0.5, 0.5])
    """
    scores = np.where(mask, scores, 0)
    with np.errstate(invalid="ignore"):  # a score of +inf gives NaN by definition
        logarithms = np.where(scores == np.inf, np.nan, -np.logaddexp(0, -scores))
    if normalize:
        return softmax(logarithms, mask, axis)
    return np.where(mask, np.exp(logarithms), 0)


@definition
def hardmax(scores, mask=None, *, axis=-1):
    r"""Gives the first of the largest real scores weight 1, and all others 0 (one-hot argmax).

    .. math:: w_j = [j = \min \operatorname*{argmax}_{i : k_i} s_i]

    :math:`k_i` is 1 at real positions :math:`i`, else 0. In a fully masked row, or if every real score is
    :math:`-\infty`, all weights are 0. NaN or :math:`+\infty` at a real position makes all real weights of its row
    NaN. The gradient is 0.

    Args:
      scores: [..., m] scores; ``axis`` may name another axis than the last.
      mask: bool, broadcastable to ``scores``: True at real positions, False at padding; None if all are real.
      axis: the axis that is normalized.

    Returns:
      Weights of the shape of ``scores``.

    Source:
      ONNX, operator Hardmax (onnx).

    >>> hardmax([1.0, 3.0, 3.0, 9.0], [True, True, True, False])
    array([0., 1., 0., 0.])
    """
    scores = np.where(mask, scores, -np.inf)
    top = np.max(scores, axis, keepdims=True, initial=-np.inf)
    reached = mask & (scores == top) & (top > -np.inf)
    weights = np.where(reached & (np.cumsum(reached, axis) == 1), 1.0, 0.0)
    return np.where(mask & (np.isnan(top) | (top == np.inf)), np.nan, weights)


NORMALIZERS = {
    "softmax": masked_softmax,
    "sparsemax": sparsemax,
    "entmax15": entmax15,
    "sigmoid": masked_sigmoid,
    "hardmax": hardmax,
}


@primitive
def normalize(scores, mask, normalizer, sink=None):
    """Returns weights over the last axis, 0 at padding.

    Args:
      scores: [..., m] scores in float64.
      mask: bool, of the scores' shape.
      normalizer: a key of ``NORMALIZERS``, or the caller's function (scores, mask) -> weights. The function receives
        scores that are 0 at padding, and its weights at padding are replaced by 0.
      sink: [...], the score of a sink, only with "softmax"; or None.

    Raises:
      ValueError: if the function returns weights of another shape than the scores.
      TypeError: if the function does not return an array of numbers.
    """
    if sink is not None:
        return _beside_sink(scores, mask, sink)
    if isinstance(normalizer, str):
        return NORMALIZERS[normalizer].body(scores, mask)
    weights = normalizer(np.where(mask, scores, 0), mask.copy())
    contract.check_weights(normalizer, weights, scores.shape)
    return np.where(mask, np.asarray(weights).astype(np.float64), 0)


@definition
def l2_normalize(x, *, axis=-1):
    r"""Divides vectors by their Euclidean norm; the zero vector stays 0.

    .. math:: y = x / \lVert x \rVert_2

    The gradient at the zero vector is 0.

    Args:
      x: [...] an array that holds vectors along ``axis``.
      axis: the axis of the vectors.

    Returns:
      An array of the shape of ``x``, whose vectors have norm 1, or 0 for a zero vector.

    Source:
      Wang et al. 2022 (SimKGC), ``_pool_output``, which also bounds the norm from below by 1e-12.

    >>> l2_normalize([[3.0, 4.0], [0.0, 0.0]])
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    return unit_vector(x, axis)
