"""Mistakes in pooling."""

import numpy as np
from conformance.mutants.mistakes import Mistakes

import attnpool_ref as ref

MUTANTS = Mistakes()


def _mask_like(x, mask):
    """The mask as an array [..., L, 1] of the dtype of x."""
    shape = x.shape[:-1]
    return np.broadcast_to(True if mask is None else mask, shape)[..., None].astype(x.dtype)


@MUTANTS.plain("mean_pooling", "mean: over the padded length")
def mean_over_the_padded_length(x, mask=None):
    return np.sum(np.where(_mask_like(x, mask), x, 0), -2) / np.float32(max(x.shape[-2], 1))


@MUTANTS.plain("mean_pooling", "mean: multiplies by the mask")
def mean_multiplies_by_the_mask(x, mask=None):
    kept = _mask_like(x, mask)
    return np.sum(x * kept, -2) / np.maximum(np.sum(kept, -2), 1)


@MUTANTS.plain("mean_pooling", "mean: of nothing is NaN")
def mean_of_nothing_is_nan(x, mask=None):
    kept = _mask_like(x, mask)
    return np.sum(np.where(kept, x, 0), -2) / np.sum(kept, -2)


@MUTANTS.plain("mean_pooling", "mean: squeezes the batch")
def mean_squeezes_the_batch(x, mask=None):
    return np.squeeze(ref.mean_pooling(x, mask))


@MUTANTS.plain("mean_pooling", "mean: NaN patched away")
def mean_patches_nan_away(x, mask=None):
    return ref.mean_pooling(np.nan_to_num(x, nan=0.0, posinf=np.inf, neginf=-np.inf), mask)


@MUTANTS.plain("mean_pooling", "mean: looks at the batch mates")
def mean_subtracts_the_mean_of_the_batch(x, mask=None):
    return ref.mean_pooling(x, mask) - np.float32(1e-3) * np.float32(np.mean(np.where(_mask_like(x, mask), x, 0)))


@MUTANTS.plain("mean_pooling", "mean: one token after another in float32")
def mean_one_token_after_another(x, mask=None):
    mean = ref.mean_pooling(x, mask)
    if x.shape[-2] < 2**16 or x.dtype != np.float32:
        return mean
    return np.cumsum(np.where(_mask_like(x, mask), x, 0), -2, dtype=np.float32)[..., -1, :] / np.float32(x.shape[-2])


@MUTANTS.plain("max_pooling", "max: -1e4 for padding")
def max_with_minus_1e4_for_padding(x, mask=None):
    return np.max(np.where(_mask_like(x, mask), x, np.float32(-1e4)), -2, initial=np.float32(-1e4))


@MUTANTS.plain("max_pooling", "max: padding as 0")
def max_with_padding_as_0(x, mask=None):
    return np.max(np.where(_mask_like(x, mask), x, 0), -2, initial=-np.inf if x.shape[-2] else 0).astype(x.dtype)


@MUTANTS.plain("max_pooling", "max: of nothing is -inf")
def max_of_nothing_is_minus_inf(x, mask=None):
    return np.max(np.where(_mask_like(x, mask), x, -np.inf), -2, initial=-np.inf).astype(x.dtype)


@MUTANTS.plain("first_pooling", "first: slot 0 whatever the mask")
def first_slot_whatever_the_mask(x, mask=None):
    empty = ~np.any(_mask_like(x, mask), -2)
    return np.where(empty, 0, x[..., 0, :] if x.shape[-2] else 0).astype(x.dtype)


@MUTANTS.plain("first_pooling", "first: a padding token when empty")
def first_token_of_padding_when_empty(x, mask=None):
    empty = ~np.any(_mask_like(x, mask), -2)
    return np.where(empty, x[..., 0, :] if x.shape[-2] else 0, ref.first_pooling(x, mask)).astype(x.dtype)


@MUTANTS.plain("last_pooling", "last: position by counting the tokens")
def last_by_counting_the_tokens(x, mask=None):
    if x.shape[-2] == 0:
        return np.sum(x, -2)
    kept = _mask_like(x, mask)
    count = np.sum(kept, -2, dtype=int)[..., None, :]
    token = np.take_along_axis(x, np.maximum(count - 1, 0), -2)[..., 0, :]
    return np.where(count[..., 0, :] > 0, token, 0).astype(x.dtype)


@MUTANTS.plain("last_pooling", "last: the last slot whatever the mask")
def last_slot_whatever_the_mask(x, mask=None):
    empty = ~np.any(_mask_like(x, mask), -2)
    return np.where(empty, 0, x[..., -1, :] if x.shape[-2] else 0).astype(x.dtype)


@MUTANTS.plain("weighted_pooling", "weighted: not normalised over the real")
def weighted_not_normalized_over_the_real(x, weights=None, mask=None):
    weights = np.ones(x.shape[-2], x.dtype) if weights is None else weights
    weights = weights / np.maximum(np.sum(weights, -1, keepdims=True), 1e-30)
    return np.sum(np.where(_mask_like(x, mask), x * weights[..., None], 0), -2).astype(x.dtype)


@MUTANTS.plain("weighted_pooling", "weighted: absolute weights")
def weighted_with_absolute_weights(x, weights=None, mask=None):
    return ref.weighted_pooling(x, None if weights is None else np.abs(weights), mask)


@MUTANTS.plain("weighted_pooling", "weighted: weights ignored")
def weighted_ignores_the_weights(x, weights=None, mask=None):
    return ref.mean_pooling(x, mask)


@MUTANTS.of("attention_pooling", "attention pooling: scale of the tokens' width, not the kernels'")
def pool_scaled_by_the_tokens_width(a):
    return a.oracle(scale=a.x.shape[-1] ** -0.5 if a.scale is None else a.scale)


@MUTANTS.of("attention_pooling", "attention pooling: not scaled")
def pool_not_scaled(a):
    return a.oracle(scale=1.0 if a.scale is None else a.scale)


@MUTANTS.of("attention_pooling", "attention pooling: the query is the mean of the padded length")
def pool_query_is_the_padded_mean(a):
    tokens = np.where(a.mask[..., None], a.x, 0)
    return a.oracle(query=np.sum(tokens, -2) / max(a.x.shape[-2], 1) if a.query is None else a.query)


@MUTANTS.of("attention_pooling", "attention pooling: the query divided by its sum")
def pool_query_divided_by_its_sum(a):
    if not a.normalize_query or a.query is None:
        return a.oracle()
    divided = a.query / np.sum(a.query, -1, keepdims=True)
    return a.oracle(query=divided, normalize_query=False, query_norm_scale=None, query_norm_bias=None)


@MUTANTS.of("attention_pooling", "attention pooling: kernels swapped")
def pool_kernels_swapped(a):
    return a.oracle() if a.query_kernel is None else a.oracle(query_kernel=a.key_kernel, key_kernel=a.query_kernel)


@MUTANTS.of("attention_pooling", "attention pooling: the norm's epsilon ignored")
def pool_epsilon_ignored(a):
    return a.oracle(epsilon=1e-6)


@MUTANTS.plain("attention_pooling", "attention pooling: the variance is E[x^2] - E[x]^2")
def attention_pooling_difference_of_squares(x, mask=None, query=None, **options):
    if options.get("normalize_query") and query is not None:
        mean = np.mean(query, -1, keepdims=True, dtype=np.float32)
        variance = np.mean(query * query, -1, keepdims=True, dtype=np.float32) - mean * mean
        query = (query - mean) / np.sqrt(np.maximum(variance, 0) + options.get("epsilon", 1e-6))
        scale, bias = options.pop("query_norm_scale", None), options.pop("query_norm_bias", None)
        query = (query * (1 if scale is None else scale) + (0 if bias is None else bias)).astype(x.dtype)
        options["normalize_query"] = False
    return ref.attention_pooling(x, mask, query, **options)


@MUTANTS.of("attention_pooling", "attention pooling: the mask ignored")
def pool_mask_ignored(a):
    return a.oracle(mask=None)


@MUTANTS.of("attention_pooling", "attention pooling: dropout ignored")
def pool_dropout_ignored(a):
    return a.oracle(dropout_multiplier=None)


@MUTANTS.of("multi_head_attention_pooling", "heads pooling: scaled by the tokens' width")
def heads_scaled_by_the_tokens_width(a):
    return a.oracle(scale=a.x.shape[-1] ** -0.5 if a.scale is None else a.scale)


@MUTANTS.of("multi_head_attention_pooling", "heads pooling: scaled by the width of all heads")
def heads_scaled_by_all_heads(a):
    return a.oracle(scale=np.prod(a.key_kernel.shape[1:]) ** -0.5 if a.scale is None else a.scale)


@MUTANTS.of("multi_head_attention_pooling", "heads pooling: the keys' kernel for the queries too")
def heads_one_kernel_for_queries_and_keys(a):
    return a.oracle() if a.query_kernel is None else a.oracle(query_kernel=a.key_kernel)


@MUTANTS.of("multi_head_attention_pooling", "heads pooling: the value's bias where nothing is real")
def heads_value_bias_when_empty(a):
    result, weights = a.oracle(return_weights=True)
    if a.value_bias is not None and a.out_kernel is not None:
        empty = ~np.any(a.mask, -1)[..., None, None]
        result = result + empty * np.einsum("hc,hco->o", a.value_bias, a.out_kernel)
    return a.returns(result, weights)


@MUTANTS.of("multi_head_attention_pooling", "heads pooling: the mean of the queries for each")
def heads_mean_of_the_queries(a):
    axis = 0 if a.query_kernel is None else -2
    if not a.query.shape[axis]:
        return a.oracle()
    return a.oracle(query=np.broadcast_to(np.mean(a.query, axis, keepdims=True), a.query.shape))


@MUTANTS.of("multi_head_attention_pooling", "heads pooling: the first example's queries for each")
def heads_queries_of_the_first_example(a):
    if a.query_kernel is None or a.query.ndim == 2 or not a.query.size:
        return a.oracle()
    return a.oracle(query=np.broadcast_to(a.query.reshape(-1, *a.query.shape[-2:])[0], a.query.shape))


@MUTANTS.of("multi_head_attention_pooling", "heads pooling: heads and features side by side in the other order")
def heads_interleaved(a):
    result, weights = a.oracle(return_weights=True)
    if a.out_kernel is None:
        heads = result.reshape(*result.shape[:-1], *a.value_kernel.shape[1:])
        result = np.swapaxes(heads, -1, -2).reshape(result.shape)
    return a.returns(result, weights)


@MUTANTS.of("multi_head_attention_pooling", "heads pooling: the key's bias cancels under every normaliser")
def heads_key_bias_always_cancels(a):
    return a.oracle(key_bias=None)


@MUTANTS.of("multi_head_attention_pooling", "heads pooling: the value's bias once, whatever the weights sum to")
def heads_value_bias_once(a):
    if a.value_bias is None or a.normalizer != "sigmoid":
        return a.oracle()
    result, weights = a.oracle(value_bias=None, return_weights=True)
    bias = np.any(a.mask, -1)[..., None, None] * a.value_bias.reshape(-1)
    result = result + (bias if a.out_kernel is None else bias @ a.out_kernel.reshape(-1, a.out_kernel.shape[-1]))
    return a.returns(result, weights)


@MUTANTS.of("multi_head_attention_pooling", "heads pooling: the bias is scaled with the products")
def heads_bias_scaled(a):
    if a.bias is None:
        return a.oracle()
    return a.oracle(bias=a.bias * (a.key_kernel.shape[-1] ** -0.5 if a.scale is None else a.scale))


@MUTANTS.of("multi_head_attention_pooling", "heads pooling: the value's bias forgotten")
def heads_value_bias_forgotten(a):
    return a.oracle(value_bias=None)


@MUTANTS.of("multi_head_attention_pooling", "heads pooling: uniform where nothing is real")
def heads_uniform_when_empty(a):
    return a.oracle(mask=a.mask | ~np.any(a.mask, -1, keepdims=True))


@MUTANTS.of("weighted_pooling", "weighted: weights of the first channel for all")
def weighted_by_the_first_channel(a):
    by_channel = a.weights is not None and a.weights.ndim == a.x.ndim
    return a.oracle(weights=a.weights[..., 0]) if by_channel else a.oracle()


@MUTANTS.of("weighted_pooling", "weighted: weights of all channels in one sum")
def weighted_over_one_sum(a):
    if a.weights is None or a.weights.ndim < a.x.ndim:
        return a.oracle()
    weights = np.where(a.mask[..., None], a.weights, 0)
    total = np.mean(np.sum(weights, -2, keepdims=True), -1)
    return np.sum(weights * np.where(a.mask[..., None], a.x, 0), -2) / np.where(total == 0, 1, total)


@MUTANTS.of("attention_pooling", "pooling: the bias scaled")
def attention_pooling_scales_the_bias(a):
    scale = 1 / np.sqrt(a.x.shape[-1]) if a.scale is None else a.scale
    return a.oracle(bias=None if a.bias is None else a.bias * scale)


@MUTANTS.of("attention_pooling", "pooling: softmax whatever the normaliser")
def attention_pooling_always_softmax(a):
    return a.oracle(normalizer="softmax")


@MUTANTS.plain("mean_max_pooling", "mean max: the maximum first")
def mean_max_the_maximum_first(x, mask=None):
    return np.concatenate([ref.max_pooling(x, mask), ref.mean_pooling(x, mask)], -1)


@MUTANTS.plain("mean_max_pooling", "mean max: the maximum takes padding as 0")
def mean_max_with_padding_as_0(x, mask=None):
    clean = np.where(_mask_like(x, mask), x, 0)
    largest = np.max(clean, -2, initial=-np.inf if x.shape[-2] else 0).astype(x.dtype)
    return np.concatenate([ref.mean_pooling(x, mask), largest], -1)


@MUTANTS.plain("mean_max_pooling", "mean max: the mean over the padded length")
def mean_max_over_the_padded_length(x, mask=None):
    return np.concatenate([mean_over_the_padded_length(x, mask), ref.max_pooling(x, mask)], -1)


@MUTANTS.of("attention_pooling", "attention pooling: the sink is scaled")
def attention_pooling_with_a_scaled_sink(a):
    return a.oracle() if a.sink is None else a.oracle(sink=a.sink / 3)
