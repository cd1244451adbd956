"""The ordinary mistakes in JAX."""

import jax
import jax.numpy as jnp


def mean_over_the_padded_length(x, mask=None):
    if mask is not None:
        x = jnp.where(mask[..., None], x, 0)
    return x.mean(-2)


def product_with_the_mask(x, mask=None):
    mask = jnp.ones(x.shape[:-1], x.dtype) if mask is None else mask.astype(x.dtype)
    return (x * mask[..., None]).sum(-2) / mask.sum(-1, keepdims=True)


def mask_inverted(x, mask=None):
    if mask is None:
        return x.mean(-2)
    return jnp.mean(x, axis=-2, where=~mask[..., None])


def mask_ignored(x, mask=None):
    return x.mean(-2)


def _scores(x, query):
    return jnp.einsum("...ld,...d->...l", x, query) / x.shape[-1] ** 0.5


def _pooled(weights, x):
    return jnp.einsum("...l,...ld->...d", weights, x)


def minus_infinity(x, query, mask=None):
    scores = _scores(x, query)
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    return _pooled(jax.nn.softmax(scores), x)


def attention_with_the_mask_inverted(query, key, value, mask=None):
    scores = jnp.einsum("...nd,...md->...nm", query, key) / query.shape[-1] ** 0.5
    if mask is not None:
        scores = jnp.where(mask, -jnp.inf, scores)
    return jax.nn.softmax(scores) @ value


def std_with_n_minus_1(x, mask=None):
    if mask is None:
        return x.std(-2, ddof=1)
    return jnp.std(x, axis=-2, where=mask[..., None], ddof=1)


def not_scaled(query, key, value, mask=None):
    scores = jnp.einsum("...nd,...md->...nm", query, key)
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    return jax.nn.softmax(scores) @ value


def first_at_0(x, mask=None):
    return x[:, 0]


def last_at_minus_1(x, mask=None):
    return x[:, -1]


def last_by_count(x, mask=None):
    if mask is None:
        return x[:, -1]
    return x[jnp.arange(x.shape[0]), mask.sum(1) - 1]


def padded_scores_of_0(x, query, mask=None):
    scores = _scores(x, query)
    if mask is not None:
        scores = scores * mask
    return _pooled(jax.nn.softmax(scores), x)


def masked_after_the_softmax(x, query, mask=None):
    weights = jax.nn.softmax(_scores(x, query))
    if mask is not None:
        weights = weights * mask
    return _pooled(weights, x)


def minus_1e9(x, query, mask=None):
    scores = _scores(x, query).astype(jnp.float32)
    if mask is not None:
        scores = jnp.where(mask, scores, -1e9)
    return _pooled(jax.nn.softmax(scores).astype(x.dtype), x)


def maximum_filled_with_0(x, mask=None):
    if mask is not None:
        x = x * mask[..., None]
    return x.max(-2)


def maximum_filled_with_minus_1e9(x, mask=None):
    if mask is not None:
        x = jnp.where(mask[..., None], x, -1e9)
    return x.max(-2)


def moments(x, mask=None):
    mask = jnp.ones_like(x[..., :1]) if mask is None else mask[..., None].astype(x.dtype)
    count = jnp.maximum(mask.sum(-2), 1)
    mean = (x * mask).sum(-2) / count
    return jnp.sqrt(jnp.maximum((x**2 * mask).sum(-2) / count - mean**2, 0))


def packed_count(x, segment_ids, num_segments, mask=None):
    if mask is not None:
        x = x * mask[:, None]
    total = jax.ops.segment_sum(x, segment_ids, num_segments)
    count = jax.ops.segment_sum(jnp.ones(len(x), x.dtype), segment_ids, num_segments)
    return total / jnp.maximum(count, 1)[:, None]
