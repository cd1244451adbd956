"""Pooling. Twin of :mod:`attnpool_ref.pooling`: an absent mask costs nothing, and no key is ever projected."""

import jax.numpy as jnp
from jax import lax

from attnpool_flax.attention import average, drop, from_heads, sum_of_tokens
from attnpool_flax.implementation import implementation
from attnpool_flax.masks import keep_real
from attnpool_flax.normalizers import softmax
from attnpool_flax.rounding import largest, power_of_two


@implementation
def mean_pooling(x, mask=None):
    """Twin of :func:`attnpool_ref.mean_pooling`; counts are exact in every dtype."""
    return mean_of_real(keep_real(x, mask), mask)


def mean_of_real(x, mask):
    """Mean of tokens [..., L, d] whose padding is already 0."""
    part = 2 ** x.shape[-2].bit_length()  # exact, so that a sum of large numbers does not overflow
    count = max(x.shape[-2], 1) if mask is None else count_real(mask, x.dtype)[..., None]
    return sum_of_tokens(x / part) / (count / part)


def count_real(mask, dtype):
    """How many are real along the last axis, at least 1."""
    return jnp.maximum(jnp.sum(mask, -1, dtype=jnp.int32), 1).astype(dtype)


@implementation
def max_pooling(x, mask=None):
    """Twin of :func:`attnpool_ref.max_pooling`."""
    if mask is None:
        mask = jnp.ones(x.shape[:-1], bool)
    real = mask[..., None]
    x = jnp.where(real, x, -jnp.inf)
    top = jnp.max(lax.stop_gradient(x), -2, keepdims=True, initial=-jnp.inf)
    return jnp.where(jnp.any(real, -2), largest(x, real & (x == top), -2), 0)


@implementation
def first_pooling(x, mask=None):
    """Twin of :func:`attnpool_ref.first_pooling`; one token is read."""
    if x.shape[-2] == 0:
        return jnp.sum(x, -2)
    if mask is None:
        return x[..., 0, :]
    return _token_at(x, mask, jnp.argmax(mask, -1))


@implementation
def last_pooling(x, mask=None):
    """Twin of :func:`attnpool_ref.last_pooling`; one token is read."""
    if x.shape[-2] == 0:
        return jnp.sum(x, -2)
    if mask is None:
        return x[..., -1, :]
    return _token_at(x, mask, mask.shape[-1] - 1 - jnp.argmax(jnp.flip(mask, -1), -1))


def _token_at(x, mask, position):
    """The token [..., d] at a position [...]; 0 where nothing is real. An x that is shared is not copied."""
    x = jnp.broadcast_to(x, mask.shape[:-1] + x.shape[-2:])
    token = jnp.take_along_axis(x, position[..., None, None], -2, mode="clip")[..., 0, :]
    return jnp.where(jnp.any(mask, -1)[..., None], token, 0)


@implementation
def weighted_pooling(x, weights=None, mask=None, *, precision=None):
    """Twin of :func:`attnpool_ref.weighted_pooling`."""
    x = keep_real(x, mask)
    if weights is None:
        return mean_of_real(x, mask)
    if mask is not None:
        weights = jnp.where(mask, weights, 0)
    weights = weights / power_of_two(jnp.max(jnp.abs(weights), -1, keepdims=True, initial=0))  # the sum may overflow
    total = jnp.sum(weights, -1, keepdims=True)
    weights = jnp.where(total == 0, 0, weights / jnp.where(total == 0, 1, total))
    return weighted_sum(weights, x, precision)


def weighted_sum(weights, x, precision):
    """[..., L] and [..., L, d] to [..., d]."""
    return average(weights[..., None, :], x, precision)[..., 0, :]


@implementation
def attention_pooling(
    x,
    mask=None,
    query=None,
    *,
    query_kernel=None,
    key_kernel=None,
    normalize_query=False,
    query_norm_scale=None,
    query_norm_bias=None,
    epsilon=1e-6,
    scale=None,
    dropout_multiplier=None,
    return_weights=False,
    precision=None,
):
    """Twin of :func:`attnpool_ref.attention_pooling`: the key kernel is folded into the query, O(L d), no keys."""
    x = keep_real(x, mask)
    if query is None:
        query = mean_of_real(x, mask)
    if normalize_query:
        query = _layer_norm(query, query_norm_scale, query_norm_bias, epsilon)
    if query_kernel is not None:
        query = jnp.einsum("...d,dc->...c", query, query_kernel, precision=precision)
    query = query * (query.shape[-1] ** -0.5 if scale is None else scale)
    if key_kernel is not None:
        query = jnp.einsum("...c,dc->...d", query, key_kernel, precision=precision)
    weights = softmax(jnp.einsum("...ld,...d->...l", x, query, precision=precision), mask)
    pooled = weighted_sum(drop(weights, dropout_multiplier, mask), x, precision)
    return (pooled, weights) if return_weights else pooled


def _layer_norm(query, scale, bias, epsilon):
    size = jnp.maximum(power_of_two(jnp.max(jnp.abs(query), -1, keepdims=True)), 1)  # squares of 1e20 overflow
    centered = query / size - jnp.mean(query / size, -1, keepdims=True)
    variance = jnp.mean(centered * centered, -1, keepdims=True)
    constant = variance == 0  # epsilon / size**2 may be 0 as well
    rest = lax.rsqrt(jnp.where(constant, 1, variance + epsilon / size / size))
    query = centered * jnp.where(constant, size * lax.rsqrt(epsilon), rest)
    lift = (1,) * (query.ndim - 1) + (-1,)
    if scale is not None:
        query = query * scale.reshape(lift)
    return query if bias is None else query + bias.reshape(lift)


@implementation
def multi_head_attention_pooling(
    x,
    mask=None,
    *,
    query,
    query_kernel,
    key_kernel,
    value_kernel,
    out_kernel,
    query_bias=None,
    key_bias=None,
    value_bias=None,
    out_bias=None,
    dropout_multiplier=None,
    return_weights=False,
    precision=None,
):
    """Twin of :func:`attnpool_ref.multi_head_attention_pooling`: O(L d H n), no token is ever projected.

    The key kernel is folded into the queries, where the key bias cancels; the raw tokens are pooled for each head and
    query, and the value kernel meets the pooled ones. The value bias counts as often as the weights sum to.
    """
    x = keep_real(x, mask)
    mask = None if mask is None else mask[..., None, None, :]
    queries = fold_queries(query, query_kernel, key_kernel, query_bias, precision)
    weights = softmax(jnp.einsum("hnd,...ld->...hnl", queries, x, precision=precision), mask)
    shape = weights.shape
    flat = (*shape[:-3], shape[-3] * shape[-2], shape[-1])
    applied = drop(weights, dropout_multiplier, mask)
    pooled = jnp.reshape(average(jnp.reshape(applied, flat), x, precision), (*shape[:-1], x.shape[-1]))
    attended = jnp.einsum("...hnd,dhc->...hnc", pooled, value_kernel, precision=precision)
    if value_bias is not None:
        bias = jnp.broadcast_to(value_bias[:, None, :], attended.shape)
        attended = attended + jnp.sum(applied, -1, keepdims=True) * bias
    result = from_heads(attended, out_kernel, out_bias, precision)
    return (result, weights) if return_weights else result


def fold_queries(query, query_kernel, key_kernel, query_bias, precision):
    """Learned queries [n, d] as [H, n, d]: their products with raw tokens are the scaled scores."""
    heads = jnp.einsum("nd,dhc->hnc", query, query_kernel, precision=precision)
    if query_bias is not None:
        heads = heads + jnp.broadcast_to(query_bias[:, None, :], heads.shape)
    return jnp.einsum("hnc,dhc->hnd", heads * heads.shape[-1] ** -0.5, key_kernel, precision=precision)
