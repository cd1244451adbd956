"""Attention. Twin of :mod:`attnpool_ref.attention`."""

import jax.numpy as jnp

from attnpool_flax.implementation import implementation
from attnpool_flax.masks import keep_real, seeing_queries, seen_keys
from attnpool_flax.normalizers import entmax_15, project_on_simplex, softmax
from attnpool_flax.reductions.sums import weighted
from attnpool_flax.rounding import power_of_two
from attnpool_flax.scores import additive, beside, dot, gaussian, scaled_dot, split, squared_distances

NORMALIZERS = {"softmax": softmax, "sparsemax": project_on_simplex, "entmax15": entmax_15}


@implementation
def attend(
    scores,
    value,
    mask=None,
    *,
    normalizer="softmax",
    dropout_multiplier=None,
    return_weights=False,
    precision=None,
):
    """Twin of :func:`attnpool_ref.attend`.

    >>> scores, value = jnp.array([[0.0, 0.0, 9.0]]), jnp.array([[1.0], [3.0], [99.0]])
    >>> attend(scores, value, jnp.array([True, True, False]), return_weights=True)
    (Array([[2.]], dtype=float32), Array([[0.5, 0.5, 0. ]], dtype=float32))
    """
    weights = NORMALIZERS[normalizer](scores, mask)
    pooled = weighted(drop(weights, dropout_multiplier, mask), keep_real(value, seen_keys(mask)), precision)
    return (pooled, weights) if return_weights else pooled


def drop(weights, multiplier, mask):
    """Weights after dropout; what the multiplier holds at padding is never read."""
    if multiplier is None:
        return weights
    return weights * (multiplier if mask is None else jnp.where(mask, multiplier, 0))


@implementation
def dot_product_attention(
    query,
    key,
    value,
    mask=None,
    *,
    bias=None,
    scale=None,
    dropout_multiplier=None,
    return_weights=False,
    precision=None,
):
    """Twin of :func:`attnpool_ref.dot_product_attention`.

    >>> query, key, value = jnp.array([[0.0]]), jnp.array([[1.0], [2.0], [3.0]]), jnp.array([[4.0], [8.0], [9.0]])
    >>> dot_product_attention(query, key, value, jnp.array([True, True, False]))
    Array([[6.]], dtype=float32)
    """
    query, key, value = only_seen(query, key, value, mask)
    scores = scaled_dot(query, key, scale, precision)
    if bias is not None:
        scores = scores + bias  # what it holds at padding is deselected by the softmax
    return _attend(scores, value, mask, dropout_multiplier, return_weights, precision)


def only_seen(query, key, value, mask):
    """Queries that see no key, and keys and values that no query sees, replaced by 0."""
    seen = seen_keys(mask)
    return keep_real(query, seeing_queries(mask)), keep_real(key, seen), keep_real(value, seen)


def _attend(scores, value, mask, dropout_multiplier, return_weights, precision):
    """Softmax, dropout and average; the values are clean."""
    weights = softmax(scores, mask)
    pooled = weighted(drop(weights, dropout_multiplier, mask), value, precision)
    return (pooled, weights) if return_weights else pooled


@implementation
def additive_attention(
    query,
    key,
    value,
    query_kernel,
    key_kernel,
    out_kernel,
    mask=None,
    *,
    bias=None,
    dropout_multiplier=None,
    return_weights=False,
    precision=None,
):
    """Twin of :func:`attnpool_ref.additive_attention`: one hidden unit after another, no [..., n, m, h].

    >>> query, key, value = jnp.array([[0.0]]), jnp.array([[0.0], [0.0], [5.0]]), jnp.array([[2.0], [4.0], [9.0]])
    >>> one, mask = jnp.ones((1, 1)), jnp.array([True, True, False])
    >>> additive_attention(query, key, value, one, one, jnp.ones(1), mask)
    Array([[3.]], dtype=float32)
    """
    query, key, value = only_seen(query, key, value, mask)
    scores = additive(query, key, query_kernel, key_kernel, out_kernel, bias, precision)
    return _attend(scores, value, mask, dropout_multiplier, return_weights, precision)


@implementation
def tanh_sum_attention(query, key, value, kernel, mask=None, *, bias=None, return_weights=False, precision=None):
    """Twin of :func:`attnpool_ref.tanh_sum_attention`: one hidden unit after another, no [..., n, m, h].

    >>> query, key, value = jnp.array([[0.0]]), jnp.array([[0.0], [0.0], [5.0]]), jnp.array([[2.0], [4.0], [9.0]])
    >>> tanh_sum_attention(query, key, value, jnp.ones((2, 3)), jnp.array([True, True, False]))
    Array([[3.]], dtype=float32)
    """
    query, key, value = only_seen(query, key, value, mask)
    scores = additive(query, key, *split(kernel, query), None, bias, precision)
    return _attend(scores, value, mask, None, return_weights, precision)


@implementation
def location_attention(
    query,
    state,
    value,
    kernel,
    bias,
    out_kernel,
    out_bias,
    mask=None,
    *,
    return_weights=False,
    precision=None,
):
    """Twin of :func:`attnpool_ref.location_attention`.

    >>> query, state, value = jnp.array([[1.0]]), jnp.array([[2.0]]), jnp.array([[2.0], [4.0]])
    >>> kernel, out_kernel = jnp.zeros((2, 2)), jnp.array([[10.0], [1.0]])
    >>> location_attention(query, state, value, kernel, jnp.zeros(2), out_kernel, jnp.array([0.5]))
    Array([[13.5]], dtype=float32)
    """
    if mask is not None:
        state = jnp.where(jnp.any(mask, -1)[..., None, None], state, 0)
        mask = mask[..., None, :]
    scores = beside(query, state, kernel, bias, precision)
    weights = softmax(scores, mask)
    context = weighted(weights, keep_real(value, seen_keys(mask)), precision)
    result = beside(query, context, out_kernel, out_bias, precision)
    return (result, weights) if return_weights else result


@implementation
def multi_head_attention(
    query,
    key,
    value,
    mask=None,
    *,
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
    """Twin of :func:`attnpool_ref.multi_head_attention`.

    >>> kernel = jnp.eye(2).reshape(2, 2, 1)
    >>> multi_head_attention(
    ...     jnp.array([[0.0, 0.0]]),
    ...     jnp.array([[1.0, 2.0], [3.0, 4.0]]),
    ...     jnp.array([[2.0, 4.0], [4.0, 8.0]]),
    ...     query_kernel=kernel,
    ...     key_kernel=kernel,
    ...     value_kernel=kernel,
    ...     out_kernel=kernel.reshape(2, 1, 2),
    ... )
    Array([[3., 6.]], dtype=float32)
    """
    if mask is not None:
        if mask.ndim == query.ndim:
            mask = mask[..., None, :, :]
        query, key, value = only_seen(query, key, value, jnp.any(mask, -3))
    queries = to_heads(query, query_kernel, query_bias, precision) * query_kernel.shape[-1] ** -0.5
    scores = dot(queries, to_heads(key, key_kernel, key_bias, precision), precision)
    weights = softmax(scores, mask)
    values = to_heads(value, value_kernel, value_bias, precision)
    attended = weighted(drop(weights, dropout_multiplier, mask), values, precision)
    result = from_heads(attended, out_kernel, out_bias, precision)
    return (result, weights) if return_weights else result


def to_heads(x, kernel, bias, precision):
    """[..., L, d] by a kernel [d, H, c] to [..., H, L, c]; the bias [H, c] may be None."""
    heads = jnp.einsum("...ld,dhc->...hlc", x, kernel, precision=precision)
    return heads if bias is None else heads + jnp.broadcast_to(bias[:, None, :], heads.shape)


def from_heads(heads, kernel, bias, precision):
    """[..., H, n, c] by a kernel [H, c, o] to [..., n, o]; the bias [o] may be None."""
    result = jnp.einsum("...hnc,hco->...no", heads, kernel, precision=precision)
    return result if bias is None else result + jnp.broadcast_to(bias, result.shape)


@implementation
def kernel_regression(
    query,
    key,
    value,
    mask=None,
    *,
    kernel="gaussian",
    bandwidth=1.0,
    return_weights=False,
    precision=None,
):
    """Twin of :func:`attnpool_ref.kernel_regression`: distances one feature after another.

    >>> query, key, value = jnp.array([[0.0]]), jnp.array([[0.5], [-1.0], [2.0]]), jnp.array([[1.0], [3.0], [9.0]])
    >>> kernel_regression(query, key, value, kernel="boxcar")
    Array([[2.]], dtype=float32)
    """
    query, key, value = only_seen(query, key, value, mask)
    if kernel == "gaussian":
        return _attend(gaussian(query, key, bandwidth), value, mask, None, return_weights, precision)
    part = power_of_two(bandwidth)  # exact; the square of a small bandwidth would be 0
    heights = KERNELS[kernel](squared_distances(query, key, part), bandwidth / part)
    if mask is not None:
        heights = jnp.where(mask, heights, 0)
    total = jnp.sum(heights, -1, keepdims=True)
    weights = heights / jnp.where(total == 0, 1, total)
    if mask is not None:
        weights = jnp.where(mask, weights, 0)  # a real NaN stays out of the padding
    pooled = weighted(weights, value, precision)
    return (pooled, weights) if return_weights else pooled


def _boxcar(squared, bandwidth):
    inside = squared <= bandwidth * bandwidth
    return jnp.where(jnp.isnan(squared), jnp.nan, inside.astype(squared.dtype))


def _triangular(squared, bandwidth):
    # at 0 the root's slope is infinite, and no direction is better than another: there is none
    distance = jnp.where(squared == 0, 0, jnp.sqrt(jnp.where(squared == 0, 1, squared)))
    return jnp.maximum(1 - distance / bandwidth, 0)


def _epanechnikov(squared, bandwidth):
    return 0.75 * jnp.maximum(1 - squared / (bandwidth * bandwidth), 0)


def _constant(squared, bandwidth):
    return jnp.ones_like(squared)


KERNELS = {"boxcar": _boxcar, "triangular": _triangular, "epanechnikov": _epanechnikov, "constant": _constant}
"""Heights K as functions of the squared distance and the bandwidth; the Gaussian is a softmax."""
