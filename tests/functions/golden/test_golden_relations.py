"""Numbers for the relations that come from outside: printed ones, by hand, and exact fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from exact import dot
from packages import with_golden_numbers
from rounding import assert_exact, assert_printed

S, PLUS, MINUS = np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.2, 0.2]), np.array([0.1, 0.1, 0.8])


@with_golden_numbers
def test_attention_triplet_of_three_regions(package):
    assert_exact(package, package.attention_triplet_loss(S, PLUS, MINUS), 0)
    assert_printed(package.attention_triplet_loss(S, MINUS, PLUS), 0.74)
    # by hand: .02 - .56 + 1
    assert_printed(package.attention_triplet_loss(S, PLUS, MINUS, margin=1), 0.46)


@with_golden_numbers
@pytest.mark.parametrize("mode", ["add", "mul"])
def test_differential_context_equals_fractions(package, mode):
    s, plus, minus, weight = [3, 1, 2], [1, 4, 0], [2, -1, 5], Fraction(3, 4)
    along = [(dot(s, plus) + dot(s, minus)) / Fraction(dot(s, s)) * c for c in s]
    across = [p + m - a for p, m, a in zip(plus, minus, along, strict=True)]
    moved = [weight * (a - b) for a, b in zip(along, across, strict=True)]
    expected = [c + d if mode == "add" else c * d for c, d in zip(s, moved, strict=True)]
    vectors = [np.array([*vector, 9.0]) for vector in (s, plus, minus)]
    mask = np.array([True, True, True, False])
    actual = package.differential_context(*vectors, mask, mode=mode, weight=float(weight))
    assert_exact(package, actual, [*expected, 0])


@with_golden_numbers
def test_differential_context_without_attention_takes_the_exemplars_away(package):
    actual = package.differential_context(np.zeros(3), PLUS, MINUS, weight=0.5)
    assert_printed(actual, [-0.35, -0.15, -0.5])


CTM = (np.eye(2), 2 * np.eye(2), np.array([[1.0, 0], [1, 1]]), np.array([0.1, -0.1]))


@with_golden_numbers
def test_relation_vector_of_a_case_with_itself_and_another(package):
    case, other = np.array([1.0, 0]), np.array([0.0, 1])
    assert_printed(package.relation_vector(case, case, *CTM), [1.431914, 0.475021])
    assert_printed(package.relation_vector(case, other, *CTM), [1.620152, 0.869892])
    assert_printed(package.relation_triplet_loss(case, other, case, *CTM, margin=0), 0.191356)
    assert_printed(package.relation_triplet_loss(case, case, other, *CTM, margin=0.5), 0.308644)


@with_golden_numbers
def test_relation_vector_equals_fractions(package):
    """The logistic function of log 3 is 3/4, of -log 7 is 1/8."""
    x, y = np.array([1.0, 0]), np.array([0.0, 1])
    x_kernel, y_kernel = np.array([[math.log(3), -math.log(7)], [5, 5]]), np.zeros((2, 2))
    kernel = [[4, -1, 2], [3, 8, 0]]
    expected = [Fraction(3, 4) * a + Fraction(1, 8) * b for a, b in zip(*kernel, strict=True)]
    actual = package.relation_vector(x, y, x_kernel, y_kernel, np.array(kernel, float), np.zeros(2))
    assert_exact(package, actual, expected)


FIELDS = np.array([[0.5, 0], [0, 0.5]])
FIELD_KERNEL = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]])


@with_golden_numbers
def test_field_attention_of_two_fields(package):
    pooled, weights = package.field_attention_pooling(
        np.array([1.0, -1]), FIELDS, FIELD_KERNEL, np.array([0, 0.1]), return_weights=True
    )
    assert_printed(weights, [0.451414, 0.548586])
    assert_printed(pooled, [1, -1, 0.225707, 0.274293])


@with_golden_numbers
def test_field_attention_equals_fractions(package):
    """A score of tanh(artanh(log 2)) = log 2 has twice the weight of a score of 0."""
    fields, target = np.array([[3.0, 0], [6, 9], [1, 1]]), np.array([5.0])
    bias = np.array([0, math.atanh(math.log(2)), 0.3])
    actual = package.field_attention_pooling(target, fields, np.zeros(3), bias, np.array([True, True, False]))
    assert_exact(package, actual, [5, 5, 6])


@with_golden_numbers
@pytest.mark.parametrize("mask", [None, np.array([True, True, False])])
def test_label_attention_equals_fractions(package, mask):
    """Width 4, so that the scale is 1/2; kernels make the scores log 2 times whole numbers."""
    labels = np.array([[1.0, 0], [0, 2], [1, 1]])
    query_kernel = 2 * math.log(2) * np.array([[1.0, 0, 0, 0], [0, 1, 0, 0]])
    key_kernel, value_kernel = np.array([[1.0, 1, 0, 0], [0, 1, 0, 0]]), np.array([[3.0], [5]])
    queries, keys, values = [[1, 0], [0, 2], [1, 1]], [[1, 1], [0, 2], [1, 2]], [3, 10, 8]
    count = 3 if mask is None else 2
    expected = []
    for query in queries[:count]:
        powers = [Fraction(2) ** dot(query, key) for key in keys[:count]]
        expected.append([dot(powers, values[:count]) / sum(powers)])
    expected += [[0]] * (3 - count)
    actual = package.label_attention(
        labels, mask, query_kernel=query_kernel, key_kernel=key_kernel, value_kernel=value_kernel
    )
    assert_exact(package, actual, expected)
