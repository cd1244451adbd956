"""Usual formulas of packed tokens in JAX, compiled for comparison: sums and maxima of segments by scatters.

Padding is selected by ``where``, and sums are in float32, as a careful user writes them. Arguments ``segments`` are
num_segments and indices_are_sorted.
"""

import jax
import jax.numpy as jnp

from bench.aot.plain import channel_scores, folded, latent_tokens, plus, product, times, token_scores, unit


def sums(values, ids, mask, segments):
    """Sums the real values [N, ...] of each segment in float32."""
    mask = mask.reshape(mask.shape + (1,) * (values.ndim - 1))
    return jax.ops.segment_sum(jnp.where(mask, values, 0).astype(jnp.float32), ids, **segments)


def maxima(values, ids, mask, segments):
    """Returns the maximum of the real values [N, ...] of each segment; -inf if it has none."""
    mask = mask.reshape(mask.shape + (1,) * (values.ndim - 1))
    return jax.ops.segment_max(jnp.where(mask, values, -jnp.inf), ids, **segments)


def counts(ids, mask, segments):
    """Returns the number of real tokens of each segment [S, 1], or 1."""
    return jnp.maximum(sums(mask, ids, mask, segments), 1)[:, None]


def softmax(scores, ids, mask, segments):
    """Computes the softmax [N, ...] over the real tokens of each segment, in float32."""
    scores = scores.astype(jnp.float32)
    top = jax.lax.stop_gradient(maxima(scores, ids, mask, segments))
    real = mask.reshape(mask.shape + (1,) * (scores.ndim - 1))
    exponentials = jnp.where(real, jnp.exp(jnp.where(real, scores - top[ids], 0)), 0)
    return exponentials / jnp.where(real, sums(exponentials, ids, mask, segments)[ids], 1)


def averages(x, weights, ids, mask, segments):
    """Sums the tokens [N, d] of each segment under weights [N]."""
    return sums(weights[:, None] * x, ids, mask, segments).astype(x.dtype)


def sum_pooling(x, segment_ids, mask, **segments):
    return sums(x, segment_ids, mask, segments).astype(x.dtype)


def mean_pooling(x, segment_ids, mask, **segments):
    return (sums(x, segment_ids, mask, segments) / counts(segment_ids, mask, segments)).astype(x.dtype)


def max_pooling(x, segment_ids, mask, **segments):
    return maxima(x, segment_ids, mask, segments)


def min_pooling(x, segment_ids, mask, **segments):
    return -maxima(-x, segment_ids, mask, segments)


def mean_max_pooling(x, segment_ids, mask, **segments):
    return jnp.concatenate([pool(x, segment_ids, mask, **segments) for pool in (mean_pooling, max_pooling)], -1)


def first_pooling(x, segment_ids, mask, **segments):
    places = jnp.where(mask, jnp.arange(len(x)), len(x) - 1)
    return x[jax.ops.segment_min(places, segment_ids, **segments)]


def last_pooling(x, segment_ids, mask, **segments):
    return x[jax.ops.segment_max(jnp.where(mask, jnp.arange(len(x)), 0), segment_ids, **segments)]


def weighted_pooling(x, segment_ids, weights, mask, **segments):
    weights = weights.astype(jnp.float32)
    total = sums(weights, segment_ids, mask, segments)[:, None]
    return (sums(weights[:, None] * x, segment_ids, mask, segments) / total).astype(x.dtype)


def noisy_or_pooling(x, segment_ids, mask, **segments):
    logs = jnp.log1p(-x.astype(jnp.float32))  # jax.ops.segment_prod has no gradient
    return -jnp.expm1(sums(logs, segment_ids, mask, segments)).astype(x.dtype)


def logsumexp_pooling(x, segment_ids, mask, scale, mean=True, **segments):
    scaled = x.astype(jnp.float32) * scale
    top = jax.lax.stop_gradient(maxima(scaled, segment_ids, mask, segments))
    total = sums(jnp.exp(scaled - top[segment_ids]), segment_ids, mask, segments)
    return ((jnp.log(total / counts(segment_ids, mask, segments)) + top) / scale).astype(x.dtype)


def power_mean_pooling(x, segment_ids, mask, p, epsilon, **segments):
    powers = jnp.maximum(x.astype(jnp.float32), epsilon) ** p
    mean = sums(powers, segment_ids, mask, segments) / counts(segment_ids, mask, segments)
    return (mean ** (1 / p)).astype(x.dtype)


def softmax_pooling(x, segment_ids, mask, scale, **segments):
    weights = softmax(x.astype(jnp.float32) * scale, segment_ids, mask, segments)
    return sums(weights * x, segment_ids, mask, segments).astype(x.dtype)


def moments(x, weights, epsilon, ids, mask, segments, ddof=0):
    """Computes mean and standard deviation of each segment under weights [N] or [N, d], with sum 1."""
    weights, wide = weights if weights.ndim == x.ndim else weights[:, None], x.astype(jnp.float32)
    mean = sums(weights * wide, ids, mask, segments)
    variance = sums(weights * jnp.square(wide - mean[ids]), ids, mask, segments)
    variance = variance / (1 - ddof * sums(jnp.square(weights), ids, mask, segments))
    return jnp.concatenate([mean, jnp.sqrt(jnp.maximum(variance, epsilon))], -1).astype(x.dtype)


def statistics_pooling(x, segment_ids, mask, ddof, epsilon, weights=None, **segments):
    weights = jnp.ones(len(x)) if weights is None else weights.astype(jnp.float32)
    weights = weights / sums(weights, segment_ids, mask, segments)[segment_ids]
    return moments(x, weights, epsilon, segment_ids, mask, segments, ddof)


def std_pooling(x, segment_ids, mask, **options):
    return statistics_pooling(x, segment_ids, mask, **options)[:, x.shape[1] :]


def attentive_statistics_pooling(
    x,
    segment_ids,
    mask,
    kernel,
    out_kernel,
    bias=None,
    out_bias=None,
    norm_scale=None,
    norm_bias=None,
    activation="tanh",
    global_context=False,
    context_ddof=0,
    epsilon=0.0,
    **segments,
):
    scores = channel_scores(x, kernel, out_kernel, bias, out_bias, norm_scale, norm_bias)
    return moments(x, softmax(scores, segment_ids, mask, segments), epsilon, segment_ids, mask, segments)


def attention_pooling(
    x,
    segment_ids,
    mask,
    query=None,
    query_kernel=None,
    key_kernel=None,
    query_norm_scale=None,
    query_norm_bias=None,
    epsilon=1e-5,
    bias=None,
    dropout_multiplier=None,
    normalize_query=False,
    normalizer="softmax",
    **segments,
):
    query = mean_pooling(x, segment_ids, mask, **segments) if query is None else query
    norm = (query_norm_scale, query_norm_bias, epsilon) if normalize_query else None
    query = folded(query, x.shape[-1], query_kernel, key_kernel, norm)
    if query.ndim == 1:
        scores = product("nd,d->n", x, query)
    else:
        scores = jnp.sum(x * query[segment_ids], -1, dtype=jnp.float32)
    weights = times(softmax(plus(scores, bias), segment_ids, mask, segments), dropout_multiplier)
    return averages(x, weights, segment_ids, mask, segments)


def multi_head_attention_pooling(
    x,
    segment_ids,
    mask,
    query,
    out_kernel=None,
    out_bias=None,
    bias=None,
    dropout_multiplier=None,
    normalizer="softmax",
    num_segments=None,
    indices_are_sorted=False,
    **parts,
):
    segments = {"num_segments": num_segments, "indices_are_sorted": indices_are_sorted}

    def projected(name, array):
        kernel = parts.get(f"{name}_kernel")
        heads = array if kernel is None else product("...d,dhc->...hc", array, kernel).astype(x.dtype)
        return plus(heads, parts.get(f"{name}_bias"))

    queries, keys, values = projected("query", query), projected("key", x), projected("value", x)
    bias, multiplier = (None if array is None else jnp.moveaxis(array, -1, 0) for array in (bias, dropout_multiplier))
    scores = plus(product("qhc,nhc->nhq", queries, keys) * keys.shape[-1] ** -0.5, bias)
    weights = times(softmax(scores, segment_ids, mask, segments), multiplier)
    pooled = sums(jnp.swapaxes(weights, 1, 2)[..., None] * values[:, None], segment_ids, mask, segments)
    return plus(product("sqhc,hco->sqo", pooled.astype(x.dtype), out_kernel).astype(x.dtype), out_bias)


def additive_attention_pooling(
    x,
    segment_ids,
    mask,
    kernel,
    out_kernel,
    bias=None,
    gate_kernel=None,
    gate_bias=None,
    out_bias=None,
    value=None,
    dropout_multiplier=None,
    activation="tanh",
    normalizer="softmax",
    **segments,
):
    scores = token_scores(x, kernel, out_kernel, bias, gate_kernel, gate_bias, out_bias)
    weights = softmax(scores, segment_ids, mask, segments)
    return averages(x if value is None else value, times(weights, dropout_multiplier), segment_ids, mask, segments)


def latent_attention_pooling(x, segment_ids, mask, num_segments, indices_are_sorted, **parameters):
    segments = {"num_segments": num_segments, "indices_are_sorted": indices_are_sorted}
    return mean_pooling(latent_tokens(x, **parameters), segment_ids, mask, **segments)


def set2set_pooling(x, segment_ids, mask, input_kernel, recurrent_kernel, bias, num_steps, **segments):
    state = hidden = jnp.zeros((segments["num_segments"], x.shape[-1]), x.dtype)
    read = jnp.concatenate([state, state], -1)
    for _ in range(num_steps):
        i, f, g, o = jnp.split(read @ input_kernel + hidden @ recurrent_kernel + bias, 4, -1)
        state = jax.nn.sigmoid(f) * state + jax.nn.sigmoid(i) * jnp.tanh(g)
        hidden = jax.nn.sigmoid(o) * jnp.tanh(state)
        scores = jnp.sum(x * hidden[segment_ids], -1, dtype=jnp.float32)
        weights = softmax(scores, segment_ids, mask, segments)
        read = jnp.concatenate([hidden, averages(x, weights, segment_ids, mask, segments)], -1)
    return read


def gated_sum_pooling(x, segment_ids, mask, gate_kernel, value_kernel, gate_bias=None, value_bias=None, **segments):
    gate = jax.nn.sigmoid(plus(x @ gate_kernel, gate_bias))
    return sum_pooling(gate * jnp.tanh(plus(x @ value_kernel, value_bias)), segment_ids, mask, **segments)


def vlad_pooling(x, segment_ids, mask, assign_kernel, centers, assign_bias=None, normalize=True, **segments):
    weights = jax.nn.softmax(plus(x @ assign_kernel, assign_bias).astype(jnp.float32), -1)
    total = [  # all products [N, K, d] at once would not fit into memory
        sums(weights[:, k, None] * (x - center), segment_ids, mask, segments) for k, center in enumerate(centers)
    ]
    found = unit(jnp.stack(total, 1))
    return unit(found.reshape(len(found), -1)).reshape(found.shape).astype(x.dtype)


def cross_attention_pooling(
    x,
    x_segment_ids,
    y,
    y_segment_ids,
    x_mask,
    y_mask,
    scale,
    x_kernel=None,
    y_kernel=None,
    x_dropout_multiplier=None,
    y_dropout_multiplier=None,
    reduction="sum",
    **segments,
):
    queries, keys = (side if kernel is None else side @ kernel for side, kernel in ((x, x_kernel), (y, y_kernel)))
    sides = [
        (x, queries, x_segment_ids, x_mask, x_dropout_multiplier),
        (y, keys, y_segment_ids, y_mask, y_dropout_multiplier),
    ]
    totals = [sums(own, ids, mask, segments).astype(x.dtype) for _, own, ids, mask, _ in sides]
    found = []
    for (tokens, own, ids, mask, multiplier), other in zip(sides, reversed(totals), strict=True):
        scores = scale * jnp.sum(own * other[ids], -1, dtype=jnp.float32)
        weights = times(softmax(scores, ids, mask, segments), multiplier)
        found.append(averages(tokens, weights, ids, mask, segments))
    return found
