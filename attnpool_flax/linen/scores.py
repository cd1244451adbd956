"""Linen modules of attention scores."""

import flax.linen as nn
import jax.numpy as jnp
from flax.typing import Dtype, Initializer, PrecisionLike

from attnpool_flax.linen.creation import TokenWalker, values
from attnpool_flax.modules.parameters import BIAS_INIT, KERNEL_INIT, cast, read_sizes
from attnpool_flax.scores import (
    additive_score,
    bilinear_score,
    concat_score,
    location_score,
    tanh_sum_score,
    trilinear_score,
)


class BilinearScore(TokenWalker, kw_only=True):
    """Bilinear attention score with a learned kernel (Luong's "general").

    Calls :func:`attnpool_flax.bilinear_score`. Parameters: ``kernel`` [d, e].

    Attributes:
      dtype: the dtype to which data and parameters are cast first; None promotes them.
      param_dtype: the dtype of the parameters.
      precision: of the products; None is full float32.
      kernel_init: initialiser of the kernels.

    >>> import jax
    >>> query, key = jnp.ones((2, 3, 4)), jnp.ones((2, 5, 6))
    >>> score = BilinearScore()
    >>> variables = score.init(jax.random.key(0), query, key)
    >>> score.apply(variables, query, key).shape
    (2, 3, 5)
    """

    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    kernel_init: Initializer = KERNEL_INIT

    @nn.compact
    def __call__(self, query, key):
        """Scores each pair.

        Args:
          query: [..., n, d] queries.
          key: [..., m, e] keys.

        Returns:
          [..., n, m] scores.
        """
        sizes = read_sizes("BilinearScore", {"query": query, "key": key})
        parameters = values(self, "BilinearScore", sizes, kernel=self.kernel_init)
        return bilinear_score(cast(query, self.dtype), cast(key, self.dtype), precision=self.precision, **parameters)


class AdditiveScore(TokenWalker, kw_only=True):
    """Additive attention score: a perceptron with one hidden layer (Bahdanau).

    Calls :func:`attnpool_flax.additive_score`. Parameters: ``query_kernel`` [d, h], ``key_kernel`` [e, h],
    ``out_kernel`` [h]; with ``use_bias`` also ``bias`` [h].

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
    >>> query, key = jnp.ones((2, 3, 4)), jnp.ones((2, 5, 6))
    >>> score = AdditiveScore(hidden_features=8)
    >>> variables = score.init(jax.random.key(0), query, key)
    >>> score.apply(variables, query, key).shape
    (2, 3, 5)
    """

    hidden_features: int
    use_bias: bool = False
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    implementation: str | None = None
    kernel_init: Initializer = KERNEL_INIT
    bias_init: Initializer = BIAS_INIT

    @nn.compact
    def __call__(self, query, key):
        """Scores each pair.

        Args:
          query: [..., n, d] queries.
          key: [..., m, e] keys.

        Returns:
          [..., n, m] scores.
        """
        sizes = read_sizes("AdditiveScore", {"query": query, "key": key})
        parameters = values(self, "AdditiveScore", sizes, kernel=self.kernel_init, bias=self.bias_init)
        return additive_score(
            cast(query, self.dtype),
            cast(key, self.dtype),
            precision=self.precision,
            implementation=self.implementation,
            **parameters,
        )


class ConcatScore(TokenWalker, kw_only=True):
    """Attention score of a perceptron over the concatenated query and key (Luong's "concat").

    Calls :func:`attnpool_flax.concat_score`. Parameters: ``kernel`` [d+e, h] and ``out_kernel`` [h]; with ``use_bias``
    also ``bias`` [h].

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
    >>> query, key = jnp.ones((2, 3, 4)), jnp.ones((2, 5, 6))
    >>> score = ConcatScore(hidden_features=8)
    >>> variables = score.init(jax.random.key(0), query, key)
    >>> score.apply(variables, query, key).shape
    (2, 3, 5)
    """

    hidden_features: int
    use_bias: bool = False
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    implementation: str | None = None
    kernel_init: Initializer = KERNEL_INIT
    bias_init: Initializer = BIAS_INIT

    @nn.compact
    def __call__(self, query, key):
        """Scores each pair.

        Args:
          query: [..., n, d] queries.
          key: [..., m, e] keys.

        Returns:
          [..., n, m] scores.
        """
        sizes = read_sizes("ConcatScore", {"query": query, "key": key})
        parameters = values(self, "ConcatScore", sizes, kernel=self.kernel_init, bias=self.bias_init)
        return concat_score(
            cast(query, self.dtype),
            cast(key, self.dtype),
            precision=self.precision,
            implementation=self.implementation,
            **parameters,
        )


class TanhSumScore(TokenWalker, kw_only=True):
    """Attention score that sums a tanh layer over the concatenated query and key.

    Calls :func:`attnpool_flax.tanh_sum_score`. Parameters: ``kernel`` [d+e, h] and, unless ``use_bias`` is False,
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
    >>> query, key = jnp.ones((2, 3, 4)), jnp.ones((2, 5, 6))
    >>> score = TanhSumScore(hidden_features=8)
    >>> variables = score.init(jax.random.key(0), query, key)
    >>> score.apply(variables, query, key).shape
    (2, 3, 5)
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
    def __call__(self, query, key):
        """Scores each pair.

        Args:
          query: [..., n, d] queries.
          key: [..., m, e] keys.

        Returns:
          [..., n, m] scores.
        """
        sizes = read_sizes("TanhSumScore", {"query": query, "key": key})
        parameters = values(self, "TanhSumScore", sizes, kernel=self.kernel_init, bias=self.bias_init)
        return tanh_sum_score(
            cast(query, self.dtype),
            cast(key, self.dtype),
            precision=self.precision,
            implementation=self.implementation,
            **parameters,
        )


class LocationScore(TokenWalker, kw_only=True):
    """Attention score of numbered slots from query and state (Luong's "location").

    Calls :func:`attnpool_flax.location_score`. Parameters: ``kernel`` [d+e, m] and, unless ``use_bias`` is False,
    ``bias`` [m].

    Attributes:
      num_slots: m, the number of slots.
      use_bias: whether there is a bias.
      dtype: the dtype to which data and parameters are cast first; None promotes them.
      param_dtype: the dtype of the parameters.
      precision: of the products; None is full float32.
      kernel_init: initialiser of the kernels.
      bias_init: initialiser of the biases.

    >>> import jax
    >>> query, state = jnp.ones((2, 3, 4)), jnp.ones((2, 3, 6))
    >>> score = LocationScore(num_slots=5)
    >>> variables = score.init(jax.random.key(0), query, state)
    >>> score.apply(variables, query, state).shape
    (2, 3, 5)
    """

    num_slots: int
    use_bias: bool = True
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    kernel_init: Initializer = KERNEL_INIT
    bias_init: Initializer = BIAS_INIT

    @nn.compact
    def __call__(self, query, state):
        """Scores each slot.

        Args:
          query: [..., n, d] queries.
          state: [..., n, e] one state vector for each query.

        Returns:
          [..., n, m] scores, one for each slot.
        """
        sizes = read_sizes("LocationScore", {"query": query, "state": state})
        parameters = values(self, "LocationScore", sizes, kernel=self.kernel_init, bias=self.bias_init)
        return location_score(cast(query, self.dtype), cast(state, self.dtype), precision=self.precision, **parameters)


class TrilinearScore(TokenWalker, kw_only=True):
    """Trilinear attention score of query, key and their elementwise product (BiDAF).

    Calls :func:`attnpool_flax.trilinear_score`. Parameters: ``kernel`` [3d], over the query, the key and their product.

    Attributes:
      dtype: the dtype to which data and parameters are cast first; None promotes them.
      param_dtype: the dtype of the parameters.
      precision: of the products; None is full float32.
      kernel_init: initialiser of the kernels.

    >>> import jax
    >>> query, key = jnp.ones((2, 3, 4)), jnp.ones((2, 5, 4))
    >>> score = TrilinearScore()
    >>> variables = score.init(jax.random.key(0), query, key)
    >>> score.apply(variables, query, key).shape
    (2, 3, 5)
    """

    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    kernel_init: Initializer = KERNEL_INIT

    @nn.compact
    def __call__(self, query, key):
        """Scores each pair.

        Args:
          query: [..., n, d] queries.
          key: [..., m, d] keys.

        Returns:
          [..., n, m] scores.
        """
        sizes = read_sizes("TrilinearScore", {"query": query, "key": key})
        parameters = values(self, "TrilinearScore", sizes, kernel=self.kernel_init)
        return trilinear_score(cast(query, self.dtype), cast(key, self.dtype), precision=self.precision, **parameters)
