"""Numbers for the pairs that come from outside: printed ones, and exact fractions.

With ``scale = log 2`` a softmax over integer scores is a quotient of powers of 2, so that Python's fractions give the
result exactly, by loops over the definition.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from exact import dot
from packages import with_golden_numbers
from rounding import assert_exact, assert_printed

LOG2 = math.log(2)


def times(a, b):
    return [p * q for p, q in zip(a, b, strict=True)]


def base2_softmax(scores):
    powers = [Fraction(2) ** s for s in scores]
    return [p / sum(powers) for p in powers]


def average(weights, vectors):
    return [dot(weights, column) for column in zip(*vectors, strict=True)]


@with_golden_numbers
def test_code_wise_attention_prefers_the_least_negative(package):
    # without a mask the zero pad would take .665 of the weight
    context, labels = np.array([[1.0, 0], [2, 0], [0, 0]]), np.array([[-1.0, 0], [-2, 0]])
    pooled, weights = package.code_wise_attention(
        labels, context, context_mask=np.array([True, True, False]), return_weights=True
    )
    assert_printed(weights, [0.731059, 0.268941, 0])
    assert_printed(pooled, [1.268941, 0])


@with_golden_numbers
def test_a_padded_label_does_not_lift_code_wise_scores(package):
    labels, mask = np.array([[-1.0, 0], [0, 0]]), np.array([True, False])
    _, weights = package.code_wise_attention(labels, np.array([[1.0, 0], [2, 0]]), mask, return_weights=True)
    assert_printed(weights, [0.731059, 0.268941])


@with_golden_numbers
def test_mask_attention_and_the_separation_after_it(package):
    query, context = np.array([[1.0, 0], [0, 2]]), np.array([[3.0, 0], [1, 1]])
    chosen, weights = package.mask_attention(query, context, return_weights=True)
    assert_printed(weights, [[0.952574, 0.047426], [0.268941, 0.731059]])
    assert_printed(chosen, [[0.952574, 0.094852], [0.268941, 1.462117]])
    similar, dissimilar = package.orthogonal_decomposition(context, chosen)
    assert_printed(similar, [[2.970547, 0.295790], [0.210647, 1.145193]])
    assert_printed(dissimilar, [[0.029453, -0.295790], [0.789353, -0.145193]], terms=32)


X = [[[1, 0], [0, 2], [1, 1]], [[2, -1], [1, 3], [0, 1]]]
X_MASK = [[1, 1, 0], [1, 0, 1]]
Y = [[[1, 1], [0, 1], [2, 0], [1, -1]], [[1, 0], [0, -1], [1, 2], [3, 3]], [[0, 1], [1, 0], [1, 1], [2, 2]]]
Y_MASK = [[1, 1, 0, 1], [0, 1, 1, 0], [0, 0, 0, 0]]


def pooled_by_fractions(x, y, reduction):
    """One side of one pair, of real tokens alone."""
    if not x:
        return [Fraction(0)] * 2
    scores = [[dot(token, other) for other in y] for token in x]
    reduced = [(max(row) if reduction == "max" else sum(row)) if row else 0 for row in scores]
    return average(base2_softmax(reduced), x)


@with_golden_numbers
@pytest.mark.parametrize("reduction", ["sum", "max"])
def test_all_pairs_equal_fractions(package, reduction):
    real_x = [[t for t, m in zip(*pair, strict=True) if m] for pair in zip(X, X_MASK, strict=True)]
    real_y = [[t for t, m in zip(*pair, strict=True) if m] for pair in zip(Y, Y_MASK, strict=True)]
    x_pooled, y_pooled = package.cross_attention_pooling_all_pairs(
        np.array(X, float), np.array(Y, float), np.array(X_MASK), np.array(Y_MASK), reduction=reduction, scale=LOG2
    )
    assert_exact(package, x_pooled, [[pooled_by_fractions(x, y, reduction) for y in real_y] for x in real_x])
    assert_exact(package, y_pooled, [[pooled_by_fractions(y, x, reduction) for y in real_y] for x in real_x])


@with_golden_numbers
def test_code_wise_attention_equals_fractions(package):
    labels, context = [[1, 0], [0, -1], [-1, 2]], [[2, 1], [0, -3], [1, 1], [-1, 0]]
    weights = base2_softmax([max(dot(token, label) for label in labels) for token in context])
    pooled, actual = package.code_wise_attention(
        np.array(labels, float), np.array(context, float), scale=LOG2, return_weights=True
    )
    assert_exact(package, actual, weights)
    assert_exact(package, pooled, average(weights, context))


@with_golden_numbers
def test_the_scale_comes_before_the_maximum(package):
    """With a negative scale the best label is the one with the smallest product."""
    labels, context = [[1], [3]], [[1], [-2]]
    weights = base2_softmax([max(-dot(token, label) for label in labels) for token in context])
    _, actual = package.code_wise_attention(
        np.array(labels, float), np.array(context, float), scale=-LOG2, return_weights=True
    )
    assert_exact(package, actual, weights)


@with_golden_numbers
def test_mask_attention_equals_fractions(package):
    query, context = [[1, 0], [0, -1], [-1, 2]], [[2, 1], [0, -3], [1, 1], [-1, 0]]
    weights = [base2_softmax([dot(token, choice) for choice in query]) for token in context]
    chosen, actual = package.mask_attention(
        np.array(query, float), np.array(context, float), scale=LOG2, return_weights=True
    )
    assert_exact(package, actual, weights)
    assert_exact(package, chosen, [average(row, query) for row in weights])


@with_golden_numbers
def test_bidaf_attention_equals_fractions(package):
    context, query, kernel = [[1, 0], [0, 2], [-1, 1]], [[1, 1], [0, 2], [3, 0], [1, -1]], [1, -1, 2, 0, 1, -2]
    scores = [[dot([*h, *u, *times(h, u)], kernel) for u in query] for h in context]
    to_query = [base2_softmax(row) for row in scores]
    to_context = base2_softmax([max(row) for row in scores])
    summary = average(to_context, context)
    joined = []
    for h, row in zip(context, to_query, strict=True):
        u = average(row, query)
        joined.append([*h, *u, *times(h, u), *times(h, summary)])
    actual, (actual_to_query, actual_to_context) = package.bidaf_attention(
        np.array(context, float), np.array(query, float), LOG2 * np.array(kernel), return_weights=True
    )
    assert_exact(package, actual_to_query, to_query)
    assert_exact(package, actual_to_context, to_context)
    assert_exact(package, actual, joined)
