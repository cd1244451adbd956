"""Statistics pooling: mean and standard deviation of the tokens, with given or learned weights."""

import numpy as np

from attnpool_ref.contract.definition import definition
from attnpool_ref.numerics.activations import OF_SCORES
from attnpool_ref.primitives import fill_padding, joined, moments, softmax


@definition
def std_pooling(x, mask=None, weights=None, *, lengths=None, ddof=0, epsilon=0.0):
    r"""Computes the standard deviation of the real tokens, feature by feature.

    .. math:: \sigma = \sqrt{\frac{\sum_{l : k_l} w_l (x_l - \mu)^2}{W - \delta W_2 / W}}, \qquad
              \mu = \frac 1 W \sum_{l : k_l} w_l x_l, \quad W = \sum_{l : k_l} w_l, \quad W_2 = \sum_{l : k_l} w_l^2

    A sequence has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens.

    If the fraction under the root, the variance, is at most :math:`\epsilon`, the result is :math:`\sqrt\epsilon`, with
    gradient 0. The variance is 0 for equal tokens, for a single token with any ``ddof``, and if the denominator is not
    positive.

    Args:
      x: [..., L, d] tokens.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      weights: at least 0, which is not checked. The number of axes decides: [L], shared by all examples; [..., L], one
        axis less than x; [..., L, d], as many as x, with a weight for each feature. None gives each token weight 1.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.
      ddof: :math:`\delta`, a number; 1 divides by the number of real tokens minus 1, if there are no weights.
      epsilon: :math:`\epsilon`, a number: the minimum of the variance.

    Returns:
      [..., d] pooled vectors; 0 in a fully masked row, or if the weights sum to 0.

    Source:
      Snyder et al. 2018, section 2.1, the second half of the statistics pooling layer.

    >>> std_pooling([[1.0], [3.0], [99.0]], [True, True, False])
    array([1.])

    Packed:
      weights: at least 0: [N], or [N, d] with a weight for each feature. None is 1.

    >>> segment_std_pooling([[1.0], [5.0], [3.0]], [0, 1, 0], 2)
    array([[1.],
           [0.]])
    """
    return moments(x, mask, weights, ddof, epsilon)[1]


@definition
def statistics_pooling(x, mask=None, weights=None, *, lengths=None, ddof=0, epsilon=0.0):
    r"""Computes mean and standard deviation of the real tokens, concatenated (statistics pooling, x-vectors).

    .. math:: o = [\mu; \sigma], \qquad \mu = \frac 1 W \sum_{l : k_l} w_l x_l, \quad
              \sigma = \sqrt{\frac{\sum_{l : k_l} w_l (x_l - \mu)^2}{W - \delta W_2 / W}}, \quad
              W = \sum_{l : k_l} w_l, \quad W_2 = \sum_{l : k_l} w_l^2

    A sequence has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens. :math:`\sigma` is the result of :func:`std_pooling`.

    Args:
      x: [..., L, d] tokens.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      weights: at least 0, which is not checked. The number of axes decides: [L], shared by all examples; [..., L], one
        axis less than x; [..., L, d], as many as x, with a weight for each feature. None gives each token weight 1.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.
      ddof: :math:`\delta`, a number; 1 divides by the number of real tokens minus 1, if there are no weights.
      epsilon: :math:`\epsilon`, a number: the minimum of the variance.

    Returns:
      [..., 2d] pooled vectors; 0 in a fully masked row, or if the weights sum to 0.

    Source:
      Snyder et al. 2018, section 2.1, the statistics pooling layer.

    >>> statistics_pooling([[1.0], [3.0], [99.0]], [True, True, False])
    array([2., 1.])

    Packed:
      weights: at least 0: [N], or [N, d] with a weight for each feature. None is 1.

    >>> segment_statistics_pooling([[1.0], [5.0], [3.0]], [0, 1, 0], 2)
    array([[2., 1.],
           [5., 0.]])
    """
    return joined(*moments(x, mask, weights, ddof, epsilon))


@definition
def attentive_statistics_pooling(
    x,
    mask=None,
    *,
    lengths=None,
    kernel,
    out_kernel,
    bias=None,
    out_bias=None,
    norm_scale=None,
    norm_bias=None,
    activation="tanh",
    global_context=False,
    context_ddof=0,
    epsilon=0.0,
    return_weights=False,
):
    r"""Computes mean and standard deviation, weighting tokens by the attention of a small network (ASP, ECAPA-TDNN).

    .. math:: o = [\mu; \sigma], \qquad w = \mathrm{softmax}_{l : k_l}(a(u_l W + b) V), \qquad
              \mu = \sum_l w_l x_l, \quad \sigma = \sqrt{\sum_l w_l (x_l - \mu)^2}

    A sequence has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens.

    :math:`u_l` is the token :math:`x_l`; with ``global_context`` it is the concatenation of the token and of mean and
    standard deviation of its sequence. :math:`a` is the activation. With ``norm_scale`` the scores are
    :math:`\tanh(\gamma\, \mathrm{relu}(u_l W + b) + \beta) V`, where :math:`\gamma` and :math:`\beta` are a frozen
    batch normalization. ``out_bias`` is ignored, because a constant added to all scores cancels.

    Args:
      x: [..., L, d] tokens.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.
      kernel: [d, h], :math:`W`, for h hidden units; [3d, h] with ``global_context``, for token, mean and standard
        deviation.
      out_kernel: :math:`V`: [h] for one weight per token, [h, d] for one per token and feature.
      bias: [h], :math:`b`, or None.
      out_bias: a number or [d], or None.
      norm_scale: [h], :math:`\gamma`, or None; only with the activation "tanh".
      norm_bias: [h], :math:`\beta`, or None; only with ``norm_scale``.
      activation: :math:`a`: "tanh", "relu", "gelu" (by the error function) or "identity".
      global_context: score each token together with the statistics of its sequence.
      context_ddof: the ``ddof`` of the statistics of ``global_context``, a number, as in :func:`std_pooling`.
      epsilon: the minimum of both variances, that of the result and that of the context, a number.
      return_weights: also return the weights.

    Returns:
      [..., 2d] pooled vectors; with ``return_weights`` a tuple of these and the weights, [..., L], or
      [..., L, d] for each feature. Both are 0 in a fully masked row.

    Raises:
      ValueError: if shapes disagree, if the mask has a float dtype, if the activation is unknown, if ``norm_scale`` is
        given with another activation than "tanh", or if ``norm_bias`` is given without ``norm_scale``.

    Source:
      Okabe et al. 2018, section 2.3; Desplanques et al. 2020, section 3.1, for a weight per feature and the context.

    >>> kernels = {"kernel": [[0.0]], "out_kernel": [1.0]}
    >>> attentive_statistics_pooling([[1.0], [3.0], [99.0]], [True, True, False], **kernels)
    array([2., 1.])

    Packed:

    >>> kernels = {"kernel": [[0.0]], "out_kernel": [1.0]}
    >>> segment_attentive_statistics_pooling([[1.0], [5.0], [3.0]], [0, 1, 0], 2, **kernels)
    array([[2., 1.],
           [5., 0.]])
    """
    x = tokens = fill_padding(x, mask)
    if global_context:
        whole = joined(*moments(x, mask, None, context_ddof, epsilon))[..., None, :]
        tokens = joined(x, np.broadcast_to(whole, (*x.shape[:-1], whole.shape[-1])))
    scores = scores_of(tokens, kernel, bias, norm_scale, norm_bias, activation, out_kernel)
    if out_kernel.ndim == 1:
        weights = softmax(scores, mask)
    else:
        weights = softmax(scores, mask[..., None], -2)
    pooled = joined(*moments(x, mask, weights, 0.0, epsilon))
    return (pooled, weights) if return_weights else pooled


def scores_of(tokens, kernel, bias, norm_scale, norm_bias, activation, out_kernel):
    """Computes the scores of attentive statistics, [..., L] or [..., L, d]. The tokens must be 0 at padding.

    The other arguments are those of :func:`attentive_statistics_pooling`.
    """
    hidden = tokens @ kernel + (0 if bias is None else bias)
    if norm_scale is not None:
        hidden = norm_scale * np.maximum(hidden, 0) + (0 if norm_bias is None else norm_bias)
    return OF_SCORES[activation](hidden) @ out_kernel
