"""Mistakes in scores."""

import numpy as np
from conformance.mutants.mistakes import Mistakes

import attnpool_ref as ref

MUTANTS = Mistakes()


def _joined(*sides):
    """Vectors side by side: [..., n, m, d+e] of [..., n, 1, d] and [..., 1, m, e]."""
    shape = np.broadcast_shapes(*(side.shape[:-1] for side in sides))
    return np.concatenate([np.broadcast_to(side, shape + side.shape[-1:]) for side in sides], -1)


def _of_pairs(a):
    return a.query[..., :, None, :], a.key[..., None, :, :]


def _or_zero(bias):
    return 0 if bias is None else bias


@MUTANTS.plain("dot_score", "dot: transposed")
def dot_score_transposed(query, key):
    return np.swapaxes(ref.dot_score(query, key), -1, -2)


@MUTANTS.plain("dot_score", "dot: in float16")
def dot_score_in_float16(query, key):
    return ref.dot_score(query.astype(np.float16), key.astype(np.float16)).astype(query.dtype)


@MUTANTS.of("scaled_dot_score", "scaled dot: divided by d")
def scaled_dot_score_by_the_width_itself(a):
    return a.oracle(scale=1 / a.query.shape[-1] if a.scale is None else a.scale)


@MUTANTS.of("scaled_dot_score", "scaled dot: scale ignored")
def scaled_dot_score_ignores_the_scale(a):
    return a.oracle(scale=None)


@MUTANTS.of("scaled_dot_score", "scaled dot: scaled twice")
def scaled_dot_score_scales_twice(a):
    return a.oracle() * a.query.shape[-1] ** -0.5


@MUTANTS.of("bilinear_score", "bilinear: the kernel's numbers in the order of [e, d]")
def bilinear_kernel_laid_out_the_other_way(a):
    return a.oracle(kernel=a.kernel.reshape(a.kernel.shape[::-1]).T)


@MUTANTS.of("bilinear_score", "bilinear: divided by sqrt(e)")
def bilinear_score_scaled(a):
    return a.oracle() / np.sqrt(a.key.shape[-1])


@MUTANTS.of("bilinear_score", "bilinear: tanh of the projected query")
def bilinear_with_a_tanh(a):
    return np.tanh(a.query @ a.kernel) @ np.swapaxes(a.key, -1, -2)


@MUTANTS.of("cosine_score", "cosine: 1e-8 added to the norms")
def cosine_with_an_epsilon(a):
    norms = [np.linalg.norm(side, axis=-1, keepdims=True) + 1e-8 for side in (a.query, a.key)]
    return (a.query / norms[0]) @ np.swapaxes(a.key / norms[1], -1, -2)


@MUTANTS.of("cosine_score", "cosine: a floor of 1e-8 under the norms")
def cosine_with_a_floor(a):
    norms = [np.maximum(np.linalg.norm(side, axis=-1, keepdims=True), 1e-8) for side in (a.query, a.key)]
    return (a.query / norms[0]) @ np.swapaxes(a.key / norms[1], -1, -2)


@MUTANTS.of("cosine_score", "cosine: the zero vector is NaN")
def cosine_of_the_zero_vector_is_nan(a):
    norms = [np.linalg.norm(side, axis=-1, keepdims=True) for side in (a.query, a.key)]
    return (a.query / norms[0]) @ np.swapaxes(a.key / norms[1], -1, -2)


@MUTANTS.plain("cosine_score", "cosine: squares overflow")
def cosine_whose_squares_overflow(query, key):
    query, key = np.broadcast_arrays(query[..., :, None, :], key[..., None, :, :])
    norms = np.sqrt(np.sum(query * query, -1)) * np.sqrt(np.sum(key * key, -1))
    return np.sum(query * key, -1) / np.where(norms == 0, 1, norms)


@MUTANTS.of("cosine_score", "cosine: the key's norm alone")
def cosine_by_the_norm_of_the_key(a):
    return ref.dot_score(a.query, ref.l2_normalize(a.key))


@MUTANTS.of("cosine_score", "cosine: normalised over the tokens")
def cosine_normalized_over_the_tokens(a):
    return ref.dot_score(ref.l2_normalize(a.query, axis=-2), ref.l2_normalize(a.key, axis=-2))


def _hidden_of_two_kernels(a):
    return (a.query @ a.query_kernel)[..., :, None, :] + (a.key @ a.key_kernel)[..., None, :, :]


@MUTANTS.of("additive_score", "additive: the bias outside the tanh")
def additive_bias_outside_the_tanh(a):
    return (np.tanh(_hidden_of_two_kernels(a)) + _or_zero(a.bias)) @ a.out_kernel


@MUTANTS.of("additive_score", "additive: tanh forgotten")
def additive_without_tanh(a):
    return (_hidden_of_two_kernels(a) + _or_zero(a.bias)) @ a.out_kernel


@MUTANTS.of("additive_score", "additive: the bias on both sides")
def additive_bias_twice(a):
    return a.oracle(bias=None if a.bias is None else 2 * a.bias)


@MUTANTS.of("additive_score", "additive: tanh of each side")
def additive_tanh_of_each_side(a):
    sides = np.tanh(a.query @ a.query_kernel + _or_zero(a.bias)), np.tanh(a.key @ a.key_kernel)
    return (sides[0][..., :, None, :] + sides[1][..., None, :, :]) @ a.out_kernel


@MUTANTS.of("additive_score", "additive: divided by sqrt(h)")
def additive_scaled(a):
    return a.oracle() / np.sqrt(a.out_kernel.size)


@MUTANTS.of("concat_score", "concat: [key; query]")
def concat_key_first(a):
    query, key = _of_pairs(a)
    return np.tanh(_joined(key, query) @ a.kernel + _or_zero(a.bias)) @ a.out_kernel


@MUTANTS.of("concat_score", "concat: the bias outside the tanh")
def concat_bias_outside_the_tanh(a):
    return (np.tanh(_joined(*_of_pairs(a)) @ a.kernel) + _or_zero(a.bias)) @ a.out_kernel


@MUTANTS.of("concat_score", "concat: tanh forgotten")
def concat_without_tanh(a):
    return (_joined(*_of_pairs(a)) @ a.kernel + _or_zero(a.bias)) @ a.out_kernel


@MUTANTS.of("concat_score", "concat: tanh after the sum")
def concat_tanh_last(a):
    return np.tanh(concat_without_tanh(a))


@MUTANTS.of("tanh_sum_score", "tanh sum: the mean")
def tanh_sum_as_mean(a):
    return a.oracle() / a.kernel.shape[-1]


@MUTANTS.of("tanh_sum_score", "tanh sum: [key; query]")
def tanh_sum_key_first(a):
    query, key = _of_pairs(a)
    return np.sum(np.tanh(_joined(key, query) @ a.kernel + _or_zero(a.bias)), -1)


@MUTANTS.of("tanh_sum_score", "tanh sum: tanh of the sum")
def tanh_sum_the_other_way_round(a):
    return np.tanh(np.sum(_joined(*_of_pairs(a)) @ a.kernel + _or_zero(a.bias), -1))


@MUTANTS.of("tanh_sum_score", "tanh sum: the bias after the sum")
def tanh_sum_bias_last(a):
    return a.oracle(bias=None) + (0 if a.bias is None else np.sum(a.bias))


@MUTANTS.of("location_score", "location: [state; query]")
def location_state_first(a):
    return np.concatenate([a.state, a.query], -1) @ a.kernel + _or_zero(a.bias)


@MUTANTS.of("location_score", "location: the bias forgotten")
def location_without_bias(a):
    return a.oracle(bias=None)


@MUTANTS.of("location_score", "location: a tanh")
def location_with_a_tanh(a):
    return np.tanh(a.oracle())


@MUTANTS.of("trilinear_score", "trilinear: [key; query; product]")
def trilinear_key_first(a):
    query, key = _of_pairs(a)
    return _joined(key, query, query * key) @ a.kernel


@MUTANTS.of("trilinear_score", "trilinear: [product; query; key]")
def trilinear_product_first(a):
    query, key = _of_pairs(a)
    return _joined(query * key, query, key) @ a.kernel


@MUTANTS.of("trilinear_score", "trilinear: the difference, not the product")
def trilinear_difference(a):
    query, key = _of_pairs(a)
    return _joined(query, key, query - key) @ a.kernel


@MUTANTS.of("gaussian_score", "gaussian: the distance, not its square")
def gaussian_of_the_distance(a):
    return -np.sqrt(-a.oracle(bandwidth=0.5**0.5)) / (2 * a.bandwidth**2)


@MUTANTS.plain("gaussian_score", "gaussian: the expanded square")
def gaussian_expanded(query, key, *, bandwidth=1.0):
    squares = np.sum(query * query, -1)[..., :, None] + np.sum(key * key, -1)[..., None, :]
    return ((2 * (query @ np.swapaxes(key, -1, -2)) - squares) / (2 * bandwidth**2)).astype(query.dtype)


@MUTANTS.of("gaussian_score", "gaussian: the 2 forgotten")
def gaussian_without_the_2(a):
    return 2 * a.oracle()


@MUTANTS.of("gaussian_score", "gaussian: the bandwidth not squared")
def gaussian_bandwidth_not_squared(a):
    return a.oracle(bandwidth=np.sqrt(a.bandwidth))


@MUTANTS.of("gaussian_score", "gaussian: a bandwidth times the distance")
def gaussian_bandwidth_as_a_factor(a):
    return a.oracle(bandwidth=1 / a.bandwidth)


@MUTANTS.of("gaussian_score", "gaussian: the height, not its logarithm")
def gaussian_height(a):
    return np.exp(a.oracle())


@MUTANTS.of("gaussian_score", "gaussian: the mean over the components")
def gaussian_mean_over_the_components(a):
    return a.oracle() / a.query.shape[-1]
