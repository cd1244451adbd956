"""NNX modules of readouts: latent attention, Set2Set, VLAD and the gated sum."""

from dataclasses import KW_ONLY
from typing import ClassVar

from attnpool_flax.modules.creation import PoolingModule, constructor_from_fields, in_layout
from attnpool_flax.readouts import gated_sum_pooling, latent_attention_pooling, set2set_pooling, vlad_pooling


@constructor_from_fields
class LatentAttentionPool(PoolingModule):
    """Latent attention pooling: tokens attend to learned latents, then are averaged (NV-Embed).

    Calls :func:`attnpool_flax.latent_attention_pooling`. Parameters: ``latents`` [r, d], ``query_kernel`` [d, H, c],
    ``key_kernel`` [d, H, c], ``value_kernel`` [d, H, c], ``out_kernel`` [H, c, d], ``mlp_kernel`` [d, 2f],
    ``mlp_out_kernel`` [f, d], ``mlp_bias`` [2f], ``mlp_out_bias`` [d]; ``norm_scale`` [d], ``norm_bias`` [d],
    ``latent_norm_scale`` [d], ``latent_norm_bias`` [d], ``mlp_norm_scale`` [d] and ``mlp_norm_bias`` [d], which start
    at ones and zeros.

    Args:
      in_features: d, the width of the tokens and of the latents.
      num_latents: r, the number of latents.
      hidden_features: f, the width of the hidden layer; None is 4 times that of the tokens.
      epsilon: the epsilon of the layer normalizations.
      bias_init: initializer of the biases of the MLP.
      latents_init: initializer of the latents, called with the shape [d, r].

    >>> pool = LatentAttentionPool(in_features=4, num_latents=5, num_heads=2, rngs=nnx.Rngs(0))
    >>> x = jnp.ones((2, 3, 4))
    >>> pool(x).shape
    (2, 4)
    """

    _: KW_ONLY
    in_features: int
    num_latents: int
    num_heads: int
    qkv_features: int | None = None
    hidden_features: int | None = None
    epsilon: float = 1e-5

    def __call__(self, x, mask=None, *, lengths=None, segment_ids=None, num_segments=None):
        """Pools tokens after their attention to the latents.

        Returns:
          [..., d].
        """
        pool, layout = in_layout(self, latent_attention_pooling, num_segments, lengths=lengths, segment_ids=segment_ids)
        return pool(mask=mask, **self._arguments(x=x), **layout)


@constructor_from_fields
class Set2SetPool(PoolingModule):
    """Set2Set readout: an LSTM attends to the set in several steps.

    Calls :func:`attnpool_flax.set2set_pooling`. Parameters: ``input_kernel`` [2d, 4d], ``recurrent_kernel`` [d, 4d] and
    ``bias`` [4d] of an LSTM, with the gates in the order input, forget, cell, output.

    Args:
      num_steps: the number of LSTM steps.
      bias_init: initializer of the bias.

    >>> pool = Set2SetPool(4, 3, rngs=nnx.Rngs(0))
    >>> x = jnp.ones((2, 3, 4))
    >>> pool(x).shape
    (2, 8)
    """

    in_features: int
    num_steps: int

    def __call__(self, x, mask=None, *, lengths=None, segment_ids=None, num_segments=None, return_weights=False):
        """Pools tokens.

        Returns:
          [..., 2d], and with ``return_weights`` the weights [..., L].
          The weights of packed tokens have no batch axes, and N in place of L.
        """
        pool, layout = in_layout(self, set2set_pooling, num_segments, lengths=lengths, segment_ids=segment_ids)
        return pool(mask=mask, return_weights=return_weights, **self._arguments(x=x), **layout)


@constructor_from_fields
class VLADPool(PoolingModule):
    """VLAD pooling with learned cluster centers (NetVLAD, GhostVLAD).

    Calls :func:`attnpool_flax.vlad_pooling`. Parameters: ``assign_kernel`` [d, K+G], ``assign_bias`` [K+G] and
    ``centers`` [K, d].

    Args:
      num_clusters: K, the number of clusters.
      num_ghosts: G, the number of clusters without a center: they take part in the softmax, but have no result.
      normalize: divide each cluster's vector by its norm, then all of them by their common norm.
      kernel_init: initializer of the kernel.
      bias_init: initializer of the bias.
      centers_init: initializer of the centers, called with the shape [d, K].

    >>> pool = VLADPool(4, 5, num_ghosts=1, rngs=nnx.Rngs(0))
    >>> x = jnp.ones((2, 3, 4))
    >>> pool(x).shape
    (2, 5, 4)
    """

    in_features: int
    num_clusters: int
    _: KW_ONLY
    num_ghosts: int = 0
    normalize: bool = True

    _of_call: ClassVar = {
        "x": "[..., L, d] tokens.",
        "return_weights": "also return each token's weights of the K clusters.",
    }

    def __call__(self, x, mask=None, *, lengths=None, segment_ids=None, num_segments=None, return_weights=False):
        """Pools tokens, once for each cluster.

        Returns:
          [..., K, d], and with ``return_weights`` the weights [..., L, K].
          The weights of packed tokens have no batch axes, and N in place of L.
        """
        pool, layout = in_layout(self, vlad_pooling, num_segments, lengths=lengths, segment_ids=segment_ids)
        return pool(mask=mask, return_weights=return_weights, **self._arguments(x=x), **layout)


@constructor_from_fields
class GatedSumPool(PoolingModule):
    """Gated sum of projected tokens (the readout of gated graph networks, GGNN).

    Calls :func:`attnpool_flax.gated_sum_pooling`. Parameters: ``gate_kernel`` [d, o], ``value_kernel`` [d, o]
    and, unless ``use_bias`` is False, ``gate_bias`` [o] and ``value_bias`` [o].

    Args:
      out_features: o, the width of the result.
      use_bias: whether there are biases.

    >>> pool = GatedSumPool(4, 5, rngs=nnx.Rngs(0))
    >>> x = jnp.ones((2, 3, 4))
    >>> pool(x).shape
    (2, 5)
    """

    in_features: int
    out_features: int
    _: KW_ONLY
    use_bias: bool = True

    def __call__(self, x, mask=None, *, lengths=None, segment_ids=None, num_segments=None):
        """Pools tokens.

        Returns:
          [..., o].
        """
        pool, layout = in_layout(self, gated_sum_pooling, num_segments, lengths=lengths, segment_ids=segment_ids)
        return pool(mask=mask, **self._arguments(x=x), **layout)
