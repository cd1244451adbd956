"""Linen modules of weighted and attention pooling."""

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from flax.typing import Dtype, Initializer, PrecisionLike

from attnpool_flax.linen.creation import TokenWalker, multiplier, values
from attnpool_flax.modules.layout import in_layout
from attnpool_flax.modules.parameters import (
    BIAS_INIT,
    KERNEL_INIT,
    QUERY_INIT,
    Normalizer,
    cast,
    head_features,
    read_sizes,
)
from attnpool_flax.pooling import attention_pooling, multi_head_attention_pooling, weighted_pooling
from attnpool_flax.pooling.multi_head import of_queries
from attnpool_flax.segments import segment_attention_pooling, segment_multi_head_attention_pooling


class WeightedPool(TokenWalker, kw_only=True):
    """Weighted mean of the tokens with one learned weight for each position.

    Calls :func:`attnpool_flax.weighted_pooling`. Parameters: ``weights`` [L], one for each slot, which start at ones.

    Attributes:
      dtype: the dtype to which tokens and weights are cast first; None promotes them.
      param_dtype: the dtype of the weights.
      precision: of the products; None is full float32.
      implementation: "einsum", "tiles" (blockwise, less memory), or None to choose automatically.

    >>> import jax
    >>> x = jnp.ones((2, 3, 4))
    >>> pool = WeightedPool()
    >>> variables = pool.init(jax.random.key(0), x)
    >>> pool.apply(variables, x).shape
    (2, 4)
    """

    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    implementation: str | None = None

    @nn.compact
    def __call__(self, x, mask=None, *, lengths=None):
        """Pools tokens.

        Args:
          x: [..., L, d] tokens.
          mask: bool, broadcastable to [..., L], True = real.
          lengths: number of real tokens, counted from the left: integers [...] or (). Give this or ``mask``.

        Returns:
          [..., d].
        """
        parameters = values(self, "WeightedPool", read_sizes("WeightedPool", {"x": x}))
        return weighted_pooling(
            cast(x, self.dtype),
            mask=mask,
            lengths=lengths,
            implementation=self.implementation,
            precision=self.precision,
            **parameters,
        )


class AttentionPool(TokenWalker, kw_only=True):
    """Attention pooling with one learned query.

    Calls :func:`attnpool_flax.attention_pooling`. Parameters: ``query`` [d]; with ``qk_features`` also ``query_kernel``
    [d, c] and ``key_kernel`` [d, c]; with ``normalize_query`` also ``query_norm_scale`` [d] and ``query_norm_bias``
    [d], which start at ones and zeros.

    Attributes:
      qk_features: c, the width to which query and tokens are projected; None compares them unprojected.
      normalize_query: apply layer normalisation to the query, before its kernel.
      epsilon: of the layer normalisation.
      scale: a number in place of 1/sqrt(c); c is d without kernels.
      normalizer: a name, or a function (scores, mask) -> weights, as the function takes it.
      dropout_rate: of the attention weights, in [0, 1].
      deterministic: True drops no weights, False draws with the key "dropout"; here or in the call.
      dtype: the dtype to which tokens and parameters are cast first; None promotes them.
      param_dtype: the dtype of the parameters.
      precision: of the products; None is full float32.
      implementation: "einsum", "tiles" (blockwise, less memory), or None to choose automatically.
      axis_name: a mesh axis, or several, over which sequences are split, inside of ``jax.shard_map``; not used
        by ``init``.
      kernel_init: initialiser of the kernels.
      query_init: initialiser of the query, which sees the shape [d, 1].

    >>> import jax
    >>> x = jnp.ones((2, 3, 4))
    >>> pool = AttentionPool()
    >>> variables = pool.init(jax.random.key(0), x)
    >>> pool.apply(variables, x, mask=jnp.array([[True, True, False], [False, False, False]])).shape
    (2, 4)
    """

    qk_features: int | None = None
    normalize_query: bool = False
    epsilon: float = 1e-6
    scale: float | None = None
    normalizer: str | Callable[[Any, Any], Any] = "softmax"
    dropout_rate: float = 0.0
    deterministic: bool | None = None
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    implementation: str | None = None
    axis_name: str | tuple[str, ...] | None = None
    kernel_init: Initializer = KERNEL_INIT
    query_init: Initializer = QUERY_INIT

    @nn.compact
    def __call__(
        self,
        x,
        mask=None,
        *,
        lengths=None,
        segment_ids=None,
        num_segments=None,
        deterministic=None,
        return_weights=False,
    ):
        """Pools tokens.

        Args:
          x: [..., L, d] tokens.
          mask: bool, broadcastable to [..., L], True = real.
          lengths: number of real tokens, counted from the left: integers [...] or (). Give this or ``mask``.
          deterministic: True drops no weights, False draws with the key "dropout"; needed, here or in the constructor,
            if there is dropout.
          return_weights: also return the weights, as they are before dropout.
          segment_ids: int [N], the segment of each token of packed tokens x [N, d]; with ``num_segments``, their number.
          num_segments: the number of segments, an integer; the result then has them for batch axes.

        Returns:
          [..., d], and with ``return_weights`` the weights [..., L].
        """
        sizes = read_sizes("AttentionPool", {"x": x})
        parameters = values(self, "AttentionPool", sizes, kernel=self.kernel_init, query=self.query_init)
        pool = in_layout(
            "AttentionPool",
            attention_pooling,
            segment_attention_pooling,
            num_segments,
            {"lengths": lengths},
            None if self.is_initializing() else self.axis_name,
            segment_ids=segment_ids,
        )
        return pool(
            cast(x, self.dtype),
            mask=mask,
            normalize_query=self.normalize_query,
            epsilon=self.epsilon,
            scale=self.scale,
            normalizer=self.normalizer,
            dropout_multiplier=multiplier(self, "AttentionPool", deterministic, x=x),
            return_weights=return_weights,
            implementation=self.implementation,
            precision=self.precision,
            **parameters,
        )


class MultiHeadAttentionPool(TokenWalker):
    """Multi-head attention pooling with learned queries (MAP).

    Calls :func:`attnpool_flax.multi_head_attention_pooling`. Parameters: ``query`` [n, d], ``query_kernel`` [d, H, c],
    ``key_kernel`` [d, H, c], ``value_kernel`` [d, H, c], ``out_kernel`` [H, c, o] and, depending on ``use_bias``,
    ``query_bias`` [H, c], ``key_bias`` [H, c], ``value_bias`` [H, c], ``out_bias`` [o].

    Attributes:
      num_heads: H, the number of heads.
      num_queries: n, the number of learned queries; None makes one and drops its axis: [..., o].
      qkv_features: H·c, the width of all heads together; None is that of the tokens.
      out_features: o, the width of the result; None is that of the tokens.
      use_bias: whether there are biases; or a tuple of the names of those that there are.
      scale: a number in place of 1/sqrt(c).
      normalizer: "softmax", "sparsemax", "entmax15", "sigmoid", "hardmax", or a function, as :func:`attnpool_flax.attend`
        takes it.
      dropout_rate: of the attention weights, in [0, 1].
      deterministic: True drops no weights, False draws with the key "dropout"; here or in the call.
      dtype: the dtype to which data and parameters are cast first; None promotes them.
      param_dtype: the dtype of the parameters.
      precision: of the products; None is full float32.
      implementation: "einsum", "tiles" (blockwise, less memory), or None to choose automatically.
      axis_name: a mesh axis, or several, over which sequences are split, inside of ``jax.shard_map``; not used
        by ``init``.
      kernel_init: initialiser of the kernels.
      bias_init: initialiser of the biases.
      query_init: initialiser of the queries, which sees the shape [d, n].

    >>> import jax
    >>> x = jnp.ones((2, 3, 4))
    >>> pool = MultiHeadAttentionPool(2, num_queries=5)
    >>> variables = pool.init(jax.random.key(0), x)
    >>> pool.apply(variables, x).shape
    (2, 5, 4)
    """

    num_heads: int
    _: KW_ONLY
    num_queries: int | None = 1
    qkv_features: int | None = None
    out_features: int | None = None
    use_bias: bool | tuple[str, ...] = True
    scale: float | None = None
    normalizer: Normalizer = "softmax"
    dropout_rate: float = 0.0
    deterministic: bool | None = None
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    implementation: str | None = None
    axis_name: str | tuple[str, ...] | None = None
    kernel_init: Initializer = KERNEL_INIT
    bias_init: Initializer = BIAS_INIT
    query_init: Initializer = QUERY_INIT

    @nn.compact
    def __call__(
        self,
        x,
        mask=None,
        *,
        lengths=None,
        segment_ids=None,
        num_segments=None,
        deterministic=None,
        return_weights=False,
    ):
        """Pools tokens, once for each learned query.

        Args:
          x: [..., L, d] tokens.
          mask: bool, broadcastable to [..., L], True = real.
          lengths: number of real tokens, counted from the left: integers [...] or (). Give this or ``mask``.
          deterministic: True drops no weights, False draws with the key "dropout"; needed, here or in the constructor,
            if there is dropout.
          return_weights: also return the weights, as they are before dropout.
          segment_ids: int [N], the segment of each token of packed tokens x [N, d]; with ``num_segments``, their number.
          num_segments: the number of segments, an integer; the result then has them for batch axes.

        Returns:
          [..., n, o], and with ``return_weights`` the weights [..., H, n, L]; [..., o] and [..., H, L] of
          ``num_queries=None``.
        """
        sizes = read_sizes("MultiHeadAttentionPool", {"x": x})
        width = sizes["in_features"]
        sizes["out_features"] = width if self.out_features is None else self.out_features
        qkv_features = width if self.qkv_features is None else self.qkv_features
        sizes["head_features"] = head_features("MultiHeadAttentionPool", self.num_heads, qkv_features)
        parameters = values(
            self, "MultiHeadAttentionPool", sizes, kernel=self.kernel_init, bias=self.bias_init, query=self.query_init
        )
        pool = in_layout(
            "MultiHeadAttentionPool",
            multi_head_attention_pooling,
            segment_multi_head_attention_pooling,
            num_segments,
            {"lengths": lengths},
            None if self.is_initializing() else self.axis_name,
            segment_ids=segment_ids,
        )
        found = pool(
            cast(x, self.dtype),
            mask=mask,
            scale=self.scale,
            normalizer=self.normalizer,
            dropout_multiplier=multiplier(self, "MultiHeadAttentionPool", deterministic, x=x),
            return_weights=return_weights,
            implementation=self.implementation,
            precision=self.precision,
            **parameters,
        )
        return of_queries(found, self.num_queries)
