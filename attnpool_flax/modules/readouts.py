"""NNX modules of readouts: latent attention, Set2Set and VLAD."""

import jax.numpy as jnp
from flax import nnx
from flax.typing import Dtype, Initializer, PrecisionLike

from attnpool_flax.modules.creation import PoolingModule, create, values
from attnpool_flax.modules.layout import in_layout
from attnpool_flax.modules.parameters import BIAS_INIT, KERNEL_INIT, QUERY_INIT, cast, head_features
from attnpool_flax.readouts import latent_attention_pooling, set2set_pooling, vlad_pooling
from attnpool_flax.segments import segment_latent_attention_pooling, segment_set2set_pooling, segment_vlad_pooling


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
      num_heads: H, the number of heads.
      qkv_features: H·c, the width of all heads together; None is that of the tokens.
      hidden_features: f, the width of the hidden layer; None is 4 times that of the tokens.
      epsilon: of the normalisations.
      dtype: the dtype to which tokens and parameters are cast first; None promotes them.
      param_dtype: the dtype of the parameters.
      precision: of the products; None is full float32.
      axis_name: a mesh axis, or several, over which sequences are split, inside of ``jax.shard_map``.
      kernel_init: initialiser of the kernels.
      bias_init: initialiser of the biases of the hidden layer and the result.
      latents_init: initialiser of the latents, which sees the shape [d, r].
      rngs: "params" for the parameters.

    >>> pool = LatentAttentionPool(4, 5, 2, rngs=nnx.Rngs(0))
    >>> pool(jnp.ones((2, 3, 4))).shape
    (2, 4)
    """

    latents: nnx.Param
    query_kernel: nnx.Param
    key_kernel: nnx.Param
    value_kernel: nnx.Param
    out_kernel: nnx.Param
    mlp_kernel: nnx.Param
    mlp_out_kernel: nnx.Param
    mlp_bias: nnx.Param
    mlp_out_bias: nnx.Param
    norm_scale: nnx.Param
    norm_bias: nnx.Param
    latent_norm_scale: nnx.Param
    latent_norm_bias: nnx.Param
    mlp_norm_scale: nnx.Param
    mlp_norm_bias: nnx.Param

    def __init__(
        self,
        in_features: int,
        num_latents: int,
        num_heads: int,
        *,
        qkv_features: int | None = None,
        hidden_features: int | None = None,
        epsilon: float = 1e-5,
        dtype: Dtype | None = None,
        param_dtype: Dtype = jnp.float32,
        precision: PrecisionLike = None,
        axis_name: str | tuple[str, ...] | None = None,
        kernel_init: Initializer = KERNEL_INIT,
        bias_init: Initializer = BIAS_INIT,
        latents_init: Initializer = QUERY_INIT,
        rngs: nnx.Rngs,
    ):
        self.in_features = in_features
        self.num_latents = num_latents
        self.num_heads = num_heads
        self.qkv_features = in_features if qkv_features is None else qkv_features
        self.head_features = head_features("LatentAttentionPool", num_heads, self.qkv_features)
        self.hidden_features = 4 * in_features if hidden_features is None else hidden_features
        self.epsilon = epsilon
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.precision = precision
        self.axis_name = axis_name
        create(self, "LatentAttentionPool", rngs, kernel=kernel_init, bias=bias_init, latents=latents_init)

    def __call__(self, x, mask=None, *, lengths=None, segment_ids=None, num_segments=None):
        """Pools tokens, each with what it finds among the latents.

        Args:
          x: [..., L, d] tokens.
          mask: bool, broadcastable to [..., L], True = real.
          lengths: number of real tokens, counted from the left: integers [...] or (). Give this or ``mask``.
          segment_ids: int [N], the segment of each token of packed tokens x [N, d]; with ``num_segments``, their number.
          num_segments: the number of segments, an integer; the result then has them for batch axes.

        Returns:
          [..., d].
        """
        pool = in_layout(
            "LatentAttentionPool",
            latent_attention_pooling,
            segment_latent_attention_pooling,
            num_segments,
            {"lengths": lengths},
            self.axis_name,
            segment_ids=segment_ids,
        )
        return pool(
            cast(x, self.dtype),
            mask=mask,
            epsilon=self.epsilon,
            precision=self.precision,
            **values(self, "LatentAttentionPool", x=x),
        )


class Set2SetPool(PoolingModule):
    """Set2Set readout: an LSTM attends to the set in several steps.

    Calls :func:`attnpool_flax.set2set_pooling`. Parameters: ``input_kernel`` [2d, 4d], ``recurrent_kernel`` [d, 4d] and
    ``bias`` [4d] of an LSTM, whose gates are i, f, g, o.

    Args:
      in_features: d, the width of the tokens.
      num_steps: number of times that the set is read.
      dtype: the dtype to which tokens and parameters are cast first; None promotes them.
      param_dtype: the dtype of the parameters.
      precision: of the products; None is full float32.
      implementation: "einsum", "tiles" (blockwise, less memory), or None to choose automatically.
      axis_name: a mesh axis, or several, over which sequences are split, inside of ``jax.shard_map``.
      kernel_init: initialiser of the kernels.
      bias_init: initialiser of the bias.
      rngs: "params" for the parameters.

    >>> pool = Set2SetPool(4, 3, rngs=nnx.Rngs(0))
    >>> pool(jnp.ones((2, 3, 4))).shape
    (2, 8)
    """

    input_kernel: nnx.Param
    recurrent_kernel: nnx.Param
    bias: nnx.Param

    def __init__(
        self,
        in_features: int,
        num_steps: int,
        *,
        dtype: Dtype | None = None,
        param_dtype: Dtype = jnp.float32,
        precision: PrecisionLike = None,
        implementation: str | None = None,
        axis_name: str | tuple[str, ...] | None = None,
        kernel_init: Initializer = KERNEL_INIT,
        bias_init: Initializer = BIAS_INIT,
        rngs: nnx.Rngs,
    ):
        self.in_features = in_features
        self.num_steps = num_steps
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.precision = precision
        self.implementation = implementation
        self.axis_name = axis_name
        create(self, "Set2SetPool", rngs, kernel=kernel_init, bias=bias_init)

    def __call__(self, x, mask=None, *, lengths=None, segment_ids=None, num_segments=None, return_weights=False):
        """Pools tokens.

        Args:
          x: [..., L, d] tokens.
          mask: bool, broadcastable to [..., L], True = real.
          lengths: number of real tokens, counted from the left: integers [...] or (). Give this or ``mask``.
          return_weights: also return the weights of the last step.
          segment_ids: int [N], the segment of each token of packed tokens x [N, d]; with ``num_segments``, their number.
          num_segments: the number of segments, an integer; the result then has them for batch axes.

        Returns:
          [..., 2d], and with ``return_weights`` the weights [..., L].
        """
        pool = in_layout(
            "Set2SetPool",
            set2set_pooling,
            segment_set2set_pooling,
            num_segments,
            {"lengths": lengths},
            self.axis_name,
            segment_ids=segment_ids,
        )
        return pool(
            cast(x, self.dtype),
            mask=mask,
            num_steps=self.num_steps,
            return_weights=return_weights,
            implementation=self.implementation,
            precision=self.precision,
            **values(self, "Set2SetPool", x=x),
        )


class VLADPool(PoolingModule):
    """VLAD pooling with learned cluster centres (NetVLAD, GhostVLAD).

    Calls :func:`attnpool_flax.vlad_pooling`. Parameters: ``assign_kernel`` [d, K+G], ``assign_bias`` [K+G] and
    ``centers`` [K, d].

    Args:
      in_features: d, the width of the tokens.
      num_clusters: K, the number of clusters.
      num_ghosts: G, the number of clusters without a centre, which are dropped.
      normalize: divide by the norms.
      dtype: the dtype to which tokens and parameters are cast first; None promotes them.
      param_dtype: the dtype of the parameters.
      precision: of the products; None is full float32.
      axis_name: a mesh axis, or several, over which sequences are split, inside of ``jax.shard_map``.
      kernel_init: initialiser of the kernel.
      bias_init: initialiser of the bias.
      centers_init: initialiser of the centres, which sees the shape [d, K].
      rngs: "params" for the parameters.

    >>> pool = VLADPool(4, 5, num_ghosts=1, rngs=nnx.Rngs(0))
    >>> pool(jnp.ones((2, 3, 4))).shape
    (2, 5, 4)
    """

    assign_kernel: nnx.Param
    assign_bias: nnx.Param
    centers: nnx.Param

    def __init__(
        self,
        in_features: int,
        num_clusters: int,
        *,
        num_ghosts: int = 0,
        normalize: bool = True,
        dtype: Dtype | None = None,
        param_dtype: Dtype = jnp.float32,
        precision: PrecisionLike = None,
        axis_name: str | tuple[str, ...] | None = None,
        kernel_init: Initializer = KERNEL_INIT,
        bias_init: Initializer = BIAS_INIT,
        centers_init: Initializer = QUERY_INIT,
        rngs: nnx.Rngs,
    ):
        self.in_features = in_features
        self.num_clusters = num_clusters
        self.num_ghosts = num_ghosts
        self.normalize = normalize
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.precision = precision
        self.axis_name = axis_name
        create(self, "VLADPool", rngs, kernel=kernel_init, bias=bias_init, centers=centers_init)

    def __call__(self, x, mask=None, *, lengths=None, segment_ids=None, num_segments=None, return_weights=False):
        """Pools tokens, once for each cluster.

        Args:
          x: [..., L, d] tokens.
          mask: bool, broadcastable to [..., L], True = real.
          lengths: number of real tokens, counted from the left: integers [...] or (). Give this or ``mask``.
          return_weights: also return the weights of the clusters.
          segment_ids: int [N], the segment of each token of packed tokens x [N, d]; with ``num_segments``, their number.
          num_segments: the number of segments, an integer; the result then has them for batch axes.

        Returns:
          [..., K, d], and with ``return_weights`` the weights [..., L, K].
        """
        pool = in_layout(
            "VLADPool",
            vlad_pooling,
            segment_vlad_pooling,
            num_segments,
            {"lengths": lengths},
            self.axis_name,
            segment_ids=segment_ids,
        )
        return pool(
            cast(x, self.dtype),
            mask=mask,
            normalize=self.normalize,
            return_weights=return_weights,
            precision=self.precision,
            **values(self, "VLADPool", x=x),
        )
