"""Further published mistakes in NumPy: deviations, gated attention as a module, packed tokens, MaxSim, wrong axes."""

import itertools

import numpy as np

from attnpool_ref.conformance.causes import diagnosis, mistakes, of_tokens, of_weights


def _real(x, mask):
    return np.broadcast_to(True if mask is None else np.asarray(mask, bool), x.shape[:-1])


def _softmax(scores, axis=-1):
    weights = np.exp(scores - scores.max(axis, keepdims=True))
    return weights / weights.sum(axis, keepdims=True)


def _variance(x, mask, ddof=0):
    """The variance in two passes, and where tokens are real."""
    real = _real(x, mask)[..., None]
    count = real.sum(-2, keepdims=True)
    clean = np.where(real, x, 0).astype(np.float64)
    mean = clean.sum(-2, keepdims=True) / np.maximum(count, 1)
    squares = np.where(real, (clean - mean) ** 2, 0).sum(-2)
    count = count[..., 0, :]
    return mean[..., 0, :], np.where(count == 0, 0, squares / (count - ddof))


def nan_for_a_single_token(x, mask=None):
    return np.sqrt(_variance(x, mask, 1)[1]).astype(x.dtype)


def variance_plus_epsilon(x, mask=None):
    mean, variance = _variance(x, mask)
    return np.concatenate([mean, np.sqrt(variance + 1e-5)], -1).astype(x.dtype)


def moments_with_a_floor(x, mask=None):
    real = _real(x, mask)[..., None].astype(x.dtype)
    count, clean = np.maximum(real.sum(-2), 1), np.where(real > 0, x, 0)
    mean = clean.sum(-2) / count
    return np.sqrt(np.maximum((clean * clean).sum(-2) / count - mean * mean, 1e-5)).astype(x.dtype)


def moments_under_weights(x, mask=None, *, kernel, out_kernel, floor=0.0, change=np.maximum):
    real = _real(x, mask)[..., None]
    x = np.where(real, x, 0)
    scores = np.tanh(x @ kernel) @ out_kernel
    scores = scores[..., None] if out_kernel.ndim == 1 else scores
    weights = np.where(real.any(-2, keepdims=True), _softmax(np.where(real, scores, np.float32(-1e30)), -2), 0)
    weights = np.where(real, weights, 0).astype(x.dtype)
    mean = (weights * x).sum(-2)
    variance = (weights * x * x).sum(-2) - mean * mean
    return np.concatenate([mean, np.sqrt(change(variance, x.dtype.type(floor)))], -1)


def moments_under_weights_and_an_epsilon(x, mask=None, *, kernel, out_kernel):
    return moments_under_weights(x, mask, kernel=kernel, out_kernel=out_kernel, floor=1e-5, change=np.add)


PARAMETERS = {key: key for key in ("kernel", "bias", "gate_kernel", "gate_bias", "out_kernel")}


class Gated:
    """Gated attention over a bag, in which ``weights_of(scores, real)`` may be wrong."""

    def __init__(self, weights_of, exchanged=False, cleaned=False):
        rng = np.random.default_rng(0)
        shapes = {"kernel": (5, 3), "bias": 3, "gate_kernel": (5, 3), "gate_bias": 3, "out_kernel": 3}
        for key, shape in shapes.items():
            setattr(self, key, rng.standard_normal(shape).astype(np.float32))
        self.weights_of, self.exchanged, self.cleaned = weights_of, exchanged, cleaned

    def __call__(self, x, mask=None):
        hidden, gate = x @ self.kernel + self.bias, x @ self.gate_kernel + self.gate_bias
        if self.exchanged:
            hidden, gate = gate, hidden
        scores = (np.tanh(hidden) / (1 + np.exp(-gate))) @ self.out_kernel
        real = _real(x, mask)
        weights = self.weights_of(scores, real)
        x = np.where(real[..., None], x, 0) if self.cleaned else x
        return (weights[..., None] * x).sum(-2).astype(x.dtype)


gated_masked_after_the_softmax = Gated(lambda scores, real: _softmax(scores) * real)
gated_scores_times_mask = Gated(lambda scores, real: _softmax(scores * real))
gated_over_the_bags = Gated(lambda scores, real: _softmax(np.where(real, scores, -1e30), 0) * real)
gated_exchanged = Gated(
    lambda scores, real: np.where(real, _softmax(np.where(real, scores, np.float32(-1e30))), 0), exchanged=True
)


def _added(scores, real):
    return _softmax(scores + np.where(real, 0, np.float32(-1e30))) * real.any(-1, keepdims=True)


gated_mask_added = Gated(_added)
gated_mask_added_and_tokens_cleaned = Gated(_added, cleaned=True)
gated_product = Gated(lambda scores, real: _added(np.where(real, scores, 0), real))


def softmax_of_all_segments(x, segment_ids, num_segments, query, mask=None):
    query = query if query.ndim == 1 else query[segment_ids]
    scores = (x * query).sum(-1) / np.sqrt(x.shape[-1]).astype(x.dtype)
    weights = _softmax(np.where(_real(x, mask), scores, -np.inf)) if len(x) else scores
    pooled = np.zeros((num_segments, x.shape[-1]), x.dtype)
    np.add.at(pooled, segment_ids, weights[:, None] * x)
    return pooled


def _means(x, bounds, mask):
    parts = [x[a:b][_real(x, mask)[a:b]] for a, b in itertools.pairwise(bounds)]
    return np.stack([part.mean(0) if len(part) else np.zeros(x.shape[-1], x.dtype) for part in parts])


def ids_taken_as_sorted(x, segment_ids, num_segments, mask=None):
    ends = np.cumsum(np.bincount(segment_ids, minlength=num_segments))
    return _means(x, [0, *ends], mask)


def ids_searched(x, segment_ids, num_segments, mask=None):
    return _means(x, np.searchsorted(segment_ids, np.arange(num_segments + 1)), mask)


def maximum_by_reduceat(x, segment_ids, num_segments):
    if len(x) == 0:
        return np.zeros((num_segments, x.shape[-1]), x.dtype)
    ends = np.cumsum(np.bincount(segment_ids, minlength=num_segments))
    begin = np.concatenate([[0], ends[:-1]])
    used = begin < len(x)
    found = np.zeros((num_segments, x.shape[-1]), x.dtype)
    found[used] = np.maximum.reduceat(x[np.argsort(segment_ids, kind="stable")], begin[used], 0)
    return found


def as_many_as_the_largest_id(x, segment_ids, num_segments, mask=None):
    size = segment_ids.max(initial=-1) + 1
    real = _real(x, mask)
    total = np.zeros((size, x.shape[-1]), x.dtype)
    np.add.at(total, segment_ids[real], x[real])
    return total / np.maximum(np.bincount(segment_ids[real], minlength=size), 1)[:, None].astype(x.dtype)


def maximum_of_all(x, mask=None):
    found = np.where(_real(x, mask)[..., None], x, -np.inf).max()
    return np.full(x.shape[:-2] + x.shape[-1:], found, x.dtype)


def maximum_of_all_subtracted(scores, mask=None, *, axis=-1):
    real = np.broadcast_to(True if mask is None else np.asarray(mask, bool), scores.shape)
    top = np.max(np.where(real, scores, -np.inf), initial=-np.inf)
    powers = np.where(real, np.exp(scores - top), 0)
    total = powers.sum(axis, keepdims=True)
    return (powers / np.where(total == 0, 1, total)).astype(scores.dtype)


def nothing_subtracted(scores, mask=None, *, axis=-1):
    powers = np.where(True if mask is None else np.asarray(mask, bool), np.exp(scores), 0)
    total = powers.sum(axis, keepdims=True)
    return powers / np.where(total == 0, 1, total)


def nothing_subtracted_and_an_epsilon(scores, mask=None, *, axis=-1):
    powers = np.exp(scores) * (1 if mask is None else mask).astype(scores.dtype)
    return powers / (powers.sum(axis, keepdims=True) + scores.dtype.type(1e-6))


def normalized_twice(scores, mask=None, *, axis=-1):
    weights = _softmax(scores, axis) * (1 if mask is None else mask)
    return (weights / weights.sum(axis, keepdims=True)).astype(scores.dtype)


def normalized_twice_with_an_epsilon(scores, mask=None, *, axis=-1):
    weights = _softmax(scores, axis) * (1 if mask is None else mask)
    return (weights / (weights.sum(axis, keepdims=True) + 1e-8)).astype(scores.dtype)


def set_to_0_after_a_finite_stand_in(scores, mask=None, *, axis=-1):
    real = True if mask is None else np.asarray(mask, bool)
    return np.where(real, _softmax(np.where(real, scores, scores.dtype.type(-1e4)), axis), 0).astype(scores.dtype)


def squeezed(x, mask=None):
    real = _real(x, mask)[..., None]
    count = np.maximum(real.sum(-2, keepdims=True), 1)
    return (np.where(real, x, 0).sum(-2, keepdims=True) / count).squeeze().astype(x.dtype)


def over_everything(scores, mask=None, *, axis=-1):
    real = np.broadcast_to(True if mask is None else np.asarray(mask, bool), scores.shape)
    powers = np.where(real, np.exp(scores - scores.max(initial=0)), 0)
    return (powers / powers.sum()).astype(scores.dtype)


def padded_queries_counted(x, y, x_mask=None, y_mask=None):
    products = x @ np.swapaxes(y, -1, -2)
    if y_mask is not None:
        products = np.where(y_mask[..., None, :], products, -np.inf)
    return products.max(-1).sum(-1)


def products_of_padding_are_0(x, y, x_mask=None, y_mask=None):
    x = x if x_mask is None else np.where(x_mask[..., None], x, 0)
    y = y if y_mask is None else np.where(y_mask[..., None], y, 0)
    return (x @ np.swapaxes(y, -1, -2)).max(-1).sum(-1)


FURTHER = {
    "nan_for_a_single_token": ("std_pooling", of_tokens.LONE, {"fixed": {"ddof": 1.0}}),
    "variance_plus_epsilon": ("statistics_pooling", of_tokens.ADDED, {}),
    "moments_with_a_floor": ("std_pooling", of_tokens.MOMENTS, {}),
    "moments_under_weights": ("attentive_statistics_pooling", of_tokens.MOMENTS, {}),
    "moments_under_weights_and_an_epsilon": ("attentive_statistics_pooling", of_tokens.MOMENTS, {}),
    "gated_masked_after_the_softmax": ("additive_attention_pooling", of_weights.NOT_AGAIN, {}),
    "gated_scores_times_mask": (
        "additive_attention_pooling",
        "multiplies scores by the mask: padding gets the score 0",
        {},
    ),
    "gated_over_the_bags": ("additive_attention_pooling", of_weights.OVER_BATCH, {}),
    "gated_exchanged": ("additive_attention_pooling", mistakes.GATE, {}),
    "gated_mask_added": ("additive_attention_pooling", diagnosis.IN_SCORES, {}),
    "gated_mask_added_and_tokens_cleaned": ("additive_attention_pooling", diagnosis.IN_SCORES, {}),
    "gated_product": ("additive_attention_pooling", diagnosis.PRODUCT, {}),
    "softmax_of_all_segments": ("segment_attention_pooling", of_weights.ALL_SEGMENTS, {}),
    "ids_taken_as_sorted": ("segment_mean_pooling", diagnosis.SORTED, {}),
    "ids_searched": ("segment_mean_pooling", diagnosis.SORTED, {}),
    "maximum_by_reduceat": ("segment_max_pooling", of_tokens.NEXT, {}),
    "as_many_as_the_largest_id": ("segment_mean_pooling", mistakes.SIZE, {}),
    "maximum_of_all": ("max_pooling", of_tokens.WHOLE_MAXIMUM, {}),
    "maximum_of_all_subtracted": ("masked_softmax", of_weights.WHOLE_TOP, {}),
    "nothing_subtracted": ("masked_softmax", of_weights.UNSHIFTED, {}),
    "nothing_subtracted_and_an_epsilon": (
        "masked_softmax",
        of_weights.EPSILON_UNSHIFTED,
        {"dtypes": ("float64",), "mask_required": True},
    ),
    "normalized_twice": ("masked_softmax", of_weights.AGAIN, {}),
    "normalized_twice_with_an_epsilon": ("masked_softmax", of_weights.AGAIN, {}),
    "set_to_0_after_a_finite_stand_in": ("masked_softmax", of_weights.STAND_IN, {}),
    "squeezed": ("mean_pooling", diagnosis.SQUEEZED, {"batched": True}),
    "over_everything": ("masked_softmax", of_weights.OVER_ALL, {}),
    "padded_queries_counted": ("maxsim_score", mistakes.COUNTS_QUERIES, {}),
    "products_of_padding_are_0": ("maxsim_score", of_tokens.MAXSIM_0, {}),
}
"""For each function its variant, the words of its cause, and options of the judge."""
