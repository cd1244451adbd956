"""Chunked readouts: latent attention, VLAD, gated sum."""

from typing import Any, NamedTuple

import numpy as np

from attnpool_ref.contract.definition import definition
from attnpool_ref.numerics.tokens import fill_padding
from attnpool_ref.readouts import (
    gated_sum_pooling,
    largest_weight,
    latent_attention_pooling,
    log_weights,
    normalized,
    sums_of_residuals,
)
from attnpool_ref.streaming.means import SumState
from attnpool_ref.streaming.states import MeanState, kind


@kind
class LatentAttentionState(MeanState):
    """State of :func:`~attnpool_ref.streaming.latent_attention_state`: a :class:`MeanState` of transformed tokens."""


@definition
def latent_attention_state(
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
    r"""Returns the state of one chunk of a sequence for latent attention pooling: the mean of the transformed tokens.

    .. math:: \Big( \frac 1 N \sum_{l : k_l} f(x_l), \; N \Big), \qquad N = \sum_l k_l

    A chunk has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens. :math:`f(x_l)` is the term of token :math:`l` in
    :func:`latent_attention_pooling`.

    Args:
      x: [..., L, d] tokens of the chunk.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.
      latents: [r, e] r latents of width e.
      query_kernel: [d, H, c], for H heads of width c.
      key_kernel: [e, H, c].
      value_kernel: [e, H, c'], for values of width c'.
      out_kernel: [H, c', d].
      mlp_kernel: [d, 2f], for f hidden units: the first f of its outputs times the gelu of the others.
      mlp_out_kernel: [f, d].
      mlp_bias: [2f], or None.
      mlp_out_bias: [d], or None.
      norm_scale: [d], scale of the tokens' layer normalization, 1 if None.
      norm_bias: [d], its bias, 0 if None; only with ``norm_scale``.
      latent_norm_scale: [e], scale of the latents' layer normalization, 1 if None.
      latent_norm_bias: [e], its bias, 0 if None; only with ``latent_norm_scale``.
      mlp_norm_scale: [d], scale of the layer normalization before the MLP, 1 if None.
      mlp_norm_bias: [d], its bias, 0 if None; only with ``mlp_norm_scale``.
      epsilon: the epsilon of all three layer normalizations, a number.

    Returns:
      A ``LatentAttentionState``, for :func:`merge_states` and then :func:`finalize_state`, which returns [..., d].

    Raises:
      ValueError: if shapes disagree, if the mask has a float dtype, or if a norm has a bias without a scale.

    Source:
      Lee et al. 2025, section 3.1.

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
    >>> chunks = [[1.0, 2.0]], [[3.0, 4.0]]
    >>> finalize_state(merge_states(*(latent_attention_state(chunk, **parameters) for chunk in chunks)))
    array([3., 2.])
    """
    pooled = latent_attention_pooling(
        x,
        mask,
        latents=latents,
        query_kernel=query_kernel,
        key_kernel=key_kernel,
        value_kernel=value_kernel,
        out_kernel=out_kernel,
        mlp_kernel=mlp_kernel,
        mlp_out_kernel=mlp_out_kernel,
        mlp_bias=mlp_bias,
        mlp_out_bias=mlp_out_bias,
        norm_scale=norm_scale,
        norm_bias=norm_bias,
        latent_norm_scale=latent_norm_scale,
        latent_norm_bias=latent_norm_bias,
        mlp_norm_scale=mlp_norm_scale,
        mlp_norm_bias=mlp_norm_bias,
        epsilon=epsilon,
    )
    return LatentAttentionState(pooled, np.sum(mask, -1))


@kind
class VladState(NamedTuple):
    """State of :func:`~attnpool_ref.streaming.vlad_state`: sums of residuals under weights relative to the largest.

    Attributes:
      top: [..., K], the largest logarithm of a token's weight a in each of K clusters; -inf for a fully masked row.
      sum: [..., K, d], the sum of exp(log a - top) times the residual.
      normalize: whether ``finalize_state`` divides the result by its norms, as ``vlad_pooling`` does.
      dtype: the dtype of the result.
    """

    top: Any
    sum: Any
    normalize: bool = True
    dtype: Any = None

    options = ("normalize",)

    @property
    def shape(self):
        """The shape of the result of ``finalize_state``."""
        return self.sum.shape

    def merged(self, other):
        """Returns the merged state of this chunk and of ``other``, rescaled to the larger maximum."""
        top = np.maximum(self.top, other.top)
        scales = [np.exp(state.top - np.where(top == -np.inf, 0, top))[..., None] for state in (self, other)]
        return VladState(top, self.sum * scales[0] + other.sum * scales[1], self.normalize)

    def finalized(self):
        """Returns the result [..., K, d] in float64; 0 for a fully masked row."""
        return normalized(self.sum) if self.normalize else np.exp(self.top)[..., None] * self.sum


@definition
def vlad_state(x, mask=None, *, lengths=None, assign_kernel, centers, assign_bias=None, normalize=True):
    r"""Returns the state of one chunk of a sequence for :func:`vlad_pooling`: sums of residuals, not divided by norms.

    .. math:: \Big( t, \; \sum_{l : k_l} e^{\log a_{lj} - t_j} (x_l - c_j) \Big)_j, \qquad
              t_j = \max_{l : k_l} \log a_{lj}

    A chunk has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens. The weight :math:`a_{lj}` of token :math:`l` in cluster
    :math:`j` is that of :func:`vlad_pooling`.

    Args:
      x: [..., L, d] tokens of the chunk.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.
      assign_kernel: [d, K+G], for K clusters and G ghosts, which have the last columns.
      centers: [K, d], :math:`c`, the centers of the clusters.
      assign_bias: [K+G], or None.
      normalize: whether :func:`finalize_state` divides the sums by their norms, as :func:`vlad_pooling` does.
        :func:`merge_states` raises an error for states with different values.

    Returns:
      A ``VladState``, for :func:`merge_states` and then :func:`finalize_state`, which returns [..., K, d].

    Raises:
      ValueError: if shapes disagree, or if the mask has a float dtype.

    Source:
      Arandjelović et al. 2016, equation 4.

    >>> parameters = {"assign_kernel": [[0.0]], "centers": [[2.0]], "normalize": False}
    >>> finalize_state(merge_states(vlad_state([[1.0]], **parameters), vlad_state([[4.0]], **parameters)))
    array([[1.]])
    """
    x = fill_padding(x, mask)
    logarithms = log_weights(x, mask, assign_kernel, assign_bias)[..., : len(centers)]
    top, unit = largest_weight(logarithms)
    return VladState(top, sums_of_residuals(np.exp(logarithms - unit), x, centers), normalize)


@kind
class GatedSumState(SumState):
    """State of :func:`~attnpool_ref.streaming.gated_sum_state`: a :class:`SumState` of projected tokens."""


@definition
def gated_sum_state(x, mask=None, *, lengths=None, gate_kernel, value_kernel, gate_bias=None, value_bias=None):
    r"""Returns the state of one chunk of a sequence for :func:`gated_sum_pooling`.

    .. math:: \sum_{l : k_l} \sigma(x_l W_g + b_g) \odot \tanh(x_l W_v + b_v)

    A chunk has L tokens :math:`x_l` of width d. :math:`k_l` is 1 if token :math:`l` is real, 0 if it is padding;
    :math:`l : k_l` are the real tokens. :math:`\sigma` is the sigmoid, and :math:`\odot` the elementwise product.

    Args:
      x: [..., L, d] tokens of the chunk.
      mask: bool, broadcastable to [..., L]: True at real tokens, False at padding; None if all tokens are real.
      lengths: number of real tokens of the chunk, counted from the left: int [...] or (). Give this or ``mask``.
      gate_kernel: [d, o], :math:`W_g`, for o features of the result.
      value_kernel: [d, o], :math:`W_v`.
      gate_bias: [o], :math:`b_g`, or None.
      value_bias: [o], :math:`b_v`, or None.

    Returns:
      A ``GatedSumState``, for :func:`merge_states` and then :func:`finalize_state`, which returns [..., o].

    Raises:
      ValueError: if shapes disagree, or if the mask has a float dtype.

    Source:
      Li et al. 2016, equation 7, without its outer tanh.

    >>> kernels = {"gate_kernel": [[0.0]], "value_kernel": [[1.0]]}
    >>> finalize_state(merge_states(*(gated_sum_state([[token]], **kernels) for token in (1.0, 3.0)))).round(6)
    array([0.878324])
    """
    pooled = gated_sum_pooling(
        x, mask, gate_kernel=gate_kernel, value_kernel=value_kernel, gate_bias=gate_bias, value_bias=value_bias
    )
    return GatedSumState(pooled)
