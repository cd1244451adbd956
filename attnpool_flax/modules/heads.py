"""Published pooling heads: attention pooling with further layers before or after it, each a function and its module.

The queries are learned, except in :class:`AttentionPool2d`, where by default the query is the mean of the real tokens.

Padding is set to 0 before the first layer, so that NaN at padding reaches no gradient of a parameter. In a fully masked
row the attention output is 0, and the layers after the attention map this vector like any other. The docstrings of the
modules have the shapes of the parameters.
"""

from dataclasses import KW_ONLY

import jax.numpy as jnp

from attnpool_flax.attention import from_heads
from attnpool_flax.call.compiled import compiled
from attnpool_flax.layers import normalized, perceptron
from attnpool_flax.modules.creation import PoolingModule, constructor_from_fields
from attnpool_flax.numerics.platforms import unify_varying
from attnpool_flax.pooling.multi_head import attended, of_queries, queries_of_heads
from attnpool_flax.tokens import Dense
from attnpool_ref import contract


@compiled(as_they_come=("x",))
def map_head(
    x,
    mask=None,
    *,
    lengths=None,
    query,
    query_kernel,
    key_kernel,
    value_kernel,
    out_kernel,
    query_bias=None,
    key_bias=None,
    value_bias=None,
    out_bias=None,
    norm_scale,
    norm_bias,
    mlp_kernel,
    mlp_bias,
    mlp_out_kernel,
    mlp_out_bias,
    epsilon=1e-6,
    activation="gelu_tanh",
    return_weights=False,
    precision=None,
):
    """Computes big_vision's ``MAPHead`` [..., n, d] (Zhai et al. 2022): attention by n queries, then a residual MLP."""
    tokens = Dense(x, mask, precision)
    queries = queries_of_heads(query, query_kernel, query_bias, None, precision)
    found, weights = attended(tokens, queries, key_kernel, value_kernel, key_bias, value_bias)
    pooled = from_heads(found, out_kernel, out_bias, precision)
    hidden = normalized(pooled, norm_scale, norm_bias, epsilon)
    result = pooled + perceptron(hidden, mlp_kernel, mlp_bias, mlp_out_kernel, mlp_out_bias, activation, precision)
    return (result, weights) if return_weights else result


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


@compiled(as_they_come=("x",))
def attentional_pooler(
    x,
    mask=None,
    *,
    lengths=None,
    query,
    query_kernel,
    key_kernel,
    value_kernel,
    out_kernel,
    query_bias=None,
    key_bias=None,
    value_bias=None,
    out_bias=None,
    norm_scale,
    norm_bias,
    query_norm_scale,
    query_norm_bias,
    epsilon=1e-5,
    return_weights=False,
    precision=None,
):
    """Computes open_clip's ``AttentionalPooler`` [..., n, o] (Yu et al. 2022), with normalized tokens and queries."""
    x = normalized(Dense(x, mask, precision).zero_padded(), norm_scale, norm_bias, epsilon)
    query = normalized(query, query_norm_scale, query_norm_bias, epsilon)
    queries = queries_of_heads(query, query_kernel, query_bias, None, precision)
    tokens = Dense(x, mask, precision)
    found, weights = attended(tokens, queries, key_kernel, value_kernel, key_bias, value_bias)
    result = from_heads(found, out_kernel, out_bias, precision)
    return (result, weights) if return_weights else result


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


@compiled(as_they_come=("x",))
def attention_pool_2d(
    x,
    mask=None,
    *,
    lengths=None,
    position,
    class_token=None,
    query_kernel,
    key_kernel,
    value_kernel,
    out_kernel,
    query_bias=None,
    key_bias=None,
    value_bias=None,
    out_bias=None,
    return_weights=False,
    precision=None,
):
    """Computes CLIP's ``AttentionPool2d`` (Radford et al. 2021): the query is the prepended mean of the real tokens.

    The mean is also a key and a value, which is masked only in a fully masked row. With ``class_token`` (timm) this
    learned token replaces the mean. The result is [..., o], and the weights are [..., H, L + 1], the mean's first.
    Sequences of another length L than ``position`` [L + 1, d] has are an error.
    """
    slots = position.shape[0] - 1
    if x.shape[-2] != slots:
        raise ValueError(
            f"attention_pool_2d: `x` has {x.shape[-2]} tokens, needs {slots}, as `position` has {slots + 1} "
            f"vectors{contract.symbol_suggestion(x.shape[-2], slots)}"
        )
    raw = Dense(x, mask, precision)
    clean = raw.zero_padded()
    first = raw.mean() if class_token is None else jnp.broadcast_to(class_token, (*x.shape[:-2], x.shape[-1]))
    x = jnp.concatenate(unify_varying(first[..., None, :], clean), -2)
    x = x + jnp.broadcast_to(position, x.shape)
    if mask is not None:  # the first position is real if any token is
        mask = jnp.concatenate([jnp.any(mask, -1, keepdims=True), mask], -1)
    tokens = Dense(x, mask, precision)
    queries = queries_of_heads(x[..., :1, :], query_kernel, query_bias, None, precision)
    found, weights = attended(tokens, queries, key_kernel, value_kernel, key_bias, value_bias)
    result = from_heads(found, out_kernel, out_bias, precision)[..., 0, :]
    return (result, weights[..., 0, :]) if return_weights else result


@constructor_from_fields
class AttentionPool2d(PoolingModule):
    """Attention pooling of CLIP's ResNets: the query is the mean of the real tokens, or a class token.

    Parameters: ``position`` [num_slots + 1, d], added to the mean (or class token) and the tokens, ``query_kernel``
    [d, H, c], ``key_kernel`` [d, H, c], ``value_kernel`` [d, H, c], ``out_kernel`` [H, c, o]; depending on
    ``use_bias``, ``query_bias`` [H, c], ``key_bias`` [H, c], ``value_bias`` [H, c] and ``out_bias`` [o]; and with
    ``use_class_token`` ``class_token`` [d].

    Args:
      num_slots: the length of every sequence, padding included.
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
