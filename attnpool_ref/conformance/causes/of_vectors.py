"""Mistakes about vectors: norms, layer normalization, gates, concatenations, heads."""

import numpy as np

from attnpool_ref.conformance.causes.mistake import BOTH, mistake, powers_of_ten
from attnpool_ref.conformance.causes.of_weights import EPSILONS
from attnpool_ref.primitives import (
    concatenate_heads,
    cosines,
    gated,
    joined,
    pairs_of,
    project_to_heads,
    sigmoid,
    standardized,
    tanh,
    unit_vector,
)

BY_A_VIEW = "splits the heads by a view: reshape to [..., L, H, c] first, then move the axis of heads"


@mistake("an epsilon added to the norm", unit_vector, numbers=EPSILONS)
def added_to_the_norm(a, x, axis=-1):
    """A number is added."""
    return x / (_norm(x, axis) + a.number)


@mistake("a floor under the norm", unit_vector, numbers=EPSILONS)
def below_the_norm(a, x, axis=-1):
    """The norm is at least a number."""
    return x / np.maximum(_norm(x, axis), a.number)


@mistake("an epsilon under the root", unit_vector, numbers=EPSILONS)
def under_the_root(a, x, axis=-1):
    """A number is added to the square."""
    return x / np.sqrt(_norm(x, axis) ** 2 + a.number)


def _norm(x, axis):
    return np.sqrt(np.sum(x * x, axis, keepdims=True))


@mistake("the zero vector is NaN", unit_vector)
def zero_over_zero(a, x, axis=-1):
    """The norm may be 0."""
    return x / _norm(x, axis)


@mistake("squares overflow or vanish: scale by the largest component first", unit_vector)
def narrow_squares(a, x, axis=-1):
    """Squares are those of float32."""
    square = (_norm(x, axis) ** 2).astype(np.float32)
    return x / np.where(square == 0, 1, np.sqrt(square))


@mistake("does not divide by the norm", unit_vector)
def as_it_is(a, x, axis=-1):
    """Vectors keep their length."""
    return x


@mistake("does not divide by the first of several norms", unit_vector)
def first_as_it_is(a, x, axis=-1):
    """The first vectors keep their length."""
    return a.right(x, axis) if a.index else x


@mistake("divides by the sum of magnitudes, not by the Euclidean norm", unit_vector)
def by_the_sum(a, x, axis=-1):
    """The norm is that of L1."""
    total = np.sum(np.abs(x), axis, keepdims=True)
    return x / np.where(total == 0, 1, total)


@mistake("divides by the square of the norm", unit_vector)
def by_the_square(a, x, axis=-1):
    """No root is taken."""
    square = _norm(x, axis) ** 2
    return x / np.where(square == 0, 1, square)


@mistake("normalizes over the wrong axis", unit_vector)
def along_another_axis(a, x, axis=-1):
    """The norm is over the axis before."""
    return a.right(x, axis - 1) if x.ndim > 1 else x


@mistake("divides by the norm of the whole array", unit_vector)
def of_the_whole_array(a, x, axis=-1):
    """All vectors have one norm."""
    norm = np.sqrt(np.sum(x * x))
    return x / (norm or 1)


@mistake("an epsilon added to the product of the norms", cosines, numbers=EPSILONS)
def added_to_the_product(a, x, y):
    """A number is added to the denominator."""
    return x @ np.swapaxes(y, -1, -2) / (_norm(x, -1) * np.swapaxes(_norm(y, -1), -1, -2) + a.number)


@mistake("a floor under the product of the norms", cosines, numbers=EPSILONS)
def below_the_product(a, x, y):
    """The denominator is at least a number."""
    return x @ np.swapaxes(y, -1, -2) / np.maximum(_norm(x, -1) * np.swapaxes(_norm(y, -1), -1, -2), a.number)


@mistake("divides one of the vectors alone by its norm", cosines)
def one_norm(a, x, y):
    """Only the first vector is normalized."""
    return a.right(x, y) * np.swapaxes(_norm(y, -1), -1, -2)


@mistake(
    "the layer normalization has an epsilon of its own",
    standardized,
    numbers=powers_of_ten(1e-5, 1e-6, 1e-12, 1e-3, 1e-8, 1e-7, 1e-4),
)
def own_epsilon(a, x, epsilon):
    """The epsilon is a number."""
    return a.right(x, np.float64(a.number))


@mistake("the layer normalization divides by d - 1", standardized)
def unbiased(a, x, epsilon):
    """The variance is that of a sample."""
    centered = x - np.mean(x, -1, keepdims=True)
    return centered / np.sqrt(np.sum(centered**2, -1, keepdims=True) / (x.shape[-1] - 1) + epsilon)


@mistake("adds epsilon to the standard deviation of the layer normalization: it belongs under the root", standardized)
def epsilon_outside(a, x, epsilon):
    """The root is of the variance alone."""
    centered = x - np.mean(x, -1, keepdims=True)
    return centered / (np.sqrt(np.mean(centered**2, -1, keepdims=True)) + epsilon)


@mistake("the layer normalization divides by N - 1, and adds epsilon outside of the root", standardized)
def annotated(a, x, epsilon):
    """The layer normalization of The Annotated Transformer."""
    centered = x - np.mean(x, -1, keepdims=True)
    return centered / (np.sqrt(np.sum(centered**2, -1, keepdims=True) / (x.shape[-1] - 1)) + epsilon)


@mistake("divides by the root of the mean of squares, as RMSNorm does: subtract the mean first", standardized)
def not_centered(a, x, epsilon):
    """The mean is not subtracted."""
    return x / np.sqrt(np.mean(x**2, -1, keepdims=True) + epsilon)


@mistake("subtracts the mean, but does not divide by the standard deviation", standardized)
def not_divided_by_the_deviation(a, x, epsilon):
    """The variance stays."""
    return x - np.mean(x, -1, keepdims=True)


@mistake("no layer normalization", standardized)
def not_standardized(a, x, epsilon):
    """The vectors stay as they are."""
    return x


# Hidden layers and heads


@mistake("tanh in both branches: the gate is a sigmoid", gated)
def tanh_of_the_gate(a, units, gate):
    """The gate is a tanh."""
    return units * np.tanh(gate)


@mistake("adds the branches: the gate multiplies the hidden units", gated)
def branches_added(a, units, gate):
    """The gate is added."""
    return units + sigmoid(gate)


@mistake("the gate has no sigmoid", gated)
def without_a_sigmoid(a, units, gate):
    """The gate is linear."""
    return units * gate


@mistake("a sigmoid in both branches: the activation is applied to the hidden units", gated)
def sigmoid_of_both(a, units, gate):
    """The units, of which tanh has been taken, are passed through a sigmoid."""
    return a.right(sigmoid(np.arctanh(units)), gate)


@mistake("no tanh", tanh)
def without_a_tanh(a, x):
    """The units are linear."""
    return x


@mistake("ReLU in place of the tanh", tanh)
def relu_in_place(a, x):
    """The units are cut at 0."""
    return np.maximum(x, 0)


@mistake("a sigmoid in place of the tanh", tanh)
def sigmoid_in_place(a, x):
    """The units are between 0 and 1."""
    return sigmoid(x)


@mistake("the halves of a concatenation are exchanged", joined)
def the_other_way(a, *parts):
    """The parts stand in the other order."""
    return np.concatenate(parts[::-1], -1)


@mistake(BY_A_VIEW, project_to_heads, raw=BOTH)
def by_a_view(a, x, kernel, bias):
    """[L, Hc] is read as [H, L, c]."""
    heads = np.swapaxes(a.right(x, kernel, bias), -3, -2)
    return heads.reshape(*heads.shape[:-3], heads.shape[-2], heads.shape[-3], heads.shape[-1])


@mistake(BY_A_VIEW, project_to_heads, raw=BOTH)
def keys_and_values_by_a_view(a, x, kernel, bias):
    """Only the queries are split right."""
    return by_a_view(a, x, kernel, bias) if a.index else a.right(x, kernel, bias)


@mistake(
    "takes every H-th feature for a head: reshape to [..., L, H, c], not [..., L, c, H]", project_to_heads, raw=BOTH
)
def interleaved(a, x, kernel, bias):
    """[L, Hc] is read as [L, c, H]."""
    heads = np.swapaxes(a.right(x, kernel, bias), -3, -2)
    *batch, length, number, c = heads.shape
    return np.moveaxis(heads.reshape(*batch, length, c, number), -1, -3)


@mistake("merges the heads without moving their axis: [..., H, n, c] to [..., n, H, c] first", concatenate_heads)
def by_a_reshape(a, heads):
    """[H, n, c] is read as [n, Hc]."""
    *batch, number, n, c = heads.shape
    return heads.reshape(*batch, n, number * c)


@mistake("the heads and the features of a head are exchanged in the concatenation", concatenate_heads)
def features_first(a, heads):
    """[n, c, H] in place of [n, H, c]."""
    *batch, number, n, c = heads.shape
    return np.moveaxis(heads, -3, -1).reshape(*batch, n, number * c)


# Pairs


@mistake("pairs of a padded query are not masked: its row must be 0", pairs_of, raw=BOTH, empty=True)
def of_real_keys(a, first, second):
    """Only the second mask counts."""
    return a.right(np.ones_like(first), second)


@mistake("pairs with a padded token of the other sequence are not masked", pairs_of, raw=BOTH, empty=True)
def of_real_queries(a, first, second):
    """Only the first mask counts."""
    return a.right(first, np.ones_like(second))


@mistake("pairs are not masked: padding counts in the scores of real tokens", pairs_of, raw=BOTH, empty=True)
def of_all(a, first, second):
    """No mask counts."""
    return a.right(np.ones_like(first), np.ones_like(second))


@mistake(
    "takes pairs of two padded tokens for real: compares the masks where both must be True",
    pairs_of,
    raw=BOTH,
    empty=True,
)
def of_equal_masks(a, first, second):
    """Padding sees padding."""
    return first[..., :, None] == second[..., None, :]
