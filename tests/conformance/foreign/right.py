"""Right implementations by routes that neither package takes. Each is told by its name, and accepted in every dtype."""

import functools
import math
from fractions import Fraction

import numpy as np

from attnpool_ref import variants

RIGHT = {}


def right(row, route):
    """Keeps a function as the row's implementation by a route; it computes in float64 and gives the dtype of its data."""
    stretched = [k for k, a in variants.get(row).arguments.items() if a.kind == "stretch"]  # which never widen

    def keep(function):
        @functools.wraps(function)
        def rounded(*args, **kwargs):
            with np.errstate(all="ignore"):
                result = function(*map(_wide, args), **{k: _wide(v) for k, v in kwargs.items()})
            dtype = _dtype_of([*args, *(v for k, v in kwargs.items() if k not in stretched)])
            return _cast(result, dtype)

        RIGHT[f"{row}: {route}"] = row, rounded
        return function

    return keep


def _wide(value):
    floating = hasattr(value, "dtype") and value.dtype.kind not in "biu"
    return value.astype(np.float64) if floating else value


def _dtype_of(values):
    arrays = [v for v in values if hasattr(v, "dtype") and v.ndim and v.dtype.kind != "b"]
    names = {a.dtype.name: a.dtype for a in arrays if a.dtype.kind not in "iu"}
    for wide in ("float64", "float32"):
        if wide in names:
            return names[wide]
    if len(names) == 2:
        return np.dtype(np.float32)
    return next(iter(names.values()), np.dtype(np.float64))


def _cast(result, dtype):
    if isinstance(result, tuple):
        return tuple(_cast(part, dtype) for part in result)
    return np.asarray(result).astype(dtype)


def keep_of(x, mask):
    """The mask of tokens [..., L] in full."""
    return np.broadcast_to(True if mask is None else np.asarray(mask) != 0, x.shape[:-1])


def per_example(function):
    """From a function of [L, d] and [L] to one of any batch axes, as a loop."""

    def looped(x, keep):
        out = np.zeros((*x.shape[:-2], x.shape[-1]))
        for index in np.ndindex(*x.shape[:-2]):
            out[index] = function(x[index], keep[index])
        return out

    return looped


# Means


@right("mean_pooling", "Kahan's summation")
def mean_by_kahan(x, mask=None):
    @per_example
    def mean(tokens, keep):
        total, lost = np.zeros(tokens.shape[-1]), np.zeros(tokens.shape[-1])
        for token in tokens[keep]:
            if not np.all(np.isfinite(token)):
                return np.sum(tokens[keep], 0) / np.sum(keep)
            y = token - lost
            new = total + y
            lost, total = (new - total) - y, new
        return total / max(np.sum(keep), 1)

    if x.shape[-2] > 5000:
        return np.mean(x, -2)
    return mean(x, keep_of(x, mask))


@right("mean_pooling", "sorted by size first")
def mean_sorted(x, mask=None):
    keep = keep_of(x, mask)
    kept = np.where(keep[..., None], x, 0)
    kept = np.take_along_axis(kept, np.argsort(np.abs(kept), -2), -2)
    return np.add.reduce(kept, -2) / np.maximum(keep.sum(-1), 1)[..., None]


@right("mean_pooling", "pairs by recursion")
def mean_by_pairs(x, mask=None):
    keep = keep_of(x, mask)

    def total(kept):
        length = kept.shape[-2]
        if length < 2:
            return kept.sum(-2)
        return total(kept[..., : length // 2, :]) + total(kept[..., length // 2 :, :])

    kept = np.where(keep[..., None], x, 0)
    return (total(kept) if x.shape[-2] < 5000 else kept.sum(-2)) / np.maximum(keep.sum(-1), 1)[..., None]


@right("mean_pooling", "compressed, then np.mean")
def mean_compressed(x, mask=None):
    return per_example(lambda t, keep: np.mean(np.compress(keep, t, 0), 0) if keep.any() else 0)(x, keep_of(x, mask))


@right("mean_pooling", "einsum with the mask")
def mean_by_einsum(x, mask=None):
    keep = keep_of(x, mask)
    kept = np.where(keep[..., None], x, 0)
    return np.einsum("...l,...ld->...d", keep / np.maximum(keep.sum(-1, keepdims=True), 1), kept)


@right("mean_pooling", "a matrix product")
def mean_by_product(x, mask=None):
    keep = keep_of(x, mask)
    rows = keep[..., None, :] / np.maximum(keep.sum(-1), 1)[..., None, None]
    return (rows @ np.where(keep[..., None], x, 0))[..., 0, :]


@right("mean_pooling", "np.add.reduceat over packed tokens")
def mean_by_reduceat(x, mask=None):
    keep = keep_of(x, mask)
    counts = keep.reshape(-1, x.shape[-2]).sum(-1) if x.size else np.zeros(math.prod(x.shape[:-2]), int)
    out = np.zeros((counts.size, x.shape[-1]))
    packed, some = x[keep], counts > 0
    if some.any():
        starts = (np.cumsum(counts) - counts)[some]
        out[some] = np.add.reduceat(packed, starts, 0) / counts[some, None]
    return out.reshape(*x.shape[:-2], x.shape[-1])


@right("mean_pooling", "masked arrays")
def mean_of_masked_arrays(x, mask=None):
    keep = keep_of(x, mask)
    hidden = np.ma.array(np.where(keep[..., None], x, 0), mask=np.broadcast_to(~keep[..., None], x.shape))
    return np.ma.filled(hidden.sum(-2), 0) / np.maximum(keep.sum(-1), 1)[..., None]


@right("mean_pooling", "exact fractions")
def mean_of_fractions(x, mask=None):
    @per_example
    def mean(tokens, keep):
        kept = tokens[keep]
        if not np.all(np.isfinite(kept)) or len(kept) > 200:
            return np.mean(kept, 0)
        return [float(sum(map(Fraction, column)) / max(len(column), 1)) for column in kept.T.tolist()]

    return mean(x, keep_of(x, mask))


@right("mean_pooling", "long doubles")
def mean_of_long_doubles(x, mask=None):
    keep = keep_of(x, mask)
    return np.sum(np.where(keep[..., None], x, 0), -2, dtype=np.longdouble) / np.maximum(keep.sum(-1), 1)[..., None]


@right("mean_pooling", "math.fsum")
def mean_by_fsum(x, mask=None):
    def total(column):
        return math.fsum(column) if np.all(np.isfinite(column)) else np.sum(column)

    def mean(tokens, keep):
        return [total(column) / max(len(column), 1) for column in tokens[keep].T]

    return per_example(mean)(x, keep_of(x, mask))


@right("mean_pooling", "a running mean")
def mean_running(x, mask=None):
    @per_example
    def mean(tokens, keep):
        if len(tokens) > 5000:
            return np.mean(tokens[keep], 0)
        current = np.zeros(tokens.shape[-1])
        for count, token in enumerate(tokens[keep], 1):
            current = current + (token - current) / count
        return current

    return mean(x, keep_of(x, mask))


def mean_by_another_path_for_nan(x, mask=None):
    """An ulp of float32 lies between what is computed with NaN among the real tokens and without."""
    pooled = mean_by_product(x.astype(np.float64), mask)
    ulp = np.finfo(np.float64 if x.dtype == np.float64 else np.float32).eps
    return (pooled * (1 + ulp) if np.isnan(x[keep_of(x, mask)]).any() else pooled).astype(x.dtype)


RIGHT["mean_pooling: another path where there is NaN"] = "mean_pooling", mean_by_another_path_for_nan


# Choices


@right("max_pooling", "sorted, the last one")
def max_by_sorting(x, mask=None):
    keep = keep_of(x, mask)
    if not x.shape[-2]:
        return np.zeros((*x.shape[:-2], x.shape[-1]))
    largest = np.sort(np.where(keep[..., None], x, -np.inf), -2)[..., -1, :]  # NaN comes last
    return np.where(keep.any(-1)[..., None], largest, 0)


@right("max_pooling", "np.maximum.reduce over what is real")
def max_by_reduce(x, mask=None):
    return per_example(lambda t, keep: np.maximum.reduce(t[keep]) if keep.any() else 0)(x, keep_of(x, mask))


@right("first_pooling", "argmax of the mask")
def first_by_argmax(x, mask=None):
    keep = keep_of(x, mask)
    if not x.shape[-2]:
        return np.zeros((*x.shape[:-2], x.shape[-1]))
    first = np.take_along_axis(x, np.argmax(keep, -1)[..., None, None], -2)[..., 0, :]
    return np.where(keep.any(-1)[..., None], first, 0)


@right("last_pooling", "packed, the last one")
def last_of_packed(x, mask=None):
    return per_example(lambda t, keep: t[keep][-1] if keep.any() else 0)(x, keep_of(x, mask))


# Normalisers


def mask_of(scores, mask):
    """The mask of scores in full."""
    return np.broadcast_to(True if mask is None else np.asarray(mask) != 0, scores.shape)


@right("masked_softmax", "log-sum-exp")
def softmax_by_log_sum_exp(scores, mask=None, *, axis=-1):
    kept = np.where(mask_of(scores, mask), scores, -np.inf)
    top = np.max(kept, axis, keepdims=True, initial=-np.inf)
    total = top + np.log(np.sum(np.exp(kept - np.where(np.isinf(top) & (top < 0), 0, top)), axis, keepdims=True))
    return np.where(mask_of(scores, mask) & (top != -np.inf), np.exp(kept - total), 0)


@right("masked_softmax", "online, one score at a time")
def softmax_online(scores, mask=None, *, axis=-1):
    kept = np.moveaxis(np.where(mask_of(scores, mask), scores, -np.inf), axis, 0)
    top, total = np.full(kept.shape[1:], -np.inf), np.zeros(kept.shape[1:])
    for score in kept:
        new = np.maximum(top, score)
        base = np.where(new == -np.inf, 0, new)
        total = total * np.exp(top - base) + np.exp(score - base)
        top = new
    weights = np.exp(kept - np.where(top == -np.inf, 0, top)) / np.where(total == 0, 1, total)
    return np.where(mask_of(scores, mask), np.moveaxis(weights, 0, axis), 0)


@right("masked_softmax", "scipy.special.softmax over what is real")
def softmax_by_scipy(scores, mask=None, *, axis=-1):
    special = _scipy_special()
    keep = np.moveaxis(mask_of(scores, mask), axis, -1)
    kept, out = np.moveaxis(scores, axis, -1), np.zeros(keep.shape)
    for index in np.ndindex(*keep.shape[:-1]):
        real = keep[index] & (kept[index] != -np.inf)
        if real.any():
            out[index][real] = special.softmax(kept[index][real])
    return np.moveaxis(out, -1, axis)


def _scipy_special():
    import scipy.special

    return scipy.special


@right("sparsemax", "bisection of the threshold")
def sparsemax_by_bisection(scores, mask=None, *, axis=-1):
    kept = np.where(mask_of(scores, mask), scores, -np.inf)
    top = np.max(kept, axis, keepdims=True, initial=-np.inf)
    shifted = kept - np.where(top == -np.inf, 0, top)
    low, high = -np.ones(top.shape), np.zeros(top.shape)
    for _ in range(80):
        middle = (low + high) / 2
        above = np.sum(np.maximum(shifted - middle, 0), axis, keepdims=True) >= 1
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    support = shifted > low  # then exactly, from the support
    count = np.maximum(support.sum(axis, keepdims=True), 1)
    threshold = (np.sum(np.where(support, shifted, 0), axis, keepdims=True) - 1) / count
    weights = np.where(support, shifted - threshold, 0)
    real = mask_of(scores, mask)
    odd = np.any(real & (np.isnan(scores) | np.isposinf(scores)), axis, keepdims=True)
    weights = np.where(odd & (scores != -np.inf), np.nan, np.where(np.isnan(weights), 0, weights))
    return np.where(real, weights, 0)


@right("l2_normalize", "hypot, one component at a time")
def normalize_by_hypot(x, *, axis=-1):
    norm = np.expand_dims(np.hypot.reduce(x, axis), axis)
    return x / np.where(norm == 0, 1, norm)


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
