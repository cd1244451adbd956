"""Mistakes in normalisers."""

import numpy as np
from conformance.mutants.mistakes import Mistakes

import attnpool_ref as ref


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


def _of(body):
    """A function of the caller's own scores: ``body(scores, real, axis)``."""

    def function(scores, mask=None, *, lengths=None, axis=-1):
        return body(scores, _full(scores, mask, lengths, axis), axis)

    return function


def _or(real, axis, found):
    """Something, and 0 where nothing is real."""
    return np.where(np.any(real, axis, keepdims=True), found, 0).astype(found.dtype)


def _nonzero(total):
    return np.where(total == 0, 1, total)


def _shares(values, axis):
    return values / _nonzero(np.sum(values, axis, keepdims=True))


MUTANTS = Mistakes(
    sparsemax={
        "sparsemax: padding is a score of 0": lambda a: (
            a.mask * ref.sparsemax(np.where(a.mask, a.scores, 0), axis=a.axis)
        ),
        "sparsemax: masked after the threshold": lambda a: np.where(a.mask, a.oracle(mask=None), 0),
        "sparsemax: always over the last axis": lambda a: a.oracle(axis=-1),
        "sparsemax: cut at 0 and divided by the sum": lambda a: _shares(
            np.where(a.mask, np.maximum(a.scores, 0), 0), a.axis
        ),
    },
    entmax15={
        "entmax: the scores not halved": lambda a: a.oracle(scores=2 * a.scores),
        "entmax: not squared": lambda a: ref.sparsemax(a.scores / 2, a.mask, axis=a.axis),
        "entmax: masked after the threshold": lambda a: np.where(a.mask, a.oracle(mask=None), 0),
        "entmax: padding is a score of 0": lambda a: a.mask * ref.entmax15(np.where(a.mask, a.scores, 0), axis=a.axis),
        "entmax: always over the last axis": lambda a: a.oracle(axis=-1),
    },
    entmax={
        "entmax: alpha 1.5 whatever it is": lambda a: ref.entmax15(a.scores, a.mask, axis=a.axis),
        "entmax: the scores not scaled by alpha - 1": lambda a: a.oracle(
            scores=a.scores / (a.alpha - 1) if a.alpha != 1 else a.scores
        ),
        "entmax of any alpha: masked after the threshold": lambda a: np.where(a.mask, a.oracle(mask=None), 0),
    },
    top_k_softmax={
        "top-k: one score too many": lambda a: a.oracle(k=a.k + 1),
        "top-k: the softmax of all, cut": lambda a: np.where(
            a.oracle() > 0, ref.masked_softmax(a.scores, a.mask, axis=a.axis), 0
        ),
    },
    gumbel_softmax={
        "gumbel: the temperature divides the scores alone": lambda a: a.oracle(
            scores=a.scores / a.temperature, temperature=1.0
        ),
        "gumbel: the temperature multiplies": lambda a: a.oracle(temperature=1 / a.temperature),
        "gumbel: hard without the noise": lambda a: a.oracle(noise=None) if a.hard else a.oracle(),
    },
    masked_sigmoid={
        "sigmoid: 1/2 at padding": lambda a: np.where(a.mask, a.oracle(), 0.5),
        "sigmoid: normalised although nobody asked": lambda a: a.oracle(normalize=True),
        "sigmoid: divided by its sum, which underflows": lambda a: (
            _shares(a.oracle(normalize=False), a.axis) if a.normalize else a.oracle()
        ),
    },
    hardmax={
        "hardmax: the last of the largest": lambda a: np.flip(
            a.oracle(scores=np.flip(a.scores, a.axis), mask=np.flip(a.mask, a.axis)), a.axis
        ),
    },
    l2_normalize={
        "normalize: always over the last axis": lambda a: a.oracle(axis=-1),
        "normalize: an epsilon under the norm": lambda x, *, axis=-1: (
            x / np.sqrt(np.sum(x * x, axis, keepdims=True) + np.float32(1e-12))
        ),
        "normalize: divided by the sum": lambda x, *, axis=-1: x / np.sum(x, axis, keepdims=True),
        "normalize: a floor of 1e-12 under the norm": lambda x, *, axis=-1: (
            x / np.maximum(np.sqrt(np.sum(x.astype(np.float64) ** 2, axis, keepdims=True)), 1e-12)
        ).astype(x.dtype),
        "normalize: squares overflow": lambda x, *, axis=-1: x / _nonzero(np.sqrt(np.sum(x * x, axis, keepdims=True))),
    },
    masked_softmax={
        "softmax: uniform when nothing is real": _of(
            lambda scores, real, axis: _softmax(np.where(real, scores, np.finfo(scores.dtype).min), axis)
        ),
        "softmax: -1e4 added to padding": _of(
            lambda scores, real, axis: _or(real, axis, _softmax(scores + np.where(real, 0, np.float32(-1e4)), axis))
        ),
        "softmax: -1e6 for padding": _of(
            lambda scores, real, axis: _or(real, axis, _softmax(np.where(real, scores, scores.dtype.type(-1e6)), axis))
        ),
        "softmax: an epsilon in the denominator": _of(
            lambda scores, real, axis: np.where(
                real, _softmax(np.where(real, scores, scores.dtype.type(-np.inf)), axis, 10e-5), 0
            )
        ),
        "softmax: a score of 0 is padding": _of(
            lambda scores, real, axis: ref.masked_softmax(scores, real & (scores != 0), axis=axis)
        ),
        "softmax: scores multiplied by the mask": _of(
            lambda scores, real, axis: _softmax(scores * real.astype(scores.dtype), axis)
        ),
        "softmax: the maximum not subtracted": _of(lambda scores, real, axis: _shares(np.exp(scores) * real, axis)),
        "softmax: always over the last axis": _of(lambda scores, real, axis: ref.masked_softmax(scores, real)),
        "softmax: the sink added to every score": lambda a: a.oracle(sink=None),
        "softmax: the sink without exp": lambda a: a.mapped(sink=lambda sink: np.log(np.maximum(sink, 1e-30))),
    },
    masked_log_softmax={
        "log softmax: an epsilon under the logarithm": _of(
            lambda scores, real, axis: np.where(
                real, np.log(ref.masked_softmax(scores, real, axis=axis) + scores.dtype.type(1e-6)), -np.inf
            ).astype(scores.dtype)
        ),
        "log softmax: the least number for padding": _of(
            lambda scores, real, axis: np.where(
                real, ref.masked_log_softmax(scores, real, axis=axis), np.finfo(scores.dtype).min
            )
        ),
        "log softmax: 0 where nothing is real": _of(
            lambda scores, real, axis: _or(real, axis, ref.masked_log_softmax(scores, real, axis=axis))
        ),
        "log softmax: padding is in the sum": _of(
            lambda scores, real, axis: np.where(real, ref.masked_log_softmax(scores, axis=axis), -np.inf).astype(
                scores.dtype
            )
        ),
        "log softmax: always over the last axis": _of(lambda scores, real, axis: ref.masked_log_softmax(scores, real)),
    },
    segment_softmax={
        "packed softmax: over all tokens": lambda a: a.oracle(segment_ids=np.zeros_like(a.segment_ids), num_segments=1),
    },
    segment_log_softmax={
        "packed log softmax: 0 at padding": lambda a: np.where(np.isneginf(a.oracle()), 0, a.oracle()),
        "packed log softmax: an epsilon under the logarithm": lambda a: np.log(np.exp(a.oracle()) + 1e-12),
    },
)


@MUTANTS.of("masked_softmax", "softmax: writes into the scores")
def softmax_writes_into_the_scores(scores, mask=None, *, lengths=None, axis=-1):
    real = _full(scores, mask, lengths, axis)
    weights = ref.masked_softmax(scores, real, axis=axis)
    scores[~real] = -1e6
    return weights


@MUTANTS.of("masked_log_softmax", "log softmax: the logarithm of weights that underflow")
def log_softmax_of_weights(scores, mask=None, *, lengths=None, axis=-1):
    with np.errstate(divide="ignore"):
        return np.log(ref.masked_softmax(scores, mask, lengths=lengths, axis=axis))


@MUTANTS.of("sparsemax", "sparsemax: the threshold of all real scores")
def sparsemax_threshold_of_everything(a):
    count = np.maximum(np.sum(a.mask, a.axis, keepdims=True), 1)
    threshold = (np.sum(np.where(a.mask, a.scores, 0), a.axis, keepdims=True) - 1) / count
    return np.where(a.mask, np.maximum(a.scores - threshold, 0), 0)


@MUTANTS.of("sparsemax", "sparsemax: the largest score not subtracted")
def sparsemax_without_the_largest(a):
    scores = np.moveaxis(np.where(a.mask, a.scores, -np.inf), a.axis, -1)
    ordered = np.sort(scores, -1)[..., ::-1]
    thresholds = (np.cumsum(ordered, -1) - 1) / np.arange(1, ordered.shape[-1] + 1)
    threshold = np.max(thresholds, -1, keepdims=True, initial=-np.inf)
    return np.moveaxis(np.where(threshold == -np.inf, 0, np.maximum(scores - threshold, 0)), -1, a.axis)


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


@MUTANTS.of("top_k_softmax", "top-k: padding is among the largest")
def top_k_counts_padding(a):
    ordered = np.sort(a.scores, a.axis)
    at_least = np.take(ordered, [max(ordered.shape[a.axis] - a.k, 0)], a.axis) if a.scores.shape[a.axis] else 0
    return ref.masked_softmax(a.scores, a.mask & (a.scores >= at_least), axis=a.axis)


@MUTANTS.of("hardmax", "hardmax: ties share")
def hardmax_ties_share(a):
    reached = a.mask & (a.scores == np.max(np.where(a.mask, a.scores, -np.inf), a.axis, keepdims=True, initial=-np.inf))
    weights = reached / np.maximum(np.sum(reached, a.axis, keepdims=True), 1)
    return np.where(np.isnan(a.oracle()), np.nan, weights)


@MUTANTS.of("hardmax", "hardmax: the first slot where nothing is real")
def hardmax_of_nothing(a):
    first = np.moveaxis(np.zeros(a.scores.shape), a.axis, -1)
    first[..., :1] = 1
    return np.where(np.any(a.mask, a.axis, keepdims=True), a.oracle(), np.moveaxis(first, -1, a.axis))


@MUTANTS.of("l2_normalize", "normalize: the zero vector is NaN")
def normalize_zero_vector_is_nan(x, *, axis=-1):
    largest = np.max(np.abs(x), axis, keepdims=True, initial=0)
    return (x / largest) / np.sqrt(np.sum((x / largest) ** 2, axis, keepdims=True))


@MUTANTS.of("segment_softmax", "packed softmax: 1e-16 in the denominator, and the maximum of all tokens")
def segment_softmax_below_the_maximum_of_all(a):
    real = np.broadcast_to(a.mask.reshape(a.mask.shape + (1,) * (a.scores.ndim - 1)), a.scores.shape)
    powers = np.exp(np.where(real, a.scores, -np.inf) - np.max(a.scores, 0, where=real, initial=-1e38))
    sums = np.zeros((a.num_segments, *powers.shape[1:]))
    np.add.at(sums, a.segment_ids, powers.astype(np.float32))
    return powers / (sums + 1e-16)[a.segment_ids]
