"""NNX modules of attention: one result for each query."""

from dataclasses import KW_ONLY
from typing import ClassVar

from attnpool_flax.attention import additive_attention, location_attention, multi_head_attention, tanh_sum_attention
from attnpool_flax.modules.creation import PoolingModule, constructor_from_fields


@constructor_from_fields
class AdditiveAttention(PoolingModule):
    """Additive attention (Bahdanau).

    Calls :func:`attnpool_flax.additive_attention`. Parameters: ``query_kernel`` [d, h], ``key_kernel`` [e, h],
    ``out_kernel`` [h]; with ``use_bias`` also ``bias`` [h].

    >>> attention = AdditiveAttention(4, 6, 8, rngs=nnx.Rngs(0))
    >>> query, key, value = jnp.ones((2, 3, 4)), jnp.ones((2, 5, 6)), jnp.ones((2, 5, 7))
    >>> attention(query, key, value).shape
    (2, 3, 7)
    """

    query_features: int
    key_features: int
    hidden_features: int
    _: KW_ONLY
    use_bias: bool = False

    def __call__(
        self, query, key, value, mask=None, *, lengths=None, deterministic=None, rngs=None, return_weights=False
    ):
        """Averages the values for each query, under its attention weights.

        Returns:
          [..., n, v], and with ``return_weights`` the weights [..., n, m].
        """
        return additive_attention(
            mask=mask,
            lengths=lengths,
            return_weights=return_weights,
            **self._multipliers(deterministic, rngs, query=query, key=key, value=value),
            **self._arguments(query=query, key=key, value=value),
        )


@constructor_from_fields
class TanhSumAttention(PoolingModule):
    """Attention whose scores sum a tanh layer over the concatenated query and key.

    Calls :func:`attnpool_flax.tanh_sum_attention`. Parameters: ``kernel`` [d+e, h] and, unless ``use_bias`` is False,
    ``bias`` [h]. Scores are sums without learned weights, which grow with h: for h = 64 a fresh module gives most of the
    weight of unit normal tokens to one of them. :class:`AdditiveAttention` has learned weights.

    >>> attention = TanhSumAttention(4, 6, 8, rngs=nnx.Rngs(0))
    >>> query, key, value = jnp.ones((2, 3, 4)), jnp.ones((2, 5, 6)), jnp.ones((2, 5, 7))
    >>> attention(query, key, value).shape
    (2, 3, 7)
    """

    query_features: int
    key_features: int
    hidden_features: int
    _: KW_ONLY
    use_bias: bool = True

    def __call__(self, query, key, value, mask=None, *, lengths=None, return_weights=False):
        """Averages the values for each query, under its attention weights.

        Returns:
          [..., n, v], and with ``return_weights`` the weights [..., n, m].
        """
        return tanh_sum_attention(
            mask=mask,
            lengths=lengths,
            return_weights=return_weights,
            **self._arguments(query=query, key=key, value=value),
        )


@constructor_from_fields
class LocationAttention(PoolingModule):
    """Attention over numbered slots with an output projection (Luong's "location").

    Calls :func:`attnpool_flax.location_attention`. Parameters: ``kernel`` [d+e, m], ``out_kernel`` [d+v, o] and, unless
    ``use_bias`` is False, ``bias`` [m] and ``out_bias`` [o].

    Args:
      state_features: e, the width of the states.
      value_features: v, the width of the values.
      num_slots: m, the number of slots.
      out_features: o, the width of the result.
      use_bias: whether there are biases; if not, zeros take their place.

    >>> attention = LocationAttention(4, 6, 7, 5, 8, rngs=nnx.Rngs(0))
    >>> query, state, value = jnp.ones((2, 3, 4)), jnp.ones((2, 3, 6)), jnp.ones((2, 5, 7))
    >>> attention(query, state, value).shape
    (2, 3, 8)
    """

    query_features: int
    state_features: int
    value_features: int
    num_slots: int
    out_features: int
    _: KW_ONLY
    use_bias: bool = True

    _of_call: ClassVar = {
        "state": "[..., n, e] one state for each query. The scores of the slots come from query and state only."
    }

    def __call__(self, query, state, value, mask=None, *, return_weights=False):
        """Averages the slots for each query, and projects the query concatenated with that average.

        Returns:
          [..., n, o], and with ``return_weights`` the weights [..., n, m].
        """
        return location_attention(
            mask=mask, return_weights=return_weights, **self._arguments(query=query, state=state, value=value)
        )


@constructor_from_fields
class MultiHeadAttention(PoolingModule):
    """Multi-head scaled dot-product attention (Transformer).

    Calls :func:`attnpool_flax.multi_head_attention`. Parameters: ``query_kernel`` [d, H, c], ``key_kernel`` [e, H, c],
    ``value_kernel`` [v, H, c], ``out_kernel`` [H, c, o] and, depending on ``use_bias``, ``query_bias`` [H, c],
    ``key_bias`` [H, c], ``value_bias`` [H, c], ``out_bias`` [o]. These are the layouts of ``nnx.MultiHeadAttention``.

    Args:
      key_features: e, the width of the keys; None is the queries' width.
      value_features: v, the width of the values; None is the keys' width.
      qkv_features: H·c, the width of all heads together; None is the queries' width.
      out_features: o, the width of the result; None is the queries' width.
      use_bias: whether there are biases; or a tuple of the names of the biases to have.
      sink: the score of an attention sink: None, a number that stays fixed, such as 0, or "learned" for a parameter
        ``sink`` [H], which starts at 0.

    >>> attention = MultiHeadAttention(num_heads=2, query_features=4, key_features=6, value_features=7, rngs=nnx.Rngs(0))
    >>> query, key, value = jnp.ones((2, 3, 4)), jnp.ones((2, 5, 6)), jnp.ones((2, 5, 7))
    >>> attention(query, key, value).shape
    (2, 3, 4)
    """

    _: KW_ONLY
    num_heads: int
    query_features: int
    key_features: int | None = None
    value_features: int | None = None
    qkv_features: int | None = None
    out_features: int | None = None
    use_bias: bool | tuple[str, ...] = True
    sink: float | str | None = None

    def __call__(
        self, query, key, value, mask=None, *, lengths=None, deterministic=None, rngs=None, return_weights=False
    ):
        """Attends with several heads.

        Returns:
          [..., n, o], and with ``return_weights`` the weights [..., H, n, m].
        """
        return multi_head_attention(
            mask=mask,
            lengths=lengths,
            return_weights=return_weights,
            **self._multipliers(deterministic, rngs, query=query, key=key, value=value),
            **self._arguments(query=query, key=key, value=value),
        )
