"""Mistakes in attention."""

import numpy as np
from conformance.mutants.mistakes import Mistakes

import attnpool_ref as ref

MUTANTS = Mistakes()


def _pooled(a, weights):
    """Values under weights that already know the mask."""
    return weights @ np.where(np.any(a.mask, -2)[..., None], a.value, 0)


def _dropped(a, weights):
    return weights if a.dropout_multiplier is None else weights * np.where(a.mask, a.dropout_multiplier, 0)


def _seen(a):
    """Queries and keys with 0 where no mask calls them real."""
    return np.where(np.any(a.mask, -1)[..., None], a.query, 0), np.where(np.any(a.mask, -2)[..., None], a.key, 0)


def _side_by_side(first, second):
    shape = np.broadcast_shapes(first.shape[:-1], second.shape[:-1])
    return np.concatenate([np.broadcast_to(x, shape + x.shape[-1:]) for x in (first, second)], -1)


@MUTANTS.of("attend", "attend: 0 times NaN")
def attend_zero_times_nan(a):
    weights = a.oracle(return_weights=True)[1]
    return a.returns(_dropped(a, weights) @ a.value, weights)


@MUTANTS.of("attend", "attend: normalises over the queries")
def attend_normalizes_over_the_queries(a):
    weights = ref.masked_softmax(a.scores, a.mask, axis=-2)
    return a.returns(_pooled(a, _dropped(a, weights)), weights)


@MUTANTS.of("attend", "attend: returns the weights after dropout")
def attend_returns_the_weights_after_dropout(a):
    pooled, weights = a.oracle(return_weights=True)
    return a.returns(pooled, weights if a.dropout_multiplier is None else weights * a.dropout_multiplier)


@MUTANTS.of("attend", "attend: drops before the softmax")
def attend_drops_before_the_softmax(a):
    return a.oracle(scores=_dropped(a, a.scores), dropout_multiplier=None)


@MUTANTS.of("attend", "attend: softmax whatever the normaliser")
def attend_always_softmax(a):
    return a.oracle(normalizer="softmax")


@MUTANTS.of("attend", "attend: divides by the sum again after dropout")
def attend_normalizes_again_after_dropout(a):
    weights = a.oracle(return_weights=True)[1]
    applied = _dropped(a, weights)
    total = np.sum(applied, -1, keepdims=True)
    return a.returns(_pooled(a, applied / np.where(total == 0, 1, total)), weights)


@MUTANTS.of("dot_product_attention", "attention: scales the bias")
def attention_scales_the_bias(a):
    scale = a.query.shape[-1] ** -0.5 if a.scale is None else a.scale
    return a.oracle(bias=None if a.bias is None else a.bias * scale)


@MUTANTS.plain("dot_product_attention", "attention: -1e9 for padding")
def attention_masks_with_minus_1e9(
    query, key, value, mask=None, *, bias=None, scale=None, dropout_multiplier=None, return_weights=False
):
    scores = ref.scaled_dot_score(query, key, scale=scale)
    scores = scores if bias is None else scores + bias
    real = np.broadcast_to(True if mask is None else mask, scores.shape)
    return ref.attend(
        np.where(real, scores, -1e9).astype(query.dtype),
        value,
        dropout_multiplier=dropout_multiplier,
        return_weights=return_weights,
    )


@MUTANTS.plain("dot_product_attention", "attention: asking for the weights changes the result")
def attention_asking_for_weights_changes_the_result(
    query, key, value, mask=None, *, bias=None, scale=None, dropout_multiplier=None, return_weights=False
):
    result = ref.dot_product_attention(
        query, key, value, mask, bias=bias, scale=scale, dropout_multiplier=dropout_multiplier, return_weights=True
    )
    return (np.nextafter(result[0], np.float32(9)), result[1]) if return_weights else result[0]


@MUTANTS.of("dot_product_attention", "attention: the bias multiplies")
def attention_bias_as_a_factor(a):
    query, key = _seen(a)
    scores = ref.scaled_dot_score(query, key, scale=a.scale) * (1 if a.bias is None else np.where(a.mask, a.bias, 0))
    return ref.attend(scores, a.value, a.mask, dropout_multiplier=a.dropout_multiplier, return_weights=a.return_weights)


@MUTANTS.of("additive_attention", "additive attention: the bias after the tanh")
def additive_attention_bias_outside_the_tanh(a):
    return a.oracle(bias=None)  # it adds the same to every score of a query


@MUTANTS.of("additive_attention", "additive attention: normalises over the queries")
def additive_attention_over_the_queries(a):
    scores = ref.additive_score(*_seen(a), a.query_kernel, a.key_kernel, a.out_kernel, bias=a.bias)
    weights = ref.masked_softmax(scores, a.mask, axis=-2)
    return a.returns(_pooled(a, _dropped(a, weights)), weights)


@MUTANTS.of("additive_attention", "additive attention: uniform where a query sees nothing")
def additive_attention_uniform_when_empty(a):
    empty = ~np.any(a.mask, -1, keepdims=True)
    weights = a.oracle(return_weights=True)[1] + empty / max(a.key.shape[-2], 1)
    return a.returns(_pooled(a, _dropped(a, weights)), weights)


@MUTANTS.of("additive_attention", "additive attention: 0 times NaN")
def additive_attention_zero_times_nan(a):
    weights = a.oracle(return_weights=True)[1]
    return a.returns(_dropped(a, weights) @ a.value, weights)


@MUTANTS.of("additive_attention", "additive attention: divided by sqrt(h)")
def additive_attention_scaled(a):
    return a.oracle(out_kernel=a.out_kernel / np.sqrt(a.out_kernel.size))


@MUTANTS.of("tanh_sum_attention", "tanh sum attention: [key; query]")
def tanh_sum_attention_key_first(a):
    query, key = _seen(a)
    hidden = _side_by_side(key[..., None, :, :], query[..., :, None, :]) @ a.kernel
    scores = np.sum(np.tanh(hidden + (0 if a.bias is None else a.bias)), -1)
    return ref.attend(scores, a.value, a.mask, return_weights=a.return_weights)


@MUTANTS.of("tanh_sum_attention", "tanh sum attention: one score for all keys of a query")
def tanh_sum_attention_one_score_a_query(a):
    scores = np.sum(ref.tanh_sum_score(*_seen(a), a.kernel, bias=a.bias), -1, keepdims=True)
    return ref.attend(np.broadcast_to(scores, a.mask.shape), a.value, a.mask, return_weights=a.return_weights)


@MUTANTS.of("tanh_sum_attention", "tanh sum attention: the mean over the hidden layer")
def tanh_sum_attention_mean(a):
    scores = ref.tanh_sum_score(*_seen(a), a.kernel, bias=a.bias) / a.kernel.shape[-1]
    return ref.attend(scores, a.value, a.mask, return_weights=a.return_weights)


@MUTANTS.of("tanh_sum_attention", "tanh sum attention: the bias after the tanh")
def tanh_sum_attention_bias_outside_the_tanh(a):
    return a.oracle(bias=None)


@MUTANTS.of("location_attention", "location attention: [context; query]")
def location_attention_context_first(a):
    weights = a.oracle(return_weights=True)[1]
    context = weights @ np.where(a.mask[..., None], a.value, 0)
    return a.returns(np.concatenate([context, a.query], -1) @ a.out_kernel + a.out_bias, weights)


@MUTANTS.of("location_attention", "location attention: [state; query]")
def location_attention_state_first(a):
    state = np.where(np.any(a.mask, -1)[..., None, None], a.state, 0)
    scores = np.concatenate([state, a.query], -1) @ a.kernel + a.bias
    context, weights = ref.attend(scores, a.value, a.mask[..., None, :], return_weights=True)
    return a.returns(np.concatenate([a.query, context], -1) @ a.out_kernel + a.out_bias, weights)


@MUTANTS.of("location_attention", "location attention: the first example for all")
def location_attention_first_example_for_all(a):
    if a.query.ndim == 2 or len(a.query) == 0:
        return a.oracle()
    return a.oracle(query=np.broadcast_to(a.query[:1], a.query.shape))


@MUTANTS.of("location_attention", "location attention: weights without the batch axis")
def location_attention_weights_without_the_batch_axis(a):
    if not a.return_weights or a.query.ndim == 2 or len(a.query) == 0:
        return a.oracle()
    result, weights = a.oracle()
    return result, weights[0]


@MUTANTS.of("location_attention", "location attention: padded slots take part")
def location_attention_padded_slots_take_part(a):
    return a.oracle(mask=None, value=np.where(a.mask[..., None], a.value, 0))


@MUTANTS.of("location_attention", "location attention: 0 where no slot is real")
def location_attention_zero_when_empty(a):
    result, weights = a.oracle(return_weights=True)
    return a.returns(np.where(np.any(a.mask, -1)[..., None, None], result, 0), weights)


@MUTANTS.of("location_attention", "location attention: a tanh at the end")
def location_attention_with_a_tanh(a):
    result, weights = a.oracle(return_weights=True)
    return a.returns(np.tanh(result), weights)


def _per_head(a):
    """The mask with its axis of heads."""
    mask = a.mask[..., None, :, :] if a.mask.ndim == a.query.ndim else a.mask
    return np.broadcast_to(mask, (*mask.shape[:-3], a.query_kernel.shape[1], *mask.shape[-2:]))


def _scaled_heads(a, factor):
    """The oracle with all scores multiplied by a factor."""
    bias = None if a.query_bias is None else a.query_bias * factor
    return a.oracle(query_kernel=a.query_kernel * factor, query_bias=bias)


@MUTANTS.of("multi_head_attention", "heads: scaled by the width of all heads")
def heads_scaled_by_all_heads(a):
    return _scaled_heads(a, a.query_kernel.shape[1] ** -0.5)


@MUTANTS.of("multi_head_attention", "heads: scaled by the width of the queries")
def heads_scaled_by_the_width_of_the_queries(a):
    return _scaled_heads(a, (a.query_kernel.shape[2] / a.query.shape[-1]) ** 0.5)


@MUTANTS.of("multi_head_attention", "heads: the value's bias where a query sees nothing")
def heads_value_bias_on_empty_rows(a):
    result, weights = a.oracle(return_weights=True)
    if a.value_bias is not None:
        empty = ~np.any(_per_head(a), -1)
        result = result + np.einsum("...hn,hc,hco->...no", empty, a.value_bias, a.out_kernel)
    return a.returns(result, weights)


@MUTANTS.of("multi_head_attention", "heads: 0, not the bias, where a query sees nothing")
def heads_zero_on_empty_rows(a):
    result, weights = a.oracle(return_weights=True)
    return a.returns(np.where(np.any(_per_head(a), (-3, -1))[..., None], result, 0), weights)


@MUTANTS.of("multi_head_attention", "heads: masks tiled over batch and heads, not repeated")
def heads_masks_tiled(a):
    if a.query.ndim != 3 or a.mask.ndim != 3:
        return a.oracle()
    heads = a.query_kernel.shape[1]
    tiled = np.tile(a.mask, (heads, 1, 1)).reshape(len(a.mask), heads, *a.mask.shape[1:])
    return a.oracle(mask=tiled)


@MUTANTS.of("multi_head_attention", "heads: merged without moving their axis back")
def heads_merged_in_the_wrong_order(a):
    no_kernel = np.eye(a.out_kernel.shape[0] * a.out_kernel.shape[1]).reshape(*a.out_kernel.shape[:2], -1)
    merged, weights = a.oracle(out_kernel=no_kernel, out_bias=None, return_weights=True)
    heads, width = a.out_kernel.shape[:2]
    apart = np.swapaxes(merged.reshape(*merged.shape[:-1], heads, width), -2, -3)
    result = apart.reshape(merged.shape) @ a.out_kernel.reshape(heads * width, -1)
    return a.returns(result + (0 if a.out_bias is None else a.out_bias), weights)


@MUTANTS.of("multi_head_attention", "heads: kernels read as [d, c, H]")
def heads_kernels_read_the_other_way(a):
    width, heads, size = a.key_kernel.shape
    return a.oracle(key_kernel=np.swapaxes(a.key_kernel.reshape(width, size, heads), 1, 2))


@MUTANTS.of("multi_head_attention", "heads: the output's bias once a head")
def heads_output_bias_once_a_head(a):
    return a.oracle(out_bias=None if a.out_bias is None else a.out_bias * a.out_kernel.shape[0])


@MUTANTS.of("multi_head_attention", "heads: the first head's mask for all")
def heads_share_the_first_mask(a):
    return a.oracle(mask=_per_head(a)[..., 0, :, :])


@MUTANTS.of("kernel_regression", "regression: boxcar without its edge")
def regression_boxcar_without_its_edge(a):
    if a.kernel != "boxcar":
        return a.oracle()
    return a.oracle(bandwidth=np.nextafter(a.bandwidth, 0))


@MUTANTS.of("kernel_regression", "regression: the triangular kernel called Epanechnikov")
def regression_triangular_as_epanechnikov(a):
    return a.oracle(kernel="triangular" if a.kernel == "epanechnikov" else a.kernel)


@MUTANTS.of("kernel_regression", "regression: Epanechnikov's kernel called triangular")
def regression_epanechnikov_as_triangular(a):
    return a.oracle(kernel="epanechnikov" if a.kernel == "triangular" else a.kernel)


@MUTANTS.plain("kernel_regression", "regression: 0 / 0 far from every key")
def regression_underflows(query, key, value, mask=None, *, kernel="gaussian", bandwidth=1.0, return_weights=False):
    if kernel != "gaussian":
        return ref.kernel_regression(
            query, key, value, mask, kernel=kernel, bandwidth=bandwidth, return_weights=return_weights
        )
    scores = ref.gaussian_score(query, key, bandwidth=bandwidth)
    mask = np.broadcast_to(True if mask is None else mask, scores.shape)
    heights = np.where(mask, np.exp(scores), 0)
    total = np.sum(heights, -1, keepdims=True)
    weights = heights / np.where(np.any(mask, -1, keepdims=True), total, 1)
    pooled = (weights @ np.where(np.any(mask, -2)[..., None], value, 0)).astype(scores.dtype)
    return (pooled, weights.astype(scores.dtype)) if return_weights else pooled


@MUTANTS.of("kernel_regression", "regression: NaN with no key in range")
def regression_nan_out_of_range(a):
    pooled, weights = a.oracle(return_weights=True)
    out = ~np.any(weights, -1, keepdims=True) & np.any(a.mask, -1, keepdims=True)
    return a.returns(np.where(out, np.nan, pooled), np.where(out & a.mask, np.nan, weights))


@MUTANTS.of("kernel_regression", "regression: columns are queries")
def regression_normalizes_over_the_queries(a):
    if a.kernel != "gaussian":
        return a.oracle()
    weights = ref.masked_softmax(ref.gaussian_score(*_seen(a), bandwidth=a.bandwidth), a.mask, axis=-2)
    return a.returns(_pooled(a, weights), weights)


@MUTANTS.of("kernel_regression", "regression: the constant kernel counts padding")
def regression_constant_counts_padding(a):
    if a.kernel != "constant":
        return a.oracle()
    weights = a.mask / max(a.key.shape[-2], 1)
    return a.returns(_pooled(a, weights), weights)


@MUTANTS.of("kernel_regression", "regression: the bandwidth of the Gaussian kernel alone")
def regression_bandwidth_of_one_kernel(a):
    return a.oracle(bandwidth=a.bandwidth if a.kernel == "gaussian" else 1.0)


@MUTANTS.of("dot_product_attention", "attention: the sink is scaled")
def dot_product_attention_with_a_scaled_sink(a):
    return a.oracle() if a.sink is None else a.oracle(sink=a.sink / 3)


@MUTANTS.of("multi_head_attention", "multi-head attention: the sink is scaled")
def multi_head_attention_with_a_scaled_sink(a):
    return a.oracle() if a.sink is None else a.oracle(sink=a.sink / 3)
