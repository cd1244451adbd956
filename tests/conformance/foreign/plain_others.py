"""Packed tokens, pairs of sequences, decompositions and relations in NumPy. Masks are boolean and have all axes."""

import numpy as np
from conformance.foreign.plain_attention import normalize_by_norm, softmax
from conformance.foreign.plain_poolings import PLAIN, selected
from conformance.foreign.routes import WIDE


def packed(x, segment_ids, mask):
    """The real tokens and their numbers."""
    return (x, segment_ids) if mask is None else (x[mask], segment_ids[mask])


@PLAIN.of("segment_mean_pooling", "np.add.at and bincount")
def segment_mean(x, segment_ids, num_segments, mask=None):
    x, numbers = packed(x, segment_ids, mask)
    total = np.zeros((num_segments, x.shape[-1]))
    np.add.at(total, numbers, x)
    count = np.bincount(numbers, minlength=num_segments)
    return (total / np.maximum(count, 1)[:, None]).astype(x.dtype)


@PLAIN.of("segment_sum_pooling", "a product with a matrix of ones", WIDE)
def segment_sum(x, segment_ids, num_segments, mask=None):
    x, numbers = packed(x, segment_ids, mask)
    out = np.zeros((num_segments, x.shape[-1]), x.dtype)
    for start in range(0, len(x), 4096):
        one_hot = np.arange(num_segments)[:, None] == numbers[start : start + 4096]
        for segment in np.flatnonzero(one_hot.any(1)):
            out[segment] += x[start : start + 4096][one_hot[segment]].sum(0)
    return out


@PLAIN.of("segment_max_pooling", "np.maximum.at")
def segment_max(x, segment_ids, num_segments, mask=None):
    x, numbers = packed(x, segment_ids, mask)
    out = np.full((num_segments, x.shape[-1]), -np.inf, x.dtype)
    np.maximum.at(out, numbers, x)
    return np.where(np.bincount(numbers, minlength=num_segments)[:, None] > 0, out, 0).astype(x.dtype)


@PLAIN.of("segment_max_pooling", "sorted, then reduceat")
def segment_max_by_reduceat(x, segment_ids, num_segments, mask=None):
    x, numbers = packed(x, segment_ids, mask)
    order = np.argsort(numbers, kind="stable")
    found, starts = np.unique(numbers[order], return_index=True)
    out = np.zeros((num_segments, x.shape[-1]), x.dtype)
    if len(found):
        out[found] = np.maximum.reduceat(x[order], starts, 0)
    return out


@PLAIN.of("segment_last_pooling", "the last assignment stays")
def segment_last(x, segment_ids, num_segments, mask=None):
    x, numbers = packed(x, segment_ids, mask)
    out = np.zeros((num_segments, x.shape[-1]), x.dtype)
    for number, token in zip(numbers, x, strict=True):
        out[number] = token
    return out


@PLAIN.of("cross_attention_pooling", "an affinity matrix, summed on either side", WIDE, same_batch=True)
def cross_pooling(x, y, x_mask=None, y_mask=None):
    x, y = selected(x, x_mask), selected(y, y_mask)
    affinity = x @ np.swapaxes(y, -1, -2)
    of_x, of_y = softmax(affinity.sum(-1), x_mask), softmax(affinity.sum(-2), y_mask)
    return np.einsum("...l,...ld->...d", of_x, x), np.einsum("...t,...te->...e", of_y, y)


@PLAIN.of("bidaf_attention", "the similarity in three terms", same_batch=True)
def bidaf(context, query, kernel, context_mask=None, query_mask=None):
    h, u = selected(context, context_mask), selected(query, query_mask)
    a, b, c = kernel.reshape(3, -1)
    similarity = (h @ a)[..., :, None] + (u @ b)[..., None, :] + (h * c) @ np.swapaxes(u, -1, -2)
    keep = np.ones(similarity.shape, bool)
    keep &= True if query_mask is None else query_mask[..., None, :]
    keep &= True if context_mask is None else context_mask[..., :, None]
    chosen = softmax(similarity, keep) @ u
    best = np.where(keep, similarity, -np.inf).max(-1, initial=-np.inf)
    summary = (softmax(best, keep.any(-1))[..., None] * h).sum(-2, keepdims=True)
    joined = np.concatenate([h, chosen, h * chosen, h * summary], -1)
    return (joined if context_mask is None else selected(joined, context_mask)).astype(context.dtype)


@PLAIN.of("semantic_match", "the token of the largest cosine", same_batch=True)
def best_match(x, y, x_mask=None, y_mask=None):
    x, y = selected(x, x_mask), selected(y, y_mask)
    cosines = normalize_by_norm(x) @ np.swapaxes(normalize_by_norm(y), -1, -2)
    if y_mask is not None:
        cosines = np.where(y_mask[..., None, :], cosines, -np.inf)
    best = cosines.argmax(-1)
    found = np.take_along_axis(y, best[..., None], -2)
    found = np.where(np.isnan(cosines).any(-1, keepdims=True), np.nan, found).astype(x.dtype)
    if y_mask is not None:
        found = np.where(y_mask.any(-1)[..., None, None], found, 0).astype(x.dtype)
    return found if x_mask is None else selected(found, x_mask)


@PLAIN.of("vlad_pooling", "soft counts times centers", WIDE, batched=True)
def vlad(x, assign_kernel, centers, mask=None):
    x = selected(x, mask)
    keep = None if mask is None else np.broadcast_to(mask[..., None], (*x.shape[:-1], assign_kernel.shape[-1]))
    weights = softmax(x @ assign_kernel)[..., : len(centers)]
    weights = weights if keep is None else np.where(keep[..., : len(centers)], weights, 0)
    off = x[:, :, None] - centers
    vectors = normalize_by_norm((weights[..., None] * off).sum(1))
    return (vectors / np.maximum(np.sqrt((vectors**2).sum((-1, -2), keepdims=True)), 1e-12)).astype(x.dtype)


@PLAIN.of("graph_decomposition", "loops over labels and neighbours", leave=("num_layers",))
def graph_by_loops(labels, adjacency):
    for _ in range(2):
        off = np.zeros_like(labels)
        for i, row in enumerate(adjacency):
            near = labels[row]
            size = (near * near).sum(-1)
            size = np.where(size == 0, 1, size)
            if len(near):
                off[i] = ((near @ labels[i] / size)[:, None] * near).mean(0)
        rest = labels - off
        noise = 16 * np.finfo(labels.dtype).eps * np.linalg.norm(labels, axis=-1, keepdims=True)
        labels = np.where(np.linalg.norm(rest, axis=-1, keepdims=True) <= noise, 0, rest)  # only rounding errors remain
    return labels


@PLAIN.of("linear_decomposition", "the cosine times the vector")
def linear_decomposition(x, reference):
    cosine = (normalize_by_norm(x) * normalize_by_norm(reference)).sum(-1, keepdims=True)
    return cosine * x, x - cosine * x


@PLAIN.of("rigid_decomposition", "np.isclose with atol alone")
def rigid_decomposition(x, reference, atol=0.0):
    close = np.all(np.abs(x - reference) <= atol, -1, keepdims=True) | np.isnan(x).any(-1, keepdims=True)
    similar = np.where(close, x, 0).astype(x.dtype)
    return similar, x - similar


@PLAIN.of("relation_vector", "two projections and a logistic function")
def relation_vector(x, y, x_kernel, y_kernel, out_kernel, bias):
    return (1 / (1 + np.exp(-(x @ x_kernel + y @ y_kernel + bias)))) @ out_kernel


@PLAIN.of("token_positions", "cumulative counts")
def token_positions(mask):
    return np.where(mask, np.cumsum(mask, -1) - 1, -1)


@PLAIN.of("tanh_sum_score", "sums of a broadcast tanh")
def tanh_sum(query, key, kernel):
    d = query.shape[-1]
    return np.tanh((query @ kernel[:d])[..., :, None, :] + (key @ kernel[d:])[..., None, :, :]).sum(-1)


@PLAIN.of("entmax15", "bisection of the threshold")
def entmax15_by_bisection(scores, mask=None):
    mask = np.ones(scores.shape, bool) if mask is None else mask
    kept = np.where(mask, scores.astype(np.float64), -np.inf) / 2
    top = kept.max(-1, keepdims=True)
    some = ~np.isneginf(top)
    kept = kept - np.where(some, top, 0)
    low, high = -np.ones(top.shape), np.zeros(top.shape)
    for _ in range(60):
        middle = (low + high) / 2
        above = (np.maximum(kept - middle, 0) ** 2).sum(-1, keepdims=True) >= 1
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    weights = np.maximum(kept - low, 0) ** 2
    weights = weights / np.where(some, weights.sum(-1, keepdims=True), 1)
    return np.where(mask, weights, 0).astype(scores.dtype)


@PLAIN.of("top_k_softmax", "the k-th largest score as a threshold")
def top_k_softmax(scores, mask=None, *, k):
    kept = scores if mask is None else np.where(mask, scores, -np.inf).astype(scores.dtype)
    threshold = -np.sort(-kept, -1)[..., min(k, kept.shape[-1]) - 1, None]
    return softmax(kept, (kept >= threshold) & ~np.isneginf(kept) | np.isnan(kept))


@PLAIN.of("masked_sigmoid", "the logistic function of both signs")
def masked_sigmoid(scores, mask=None, *, normalize=False):
    powers = np.exp(-np.abs(scores))
    weights = np.where(scores >= 0, 1 / (1 + powers), powers / (1 + powers))
    weights = weights if mask is None else np.where(mask, weights, 0)
    total = weights.sum(-1, keepdims=True) if normalize else np.ones(1, scores.dtype)
    return (weights / np.where(total == 0, 1, total)).astype(scores.dtype)
