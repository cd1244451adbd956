"""Linen modules of attention between examples, fields and labels."""

import flax.linen as nn
import jax.numpy as jnp
from flax.typing import Dtype, Initializer, PrecisionLike

from attnpool_flax.linen.creation import TokenWalker, values
from attnpool_flax.modules.parameters import BIAS_INIT, KERNEL_INIT, cast, read_sizes
from attnpool_flax.relations import field_attention_pooling, label_attention, relation_vector


class RelationVector(TokenWalker, kw_only=True):
    """Relation vector of two examples: a perceptron with one hidden layer (CTM).

    Calls :func:`attnpool_flax.relation_vector`. Parameters: ``x_kernel`` [f, h], ``y_kernel`` [f, h], ``out_kernel``
    [h, o] and, unless ``use_bias`` is False, ``bias`` [h]. :func:`attnpool_flax.relation_triplet_loss` takes the same
    parameters.

    Attributes:
      hidden_features: h, the width of the hidden layer.
      out_features: o, the width of the result; None is that of the examples.
      use_bias: whether there is a bias; without, it is 0.
      dtype: the dtype to which data and parameters are cast first; None promotes them.
      param_dtype: the dtype of the parameters.
      precision: of the products; None is full float32.
      kernel_init: initialiser of the kernels.
      bias_init: initialiser of the biases.

    >>> import jax
    >>> x, y = jnp.ones((2, 4)), jnp.ones((2, 4))
    >>> relation = RelationVector(hidden_features=8)
    >>> variables = relation.init(jax.random.key(0), x, y)
    >>> relation.apply(variables, x, y).shape
    (2, 4)
    """

    hidden_features: int
    out_features: int | None = None
    use_bias: bool = True
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    kernel_init: Initializer = KERNEL_INIT
    bias_init: Initializer = BIAS_INIT

    @nn.compact
    def __call__(self, x, y):
        """Relates each example to another one.

        Args:
          x: [..., f] examples.
          y: [..., f] examples.

        Returns:
          [..., o].
        """
        sizes = read_sizes("RelationVector", {"x": x, "y": y})
        sizes["out_features"] = sizes["in_features"] if self.out_features is None else self.out_features
        parameters = values(self, "RelationVector", sizes, kernel=self.kernel_init, bias=self.bias_init)
        return relation_vector(cast(x, self.dtype), cast(y, self.dtype), precision=self.precision, **parameters)


class FieldAttentionPool(TokenWalker, kw_only=True):
    """Attention pooling of an example's fields, each concatenated with the target (MIAN).

    Calls :func:`attnpool_flax.field_attention_pooling`. Parameters: ``kernel`` [J, d+e] and, unless ``use_bias`` is
    False, ``bias`` [J], one for each field; without ``num_fields`` one for all: ``kernel`` [d+e], ``bias`` [].

    Attributes:
      num_fields: J, the number of fields, to learn one kernel for each; None shares one kernel.
      use_bias: whether there is a bias; without, it is 0.
      dtype: the dtype to which data and parameters are cast first; None promotes them.
      param_dtype: the dtype of the parameters.
      precision: of the products; None is full float32.
      kernel_init: initialiser of the kernels.
      bias_init: initialiser of the biases.

    >>> import jax
    >>> target, fields = jnp.ones((2, 4)), jnp.ones((2, 5, 6))
    >>> pool = FieldAttentionPool()
    >>> variables = pool.init(jax.random.key(0), target, fields)
    >>> pool.apply(variables, target, fields).shape
    (2, 10)
    """

    num_fields: int | None = None
    use_bias: bool = True
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    kernel_init: Initializer = KERNEL_INIT
    bias_init: Initializer = BIAS_INIT

    @nn.compact
    def __call__(self, target, fields, mask=None, *, return_weights=False):
        """Pools the fields, each concatenated with the target.

        Args:
          target: [..., d] vectors.
          fields: [..., J, e] vectors.
          mask: bool, broadcastable to [..., J], True = real.
          return_weights: also return the weights.

        Returns:
          [..., d+e], and with ``return_weights`` the weights [..., J].
        """
        sizes = read_sizes("FieldAttentionPool", {"target": target, "fields": fields})
        sizes["num_fields"] = self.num_fields  # whether the kernel is shared cannot be read off the fields
        parameters = values(self, "FieldAttentionPool", sizes, kernel=self.kernel_init, bias=self.bias_init)
        return field_attention_pooling(
            cast(target, self.dtype),
            cast(fields, self.dtype),
            mask=mask,
            return_weights=return_weights,
            precision=self.precision,
            **parameters,
        )


class LabelAttention(TokenWalker, kw_only=True):
    """Single-head self-attention among label vectors.

    Calls :func:`attnpool_flax.label_attention`. Parameters: ``query_kernel`` [d, c], ``key_kernel`` [d, c] and
    ``value_kernel`` [d, v].

    Attributes:
      qk_features: c, the width of queries and keys; None is that of the labels.
      out_features: v, the width of the result; None is that of the labels.
      dtype: the dtype to which data and parameters are cast first; None promotes them.
      param_dtype: the dtype of the parameters.
      precision: of the products; None is full float32.
      implementation: "einsum", "tiles" (blockwise, less memory), or None to choose automatically.
      kernel_init: initialiser of the kernels.

    >>> import jax
    >>> labels = jnp.ones((2, 3, 4))
    >>> attention = LabelAttention()
    >>> variables = attention.init(jax.random.key(0), labels)
    >>> attention.apply(variables, labels).shape
    (2, 3, 4)
    """

    qk_features: int | None = None
    out_features: int | None = None
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    implementation: str | None = None
    kernel_init: Initializer = KERNEL_INIT

    @nn.compact
    def __call__(self, labels, mask=None, *, return_weights=False):
        """Lets labels attend to each other.

        Args:
          labels: [..., M, d] vectors.
          mask: bool, broadcastable to [..., M], True = real.
          return_weights: also return the weights.

        Returns:
          [..., M, v], and with ``return_weights`` the weights [..., M, M].
        """
        sizes = read_sizes("LabelAttention", {"labels": labels})
        sizes["qk_features"] = sizes["in_features"] if self.qk_features is None else self.qk_features
        sizes["out_features"] = sizes["in_features"] if self.out_features is None else self.out_features
        parameters = values(self, "LabelAttention", sizes, kernel=self.kernel_init)
        return label_attention(
            cast(labels, self.dtype),
            mask=mask,
            return_weights=return_weights,
            implementation=self.implementation,
            precision=self.precision,
            **parameters,
        )
