"""Functions of the published pooling heads: attention pooling with further layers before or after it.

The queries are learned, except in :func:`attention_pool_2d`, where by default the query is the mean of the real tokens.

Padding is set to 0 before the first layer, so that NaN at padding reaches no gradient of a parameter. In a fully masked
row the attention output is 0, and the layers after the attention map this vector like any other. The docstrings of the
modules (:mod:`attnpool_flax.modules.heads`, :mod:`attnpool_flax.modules.probes`) have the shapes of the parameters.
"""

from typing import Any

import jax.numpy as jnp
from jax import lax

from attnpool_flax.attention import from_heads
from attnpool_flax.call.compiled import compiled
from attnpool_flax.layers import mapped, normalized, perceptron
from attnpool_flax.numerics.elementwise import relu
from attnpool_flax.numerics.platforms import unify_varying
from attnpool_flax.pooling.multi_head import attended, choice_for_heads, queries_of_heads
from attnpool_flax.tokens import Dense
from attnpool_ref import contract

PMA_EPSILON = 1e-5
"""The epsilon of PyTorch's layer normalization, which both variants of :func:`pma` use."""

AIM_EPSILON = 1e-6
"""The epsilon of the batch normalization of AIM's probe."""


@compiled(as_they_come=("x",), choose=choice_for_heads)
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
    implementation=None,
    precision=None,
):
    """Computes big_vision's ``MAPHead`` [..., n, d] (Zhai et al. 2022): attention by n queries, then a residual MLP."""
    tokens = Dense(x, mask, implementation, precision)
    queries = queries_of_heads(query, query_kernel, query_bias, None, precision)
    found, weights = attended(tokens, queries, key_kernel, value_kernel, key_bias, value_bias)
    pooled = from_heads(found, out_kernel, out_bias, precision)
    hidden = normalized(pooled, norm_scale, norm_bias, epsilon)
    result = pooled + perceptron(hidden, mlp_kernel, mlp_bias, mlp_out_kernel, mlp_out_bias, activation, precision)
    return (result, weights) if return_weights else result


@compiled(as_they_come=("x",), choose=choice_for_heads)
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
    implementation=None,
    precision=None,
):
    """Computes open_clip's ``AttentionalPooler`` [..., n, o] (Yu et al. 2022), with normalized tokens and queries."""
    x = normalized(Dense(x, mask, implementation, precision).zero_padded(), norm_scale, norm_bias, epsilon)
    query = normalized(query, query_norm_scale, query_norm_bias, epsilon)
    queries = queries_of_heads(query, query_kernel, query_bias, None, precision)
    tokens = Dense(x, mask, implementation, precision)
    found, weights = attended(tokens, queries, key_kernel, value_kernel, key_bias, value_bias)
    result = from_heads(found, out_kernel, out_bias, precision)
    return (result, weights) if return_weights else result


def _choice_for_2d(values, call):
    """Returns None for calls of :func:`attention_pool_2d` that compute a mean first, else :func:`choice_for_heads`."""
    return None if values["class_token"] is None else choice_for_heads(values, call)


@compiled(as_they_come=("x",), choose=_choice_for_2d)
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
    implementation=None,
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
    raw = Dense(x, mask, implementation, precision)
    clean = raw.zero_padded()
    first = raw.mean() if class_token is None else jnp.broadcast_to(class_token, (*x.shape[:-2], x.shape[-1]))
    x = jnp.concatenate(unify_varying(first[..., None, :], clean), -2)
    x = x + jnp.broadcast_to(position, x.shape)
    if mask is not None:  # the first position is real if any token is
        mask = jnp.concatenate([jnp.any(mask, -1, keepdims=True), mask], -1)
    tokens = Dense(x, mask, implementation, precision)
    queries = queries_of_heads(x[..., :1, :], query_kernel, query_bias, None, precision)
    found, weights = attended(tokens, queries, key_kernel, value_kernel, key_bias, value_bias)
    result = from_heads(found, out_kernel, out_bias, precision)[..., 0, :]
    return (result, weights[..., 0, :]) if return_weights else result


@compiled(as_they_come=("x",), choose=choice_for_heads)
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
    implementation=None,
    precision=None,
):
    """Computes the Set Transformer's PMA (Lee et al. 2019, equation 11), as in the authors' code or in PyG.

    With ``variant="author"`` the attention output, without an output projection, is added to the projected query, and
    scores are divided by the root of the width of all heads together. With ``variant="pyg"`` the tokens first go
    through a linear layer and a relu, the attention output is projected and added to the raw query, and scores are
    divided by the root of one head's width. The result is [..., n, d].
    """
    tokens = Dense(x, mask, implementation, precision)
    if variant == "pyg":
        x = relu(mapped(tokens.zero_padded(), input_kernel, input_bias, precision))
        tokens = Dense(x, mask, implementation, precision)
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


@compiled(as_they_come=("x",), choose=choice_for_heads)
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
    implementation=None,
    precision=None,
):
    """Computes an attentive probe of a frozen encoder: V-JEPA's (Bardes et al. 2024) or AIM's (El-Nouby et al. 2024).

    Neither has an output projection. V-JEPA applies layer normalization to the tokens, and adds the attention output to
    the query, followed by a residual MLP. AIM normalizes the tokens by the batch statistics ``mean`` and ``variance``,
    and averages the attention output over the queries. The result is [..., n, d] for V-JEPA and [..., d] for AIM.
    """
    x = Dense(x, mask, implementation, precision).zero_padded()
    queries = queries_of_heads(query, query_kernel, query_bias, None, precision)
    if variant == "aim":
        slope = lax.rsqrt(variance + AIM_EPSILON)
        x = (x - jnp.broadcast_to(mean, x.shape)) * jnp.broadcast_to(slope, x.shape)
    else:
        x = normalized(x, norm_scale, norm_bias, epsilon)
    tokens = Dense(x, mask, implementation, precision)
    found, weights = attended(tokens, queries, key_kernel, value_kernel, key_bias, value_bias)
    found = from_heads(found, None, None, precision)
    if variant == "aim":
        result = jnp.mean(found, -2)
    else:
        hidden = jnp.broadcast_to(query, found.shape) + found
        inner = normalized(hidden, mlp_norm_scale, mlp_norm_bias, epsilon)
        result = hidden + perceptron(inner, mlp_kernel, mlp_bias, mlp_out_kernel, mlp_out_bias, "gelu", precision)
    return (result, weights) if return_weights else result
