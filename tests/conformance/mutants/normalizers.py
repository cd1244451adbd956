"""Mistakes in normalisers."""

import numpy as np
from conformance.mutants.mistakes import Mistakes

import attnpool_ref as ref

MUTANTS = Mistakes()


def _softmax(scores, axis=-1, epsilon=0.0):
    exponentials = np.exp(scores - np.max(scores, axis, keepdims=True, initial=-1e38))
    return exponentials / (np.sum(exponentials, axis, keepdims=True) + np.asarray(epsilon, scores.dtype))


def _full(scores, mask, lengths=None, axis=-1):
    """The mask of the scores' shape, whether it came as mask or as lengths."""
    if lengths is not None:
        mask = ref.lengths_to_mask(lengths, scores.shape[axis])
        mask = mask.reshape(mask.shape[:-1] + (1,) * (scores.ndim - mask.ndim) + mask.shape[-1:])
        mask = np.moveaxis(np.broadcast_to(mask, np.moveaxis(scores, axis, -1).shape), -1, axis)
    return np.broadcast_to(True if mask is None else mask, scores.shape)


@MUTANTS.plain("masked_softmax", "softmax: uniform when nothing is real")
def softmax_uniform_when_nothing_is_real(scores, mask=None, *, lengths=None, axis=-1):
    real = _full(scores, mask, lengths, axis)
    return _softmax(np.where(real, scores, np.finfo(scores.dtype).min), axis)


@MUTANTS.plain("masked_softmax", "softmax: -1e4 added to padding")
def softmax_additive_minus_1e4(scores, mask=None, *, lengths=None, axis=-1):
    real = _full(scores, mask, lengths, axis)
    return np.where(np.any(real, axis, keepdims=True), _softmax(scores + np.where(real, 0, -1e4).astype("f"), axis), 0)


@MUTANTS.plain("masked_softmax", "softmax: -1e6 for padding")
def softmax_fill_of_minus_1e6(scores, mask=None, *, lengths=None, axis=-1):
    real = _full(scores, mask, lengths, axis)
    filled = np.where(real, scores, np.asarray(-1e6, scores.dtype))
    return np.where(np.any(real, axis, keepdims=True), _softmax(filled, axis), 0).astype(scores.dtype)


@MUTANTS.plain("masked_softmax", "softmax: an epsilon in the denominator")
def softmax_epsilon_in_the_denominator(scores, mask=None, *, lengths=None, axis=-1):
    real = _full(scores, mask, lengths, axis)
    weights = _softmax(np.where(real, scores, -np.inf).astype(scores.dtype), axis, 10e-5)
    return np.where(real, weights, 0)


@MUTANTS.plain("masked_softmax", "softmax: a score of 0 is padding")
def softmax_score_zero_is_padding(scores, mask=None, *, lengths=None, axis=-1):
    return ref.masked_softmax(scores, _full(scores, mask, lengths, axis) & (scores != 0), axis=axis)


@MUTANTS.plain("masked_softmax", "softmax: scores multiplied by the mask")
def softmax_multiplies_the_scores_by_the_mask(scores, mask=None, *, lengths=None, axis=-1):
    return _softmax(scores * _full(scores, mask, lengths, axis).astype(scores.dtype), axis)


@MUTANTS.plain("masked_softmax", "softmax: the maximum not subtracted")
def softmax_without_the_maximum(scores, mask=None, *, lengths=None, axis=-1):
    exponentials = np.exp(scores) * _full(scores, mask, lengths, axis)
    total = np.sum(exponentials, axis, keepdims=True)
    return exponentials / np.where(total == 0, 1, total)


@MUTANTS.plain("masked_softmax", "softmax: always over the last axis")
def softmax_always_over_the_last_axis(scores, mask=None, *, lengths=None, axis=-1):
    return ref.masked_softmax(scores, _full(scores, mask, lengths, axis))


@MUTANTS.plain("masked_softmax", "softmax: writes into the scores")
def softmax_writes_into_the_scores(scores, mask=None, *, lengths=None, axis=-1):
    real = _full(scores, mask, lengths, axis)
    weights = ref.masked_softmax(scores, real, axis=axis)
    scores[~real] = -1e6
    return weights


@MUTANTS.plain("masked_log_softmax", "log softmax: the logarithm of weights that underflow")
def log_softmax_of_weights(scores, mask=None, *, lengths=None, axis=-1):
    with np.errstate(divide="ignore"):
        return np.log(ref.masked_softmax(scores, mask, lengths=lengths, axis=axis))


@MUTANTS.plain("masked_log_softmax", "log softmax: an epsilon under the logarithm")
def log_softmax_with_an_epsilon(scores, mask=None, *, lengths=None, axis=-1):
    weights = ref.masked_softmax(scores, mask, lengths=lengths, axis=axis)
    filled = np.log(weights + np.asarray(1e-6, scores.dtype))
    return np.where(_full(scores, mask, lengths, axis), filled, -np.inf).astype(scores.dtype)


@MUTANTS.plain("masked_log_softmax", "log softmax: the least number for padding")
def log_softmax_fill_of_the_least_number(scores, mask=None, *, lengths=None, axis=-1):
    logarithms = ref.masked_log_softmax(scores, mask, lengths=lengths, axis=axis)
    return np.where(_full(scores, mask, lengths, axis), logarithms, np.finfo(scores.dtype).min)


@MUTANTS.plain("masked_log_softmax", "log softmax: 0 where nothing is real")
def log_softmax_0_where_nothing_is_real(scores, mask=None, *, lengths=None, axis=-1):
    real = _full(scores, mask, lengths, axis)
    logarithms = ref.masked_log_softmax(scores, real, axis=axis)
    return np.where(np.any(real, axis, keepdims=True), logarithms, 0).astype(scores.dtype)


@MUTANTS.plain("masked_log_softmax", "log softmax: padding is in the sum")
def log_softmax_sums_padding(scores, mask=None, *, lengths=None, axis=-1):
    logarithms = ref.masked_log_softmax(scores, axis=axis)
    return np.where(_full(scores, mask, lengths, axis), logarithms, -np.inf).astype(scores.dtype)


@MUTANTS.plain("masked_log_softmax", "log softmax: always over the last axis")
def log_softmax_always_over_the_last_axis(scores, mask=None, *, lengths=None, axis=-1):
    return ref.masked_log_softmax(scores, _full(scores, mask, lengths, axis))


@MUTANTS.of("sparsemax", "sparsemax: padding is a score of 0")
def sparsemax_padding_is_a_score(a):
    return a.mask * ref.sparsemax(np.where(a.mask, a.scores, 0), axis=a.axis)


@MUTANTS.of("sparsemax", "sparsemax: masked after the threshold")
def sparsemax_masked_afterwards(a):
    return np.where(a.mask, a.oracle(mask=None), 0)


@MUTANTS.of("sparsemax", "sparsemax: the threshold of all real scores")
def sparsemax_threshold_of_everything(a):
    count = np.maximum(np.sum(a.mask, a.axis, keepdims=True), 1)
    threshold = (np.sum(np.where(a.mask, a.scores, 0), a.axis, keepdims=True) - 1) / count
    return np.where(a.mask, np.maximum(a.scores - threshold, 0), 0)


@MUTANTS.of("sparsemax", "sparsemax: cut at 0 and divided by the sum")
def sparsemax_cut_and_rescaled(a):
    cut = np.where(a.mask, np.maximum(a.scores, 0), 0)
    total = np.sum(cut, a.axis, keepdims=True)
    return cut / np.where(total == 0, 1, total)


@MUTANTS.of("sparsemax", "sparsemax: the largest score not subtracted")
def sparsemax_without_the_largest(a):
    scores = np.moveaxis(np.where(a.mask, a.scores, -np.inf), a.axis, -1)
    ordered = np.sort(scores, -1)[..., ::-1]
    thresholds = (np.cumsum(ordered, -1) - 1) / np.arange(1, ordered.shape[-1] + 1)
    threshold = np.max(thresholds, -1, keepdims=True, initial=-np.inf)
    return np.moveaxis(np.where(threshold == -np.inf, 0, np.maximum(scores - threshold, 0)), -1, a.axis)


@MUTANTS.of("sparsemax", "sparsemax: always over the last axis")
def sparsemax_always_over_the_last_axis(a):
    return a.oracle(axis=-1)


@MUTANTS.of("entmax15", "entmax: the scores not halved")
def entmax_scores_not_halved(a):
    return a.oracle(scores=2 * a.scores)


@MUTANTS.of("entmax15", "entmax: not squared")
def entmax_not_squared(a):
    return ref.sparsemax(a.scores / 2, a.mask, axis=a.axis)


@MUTANTS.of("entmax15", "entmax: masked after the threshold")
def entmax_masked_afterwards(a):
    return np.where(a.mask, a.oracle(mask=None), 0)


@MUTANTS.of("entmax15", "entmax: padding is a score of 0")
def entmax_padding_is_a_score(a):
    return a.mask * ref.entmax15(np.where(a.mask, a.scores, 0), axis=a.axis)


@MUTANTS.of("entmax15", "entmax: always over the last axis")
def entmax_always_over_the_last_axis(a):
    return a.oracle(axis=-1)


@MUTANTS.of("entmax15", "entmax: ten bisections for the threshold")
def entmax_by_few_bisections(a):
    scores = np.where(a.mask, a.scores, -np.inf) / 2
    top = np.max(scores, a.axis, keepdims=True, initial=-np.inf)
    below = scores - np.where(top == -np.inf, 0, top)
    low, high = np.full(top.shape, -1.0), np.zeros(top.shape)
    for _ in range(10):
        middle = (low + high) / 2
        enough = np.sum(np.maximum(below - middle, 0) ** 2, a.axis, keepdims=True) >= 1
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    return np.maximum(below - low, 0) ** 2


@MUTANTS.of("entmax", "entmax: alpha 1.5 whatever it is")
def entmax_always_15(a):
    return ref.entmax15(a.scores, a.mask, axis=a.axis)


@MUTANTS.of("entmax", "entmax: the scores not scaled by alpha - 1")
def entmax_without_the_scale(a):
    return a.oracle(scores=a.scores / (a.alpha - 1) if a.alpha != 1 else a.scores)


@MUTANTS.of("entmax", "entmax of any alpha: masked after the threshold")
def entmax_of_any_alpha_masked_afterwards(a):
    return np.where(a.mask, a.oracle(mask=None), 0)


@MUTANTS.of("top_k_softmax", "top-k: one score too many")
def top_k_one_too_many(a):
    return a.oracle(k=a.k + 1)


@MUTANTS.of("top_k_softmax", "top-k: padding is among the largest")
def top_k_counts_padding(a):
    ordered = np.sort(a.scores, a.axis)
    at_least = np.take(ordered, [max(ordered.shape[a.axis] - a.k, 0)], a.axis) if a.scores.shape[a.axis] else 0
    return ref.masked_softmax(a.scores, a.mask & (a.scores >= at_least), axis=a.axis)


@MUTANTS.of("top_k_softmax", "top-k: the softmax of all, cut")
def top_k_cut_after_the_softmax(a):
    return np.where(a.oracle() > 0, ref.masked_softmax(a.scores, a.mask, axis=a.axis), 0)


@MUTANTS.of("gumbel_softmax", "gumbel: the temperature divides the scores alone")
def gumbel_noise_not_divided(a):
    return a.oracle(scores=a.scores / a.temperature, temperature=1.0)


@MUTANTS.of("gumbel_softmax", "gumbel: the temperature multiplies")
def gumbel_multiplied(a):
    return a.oracle(temperature=1 / a.temperature)


@MUTANTS.of("gumbel_softmax", "gumbel: hard without the noise")
def gumbel_hard_without_noise(a):
    return a.oracle(noise=None) if a.hard else a.oracle()


@MUTANTS.of("masked_sigmoid", "sigmoid: 1/2 at padding")
def sigmoid_half_at_padding(a):
    return np.where(a.mask, a.oracle(), 0.5)


@MUTANTS.of("masked_sigmoid", "sigmoid: normalised although nobody asked")
def sigmoid_always_normalized(a):
    return a.oracle(normalize=True)


@MUTANTS.of("masked_sigmoid", "sigmoid: divided by its sum, which underflows")
def sigmoid_divided_by_its_sum(a):
    weights = a.oracle(normalize=False)
    total = np.sum(weights, a.axis, keepdims=True)
    return weights / np.where(total == 0, 1, total) if a.normalize else weights


@MUTANTS.of("hardmax", "hardmax: ties share")
def hardmax_ties_share(a):
    reached = a.mask & (a.scores == np.max(np.where(a.mask, a.scores, -np.inf), a.axis, keepdims=True, initial=-np.inf))
    weights = reached / np.maximum(np.sum(reached, a.axis, keepdims=True), 1)
    return np.where(np.isnan(a.oracle()), np.nan, weights)


@MUTANTS.of("hardmax", "hardmax: the last of the largest")
def hardmax_takes_the_last(a):
    return np.flip(a.oracle(scores=np.flip(a.scores, a.axis), mask=np.flip(a.mask, a.axis)), a.axis)


@MUTANTS.of("hardmax", "hardmax: the first slot where nothing is real")
def hardmax_of_nothing(a):
    first = np.moveaxis(np.zeros(a.scores.shape), a.axis, -1)
    first[..., :1] = 1
    return np.where(np.any(a.mask, a.axis, keepdims=True), a.oracle(), np.moveaxis(first, -1, a.axis))


@MUTANTS.plain("l2_normalize", "normalize: an epsilon under the norm")
def normalize_epsilon_under_the_norm(x, *, axis=-1):
    return x / np.sqrt(np.sum(x * x, axis, keepdims=True) + np.float32(1e-12))


@MUTANTS.plain("l2_normalize", "normalize: the zero vector is NaN")
def normalize_zero_vector_is_nan(x, *, axis=-1):
    largest = np.max(np.abs(x), axis, keepdims=True, initial=0)
    return (x / largest) / np.sqrt(np.sum((x / largest) ** 2, axis, keepdims=True))


@MUTANTS.plain("l2_normalize", "normalize: squares overflow")
def normalize_squares_overflow(x, *, axis=-1):
    norm = np.sqrt(np.sum(x * x, axis, keepdims=True))
    return x / np.where(norm == 0, 1, norm)


@MUTANTS.plain("l2_normalize", "normalize: divided by the sum")
def normalize_by_the_sum(x, *, axis=-1):
    return x / np.sum(x, axis, keepdims=True)


@MUTANTS.plain("l2_normalize", "normalize: a floor of 1e-12 under the norm")
def normalize_with_a_floor(x, *, axis=-1):
    norm = np.sqrt(np.sum(x.astype(np.float64) ** 2, axis, keepdims=True))
    return (x / np.maximum(norm, 1e-12)).astype(x.dtype)


@MUTANTS.of("l2_normalize", "normalize: always over the last axis")
def normalize_always_over_the_last_axis(a):
    return a.oracle(axis=-1)


@MUTANTS.of("segment_softmax", "packed softmax: 1e-16 in the denominator, and the maximum of all tokens")
def segment_softmax_below_the_maximum_of_all(a):
    real = np.broadcast_to(a.mask.reshape(a.mask.shape + (1,) * (a.scores.ndim - 1)), a.scores.shape)
    powers = np.exp(np.where(real, a.scores, -np.inf) - np.max(a.scores, 0, where=real, initial=-1e38))
    sums = np.zeros((a.num_segments, *powers.shape[1:]))
    np.add.at(sums, a.segment_ids, powers.astype(np.float32))
    return powers / (sums + 1e-16)[a.segment_ids]


@MUTANTS.of("segment_softmax", "packed softmax: over all tokens")
def segment_softmax_over_all_tokens(a):
    return a.oracle(segment_ids=np.zeros_like(a.segment_ids), num_segments=1)


@MUTANTS.of("segment_log_softmax", "packed log softmax: 0 at padding")
def segment_log_softmax_0_at_padding(a):
    found = a.oracle()
    return np.where(np.isneginf(found), 0, found)


@MUTANTS.of("segment_log_softmax", "packed log softmax: an epsilon under the logarithm")
def segment_log_softmax_with_an_epsilon(a):
    return np.log(np.exp(a.oracle()) + 1e-12)


@MUTANTS.of("masked_softmax", "softmax: the sink added to every score")
def softmax_sink_added_to_the_scores(a):
    return a.oracle(sink=None)


@MUTANTS.of("masked_softmax", "softmax: the sink without exp")
def softmax_sink_without_exp(a):
    return a.oracle() if a.sink is None else a.oracle(sink=np.log(np.maximum(a.sink, 1e-30)))
