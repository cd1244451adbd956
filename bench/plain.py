"""Usual formulas with whole score matrices, in JAX.

Padding is masked correctly, so the results equal those of attnpool. Values at padding must be finite.
"""

import jax
import jax.numpy as jnp


def softmax(scores, mask, axis=-1):
    """Computes the softmax over the real positions."""
    return jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), axis=axis)


def attention_pooling(floats, fixed):
    """Pools by scores of a key for every token."""
    x, query = floats["x"], floats["query"]
    weights = softmax((x @ floats["key_kernel"]) @ query / len(query) ** 0.5, fixed["mask"])
    return [jnp.einsum("bl,bld->bd", weights, x)]


def gated_attention_pooling(floats, fixed):
    """Pools by scores from both hidden layers of every token."""
    x = floats["x"]
    hidden, gate = (x @ floats[f"{part}kernel"] + floats[f"{part}bias"].reshape(1, 1, -1) for part in ("", "gate_"))
    weights = jax.nn.softmax((jnp.tanh(hidden) * jax.nn.sigmoid(gate)) @ floats["out_kernel"], axis=-1)
    return [jnp.einsum("bl,bld->bd", weights, x)]


def segment_attention_pooling(floats, fixed, num_segments, indices_are_sorted):
    """Pools packed tokens by sums and maxima of segments."""
    x, query, ids = floats["x"], floats["query"], fixed["segment_ids"]
    reduce = {"num_segments": num_segments, "indices_are_sorted": indices_are_sorted}
    scores = x @ query / len(query) ** 0.5
    heights = jnp.exp(scores - jax.ops.segment_max(scores, ids, **reduce)[ids])
    weights = heights / jax.ops.segment_sum(heights, ids, **reduce)[ids]
    return [jax.ops.segment_sum(weights[:, None] * x, ids, **reduce)]


def cross_attention_pooling(floats, fixed, reduction="sum"):
    """Pools two sequences by the score matrix."""
    x, y, x_mask, y_mask = floats["x"], floats["y"], fixed["x_mask"], fixed["y_mask"]
    scores, pairs = jnp.einsum("bld,btd->blt", x, y), x_mask[:, :, None] & y_mask[:, None]
    if reduction == "max":
        # A padded token sees no other token. Its scores are not used, and -inf would make their gradient NaN.
        lowest = jnp.finfo(scores.dtype).min
        totals = [jnp.where(pairs, scores, lowest).max(axis) for axis in (2, 1)]
    else:
        totals = [jnp.where(pairs, scores, 0).sum(axis) for axis in (2, 1)]
    sides = zip((x, y), totals, (x_mask, y_mask), strict=True)
    return [jnp.einsum("bl,bld->bd", softmax(total, mask), tokens) for tokens, total, mask in sides]


def maxsim_score_all_pairs(floats, fixed):
    """Computes MaxSim one document after another, because all products at once would not fit into memory."""
    x, x_mask = floats["x"], fixed["x_mask"]

    def of_document(document):
        y, real = document
        best = jnp.where(real.reshape(1, 1, -1), jnp.einsum("bld,td->blt", x, y), -jnp.inf).max(-1)
        return jnp.where(x_mask, best, 0).sum(-1)

    return [jax.lax.map(of_document, (floats["y"], fixed["y_mask"])).T]


def code_wise_attention(floats, fixed):
    """Pools by the score matrix and its maximum over the labels."""
    query, context = floats["query"], floats["context"]
    scores = jnp.einsum("bnd,bkd->bnk", context, query)
    best = jnp.where(fixed["query_mask"][:, None], scores, -jnp.inf).max(-1)
    return [jnp.einsum("bn,bnd->bd", softmax(best, fixed["context_mask"]), context)]


def mask_attention(floats, fixed):
    """Attends by the softmax of the score matrix."""
    query, context = floats["query"], floats["context"]
    weights = softmax(jnp.einsum("bnd,bkd->bnk", context, query), fixed["query_mask"][:, None])
    return [jnp.where(fixed["context_mask"][..., None], jnp.einsum("bnk,bkd->bnd", weights, query), 0)]


def bidaf_attention(floats, fixed):
    """Attends by the score matrix in both directions."""
    context, query, kernel = floats["context"], floats["query"], floats["kernel"]
    of_context, of_query, of_both = kernel.reshape(3, -1)
    scores = (context @ of_context)[:, :, None] + (query @ of_query)[:, None]
    scores = scores + jnp.einsum("bnd,bkd->bnk", context * of_both.reshape(1, 1, -1), query)
    seen = jnp.where(fixed["query_mask"][:, None], scores, -jnp.inf)
    to_query = jnp.einsum("bnk,bkd->bnd", jax.nn.softmax(seen, axis=-1), query)
    to_context = jnp.einsum("bn,bnd->bd", softmax(seen.max(-1), fixed["context_mask"]), context)[:, None]
    parts = [context, to_query, context * to_query, context * to_context]
    return [jnp.where(fixed["context_mask"][..., None], jnp.concatenate(parts, -1), 0)]


def additive_attention(floats, fixed):
    """Attends by a hidden vector for each pair."""
    query = (floats["query"] @ floats["query_kernel"])[:, :, None]
    key = (floats["key"] @ floats["key_kernel"])[:, None]
    weights = softmax(jnp.tanh(query + key) @ floats["out_kernel"], fixed["mask"])
    return [weights @ floats["value"]]
