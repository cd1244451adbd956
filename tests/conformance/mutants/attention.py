"""Mistakes in attention."""

import numpy as np
from conformance.mutants.mistakes import Mistakes, in_reverse, over_queries

import attnpool_ref as ref
from attnpool_ref.normalizers import normalize
from attnpool_ref.primitives import concatenate_heads, joined, mask_of_heads, softmax


def _pooled(a, weights):
    """Values under weights that already know the mask."""
    return weights @ np.where(np.any(a.mask, -2)[..., None], a.value, 0)


def _dropped(a, weights):
    return weights if a.dropout_multiplier is None else weights * np.where(a.mask, a.dropout_multiplier, 0)


def _under(a, weights):
    """The values under other weights, which dropout then multiplies."""
    return a.returns(_pooled(a, _dropped(a, weights)), weights)


def _zero_times_nan(a):
    weights = a.oracle(return_weights=True)[1]
    return a.returns(_dropped(a, weights) @ a.value, weights)


def _seen(a):
    """Queries and keys with 0 where no mask calls them real."""
    return np.where(a.empty, 0, a.query), np.where(np.any(a.mask, -2)[..., None], a.key, 0)


def _first_example(query):
    return query if query.ndim == 2 or len(query) == 0 else np.broadcast_to(query[:1], query.shape)


def _per_head(a):
    """The mask with its axis of heads."""
    mask = a.mask[..., None, :, :] if a.mask.ndim == a.query.ndim else a.mask
    return np.broadcast_to(mask, (*mask.shape[:-3], a.query_kernel.shape[1], *mask.shape[-2:]))


def _scaled_heads(a, factor):
    """The oracle with all scores multiplied by a factor."""
    return a.multiplied(query_kernel=factor, query_bias=factor)


def _tiled(right, mask, number):
    if mask.ndim != 3:
        return right(mask, number)
    return np.tile(mask, (number, 1, 1)).reshape(len(mask), number, *mask.shape[1:])


MUTANTS = Mistakes(
    attend={
        "attend: 0 times NaN": _zero_times_nan,
        "attend: returns the weights after dropout": lambda a: a.changed(
            weights=lambda w: w if a.dropout_multiplier is None else w * a.dropout_multiplier
        ),
        "attend: drops before the softmax": lambda a: a.oracle(scores=_dropped(a, a.scores), dropout_multiplier=None),
        "attend: softmax whatever the normaliser": lambda a: a.oracle(normalizer="softmax"),
        "attend: normalises over the queries": lambda a: a.exchanged(softmax, over_queries),
    },
    dot_product_attention={
        "attention: scales the bias": lambda a: a.multiplied(
            bias=a.query.shape[-1] ** -0.5 if a.scale is None else a.scale
        ),
        "attention: the sink is scaled": lambda a: a.multiplied(sink=1 / 3),
    },
    additive_attention={
        # It adds the same to every score of a query
        "additive attention: the bias after the tanh": lambda a: a.oracle(bias=None),
        "additive attention: 0 times NaN": _zero_times_nan,
        "additive attention: divided by sqrt(h)": lambda a: a.multiplied(out_kernel=1 / np.sqrt(a.out_kernel.size)),
        "additive attention: normalises over the queries": lambda a: a.exchanged(softmax, over_queries),
        "additive attention: uniform where a query sees nothing": lambda a: a.exchanged(
            normalize, lambda right, *of: right(*of) + a.empty / max(a.key.shape[-2], 1)
        ),
    },
    tanh_sum_attention={
        "tanh sum attention: the bias after the tanh": lambda a: a.oracle(bias=None),
        "tanh sum attention: [key; query]": lambda a: a.exchanged(joined, in_reverse),
        "tanh sum attention: one score for all keys of a query": lambda a: a.exchanged(
            normalize, lambda right, scores, *of: right(0 * scores + np.sum(scores, -1, keepdims=True), *of)
        ),
        "tanh sum attention: the mean over the hidden layer": lambda a: a.exchanged(
            normalize, lambda right, scores, *of: right(scores / a.kernel.shape[-1], *of)
        ),
    },
    location_attention={
        "location attention: the first example for all": lambda a: a.oracle(query=_first_example(a.query)),
        "location attention: padded slots take part": lambda a: a.oracle(
            mask=None, value=np.where(a.mask[..., None], a.value, 0)
        ),
        "location attention: 0 where no slot is real": lambda a: a.changed(
            lambda pooled: np.where(a.empty[..., None], 0, pooled)
        ),
        "location attention: a tanh at the end": lambda a: a.changed(np.tanh),
    },
    multi_head_attention={
        "heads: scaled by the width of all heads": lambda a: _scaled_heads(a, a.query_kernel.shape[1] ** -0.5),
        "heads: scaled by the width of the queries": lambda a: _scaled_heads(
            a, (a.query_kernel.shape[2] / a.query.shape[-1]) ** 0.5
        ),
        "heads: 0, not the bias, where a query sees nothing": lambda a: a.changed(
            lambda pooled: np.where(np.any(_per_head(a), (-3, -1))[..., None], pooled, 0)
        ),
        "heads: the output's bias once a head": lambda a: a.multiplied(out_bias=a.out_kernel.shape[0]),
        "heads: the first head's mask for all": lambda a: a.oracle(mask=_per_head(a)[..., 0, :, :]),
        "heads: merged without moving their axis back": lambda a: a.exchanged(
            concatenate_heads, lambda right, heads: heads.reshape(*heads.shape[:-3], heads.shape[-2], -1)
        ),
        "heads: masks tiled over batch and heads, not repeated": lambda a: a.exchanged(mask_of_heads, _tiled),
        "multi-head attention: the sink is scaled": lambda a: a.multiplied(sink=1 / 3),
    },
    kernel_regression={
        "regression: boxcar without its edge": lambda a: a.oracle(
            bandwidth=np.nextafter(a.bandwidth, 0) if a.kernel == "boxcar" else a.bandwidth
        ),
        "regression: the triangular kernel called Epanechnikov": lambda a: a.oracle(
            kernel="triangular" if a.kernel == "epanechnikov" else a.kernel
        ),
        "regression: Epanechnikov's kernel called triangular": lambda a: a.oracle(
            kernel="epanechnikov" if a.kernel == "triangular" else a.kernel
        ),
        "regression: the bandwidth of the Gaussian kernel alone": lambda a: a.oracle(
            bandwidth=a.bandwidth if a.kernel == "gaussian" else 1.0
        ),
        "regression: columns are queries": lambda a: a.exchanged(softmax, over_queries),
    },
)


@MUTANTS.of("attend", "attend: divides by the sum again after dropout")
def attend_normalizes_again_after_dropout(a):
    weights = a.oracle(return_weights=True)[1]
    applied = _dropped(a, weights)
    total = np.sum(applied, -1, keepdims=True)
    return a.returns(_pooled(a, applied / np.where(total == 0, 1, total)), weights)


@MUTANTS.of("dot_product_attention", "attention: -1e9 for padding")
def attention_masks_with_minus_1e9(
    query, key, value, mask=None, *, bias=None, scale=None, dropout_multiplier=None, return_weights=False
):
    scores = ref.scaled_dot_score(query, key, scale=scale)
    scores = scores if bias is None else scores + bias
    real = np.broadcast_to(True if mask is None else mask, scores.shape)
    scores = np.where(real, scores, -1e9).astype(query.dtype)
    return ref.attend(scores, value, dropout_multiplier=dropout_multiplier, return_weights=return_weights)


@MUTANTS.of("dot_product_attention", "attention: asking for the weights changes the result")
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


@MUTANTS.of("location_attention", "location attention: [context; query]")
def location_attention_context_first(a):
    weights = a.oracle(return_weights=True)[1]
    context = weights @ np.where(a.mask[..., None], a.value, 0)
    return a.returns(np.concatenate([context, a.query], -1) @ a.out_kernel + a.out_bias, weights)


@MUTANTS.of("location_attention", "location attention: [state; query]")
def location_attention_state_first(a):
    state = np.where(a.empty[..., None], 0, a.state)
    scores = np.concatenate([state, a.query], -1) @ a.kernel + a.bias
    context, weights = ref.attend(scores, a.value, a.mask[..., None, :], return_weights=True)
    return a.returns(np.concatenate([a.query, context], -1) @ a.out_kernel + a.out_bias, weights)


@MUTANTS.of("location_attention", "location attention: weights without the batch axis")
def location_attention_weights_without_the_batch_axis(a):
    if not a.return_weights or a.query.ndim == 2 or len(a.query) == 0:
        return a.oracle()
    result, weights = a.oracle()
    return result, weights[0]


@MUTANTS.of("multi_head_attention", "heads: the value's bias where a query sees nothing")
def heads_value_bias_on_empty_rows(a):
    if a.value_bias is None:
        return a.oracle()
    bias = np.einsum("...hn,hc,hco->...no", ~np.any(_per_head(a), -1), a.value_bias, a.out_kernel)
    return a.changed(lambda pooled: pooled + bias)


@MUTANTS.of("multi_head_attention", "heads: kernels read as [d, c, H]")
def heads_kernels_read_the_other_way(a):
    width, heads, size = a.key_kernel.shape
    return a.oracle(key_kernel=np.swapaxes(a.key_kernel.reshape(width, size, heads), 1, 2))


@MUTANTS.of("kernel_regression", "regression: 0 / 0 far from every key")
def regression_underflows(query, key, value, mask=None, *, kernel="gaussian", bandwidth=1.0, return_weights=False):
    options = {"bandwidth": bandwidth}
    if kernel != "gaussian":
        return ref.kernel_regression(query, key, value, mask, kernel=kernel, return_weights=return_weights, **options)
    scores = ref.gaussian_score(query, key, **options)
    mask = np.broadcast_to(True if mask is None else mask, scores.shape)
    heights = np.where(mask, np.exp(scores), 0)
    total = np.sum(heights, -1, keepdims=True)
    weights = heights / np.where(np.any(mask, -1, keepdims=True), total, 1)
    pooled = (weights @ np.where(np.any(mask, -2)[..., None], value, 0)).astype(scores.dtype)
    return (pooled, weights.astype(scores.dtype)) if return_weights else pooled


@MUTANTS.of("kernel_regression", "regression: NaN with no key in range")
def regression_nan_out_of_range(a):
    pooled, weights = a.oracle(return_weights=True)
    out = ~np.any(weights, -1, keepdims=True) & ~a.empty
    return a.returns(np.where(out, np.nan, pooled), np.where(out & a.mask, np.nan, weights))


@MUTANTS.of("kernel_regression", "regression: the constant kernel counts padding")
def regression_constant_counts_padding(a):
    if a.kernel != "constant":
        return a.oracle()
    weights = a.mask / max(a.key.shape[-2], 1)
    return a.returns(_pooled(a, weights), weights)
