"""The ordinary mistakes in NumPy, in the dtype of their input."""

import numpy as np


def mean_over_the_padded_length(x, mask=None):
    if mask is not None:
        x = np.where(mask[..., None], x, x.dtype.type(0))
    return x.mean(-2)


def product_with_the_mask(x, mask=None):
    mask = np.ones(x.shape[:-1], x.dtype) if mask is None else mask.astype(x.dtype)
    return (x * mask[..., None]).sum(-2) / mask.sum(-1, keepdims=True)


def mask_inverted(x, mask=None):
    if mask is None:
        return x.mean(-2)
    mask = mask.astype(x.dtype)[..., None]
    return (x * (1 - mask)).sum(-2) / (1 - mask).sum(-2)


def mask_ignored(x, mask=None):
    return x.mean(-2)


def _softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def _scores(x, query):
    return (x * query[..., None, :]).sum(-1) / np.sqrt(x.shape[-1]).astype(x.dtype)


def _pooled(weights, x):
    return (weights[..., None] * x).sum(-2)


def minus_infinity(x, query, mask=None):
    scores = _scores(x, query)
    if mask is not None:
        scores = np.where(mask, scores, x.dtype.type(-np.inf))
    return _pooled(_softmax(scores), x)


def attention_with_the_mask_inverted(query, key, value, mask=None):
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1]).astype(query.dtype)
    if mask is not None:
        scores = np.where(mask, query.dtype.type(-np.inf), scores)
    return _softmax(scores) @ value


def std_with_n_minus_1(x, mask=None):
    if mask is None:
        return x.std(-2, ddof=1)
    mask = mask.astype(x.dtype)[..., None]
    count = mask.sum(-2, keepdims=True)
    mean = (x * mask).sum(-2, keepdims=True) / count
    return np.sqrt(((x - mean) ** 2 * mask).sum(-2) / (count[..., 0, :] - 1))


def not_scaled(query, key, value, mask=None):
    scores = query @ np.swapaxes(key, -1, -2)
    if mask is not None:
        scores = np.where(mask, scores, query.dtype.type(-np.inf))
    return _softmax(scores) @ value


def first_at_0(x, mask=None):
    return x[:, 0]


def last_at_minus_1(x, mask=None):
    return x[:, -1]


def last_by_count(x, mask=None):
    if mask is None:
        return x[:, -1]
    return x[np.arange(len(x)), mask.sum(1) - 1]


def padded_scores_of_0(x, query, mask=None):
    scores = _scores(x, query)
    if mask is not None:
        scores = scores * mask.astype(x.dtype)
    return _pooled(_softmax(scores), x)


def masked_after_the_softmax(x, query, mask=None):
    weights = _softmax(_scores(x, query))
    if mask is not None:
        weights = weights * mask.astype(x.dtype)
    return _pooled(weights, x)


def minus_1e9(x, query, mask=None):
    scores = _scores(x, query)
    if mask is not None:
        scores = scores + (1 - mask.astype(x.dtype)) * -1e9
    return _pooled(_softmax(scores), x).astype(x.dtype)


def maximum_filled_with_0(x, mask=None):
    if mask is not None:
        x = x * mask[..., None].astype(x.dtype)
    return x.max(-2)


def maximum_filled_with_minus_1e9(x, mask=None):
    if mask is not None:
        x = np.where(mask[..., None], x, -1e9)
    return x.max(-2)


def moments(x, mask=None):
    mask = np.ones_like(x[..., :1]) if mask is None else mask.astype(x.dtype)[..., None]
    count = mask.sum(-2)
    mean = (x * mask).sum(-2) / count
    return np.sqrt((x**2 * mask).sum(-2) / count - mean**2)


def packed_count(x, segment_ids, num_segments, mask=None):
    if mask is not None:
        x = x * mask[:, None].astype(x.dtype)
    total = np.zeros((num_segments, x.shape[-1]), x.dtype)
    np.add.at(total, segment_ids, x)
    count = np.bincount(segment_ids, minlength=num_segments)
    return total / np.maximum(count, 1)[:, None].astype(x.dtype)
