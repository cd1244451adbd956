"""Normalisers: from scores to weights, and from vectors to unit vectors."""

import numpy as np

from attnpool_ref import contract
from attnpool_ref.contract.definition import definition
from attnpool_ref.masks import lengths_to_mask
from attnpool_ref.numerics.entmax_bisect import steep_entmax
from attnpool_ref.numerics.rounding import power_of_two


@definition
def masked_softmax(scores, mask=None, *, lengths=None, axis=-1):
    r"""Softmax over the real positions; padding has weight exactly 0.

    .. math:: w_j = \frac{k_j \exp(s_j - c)}{\sum_{i : k_i} \exp(s_i - c)}, \qquad c = \max_{i : k_i} s_i

    :math:`k_j` is 1 at real positions, else 0.

    Where nothing is real, or every real score is :math:`-\infty`, all weights are 0. A real score of
    :math:`+\infty` gives NaN in its own row.

    Args:
      scores: [..., m] scores; ``axis`` may name another axis than the last.
      mask: bool, broadcastable to ``scores``, True = real.
      lengths: integer, () or the first axes of ``scores`` without ``axis``: the first ``lengths`` positions are
        real (d2l's ``valid_lens``). Not together with ``mask``.
      axis: the axis that is normalised.

    Returns:
      Weights of the shape of ``scores``.

    Raises:
      ValueError: mask and lengths together, a float mask, a mask that does not broadcast, lengths that do not fit.

    Source:
      Zhang et al. (d2l), ``masked_softmax``, without its fill of -1e6.

    >>> masked_softmax([1.0, 2.0, 3.0, 4.0], lengths=3).round(6)
    array([0.090031, 0.244728, 0.665241, 0.      ])
    >>> masked_softmax([1.0, 2.0], [False, False])
    array([0., 0.])
    """
    if lengths is not None:
        mask = _real_by_length(lengths, scores.shape, axis)
    scores = np.where(mask, scores, -np.inf)
    top = np.max(scores, axis, keepdims=True, initial=-np.inf)
    with np.errstate(invalid="ignore"):  # inf - inf: a real score of +inf is NaN by definition
        unnormalized = np.exp(scores - np.where(top == -np.inf, 0, top))
    total = np.sum(unnormalized, axis, keepdims=True)
    return np.where(mask, unnormalized / np.where(total == 0, 1, total), 0)


def _real_by_length(lengths, shape, axis):
    """Lengths on the first axes of ``shape`` without ``axis``, as a mask of that shape."""
    mask = lengths_to_mask(lengths, shape[axis])
    others = mask.shape[:-1] + (1,) * (len(shape) - mask.ndim) + mask.shape[-1:]
    return np.broadcast_to(np.moveaxis(mask.reshape(others), -1, axis), shape)


@definition
def sparsemax(scores, mask=None, *, axis=-1):
    r"""Projects the real scores onto the simplex; scores far below the largest have weight exactly 0.

    .. math:: w = \operatorname*{argmin}_{p \in \Delta} \lVert p - s \rVert^2, \qquad
              w_j = \max(0, s_j - \tau), \qquad \tau = \max_k \frac{s_{(1)} + \dots + s_{(k)} - 1}{k}

    :math:`s_{(1)} \ge s_{(2)} \ge \dots` are the real scores in order; the largest of these thresholds is the one of
    the paper's support. Where nothing is real, or every real score is :math:`-\infty`, all weights are 0. A real
    score of :math:`+\infty` gives NaN in its own row. The gradient at a score that equals :math:`\tau` is that of
    weight 0.

    Args:
      scores: [..., m] scores, the paper's :math:`z`; ``axis`` may name another axis than the last.
      mask: bool, broadcastable to ``scores``, True = real.
      axis: the axis that is normalised.

    Returns:
      Weights of the shape of ``scores``.

    Raises:
      ValueError: a float mask, a mask that does not broadcast, ``axis`` is not an axis of ``scores``.

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
    r"""Normalises by 1.5-entmax, halfway from softmax to sparsemax: smooth, and 0 for scores far below the largest.

    .. math:: w_j = \max(0, s_j / 2 - \tau)^2, \qquad
              \tau = M_k - \sqrt{(1 - V_k) / k}, \qquad
              k = \max \Big\{ k : \sum_{j \le k} \big(\tfrac 1 2 s_{(j)} - \tfrac 1 2 s_{(k)}\big)^2 < 1 \Big\}

    :math:`M_k` is the mean of the :math:`k` largest halved scores, :math:`V_k` the sum of their squared deviations
    from it. Where nothing is real, or every real score is :math:`-\infty`, all weights are 0. A real score of
    :math:`+\infty` gives NaN in its own row.

    Args:
      scores: [..., m] scores, the paper's :math:`z`; ``axis`` may name another axis than the last.
      mask: bool, broadcastable to ``scores``, True = real.
      axis: the axis that is normalised.

    Returns:
      Weights of the shape of ``scores``.

    Raises:
      ValueError: a float mask, a mask that does not broadcast, ``axis`` is not an axis of ``scores``.

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
    """Scores less the largest real one, and the mask, along the last axis; which rows are empty.

    No threshold is more than 1 below the largest score, so that whatever lies deeper, padding too, may lie at -1.
    """
    mask = np.moveaxis(mask, axis, -1)
    scores = np.where(mask, np.moveaxis(scores, axis, -1), -np.inf)
    largest = np.max(scores, -1, keepdims=True, initial=-np.inf)
    empty = largest == -np.inf
    largest = np.where(largest == np.inf, np.nan, np.where(empty, 0, largest))
    return np.maximum(scores - largest, -1), mask, empty


def _from_the_largest(scores):
    """Scores in descending order, NaN first, and 1, 2, 3, ... beside them."""
    return np.sort(scores, -1)[..., ::-1], np.arange(1, scores.shape[-1] + 1)


@definition
def entmax(scores, mask=None, *, alpha=1.5, axis=-1):
    r"""Normalises by alpha-entmax: softmax at 1, 1.5-entmax at 1.5, sparsemax at 2, and everything between and beyond.

    .. math:: w_j = \big[(\alpha - 1) s_j - \tau\big]_+^{1 / (\alpha - 1)}, \qquad \sum_{j : k_j} w_j = 1

    :math:`k_j` is 1 at real positions, else 0.

    Where nothing is real, or every real score is :math:`-\infty`, all weights are 0. A real score of :math:`+\infty`
    gives NaN in its own row, and so does an :math:`\alpha` that is not finite. The gradient at a score on the edge of the
    support is that of weight 0.

    Args:
      scores: [..., m] scores, the paper's :math:`z`; ``axis`` may name another axis than the last.
      mask: bool, broadcastable to ``scores``, True = real.
      alpha: :math:`\alpha`, a finite number of at least 1, which is not checked.
      axis: the axis that is normalised.

    Returns:
      Weights of the shape of ``scores``.

    Raises:
      ValueError: a float mask, a mask that does not broadcast, ``axis`` is not an axis of ``scores``.

    Source:
      Peters, Niculae and Martins 2019, section 3; the threshold by bisection, as in their algorithm 1.

    >>> entmax([1.0, 2.0, 0.5, 9.0], [True, True, True, False], alpha=1.25).round(6)
    array([0.200027, 0.712547, 0.087426, 0.      ])
    """
    power = alpha - 1
    mask = np.moveaxis(mask, axis, -1)
    scores = np.where(mask, np.moveaxis(scores, axis, -1), -np.inf)
    top = np.max(scores, -1, keepdims=True, initial=-np.inf)
    count = np.sum(scores > -np.inf, -1, keepdims=True)
    with np.errstate(invalid="ignore"):  # inf - inf: a real score of +inf is NaN by definition
        below = scores - np.where(top == -np.inf, 0, top)
    if power > 1:
        return np.moveaxis(np.where(mask, steep_entmax(below, count, power), 0), -1, axis)
    logarithm = np.log(np.maximum(count, 1))
    # the threshold lies at (alpha - 1) max s - 1 + (alpha - 1) r, r from 0 to what a uniform row needs
    low, high = np.zeros(top.shape), logarithm if power == 0 else -np.expm1(-power * logarithm) / power
    for _ in range(100):
        middle = (low + high) / 2
        enough = np.sum(_powers(below - middle, power), -1, keepdims=True) >= 1
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    weights = _powers(below - low, power)
    total = np.sum(weights, -1, keepdims=True)
    return np.moveaxis(np.where(mask, weights / np.where(total == 0, 1, total), 0), -1, axis)


def _powers(x, power):
    """max(0, 1 + power x) to 1/power, which is exp(x) where the power is 0."""
    if power == 0:
        return np.exp(x)
    inside = power * x
    return np.where(inside <= -1, 0, np.exp(np.log1p(np.where(inside <= -1, 0, inside)) / power))


@definition
def top_k_softmax(scores, mask=None, *, k, axis=-1):
    r"""Softmax over the k largest real scores; all others have weight exactly 0.

    .. math:: w = \mathrm{softmax}_{j : k_j, s_j \ge t}(s), \qquad t \text{ the k-th largest real score}

    :math:`k_j` is 1 at real positions, else 0.

    Scores that equal the k-th largest are all kept; where fewer are real, all of them are. Where nothing is real, or
    every real score is :math:`-\infty`, all weights are 0. NaN or :math:`+\infty` at a real position gives NaN in its own
    row. The gradient is that of the softmax over what is kept.

    Args:
      scores: [..., m] scores; ``axis`` may name another axis than the last.
      mask: bool, broadcastable to ``scores``, True = real.
      k: how many are kept, a Python integer of at least 1.
      axis: the axis that is normalised.

    Returns:
      Weights of the shape of ``scores``.

    Raises:
      ValueError: ``k`` is less than 1, a float mask, a mask that does not broadcast, ``axis`` is not an axis of
        ``scores``.

    Source:
      Shazeer et al. 2017, equations 3 and 5, without their noise.

    >>> top_k_softmax([1.0, 2.0, 0.5, 9.0], [True, True, True, False], k=2).round(6)
    array([0.268941, 0.731059, 0.      , 0.      ])
    """
    ordered = np.sort(np.where(mask, scores, -np.inf), axis)
    largest = np.take(ordered, range(max(ordered.shape[axis] - k, 0), ordered.shape[axis]), axis)
    finite = np.all(np.isfinite(largest) | (largest == -np.inf), axis, keepdims=True)
    threshold = np.where(finite, np.min(largest, axis, keepdims=True, initial=np.inf), -np.inf)
    weights = masked_softmax(scores, mask & ~(scores < threshold), axis=axis)
    return np.where(mask & ~finite, np.nan, weights)


@definition
def gumbel_softmax(scores, mask=None, noise=None, *, temperature=1.0, hard=False, axis=-1):
    r"""Softmax of scores with noise: a sample that has a gradient, the noise drawn by the caller.

    .. math:: w = \mathrm{softmax}_{j : k_j}\Big(\frac{s + g}{T}\Big)

    :math:`k_j` is 1 at real positions, else 0.

    Where nothing is real, or every real score is :math:`-\infty`, all weights are 0. A real score of :math:`+\infty`
    gives NaN in its own row. With ``hard`` the value is :func:`hardmax` of :math:`s + g`, and the gradient stays that of
    the soft weights.

    Args:
      scores: [..., m] scores, the paper's :math:`\log \pi`; ``axis`` may name another axis than the last.
      mask: bool, broadcastable to ``scores``, True = real.
      noise: broadcastable to ``scores``, :math:`g`: ``rng.gumbel(size=shape)``, ``jax.random.gumbel(key, shape)``; None
        is 0. It does not decide the result's dtype, and what it holds at padding is never read.
      temperature: :math:`T`, a number.
      hard: give the first of the largest the weight 1, and the others 0.
      axis: the axis that is normalised.

    Returns:
      Weights of the shape of ``scores``.

    Raises:
      ValueError: a float mask, a mask or noise that does not broadcast, ``axis`` is not an axis of ``scores``.

    Source:
      Jang, Gu and Poole 2017, equation 2, and section 2.2 for ``hard``.

    >>> gumbel_softmax([1.0, 2.0, 0.5], None, [0.3, -0.2, 1.9]).round(6)
    array([0.176901, 0.29166 , 0.531439])
    >>> gumbel_softmax([1.0, 2.0, 0.5], None, [0.3, -0.2, 1.9], hard=True)
    array([0., 0., 1.])
    """
    scores = np.where(mask, scores, 0) + (0 if noise is None else np.where(mask, noise, 0))
    if hard:
        return hardmax(scores, mask, axis=axis)
    return masked_softmax(scores / temperature, mask, axis=axis)


@definition
def masked_sigmoid(scores, mask=None, *, normalize=False, axis=-1):
    r"""Weighs each real position by itself, between 0 and 1; padding has weight exactly 0.

    .. math:: w_j = \sigma(s_j) = \frac 1 {1 + e^{-s_j}}, \qquad
              \text{or with normalize } \frac{\sigma(s_j)}{\sum_{i : k_i} \sigma(s_i)}

    :math:`k_i` is 1 at real positions, else 0.

    The weights need not sum to 1, and a constant added to every score changes them. With ``normalize`` they sum to 1,
    also where every :math:`\sigma(s_j)` would be rounded to 0; where nothing is real, or every real score is
    :math:`-\infty`, they are 0. A real score of :math:`+\infty` has weight NaN.

    Args:
      scores: [..., m] scores; ``axis`` may name another axis than the last.
      mask: bool, broadcastable to ``scores``, True = real.
      normalize: divide by the sum of the real ones.
      axis: the axis that is normalised.

    Returns:
      Weights of the shape of ``scores``.

    Raises:
      ValueError: a float mask, a mask that does not broadcast, ``axis`` is not an axis of ``scores``.

    Source:
      Ramapuram et al. 2025, without their bias.

    >>> masked_sigmoid([0.0, 0.0, 9.0], [True, True, False])
    array([0.5, 0.5, 0. ])
    >>> masked_sigmoid([-1000.0, -1000.0], normalize=True)
    array([0.5, 0.5])
    """
    scores = np.where(mask, scores, 0)
    with np.errstate(invalid="ignore"):  # NaN, as +inf is by definition
        logarithms = np.where(scores == np.inf, np.nan, -np.logaddexp(0, -scores))
    if normalize:
        return masked_softmax(logarithms, mask, axis=axis)
    return np.where(mask, np.exp(logarithms), 0)


@definition
def hardmax(scores, mask=None, *, axis=-1):
    r"""Gives the first of the largest real scores the weight 1, and all others 0.

    .. math:: w_j = [j = \min \operatorname*{argmax}_{i : k_i} s_i]

    :math:`k_i` is 1 at real positions, else 0.

    Where nothing is real, or every real score is :math:`-\infty`, all weights are 0. NaN or :math:`+\infty` at a real
    position gives NaN in its own row. The gradient is 0.

    Args:
      scores: [..., m] scores; ``axis`` may name another axis than the last.
      mask: bool, broadcastable to ``scores``, True = real.
      axis: the axis that is normalised.

    Returns:
      Weights of the shape of ``scores``.

    Raises:
      ValueError: a float mask, a mask that does not broadcast, ``axis`` is not an axis of ``scores``.

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


def normalize(scores, mask, normalizer):
    """Weights over the last axis, 0 at padding, by a normaliser's name or by a function.

    Args:
      scores: [..., m], float64.
      mask: bool, of the scores' shape.
      normalizer: a name, or a function (scores, mask) -> weights. Its scores are 0 at padding, what it returns there
        is dropped.

    Raises:
      ValueError: the function's weights have another shape than the scores.
      TypeError: it returned no array of numbers.
    """
    if isinstance(normalizer, str):
        return NORMALIZERS[normalizer](scores, mask)
    weights = normalizer(np.where(mask, scores, 0), mask.copy())
    contract.check_weights(normalizer, weights, scores.shape)
    return np.where(mask, np.asarray(weights).astype(np.float64), 0)


@definition
def l2_normalize(x, *, axis=-1):
    r"""Divides by the Euclidean norm; the zero vector stays 0.

    .. math:: y = x / \lVert x \rVert_2

    The gradient at the zero vector is 0.

    Args:
      x: [...] vectors along ``axis``.
      axis: the axis of the vectors.

    Returns:
      The shape of ``x``; norms are 1, or 0.

    Raises:
      ValueError: ``axis`` is not an axis of ``x``.

    Source:
      Wang et al. 2022 (SimKGC), ``_pool_output``, without its floor of 1e-12 under the norm.

    >>> l2_normalize([[3.0, 4.0], [0.0, 0.0]])
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    scaled = x / power_of_two(np.max(np.abs(x), axis, keepdims=True, initial=0))  # squares of 1e-300 would underflow
    norm = np.sqrt(np.sum(scaled**2, axis, keepdims=True))
    return scaled / np.where(norm == 0, 1, norm)
