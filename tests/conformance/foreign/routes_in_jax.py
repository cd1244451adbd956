"""Right implementations in JAX: scans, loops, eager selections, and what JAX itself offers."""

import functools

import jax
import jax.numpy as jnp
from conformance.foreign.routes import Routes

ROUTES = Routes()


def selected(x, mask):
    """The tokens, with 0 in place of padding."""
    return x if mask is None else jnp.where(mask[..., None], x, 0)


@ROUTES.of("mean_pooling", "where, sum, count")
def mean_by_selection(x, mask=None):
    mask = jnp.ones(x.shape[:-1], bool) if mask is None else mask
    count = jnp.maximum(mask.sum(-1, keepdims=True), 1)
    return (selected(x, mask).astype(jnp.promote_types(x.dtype, jnp.float32)).sum(-2) / count).astype(x.dtype)


@ROUTES.of("mean_pooling", "vmap of a dot product", batched=True)
@jax.jit
def mean_by_vmap(x, mask=None):
    mask = jnp.ones(x.shape[:-1], bool) if mask is None else mask
    return jax.vmap(lambda t, k: jnp.dot(k.astype(t.dtype) / jnp.maximum(k.sum(), 1).astype(t.dtype), t))(
        selected(x, mask), mask
    )


@ROUTES.of("mean_pooling", "jnp.mean with where=", some_real=True)
@jax.jit
def mean_with_where(x, mask=None):
    return jnp.mean(x, -2, where=None if mask is None else mask[..., None])


@ROUTES.of("max_pooling", "a running maximum by lax.scan")
@jax.jit
def max_by_scan(x, mask=None):
    mask = jnp.ones(x.shape[:-1], bool) if mask is None else mask
    tokens = jnp.moveaxis(jnp.where(mask[..., None], x, -jnp.inf), -2, 0)
    first = jnp.full(tokens.shape[1:], -jnp.inf, x.dtype)
    best, _ = jax.lax.scan(lambda best, token: (jnp.maximum(best, token), None), first, tokens)
    return jnp.where(mask.any(-1)[..., None], best, 0)


@ROUTES.of("sum_pooling", "segment_sum of flat tokens", batched=True)
@jax.jit
def sum_by_segments(x, mask=None):
    numbers = jnp.repeat(jnp.arange(x.shape[0]), x.shape[1])
    total = jax.ops.segment_sum(selected(x, mask).reshape(-1, x.shape[-1]), numbers, x.shape[0])
    return total.astype(x.dtype)


@ROUTES.of("masked_softmax", "jax.nn.softmax with where=")
@jax.jit
def softmax_with_where(scores, mask=None):
    if mask is None:
        return jax.nn.softmax(scores)
    some = mask.any(-1, keepdims=True)
    weights = jax.nn.softmax(jnp.where(mask, scores, 0), where=mask | ~some)
    return jnp.where(mask, weights, 0)


@ROUTES.of("masked_log_softmax", "jax.nn.log_softmax")
@jax.jit
def log_softmax(scores, mask=None):
    if mask is None:
        return jax.nn.log_softmax(scores)
    logarithms = jax.nn.log_softmax(jnp.where(mask, scores, -jnp.inf))
    return jnp.where(mask.any(-1, keepdims=True), logarithms, -jnp.inf)


@ROUTES.of("logsumexp_pooling", "jax.nn.logsumexp")
@functools.partial(jax.jit, static_argnames="mean")
def logsumexp(x, mask=None, scale=1.0, *, mean=True):
    wide = jnp.promote_types(x.dtype, jnp.float32)
    mask, scale = jnp.ones(x.shape[:-1], bool) if mask is None else mask, jnp.asarray(scale, wide)
    scale = jnp.broadcast_to(scale, x.shape[-1:]).reshape((1,) * (x.ndim - 2) + x.shape[-1:])
    some = mask.any(-1)[..., None]
    safe = jnp.where(some[..., None], mask[..., None], True)
    pooled = jax.nn.logsumexp(selected(x, mask).astype(wide) * scale[..., None, :], -2, where=safe)
    pooled = pooled - jnp.log(jnp.maximum(mask.sum(-1), 1).astype(wide))[..., None] if mean else pooled
    return jnp.where(some, pooled / scale, 0).astype(x.dtype)


@ROUTES.of("scaled_dot_score", "a static scale")
@functools.partial(jax.jit, static_argnames="scale")
def scaled_statically(query, key, *, scale=None):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    return jnp.einsum("...nd,...md->...nm", query, key) * jnp.asarray(scale, query.dtype)


@ROUTES.of("dot_product_attention", "a scan over keys", same_batch=True)
@jax.jit
def attention_by_scan(query, key, value, mask=None):
    mask = jnp.ones((*query.shape[:-1], key.shape[-2]), bool) if mask is None else mask
    query = selected(query, mask.any(-1)) / jnp.sqrt(jnp.asarray(query.shape[-1], query.dtype))
    key, value = selected(key, mask.any(-2)), selected(value, mask.any(-2))

    def step(carry, one):
        top, total, pooled = carry
        k, v, keep = one
        score = jnp.where(keep, jnp.einsum("...nd,...d->...n", query, k), -jnp.inf)
        new = jnp.maximum(top, score)
        base = jnp.where(new == -jnp.inf, 0, new)
        old, own = jnp.exp(top - base), jnp.exp(score - base)
        return (new, total * old + own, pooled * old[..., None] + own[..., None] * v[..., None, :]), None

    top = jnp.full(query.shape[:-1], -jnp.inf, query.dtype)
    start = top, jnp.zeros_like(top), jnp.zeros((*top.shape, value.shape[-1]), query.dtype)
    tokens = jnp.moveaxis(key, -2, 0), jnp.moveaxis(value, -2, 0), jnp.moveaxis(mask, -1, 0)
    (_, total, pooled), _ = jax.lax.scan(step, start, tokens)
    return pooled / jnp.where(total == 0, 1, total)[..., None]


@ROUTES.of("dot_product_attention", "jax.nn.dot_product_attention", ("float32", "bfloat16"), batched=True)
@jax.jit
def attention_of_jax(query, key, value, mask=None):
    mask = jnp.ones((*query.shape[:-1], key.shape[-2]), bool) if mask is None else mask
    some = mask.any(-1)
    q, k = selected(query, some)[:, :, None], selected(key, mask.any(-2))[:, :, None]
    pad = max(0, value.shape[-1] - key.shape[-1]), max(0, key.shape[-1] - value.shape[-1])
    q, k = (jnp.pad(a, ((0, 0), (0, 0), (0, 0), (0, pad[0]))) for a in (q, k))
    v = jnp.pad(selected(value, mask.any(-2))[:, :, None], ((0, 0), (0, 0), (0, 0), (0, pad[1])))
    found = jax.nn.dot_product_attention(q, k, v, mask=mask[:, None], scale=query.shape[-1] ** -0.5)
    return selected(found[:, :, 0, : value.shape[-1]], some)


@ROUTES.of("attention_pooling", "the kernels folded into the query")
@jax.jit
def attention_folded(x, query, query_kernel, key_kernel, mask=None):
    mask = jnp.ones(x.shape[:-1], bool) if mask is None else mask
    kept, folded = selected(x, mask), key_kernel @ (query @ query_kernel)[..., None] / query_kernel.shape[-1] ** 0.5
    scores = jnp.where(mask, (kept @ folded)[..., 0], -jnp.inf)
    top = scores.max(-1, keepdims=True, initial=-jnp.inf)
    powers = jnp.exp(scores - jax.lax.stop_gradient(jnp.where(top == -jnp.inf, 0, top)))
    total = powers.sum(-1, keepdims=True)
    return jnp.einsum("...l,...ld->...d", powers / jnp.where(total == 0, 1, total), kept)
