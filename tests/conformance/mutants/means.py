"""Mistakes in sums, order statistics and generalised means."""

import numpy as np
from conformance.mutants.mistakes import Mistakes

MUTANTS = Mistakes(
    sum_pooling={
        "sum: the mean": lambda a: a.oracle() / _count(a),
        "sum: over the root of the number": lambda a: a.oracle() / np.sqrt(_count(a)),
    },
    min_pooling={
        "min: padding as 0": lambda a: np.min(_clean(a), -2, initial=np.inf if a.x.shape[-2] else 0),
        "min: of nothing is inf": lambda a: np.min(_clean(a, np.inf), -2, initial=np.inf),
    },
    quantile_pooling={
        "quantile: over the padded length": lambda a: a.oracle(
            x=_clean(a), mask=np.broadcast_to(~a.empty, a.mask.shape)
        ),
        "quantile: the lower value, as PyG's median": lambda a: a.oracle(method="lower"),
        "quantile: the lower value for every method but linear": lambda a: (
            a.oracle() if a.method == "linear" else a.oracle(method="lower")
        ),
        "quantile: the mean of both values is the nearest": lambda a: a.oracle(
            method="midpoint" if a.method == "nearest" else a.method
        ),
    },
    top_k_pooling={
        "top k: divided by k where fewer are real": lambda a: a.oracle() * np.minimum(a.k, _count(a)) / a.k,
        "top k: the largest alone": lambda a: a.oracle(k=1),
    },
    noisy_or_pooling={
        "noisy-or: the largest": lambda a: np.max(_clean(a), -2, initial=0),
        "noisy-or: a sum cut off at 1": lambda a: np.minimum(np.sum(_clean(a), -2), 1),
    },
    power_mean_pooling={
        "power mean: a sum, as a p-norm": lambda a: a.oracle() * _count(a) ** (1 / a.p),
        "power mean: absolute values": lambda a: a.oracle(x=np.abs(a.x)),
        "power mean: the first channel's exponent for all": lambda a: a.oracle(p=np.ravel(a.p)[0]),
    },
    logsumexp_pooling={
        "log-sum-exp: not divided by the scale": lambda a: a.oracle() * a.scale,
        "log-sum-exp: always the mean": lambda a: a.oracle(mean=True),
    },
    softmax_pooling={
        "softmax pooling: divided by the scale, as by a temperature": lambda a: a.oracle(scale=1 / a.scale),
        "softmax pooling: uniform where nothing is real": lambda a: a.oracle(mask=a.mask | a.empty),
    },
)


def _clean(a, fill=0.0):
    return np.where(a.mask[..., None], a.x, fill)


def _count(a):
    return np.maximum(np.sum(a.mask, -1), 1)[..., None]


@MUTANTS.of("top_k_pooling", "top k: every tie counts whole")
def top_k_ties_whole(a):
    least = np.sort(_clean(a, -np.inf), -2)[..., max(a.x.shape[-2] - a.k, 0) :, :][..., :1, :]
    kept = a.mask[..., None] & (a.x >= least)
    return np.sum(np.where(kept, a.x, 0), -2) / np.maximum(np.sum(kept, -2), 1)


@MUTANTS.of("power_mean_pooling", "power mean: cut off at 100 before the root, as PyG's")
def power_mean_cut_off(a):
    power = np.where(a.mask[..., None], np.maximum(_clean(a, 1), a.epsilon) ** a.p, 0)
    return np.where(a.empty, 0, np.clip(np.sum(power, -2) / _count(a), 1e-4, 100) ** (1 / a.p))


@MUTANTS.of("logsumexp_pooling", "log-sum-exp: the maximum is not taken out")
def logsumexp_overflows(a):
    exponentials = np.where(a.mask[..., None], np.exp(np.float32(a.scale * _clean(a))), 0)
    whole = np.sum(exponentials, -2) / (_count(a) if a.mean else 1)
    return np.where(a.empty, 0, np.log(whole) / a.scale)


@MUTANTS.of("softmax_pooling", "softmax pooling: one weight for all channels")
def softmax_of_tokens(a):
    scores = np.sum(a.scale * _clean(a), -1, keepdims=True)
    scores = np.exp(scores - np.max(scores, -2, keepdims=True, initial=-1e9)) * a.mask[..., None]
    weights = np.broadcast_to(scores / np.maximum(np.sum(scores, -2, keepdims=True), 1e-300), a.x.shape)
    return a.returns(np.sum(weights * _clean(a), -2), weights)
