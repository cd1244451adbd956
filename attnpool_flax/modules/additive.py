"""NNX module of additive attention pooling (ABMIL)."""

from dataclasses import KW_ONLY
from typing import ClassVar

from attnpool_flax.additive import additive_attention_pooling
from attnpool_flax.modules.creation import PoolingModule, constructor_from_fields, in_layout
from attnpool_flax.modules.parameters import cast


@constructor_from_fields
class AdditiveAttentionPool(PoolingModule):
    """Attention over a bag, gated or not (ABMIL).

    Calls :func:`attnpool_flax.additive_attention_pooling`. Parameters: ``kernel`` [d, h] and ``out_kernel`` [h], or
    with ``num_queries`` [h, n]; ``bias`` [h]; with ``gated`` also ``gate_kernel`` [d, h] and ``gate_bias`` [h]. Without
    ``use_bias`` there is neither bias. The scores have no bias, because it would cancel in the softmax.

    Args:
      num_queries: n, the number of averages (hops, classes); None computes one, without an axis for it.
      gated: whether to multiply the hidden layer by a second one with a sigmoid (gated attention).
      use_bias: whether the hidden layers have biases.
      activation: "tanh", "relu", "gelu" (exact) or "identity".
      sink: the score of an attention sink: None, a number that stays fixed, such as 0, or "learned" for a parameter
        ``sink`` [], or with ``num_queries`` [n], which starts at 0.

    >>> pool = AdditiveAttentionPool(4, 8, num_queries=5, gated=True, rngs=nnx.Rngs(0))
    >>> x = jnp.ones((2, 3, 4))
    >>> pool(x).shape
    (2, 5, 4)
    """

    in_features: int
    hidden_features: int
    _: KW_ONLY
    num_queries: int | None = None
    gated: bool = False
    use_bias: bool = True
    activation: str = "tanh"
    sink: float | str | None = None

    _of_call: ClassVar = {"value": "[..., L, v] the values to average, or packed [N, v]; None averages the tokens."}

    def __call__(
        self,
        x,
        mask=None,
        *,
        lengths=None,
        value=None,
        segment_ids=None,
        num_segments=None,
        deterministic=None,
        rngs=None,
        return_weights=False,
    ):
        """Pools tokens, once, or once for each of n hops.

        Returns:
          [..., v], and with ``return_weights`` the weights [..., L]; with ``num_queries`` [..., n, v] and [..., n, L].
          Without ``value``, v is d.
          The weights of packed tokens have no batch axes, and N in place of L.
        """
        pool, layout = in_layout(
            self, additive_attention_pooling, num_segments, lengths=lengths, segment_ids=segment_ids
        )
        return pool(
            value=cast(value, self.dtype),
            mask=mask,
            return_weights=return_weights,
            **self._multipliers(deterministic, rngs, x=x),
            **self._arguments(x=x),
            **layout,
        )
