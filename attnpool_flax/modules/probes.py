"""Set Transformer's PMA and attentive probes of frozen encoders, each a function and its module.

Padding and fully masked rows are as in :mod:`attnpool_flax.modules.heads`.
"""

from dataclasses import KW_ONLY
from typing import Any

import jax.numpy as jnp
from jax import lax

from attnpool_flax.attention import from_heads
from attnpool_flax.call.compiled import compiled
from attnpool_flax.layers import mapped, normalized, perceptron
from attnpool_flax.modules.creation import PoolingModule, constructor_from_fields
from attnpool_flax.numerics.elementwise import relu
from attnpool_flax.pooling.multi_head import attended, of_queries, queries_of_heads
from attnpool_flax.tokens import Dense

PMA_EPSILON = 1e-5
"""The epsilon of PyTorch's layer normalization, which both variants of :func:`pma` use."""

AIM_EPSILON = 1e-6
"""The epsilon of the batch normalization of AIM's probe."""


@compiled(as_they_come=("x",))
def pma(
    x,
    mask=None,
    *,
    lengths=None,
    query,
    query_kernel,
    key_kernel,
    value_kernel,
    out_kernel=None,
    query_bias=None,
    key_bias=None,
    value_bias=None,
    out_bias=None,
    input_kernel=None,
    input_bias=None,
    mlp_kernel,
    mlp_bias,
    norm_scale=None,
    norm_bias=None,
    mlp_norm_scale=None,
    mlp_norm_bias=None,
    variant="author",
    return_weights=False,
    precision=None,
):
    """Computes the Set Transformer's PMA (Lee et al. 2019, equation 11), as in the authors' code or in PyG.

    With ``variant="author"`` the attention output, without an output projection, is added to the projected query, and
    scores are divided by the root of the width of all heads together. With ``variant="pyg"`` the tokens first go
    through a linear layer and a relu, the attention output is projected and added to the raw query, and scores are
    divided by the root of one head's width. The result is [..., n, d].
    """
    tokens = Dense(x, mask, precision)
    if variant == "pyg":
        x = relu(mapped(tokens.zero_padded(), input_kernel, input_bias, precision))
        tokens = Dense(x, mask, precision)
        queries, start = queries_of_heads(query, query_kernel, query_bias, None, precision), query
    else:
        queries = queries_of_heads(query, query_kernel, query_bias, 1, precision)
        start = from_heads(queries, None, None, precision)
        queries = queries * start.shape[-1] ** -0.5
    found, weights = attended(tokens, queries, key_kernel, value_kernel, key_bias, value_bias)
    found = from_heads(found, out_kernel, out_bias, precision)
    hidden = jnp.broadcast_to(start, found.shape) + found
    if norm_scale is not None:
        hidden = normalized(hidden, norm_scale, norm_bias, jnp.asarray(PMA_EPSILON, hidden.dtype))
    result = hidden + relu(mapped(hidden, mlp_kernel, mlp_bias, precision))
    if mlp_norm_scale is not None:
        result = normalized(result, mlp_norm_scale, mlp_norm_bias, jnp.asarray(PMA_EPSILON, result.dtype))
    return (result, weights) if return_weights else result


@constructor_from_fields
class PMA(PoolingModule):
    """Pooling by multi-head attention of the Set Transformer (PMA), as in the authors' code or in PyG.

    Parameters, where c = d / H is the width of a head: ``query`` [n, d], ``query_kernel`` [d, H, c], ``key_kernel``
    [d, H, c], ``value_kernel`` [d, H, c], depending on ``use_bias`` also ``query_bias`` [H, c], ``key_bias`` [H, c] and
    ``value_bias`` [H, c]; ``mlp_kernel`` [d, d] and ``mlp_bias`` [d]; with ``normalize`` ``norm_scale`` [d],
    ``norm_bias`` [d], ``mlp_norm_scale`` [d] and ``mlp_norm_bias`` [d]. With variant "pyg" also ``out_kernel``
    [H, c, d], ``input_kernel`` [d, d], ``input_bias`` [d] and, depending on ``use_bias``, ``out_bias`` [d].

    Args:
      in_features: d, the width of the tokens and of the result.
      num_queries: n, the number of learned queries; None makes one and drops its axis: [..., d].
      variant: "author" adds the attention output to the projected query, and divides scores by the root of the width
        of all heads together. "pyg" first applies a linear layer and a relu to the tokens, adds the projected
        attention output to the raw query, and divides scores by the root of one head's width.
      normalize: apply layer normalization after each residual sum; None is False for "author" and True for "pyg".
      use_bias: whether the heads have biases; or a tuple of the names of the biases to have.
      query_init: initializer of the queries, called with the shape [d, n].

    >>> head = PMA(in_features=4, num_heads=2, num_queries=5, rngs=nnx.Rngs(0))
    >>> x = jnp.ones((2, 3, 4))
    >>> head(x).shape
    (2, 5, 4)
    """

    _: KW_ONLY
    in_features: int
    num_heads: int
    num_queries: int | None
    variant: str = "author"
    normalize: bool | None = None
    use_bias: bool | tuple[str, ...] = True

    def __call__(self, x, mask=None, *, lengths=None, return_weights=False):
        """Pools tokens.

        Returns:
          [..., n, d], and with ``return_weights`` the weights [..., H, n, L]; [..., d] and [..., H, L] with
          ``num_queries=None``.
        """
        found = pma(mask=mask, lengths=lengths, return_weights=return_weights, **self._arguments(x=x))
        return of_queries(found, self.num_queries)


@compiled(as_they_come=("x",))
def attentive_probe(
    x,
    mask=None,
    *,
    lengths=None,
    query,
    query_kernel=None,
    key_kernel,
    value_kernel,
    query_bias=None,
    key_bias=None,
    value_bias=None,
    mlp_kernel=None,
    mlp_bias=None,
    mlp_out_kernel=None,
    mlp_out_bias=None,
    norm_scale=None,
    norm_bias=None,
    mlp_norm_scale=None,
    mlp_norm_bias=None,
    mean: Any = None,
    variance: Any = None,
    epsilon=1e-5,
    variant="vjepa",
    return_weights=False,
    precision=None,
):
    """Computes an attentive probe of a frozen encoder: V-JEPA's (Bardes et al. 2024) or AIM's (El-Nouby et al. 2024).

    Neither has an output projection. V-JEPA applies layer normalization to the tokens, and adds the attention output to
    the query, followed by a residual MLP. AIM normalizes the tokens by the batch statistics ``mean`` and ``variance``,
    and averages the attention output over the queries. The result is [..., n, d] for V-JEPA and [..., d] for AIM.
    """
    x = Dense(x, mask, precision).zero_padded()
    queries = queries_of_heads(query, query_kernel, query_bias, None, precision)
    if variant == "aim":
        slope = lax.rsqrt(variance + AIM_EPSILON)
        x = (x - jnp.broadcast_to(mean, x.shape)) * jnp.broadcast_to(slope, x.shape)
    else:
        x = normalized(x, norm_scale, norm_bias, epsilon)
    tokens = Dense(x, mask, precision)
    found, weights = attended(tokens, queries, key_kernel, value_kernel, key_bias, value_bias)
    found = from_heads(found, None, None, precision)
    if variant == "aim":
        result = jnp.mean(found, -2)
    else:
        hidden = jnp.broadcast_to(query, found.shape) + found
        inner = normalized(hidden, mlp_norm_scale, mlp_norm_bias, epsilon)
        result = hidden + perceptron(inner, mlp_kernel, mlp_bias, mlp_out_kernel, mlp_out_bias, "gelu", precision)
    return (result, weights) if return_weights else result


@constructor_from_fields
class AttentiveProbe(PoolingModule):
    """Attentive probe of a frozen encoder (V-JEPA, AIM), without an output projection.

    Parameters, where c = d / H is the width of a head: ``query`` [n, d], ``query_kernel`` [d, H, c], ``key_kernel``
    [d, H, c], ``value_kernel`` [d, H, c], depending on ``use_bias`` also ``query_bias`` [H, c], ``key_bias`` [H, c] and
    ``value_bias`` [H, c]; ``norm_scale`` [d], ``norm_bias`` [d], ``mlp_norm_scale`` [d], ``mlp_norm_bias`` [d],
    ``mlp_kernel`` [d, f], ``mlp_bias`` [f], ``mlp_out_kernel`` [f, d] and ``mlp_out_bias`` [d].

    With variant "aim" the parameters are only ``query`` [n, H, c], ``key_kernel``, ``value_kernel``, and the batch
    statistics ``mean`` [d] and ``variance`` [d]. These are 0 and 1 in a new module, and no call updates them: load or
    assign them.

    Args:
      in_features: d, the width of the tokens and of the result.
      num_queries: n, the number of learned queries; None makes one and drops its axis: [..., d].
      hidden_features: f, the width of the hidden layer; required for "vjepa", not used by "aim".
      variant: "vjepa" applies layer normalization to the tokens, and adds the attention output to the query, followed
        by a residual MLP. "aim" normalizes the tokens by batch statistics, and averages the attention output over the
        queries.
      epsilon: the epsilon of the layer normalizations of "vjepa"; the batch normalization of "aim" has 1e-6.
      use_bias: whether the heads of "vjepa" have biases; or a tuple of the names of the biases to have. Those of "aim"
        have none.
      query_init: initializer of the queries, called with the shape [d, n], or [c, n·H] for "aim".

    >>> head = AttentiveProbe(in_features=4, num_heads=2, hidden_features=8, rngs=nnx.Rngs(0))
    >>> x = jnp.ones((2, 3, 4))
    >>> head(x).shape
    (2, 1, 4)
    """

    _: KW_ONLY
    in_features: int
    num_heads: int
    num_queries: int | None = 1
    hidden_features: int | None = None
    variant: str = "vjepa"
    epsilon: float = 1e-5
    use_bias: bool | tuple[str, ...] = True

    def __call__(self, x, mask=None, *, lengths=None, return_weights=False):
        """Pools tokens.

        Returns:
          [..., n, d], or [..., d] for "aim"; and with ``return_weights`` the weights [..., H, n, L]. The axis n is
          dropped with ``num_queries=None``.
        """
        found = attentive_probe(mask=mask, lengths=lengths, return_weights=return_weights, **self._arguments(x=x))
        return of_queries(found, self.num_queries, pooled=self.variant != "aim")
