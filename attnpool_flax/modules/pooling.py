"""NNX modules of weighted and attention pooling."""

from dataclasses import KW_ONLY

from attnpool_flax.modules.creation import PoolingModule, constructor_from_fields, in_layout
from attnpool_flax.modules.parameters import Normalizer
from attnpool_flax.pooling import attention_pooling, multi_head_attention_pooling, weighted_pooling
from attnpool_flax.pooling.multi_head import of_queries


@constructor_from_fields
class WeightedPool(PoolingModule):
    """Weighted mean of the tokens with one learned weight for each position.

    Calls :func:`attnpool_flax.weighted_pooling`. Parameters: ``weights`` [L], one for each position, which start at 1.

    Args:
      num_slots: L, the length of every sequence, padding included.
      param_dtype: the dtype of the weights.
      rngs: not used, because the weights start at ones; accepted because every module takes it.

    >>> pool = WeightedPool(3, rngs=nnx.Rngs(0))
    >>> x = jnp.ones((2, 3, 4))
    >>> pool(x).shape
    (2, 4)
    """

    num_slots: int

    def __call__(self, x, mask=None, *, lengths=None):
        """Pools tokens.

        Returns:
          [..., d].
        """
        return weighted_pooling(mask=mask, lengths=lengths, **self._arguments(x=x))


@constructor_from_fields
class AttentionPool(PoolingModule):
    """Attention pooling with one learned query.

    Calls :func:`attnpool_flax.attention_pooling`. Parameters: ``query`` [d]; with ``qk_features`` also ``query_kernel``
    [d, c] and ``key_kernel`` [d, c]; with ``normalize_query`` also ``query_norm_scale`` [d] and ``query_norm_bias``
    [d], which start at ones and zeros.

    Args:
      in_features: d, the width of the tokens and of the query.
      qk_features: c, the width to which query and tokens are projected; None compares them unprojected.
      normalize_query: apply layer normalization to the query, before its kernel.
      epsilon: the epsilon of the layer normalization.
      scale: a number in place of 1/sqrt(c); without kernels c = d.
      normalizer: "softmax", "sparsemax", "entmax15", "sigmoid", "hardmax", or a function (scores, mask) -> weights,
        as in :func:`attnpool_flax.attention_pooling`; packed tokens and ``axis_name`` take only "softmax" or
        "sigmoid".
      sink: the score of an attention sink: None, a number that stays fixed, such as 0, or "learned" for a parameter
        ``sink`` [], which starts at 0.
      query_init: initializer of the query, called with the shape [d, 1].

    >>> pool = AttentionPool(4, rngs=nnx.Rngs(0))
    >>> x = jnp.ones((2, 3, 4))
    >>> pool(x, mask=jnp.array([[True, True, False], [False, False, False]])).shape
    (2, 4)
    """

    in_features: int
    _: KW_ONLY
    qk_features: int | None = None
    normalize_query: bool = False
    epsilon: float = 1e-6
    scale: float | None = None
    normalizer: Normalizer = "softmax"
    sink: float | str | None = None

    def __call__(
        self,
        x,
        mask=None,
        *,
        lengths=None,
        segment_ids=None,
        num_segments=None,
        deterministic=None,
        rngs=None,
        return_weights=False,
    ):
        """Pools tokens.

        Returns:
          [..., d], and with ``return_weights`` the weights [..., L].
          The weights of packed tokens have no batch axes, and N in place of L.
        """
        pool, layout = in_layout(self, attention_pooling, num_segments, lengths=lengths, segment_ids=segment_ids)
        return pool(
            mask=mask,
            return_weights=return_weights,
            **self._multipliers(deterministic, rngs, x=x),
            **self._arguments(x=x),
            **layout,
        )


@constructor_from_fields
class MultiHeadAttentionPool(PoolingModule):
    """Multi-head attention pooling with learned queries (MAP).

    Calls :func:`attnpool_flax.multi_head_attention_pooling`. Parameters: ``query`` [n, d], ``query_kernel`` [d, H, c],
    ``key_kernel`` [d, H, c], ``value_kernel`` [d, H, c], ``out_kernel`` [H, c, o] and, depending on ``use_bias``,
    ``query_bias`` [H, c], ``key_bias`` [H, c], ``value_bias`` [H, c], ``out_bias`` [o].

    Args:
      in_features: d, the width of the tokens and of the queries.
      num_queries: n, the number of learned queries; None makes one and drops its axis: [..., o].
      use_bias: whether there are biases; or a tuple of the names of the biases to have.
      scale: a number in place of 1/sqrt(c).
      normalizer: "softmax", "sparsemax", "entmax15", "sigmoid", "hardmax", or a function (scores, mask) -> weights,
        as in :func:`attnpool_flax.attend`; packed tokens and ``axis_name`` take only "softmax" or "sigmoid".
      sink: the score of an attention sink: None, a number that stays fixed, such as 0, or "learned" for a parameter
        ``sink`` [H], which starts at 0.
      query_init: initializer of the queries, called with the shape [d, n].

    >>> pool = MultiHeadAttentionPool(num_heads=2, in_features=4, num_queries=5, rngs=nnx.Rngs(0))
    >>> x = jnp.ones((2, 3, 4))
    >>> pool(x).shape
    (2, 5, 4)
    """

    _: KW_ONLY
    num_heads: int
    in_features: int
    num_queries: int | None = 1
    qkv_features: int | None = None
    out_features: int | None = None
    use_bias: bool | tuple[str, ...] = True
    scale: float | None = None
    normalizer: Normalizer = "softmax"
    sink: float | str | None = None

    def __call__(
        self,
        x,
        mask=None,
        *,
        lengths=None,
        segment_ids=None,
        num_segments=None,
        deterministic=None,
        rngs=None,
        return_weights=False,
    ):
        """Pools tokens, once for each learned query.

        Returns:
          [..., n, o], and with ``return_weights`` the weights [..., H, n, L]; [..., o] and [..., H, L] with
          ``num_queries=None``.
          The weights of packed tokens have no batch axes, and N in place of L.
        """
        pool, layout = in_layout(
            self, multi_head_attention_pooling, num_segments, lengths=lengths, segment_ids=segment_ids
        )
        found = pool(
            mask=mask,
            return_weights=return_weights,
            **self._multipliers(deterministic, rngs, x=x),
            **self._arguments(x=x),
            **layout,
        )
        return of_queries(found, self.num_queries)
