"""Mean, maximum, mean-max, first, last and weighted pooling."""

import numpy as np

from attnpool_ref.contract.definition import definition
from attnpool_ref.primitives import (
    fill_padding,
    first_position,
    joined,
    last_position,
    maximum,
    mean,
    shares,
    weighted_sum,
    zero_if_empty,
)


@definition
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

    Source:
      Reimers and Gurevych 2019, section 3, MEAN; without the lower bound that their code sets for the count.

    >>> mean_pooling([[1.0], [3.0], [99.0]], [True, True, False])
    array([2.])

    Packed:

    >>> segment_mean_pooling([[1.0], [5.0], [3.0]], [0, 1, 0], 2)
    array([[2.],
           [5.]])
    """
    return mean(fill_padding(x, mask), mask)


@definition
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

    Source:
      Reimers and Gurevych 2019, section 3, MAX.

    >>> max_pooling([[-1.0], [-3.0], [99.0]], [True, True, False])
    array([-1.])

    Packed:

    >>> segment_max_pooling([[1.0], [-5.0], [3.0]], [0, 1, 0], 2)
    array([[ 3.],
           [-5.]])
    """
    return maximum(x, mask)


@definition(selects=True)
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

    Source:
      Reimers and Gurevych 2019, section 3, CLS.

    >>> first_pooling([[99.0], [1.0], [2.0]], [False, True, True])
    array([1.])

    Packed:

    >>> segment_first_pooling([[1.0], [5.0], [3.0]], [0, 1, 0], 2)
    array([[1.],
           [5.]])
    """
    return _token_at(x, mask, first_position)


@definition(selects=True)
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

    Source:
      The last-token pooling of embedding models that are decoders, as in sentence-transformers (reimers2019).

    >>> last_pooling([[1.0], [2.0], [99.0]], [True, True, False])
    array([2.])

    Packed:

    >>> segment_last_pooling([[1.0], [5.0], [3.0]], [0, 1, 0], 2)
    array([[3.],
           [5.]])
    """
    return _token_at(x, mask, last_position)


def _token_at(x, mask, position):
    """Returns the token at ``position(mask)``, an index [...]; 0 in a fully masked row, and for sequences of length 0."""
    if x.shape[-2] == 0:
        return np.sum(x.astype(np.float64), -2)
    token = np.take_along_axis(x, position(mask)[..., None, None], -2)[..., 0, :].astype(np.float64)
    return zero_if_empty(token, mask)


@definition
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
    weights = fill_padding(np.ones(mask.shape) if weights is None else weights, mask)
    tokens = mask.ndim - 1  # the axis of tokens in weights [..., L] and in weights [..., L, d]
    return weighted_sum(shares(weights, tokens), fill_padding(x, mask))


@definition
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

    Source:
      Howard and Ruder 2018, section 3.3, concat pooling, without the last hidden state that the paper concatenates too.

    >>> mean_max_pooling([[1.0], [3.0], [99.0]], [True, True, False])
    array([2., 3.])

    Packed:

    >>> segment_mean_max_pooling([[1.0], [5.0], [3.0]], [0, 1, 0], 2)
    array([[2., 3.],
           [5., 5.]])
    """
    average = mean(fill_padding(x, mask), mask)
    return joined(average, maximum(x, mask))
