"""Mean, maximum, mean-max, first, last and weighted pooling."""

import functools

import numpy as np

from attnpool_ref.contract.definition import definition
from attnpool_ref.numerics.blocks import over_tokens
from attnpool_ref.numerics.rounding import power_of_two


@definition(as_they_come=["x"])
def mean_pooling(x, mask=None, *, lengths=None):
    r"""Averages the real tokens.

    .. math:: o = \frac 1 N \sum_{l : k_l} x_l, \qquad N = \sum_l k_l

    A sequence has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens.

    Args:
      x: [..., L, d] tokens.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.

    Returns:
      [..., d] pooled vectors; 0 in a fully masked row.

    Raises:
      ValueError: if shapes disagree, or if the mask has a float dtype.

    Source:
      Reimers and Gurevych 2019, section 3, MEAN; without the lower bound that their code sets for the count.

    >>> mean_pooling([[1.0], [3.0], [99.0]], [True, True, False])
    array([2.])

    Packed:

    >>> segment_mean_pooling([[1.0], [5.0], [3.0]], [0, 1, 0], 2)
    array([[2.],
           [5.]])
    """
    count = np.maximum(np.sum(mask, -1), 1)[..., None]
    part = 2 * power_of_two(count)  # division is exact; sums of large numbers would overflow

    def share(x, mask, part):
        return np.where(mask[..., None], x, 0) / part

    return over_tokens(np.sum, share, x, mask, part[..., None, :]) / (count / part)


@definition(as_they_come=["x"])
def max_pooling(x, mask=None, *, lengths=None):
    r"""Takes the largest real value of each feature.

    .. math:: o_c = \max_{l : k_l} x_{lc}

    A sequence has L tokens of width d; :math:`x_{lc}` is feature :math:`c` of token :math:`l`. :math:`k_l` is 1 if
    token :math:`l` is real, 0 if it is padding; :math:`l : k_l` are the real tokens. Tokens that tie for the largest
    value share the gradient evenly.

    Args:
      x: [..., L, d] tokens.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.

    Returns:
      [..., d] pooled vectors; 0 in a fully masked row, but -inf if all real values are -inf.

    Raises:
      ValueError: if shapes disagree, or if the mask has a float dtype.

    Source:
      Reimers and Gurevych 2019, section 3, MAX.

    >>> max_pooling([[-1.0], [-3.0], [99.0]], [True, True, False])
    array([-1.])

    Packed:

    >>> segment_max_pooling([[1.0], [-5.0], [3.0]], [0, 1, 0], 2)
    array([[ 3.],
           [-5.]])
    """

    def real(x, mask):
        return np.where(mask[..., None], x, -np.inf)

    largest = over_tokens(functools.partial(np.max, initial=-np.inf), real, x, mask)
    return np.where(np.any(mask, -1)[..., None], largest, 0)


@definition(as_they_come=["x"])
def first_pooling(x, mask=None, *, lengths=None):
    r"""Takes the first real token, on whichever side the padding is.

    .. math:: o = x_l, \qquad l = \min \{ l : k_l \}

    A sequence has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens.

    Args:
      x: [..., L, d] tokens.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.

    Returns:
      [..., d] pooled vectors; 0 in a fully masked row.

    Raises:
      ValueError: if shapes disagree, or if the mask has a float dtype.

    Source:
      Reimers and Gurevych 2019, section 3, CLS.

    >>> first_pooling([[99.0], [1.0], [2.0]], [False, True, True])
    array([1.])

    Packed:

    >>> segment_first_pooling([[1.0], [5.0], [3.0]], [0, 1, 0], 2)
    array([[1.],
           [5.]])
    """
    return _token_at(x, mask, lambda: np.argmax(mask, -1))


@definition(as_they_come=["x"])
def last_pooling(x, mask=None, *, lengths=None):
    r"""Takes the last real token, on whichever side the padding is.

    .. math:: o = x_l, \qquad l = \max \{ l : k_l \}

    A sequence has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens.

    Args:
      x: [..., L, d] tokens.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.

    Returns:
      [..., d] pooled vectors; 0 in a fully masked row.

    Raises:
      ValueError: if shapes disagree, or if the mask has a float dtype.

    Source:
      The last-token pooling of embedding models that are decoders, as in sentence-transformers (reimers2019).

    >>> last_pooling([[1.0], [2.0], [99.0]], [True, True, False])
    array([2.])

    Packed:

    >>> segment_last_pooling([[1.0], [5.0], [3.0]], [0, 1, 0], 2)
    array([[3.],
           [5.]])
    """
    return _token_at(x, mask, lambda: mask.shape[-1] - 1 - np.argmax(mask[..., ::-1], -1))


def _token_at(x, mask, position):
    """Returns the token at ``position()``, an index [...]; 0 in a fully masked row, and for sequences of length 0."""
    if x.shape[-2] == 0:
        return np.sum(x.astype(np.float64), -2)
    token = np.take_along_axis(x, position()[..., None, None], -2)[..., 0, :].astype(np.float64)
    return np.where(np.any(mask, -1)[..., None], token, 0)


@definition(as_they_come=["x"])
def weighted_pooling(x, weights=None, mask=None, *, lengths=None):
    r"""Averages the real tokens under given weights.

    .. math:: o_c = \frac{\sum_{l : k_l} w_{lc} x_{lc}}{\sum_{l : k_l} w_{lc}}

    A sequence has L tokens of width d; :math:`x_{lc}` is feature :math:`c` of token :math:`l`. :math:`k_l` is 1 if
    token :math:`l` is real, 0 if it is padding; :math:`l : k_l` are the real tokens. :math:`w_{lc}` is the
    weight of :math:`x_{lc}`; it is the same for all features if the weights have no axis of features.

    Weights may be negative. If those of the real tokens sum to exactly 0, the result is 0; with weights for each
    feature, only that feature is 0. Weights at padding are never read.

    Args:
      x: [..., L, d] tokens.
      weights: [L], shared by all examples; [..., L], for each example; or [..., L, d], for each feature. The number of
        axes, compared with that of x, decides which. None gives the mean.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.

    Returns:
      [..., d] pooled vectors; 0 in a fully masked row, or if the weights sum to exactly 0.

    Raises:
      ValueError: if shapes disagree, if the mask has a float dtype, or if the weights are boolean (then they are
        probably a mask).

    Source:
      Muennighoff 2022 (SGPT), section 3.2, with any weights instead of the positions.

    >>> weighted_pooling([[1.0], [4.0], [99.0]], [2.0, 1.0, 5.0], [True, True, False])
    array([2.])

    Packed:
      weights: [N], or [N, d] for each feature; the number of axes decides which. None gives the mean.

    >>> segment_weighted_pooling([[1.0], [5.0], [4.0]], [0, 1, 0], 2, [2.0, 3.0, 1.0])
    array([[2.],
           [5.]])
    """
    if weights is None or weights.ndim < x.ndim:
        weights = np.where(mask, 1.0 if weights is None else weights, 0)[..., None]
    weights = np.where(mask[..., None], weights, 0)
    weights = weights / power_of_two(np.max(np.abs(weights), -2, keepdims=True, initial=0))  # the sum may overflow
    total = np.sum(weights, -2, keepdims=True)
    weights = np.where(total == 0, 0, weights / np.where(total == 0, 1, total))
    return weighted_average(weights, x, mask)


def weighted_average(weights, x, mask):
    """Sums tokens times weights [..., L, 1] or [..., L, d], which must be 0 at padding."""

    def share(x, weights, mask):
        return weights * np.where(mask[..., None], x, 0)

    return over_tokens(np.sum, share, x, weights, mask)


@definition(as_they_come=["x"])
def mean_max_pooling(x, mask=None, *, lengths=None):
    r"""Concatenates the mean and the maximum of the real tokens (concat pooling).

    .. math:: o = \Big[ \frac 1 N \sum_{l : k_l} x_l \; ; \; \max_{l : k_l} x_l \Big], \qquad N = \sum_l k_l

    A sequence has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the :math:`N` real tokens. The maximum is that of each feature, and comes after the mean. In
    fastai's ``AdaptiveConcatPool2d`` and in the classifier of ULMFiT the mean comes after the maximum; ULMFiT puts the
    last token before both.

    Args:
      x: [..., L, d] tokens.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.

    Returns:
      [..., 2d]: the mean, then the maximum; 0 for a fully masked row.

    Raises:
      ValueError: if shapes disagree, or if the mask has a float dtype.

    Source:
      Howard and Ruder 2018, section 3.3, concat pooling, without the last hidden state that the paper concatenates too.

    >>> mean_max_pooling([[1.0], [3.0], [99.0]], [True, True, False])
    array([2., 3.])

    Packed:

    >>> segment_mean_max_pooling([[1.0], [5.0], [3.0]], [0, 1, 0], 2)
    array([[2., 3.],
           [5., 5.]])
    """
    return np.concatenate([mean_pooling(x, mask), max_pooling(x, mask)], -1)
