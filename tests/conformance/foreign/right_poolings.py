"""Means, choices and normalisers by routes that neither package takes, in float64."""

import math
from fractions import Fraction

import numpy as np
from conformance.foreign.rounded import RIGHT, keep_of, per_example, right

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


@right("masked_log_softmax", "scipy.special.log_softmax over what is real")
def log_softmax_by_scipy(scores, mask=None, *, axis=-1):
    special = _scipy_special()
    keep = np.moveaxis(mask_of(scores, mask), axis, -1)
    kept, out = np.moveaxis(scores, axis, -1), np.full(keep.shape, -np.inf)
    for index in np.ndindex(*keep.shape[:-1]):
        real = keep[index] & (kept[index] != -np.inf)
        if real.any():
            out[index][real] = special.log_softmax(kept[index][real])
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
