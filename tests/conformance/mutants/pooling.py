"""Mistakes in pooling."""

import numpy as np
from conformance.mutants.mistakes import Mistakes, in_reverse, left_out, over_the_padded_length

import attnpool_ref as ref
from attnpool_ref.primitives import first_position, joined, last_position, maximum, mean, zero_if_empty


def _mask_like(x, mask):
    """The mask as an array [..., L, 1] of the dtype of x."""
    shape = x.shape[:-1]
    return np.broadcast_to(True if mask is None else mask, shape)[..., None].astype(x.dtype)


def _kept(x, mask, fill=0):
    """The tokens with a number in place of padding."""
    return np.where(_mask_like(x, mask), x, fill)


def _with_zeros(right, x, mask):
    """A maximum in which padding is 0."""
    return np.max(np.where(mask[..., None], x, 0), -2, initial=-np.inf if x.shape[-2] else 0)


MUTANTS = Mistakes(
    mean_pooling={
        "mean: multiplies by the mask": lambda x, mask=None: (
            np.sum(x * _mask_like(x, mask), -2) / np.maximum(np.sum(_mask_like(x, mask), -2), 1)
        ),
        "mean: of nothing is NaN": lambda x, mask=None: np.sum(_kept(x, mask), -2) / np.sum(_mask_like(x, mask), -2),
        "mean: squeezes the batch": lambda x, mask=None: np.squeeze(ref.mean_pooling(x, mask)),
        "mean: NaN patched away": lambda x, mask=None: ref.mean_pooling(
            np.nan_to_num(x, nan=0.0, posinf=np.inf, neginf=-np.inf), mask
        ),
        "mean: looks at the batch mates": lambda x, mask=None: (
            ref.mean_pooling(x, mask) - np.float32(1e-3) * np.float32(np.mean(_kept(x, mask)))
        ),
        "mean: over the padded length": lambda a: a.exchanged(mean, over_the_padded_length),
    },
    max_pooling={
        "max: -1e4 for padding": lambda x, mask=None: np.max(
            _kept(x, mask, np.float32(-1e4)), -2, initial=np.float32(-1e4)
        ),
        "max: of nothing is -inf": lambda x, mask=None: np.max(_kept(x, mask, -np.inf), -2, initial=-np.inf).astype(
            x.dtype
        ),
        "max: padding as 0": lambda a: a.exchanged(maximum, _with_zeros),
    },
    first_pooling={
        "first: slot 0 whatever the mask": lambda a: a.exchanged(first_position, lambda right, mask: 0 * right(mask)),
        "first: a padding token when empty": lambda a: a.exchanged(zero_if_empty, left_out),
    },
    last_pooling={
        "last: position by counting the tokens": lambda a: a.exchanged(
            last_position, lambda right, mask: np.maximum(np.sum(mask, -1) - 1, 0)
        ),
        "last: the last slot whatever the mask": lambda a: a.exchanged(
            last_position, lambda right, mask: 0 * right(mask) + mask.shape[-1] - 1
        ),
    },
    weighted_pooling={
        "weighted: absolute weights": lambda x, weights=None, mask=None: ref.weighted_pooling(
            x, None if weights is None else np.abs(weights), mask
        ),
        "weighted: weights ignored": lambda x, weights=None, mask=None: ref.mean_pooling(x, mask),
        "weighted: weights of the first channel for all": lambda a: (
            a.oracle(weights=a.weights[..., 0]) if np.ndim(a.weights) == a.x.ndim else a.oracle()
        ),
    },
    attention_pooling={
        "attention pooling: scale of the tokens' width, not the kernels'": lambda a: a.oracle(
            scale=a.x.shape[-1] ** -0.5 if a.scale is None else a.scale
        ),
        "attention pooling: not scaled": lambda a: a.by_default(scale=1.0),
        "attention pooling: the query is the mean of the padded length": lambda a: a.oracle(
            query=np.sum(a.zeroed, -2) / max(a.x.shape[-2], 1) if a.query is None else a.query
        ),
        "attention pooling: kernels swapped": lambda a: (
            a.oracle() if a.query_kernel is None else a.oracle(query_kernel=a.key_kernel, key_kernel=a.query_kernel)
        ),
        "attention pooling: the norm's epsilon ignored": lambda a: a.oracle(epsilon=1e-6),
        "attention pooling: the mask ignored": lambda a: a.oracle(mask=None),
        "attention pooling: dropout ignored": lambda a: a.oracle(dropout_multiplier=None),
        "pooling: the bias scaled": lambda a: a.multiplied(
            bias=1 / np.sqrt(a.x.shape[-1]) if a.scale is None else a.scale
        ),
        "pooling: softmax whatever the normaliser": lambda a: a.oracle(normalizer="softmax"),
        "attention pooling: the sink is scaled": lambda a: a.multiplied(sink=1 / 3),
    },
    multi_head_attention_pooling={
        "heads pooling: scaled by the tokens' width": lambda a: a.oracle(
            scale=a.x.shape[-1] ** -0.5 if a.scale is None else a.scale
        ),
        "heads pooling: scaled by the width of all heads": lambda a: a.oracle(
            scale=np.prod(a.key_kernel.shape[1:]) ** -0.5 if a.scale is None else a.scale
        ),
        "heads pooling: the keys' kernel for the queries too": lambda a: (
            a.oracle() if a.query_kernel is None else a.oracle(query_kernel=a.key_kernel)
        ),
        "heads pooling: the key's bias cancels under every normaliser": lambda a: a.oracle(key_bias=None),
        "heads pooling: the bias is scaled with the products": lambda a: a.multiplied(
            bias=a.key_kernel.shape[-1] ** -0.5 if a.scale is None else a.scale
        ),
        "heads pooling: the value's bias forgotten": lambda a: a.oracle(value_bias=None),
        "heads pooling: uniform where nothing is real": lambda a: a.oracle(mask=a.mask | a.empty),
    },
    mean_max_pooling={
        "mean max: the maximum first": lambda a: a.exchanged(joined, in_reverse),
        "mean max: the maximum takes padding as 0": lambda a: a.exchanged(maximum, _with_zeros),
        "mean max: the mean over the padded length": lambda a: a.exchanged(mean, over_the_padded_length),
    },
)


@MUTANTS.of("mean_pooling", "mean: one token after another in float32")
def mean_one_token_after_another(x, mask=None):
    mean = ref.mean_pooling(x, mask)
    if x.shape[-2] < 2**16 or x.dtype != np.float32:
        return mean
    return np.cumsum(_kept(x, mask), -2, dtype=np.float32)[..., -1, :] / np.float32(x.shape[-2])


@MUTANTS.of("weighted_pooling", "weighted: not normalised over the real")
def weighted_not_normalized_over_the_real(x, weights=None, mask=None):
    weights = np.ones(x.shape[-2], x.dtype) if weights is None else weights
    weights = weights / np.maximum(np.sum(weights, -1, keepdims=True), 1e-30)
    return np.sum(_kept(x * weights[..., None], mask), -2).astype(x.dtype)


@MUTANTS.of("weighted_pooling", "weighted: weights of all channels in one sum")
def weighted_over_one_sum(a):
    if a.weights is None or a.weights.ndim < a.x.ndim:
        return a.oracle()
    weights = np.where(a.mask[..., None], a.weights, 0)
    total = np.mean(np.sum(weights, -2, keepdims=True), -1)
    return np.sum(weights * a.zeroed, -2) / np.where(total == 0, 1, total)


@MUTANTS.of("attention_pooling", "attention pooling: the query divided by its sum")
def pool_query_divided_by_its_sum(a):
    if not a.normalize_query or a.query is None:
        return a.oracle()
    divided = a.query / np.sum(a.query, -1, keepdims=True)
    return a.oracle(query=divided, normalize_query=False, query_norm_scale=None, query_norm_bias=None)


@MUTANTS.of("attention_pooling", "attention pooling: the variance is E[x^2] - E[x]^2")
def attention_pooling_difference_of_squares(x, mask=None, query=None, **options):
    if options.get("normalize_query") and query is not None:
        mean = np.mean(query, -1, keepdims=True, dtype=np.float32)
        variance = np.mean(query * query, -1, keepdims=True, dtype=np.float32) - mean * mean
        query = (query - mean) / np.sqrt(np.maximum(variance, 0) + options.get("epsilon", 1e-6))
        scale, bias = options.pop("query_norm_scale", None), options.pop("query_norm_bias", None)
        query = (query * (1 if scale is None else scale) + (0 if bias is None else bias)).astype(x.dtype)
        options["normalize_query"] = False
    return ref.attention_pooling(x, mask, query, **options)


@MUTANTS.of("multi_head_attention_pooling", "heads pooling: the value's bias where nothing is real")
def heads_value_bias_when_empty(a):
    if a.value_bias is None or a.out_kernel is None:
        return a.oracle()
    bias = a.empty[..., None] * np.einsum("hc,hco->o", a.value_bias, a.out_kernel)
    return a.changed(lambda pooled: pooled + bias)


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
    def interleaved(pooled):
        heads = pooled.reshape(*pooled.shape[:-1], *a.value_kernel.shape[1:])
        return np.swapaxes(heads, -1, -2).reshape(pooled.shape)

    return a.changed(interleaved if a.out_kernel is None else None)


@MUTANTS.of("multi_head_attention_pooling", "heads pooling: the value's bias once, whatever the weights sum to")
def heads_value_bias_once(a):
    if a.value_bias is None or a.normalizer != "sigmoid":
        return a.oracle()
    bias = ~a.empty[..., None] * a.value_bias.reshape(-1)
    bias = bias if a.out_kernel is None else bias @ a.out_kernel.reshape(-1, a.out_kernel.shape[-1])
    return a.changed(lambda pooled: pooled + bias, value_bias=None)
