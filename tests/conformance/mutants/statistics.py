"""Mistakes in statistics pooling."""

import numpy as np
from conformance.mutants.mistakes import Mistakes

import attnpool_ref as ref
from attnpool_ref.primitives import moments


def _halves(pooled):
    return np.split(pooled, 2, -1)


def _with_deviation(change):
    """A function of pooled vectors that changes their second half."""

    def changed(pooled):
        mean, deviation = _halves(pooled)
        return np.concatenate([mean, change(deviation)], -1)

    return changed


def _under(a, weights):
    """The statistics under other weights."""
    return a.returns(ref.statistics_pooling(a.x, a.mask, weights, epsilon=a.epsilon), weights)


MUTANTS = Mistakes(
    std_pooling={
        "std: the floor of an empty row": lambda a: np.maximum(a.oracle(), np.sqrt(a.epsilon)),
        "std: the floor under the deviation": lambda a: np.where(
            a.empty, 0, np.maximum(a.oracle(epsilon=0.0), a.epsilon)
        ),
        "std: ddof ignored": lambda a: a.oracle(ddof=0.0),
        "std: padding counts as tokens of 0": lambda a: a.oracle(x=a.zeroed, mask=None),
        "std: epsilon added to the variance": lambda a: np.where(
            a.empty, 0, np.sqrt(a.oracle(epsilon=0.0) ** 2 + a.epsilon)
        ),
    },
    statistics_pooling={
        "statistics: the deviation first": lambda a: np.concatenate(_halves(a.oracle())[::-1], -1),
        "statistics: the mean without weights": lambda a: np.concatenate(
            [ref.mean_pooling(a.x, a.mask), _halves(a.oracle())[1]], -1
        ),
        "statistics: the variance": lambda a: _with_deviation(np.square)(a.oracle()),
    },
    attentive_statistics_pooling={
        "attentive statistics: the mean without its deviation": lambda a: a.changed(_with_deviation(np.zeros_like)),
        "attentive statistics: the context of padding too": lambda a: a.exchanged(
            moments,
            lambda right, x, mask, weights, *of: right(
                x, np.ones_like(mask) if weights is None else mask, weights, *of
            ),
        ),
    },
)


@MUTANTS.of("std_pooling", "std: a difference of squares in float32")
def std_by_a_difference_of_squares(x, mask=None, weights=None, *, ddof=0, epsilon=0.0):
    mean = ref.weighted_pooling(x, None, mask)
    squares = ref.weighted_pooling(x * x, None, mask)
    count = np.sum(np.broadcast_to(True if mask is None else mask, x.shape[:-1]), -1)[..., None]
    variance = (squares - mean * mean) * count / np.maximum(count - ddof, 1)
    return np.where(count == 0, 0, np.sqrt(np.maximum(variance, epsilon))).astype(x.dtype)


@MUTANTS.of("std_pooling", "std: the first token is the origin, with or without a weight")
def std_from_a_token_without_weight(x, mask=None, weights=None, *, ddof=0, epsilon=0.0):
    real = np.broadcast_to(True if mask is None else mask, x.shape[:-1]).astype(bool)
    if not x.shape[-2]:
        return np.sum(x, -2)
    first = np.argmax(real, -1)[..., None, None]
    origin = np.take_along_axis(x, np.broadcast_to(first, (*x.shape[:-2], 1, x.shape[-1])), -2)
    with np.errstate(all="ignore"):
        shifted = np.where(real[..., None], x - origin, 0).astype(np.float32)
    return ref.std_pooling(shifted, real, weights, ddof=ddof, epsilon=epsilon).astype(x.dtype)


@MUTANTS.of("std_pooling", "std: one less than the number of tokens, whatever the weights")
def std_ddof_of_the_tokens(a):
    if a.weights is None:
        return a.oracle()
    real = a.mask[..., None]
    weights = np.where(real, a.weights if a.weights.ndim == a.x.ndim else a.weights[..., None], 0)
    total, count = np.sum(weights, -2), np.sum(real, -2)
    mean = ref.statistics_pooling(a.x, a.mask, a.weights)[..., None, : a.x.shape[-1]]
    second = np.sum(weights * np.where(real, a.x - mean, 0) ** 2, -2)
    whole = total * (count - a.ddof) / np.maximum(count, 1)
    variance = np.where(whole > 0, second, 0) / np.where(whole > 0, whole, 1)
    return np.where(total == 0, 0, np.sqrt(np.maximum(variance, a.epsilon)))


@MUTANTS.of("attentive_statistics_pooling", "attentive statistics: the norm before the relu")
def attentive_norm_before_the_relu(a):
    if a.norm_scale is None:
        return a.oracle()
    width = a.x.shape[-1]
    hidden = a.zeroed @ a.kernel[:width] + (0 if a.bias is None else a.bias)
    if a.global_context:
        whole = ref.statistics_pooling(a.x, a.mask, ddof=a.context_ddof, epsilon=a.epsilon)
        hidden = hidden + (whole @ a.kernel[width:])[..., None, :]
    hidden = np.tanh(np.maximum(a.norm_scale * hidden + (0 if a.norm_bias is None else a.norm_bias), 0))
    scores = hidden @ a.out_kernel
    if scores.ndim == a.x.ndim:
        return _under(a, ref.masked_softmax(scores, a.mask[..., None], axis=-2))
    return _under(a, ref.masked_softmax(scores, a.mask))


@MUTANTS.of("attentive_statistics_pooling", "attentive statistics: the deviation about the plain mean")
def attentive_about_the_plain_mean(a):
    weights = a.oracle(return_weights=True)[1]
    own = weights if weights.ndim == a.x.ndim else weights[..., None]
    variance = np.sum(own * np.where(a.mask[..., None], a.x - ref.mean_pooling(a.x, a.mask)[..., None, :], 0) ** 2, -2)
    variance = np.where(a.empty, 0, np.maximum(variance, a.epsilon))
    return a.changed(_with_deviation(lambda _: np.sqrt(variance)))
