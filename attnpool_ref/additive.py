"""Additive pooling: an MLP with one hidden layer scores each token from that token only, without a query."""

import numpy as np

from attnpool_ref.contract.definition import definition
from attnpool_ref.normalizers import normalize
from attnpool_ref.numerics.activations import OF_SCORES
from attnpool_ref.primitives import drop, fill_padding, gated


@definition
def additive_attention_pooling(
    x,
    mask=None,
    *,
    lengths=None,
    kernel,
    out_kernel,
    bias=None,
    gate_kernel=None,
    gate_bias=None,
    out_bias=None,
    value=None,
    activation="tanh",
    normalizer="softmax",
    sink=None,
    dropout_multiplier=None,
    return_weights=False,
):
    r"""Pools each bag of instances by additive or gated attention (ABMIL), with one or several hops.

    .. math:: o_i = \sum_l w_{il} v_l, \qquad w_i = \mathrm{softmax}_{l : k_l}(s_{il}), \qquad
              s_{il} = u_l \cdot K_i + c_i, \qquad u_l = \phi(x_l W + b) \odot \sigma(x_l U + g)

    A bag is a sequence of L tokens (instances) :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0
    if it is padding; :math:`l : k_l` are the real tokens.

    A hop :math:`i` is one set of weights :math:`w_i` over the tokens; :math:`K_i` is column :math:`i` of
    ``out_kernel``. :math:`\phi` is the activation and :math:`\sigma` the sigmoid; without ``gate_kernel`` the factor
    :math:`\sigma(\cdot)` is 1. :math:`v_l` is row :math:`l` of ``value``, or token :math:`l` without ``value``. In a
    softmax the constant :math:`c_i` cancels. With one hop, no gate, and the default activation and normalizer, the
    result equals that of :func:`additive_attention` for one query of 0.

    Args:
      x: [..., L, d] tokens.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.
      kernel: :math:`W`: [d, h], with h hidden units; the paper's :math:`V` transposed.
      out_kernel: :math:`K`: [h] for one hop; [h, n] for n hops, for example one for each class.
      bias: [h], :math:`b`, or None.
      gate_kernel: [d, h], :math:`U`, or None; the paper's :math:`U` transposed.
      gate_bias: [h], :math:`g`, or None; only with ``gate_kernel``.
      out_bias: :math:`c`: a number, or [n] with n hops; or None.
      value: [..., L, v] the values to average, of width v, or None for the tokens.
      activation: :math:`\phi`: "tanh", "relu", "gelu" (exact) or "identity".
      normalizer: "softmax", "sparsemax", "entmax15", "sigmoid" (with which :math:`c` does not cancel, and the weights
        do not sum to 1), "hardmax", or a function (scores, mask) -> weights, as described in :func:`attend`.
      sink: broadcastable to [...], with n hops [..., n], a score in the denominator of the softmax only (attention sink; 0 is "softmax off
        by one"), or None. It is neither scaled nor biased, and does not affect the result's dtype.
      dropout_multiplier: broadcastable to [..., L], with n hops [..., n, L], or None; dropout factors of the weights, 0
        or ``1/(1 - rate)``.
      return_weights: also return the weights before dropout.

    Returns:
      [..., v] averages, or [..., n, v] with n hops; with ``return_weights`` a tuple of these and the
      weights, [..., L] or [..., n, L]. All are 0 in a fully masked row.

    Source:
      Ilse et al. 2018, equations 8 and 9; with n hops Lin et al. 2017, equation 6, and CLAM's branch for each class.

    >>> x, kernel = [[1.0, 0.0], [3.0, 0.0], [9.0, 9.0]], np.zeros((2, 4))
    >>> additive_attention_pooling(x, [True, True, False], kernel=kernel, out_kernel=np.ones(4))
    array([2., 0.])

    Packed:
      ValueError: if shapes disagree, if the mask has a float dtype, if ``gate_bias`` is given without ``gate_kernel``,
        or if the activation or the normalizer is unknown.

    >>> x, kernel = [[1.0, 0.0], [9.0, 9.0], [3.0, 0.0]], np.zeros((2, 4))
    >>> segment_additive_attention_pooling(x, [0, 1, 0], 2, kernel=kernel, out_kernel=np.ones(4))
    array([[2., 0.],
           [9., 9.]])
    """
    parameters = kernel, out_kernel, bias, gate_kernel, gate_bias, out_bias, activation
    x = fill_padding(x, mask)
    value = x if value is None else fill_padding(value, mask)
    scores = additive_scores(x, *parameters)
    mask = np.broadcast_to(mask[..., None, :], scores.shape)
    sink = None if sink is None else np.reshape(sink, scores.shape[:-1])
    weights = normalize(scores, mask, normalizer, sink)
    multiplier = None if dropout_multiplier is None else np.reshape(dropout_multiplier, scores.shape)
    pooled = drop(weights, multiplier, mask) @ value
    if out_kernel.ndim == 1:
        pooled, weights = pooled[..., 0, :], weights[..., 0, :]
    return (pooled, weights) if return_weights else pooled


def additive_scores(x, kernel, out_kernel, bias, gate_kernel, gate_bias, out_bias, activation):
    """Returns the scores [..., n, L] of n hops; n is 1 for an ``out_kernel`` [h]. The tokens must be 0 at padding.

    The arguments are those of :func:`additive_attention_pooling`.
    """
    hidden = OF_SCORES[activation](x @ kernel + (0 if bias is None else bias))
    if gate_kernel is not None:
        hidden = gated(hidden, x @ gate_kernel + (0 if gate_bias is None else gate_bias))
    scores = hidden @ np.reshape(out_kernel, (len(out_kernel), -1)) + (0 if out_bias is None else out_bias)
    return np.swapaxes(scores, -1, -2)


@definition
def attention_penalty(weights):
    r"""Computes a penalty on the weights of n hops: 0 if each hop puts all its weight on a token of its own.

    .. math:: p = \big\lVert A A^\top - I \big\rVert_F^2

    Row :math:`i` of :math:`A` holds the weights of hop :math:`i`. :math:`I` is the identity, except that it is 0 in
    rows where :math:`A` is all 0, so that a fully masked row has penalty 0. In a loss, average the penalties over the
    batch and multiply by a coefficient.

    Args:
      weights: [..., n, L] weights of n hops over L tokens, :math:`A`, as a pooling returns them with
        ``return_weights``.

    Returns:
      [...]: one penalty for each example.

    Raises:
      ValueError: if the weights are boolean (then they are probably a mask).

    Source:
      Lin et al. 2017, equation 8.

    >>> attention_penalty([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    array(0.25)
    """
    products = weights @ np.swapaxes(weights, -1, -2)
    products = products - np.eye(weights.shape[-2]) * np.any(weights != 0, -1)[..., None]
    return np.sum(products**2, (-1, -2))
