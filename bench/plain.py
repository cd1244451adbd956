"""Usual formulas of dense tokens in JAX, with which all commands of this folder compare; whole score matrices are written.

Padding is selected by ``where``, and sums are in float32, as a careful user writes them. A formula has the name of its
function, and takes those of its arguments that it needs. :mod:`bench.plain_packed` has the formulas of packed tokens.
"""

import jax
import jax.numpy as jnp


def softmax(scores, mask=None, axis=-1):
    """Computes the softmax over the real positions of an axis."""
    wide = scores.astype(jnp.float32)
    return jax.nn.softmax(wide if mask is None else jnp.where(mask, wide, -jnp.inf), axis).astype(scores.dtype)


def product(spec, *arrays):
    """Computes an einsum that accumulates in float32."""
    return jnp.einsum(spec, *arrays, preferred_element_type=jnp.float32)


def real_tokens(x, mask):
    """Returns the tokens in float32, with 0 at padding."""
    return jnp.where(mask[..., None], x, 0).astype(jnp.float32)


def counted(mask):
    """Returns the number of real tokens [B, 1], or 1."""
    return jnp.maximum(mask.sum(-1), 1)[..., None]


def plus(array, bias):
    """Adds a bias, if there is one."""
    return array if bias is None else array + bias


def times(weights, multiplier):
    """Multiplies weights with those of dropout, if there are any."""
    return weights if multiplier is None else weights * multiplier


def normed(x, scale=None, bias=None, epsilon=1e-6):
    """Normalizes each vector: mean 0, variance 1."""
    wide = x.astype(jnp.float32)
    wide = (wide - wide.mean(-1, keepdims=True)) * jax.lax.rsqrt(wide.var(-1, keepdims=True) + epsilon)
    return plus(wide if scale is None else wide * scale, bias).astype(x.dtype)


def unit(x):
    """Divides each vector by its length."""
    wide = x.astype(jnp.float32)
    squares = jnp.sum(jnp.square(wide), -1, keepdims=True)
    return jnp.where(squares == 0, 0, wide * jax.lax.rsqrt(jnp.where(squares == 0, 1, squares))).astype(x.dtype)


# --------------------------------------------------------------------------------------------------------------
# Masks, normalizers, scores


def lengths_to_mask(lengths, max_length):
    return jnp.arange(max_length) < lengths[..., None]


def spans_to_mask(spans, max_length, span_mask):
    places = jnp.arange(max_length)
    return (spans[..., :1] <= places) & (places <= spans[..., 1:]) & span_mask[..., None]


def token_positions(mask):
    return jnp.where(mask, jnp.cumsum(mask, -1) - 1, -1)


def masked_softmax(scores, mask):
    return softmax(scores, mask)


def masked_log_softmax(scores, mask):
    return jax.nn.log_softmax(jnp.where(mask, scores.astype(jnp.float32), -jnp.inf), -1).astype(scores.dtype)


def sparsemax(scores, mask):
    below = jnp.where(mask, scores.astype(jnp.float32), -jnp.inf)
    below = jnp.maximum(below - below.max(-1, keepdims=True), -1)
    ordered = jnp.sort(below, -1, descending=True)
    threshold = ((jnp.cumsum(ordered, -1) - 1) / jnp.arange(1, scores.shape[-1] + 1)).max(-1, keepdims=True)
    return jnp.where(mask, jnp.maximum(below - threshold, 0), 0).astype(scores.dtype)


def entmax15(scores, mask):
    half = jnp.where(mask, scores.astype(jnp.float32) / 2, -jnp.inf)
    below = jnp.maximum(half - half.max(-1, keepdims=True), -1)
    ordered, size = jnp.sort(below, -1, descending=True), jnp.arange(1, scores.shape[-1] + 1)
    mean, mean_square = jnp.cumsum(ordered, -1) / size, jnp.cumsum(ordered * ordered, -1) / size
    rest = jnp.maximum(1 / size - (mean_square - mean * mean), 0)
    thresholds = mean - jnp.where(rest == 0, 0, jnp.sqrt(jnp.where(rest == 0, 1, rest)))
    last = jnp.sum(thresholds <= ordered, -1, keepdims=True) - 1
    threshold = jnp.take_along_axis(thresholds, last, -1)
    return jnp.where(mask, jnp.maximum(below - threshold, 0) ** 2, 0).astype(scores.dtype)


def entmax(scores, mask, alpha):
    """Finds the threshold by bisection, with as many steps as the authors' library."""
    scaled = jnp.where(mask, scores.astype(jnp.float32) * (alpha - 1), -jnp.inf)
    below = jnp.maximum(scaled - scaled.max(-1, keepdims=True), -1)

    def weights(threshold):
        rest = jnp.maximum(below - threshold, 0)
        return jnp.where(rest == 0, 0, jnp.where(rest == 0, 1, rest) ** (1 / (alpha - 1)))

    def bisect(step, threshold):
        higher = threshold + 0.5 ** (step + 1.0)
        return jnp.where(weights(higher).sum(-1, keepdims=True) >= 1, higher, threshold)

    threshold = jax.lax.fori_loop(0, 50, bisect, jnp.full_like(below[..., :1], -1))
    found = weights(jax.lax.stop_gradient(threshold))
    return jnp.where(mask, found / found.sum(-1, keepdims=True), 0).astype(scores.dtype)


def top_k_softmax(scores, mask, k):
    wide = jnp.where(mask, scores.astype(jnp.float32), -jnp.inf)
    return softmax(wide, wide >= jax.lax.top_k(wide, k)[0][..., -1:]).astype(scores.dtype)


def gumbel_softmax(scores, mask, noise, temperature):
    return softmax((scores + noise) / temperature, mask)


def masked_sigmoid(scores, mask):
    return jnp.where(mask, jax.nn.sigmoid(scores), 0)


def hardmax(scores, mask):
    best = jnp.argmax(jnp.where(mask, scores, -jnp.inf), -1, keepdims=True)
    return jnp.where(mask & (jnp.arange(scores.shape[-1]) == best), 1, 0).astype(scores.dtype)


def l2_normalize(x):
    return unit(x)


def dot_score(query, key):
    return product("...nd,...md->...nm", query, key).astype(query.dtype)


def scaled_dot_score(query, key):
    return (product("...nd,...md->...nm", query, key) * query.shape[-1] ** -0.5).astype(query.dtype)


def bilinear_score(query, key, kernel):
    return dot_score(product("...nd,de->...ne", query, kernel).astype(query.dtype), key)


def cosine_score(query, key):
    return dot_score(unit(query), unit(key))


def additive_score(query, key, query_kernel, key_kernel, out_kernel, bias=None):
    hidden = plus((query @ query_kernel)[..., :, None, :] + (key @ key_kernel)[..., None, :, :], bias)
    return product("...nmh,h->...nm", jnp.tanh(hidden), out_kernel).astype(query.dtype)


def concat_score(query, key, kernel, out_kernel, bias=None):
    return additive_score(query, key, *jnp.split(kernel, [query.shape[-1]]), out_kernel, bias)


def tanh_sum_score(query, key, kernel, bias=None):
    of_query, of_key = jnp.split(kernel, [query.shape[-1]])
    hidden = plus((query @ of_query)[..., :, None, :] + (key @ of_key)[..., None, :, :], bias)
    return jnp.tanh(hidden).sum(-1, dtype=jnp.float32).astype(query.dtype)


def location_score(query, state, kernel, bias=None):
    return plus(product("...nd,dm->...nm", jnp.concatenate([query, state], -1), kernel).astype(query.dtype), bias)


def trilinear_score(query, key, kernel):
    of_query, of_key, of_both = jnp.split(kernel, [query.shape[-1], 2 * query.shape[-1]])
    scores = product("...nd,...md->...nm", query * of_both, key)
    scores = scores + product("...nd,d->...n", query, of_query)[..., :, None]
    return (scores + product("...md,d->...m", key, of_key)[..., None, :]).astype(query.dtype)


def gaussian_score(query, key, bandwidth):
    squares = [jnp.sum(jnp.square(array.astype(jnp.float32)), -1) for array in (query, key)]
    distances = squares[0][..., :, None] + squares[1][..., None, :] - 2 * product("...nd,...md->...nm", query, key)
    return (-distances / (2 * bandwidth**2)).astype(query.dtype)


# --------------------------------------------------------------------------------------------------------------
# Attention of many queries


def attend(scores, value, mask, dropout_multiplier=None):
    weights = times(softmax(scores, mask), dropout_multiplier)
    return product("bnm,bmv->bnv", weights.astype(value.dtype), value).astype(value.dtype)


def dot_product_attention(query, key, value, mask, bias=None, dropout_multiplier=None):
    return attend(
        plus(product("bnd,bmd->bnm", query, key) * query.shape[-1] ** -0.5, bias), value, mask, dropout_multiplier
    )


def additive_attention(
    query, key, value, query_kernel, key_kernel, out_kernel, mask, bias=None, dropout_multiplier=None
):
    scores = additive_score(query, key, query_kernel, key_kernel, out_kernel, bias)
    return attend(scores, value, mask, dropout_multiplier)


def tanh_sum_attention(query, key, value, kernel, mask, bias=None):
    return attend(tanh_sum_score(query, key, kernel, bias), value, mask)


def location_attention(query, state, value, kernel, bias, out_kernel, out_bias, mask):
    context = attend(location_score(query, state, kernel, bias), value, mask[:, None])
    return product("bnd,do->bno", jnp.concatenate([query, context], -1), out_kernel).astype(query.dtype) + out_bias


def multi_head_attention(query, key, value, mask, out_kernel, out_bias=None, dropout_multiplier=None, **parts):
    queries, keys, values = heads_of(query, key, value, parts)
    scores = product("bnhc,bmhc->bhnm", queries, keys) * keys.shape[-1] ** -0.5
    weights = times(softmax(scores, mask[:, None]), dropout_multiplier)
    pooled = product("bhnm,bmhc->bnhc", weights.astype(query.dtype), values)
    return plus(product("bnhc,hco->bno", pooled.astype(query.dtype), out_kernel).astype(query.dtype), out_bias)


def kernel_regression(query, key, value, mask, bandwidth):
    squares = (jnp.sum(jnp.square(array.astype(jnp.float32)), -1) for array in (query, key))
    of_query, of_key = squares
    distances = of_query[:, :, None] + of_key[:, None] - 2 * product("bnd,bmd->bnm", query, key)
    return attend(-distances / (2 * bandwidth**2), value, mask)


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


def label_attention(labels, mask, query_kernel, key_kernel, value_kernel):
    queries, keys, values = (labels @ kernel for kernel in (query_kernel, key_kernel, value_kernel))
    pooled = dot_product_attention(queries, keys, values, mask[:, None])
    return jnp.where(mask[..., None], pooled, 0)


# --------------------------------------------------------------------------------------------------------------
# Pooling


def sum_pooling(x, mask):
    return real_tokens(x, mask).sum(-2).astype(x.dtype)


def mean_pooling(x, mask):
    return (real_tokens(x, mask).sum(-2) / counted(mask)).astype(x.dtype)


def max_pooling(x, mask):
    return jnp.where(mask[..., None], x, -jnp.inf).max(-2)


def min_pooling(x, mask):
    return jnp.where(mask[..., None], x, jnp.inf).min(-2)


def mean_max_pooling(x, mask):
    return jnp.concatenate([mean_pooling(x, mask), max_pooling(x, mask)], -1)


def first_pooling(x, mask):
    return jnp.take_along_axis(x, jnp.argmax(mask, -1)[:, None, None], -2)[:, 0]


def last_pooling(x, mask):
    return jnp.take_along_axis(x, (mask.shape[-1] - 1 - jnp.argmax(mask[:, ::-1], -1))[:, None, None], -2)[:, 0]


def weighted_pooling(x, weights, mask):
    weights = jnp.where(mask, weights, 0).astype(jnp.float32)
    return (product("bl,bld->bd", weights, x) / weights.sum(-1, keepdims=True)).astype(x.dtype)


def quantile_pooling(x, mask, q):
    ordered = jnp.sort(jnp.where(mask[..., None], x, jnp.inf), -2)
    place = (mask.sum(-1) - 1) * q
    low = jnp.floor(place).astype(jnp.int32)
    below, above = (
        jnp.take_along_axis(ordered, index[:, None, None], -2)[:, 0]
        for index in (low, jnp.minimum(low + 1, mask.sum(-1) - 1))
    )
    return (below + (place - low)[:, None] * (above - below)).astype(x.dtype)


def top_k_pooling(x, mask, k):
    best = jax.lax.top_k(jnp.where(mask[..., None], x, -jnp.inf).swapaxes(-1, -2), k)[0]
    real = best > -jnp.inf
    return (jnp.where(real, best, 0).sum(-1, dtype=jnp.float32) / real.sum(-1)).astype(x.dtype)


def noisy_or_pooling(x, mask):
    return (1 - jnp.prod(1 - real_tokens(x, mask), -2)).astype(x.dtype)


def logsumexp_pooling(x, mask, scale):
    exponents = jnp.where(mask[..., None], x.astype(jnp.float32) * scale, -jnp.inf)
    return ((jax.nn.logsumexp(exponents, -2) - jnp.log(counted(mask))) / scale).astype(x.dtype)


def power_mean_pooling(x, mask, p, epsilon):
    powers = real_tokens(jnp.maximum(x.astype(jnp.float32), epsilon) ** p, mask)
    return ((powers.sum(-2) / counted(mask)) ** (1 / p)).astype(x.dtype)


def softmax_pooling(x, mask, scale):
    weights = softmax(x.astype(jnp.float32) * scale, mask[..., None], -2)
    return jnp.sum(weights * x, -2).astype(x.dtype)


def moments(x, weights, epsilon, ddof=0):
    """Computes mean and standard deviation of tokens [B, L, d] under weights [B, L] or [B, L, d], with sum 1."""
    weights = weights if weights.ndim == x.ndim else weights[..., None]
    wide = x.astype(jnp.float32)
    mean = jnp.sum(weights * wide, -2)
    variance = jnp.sum(weights * jnp.square(wide - mean[..., None, :]), -2)
    return mean, jnp.sqrt(jnp.maximum(variance / (1 - ddof * jnp.sum(jnp.square(weights), -2)), epsilon))


def statistics_pooling(x, mask, ddof, epsilon, weights=None):
    weights = jnp.where(mask, 1.0 if weights is None else weights, 0).astype(jnp.float32)
    return jnp.concatenate(moments(x, weights / weights.sum(-1, keepdims=True), epsilon, ddof), -1).astype(x.dtype)


def std_pooling(x, mask, ddof, epsilon, weights=None):
    return statistics_pooling(x, mask, ddof, epsilon, weights)[..., x.shape[-1] :]


def channel_scores(x, parts):
    """Scores each channel of each token by a perceptron, with ReLU and a normalization by constants if there is one."""
    hidden = plus(x @ parts["kernel"], parts.get("bias"))
    if "norm_scale" in parts:
        hidden = plus(jax.nn.relu(hidden) * parts["norm_scale"], parts.get("norm_bias"))
    return plus(jnp.tanh(hidden) @ parts["out_kernel"], parts.get("out_bias"))


def attentive_statistics_pooling(x, mask, epsilon, **parts):
    weights = softmax(channel_scores(x, parts).astype(jnp.float32), mask[..., None], -2)
    return jnp.concatenate(moments(x, weights, epsilon), -1).astype(x.dtype)


def keys_and_query(x, query, parts):
    """Returns the keys of the tokens and the query, whose products are the scores."""
    if parts.get("normalize_query"):
        query = normed(query, parts["query_norm_scale"], parts["query_norm_bias"], parts["epsilon"])
    query = query @ parts["query_kernel"] if "query_kernel" in parts else query
    keys = x @ parts["key_kernel"] if "key_kernel" in parts else x
    return keys, query * keys.shape[-1] ** -0.5


def attention_pooling(x, mask, query=None, bias=None, dropout_multiplier=None, **parts):
    keys, query = keys_and_query(x, mean_pooling(x, mask) if query is None else query, parts)
    scores = product("blc,c->bl" if query.ndim == 1 else "blc,bc->bl", keys, query)
    weights = times(softmax(plus(scores, bias), mask), dropout_multiplier)
    return product("bl,bld->bd", weights.astype(x.dtype), x).astype(x.dtype)


def heads_of(query, key, value, parts):
    """Returns queries, keys and values [..., H, c] by the kernels and biases in ``parts``."""
    arrays = {"query": query, "key": key, "value": value}
    return (
        plus(product("...d,dhc->...hc", array, parts[f"{name}_kernel"]).astype(key.dtype), parts.get(f"{name}_bias"))
        for name, array in arrays.items()
    )


def multi_head_attention_pooling(
    x, mask, query, out_kernel, out_bias=None, bias=None, dropout_multiplier=None, **parts
):
    queries, keys, values = heads_of(query, x, x, parts)
    scores = plus(product("nhc,blhc->bhnl", queries, keys) * keys.shape[-1] ** -0.5, bias)
    weights = times(softmax(scores, mask[:, None, None]), dropout_multiplier).astype(x.dtype)
    pooled = product("bhnl,blhc->bnhc", weights, values).astype(x.dtype)
    return plus(product("bnhc,hco->bno", pooled, out_kernel).astype(x.dtype), out_bias)


def token_scores(x, parts):
    """Scores each token by a tanh layer, which a sigmoid layer gates if there is one."""
    hidden = jnp.tanh(plus(x @ parts["kernel"], parts.get("bias")))
    if "gate_kernel" in parts:
        hidden = hidden * jax.nn.sigmoid(plus(x @ parts["gate_kernel"], parts.get("gate_bias")))
    return plus(hidden @ parts["out_kernel"], parts.get("out_bias"))


def additive_attention_pooling(x, mask=None, value=None, dropout_multiplier=None, **parts):
    weights = times(softmax(token_scores(x, parts), mask), dropout_multiplier)
    return product("bl,bld->bd", weights.astype(x.dtype), x if value is None else value).astype(x.dtype)


def attention_penalty(weights):
    products = product("...nl,...ml->...nm", weights, weights)
    products = products - jnp.eye(weights.shape[-2]) * jnp.any(weights != 0, -1)[..., None]
    return jnp.square(products).sum((-1, -2)).astype(weights.dtype)


def latent_tokens(x, latents, epsilon, **parts):
    """Lets each token [..., L, d] attend to the latents, and applies the MLP."""

    def of(name):
        return parts.get(f"{name}norm_scale"), parts.get(f"{name}norm_bias"), epsilon

    tokens, own = normed(x, *of("")), normed(latents, *of("latent_"))
    queries, keys, values = heads_of(tokens, own, own, parts)
    scores = product("...lhc,rhc->...hlr", queries, keys) * keys.shape[-1] ** -0.5
    attended = product("...hlr,rhc->...lhc", jax.nn.softmax(scores, -1).astype(x.dtype), values).astype(x.dtype)
    attended = product("...hc,hcd->...d", attended, parts["out_kernel"]).astype(x.dtype) + x
    up, gate = jnp.split(plus(normed(attended, *of("mlp_")) @ parts["mlp_kernel"], parts.get("mlp_bias")), 2, -1)
    return attended + plus(
        (jax.nn.gelu(gate, approximate=False) * up) @ parts["mlp_out_kernel"], parts.get("mlp_out_bias")
    )


def latent_attention_pooling(x, mask, **parameters):
    return mean_pooling(latent_tokens(x, **parameters), mask)


def set_steps(attended, count, x, input_kernel, recurrent_kernel, bias, num_steps):
    """Runs the LSTM of set2set for ``count`` sets; ``attended`` pools the tokens by a query [count, d]."""
    state = hidden = jnp.zeros((count, x.shape[-1]), x.dtype)
    read = jnp.concatenate([state, state], -1)
    for _ in range(num_steps):
        i, f, g, o = jnp.split(read @ input_kernel + hidden @ recurrent_kernel + bias, 4, -1)
        state = jax.nn.sigmoid(f) * state + jax.nn.sigmoid(i) * jnp.tanh(g)
        hidden = jax.nn.sigmoid(o) * jnp.tanh(state)
        read = jnp.concatenate([hidden, attended(hidden)], -1)
    return read


def set2set_pooling(x, mask, input_kernel, recurrent_kernel, bias, num_steps):
    def attended(query):
        weights = softmax(product("bld,bd->bl", x, query), mask).astype(x.dtype)
        return product("bl,bld->bd", weights, x).astype(x.dtype)

    return set_steps(attended, len(x), x, input_kernel, recurrent_kernel, bias, num_steps)


def gated_sum_pooling(x, mask, gate_kernel, value_kernel, gate_bias=None, value_bias=None):
    gate = jax.nn.sigmoid(plus(x @ gate_kernel, gate_bias))
    return sum_pooling(gate * jnp.tanh(plus(x @ value_kernel, value_bias)), mask)


def vlad_pooling(x, mask, assign_kernel, centers, assign_bias=None):
    weights = jax.nn.softmax(plus(x @ assign_kernel, assign_bias).astype(jnp.float32), -1)[..., : len(centers)]
    weights = jnp.where(mask[..., None], weights, 0).astype(x.dtype)
    sums = product("blk,bld->bkd", weights, x) - weights.sum(1, dtype=jnp.float32)[..., None] * centers
    return unit(unit(sums).reshape(len(x), -1)).reshape(sums.shape).astype(x.dtype)


# --------------------------------------------------------------------------------------------------------------
# Pairs of sequences, decomposition, relations, layers


def projected(x, y, parts):
    """Returns both sequences by the kernels in ``parts``."""
    return (own @ parts[key] if (key := f"{side}_kernel") in parts else own for side, own in (("x", x), ("y", y)))


def cross_attention_pooling(x, y, x_mask, y_mask, scale, reduction="sum", **parts):
    queries, keys = projected(x, y, parts)
    scores, pairs = scale * product("bld,btd->blt", queries, keys), x_mask[:, :, None] & y_mask[:, None]
    if reduction == "max":
        lowest = jnp.finfo(scores.dtype).min
        totals = [jnp.where(pairs, scores, lowest).max(axis) for axis in (2, 1)]
    else:
        totals = [jnp.where(pairs, scores, 0).sum(axis) for axis in (2, 1)]
    multipliers = (parts.get(f"{side}_dropout_multiplier") for side in "xy")
    sides = zip((x, y), totals, (x_mask, y_mask), multipliers, strict=True)
    return [
        product("bl,bld->bd", times(softmax(own, mask), multiplier).astype(side.dtype), side).astype(side.dtype)
        for side, own, mask, multiplier in sides
    ]


def cross_attention_pooling_all_pairs(x, y, x_mask, y_mask, scale, **parts):
    queries, keys = projected(x, y, parts)
    sums = [real_tokens(side, mask).sum(1).astype(side.dtype) for side, mask in ((queries, x_mask), (keys, y_mask))]
    of_x = softmax(scale * product("bld,cd->bcl", queries, sums[1]), x_mask[:, None])
    of_y = softmax(scale * product("ctd,bd->bct", keys, sums[0]), y_mask[None])
    return [
        product("bcl,bld->bcd", of_x.astype(x.dtype), x).astype(x.dtype),
        product("bct,ctd->bcd", of_y.astype(y.dtype), y).astype(y.dtype),
    ]


def buckets_of(x, planes):
    bits = product("...ld,rbd->...rlb", x, planes) > 0
    return jnp.sum(bits * 2 ** jnp.arange(planes.shape[1])[::-1], -1)


def encoding(blocks, projection):
    blocks = blocks if projection is None else product("...rcd,rdp->...rcp", blocks, projection)
    return blocks.reshape(len(blocks), -1)


def muvera_query_encoding(x, mask, planes, projection=None):
    taken = jax.nn.one_hot(buckets_of(x, planes), 2 ** planes.shape[1], dtype=x.dtype) * mask[:, None, :, None]
    return encoding(product("brlc,bld->brcd", taken, x), projection).astype(x.dtype)


def muvera_document_encoding(x, mask, planes, projection=None):
    buckets, count = buckets_of(x, planes), 2 ** planes.shape[1]
    taken = jax.nn.one_hot(buckets, count) * mask[:, None, :, None]
    apart = jax.lax.population_count(buckets[..., None] ^ jnp.arange(count))
    nearest = jnp.where(mask[:, None, :, None], apart, count).argmin(2)
    blocks, number = product("brlc,bld->brcd", taken, x), taken.sum(2)[..., None]
    filled = jnp.where(number > 0, blocks / jnp.maximum(number, 1), jax.vmap(lambda x, i: x[i])(x, nearest))
    return encoding(filled, projection).astype(x.dtype)


def maxsim_score(x, y, x_mask, y_mask):
    best = jnp.where(y_mask[:, None], product("bld,btd->blt", x, y), -jnp.inf).max(-1)
    return jnp.where(x_mask, best, 0).sum(-1)


def maxsim_score_all_pairs(x, y, x_mask, y_mask):
    best = jnp.where(y_mask[None, :, None], product("bld,ctd->bclt", x, y), -jnp.inf).max(-1)
    return jnp.where(x_mask[:, None], best, 0).sum(-1)


def along(x, reference):
    """Returns the part of x that is parallel to the reference."""
    direction = unit(reference)
    return jnp.sum((x * direction).astype(jnp.float32), -1, keepdims=True).astype(x.dtype) * direction


def orthogonal_decomposition(x, reference):
    return [along(x, reference), x - along(x, reference)]


def linear_decomposition(x, reference):
    similar = jnp.sum((unit(x) * unit(reference)).astype(jnp.float32), -1, keepdims=True).astype(x.dtype) * x
    return [similar, x - similar]


def rigid_decomposition(x, reference, atol):
    equal = jnp.all(jnp.abs(x - reference) <= atol, -1, keepdims=True)
    return [jnp.where(equal, x, 0), jnp.where(equal, 0, x)]


def semantic_match(x, y, x_mask, y_mask):
    cosine = jnp.where(y_mask[:, None], product("bld,btd->blt", unit(x), unit(y)), -jnp.inf)
    matched = jnp.take_along_axis(y, jnp.argmax(cosine, -1)[..., None], 1)
    return jnp.where(x_mask[..., None], matched, 0)


def graph_decomposition(labels, adjacency, num_layers):
    number = jnp.maximum(adjacency.sum(-1, keepdims=True), 1)
    for _ in range(num_layers):
        direction = unit(labels)
        lengths = jnp.where(adjacency, product("kd,jd->kj", labels, direction), 0).astype(labels.dtype)
        labels = (labels - product("kj,jd->kd", lengths, direction) / number).astype(labels.dtype)
    return labels


def attention_triplet_loss(anchor, positive, negative, margin):
    near, far = (jnp.sum(jnp.square(anchor - other), -1, dtype=jnp.float32) for other in (positive, negative))
    return jnp.maximum(0, near + margin - far).astype(anchor.dtype)


def differential_context(attention, supporting, opposing, mask, weight):
    s, plus_, minus = (jnp.where(mask, vector, 0) for vector in (attention, supporting, opposing))
    towards = along(plus_, s) + along(minus, s)
    return jnp.where(mask, s + weight * (towards - (plus_ + minus - towards)), 0).astype(attention.dtype)


def relation_vector(x, y, x_kernel, y_kernel, out_kernel, bias):
    return jax.nn.sigmoid(x @ x_kernel + y @ y_kernel + bias) @ out_kernel


def relation_triplet_loss(x, similar, dissimilar, x_kernel, y_kernel, out_kernel, bias, margin):
    vectors = [relation_vector(x, other, x_kernel, y_kernel, out_kernel, bias) for other in (x, similar, dissimilar)]
    return attention_triplet_loss(*vectors, margin)


def field_attention_pooling(target, fields, kernel, bias, mask):
    targets = jnp.broadcast_to(target[:, None], (*fields.shape[:2], target.shape[-1]))
    joined = jnp.where(mask[..., None], jnp.concatenate([targets, fields], -1), 0)
    weights = softmax(jnp.tanh(jnp.sum(joined * kernel, -1, dtype=jnp.float32) + bias), mask)
    return product("bl,bld->bd", weights.astype(fields.dtype), joined).astype(fields.dtype)


def layer_norm(x, scale, bias, epsilon):
    return normed(x, scale, bias, epsilon)


def residual_feed_forward(
    x, kernel, epsilon, bias=None, out_kernel=None, out_bias=None, norm_scale=None, norm_bias=None
):
    hidden = jax.nn.gelu(plus(normed(x, norm_scale, norm_bias, epsilon) @ kernel, bias), approximate=False)
    return x + plus(hidden @ out_kernel, out_bias)
