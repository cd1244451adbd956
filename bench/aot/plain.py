"""Usual formulas in JAX, compiled for comparison; padding is masked, and whole score matrices are written."""

import jax
import jax.numpy as jnp

PLAIN, JAX_NN = "plain JAX", "jax.nn"
WAYS = (PLAIN, JAX_NN)


def softmax(scores, mask):
    """Computes the softmax over the real positions of the last axis."""
    return jax.nn.softmax(jnp.where(mask, scores.astype(jnp.float32), -jnp.inf), axis=-1).astype(scores.dtype)


def product(spec, *arrays):
    """Computes an einsum that accumulates in float32."""
    return jnp.einsum(spec, *arrays, preferred_element_type=jnp.float32)


def mean_pooling(x, mask):
    return jnp.sum(jnp.where(mask[..., None], x, 0), 1, dtype=jnp.float32) / jnp.maximum(mask.sum(1), 1)[:, None]


def max_pooling(x, mask):
    return jnp.where(mask[..., None], x, -jnp.inf).max(1)


def attention_pooling(x, mask, query, **options):
    weights = softmax(product("bld,d->bl", x, query) * len(query) ** -0.5, mask)
    return product("bl,bld->bd", weights.astype(x.dtype), x).astype(x.dtype)


def multi_head_attention_pooling(x, mask, query, out_kernel, out_bias, **parts):
    def projected(name, array):
        return product("...d,dhc->...hc", array, parts[f"{name}_kernel"]).astype(x.dtype) + parts[f"{name}_bias"]

    queries, keys, values = projected("query", query), projected("key", x), projected("value", x)
    scores = product("nhc,blhc->bhnl", queries, keys) * keys.shape[-1] ** -0.5
    weights = softmax(scores, mask[:, None, None]).astype(x.dtype)
    pooled = product("bhnl,blhc->bnhc", weights, values).astype(x.dtype)
    return product("bnhc,hco->bno", pooled, out_kernel).astype(x.dtype) + out_bias


def additive_attention_pooling(x, mask, kernel, bias, gate_kernel, gate_bias, out_kernel, **options):
    hidden = jnp.tanh(x @ kernel + bias) * jax.nn.sigmoid(x @ gate_kernel + gate_bias)
    weights = softmax(hidden @ out_kernel, mask)
    return product("bl,bld->bd", weights, x).astype(x.dtype)


def dot_product_attention(query, key, value, mask):
    weights = softmax(product("bnd,bmd->bnm", query, key) * query.shape[-1] ** -0.5, mask)
    return product("bnm,bmv->bnv", weights.astype(value.dtype), value).astype(value.dtype)


def attend(scores, value, mask, **options):
    return product("bnm,bmv->bnv", softmax(scores, mask), value).astype(value.dtype)


def jax_nn_attention(query, key, value, mask):
    whole = (array[:, :, None] for array in (query, key, value))  # one head
    return jax.nn.dot_product_attention(*whole, mask=mask[:, None])[:, :, 0]


def multi_head_attention(query, key, value, mask, query_kernel, key_kernel, value_kernel, out_kernel, attention=None):
    queries, keys, values = (
        product("bnd,dhc->bnhc", array, kernel).astype(query.dtype)
        for array, kernel in ((query, query_kernel), (key, key_kernel), (value, value_kernel))
    )
    if attention is None:
        scores = product("bnhc,bmhc->bhnm", queries, keys) * keys.shape[-1] ** -0.5
        pooled = product("bhnm,bmhc->bnhc", softmax(scores, mask[:, None]).astype(query.dtype), values)
    else:
        pooled = attention(queries, keys, values, mask=mask[:, None])
    return product("bnhc,hco->bno", pooled.astype(query.dtype), out_kernel).astype(query.dtype)


def jax_nn_multi_head(**arrays):
    return multi_head_attention(**arrays, attention=jax.nn.dot_product_attention)


def kernel_regression(query, key, value, mask, bandwidth, **options):
    squares = (jnp.sum(jnp.square(array.astype(jnp.float32)), -1) for array in (query, key))
    of_query, of_key = squares
    distances = of_query[:, :, None] + of_key[:, None] - 2 * product("bnd,bmd->bnm", query, key)
    weights = softmax(-distances / (2 * bandwidth**2), mask)
    return product("bnm,bmv->bnv", weights.astype(value.dtype), value).astype(value.dtype)


def mask_attention(query, context, query_mask, context_mask, scale):
    weights = softmax(scale * product("bnd,bkd->bnk", context, query), query_mask[:, None])
    pooled = product("bnk,bkd->bnd", weights.astype(query.dtype), query).astype(query.dtype)
    return jnp.where(context_mask[..., None], pooled, 0)


def code_wise_attention(query, context, query_mask, context_mask, scale):
    scores = jnp.where(query_mask[:, None], scale * product("bnd,bkd->bnk", context, query), -jnp.inf)
    weights = softmax(scores.max(-1), context_mask)
    return product("bn,bnd->bd", weights.astype(query.dtype), context).astype(query.dtype)


def bidaf_attention(context, query, kernel, context_mask, query_mask):
    of_context, of_query, of_both = kernel.reshape(3, -1)
    scores = product("btd,bjd->btj", context * of_both, query)
    scores = scores + (context @ of_context)[:, :, None] + (query @ of_query)[:, None]
    seen = jnp.where(query_mask[:, None], scores, -jnp.inf)
    to_query = product("btj,bjd->btd", softmax(scores, query_mask[:, None]).astype(query.dtype), query).astype(
        query.dtype
    )
    weights = softmax(seen.max(-1), context_mask).astype(query.dtype)
    to_context = product("bt,btd->bd", weights, context).astype(query.dtype)[:, None]
    parts = [context, to_query, context * to_query, context * to_context]
    return jnp.where(context_mask[..., None], jnp.concatenate(parts, -1), 0)


def cross_by_maximum(x, y, x_mask, y_mask, scale, **options):
    scores, pairs = scale * product("bld,btd->blt", x, y), x_mask[:, :, None] & y_mask[:, None]
    lowest = jnp.finfo(scores.dtype).min
    best = [jnp.where(pairs, scores, lowest).max(axis) for axis in (2, 1)]
    sides = zip((x, y), best, (x_mask, y_mask), strict=True)
    return [product("bl,bld->bd", softmax(own, mask).astype(side.dtype), side) for side, own, mask in sides]


def maxsim_score(x, y, x_mask, y_mask, **options):
    best = jnp.where(y_mask[:, None], product("bld,btd->blt", x, y), -jnp.inf).max(-1)
    return jnp.where(x_mask, best, 0).sum(-1)


def maxsim_score_all_pairs(x, y, x_mask, y_mask, **options):
    best = jnp.where(y_mask[None, :, None], product("bld,ctd->bclt", x, y), -jnp.inf).max(-1)
    return jnp.where(x_mask[:, None], best, 0).sum(-1)


def vlad_pooling(x, mask, assign_kernel, centers, **options):
    weights = jax.nn.softmax((x @ assign_kernel).astype(jnp.float32), -1)[..., : len(centers)]
    weights = jnp.where(mask[..., None], weights, 0).astype(x.dtype)
    return product("blk,bld->bkd", weights, x) - weights.sum(1)[..., None] * centers


def latent_attention_pooling(
    x, mask, latents, query_kernel, key_kernel, value_kernel, out_kernel, mlp_kernel, mlp_out_kernel, epsilon, **norms
):
    def normed(array, name):
        wide = array.astype(jnp.float32)
        wide = (wide - wide.mean(-1, keepdims=True)) * jax.lax.rsqrt(wide.var(-1, keepdims=True) + epsilon)
        return (wide * norms[f"{name}norm_scale"] + norms[f"{name}norm_bias"]).astype(x.dtype)

    tokens, own = normed(x, ""), normed(latents, "latent_")
    queries, keys, values = (
        product("...d,dhc->...hc", array, kernel).astype(x.dtype)
        for array, kernel in ((tokens, query_kernel), (own, key_kernel), (own, value_kernel))
    )
    weights = jax.nn.softmax(product("blhc,rhc->bhlr", queries, keys) * keys.shape[-1] ** -0.5, -1).astype(x.dtype)
    attended = product("bhlr,rhc->blhc", weights, values).astype(x.dtype)
    attended = product("blhc,hcd->bld", attended, out_kernel).astype(x.dtype) + x
    gate, up = jnp.split(attended @ mlp_kernel, 2, -1)
    hidden = attended + (jax.nn.gelu(gate) * up) @ mlp_out_kernel
    total = jnp.sum(jnp.where(mask[..., None], hidden, 0), 1, dtype=jnp.float32)
    return (total / jnp.maximum(mask.sum(1), 1)[:, None]).astype(x.dtype)


FORMULAS = {
    (PLAIN, function.__name__): function
    for function in (
        mean_pooling,
        max_pooling,
        attention_pooling,
        multi_head_attention_pooling,
        additive_attention_pooling,
        dot_product_attention,
        attend,
        multi_head_attention,
        kernel_regression,
        mask_attention,
        code_wise_attention,
        bidaf_attention,
        maxsim_score,
        maxsim_score_all_pairs,
        vlad_pooling,
        latent_attention_pooling,
    )
} | {
    (PLAIN, "cross_attention_pooling, reduction=max"): cross_by_maximum,
    (JAX_NN, "dot_product_attention"): jax_nn_attention,
    (JAX_NN, "multi_head_attention"): jax_nn_multi_head,
}
"""Formulas, by way and name of the call."""
