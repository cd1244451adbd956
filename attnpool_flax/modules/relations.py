"""NNX modules of attention between examples, fields and labels."""

from dataclasses import KW_ONLY
from typing import ClassVar

from attnpool_flax.modules.creation import PoolingModule, constructor_from_fields
from attnpool_flax.relations import field_attention_pooling, label_attention, relation_vector


@constructor_from_fields
class RelationVector(PoolingModule):
    """Relation vector of two examples: an MLP with one hidden layer (CTM).

    Calls :func:`attnpool_flax.relation_vector`. Parameters: ``x_kernel`` [f, h], ``y_kernel`` [f, h], ``out_kernel``
    [h, o] and, unless ``use_bias`` is False, ``bias`` [h]. :func:`attnpool_flax.relation_triplet_loss` takes the same
    parameters.

    Args:
      in_features: f, the width of both examples.
      out_features: o, the width of the result; None is the examples' width.
      use_bias: whether there is a bias; if not, zeros take its place.

    >>> relation = RelationVector(4, 8, rngs=nnx.Rngs(0))
    >>> x, y = jnp.ones((2, 4)), jnp.ones((2, 4))
    >>> relation(x, y).shape
    (2, 4)
    """

    in_features: int
    hidden_features: int
    _: KW_ONLY
    out_features: int | None = None
    use_bias: bool = True

    def __call__(self, x, y):
        """Computes the relation vector of each pair of examples.

        Returns:
          [..., o].
        """
        return relation_vector(**self._arguments(x=x, y=y))


@constructor_from_fields
class FieldAttentionPool(PoolingModule):
    """Attention pooling of an example's fields, each concatenated with the target (MIAN).

    Calls :func:`attnpool_flax.field_attention_pooling`. Parameters: ``kernel`` [J, d+e] and, unless ``use_bias`` is
    False, ``bias`` [J], with a row for each field; without ``num_fields`` one row for all fields: ``kernel`` [d+e],
    ``bias`` [].

    Args:
      target_features: d, the width of the target; may be 0.
      field_features: e, the width of the fields.
      num_fields: J, the number of fields, to learn one kernel for each; None shares one kernel.
      use_bias: whether there is a bias; if not, zeros take its place.

    >>> pool = FieldAttentionPool(4, 6, rngs=nnx.Rngs(0))
    >>> target, fields = jnp.ones((2, 4)), jnp.ones((2, 5, 6))
    >>> pool(target, fields).shape
    (2, 10)
    """

    target_features: int
    field_features: int
    _: KW_ONLY
    num_fields: int | None = None
    use_bias: bool = True

    def __call__(self, target, fields, mask=None, *, return_weights=False):
        """Pools the fields, each concatenated with the target.

        Returns:
          [..., d+e], and with ``return_weights`` the weights [..., J].
        """
        return field_attention_pooling(
            mask=mask, return_weights=return_weights, **self._arguments(target=target, fields=fields)
        )


@constructor_from_fields
class LabelAttention(PoolingModule):
    """Single-head self-attention among label vectors.

    Calls :func:`attnpool_flax.label_attention`. Parameters: ``query_kernel`` [d, c], ``key_kernel`` [d, c] and
    ``value_kernel`` [d, v].

    Args:
      in_features: d, the width of the labels.
      qk_features: c, the width of queries and keys; None is the labels' width.
      out_features: v, the width of the result; None is the labels' width.

    >>> attention = LabelAttention(4, rngs=nnx.Rngs(0))
    >>> labels = jnp.ones((2, 3, 4))
    >>> attention(labels).shape
    (2, 3, 4)
    """

    in_features: int
    _: KW_ONLY
    qk_features: int | None = None
    out_features: int | None = None

    _of_call: ClassVar = {
        "mask": "bool, broadcastable to [..., M]: True at real labels, False at padding; None if all are real. A padded "
        "label is neither query nor key: its row of the result and of the weights is 0."
    }

    def __call__(self, labels, mask=None, *, return_weights=False):
        """Computes self-attention among the labels.

        Returns:
          [..., M, v], and with ``return_weights`` the weights [..., M, M].
        """
        return label_attention(mask=mask, return_weights=return_weights, **self._arguments(labels=labels))
