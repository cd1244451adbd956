"""Readouts: pooling functions of a set that do more than average its tokens once."""

import numpy as np

from attnpool_ref.attention import multi_head_attention
from attnpool_ref.contract.definition import definition
from attnpool_ref.layers import feed_forward, layer_norm
from attnpool_ref.pooling import attention_pooling
from attnpool_ref.primitives import (
    fill_padding,
    gated,
    joined,
    log_softmax,
    mean,
    sigmoid,
    sums_of_residuals,
    tanh,
    unit_vector,
    vecmat,
)


@definition
def latent_attention_pooling(
    x,
    mask=None,
    *,
    lengths=None,
    latents,
    query_kernel,
    key_kernel,
    value_kernel,
    out_kernel,
    mlp_kernel,
    mlp_out_kernel,
    mlp_bias=None,
    mlp_out_bias=None,
    norm_scale=None,
    norm_bias=None,
    latent_norm_scale=None,
    latent_norm_bias=None,
    mlp_norm_scale=None,
    mlp_norm_bias=None,
    epsilon=1e-5,
):
    r"""Transforms each token by cross-attention to learned latents and an MLP, then averages the tokens (NV-Embed).

    .. math:: h_l = x_l + \sum_h \mathrm{softmax}_r\Big(\frac{(\mathrm{LN}(x_l) W_q^h) \cdot
              (\mathrm{LN}(z_r) W_k^h)}{\sqrt c}\Big) (\mathrm{LN}(z_r) W_v^h) W_o^h

    .. math:: o = \frac 1 N \sum_{l : k_l} \big(h_l + (u_l \circ \mathrm{gelu}(g_l)) G_2 + b_2\big), \qquad
              [u_l ; g_l] = \mathrm{LN}(h_l) G_1 + b_1

    A sequence has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the :math:`N` real tokens. LN is :func:`layer_norm`, and :math:`\circ` the elementwise product.
    The sum over :math:`h` runs over H heads, and the softmax over the latents :math:`z_r`.

    Tokens are the queries, and latents the keys and values; many reimplementations exchange the two. No token affects
    another one before the mean. The source then divides the result by its norm (:func:`l2_normalize`). In a fully
    masked row the result is 0, and no parameter has a gradient.

    Args:
      x: [..., L, d] tokens.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.
      latents: [r, e] r latents of width e, :math:`z`.
      query_kernel: [d, H, c], :math:`W_q`, for H heads of width c.
      key_kernel: [e, H, c], :math:`W_k`.
      value_kernel: [e, H, c'], :math:`W_v`, for values of width c'.
      out_kernel: [H, c', d], :math:`W_o`.
      mlp_kernel: [d, 2f], :math:`G_1`, for f hidden units; its first f columns compute :math:`u`, the others :math:`g`.
      mlp_out_kernel: [f, d], :math:`G_2`.
      mlp_bias: [2f], :math:`b_1`, or None.
      mlp_out_bias: [d], :math:`b_2`, or None.
      norm_scale: [d], scale of the tokens' :func:`layer_norm`, 1 if None.
      norm_bias: [d], its bias, 0 if None; only with ``norm_scale``.
      latent_norm_scale: [e], scale of the latents' layer normalization, 1 if None.
      latent_norm_bias: [e], its bias, 0 if None; only with ``latent_norm_scale``.
      mlp_norm_scale: [d], scale of the layer normalization before the MLP, 1 if None.
      mlp_norm_bias: [d], its bias, 0 if None; only with ``mlp_norm_scale``.
      epsilon: the epsilon of all three layer normalizations, a number.

    Returns:
      [..., d] pooled vectors; 0 in a fully masked row.

    Raises:
      ValueError: if shapes disagree, if the mask has a float dtype, or if a norm has a bias without a scale.

    Source:
      Lee et al. 2025, section 3.1, and the authors' ``modeling_nvembed.py`` (lee2025).

    >>> parameters = {
    ...     "latents": [[1.0, -1.0]],
    ...     "query_kernel": np.eye(2)[:, None],
    ...     "key_kernel": np.eye(2)[:, None],
    ...     "value_kernel": np.eye(2)[:, None],
    ...     "out_kernel": np.eye(2)[None],
    ...     "mlp_kernel": np.zeros((2, 2)),
    ...     "mlp_out_kernel": np.zeros((1, 2)),
    ...     "epsilon": 0.0,
    ... }
    >>> latent_attention_pooling([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]], [True, True, False], **parameters)
    array([3., 2.])

    Packed:

    >>> parameters = {
    ...     "latents": [[1.0, -1.0]],
    ...     "query_kernel": np.eye(2)[:, None],
    ...     "key_kernel": np.eye(2)[:, None],
    ...     "value_kernel": np.eye(2)[:, None],
    ...     "out_kernel": np.eye(2)[None],
    ...     "mlp_kernel": np.zeros((2, 2)),
    ...     "mlp_out_kernel": np.zeros((1, 2)),
    ...     "epsilon": 0.0,
    ... }
    >>> segment_latent_attention_pooling([[1.0, 2.0], [9.0, 8.0], [3.0, 4.0]], [0, 1, 0], 2, **parameters)
    array([[ 3.,  2.],
           [10.,  7.]])
    """
    x = fill_padding(x, mask)
    known = layer_norm.body(latents, latent_norm_scale, latent_norm_bias, epsilon=epsilon)
    known = np.tile(known, (*mask.shape[:-1], 1, 1))
    asked = multi_head_attention.body(
        layer_norm.body(x, norm_scale, norm_bias, epsilon=epsilon),
        known,
        known,
        np.ones((*mask.shape, len(latents)), bool),
        query_kernel=query_kernel,
        key_kernel=key_kernel,
        value_kernel=value_kernel,
        out_kernel=out_kernel,
    )
    norm = mlp_norm_scale, mlp_norm_bias, epsilon
    mapped = feed_forward(x + asked, mlp_kernel, mlp_bias, mlp_out_kernel, mlp_out_bias, norm, "geglu")
    return mean(fill_padding(mapped, mask), mask)


@definition
def set2set_pooling(
    x, mask=None, *, lengths=None, input_kernel, recurrent_kernel, bias, num_steps, return_weights=False
):
    r"""Pools a set by reading it several times with an LSTM, whose hidden state is the query (Set2Set).

    .. math:: z = q^* W + h R + b, \qquad c \leftarrow \sigma(z_f) \circ c + \sigma(z_i) \circ \tanh(z_g), \qquad
              h \leftarrow \sigma(z_o) \circ \tanh(c)

    .. math:: a = \mathrm{softmax}_{l : k_l}(x_l \cdot h), \qquad q^* \leftarrow \Big[h ; \sum_l a_l x_l\Big]

    A sequence has L tokens :math:`x_l` of width d, whose order does not matter. :math:`k_l` is 1 if token :math:`l` is
    real, 0 if it is padding; :math:`l : k_l` are the real tokens. :math:`q^* = h = c = 0` at the start; each step
    computes the gates :math:`z = (z_i, z_f, z_g, z_o)`, then the formulas from left to right, with :math:`\sigma` the
    sigmoid and :math:`\circ` the elementwise product. Products are not scaled. In a fully masked row both halves of the
    result are 0, and no parameter has a gradient.

    Args:
      x: [..., L, d] tokens.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.
      input_kernel: [2d, 4d], :math:`W`; its columns are the gates i, f, g, o, each of width d.
      recurrent_kernel: [d, 4d], :math:`R`.
      bias: [4d], :math:`b`; the sum of the two biases of ``torch.nn.LSTM``.
      num_steps: the number of LSTM steps, an integer of at least 1.
      return_weights: also return the weights of the last step.

    Returns:
      [..., 2d], the last :math:`q^*`; with ``return_weights`` a tuple of this and the weights [..., L].
      Both are 0 in a fully masked row.

    Source:
      Vinyals et al. 2016, equations 3 to 7 (vinyals2016), as PyTorch Geometric's ``Set2Set``.

    >>> parameters = {"input_kernel": np.zeros((2, 4)), "recurrent_kernel": np.zeros((1, 4)), "bias": np.zeros(4)}
    >>> set2set_pooling([[1.0], [3.0], [99.0]], [True, True, False], **parameters, num_steps=2)
    array([0., 2.])

    Packed:

    >>> parameters = {"input_kernel": np.zeros((2, 4)), "recurrent_kernel": np.zeros((1, 4)), "bias": np.zeros(4)}
    >>> segment_set2set_pooling([[1.0], [5.0], [3.0]], [0, 1, 0], 2, **parameters, num_steps=2)
    array([[0., 2.],
           [0., 5.]])
    """
    x = fill_padding(x, mask)
    state = np.zeros((*x.shape[:-2], x.shape[-1]))
    hidden, read = state, joined(state, state)
    weights = np.zeros(mask.shape)
    for _ in range(num_steps):
        gates = vecmat(read, input_kernel) + vecmat(hidden, recurrent_kernel) + bias
        i, f, g, o = np.split(gates, 4, -1)
        state = sigmoid(f) * state + sigmoid(i) * tanh(g)
        hidden = sigmoid(o) * tanh(state)
        pooled, weights = attention_pooling.body(x, mask, hidden, scale=1.0, return_weights=True)
        read = joined(hidden, pooled)
    read = np.where(np.any(weights != 0, -1)[..., None], read, 0)
    return (read, weights) if return_weights else read


@definition
def gated_sum_pooling(x, mask=None, *, lengths=None, gate_kernel, value_kernel, gate_bias=None, value_bias=None):
    r"""Sums a gated projection of each real token (the readout of gated graph networks).

    .. math:: o = \sum_{l : k_l} \sigma(x_l W_g + b_g) \odot \tanh(x_l W_v + b_v)

    A sequence has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens. :math:`\sigma` is the sigmoid, and :math:`\odot` the elementwise product. In
    the paper :math:`x_l` is the concatenation of a node's final state and its annotation; pass that as ``x``. The
    paper's outer tanh is left out.

    Args:
      x: [..., L, d] tokens.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.
      gate_kernel: [d, o], :math:`W_g`, for o features of the result; the paper's network i.
      value_kernel: [d, o], :math:`W_v`; the paper's network j.
      gate_bias: [o], :math:`b_g`, or None.
      value_bias: [o], :math:`b_v`, or None.

    Returns:
      [..., o] pooled vectors; 0 for a fully masked row.

    Source:
      Li et al. 2016, equation 7, without its outer tanh.

    >>> x, mask = [[1.0], [3.0], [99.0]], [True, True, False]
    >>> gated_sum_pooling(x, mask, gate_kernel=[[0.0]], value_kernel=[[1.0]]).round(6)
    array([0.878324])

    Packed:

    >>> kernels = {"gate_kernel": [[0.0]], "value_kernel": [[1.0]]}
    >>> segment_gated_sum_pooling([[1.0], [0.0], [3.0]], [0, 1, 0], 2, **kernels).round(6)
    array([[0.878324],
           [0.      ]])
    """
    x = fill_padding(x, mask)
    gate = x @ gate_kernel + (0 if gate_bias is None else gate_bias)
    value = tanh(x @ value_kernel + (0 if value_bias is None else value_bias))
    return np.sum(fill_padding(gated(value, gate), mask), -2)


@definition
def vlad_pooling(
    x,
    mask=None,
    *,
    lengths=None,
    assign_kernel,
    centers,
    assign_bias=None,
    normalize=True,
    return_weights=False,
):
    r"""Sums the residuals of tokens to cluster centers under soft assignments (NetVLAD, GhostVLAD).

    .. math:: V_j = \sum_{l : k_l} a_{lj} (x_l - c_j), \qquad a_l = \mathrm{softmax}(x_l W + b)

    A sequence has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens. :math:`j` counts the clusters, over which the softmax of a token runs. Clusters
    without a center are ghosts: each token has a weight in them, but they have no result. With ``normalize`` each
    :math:`V_j` is divided by its norm, then all of :math:`V` by its norm; zero vectors stay 0. The weights of a cluster
    are computed relative to its largest weight, because those of a distant cluster would underflow to 0.

    Args:
      x: [..., L, d] tokens; the source divides each by its norm (:func:`l2_normalize`) first.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.
      assign_kernel: [d, K+G], :math:`W`, for K clusters and G ghosts, which have the last columns.
      centers: [K, d], :math:`c`, the centers of the clusters.
      assign_bias: [K+G], :math:`b`, or None.
      normalize: divide by the norms, as described above.
      return_weights: also return the weights :math:`a`, without the ghosts.

    Returns:
      [..., K, d], :math:`V`; with ``return_weights`` a tuple of this and the weights [..., L, K]. Both
      are 0 in a fully masked row.

    Source:
      Arandjelović et al. 2016, equation 4 (arandjelovic2016), and Zhong et al. 2018 (GhostVLAD) for the ghosts.

    >>> vlad_pooling([[1.0], [4.0], [99.0]], [True, True, False], assign_kernel=[[0.0]], centers=[[2.0]], normalize=False)
    array([[1.]])

    Packed:

    >>> parameters = {"assign_kernel": [[0.0]], "centers": [[2.0]]}
    >>> segment_vlad_pooling([[1.0], [5.0], [4.0]], [0, 1, 0], 2, **parameters, normalize=False)
    array([[[1.]],
    <BLANKLINE>
           [[3.]]])
    """
    x = fill_padding(x, mask)
    logarithms = log_weights(x, mask, assign_kernel, assign_bias)[..., : len(centers)]
    top, unit = largest_weight(logarithms)
    residuals = sums_of_residuals(np.exp(logarithms - unit), x, centers)
    result = normalized(residuals) if normalize else np.exp(top)[..., None] * residuals
    return (result, np.exp(logarithms)) if return_weights else result


def log_weights(x, mask, assign_kernel, assign_bias):
    """Computes the logarithms of the weights a [..., L, K+G] of all clusters and ghosts; -inf at padding."""
    scores = x @ assign_kernel + (0 if assign_bias is None else assign_bias)
    return log_softmax(scores, np.broadcast_to(mask[..., None], scores.shape))


def largest_weight(logarithms):
    """Returns the logarithm of each cluster's largest weight, [..., K], and what its weights are relative to.

    The latter is the former with an axis for the tokens, and 0 in place of -inf. The weights of a distant cluster
    would underflow to 0 if they were not relative to the largest of them, and its residuals have a direction.
    """
    top = np.max(logarithms, -2, initial=-np.inf)
    return top, np.where(top == -np.inf, 0, top)[..., None, :]


def normalized(residuals):
    """Divides [..., K, d] by the norm of each cluster's vector, then by the norm of all of them together."""
    each = unit_vector(residuals)
    whole = each.reshape(*each.shape[:-2], each.shape[-2] * each.shape[-1])  # -1 cannot be inferred for an empty array
    return unit_vector(whole).reshape(each.shape)
