"""Mistakes in scores."""

import numpy as np
from conformance.mutants.mistakes import Mistakes, after, in_reverse, left_out

import attnpool_ref as ref
from attnpool_ref.primitives import joined, tanh


def _joined(*sides):
    """Vectors side by side: [..., n, m, d+e] of [..., n, 1, d] and [..., 1, m, e]."""
    shape = np.broadcast_shapes(*(side.shape[:-1] for side in sides))
    return np.concatenate([np.broadcast_to(side, shape + side.shape[-1:]) for side in sides], -1)


def _trilinear(parts):
    """The score of the concatenated ``parts(query, key)`` of each pair."""
    return lambda a: _joined(*parts(a.query[..., :, None, :], a.key[..., None, :, :])) @ a.kernel


def _cosine(change):
    """The cosine with changed norms."""

    def score(a):
        query, key = (x / change(np.linalg.norm(x, axis=-1, keepdims=True)) for x in (a.query, a.key))
        return query @ np.swapaxes(key, -1, -2)

    return score


def _or_zero(bias):
    return 0 if bias is None else bias


MUTANTS = Mistakes(
    scaled_dot_score={
        "scaled dot: divided by d": lambda a: a.by_default(scale=1 / a.query.shape[-1]),
        "scaled dot: scale ignored": lambda a: a.oracle(scale=None),
        "scaled dot: scaled twice": lambda a: a.oracle() * a.query.shape[-1] ** -0.5,
    },
    bilinear_score={
        "bilinear: the kernel's numbers in the order of [e, d]": lambda a: a.oracle(
            kernel=a.kernel.reshape(a.kernel.shape[::-1]).T
        ),
        "bilinear: divided by sqrt(e)": lambda a: a.oracle() / np.sqrt(a.key.shape[-1]),
        "bilinear: tanh of the projected query": lambda a: np.tanh(a.query @ a.kernel) @ np.swapaxes(a.key, -1, -2),
    },
    cosine_score={
        "cosine: the key's norm alone": lambda a: ref.dot_score(a.query, ref.l2_normalize(a.key)),
        "cosine: normalised over the tokens": lambda a: ref.dot_score(
            ref.l2_normalize(a.query, axis=-2), ref.l2_normalize(a.key, axis=-2)
        ),
        "cosine: 1e-8 added to the norms": _cosine(lambda norm: norm + 1e-8),
        "cosine: a floor of 1e-8 under the norms": _cosine(lambda norm: np.maximum(norm, 1e-8)),
        "cosine: the zero vector is NaN": _cosine(lambda norm: norm),
    },
    additive_score={
        "additive: the bias on both sides": lambda a: a.multiplied(bias=2),
        "additive: divided by sqrt(h)": lambda a: a.oracle() / np.sqrt(a.out_kernel.size),
        "additive: the bias outside the tanh": lambda a: a.exchanged(tanh, after(_or_zero(a.bias))),
        "additive: tanh forgotten": lambda a: a.exchanged(tanh, left_out),
    },
    concat_score={
        "concat: [key; query]": lambda a: a.exchanged(joined, in_reverse),
        "concat: the bias outside the tanh": lambda a: a.exchanged(tanh, after(_or_zero(a.bias))),
        "concat: tanh forgotten": lambda a: a.exchanged(tanh, left_out),
        "concat: tanh after the sum": lambda a: np.tanh(a.exchanged(tanh, left_out)),
    },
    tanh_sum_score={
        "tanh sum: the mean": lambda a: a.oracle() / a.kernel.shape[-1],
        "tanh sum: the bias after the sum": lambda a: a.oracle(bias=None) + (0 if a.bias is None else np.sum(a.bias)),
        "tanh sum: [key; query]": lambda a: a.exchanged(joined, in_reverse),
        "tanh sum: tanh of the sum": lambda a: np.tanh(a.exchanged(tanh, left_out)),
    },
    location_score={
        "location: the bias forgotten": lambda a: a.oracle(bias=None),
        "location: a tanh": lambda a: np.tanh(a.oracle()),
        "location: [state; query]": lambda a: a.exchanged(joined, in_reverse),
    },
    gaussian_score={
        "gaussian: the distance, not its square": lambda a: (
            -np.sqrt(-a.oracle(bandwidth=0.5**0.5)) / (2 * a.bandwidth**2)
        ),
        "gaussian: the 2 forgotten": lambda a: 2 * a.oracle(),
        "gaussian: the bandwidth not squared": lambda a: a.oracle(bandwidth=np.sqrt(a.bandwidth)),
        "gaussian: a bandwidth times the distance": lambda a: a.oracle(bandwidth=1 / a.bandwidth),
        "gaussian: the height, not its logarithm": lambda a: np.exp(a.oracle()),
        "gaussian: the mean over the components": lambda a: a.oracle() / a.query.shape[-1],
    },
    dot_score={
        "dot: transposed": lambda query, key: np.swapaxes(ref.dot_score(query, key), -1, -2),
        "dot: in float16": lambda query, key: ref.dot_score(query.astype(np.float16), key.astype(np.float16)).astype(
            query.dtype
        ),
    },
    trilinear_score={
        "trilinear: [key; query; product]": _trilinear(lambda query, key: (key, query, query * key)),
        "trilinear: [product; query; key]": _trilinear(lambda query, key: (query * key, query, key)),
        "trilinear: the difference, not the product": _trilinear(lambda query, key: (query, key, query - key)),
    },
)


@MUTANTS.of("cosine_score", "cosine: squares overflow")
def cosine_whose_squares_overflow(query, key):
    query, key = np.broadcast_arrays(query[..., :, None, :], key[..., None, :, :])
    norms = np.sqrt(np.sum(query * query, -1)) * np.sqrt(np.sum(key * key, -1))
    return np.sum(query * key, -1) / np.where(norms == 0, 1, norms)


@MUTANTS.of("additive_score", "additive: tanh of each side")
def additive_tanh_of_each_side(a):
    sides = np.tanh(a.query @ a.query_kernel + _or_zero(a.bias)), np.tanh(a.key @ a.key_kernel)
    return (sides[0][..., :, None, :] + sides[1][..., None, :, :]) @ a.out_kernel


@MUTANTS.of("gaussian_score", "gaussian: the expanded square")
def gaussian_expanded(query, key, *, bandwidth=1.0):
    squares = np.sum(query * query, -1)[..., :, None] + np.sum(key * key, -1)[..., None, :]
    return ((2 * (query @ np.swapaxes(key, -1, -2)) - squares) / (2 * bandwidth**2)).astype(query.dtype)
