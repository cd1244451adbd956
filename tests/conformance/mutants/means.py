"""Mistakes in sums, order statistics and generalised means."""

import numpy as np
from conformance.mutants.mistakes import Mistakes

MUTANTS = Mistakes()


def _clean(a, fill=0.0):
    return np.where(a.mask[..., None], a.x, fill)


def _count(a):
    return np.maximum(np.sum(a.mask, -1), 1)[..., None]


@MUTANTS.of("sum_pooling", "sum: the mean")
def sum_is_the_mean(a):
    return a.oracle() / _count(a)


@MUTANTS.of("sum_pooling", "sum: over the root of the number")
def sum_over_the_root(a):
    return a.oracle() / np.sqrt(_count(a))


@MUTANTS.of("min_pooling", "min: padding as 0")
def min_with_padding_as_0(a):
    return np.min(_clean(a), -2, initial=np.inf if a.x.shape[-2] else 0)


@MUTANTS.of("min_pooling", "min: of nothing is inf")
def min_of_nothing(a):
    return np.min(_clean(a, np.inf), -2, initial=np.inf)


@MUTANTS.of("quantile_pooling", "quantile: the lower value, as PyG's median")
def quantile_lower(a):
    ordered = np.sort(_clean(a, np.inf), -2)
    place = np.floor((_count(a) - 1) * a.q).astype(int)
    return np.where(np.any(a.mask, -1)[..., None], _taken(ordered, place), 0)


@MUTANTS.of("quantile_pooling", "quantile: the lower value for every method but linear")
def quantile_lower_for_the_methods(a):
    return a.oracle() if a.method == "linear" else a.oracle(method="lower")


@MUTANTS.of("quantile_pooling", "quantile: the mean of both values is the nearest")
def quantile_nearest_as_midpoint(a):
    return a.oracle(method="midpoint" if a.method == "nearest" else a.method)


@MUTANTS.of("quantile_pooling", "quantile: over the padded length")
def quantile_over_the_padded_length(a):
    return a.oracle(x=_clean(a), mask=np.broadcast_to(np.any(a.mask, -1)[..., None], a.mask.shape))


def _taken(ordered, place):
    if not ordered.shape[-2]:
        return np.sum(ordered, -2)
    place = np.broadcast_to(place[..., None, :], (*ordered.shape[:-2], 1, ordered.shape[-1]))
    return np.take_along_axis(ordered, place, -2)[..., 0, :]


@MUTANTS.of("top_k_pooling", "top k: divided by k where fewer are real")
def top_k_over_k(a):
    return a.oracle() * np.minimum(a.k, _count(a)) / a.k


@MUTANTS.of("top_k_pooling", "top k: the largest alone")
def top_k_largest(a):
    return a.oracle(k=1)


@MUTANTS.of("top_k_pooling", "top k: every tie counts whole")
def top_k_ties_whole(a):
    least = np.sort(_clean(a, -np.inf), -2)[..., max(a.x.shape[-2] - a.k, 0) :, :][..., :1, :]
    kept = a.mask[..., None] & (a.x >= least)
    return np.sum(np.where(kept, a.x, 0), -2) / np.maximum(np.sum(kept, -2), 1)


@MUTANTS.of("noisy_or_pooling", "noisy-or: the largest")
def noisy_or_largest(a):
    return np.max(_clean(a), -2, initial=0)


@MUTANTS.of("noisy_or_pooling", "noisy-or: a sum cut off at 1")
def noisy_or_sum(a):
    return np.minimum(np.sum(_clean(a), -2), 1)


@MUTANTS.of("power_mean_pooling", "power mean: cut off at 100 before the root, as PyG's")
def power_mean_cut_off(a):
    power = np.where(a.mask[..., None], np.maximum(_clean(a, 1), a.epsilon) ** a.p, 0)
    return np.where(np.any(a.mask, -1)[..., None], np.clip(np.sum(power, -2) / _count(a), 1e-4, 100) ** (1 / a.p), 0)


@MUTANTS.of("power_mean_pooling", "power mean: a sum, as a p-norm")
def power_mean_sum(a):
    return a.oracle() * _count(a) ** (1 / a.p)


@MUTANTS.of("power_mean_pooling", "power mean: absolute values")
def power_mean_of_magnitudes(a):
    return a.oracle(x=np.abs(a.x))


@MUTANTS.of("power_mean_pooling", "power mean: the first channel's exponent for all")
def power_mean_one_exponent(a):
    return a.oracle(p=np.ravel(a.p)[0])


@MUTANTS.of("logsumexp_pooling", "log-sum-exp: not divided by the scale")
def logsumexp_not_divided(a):
    return a.oracle() * a.scale


@MUTANTS.of("logsumexp_pooling", "log-sum-exp: always the mean")
def logsumexp_always_mean(a):
    return a.oracle(mean=True)


@MUTANTS.of("logsumexp_pooling", "log-sum-exp: the maximum is not taken out")
def logsumexp_overflows(a):
    exponentials = np.where(a.mask[..., None], np.exp(np.float32(a.scale * _clean(a))), 0)
    whole = np.sum(exponentials, -2) / (_count(a) if a.mean else 1)
    return np.where(np.any(a.mask, -1)[..., None], np.log(whole) / a.scale, 0)


@MUTANTS.of("softmax_pooling", "softmax pooling: one weight for all channels")
def softmax_of_tokens(a):
    scores = np.sum(a.scale * _clean(a), -1, keepdims=True)
    scores = np.exp(scores - np.max(scores, -2, keepdims=True, initial=-1e9)) * a.mask[..., None]
    weights = np.broadcast_to(scores / np.maximum(np.sum(scores, -2, keepdims=True), 1e-300), a.x.shape)
    return a.returns(np.sum(weights * _clean(a), -2), weights)


@MUTANTS.of("softmax_pooling", "softmax pooling: divided by the scale, as by a temperature")
def softmax_temperature(a):
    return a.oracle(scale=1 / a.scale)


@MUTANTS.of("softmax_pooling", "softmax pooling: uniform where nothing is real")
def softmax_uniform_when_empty(a):
    return a.oracle(mask=a.mask | ~np.any(a.mask, -1, keepdims=True))
