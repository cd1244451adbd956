"""Scores, attention and pairs by routes that neither package takes, in float64."""

import numpy as np
from conformance.foreign.rounded import keep_of, right

# Scores


@right("dot_score", "sums of outer products")
def dot_by_outer_products(query, key):
    total = 0
    for i in range(query.shape[-1]):
        total = total + query[..., :, None, i] * key[..., None, :, i]
    return total


@right("scaled_dot_score", "scaled before the product")
def scaled_before(query, key, *, scale=None):
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    return np.einsum("...nd,...md->...nm", query * factor, key)


@right("bilinear_score", "the kernel folded into the key")
def bilinear_folded(query, key, kernel):
    return query @ np.swapaxes(key @ kernel.T, -1, -2)


@right("concat_score", "side by side, as the paper writes it")
def concat_side_by_side(query, key, kernel, out_kernel, *, bias=None):
    n, m = query.shape[-2], key.shape[-2]
    batch = np.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    q = np.broadcast_to(query[..., :, None, :], (*batch, n, m, query.shape[-1]))
    k = np.broadcast_to(key[..., None, :, :], (*batch, n, m, key.shape[-1]))
    return np.tanh(np.concatenate([q, k], -1) @ kernel + (0 if bias is None else bias)) @ out_kernel


@right("gaussian_score", "distances one component at a time")
def gaussian_by_components(query, key, *, bandwidth=1.0):
    total = 0
    for i in range(query.shape[-1]):
        total = total - ((query[..., :, None, i] - key[..., None, :, i]) / bandwidth) ** 2 / 2
    return total


@right("trilinear_score", "the kernel folded into the query")
def trilinear_folded(query, key, kernel):
    first, second, third = np.split(kernel, 3)
    return (query @ first)[..., :, None] + (query * third + second) @ np.swapaxes(key, -1, -2)


# Attention


def softmax_average(scores, value, keep, block=3):
    """Online softmax over blocks of keys, as flash attention does."""
    top = np.full(scores.shape[:-1], -np.inf)
    total, pooled = np.zeros(top.shape), np.zeros((*top.shape, value.shape[-1]))
    for start in range(0, scores.shape[-1], block):
        part = np.where(keep[..., start : start + block], scores[..., start : start + block], -np.inf)
        new = np.maximum(top, part.max(-1))
        base = np.where(new == -np.inf, 0, new)
        old, weights = np.exp(top - base), np.exp(part - base[..., None])
        seen = keep[..., start : start + block].any(-2)
        values = np.where(seen[..., None], value[..., start : start + block, :], 0)
        total, pooled, top = total * old + weights.sum(-1), pooled * old[..., None] + weights @ values, new
    return pooled / np.where(total == 0, 1, total)[..., None]


@right("dot_product_attention", "online in blocks")
def attention_in_blocks(query, key, value, mask=None, *, bias=None, scale=None):
    batch = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    keep = np.broadcast_to(True if mask is None else mask != 0, (*batch, query.shape[-2], key.shape[-2]))
    query = np.where(keep.any(-1)[..., None], query, 0)
    key = np.where(keep.any(-2)[..., None], key, 0)
    scores = query @ np.swapaxes(key, -1, -2) * (query.shape[-1] ** -0.5 if scale is None else scale)
    scores = scores if bias is None else scores + np.where(keep, bias, 0)
    value = np.broadcast_to(value, (*batch, *value.shape[-2:]))
    return softmax_average(scores, value, keep, block=max(3, key.shape[-2] // 50))


@right("dot_product_attention", "a loop over examples and queries")
def attention_by_loops(query, key, value, mask=None, *, scale=None):
    batch = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    keep = np.broadcast_to(True if mask is None else mask != 0, (*batch, query.shape[-2], key.shape[-2]))
    query, key, value = (np.broadcast_to(a, (*batch, *a.shape[-2:])) for a in (query, key, value))
    out = np.zeros((*batch, query.shape[-2], value.shape[-1]))
    for index in np.ndindex(*out.shape[:-1]):
        real = keep[index]
        if real.any():
            example = index[:-1]
            scores = key[example][real] @ query[index] * (query.shape[-1] ** -0.5 if scale is None else scale)
            weights = np.exp(scores - scores.max())
            out[index] = (weights / weights.sum()) @ value[example][real]
    return out


@right("weighted_pooling", "np.average of what is real")
def weighted_by_average(x, weights=None, mask=None):
    keep = keep_of(x, mask)
    if weights is None or weights.ndim < x.ndim:
        weights = np.broadcast_to(1.0 if weights is None else weights, keep.shape)[..., None]
    weights = np.broadcast_to(weights, x.shape)
    out = np.zeros((*x.shape[:-2], x.shape[-1]))
    for *index, channel in np.ndindex(*x.shape[:-2], x.shape[-1]):
        real = keep[*index]
        own = weights[*index, real, channel]
        if real.any() and np.sum(own) != 0:
            out[*index, channel] = np.average(x[*index, real, channel], 0, own)
    return out


@right("attention_triplet_loss", "distances by np.linalg.norm")
def triplet_by_norms(anchor, positive, negative, *, margin):
    near, far = np.linalg.norm(anchor - positive, axis=-1), np.linalg.norm(anchor - negative, axis=-1)
    return np.maximum(0, near * near + margin - far * far)


@right("label_attention", "folded kernels")
def label_attention_folded(labels, mask=None, *, query_kernel, key_kernel, value_kernel):
    keep = keep_of(labels, mask)
    labels = np.where(keep[..., None], labels, 0)
    folded = query_kernel @ key_kernel.T / query_kernel.shape[-1] ** 0.5
    pairs = np.broadcast_to(keep[..., None, :], (*keep.shape, keep.shape[-1])) & keep[..., None]
    return softmax_average(labels @ folded @ np.swapaxes(labels, -1, -2), labels, pairs) @ value_kernel


@right("relation_vector", "the logistic function by tanh")
def relation_by_tanh(x, y, x_kernel, y_kernel, out_kernel, bias):
    hidden = np.concatenate(np.broadcast_arrays(x, y), -1) @ np.concatenate([x_kernel, y_kernel]) + bias
    return (np.tanh(hidden / 2) / 2 + 0.5) @ out_kernel
