"""NNX modules of published pooling heads, which are built on multi-head attention pooling."""

from dataclasses import KW_ONLY

from attnpool_flax.modules.creation import PoolingModule, constructor_from_fields
from attnpool_flax.modules.head_functions import attention_pool_2d, attentional_pooler, map_head
from attnpool_flax.pooling.multi_head import of_queries


@constructor_from_fields
class MAPHead(PoolingModule):
    """MAP head of big_vision and SigLIP: attention pooling with one learned query, then a residual MLP.

    Parameters, where c = d / H is the width of a head: ``query`` [1, d], ``query_kernel`` [d, H, c], ``key_kernel``
    [d, H, c], ``value_kernel`` [d, H, c], ``out_kernel`` [H, c, d], depending on ``use_bias`` also ``query_bias``
    [H, c], ``key_bias`` [H, c], ``value_bias`` [H, c] and ``out_bias`` [d]; ``norm_scale`` [d], ``norm_bias`` [d],
    ``mlp_kernel`` [d, f], ``mlp_bias`` [f], ``mlp_out_kernel`` [f, d] and ``mlp_out_bias`` [d].

    Args:
      in_features: d, the width of the tokens and of the result.
      hidden_features: f, the width of the hidden layer.
      epsilon: the epsilon of the layer normalization.
      activation: "gelu_tanh", "gelu" (with erf, as in timm's generic head) or "relu".
      use_bias: whether the heads have biases; or a tuple of the names of the biases to have.
      query_init: initializer of the query, called with the shape [d, 1].

    >>> head = MAPHead(in_features=4, num_heads=2, hidden_features=8, rngs=nnx.Rngs(0))
    >>> x = jnp.ones((2, 3, 4))
    >>> head(x).shape
    (2, 1, 4)
    """

    _omitted = {"num_queries": "always has one query; `MultiHeadAttentionPool` and other heads take `num_queries`"}  # noqa: RUF012  annotated, it would be a field

    _: KW_ONLY
    in_features: int
    num_heads: int
    hidden_features: int
    epsilon: float = 1e-6
    activation: str = "gelu_tanh"
    use_bias: bool | tuple[str, ...] = True

    def __call__(self, x, mask=None, *, lengths=None, return_weights=False):
        """Pools tokens.

        Returns:
          [..., 1, d], and with ``return_weights`` the weights [..., H, 1, L].
        """
        return map_head(mask=mask, lengths=lengths, return_weights=return_weights, **self._arguments(x=x))


@constructor_from_fields
class AttentionalPooler(PoolingModule):
    """Attentional pooler of CoCa and CONCH: learned queries attend to normalized tokens, without an MLP.

    Parameters: ``query`` [n, q], ``query_kernel`` [q, H, c], ``key_kernel`` [d, H, c], ``value_kernel`` [d, H, c],
    ``out_kernel`` [H, c, o], depending on ``use_bias`` also ``query_bias`` [H, c], ``key_bias`` [H, c], ``value_bias``
    [H, c] and ``out_bias`` [o]; ``norm_scale`` [d], ``norm_bias`` [d], ``query_norm_scale`` [q] and ``query_norm_bias``
    [q].

    Args:
      num_queries: n, the number of learned queries; None makes one and drops its axis: [..., o].
      query_features: q, the width of the queries; None is the tokens' width.
      qkv_features: H·c, the width of all heads together; None is the queries' width.
      out_features: o, the width of the result; None is the queries' width.
      epsilon: the epsilon of the layer normalizations.
      use_bias: whether the heads have biases; or a tuple of the names of the biases to have.
      query_init: initializer of the queries, called with the shape [q, n].

    >>> head = AttentionalPooler(in_features=4, num_heads=2, num_queries=5, query_features=6, rngs=nnx.Rngs(0))
    >>> x = jnp.ones((2, 3, 4))
    >>> head(x).shape
    (2, 5, 6)
    """

    _: KW_ONLY
    in_features: int
    num_heads: int
    num_queries: int | None
    query_features: int | None = None
    qkv_features: int | None = None
    out_features: int | None = None
    epsilon: float = 1e-5
    use_bias: bool | tuple[str, ...] = True

    def __call__(self, x, mask=None, *, lengths=None, return_weights=False):
        """Pools tokens.

        Returns:
          [..., n, o], and with ``return_weights`` the weights [..., H, n, L]; [..., o] and [..., H, L] with
          ``num_queries=None``.
        """
        found = attentional_pooler(mask=mask, lengths=lengths, return_weights=return_weights, **self._arguments(x=x))
        return of_queries(found, self.num_queries)


@constructor_from_fields
class AttentionPool2d(PoolingModule):
    """Attention pooling of CLIP's ResNets: the query is the mean of the real tokens, or a class token.

    Parameters: ``position`` [num_slots + 1, d], added to the mean (or class token) and the tokens, ``query_kernel``
    [d, H, c], ``key_kernel`` [d, H, c], ``value_kernel`` [d, H, c], ``out_kernel`` [H, c, o]; depending on
    ``use_bias``, ``query_bias`` [H, c], ``key_bias`` [H, c], ``value_bias`` [H, c] and ``out_bias`` [o]; and with
    ``use_class_token`` ``class_token`` [d].

    Args:
      num_slots: the length of every sequence, padding included.
      qkv_features: H·c, the width of all heads together; None is the tokens' width.
      out_features: o, the width of the result; None is the tokens' width.
      use_class_token: whether a learned token replaces the mean, an option of timm.
      use_bias: whether the heads have biases; or a tuple of the names of the biases to have.
      query_init: initializer of the positions, called with the shape [d, num_slots + 1], and of the class token.

    >>> head = AttentionPool2d(in_features=4, num_heads=2, num_slots=3, out_features=6, rngs=nnx.Rngs(0))
    >>> x = jnp.ones((2, 3, 4))
    >>> head(x).shape
    (2, 6)
    """

    _: KW_ONLY
    in_features: int
    num_heads: int
    num_slots: int
    qkv_features: int | None = None
    out_features: int | None = None
    use_class_token: bool = False
    use_bias: bool | tuple[str, ...] = True

    def __call__(self, x, mask=None, *, lengths=None, return_weights=False):
        """Pools tokens.

        Returns:
          [..., o], and with ``return_weights`` the weights [..., H, num_slots + 1]; the first weight is that of the
          mean or class token.
        """
        return attention_pool_2d(mask=mask, lengths=lengths, return_weights=return_weights, **self._arguments(x=x))
