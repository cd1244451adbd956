"""Linen modules of attention: one result for each query."""

from dataclasses import KW_ONLY

import flax.linen as nn
import jax.numpy as jnp
from flax.typing import Dtype, Initializer, PrecisionLike

from attnpool_flax.attention import additive_attention, location_attention, multi_head_attention, tanh_sum_attention
from attnpool_flax.linen.creation import TokenWalker, multiplier, values
from attnpool_flax.modules.parameters import BIAS_INIT, KERNEL_INIT, cast, head_features, read_sizes


class AdditiveAttention(TokenWalker, kw_only=True):
    """Additive attention (Bahdanau).

    Calls :func:`attnpool_flax.additive_attention`. Parameters: ``query_kernel`` [d, h], ``key_kernel`` [e, h],
    ``out_kernel`` [h]; with ``use_bias`` also ``bias`` [h].

    Attributes:
      hidden_features: h, the width of the hidden layer.
      use_bias: whether there is a bias.
      dropout_rate: of the attention weights, in [0, 1].
      deterministic: True drops no weights, False draws with the key "dropout"; here or in the call.
      dtype: the dtype to which data and parameters are cast first; None promotes them.
      param_dtype: the dtype of the parameters.
      precision: of the products; None is full float32.
      implementation: "einsum", "tiles" (blockwise, less memory), or None to choose automatically.
      kernel_init: initialiser of the kernels.
      bias_init: initialiser of the biases.

    >>> import jax
    >>> query, key, value = jnp.ones((2, 3, 4)), jnp.ones((2, 5, 6)), jnp.ones((2, 5, 7))
    >>> attention = AdditiveAttention(hidden_features=8)
    >>> variables = attention.init(jax.random.key(0), query, key, value)
    >>> attention.apply(variables, query, key, value).shape
    (2, 3, 7)
    """

    hidden_features: int
    use_bias: bool = False
    dropout_rate: float = 0.0
    deterministic: bool | None = None
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    implementation: str | None = None
    kernel_init: Initializer = KERNEL_INIT
    bias_init: Initializer = BIAS_INIT

    @nn.compact
    def __call__(self, query, key, value, mask=None, *, lengths=None, deterministic=None, return_weights=False):
        """Attends.

        Args:
          query: [..., n, d] queries.
          key: [..., m, e] keys.
          value: [..., m, v] values.
          mask: bool, broadcastable to [..., n, m], True = this query sees this key.
          lengths: number of keys to attend to, counted from the left: integers [..., n], [...] or (). Give this or
            ``mask``.
          deterministic: True drops no weights, False draws with the key "dropout"; needed, here or in the constructor,
            if there is dropout.
          return_weights: also return the weights, as they are before dropout.

        Returns:
          [..., n, v], and with ``return_weights`` the weights [..., n, m].
        """
        sizes = read_sizes("AdditiveAttention", {"query": query, "key": key, "value": value})
        parameters = values(self, "AdditiveAttention", sizes, kernel=self.kernel_init, bias=self.bias_init)
        return additive_attention(
            cast(query, self.dtype),
            cast(key, self.dtype),
            cast(value, self.dtype),
            mask=mask,
            lengths=lengths,
            dropout_multiplier=multiplier(self, "AdditiveAttention", deterministic, query=query, key=key, value=value),
            return_weights=return_weights,
            implementation=self.implementation,
            precision=self.precision,
            **parameters,
        )


class TanhSumAttention(TokenWalker, kw_only=True):
    """Attention whose scores sum a tanh layer over the concatenated query and key.

    Calls :func:`attnpool_flax.tanh_sum_attention`. Parameters: ``kernel`` [d+e, h] and, unless ``use_bias`` is False,
    ``bias`` [h].

    Attributes:
      hidden_features: h, the width of the hidden layer.
      use_bias: whether there is a bias.
      dtype: the dtype to which data and parameters are cast first; None promotes them.
      param_dtype: the dtype of the parameters.
      precision: of the products; None is full float32.
      implementation: "einsum", "tiles" (blockwise, less memory), or None to choose automatically.
      kernel_init: initialiser of the kernels.
      bias_init: initialiser of the biases.

    >>> import jax
    >>> query, key, value = jnp.ones((2, 3, 4)), jnp.ones((2, 5, 6)), jnp.ones((2, 5, 7))
    >>> attention = TanhSumAttention(hidden_features=8)
    >>> variables = attention.init(jax.random.key(0), query, key, value)
    >>> attention.apply(variables, query, key, value).shape
    (2, 3, 7)
    """

    hidden_features: int
    use_bias: bool = True
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    implementation: str | None = None
    kernel_init: Initializer = KERNEL_INIT
    bias_init: Initializer = BIAS_INIT

    @nn.compact
    def __call__(self, query, key, value, mask=None, *, lengths=None, return_weights=False):
        """Attends.

        Args:
          query: [..., n, d] queries.
          key: [..., m, e] keys.
          value: [..., m, v] values.
          mask: bool, broadcastable to [..., n, m], True = this query sees this key.
          lengths: number of keys to attend to, counted from the left: integers [..., n], [...] or (). Give this or
            ``mask``.
          return_weights: also return the weights.

        Returns:
          [..., n, v], and with ``return_weights`` the weights [..., n, m].
        """
        sizes = read_sizes("TanhSumAttention", {"query": query, "key": key, "value": value})
        parameters = values(self, "TanhSumAttention", sizes, kernel=self.kernel_init, bias=self.bias_init)
        return tanh_sum_attention(
            cast(query, self.dtype),
            cast(key, self.dtype),
            cast(value, self.dtype),
            mask=mask,
            lengths=lengths,
            return_weights=return_weights,
            implementation=self.implementation,
            precision=self.precision,
            **parameters,
        )


class LocationAttention(TokenWalker, kw_only=True):
    """Attention over numbered slots with an output projection (Luong's "location").

    Calls :func:`attnpool_flax.location_attention`. Parameters: ``kernel`` [d+e, m], ``out_kernel`` [d+v, o] and, unless
    ``use_bias`` is False, ``bias`` [m] and ``out_bias`` [o].

    Attributes:
      out_features: o, the width of the result.
      use_bias: whether there are biases; without, they are 0.
      dtype: the dtype to which data and parameters are cast first; None promotes them.
      param_dtype: the dtype of the parameters.
      precision: of the products; None is full float32.
      kernel_init: initialiser of the kernels.
      bias_init: initialiser of the biases.

    >>> import jax
    >>> query, state, value = jnp.ones((2, 3, 4)), jnp.ones((2, 3, 6)), jnp.ones((2, 5, 7))
    >>> attention = LocationAttention(out_features=8)
    >>> variables = attention.init(jax.random.key(0), query, state, value)
    >>> attention.apply(variables, query, state, value).shape
    (2, 3, 8)
    """

    out_features: int
    use_bias: bool = True
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    kernel_init: Initializer = KERNEL_INIT
    bias_init: Initializer = BIAS_INIT

    @nn.compact
    def __call__(self, query, state, value, mask=None, *, return_weights=False):
        """Attends to slots and combines each query with what it found.

        Args:
          query: [..., n, d] queries.
          state: [..., n, e] one state vector for each query.
          value: [..., m, v] what stands in the slots.
          mask: bool, broadcastable to [..., m], True = this slot is real.
          return_weights: also return the weights.

        Returns:
          [..., n, o], and with ``return_weights`` the weights [..., n, m].
        """
        sizes = read_sizes("LocationAttention", {"query": query, "state": state, "value": value})
        parameters = values(self, "LocationAttention", sizes, kernel=self.kernel_init, bias=self.bias_init)
        return location_attention(
            cast(query, self.dtype),
            cast(state, self.dtype),
            cast(value, self.dtype),
            mask=mask,
            return_weights=return_weights,
            precision=self.precision,
            **parameters,
        )


class MultiHeadAttention(TokenWalker):
    """Multi-head scaled dot-product attention (Transformer).

    Calls :func:`attnpool_flax.multi_head_attention`. Parameters: ``query_kernel`` [d, H, c], ``key_kernel`` [e, H, c],
    ``value_kernel`` [v, H, c], ``out_kernel`` [H, c, o] and, depending on ``use_bias``, ``query_bias`` [H, c],
    ``key_bias`` [H, c], ``value_bias`` [H, c], ``out_bias`` [o]: the layouts of Flax's own attention.

    Attributes:
      num_heads: H, the number of heads.
      qkv_features: H·c, the width of all heads together; None is that of the queries.
      out_features: o, the width of the result; None is that of the queries.
      use_bias: whether there are biases; or a tuple of the names of those that there are.
      dropout_rate: of the attention weights, in [0, 1].
      deterministic: True drops no weights, False draws with the key "dropout"; here or in the call.
      dtype: the dtype to which data and parameters are cast first; None promotes them.
      param_dtype: the dtype of the parameters.
      precision: of the products; None is full float32.
      implementation: "einsum", "tiles" (blockwise, less memory), or None to choose automatically.
      kernel_init: initialiser of the kernels.
      bias_init: initialiser of the biases.

    >>> import jax
    >>> query, key, value = jnp.ones((2, 3, 4)), jnp.ones((2, 5, 6)), jnp.ones((2, 5, 7))
    >>> attention = MultiHeadAttention(2)
    >>> variables = attention.init(jax.random.key(0), query, key, value)
    >>> attention.apply(variables, query, key, value).shape
    (2, 3, 4)
    """

    num_heads: int
    _: KW_ONLY
    qkv_features: int | None = None
    out_features: int | None = None
    use_bias: bool | tuple[str, ...] = True
    dropout_rate: float = 0.0
    deterministic: bool | None = None
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    implementation: str | None = None
    kernel_init: Initializer = KERNEL_INIT
    bias_init: Initializer = BIAS_INIT

    @nn.compact
    def __call__(self, query, key, value, mask=None, *, lengths=None, deterministic=None, return_weights=False):
        """Attends with several heads.

        Args:
          query: [..., n, d] queries.
          key: [..., m, e] keys.
          value: [..., m, v] values.
          mask: bool, broadcastable to [..., n, m] or [..., H, n, m], True = this query sees this key.
          lengths: number of keys to attend to, counted from the left: integers [..., n], [...] or (). Give this or
            ``mask``.
          deterministic: True drops no weights, False draws with the key "dropout"; needed, here or in the constructor,
            if there is dropout.
          return_weights: also return the weights, as they are before dropout.

        Returns:
          [..., n, o], and with ``return_weights`` the weights [..., H, n, m].
        """
        sizes = read_sizes("MultiHeadAttention", {"query": query, "key": key, "value": value})
        width = sizes["query_features"]
        sizes["out_features"] = width if self.out_features is None else self.out_features
        qkv_features = width if self.qkv_features is None else self.qkv_features
        sizes["head_features"] = head_features("MultiHeadAttention", self.num_heads, qkv_features)
        parameters = values(self, "MultiHeadAttention", sizes, kernel=self.kernel_init, bias=self.bias_init)
        return multi_head_attention(
            cast(query, self.dtype),
            cast(key, self.dtype),
            cast(value, self.dtype),
            mask=mask,
            lengths=lengths,
            dropout_multiplier=multiplier(self, "MultiHeadAttention", deterministic, query=query, key=key, value=value),
            return_weights=return_weights,
            implementation=self.implementation,
            precision=self.precision,
            **parameters,
        )
