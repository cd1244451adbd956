"""Attention. Twin of :mod:`attnpool_ref.attention`."""

import jax.numpy as jnp

from attnpool_flax.implementation import implementation
from attnpool_flax.masks import keep_real, seeing_queries, seen_keys
from attnpool_flax.normalizers import softmax
from attnpool_flax.scores import scaled_dot

NORMALIZERS = {"softmax": softmax}


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
    """Twin of :func:`attnpool_ref.attend`."""
    weights = NORMALIZERS[normalizer](scores, mask)
    pooled = average(drop(weights, dropout_multiplier, mask), keep_real(value, seen_keys(mask)), precision)
    return (pooled, weights) if return_weights else pooled


def drop(weights, multiplier, mask):
    """Weights after dropout; what the multiplier holds at padding is never read."""
    if multiplier is None:
        return weights
    return weights * (multiplier if mask is None else jnp.where(mask, multiplier, 0))


def average(weights, value, precision):
    """[..., n, m] and [..., m, v] to [..., n, v]; either may be shared."""
    return jnp.einsum("...nm,...mv->...nv", weights, value, precision=precision)


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
    """Twin of :func:`attnpool_ref.dot_product_attention`."""
    query, key, value = (
        keep_real(query, seeing_queries(mask)),
        keep_real(key, seen_keys(mask)),
        keep_real(value, seen_keys(mask)),
    )
    scores = scaled_dot(query, key, scale, precision)
    if bias is not None:
        scores = scores + bias  # what it holds at padding is deselected by the softmax
    weights = softmax(scores, mask)
    pooled = average(drop(weights, dropout_multiplier, mask), value, precision)
    return (pooled, weights) if return_weights else pooled
