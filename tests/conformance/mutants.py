"""Known mistakes, each of which its own row's checks must reject.

Most are found in notebooks and libraries. Each is a NumPy function with the signature of its row, as close to the
right one as the mistake allows. ``MUTANTS[row][mistake]``; the test beside this file fails when one survives.
"""

import numpy as np

import attnpool_ref as ref


def _mask_like(x, mask):
    """The mask as an array [..., L, 1] of the dtype of x."""
    shape = x.shape[:-1]
    return np.broadcast_to(True if mask is None else mask, shape)[..., None].astype(x.dtype)


def _softmax(scores, axis=-1, epsilon=0.0):
    exponentials = np.exp(scores - np.max(scores, axis, keepdims=True, initial=-1e38))
    return exponentials / (np.sum(exponentials, axis, keepdims=True) + np.asarray(epsilon, scores.dtype))


def _full(scores, mask, lengths=None, axis=-1):
    if lengths is not None:
        mask = ref.lengths_to_mask(lengths, scores.shape[axis])
        mask = mask.reshape(mask.shape[:-1] + (1,) * (scores.ndim - mask.ndim) + mask.shape[-1:])
        mask = np.moveaxis(np.broadcast_to(mask, np.moveaxis(scores, axis, -1).shape), -1, axis)
    return np.broadcast_to(True if mask is None else mask, scores.shape)


# masks ----------------------------------------------------------------------------------------------------------


def one_position_too_many(lengths, max_length):
    return np.arange(max_length) <= np.expand_dims(lengths, -1)


def counts_from_the_end(lengths, max_length):
    return np.flip(ref.lengths_to_mask(lengths, max_length), -1)


# normalizers ----------------------------------------------------------------------------------------------------


def softmax_uniform_when_nothing_is_real(scores, mask=None, *, lengths=None, axis=-1):
    real = _full(scores, mask, lengths, axis)
    return _softmax(np.where(real, scores, np.finfo(scores.dtype).min), axis)


def softmax_additive_minus_1e4(scores, mask=None, *, lengths=None, axis=-1):
    real = _full(scores, mask, lengths, axis)
    return np.where(np.any(real, axis, keepdims=True), _softmax(scores + np.where(real, 0, -1e4).astype("f"), axis), 0)


def softmax_fill_of_minus_1e6(scores, mask=None, *, lengths=None, axis=-1):
    real = _full(scores, mask, lengths, axis)
    filled = np.where(real, scores, np.asarray(-1e6, scores.dtype))
    return np.where(np.any(real, axis, keepdims=True), _softmax(filled, axis), 0).astype(scores.dtype)


def softmax_epsilon_in_the_denominator(scores, mask=None, *, lengths=None, axis=-1):
    real = _full(scores, mask, lengths, axis)
    weights = _softmax(np.where(real, scores, -np.inf).astype(scores.dtype), axis, 10e-5)
    return np.where(real, weights, 0)


def softmax_score_zero_is_padding(scores, mask=None, *, lengths=None, axis=-1):
    return ref.masked_softmax(scores, _full(scores, mask, lengths, axis) & (scores > 0), axis=axis)


def softmax_multiplies_the_scores_by_the_mask(scores, mask=None, *, lengths=None, axis=-1):
    return _softmax(scores * _full(scores, mask, lengths, axis).astype(scores.dtype), axis)


def softmax_without_the_maximum(scores, mask=None, *, lengths=None, axis=-1):
    exponentials = np.exp(scores) * _full(scores, mask, lengths, axis)
    total = np.sum(exponentials, axis, keepdims=True)
    return exponentials / np.where(total == 0, 1, total)


def softmax_always_over_the_last_axis(scores, mask=None, *, lengths=None, axis=-1):
    return ref.masked_softmax(scores, _full(scores, mask, lengths, axis))


def softmax_writes_into_the_scores(scores, mask=None, *, lengths=None, axis=-1):
    real = _full(scores, mask, lengths, axis)
    weights = ref.masked_softmax(scores, real, axis=axis)
    scores[~real] = -1e6
    return weights


def normalize_epsilon_under_the_norm(x, *, axis=-1):
    return x / np.sqrt(np.sum(x * x, axis, keepdims=True) + np.float32(1e-12))


def normalize_zero_vector_is_nan(x, *, axis=-1):
    largest = np.max(np.abs(x), axis, keepdims=True, initial=0)
    return (x / largest) / np.sqrt(np.sum((x / largest) ** 2, axis, keepdims=True))


def normalize_squares_overflow(x, *, axis=-1):
    norm = np.sqrt(np.sum(x * x, axis, keepdims=True))
    return x / np.where(norm == 0, 1, norm)


def normalize_by_the_sum(x, *, axis=-1):
    return x / np.sum(x, axis, keepdims=True)


# scores ---------------------------------------------------------------------------------------------------------


def dot_score_transposed(query, key):
    return np.swapaxes(ref.dot_score(query, key), -1, -2)


def dot_score_in_float16(query, key):
    return ref.dot_score(query.astype(np.float16), key.astype(np.float16)).astype(query.dtype)


def scaled_dot_score_by_the_width_itself(query, key, *, scale=None):
    return ref.scaled_dot_score(query, key, scale=1 / query.shape[-1] if scale is None else scale)


def scaled_dot_score_ignores_the_scale(query, key, *, scale=None):
    return ref.scaled_dot_score(query, key)


# attention ------------------------------------------------------------------------------------------------------


def attend_zero_times_nan(
    scores, value, mask=None, *, normalizer="softmax", dropout_multiplier=None, return_weights=False
):
    weights = ref.masked_softmax(scores, mask)
    applied = weights if dropout_multiplier is None else weights * np.where(_full(scores, mask), dropout_multiplier, 0)
    pooled = (applied @ value).astype(scores.dtype)
    return (pooled, weights) if return_weights else pooled


def attend_normalizes_over_the_queries(
    scores, value, mask=None, *, normalizer="softmax", dropout_multiplier=None, return_weights=False
):
    mask = _full(scores, mask)
    weights = ref.masked_softmax(scores, mask, axis=-2)
    applied = weights if dropout_multiplier is None else weights * np.where(mask, dropout_multiplier, 0)
    pooled = (applied @ np.where(mask.any(-2)[..., None], value, 0)).astype(scores.dtype)
    return (pooled, weights) if return_weights else pooled


def attend_returns_the_weights_after_dropout(
    scores, value, mask=None, *, normalizer="softmax", dropout_multiplier=None, return_weights=False
):
    pooled, weights = ref.attend(
        scores, value, mask, normalizer=normalizer, dropout_multiplier=dropout_multiplier, return_weights=True
    )
    if dropout_multiplier is not None:
        weights = weights * np.where(_full(scores, mask), dropout_multiplier, 0).astype(scores.dtype)
    return (pooled, weights) if return_weights else pooled


def attend_drops_before_the_softmax(
    scores, value, mask=None, *, normalizer="softmax", dropout_multiplier=None, return_weights=False
):
    if dropout_multiplier is not None:
        scores = scores * np.where(_full(scores, mask), dropout_multiplier, 0).astype(scores.dtype)
    return ref.attend(scores, value, mask, return_weights=return_weights)


def attention_scales_the_bias(
    query, key, value, mask=None, *, bias=None, scale=None, dropout_multiplier=None, return_weights=False
):
    bias = None if bias is None else bias * (query.shape[-1] ** -0.5 if scale is None else scale)
    return ref.dot_product_attention(
        query,
        key,
        value,
        mask,
        bias=bias,
        scale=scale,
        dropout_multiplier=dropout_multiplier,
        return_weights=return_weights,
    )


def attention_masks_with_minus_1e9(
    query, key, value, mask=None, *, bias=None, scale=None, dropout_multiplier=None, return_weights=False
):
    scores = ref.scaled_dot_score(query, key, scale=scale)
    scores = scores if bias is None else scores + bias
    return ref.attend(
        np.where(_full(scores, mask), scores, -1e9).astype(query.dtype),
        value,
        dropout_multiplier=dropout_multiplier,
        return_weights=return_weights,
    )


def attention_asking_for_weights_changes_the_result(
    query, key, value, mask=None, *, bias=None, scale=None, dropout_multiplier=None, return_weights=False
):
    result = ref.dot_product_attention(
        query, key, value, mask, bias=bias, scale=scale, dropout_multiplier=dropout_multiplier, return_weights=True
    )
    return (np.nextafter(result[0], np.float32(9)), result[1]) if return_weights else result[0]


# pooling --------------------------------------------------------------------------------------------------------


def mean_over_the_padded_length(x, mask=None):
    return np.sum(np.where(_mask_like(x, mask), x, 0), -2) / np.float32(max(x.shape[-2], 1))


def mean_multiplies_by_the_mask(x, mask=None):
    kept = _mask_like(x, mask)
    return np.sum(x * kept, -2) / np.maximum(np.sum(kept, -2), 1)


def mean_of_nothing_is_nan(x, mask=None):
    kept = _mask_like(x, mask)
    return np.sum(np.where(kept, x, 0), -2) / np.sum(kept, -2)


def mean_squeezes_the_batch(x, mask=None):
    return np.squeeze(ref.mean_pooling(x, mask))


def mean_patches_nan_away(x, mask=None):
    return ref.mean_pooling(np.nan_to_num(x, nan=0.0, posinf=np.inf, neginf=-np.inf), mask)


def mean_subtracts_the_mean_of_the_batch(x, mask=None):
    return ref.mean_pooling(x, mask) - np.float32(1e-3) * np.float32(np.mean(np.where(_mask_like(x, mask), x, 0)))


def max_with_minus_1e4_for_padding(x, mask=None):
    return np.max(np.where(_mask_like(x, mask), x, np.float32(-1e4)), -2, initial=np.float32(-1e4))


def max_with_padding_as_0(x, mask=None):
    return np.max(np.where(_mask_like(x, mask), x, 0), -2, initial=-np.inf if x.shape[-2] else 0).astype(x.dtype)


def max_of_nothing_is_minus_inf(x, mask=None):
    return np.max(np.where(_mask_like(x, mask), x, -np.inf), -2, initial=-np.inf).astype(x.dtype)


def first_slot_whatever_the_mask(x, mask=None):
    empty = ~np.any(_mask_like(x, mask), -2)
    return np.where(empty, 0, x[..., 0, :] if x.shape[-2] else 0).astype(x.dtype)


def first_token_of_padding_when_empty(x, mask=None):
    empty = ~np.any(_mask_like(x, mask), -2)
    return np.where(empty, x[..., 0, :] if x.shape[-2] else 0, ref.first_pooling(x, mask)).astype(x.dtype)


def last_by_counting_the_tokens(x, mask=None):
    if x.shape[-2] == 0:
        return np.sum(x, -2)
    kept = _mask_like(x, mask)
    count = np.sum(kept, -2, dtype=int)[..., None, :]
    token = np.take_along_axis(x, np.maximum(count - 1, 0), -2)[..., 0, :]
    return np.where(count[..., 0, :] > 0, token, 0).astype(x.dtype)


def last_slot_whatever_the_mask(x, mask=None):
    empty = ~np.any(_mask_like(x, mask), -2)
    return np.where(empty, 0, x[..., -1, :] if x.shape[-2] else 0).astype(x.dtype)


def weighted_not_normalized_over_the_real(x, weights=None, mask=None):
    weights = np.ones(x.shape[-2], x.dtype) if weights is None else weights
    weights = weights / np.maximum(np.sum(weights, -1, keepdims=True), 1e-30)
    return np.sum(np.where(_mask_like(x, mask), x * weights[..., None], 0), -2).astype(x.dtype)


def weighted_with_absolute_weights(x, weights=None, mask=None):
    return ref.weighted_pooling(x, None if weights is None else np.abs(weights), mask)


def weighted_ignores_the_weights(x, weights=None, mask=None):
    return ref.mean_pooling(x, mask)


def _pool(change):
    """An ``attention_pooling`` whose arguments ``change`` has altered."""

    def mutant(
        x,
        mask=None,
        query=None,
        *,
        query_kernel=None,
        key_kernel=None,
        normalize_query=False,
        query_norm_scale=None,
        query_norm_bias=None,
        epsilon=1e-6,
        scale=None,
        dropout_multiplier=None,
        return_weights=False,
    ):
        arguments = {
            "x": x,
            "mask": mask,
            "query": query,
            "query_kernel": query_kernel,
            "key_kernel": key_kernel,
            "normalize_query": normalize_query,
            "query_norm_scale": query_norm_scale,
            "query_norm_bias": query_norm_bias,
            "epsilon": epsilon,
            "scale": scale,
            "dropout_multiplier": dropout_multiplier,
            "return_weights": return_weights,
        }
        return ref.attention_pooling(**(arguments | change(arguments)))

    return mutant


POOL_MISTAKES = {
    "attention pooling: scale of the tokens' width, not the kernels'": lambda a: {
        "scale": a["x"].shape[-1] ** -0.5 if a["scale"] is None else a["scale"]
    },
    "attention pooling: not scaled": lambda a: {"scale": 1.0 if a["scale"] is None else a["scale"]},
    "attention pooling: the query is the mean of the padded length": lambda a: {
        "query": np.mean(a["x"], -2) if a["query"] is None else a["query"]
    },
    "attention pooling: the query divided by its sum": lambda a: (
        {
            "normalize_query": False,
            "query_norm_scale": None,
            "query_norm_bias": None,
            "query": a["query"] / np.sum(a["query"], -1, keepdims=True),
        }
        if a["normalize_query"] and a["query"] is not None
        else {}
    ),
    "attention pooling: kernels swapped": lambda a: (
        {"query_kernel": a["key_kernel"], "key_kernel": a["query_kernel"]} if a["query_kernel"] is not None else {}
    ),
    "attention pooling: the norm's epsilon ignored": lambda a: {"epsilon": 1e-6},
    "attention pooling: the mask ignored": lambda a: {"mask": None},
    "attention pooling: dropout ignored": lambda a: {"dropout_multiplier": None},
}


# pairs ----------------------------------------------------------------------------------------------------------


def _cross(change):
    """A ``cross_attention_pooling`` whose arguments ``change`` has altered."""

    def mutant(
        x,
        y,
        x_mask=None,
        y_mask=None,
        *,
        x_kernel=None,
        y_kernel=None,
        reduction="sum",
        scale=1.0,
        return_weights=False,
    ):
        arguments = {
            "x": x,
            "y": y,
            "x_mask": x_mask,
            "y_mask": y_mask,
            "x_kernel": x_kernel,
            "y_kernel": y_kernel,
            "reduction": reduction,
            "scale": scale,
            "return_weights": return_weights,
        }
        return ref.cross_attention_pooling(**(arguments | change(arguments)))

    return mutant


def cross_multiplies_by_the_mask(
    x, y, x_mask=None, y_mask=None, *, x_kernel=None, y_kernel=None, reduction="sum", scale=1.0, return_weights=False
):
    kept_x, kept_y = x * _mask_like(x, x_mask), y * _mask_like(y, y_mask)
    return ref.cross_attention_pooling(
        kept_x,
        kept_y,
        x_kernel=x_kernel,
        y_kernel=y_kernel,
        reduction=reduction,
        scale=scale,
        return_weights=return_weights,
    )


def cross_zero_when_the_other_side_is_empty(
    x, y, x_mask=None, y_mask=None, *, x_kernel=None, y_kernel=None, reduction="sum", scale=1.0, return_weights=False
):
    pooled, weights = ref.cross_attention_pooling(
        x,
        y,
        x_mask,
        y_mask,
        x_kernel=x_kernel,
        y_kernel=y_kernel,
        reduction=reduction,
        scale=scale,
        return_weights=True,
    )
    any_x, any_y = np.any(_mask_like(x, x_mask), -2), np.any(_mask_like(y, y_mask), -2)
    pooled = (pooled[0] * any_y).astype(x.dtype), (pooled[1] * any_x).astype(x.dtype)
    return (pooled, weights) if return_weights else pooled


def _both_masks(a):
    same = a["x"].shape[-2] == a["y"].shape[-2]
    return {"x_mask": a["y_mask"], "y_mask": a["x_mask"]} if same else {"x_mask": None}


CROSS_MISTAKES = {
    "cross: masks swapped, or forgotten where they do not fit": _both_masks,
    "cross: the other side's mask forgotten": lambda a: {"y_mask": None},
    "cross: mean over the padded length": lambda a: (
        {"reduction": "sum", "scale": a["scale"] / max(a["y"].shape[-2], 1)} if a["reduction"] == "mean" else {}
    ),
    "cross: maximum of the magnitudes": lambda a: (
        {"x": np.abs(a["x"]), "y": np.abs(a["y"])} if a["reduction"] == "max" else {}
    ),
    "cross: one kernel forgotten": lambda a: (
        {"y_kernel": None}
        if a["y_kernel"] is not None and a["y"].shape[-1] == a["y_kernel"].shape[-1]
        else {"y_kernel": None if a["y_kernel"] is None else np.roll(a["y_kernel"], 1, -1)}
    ),
    "cross: scale ignored": lambda a: {"scale": 1.0},
}


MUTANTS = {
    "lengths_to_mask": {
        "lengths: one position too many": one_position_too_many,
        "lengths: counted from the end": counts_from_the_end,
    },
    "masked_softmax": {
        "softmax: uniform when nothing is real": softmax_uniform_when_nothing_is_real,
        "softmax: -1e4 added to padding": softmax_additive_minus_1e4,
        "softmax: -1e6 for padding": softmax_fill_of_minus_1e6,
        "softmax: an epsilon in the denominator": softmax_epsilon_in_the_denominator,
        "softmax: a score of 0 is padding": softmax_score_zero_is_padding,
        "softmax: scores multiplied by the mask": softmax_multiplies_the_scores_by_the_mask,
        "softmax: the maximum not subtracted": softmax_without_the_maximum,
        "softmax: always over the last axis": softmax_always_over_the_last_axis,
        "softmax: writes into the scores": softmax_writes_into_the_scores,
    },
    "l2_normalize": {
        "normalize: an epsilon under the norm": normalize_epsilon_under_the_norm,
        "normalize: the zero vector is NaN": normalize_zero_vector_is_nan,
        "normalize: squares overflow": normalize_squares_overflow,
        "normalize: divided by the sum": normalize_by_the_sum,
    },
    "dot_score": {
        "dot: transposed": dot_score_transposed,
        "dot: in float16": dot_score_in_float16,
    },
    "scaled_dot_score": {
        "scaled dot: divided by d": scaled_dot_score_by_the_width_itself,
        "scaled dot: scale ignored": scaled_dot_score_ignores_the_scale,
    },
    "attend": {
        "attend: 0 times NaN": attend_zero_times_nan,
        "attend: normalises over the queries": attend_normalizes_over_the_queries,
        "attend: returns the weights after dropout": attend_returns_the_weights_after_dropout,
        "attend: drops before the softmax": attend_drops_before_the_softmax,
    },
    "dot_product_attention": {
        "attention: scales the bias": attention_scales_the_bias,
        "attention: -1e9 for padding": attention_masks_with_minus_1e9,
        "attention: asking for the weights changes the result": attention_asking_for_weights_changes_the_result,
    },
    "mean_pooling": {
        "mean: over the padded length": mean_over_the_padded_length,
        "mean: multiplies by the mask": mean_multiplies_by_the_mask,
        "mean: of nothing is NaN": mean_of_nothing_is_nan,
        "mean: squeezes the batch": mean_squeezes_the_batch,
        "mean: NaN patched away": mean_patches_nan_away,
        "mean: looks at the batch mates": mean_subtracts_the_mean_of_the_batch,
    },
    "max_pooling": {
        "max: -1e4 for padding": max_with_minus_1e4_for_padding,
        "max: padding as 0": max_with_padding_as_0,
        "max: of nothing is -inf": max_of_nothing_is_minus_inf,
    },
    "first_pooling": {
        "first: slot 0 whatever the mask": first_slot_whatever_the_mask,
        "first: a padding token when empty": first_token_of_padding_when_empty,
    },
    "last_pooling": {
        "last: position by counting the tokens": last_by_counting_the_tokens,
        "last: the last slot whatever the mask": last_slot_whatever_the_mask,
    },
    "weighted_pooling": {
        "weighted: not normalised over the real": weighted_not_normalized_over_the_real,
        "weighted: absolute weights": weighted_with_absolute_weights,
        "weighted: weights ignored": weighted_ignores_the_weights,
    },
    "attention_pooling": {mistake: _pool(change) for mistake, change in POOL_MISTAKES.items()},
    "cross_attention_pooling": {
        "cross: multiplies by the mask": cross_multiplies_by_the_mask,
        "cross: 0 when the other side is empty": cross_zero_when_the_other_side_is_empty,
        **{mistake: _cross(change) for mistake, change in CROSS_MISTAKES.items()},
    },
}
