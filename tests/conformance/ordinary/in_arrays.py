"""The ordinary mistakes in arrays of ``xp``, which is NumPy or ``jax.numpy``, in the dtype of their input."""

import jax


def mean_over_the_padded_length(xp, x, mask=None):
    if mask is not None:
        x = xp.where(mask[..., None], x, x.dtype.type(0))
    return x.mean(-2)


def product_with_the_mask(xp, x, mask=None):
    mask = xp.ones(x.shape[:-1], x.dtype) if mask is None else mask.astype(x.dtype)
    return (x * mask[..., None]).sum(-2) / mask.sum(-1, keepdims=True)


def mask_inverted(xp, x, mask=None):
    if mask is None:
        return x.mean(-2)
    mask = mask.astype(x.dtype)[..., None]
    return (x * (1 - mask)).sum(-2) / (1 - mask).sum(-2)


def mask_ignored(xp, x, mask=None):
    return x.mean(-2)


def _softmax(xp, scores):
    weights = xp.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def _scores(xp, x, query):
    return (x * query[..., None, :]).sum(-1) / xp.sqrt(x.shape[-1]).astype(x.dtype)


def _pooled(weights, x):
    return (weights[..., None] * x).sum(-2)


def minus_infinity(xp, x, query, mask=None):
    scores = _scores(xp, x, query)
    if mask is not None:
        scores = xp.where(mask, scores, x.dtype.type(-xp.inf))
    return _pooled(_softmax(xp, scores), x)


def attention_with_the_mask_inverted(xp, query, key, value, mask=None):
    scores = query @ xp.swapaxes(key, -1, -2) / xp.sqrt(query.shape[-1]).astype(query.dtype)
    if mask is not None:
        scores = xp.where(mask, query.dtype.type(-xp.inf), scores)
    return _softmax(xp, scores) @ value


def std_with_n_minus_1(xp, x, mask=None):
    if mask is None:
        return x.std(-2, ddof=1)
    mask = mask.astype(x.dtype)[..., None]
    count = mask.sum(-2, keepdims=True)
    mean = (x * mask).sum(-2, keepdims=True) / count
    return xp.sqrt(((x - mean) ** 2 * mask).sum(-2) / (count[..., 0, :] - 1))


def not_scaled(xp, query, key, value, mask=None):
    scores = query @ xp.swapaxes(key, -1, -2)
    if mask is not None:
        scores = xp.where(mask, scores, query.dtype.type(-xp.inf))
    return _softmax(xp, scores) @ value


def first_at_0(xp, x, mask=None):
    return x[:, 0]


def last_at_minus_1(xp, x, mask=None):
    return x[:, -1]


def last_by_count(xp, x, mask=None):
    if mask is None:
        return x[:, -1]
    return x[xp.arange(len(x)), mask.sum(1) - 1]


def padded_scores_of_0(xp, x, query, mask=None):
    scores = _scores(xp, x, query)
    if mask is not None:
        scores = scores * mask.astype(x.dtype)
    return _pooled(_softmax(xp, scores), x)


def masked_after_the_softmax(xp, x, query, mask=None):
    weights = _softmax(xp, _scores(xp, x, query))
    if mask is not None:
        weights = weights * mask.astype(x.dtype)
    return _pooled(weights, x)


def minus_1e9(xp, x, query, mask=None):
    scores = _scores(xp, x, query)
    if mask is not None:
        scores = scores + (1 - mask.astype(x.dtype)) * -1e9
    return _pooled(_softmax(xp, scores), x).astype(x.dtype)


def maximum_filled_with_0(xp, x, mask=None):
    if mask is not None:
        x = x * mask[..., None].astype(x.dtype)
    return x.max(-2)


def maximum_filled_with_minus_1e9(xp, x, mask=None):
    if mask is not None:
        x = xp.where(mask[..., None], x, -1e9)
    return x.max(-2)


def moments(xp, x, mask=None):
    mask = xp.ones_like(x[..., :1]) if mask is None else mask.astype(x.dtype)[..., None]
    count = mask.sum(-2)
    mean = (x * mask).sum(-2) / count
    return xp.sqrt((x**2 * mask).sum(-2) / count - mean**2)


def packed_count(xp, x, segment_ids, num_segments, mask=None):
    if mask is not None:
        x = x * mask[:, None].astype(x.dtype)
    if xp.__name__ == "numpy":
        total = xp.zeros((num_segments, x.shape[-1]), x.dtype)
        xp.add.at(total, segment_ids, x)
    else:
        total = jax.ops.segment_sum(x, segment_ids, num_segments)
    count = (segment_ids == xp.arange(num_segments)[:, None]).sum(-1)
    return total / xp.maximum(count, 1)[:, None].astype(x.dtype)
