"""Sums, order statistics and generalized means of the tokens of one sequence, feature by feature."""

import numpy as np

from attnpool_ref.contract.definition import definition
from attnpool_ref.primitives import between, fill_padding, mean_of_exponentials, minimum, softmax_of_products
from attnpool_ref.primitives.exponentials import in_range


@definition
def sum_pooling(x, mask=None, *, lengths=None):
    r"""Adds up the real tokens.

    .. math:: o = \sum_{l : k_l} x_l

    A sequence has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens.

    Args:
      x: [..., L, d] tokens.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.

    Returns:
      [..., d] pooled vectors; 0 in a fully masked row.

    Source:
      Zaheer et al. 2017, theorem 2, without the two networks of the paper.

    >>> sum_pooling([[1.0], [3.0], [99.0]], [True, True, False])
    array([4.])

    Packed:

    >>> segment_sum_pooling([[1.0], [5.0], [3.0]], [0, 1, 0], 2)
    array([[4.],
           [5.]])
    """
    return fill_padding(x, mask).sum(-2)


@definition
def min_pooling(x, mask=None, *, lengths=None):
    r"""Takes the smallest real value of each feature.

    .. math:: o_c = \min_{l : k_l} x_{lc}

    A sequence has L tokens of width d; :math:`x_{lc}` is feature :math:`c` of token :math:`l`. :math:`k_l` is 1 if
    token :math:`l` is real, 0 if it is padding; :math:`l : k_l` are the real tokens. Tokens that tie for the smallest
    value share the gradient evenly.

    Args:
      x: [..., L, d] tokens.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.

    Returns:
      [..., d] pooled vectors; 0 in a fully masked row, but +inf if all real values are +inf.

    Source:
      Corso et al. 2020, section 2.1, the aggregator min.

    >>> min_pooling([[1.0], [3.0], [-99.0]], [True, True, False])
    array([1.])

    Packed:

    >>> segment_min_pooling([[1.0], [5.0], [3.0]], [0, 1, 0], 2)
    array([[1.],
           [5.]])
    """
    return minimum(x, mask)


_PLACES = {
    "linear": (np.floor, np.ceil),
    "lower": (np.floor, np.floor),
    "higher": (np.ceil, np.ceil),
    "nearest": (np.rint, np.rint),
    "midpoint": (np.floor, np.ceil),
}
"""For each method of a quantile, the roundings of a place to those of the two values that are averaged."""


@definition
def quantile_pooling(x, mask=None, q=0.5, *, lengths=None, method="linear"):
    r"""Computes a quantile of the real values of each feature, by default with linear interpolation.

    .. math:: o_c = x_{(j)c} + (i - j) (x_{(j+1)c} - x_{(j)c}), \qquad i = (N - 1) q, \quad j = \lfloor i \rfloor

    :math:`x_{(0)c} \le x_{(1)c} \le \dots` are the :math:`N` real values of feature :math:`c` in order. The gradient
    goes to the two values of the formula; if several tokens have such a value, the first of them receives it. There is
    no chunked version, because a quantile needs all tokens at once, and no packed one.

    Args:
      x: [..., L, d] L tokens of width d.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      q: :math:`q`, a number from 0 to 1; the range is not checked. 0.5 is the median.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.
      method: the value between :math:`x_{(j)c}` and :math:`x_{(j+1)c}`, if :math:`i` is not an integer: "linear", as in
        the formula; "lower" or "higher", one of the two; "nearest", the one of the nearer place, or if both are equally
        near, of the even place; "midpoint", their mean. "lower" with :math:`q = 0.5` is the median of PyTorch.
        :math:`(N - 1) q` is rounded to the computing dtype first.

    Returns:
      [..., d] pooled vectors; 0 in a fully masked row.

    Source:
      Hyndman and Fan 1996, definition 7; the other methods are NumPy's.

    >>> quantile_pooling([[1.0], [2.0], [10.0], [3.0], [99.0]], [True, True, True, True, False])
    array([2.5])
    >>> quantile_pooling([[1.0], [2.0], [10.0], [3.0]], method="lower")
    array([2.])
    """
    if x.shape[-2] == 0:
        return np.sum(x, -2)
    real = mask[..., None]
    last = np.maximum(np.sum(real, -2, keepdims=True) - 1, 0)
    ordered = np.sort(np.where(real, x, np.inf), -2)
    place = last * q
    below, above = (np.clip(end(place), 0, last) for end in _PLACES[method])
    shape = (*x.shape[:-2], 1, x.shape[-1])
    low, high = (
        np.take_along_axis(ordered, np.broadcast_to(index.astype(np.int64), shape), -2)[..., 0, :]
        for index in (np.where(np.isnan(end), 0, end) for end in (below, above))
    )
    share = {"linear": place - below, "midpoint": np.full_like(place, 0.5)}.get(method, np.zeros_like(place))
    share = np.where(np.isnan(place), np.nan, share)[..., 0, :]
    result = between(low, high, share)
    result = np.where(np.any(np.isnan(x) & real, -2) | np.isnan(share), np.nan, result)
    return np.where(np.any(real, -2), result, 0)


@definition
def top_k_pooling(x, mask=None, *, lengths=None, k):
    r"""Averages the k largest real values of each feature.

    .. math:: o_c = \frac 1 m \sum_{i=1}^{m} x_{[i]c}, \qquad m = \min(k, N), \quad x_{[1]c} \ge x_{[2]c} \ge \dots

    :math:`x_{[1]c}` is the largest real value of feature :math:`c`, and :math:`N` the number of real tokens. Values
    that tie with the k-th largest share evenly the gradient of the places that they fill among the first k. With
    ``k=1`` it is :func:`max_pooling`, also in its gradient. There is no packed or chunked version.

    Args:
      x: [..., L, d] L tokens of width d.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.
      k: :math:`k`, an integer of at least 1.

    Returns:
      [..., d] pooled vectors; 0 in a fully masked row.

    Source:
      Durand, Thome and Cord 2016, equation 4, only its part for the k largest values.

    >>> top_k_pooling([[3.0], [1.0], [4.0], [99.0]], [True, True, True, False], k=2)
    array([3.5])
    """
    real = mask[..., None]
    if x.shape[-2] == 0:
        return np.sum(x, -2)
    taken = np.minimum(min(k, x.shape[-2]), np.maximum(np.sum(real, -2, keepdims=True), 1))
    ordered = -np.sort(np.where(real, -x, np.inf), -2)
    shape = (*x.shape[:-2], 1, x.shape[-1])
    least = np.take_along_axis(ordered, np.broadcast_to(taken - 1, shape), -2)
    above, tied = real & (x > least), real & (x == least)
    share = (taken - np.sum(above, -2, keepdims=True)) / np.maximum(np.sum(tied, -2, keepdims=True), 1)
    result = np.sum(np.where(above, x / taken, 0) + np.where(tied, x * (share / taken), 0), -2)
    return np.where(np.any(np.isnan(x) & real, -2), np.nan, result)  # comparisons do not find NaN


@definition
def noisy_or_pooling(x, mask=None, *, lengths=None):
    r"""Computes the probability that at least one of independent events happens (noisy-or).

    .. math:: o_c = 1 - \prod_{l : k_l} (1 - x_{lc})

    A sequence has L tokens of width d; :math:`x_{lc}` is feature :math:`c` of token :math:`l`, the probability of one
    event. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding; :math:`l : k_l` are the real tokens. The
    gradient :math:`\prod_{j \ne l} (1 - x_{jc})`, over real tokens :math:`j`, is finite even where a probability is 1.

    Args:
      x: [..., L, d] tokens, probabilities from 0 to 1; the range is not checked.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.

    Returns:
      [..., d] pooled vectors; 0 in a fully masked row.

    Source:
      Maron and Lozano-Pérez 1997, section 2, noisy-or.

    >>> noisy_or_pooling([[0.5], [0.5], [0.9]], [True, True, False])
    array([0.75])

    Packed:

    >>> segment_noisy_or_pooling([[0.5], [0.25], [0.5]], [0, 1, 0], 2)
    array([[0.75],
           [0.25]])
    """
    return 1 - np.prod(1 - fill_padding(x, mask), -2)


@definition
def power_mean_pooling(x, mask=None, p=3.0, *, lengths=None, epsilon=1e-6):
    r"""Computes the power mean of the real values of each feature, clamped from below (GeM pooling).

    .. math:: o_c = \Big( \frac 1 N \sum_{l : k_l} y_{lc}^{\,p_c} \Big)^{1 / p_c}, \qquad y = \max(x, \epsilon)

    A sequence has L tokens of width d; :math:`x_{lc}` is feature :math:`c` of token :math:`l`. :math:`k_l` is 1 if
    token :math:`l` is real, 0 if it is padding; :math:`l : k_l` are the :math:`N` real tokens.

    p = 1 is the mean, 0 the geometric mean, -1 the harmonic mean, :math:`\infty` the largest value and :math:`-\infty`
    the smallest. The mean is computed from logarithms, so that powers do not overflow. Values below :math:`\epsilon`
    are replaced by :math:`\epsilon`, as in the source; for features with negative values take :func:`softmax_pooling`
    or :func:`logsumexp_pooling`. At :math:`x = \epsilon` the gradient is that of :math:`x > \epsilon`. With
    ``epsilon=0`` a value of 0 makes the result 0 if :math:`p \le 0`, and has gradient 0 unless p = 1. The derivative
    with respect to p is unspecified at p = 0.

    Args:
      x: [..., L, d] tokens.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      p: :math:`p`, a number, or [d] with one for each feature.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.
      epsilon: :math:`\epsilon`, a number of at least 0.

    Returns:
      [..., d] pooled vectors; 0 in a fully masked row.

    Source:
      Radenović, Tolias and Chum 2019, equation 3, GeM.

    >>> power_mean_pooling([[3.0], [4.0], [99.0]], [True, True, False], 2.0) ** 2
    array([12.5])

    Packed:

    >>> segment_power_mean_pooling([[1.0], [5.0], [7.0]], [0, 1, 0], 2, p=2.0)
    array([[5.],
           [5.]])
    """
    real = mask[..., None]
    with np.errstate(divide="ignore"):  # log(0) if epsilon is 0
        logarithms = np.log(np.maximum(np.where(real, x, 1), epsilon))
    mean = np.exp(mean_of_exponentials(logarithms, real, p, True))
    return np.where(np.any(real, -2), mean, 0)


@definition
def logsumexp_pooling(x, mask=None, scale=1.0, *, lengths=None, mean=True):
    r"""Computes the logarithm of the mean, or of the sum, of the exponentials of each feature (log-sum-exp pooling).

    .. math:: o_c = \frac{1}{r_c} \ln \Big( \frac 1 N \sum_{l : k_l} e^{r_c x_{lc}} \Big)

    A sequence has L tokens of width d; :math:`x_{lc}` is feature :math:`c` of token :math:`l`. :math:`k_l` is 1 if
    token :math:`l` is real, 0 if it is padding; :math:`l : k_l` are the :math:`N` real tokens.

    Without ``mean`` the factor :math:`1/N` is left out. With a large scale :math:`r` the result approaches the maximum,
    and at scale 0 it is the mean. Without ``mean`` a scale of 0 is an error (``attnpool_flax`` returns infinity from a
    JAX array, if there are several tokens). The derivative with respect to the scale is unspecified at scale 0.

    Args:
      x: [..., L, d] tokens.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      scale: :math:`r`, a number, or [d] with one for each feature.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.
      mean: divide the sum of the exponentials by the number of real tokens.

    Returns:
      [..., d] pooled vectors; 0 in a fully masked row.

    Source:
      Pinheiro and Collobert 2015, equation 4.

    >>> logsumexp_pooling([[0.0], [0.0], [99.0]], [True, True, False], 2.0)
    array([0.])

    Packed:

    >>> segment_logsumexp_pooling([[1.0], [5.0], [3.0]], [0, 1, 0], 2, scale=0.0)
    array([[2.],
           [5.]])
    """
    real = mask[..., None]
    return np.where(np.any(real, -2), mean_of_exponentials(x, real, scale, mean), 0)


@definition
def softmax_pooling(x, mask=None, scale=1.0, *, lengths=None, return_weights=False):
    r"""Averages the real values of each feature, weighted by the softmax of these values (AutoPool).

    .. math:: o_c = \sum_l w_{lc} x_{lc}, \qquad w_c = \mathrm{softmax}_{l : k_l}(r_c x_{lc})

    A sequence has L tokens of width d; :math:`x_{lc}` is feature :math:`c` of token :math:`l`. :math:`k_l` is 1 if
    token :math:`l` is real, 0 if it is padding; :math:`l : k_l` are the real tokens.

    At scale 0 the result is the mean, and with a large scale :math:`r` it approaches the maximum. It may fall when a
    token grows: :math:`\partial o_c / \partial x_{lc} = w_{lc} (1 + r_c (x_{lc} - o_c))` can be negative.

    Args:
      x: [..., L, d] tokens.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      scale: :math:`r`, a number, or [d] with one for each feature; the inverse of a temperature.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.
      return_weights: also return the weights.

    Returns:
      [..., d] averages; with ``return_weights`` a tuple of these and the weights [..., L, d]. Both are 0
      in a fully masked row.

    Source:
      McFee, Salamon and Bello 2018, section II-C; AutoPool with a learned scale.

    >>> softmax_pooling([[1.0], [3.0], [99.0]], [True, True, False], 0.0)
    array([2.])

    Packed:

    >>> segment_softmax_pooling([[1.0], [5.0], [3.0]], [0, 1, 0], 2, scale=0.0)
    array([[2.],
           [5.]])
    """
    real = mask[..., None]
    x, scale, unit = in_range(x, real, scale)
    weights = softmax_of_products(x, scale, real)
    with np.errstate(invalid="ignore"):  # 0 * inf is not selected
        pooled = unit * np.sum(np.where(weights == 0, 0, weights * x), -2)
    return (pooled, weights) if return_weights else pooled
