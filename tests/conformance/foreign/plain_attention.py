"""Normalisers, scores, attention and pairs in NumPy. Masks are boolean and have all axes."""

import numpy as np
from conformance.foreign.plain_poolings import PLAIN, selected
from conformance.foreign.routes import WIDE


def softmax(scores, mask=None):
    """The softmax of the last axis; a row without a real score is 0."""
    scores = scores if mask is None else np.where(mask, scores, -np.inf).astype(scores.dtype)
    top = np.max(scores, -1, keepdims=True, initial=-np.inf)
    powers = np.exp(scores - np.where(np.isneginf(top), 0, top).astype(scores.dtype))
    total = powers.sum(-1, keepdims=True)
    return powers / np.where(total == 0, 1, total).astype(scores.dtype)


@PLAIN.of("masked_softmax", "the largest real score is subtracted")
def softmax_shifted(scores, mask=None):
    return softmax(scores, mask)


@PLAIN.of("masked_softmax", "each score against all others")
def softmax_by_differences(scores, mask=None):
    mask = np.ones(scores.shape, bool) if mask is None else mask
    with np.errstate(all="ignore"):
        ratios = np.exp(scores[..., None, :] - scores[..., :, None])
        weights = 1 / np.where(mask[..., None, :], ratios, 0).sum(-1)
    dead = np.isneginf(scores) & ~np.isnan(scores).any(-1, keepdims=True)
    return np.where(mask & ~dead, weights, 0).astype(scores.dtype)


@PLAIN.of("masked_softmax", "logaddexp, in float32", mask_form="boolean")
def softmax_by_logaddexp(scores, mask=None):
    mask = np.ones(scores.shape, bool) if mask is None else mask
    kept = np.where(mask, scores, -np.inf)
    total = np.logaddexp.reduce(kept, -1, keepdims=True) if scores.shape[-1] else np.zeros((*scores.shape[:-1], 1))
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(total) | ~mask, 0, np.exp(kept - total)).astype(scores.dtype)


@PLAIN.of("masked_softmax", "additive masks of -inf", mask_form="additive")
def softmax_of_biased_scores(scores, mask=None):
    return softmax(scores if mask is None else np.where(np.isneginf(mask), -np.inf, scores).astype(scores.dtype))


@PLAIN.of("masked_softmax", "a loop over the rows that have something real", mask_required=True)
def softmax_by_compression(scores, mask):
    out = np.zeros(scores.shape, scores.dtype)
    for index in np.ndindex(*scores.shape[:-1]):
        kept = scores[index][mask[index]]
        if kept.size:
            powers = np.exp(kept - kept.max())
            out[index][mask[index]] = powers / powers.sum()
    return out


@PLAIN.of("masked_log_softmax", "minus logaddexp, in float32", mask_form="boolean")
def log_softmax_by_logaddexp(scores, mask=None):
    kept = scores if mask is None else np.where(mask, scores, -np.inf)
    total = np.logaddexp.reduce(kept, -1, keepdims=True) if scores.shape[-1] else np.zeros((*scores.shape[:-1], 1))
    with np.errstate(invalid="ignore"):
        return np.where(kept == -np.inf, -np.inf, kept - total).astype(scores.dtype)


@PLAIN.of("sparsemax", "sorted scores and their cumulative sums")
def sparsemax_by_sorting(scores, mask=None):
    mask = np.ones(scores.shape, bool) if mask is None else mask
    kept = np.where(mask, scores, -np.inf).astype(np.float64)
    top = kept.max(-1, keepdims=True)
    kept = kept - np.where(np.isneginf(top), 0, top)
    ordered = -np.sort(-kept, -1)
    ranks = np.arange(1, kept.shape[-1] + 1)
    finite = np.where(np.isneginf(ordered), 0, ordered)
    support = (1 + ranks * ordered > np.cumsum(finite, -1)) & ~np.isneginf(ordered)
    size = np.maximum(support.sum(-1, keepdims=True), 1)
    threshold = (np.where(support, finite, 0).sum(-1, keepdims=True) - 1) / size
    weights = np.where(np.isneginf(kept), 0, np.maximum(kept - threshold, 0))
    spoiled = np.isnan(np.where(mask, scores, 0)).any(-1, keepdims=True)
    return np.where(mask, np.where(spoiled, np.nan, weights), 0).astype(scores.dtype)


@PLAIN.of("hardmax", "argmax of a fill")
def hardmax_by_argmax(scores, mask=None):
    kept = scores if mask is None else np.where(mask, scores, -np.inf)
    one = np.arange(scores.shape[-1]) == np.argmax(kept, -1)[..., None]
    weights = np.where(one & ~np.isneginf(kept), 1, 0).astype(scores.dtype)
    spoiled = np.isnan(kept).any(-1, keepdims=True)
    return np.where(spoiled & (True if mask is None else mask), np.nan, weights).astype(scores.dtype)


@PLAIN.of("l2_normalize", "np.linalg.norm", arguments={"vectors": "x"})
def normalize_by_norm(vectors):
    norm = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(norm == 0, 1, norm).astype(vectors.dtype)


@PLAIN.of("dot_score", "einsum", same_batch=True)
def dot_by_einsum(query, key):
    return np.einsum("...nd,...md->...nm", query, key)


@PLAIN.of("scaled_dot_score", "a product by tensordot of single examples", batched=True)
def scaled_by_tensordot(query, key):
    pairs = [np.tensordot(q, k, (1, 1)) for q, k in zip(query, key, strict=True)]
    shape = (len(query), query.shape[1], key.shape[1])
    return (np.array(pairs).reshape(shape) / np.sqrt(query.shape[-1])).astype(query.dtype)


@PLAIN.of("cosine_score", "products of unit vectors")
def cosine_of_unit_vectors(query, key):
    return normalize_by_norm(query) @ np.swapaxes(normalize_by_norm(key), -1, -2)


@PLAIN.of("cosine_score", "products over the norms")
def cosine_over_norms(query, key):
    norms = np.linalg.norm(query, axis=-1)[..., :, None] * np.linalg.norm(key, axis=-1)[..., None, :]
    return (query @ np.swapaxes(key, -1, -2) / np.where(norms == 0, 1, norms)).astype(query.dtype)


def squared_distances(query, key):
    """|q|^2 + |k|^2 - 2 q k, around the mean of the keys, in float64."""
    center = key.mean(-2, keepdims=True, dtype=np.float64) if key.shape[-2] else 0
    query, key = query - center, key - center
    norms = (query**2).sum(-1)[..., :, None] + (key**2).sum(-1)[..., None, :]
    return np.maximum(norms - 2 * query @ np.swapaxes(key, -1, -2), 0)


@PLAIN.of("gaussian_score", "|q|^2 + |k|^2 - 2 q k")
def gaussian_by_expansion(query, key, bandwidth=1.0):
    return (-squared_distances(query, key) / (2 * bandwidth**2)).astype(query.dtype)


@PLAIN.of("gaussian_score", "differences of all pairs")
def gaussian_by_differences(query, key, bandwidth=1.0):
    off = (query[..., :, None, :] - key[..., None, :, :]) / np.asarray(bandwidth, query.dtype)
    return -np.einsum("...d,...d->...", off, off) / 2


@PLAIN.of("gaussian_score", "scipy's distances", batched=True)
def gaussian_by_scipy(query, key, bandwidth=1.0):
    from scipy.spatial.distance import cdist

    shape = (len(query), query.shape[1], key.shape[1])
    pairs = [cdist(q, k, "sqeuclidean") for q, k in zip(query, key, strict=True)]
    return (-np.array(pairs).reshape(shape) / (2 * bandwidth**2)).astype(query.dtype)


@PLAIN.of("kernel_regression", "folded distances", fixed={"kernel": "gaussian"})
def kernel_regression_by_expansion(query, key, value, mask=None, bandwidth=1.0):
    if mask is not None:
        query = selected(query, mask.any(-1))
        key, value = selected(key, mask.any(-2)), selected(value, mask.any(-2))
    weights = softmax(-squared_distances(query, key) / (2 * bandwidth**2), mask)
    return (weights @ value).astype(query.dtype)


@PLAIN.of("additive_score", "one pair of axes at a time")
def additive_by_rows(query, key, query_kernel, key_kernel, out_kernel):
    q, k = query @ query_kernel, key @ key_kernel
    rows = [np.tanh(q[..., i, None, :] + k) @ out_kernel for i in range(q.shape[-2])]
    return np.stack(rows, -2)


@PLAIN.of("trilinear_score", "three terms", same_batch=True)
def trilinear_by_terms(query, key, kernel):
    a, b, c = kernel.reshape(3, -1)
    return (query @ a)[..., None] + (key @ b)[..., None, :] + np.einsum("...nd,d,...md->...nm", query, c, key)


@PLAIN.of("dot_product_attention", "as the paper writes it", same_batch=True)
def attention_of_the_paper(query, key, value, mask=None):
    if mask is not None:
        query = selected(query, mask.any(-1))
        key, value = selected(key, mask.any(-2)), selected(value, mask.any(-2))
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.dtype.type(query.shape[-1]))
    return softmax(scores, mask) @ value


@PLAIN.of("dot_product_attention", "with its weights", WIDE, same_batch=True)
def attention_with_weights(query, key, value, mask=None, *, return_weights=False):
    mask = np.ones((*query.shape[:-1], key.shape[-2]), bool) if mask is None else mask
    kept, values = selected(key, mask.any(-2)), selected(value, mask.any(-2))
    scores = np.einsum("...nd,...md->...nm", selected(query, mask.any(-1)), kept) * query.shape[-1] ** -0.5
    weights = softmax(scores.astype(query.dtype), mask)
    if return_weights:  # another order of operations: the same to rounding
        return weights @ values, weights
    top = np.max(np.where(mask, scores, -np.inf), -1, keepdims=True, initial=-1e30)
    powers = np.where(mask, np.exp(scores - top), 0)
    total = powers.sum(-1, keepdims=True)
    return (powers @ values / np.where(total == 0, 1, total)).astype(query.dtype)


@PLAIN.of("dot_product_attention", "keys one by one, as in decoding", WIDE, long=False, same_batch=True)
def attention_over_a_cache(query, key, value, mask=None):
    mask = np.ones((*query.shape[:-1], key.shape[-2]), bool) if mask is None else mask
    top = np.full(query.shape[:-1], -np.inf, query.dtype)
    total, pooled = np.zeros_like(top), np.zeros((*top.shape, value.shape[-1]), query.dtype)
    for j in range(key.shape[-2]):
        keep = mask[..., j]
        k, v = (np.where(keep.any(-1)[..., None], a[..., j, :], 0) for a in (key, value))
        score = np.einsum("...nd,...d->...n", selected(query, mask.any(-1)), k) / np.sqrt(query.shape[-1])
        score = np.where(keep, score, -np.inf)
        new = np.maximum(top, score)
        base = np.where(np.isneginf(new), 0, new)
        old, own = np.exp(top - base), np.exp(score - base)
        total, top = total * old + own, new
        pooled = pooled * old[..., None] + own[..., None] * v[..., None, :]
    return (pooled / np.where(total == 0, 1, total)[..., None]).astype(query.dtype)


@PLAIN.of("attend", "a loop over queries, real keys alone", batched=True)
def attend_by_queries(scores, value, mask=None):
    out = np.zeros((*scores.shape[:-1], value.shape[-1]), value.dtype)
    for b, i in np.ndindex(*scores.shape[:2]):
        real = np.flatnonzero(mask[b, i]) if mask is not None else np.arange(scores.shape[-1])
        real = real[~np.isneginf(scores[b, i, real])]
        if real.size:
            powers = np.exp(scores[b, i, real] - scores[b, i, real].max())
            out[b, i] = powers @ value[b, real] / powers.sum()
    return out


@PLAIN.of("multi_head_attention", "reshaped kernels", same_batch=True)
def multi_head_by_reshaping(query, key, value, query_kernel, key_kernel, value_kernel, out_kernel, mask=None):
    heads = query_kernel.shape[1]

    def project(tokens, kernel):
        flat = tokens @ kernel.reshape(kernel.shape[0], -1)
        return np.swapaxes(flat.reshape(*flat.shape[:-1], heads, -1), -2, -3)

    if mask is not None:
        own = mask if mask.ndim == query.ndim else mask.any(-3)
        query = selected(query, own.any(-1))
        key, value = selected(key, own.any(-2)), selected(value, own.any(-2))
        mask = mask[..., None, :, :] if mask.ndim == query.ndim else mask
    q, k, v = project(query, query_kernel), project(key, key_kernel), project(value, value_kernel)
    context = softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.dtype.type(q.shape[-1])), mask) @ v
    context = np.swapaxes(context, -2, -3).reshape(*query.shape[:-1], -1)
    return context @ out_kernel.reshape(-1, out_kernel.shape[-1])


@PLAIN.of("code_wise_attention", "the largest product of each token", WIDE, same_batch=True)
def code_wise(query, context, query_mask=None, context_mask=None):
    query, context = selected(query, query_mask), selected(context, context_mask)
    products = context @ np.swapaxes(query, -1, -2)
    if query_mask is not None:
        products = np.where(query_mask[..., None, :], products, -np.inf)
    weights = softmax(products.max(-1, initial=-np.inf), context_mask)
    return (weights[..., None] * context).sum(-2).astype(context.dtype)


@PLAIN.of("mask_attention", "attention of tokens to labels", same_batch=True)
def mask_attention(query, context, query_mask=None, context_mask=None):
    query, context = selected(query, query_mask), selected(context, context_mask)
    keep = (
        None
        if query_mask is None
        else np.broadcast_to(query_mask[..., None, :], (*context.shape[:-1], query.shape[-2]))
    )
    result = softmax(context @ np.swapaxes(query, -1, -2), keep) @ query
    return result if context_mask is None else selected(result, context_mask)


@PLAIN.of("maxsim_score", "late interaction (ColBERT)", WIDE, same_batch=True)
def maxsim(x, y, x_mask=None, y_mask=None):
    products = selected(x, x_mask) @ np.swapaxes(selected(y, y_mask), -1, -2)
    if y_mask is not None:
        products = np.where(y_mask[..., None, :], products, -np.inf)
    best = products.max(-1, initial=-np.inf)
    if y_mask is not None:
        best = np.where(y_mask.any(-1)[..., None], best, 0)
    return (best if x_mask is None else np.where(x_mask, best, 0)).sum(-1).astype(x.dtype)


@PLAIN.of("orthogonal_decomposition", "projection on the unit vector")
def decomposition_by_unit_vectors(x, reference):
    unit = normalize_by_norm(reference)
    similar = (x * unit).sum(-1, keepdims=True) * unit
    return similar, x - similar


@PLAIN.of("layer_norm", "two passes", fixed={"epsilon": 1e-6})
def layer_norm(x, scale=None, bias=None, epsilon=1e-6):
    off = x - x.mean(-1, keepdims=True)
    y = off / np.sqrt((off * off).mean(-1, keepdims=True) + np.asarray(epsilon, x.dtype))
    y = y if scale is None else y * scale
    return y if bias is None else y + bias


@PLAIN.of("lengths_to_mask", "comparison with a range")
def lengths_to_mask(lengths, max_length):
    return np.arange(max_length) < np.asarray(lengths)[..., None]


@PLAIN.of("attention_triplet_loss", "sums of squares by einsum")
def triplet_by_einsum(anchor, positive, negative, margin=0.2):
    near, far = anchor - positive, anchor - negative
    squares = [np.einsum("...m,...m->...", off, off) for off in (near, far)]
    return np.maximum(squares[0] - squares[1] + np.asarray(margin, anchor.dtype), 0)


@PLAIN.of("field_attention_pooling", "side by side", batched=True)
def field_attention(target, fields, kernel, bias, mask=None):
    fields = selected(fields, mask)
    both = np.concatenate([np.broadcast_to(target[:, None], (*fields.shape[:2], target.shape[-1])), fields], -1)
    weights = softmax(np.tanh((both * kernel).sum(-1) + bias), mask)
    return (weights[..., None] * both).sum(-2).astype(target.dtype)


@PLAIN.of("label_attention", "attention among labels, in its own dtype")
def label_attention(labels, query_kernel, key_kernel, value_kernel, mask=None):
    labels = selected(labels, mask)
    scores = labels @ query_kernel @ np.swapaxes(labels @ key_kernel, -1, -2) / np.sqrt(query_kernel.shape[-1])
    keep = None if mask is None else mask[..., None, :] & mask[..., :, None]
    return softmax(scores.astype(labels.dtype), keep) @ (labels @ value_kernel)
