"""Pooling. Twin of :mod:`attnpool_ref.pooling`: an absent mask costs nothing, and keys are hardly ever projected."""

import jax.numpy as jnp

from attnpool_flax.attention import from_heads
from attnpool_flax.implementation import implementation
from attnpool_flax.layers import normalized
from attnpool_flax.multi_head import attended, queries_of_heads
from attnpool_flax.normalizers import normalize
from attnpool_flax.reductions import Dense, DenseChannels
from attnpool_flax.rounding import power_of_two


@implementation(as_they_come=("x",))
def mean_pooling(x, mask=None, *, lengths=None, axis_name=None, implementation=None):
    """Twin of :func:`attnpool_ref.mean_pooling`; counts are exact in every dtype.

    >>> mean_pooling(jnp.array([[1.0], [3.0], [99.0]]), jnp.array([True, True, False]))
    Array([2.], dtype=float32)
    """
    return Dense(x, mask, implementation, axis_name=axis_name).mean()


@implementation(as_they_come=("x",))
def max_pooling(x, mask=None, *, lengths=None, axis_name=None, implementation=None):
    """Twin of :func:`attnpool_ref.max_pooling`.

    >>> max_pooling(jnp.array([[-1.0], [-3.0], [99.0]]), jnp.array([True, True, False]))
    Array([-1.], dtype=float32)
    """
    return Dense(x, mask, implementation, axis_name=axis_name).largest()


@implementation(as_they_come=("x",))
def first_pooling(x, mask=None, *, lengths=None, axis_name=None):
    """Twin of :func:`attnpool_ref.first_pooling`; one token is read.

    >>> first_pooling(jnp.array([[99.0], [1.0], [2.0]]), jnp.array([False, True, True]))
    Array([1.], dtype=float32)
    """
    return _at_end(x, mask, axis_name, last=False)


@implementation(as_they_come=("x",))
def last_pooling(x, mask=None, *, lengths=None, axis_name=None):
    """Twin of :func:`attnpool_ref.last_pooling`; one token is read.

    >>> last_pooling(jnp.array([[1.0], [2.0], [99.0]]), jnp.array([True, True, False]))
    Array([2.], dtype=float32)
    """
    return _at_end(x, mask, axis_name, last=True)


def _at_end(x, mask, axis_name, last):
    """Returns the first or the last real token [..., d]; 0 where nothing is real. An x that is shared is not copied."""
    if x.shape[-2] == 0:
        return jnp.zeros_like(x, shape=(*x.shape[:-2], x.shape[-1]))
    if mask is None:
        position = jnp.full(x.shape[:-2], x.shape[-2] - 1 if last else 0)
        if axis_name is None:
            return x[..., -1 if last else 0, :]
    elif last:
        position = mask.shape[-1] - 1 - jnp.argmax(jnp.flip(mask, -1), -1)
    else:
        position = jnp.argmax(mask, -1)
    return Dense(x, mask, None, axis_name=axis_name).at_end(position, last)


@implementation(as_they_come=("x",))
def weighted_pooling(x, weights=None, mask=None, *, lengths=None, axis_name=None, implementation=None, precision=None):
    """Twin of :func:`attnpool_ref.weighted_pooling`.

    >>> x, weights = jnp.array([[1.0], [5.0], [99.0]]), jnp.array([3.0, 1.0, 5.0])
    >>> weighted_pooling(x, weights, jnp.array([True, True, False]))
    Array([2.], dtype=float32)
    """
    if weights is not None and weights.ndim == x.ndim:
        return channel_average(DenseChannels(x, mask, axis_name), weights)
    tokens = Dense(x, mask, implementation, precision, axis_name)
    if axis_name is not None and weights is not None:
        return tokens.average(tokens.kept(weights))
    return weighted_average(tokens, weights)


def weighted_average(tokens, weights):
    """Averages under given weights, of tokens in any layout; uniform if None."""
    if weights is None:
        return tokens.mean()
    weights = tokens.kept(weights)
    weights = weights / tokens.each(power_of_two(tokens.most_of(jnp.abs(weights))))  # the sum may overflow
    total = tokens.each(tokens.sum_of(weights))
    return tokens.total(jnp.where(total == 0, 0, weights / jnp.where(total == 0, 1, total)))


def channel_average(channels, weights):
    """Averages under given weights of each channel, of tokens in any layout."""
    weights = channels.kept(weights)
    if channels.axis_name is not None:  # no device knows the largest weight of all: products with x must not overflow
        total, pooled = channels.total(weights, weights * channels.x)
        return jnp.where(total == 0, 0, pooled / jnp.where(total == 0, 1, total))
    (largest,) = channels.largest(jnp.abs(weights))
    weights = weights / channels.each(power_of_two(jnp.maximum(largest, 0)))  # the sum may overflow
    (total,) = channels.total(weights)
    total = channels.each(total)
    return channels.total(jnp.where(total == 0, 0, weights / jnp.where(total == 0, 1, total)) * channels.x)[0]


@implementation(as_they_come=("x",))
def attention_pooling(
    x,
    mask=None,
    query=None,
    *,
    lengths=None,
    query_kernel=None,
    key_kernel=None,
    normalize_query=False,
    query_norm_scale=None,
    query_norm_bias=None,
    epsilon=1e-6,
    scale=None,
    bias=None,
    normalizer="softmax",
    dropout_multiplier=None,
    return_weights=False,
    axis_name=None,
    implementation=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.attention_pooling`: the key kernel is folded into the query, O(L d), no keys.

    With another normaliser than the softmax, products are whole ones ("einsum").

    >>> x, mask = jnp.array([[1.0, 0.0], [3.0, 0.0], [9.0, 9.0]]), jnp.array([True, True, False])
    >>> attention_pooling(x, mask, jnp.array([0.0, 1.0]), return_weights=True)
    (Array([2., 0.], dtype=float32), Array([0.5, 0.5, 0. ], dtype=float32))
    """
    parameters = query_kernel, key_kernel, (query_norm_scale, query_norm_bias, epsilon) if normalize_query else None
    tokens = Dense(x, mask, implementation, precision, axis_name)
    pooled, weights = attention(tokens, query, *parameters, scale, dropout_multiplier, bias, normalizer)
    return (pooled, weights) if return_weights else pooled


def attention(
    tokens, query, query_kernel, key_kernel, norm, scale, dropout_multiplier, bias=None, normalizer="softmax"
):
    """Returns (pooled [..., d], weights) of tokens in any layout; the mean is the query if None.

    ``norm`` is (scale, bias, epsilon) of the query's layer normalisation, or None; ``bias`` [..., L] is of the scores.
    """
    precision = tokens.precision
    if query is None:
        query = tokens.mean()
    query = fold_query(query, query_kernel, key_kernel, norm, scale, precision)
    multiplier, bias = (None if array is None else array[..., None, :] for array in (dropout_multiplier, bias))
    if not isinstance(normalizer, str) or normalizer != "softmax":

        def weigh(scores, mask):  # the caller's function sees no axis of queries
            return normalize(scores[..., 0, :], None if mask is None else mask[..., 0, :], normalizer)[..., None, :]

        pooled, weights, _ = tokens.weighed(query[..., None, :], weigh, None, bias, multiplier)
    else:
        pooled, weights = tokens.softmax(query[..., None, :], multiplier, bias=bias)
    return pooled[..., 0, :], weights[..., 0, :]


def fold_query(query, query_kernel, key_kernel, norm, scale, precision):
    """Returns the vector whose products with raw tokens are the scaled scores; ``norm`` as in :func:`attention`."""
    if norm is not None:
        query = normalized(query, *norm)
    if query_kernel is not None:
        query = jnp.einsum("...d,dc->...c", query, query_kernel, precision=precision)
    query = query * (query.shape[-1] ** -0.5 if scale is None else scale)
    if key_kernel is not None:
        query = jnp.einsum("...c,dc->...d", query, key_kernel, precision=precision)
    return query


@implementation(as_they_come=("x",))
def multi_head_attention_pooling(
    x,
    mask=None,
    *,
    lengths=None,
    query,
    query_kernel=None,
    key_kernel,
    value_kernel,
    out_kernel=None,
    query_bias=None,
    key_bias=None,
    value_bias=None,
    out_bias=None,
    scale=None,
    bias=None,
    normalizer="softmax",
    dropout_multiplier=None,
    return_weights=False,
    axis_name=None,
    implementation=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.multi_head_attention_pooling`: O(L d H n), no token is ever projected.

    The key kernel is folded into the queries, where the key bias is one number for each; the raw tokens are pooled for
    each head and query, and the value kernel meets the pooled ones. The value bias counts as often as the weights sum
    to. Where so many queries meet that projecting the tokens takes fewer operations, they are projected; never with
    ``axis_name``, which takes the normalisers "softmax" and "sigmoid". With another normaliser than the
    softmax, products are whole ones ("einsum").

    >>> kernel = jnp.eye(2).reshape(2, 2, 1)
    >>> multi_head_attention_pooling(
    ...     jnp.array([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]]),
    ...     jnp.array([True, True, False]),
    ...     query=jnp.array([[0.0, 0.0]]),
    ...     query_kernel=kernel,
    ...     key_kernel=kernel,
    ...     value_kernel=kernel,
    ...     out_kernel=kernel.reshape(2, 1, 2),
    ... )
    Array([[2., 3.]], dtype=float32)
    """
    tokens = Dense(x, mask, implementation, precision, axis_name)
    queries = queries_of_heads(query, query_kernel, query_bias, scale, precision)
    kernels, biases = (key_kernel, value_kernel), (key_bias, value_bias)
    found, weights = attended(tokens, queries, *kernels, *biases, dropout_multiplier, bias, normalizer)
    result = from_heads(found, out_kernel, out_bias, precision)
    return (result, weights) if return_weights else result
