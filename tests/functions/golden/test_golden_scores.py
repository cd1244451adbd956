"""Numbers for the scores that come from outside: printed ones, exact fractions, and 40 decimals by loops."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from packages import with_golden_numbers
from rounding import assert_exact, assert_printed

QUERY, KEY = np.array([[1.0, 2]]), np.array([[1.0], [0], [-1]])
QUERY_KERNEL, KEY_KERNEL = np.array([[0.1, 0.3], [0.2, 0.4]]), np.array([[1.0, -1]])
LINES = np.array([[1.0, 0], [1, 1]])
OTHERS = np.array([[1.0, 0], [0, 1], [1, 2]])


def tanh(x):
    twice = (2 * x).exp()
    return (twice - 1) / (twice + 1)


@with_golden_numbers
def test_bilinear_score_by_loops(package):
    query, key = [[1, 2, 3], [0, -1, 4]], [[5, -2], [7, 1], [0, 3]]
    kernel = [[1, -1], [2, 3], [0, 5]]
    expected = [
        [sum(a * kernel[i][j] * b for i, a in enumerate(q) for j, b in enumerate(k)) for k in key] for q in query
    ]
    actual = package.bilinear_score(np.array(query, float), np.array(key, float), np.array(kernel, float))
    assert_exact(package, actual, expected)


@with_golden_numbers
def test_products_of_small_integers(package):
    query, key = np.array([[1.0, -2, 3, 0]]), np.array([[4.0, 5, 6, 9], [0, 1, -1, 2]])
    assert_exact(package, package.dot_score(query, key), [[12, -5]])
    assert_exact(package, package.scaled_dot_score(query, key), [[6, Fraction(-5, 2)]])  # by sqrt(4)
    assert_exact(package, package.scaled_dot_score(query, key, scale=0.25), [[3, Fraction(-5, 4)]])


@with_golden_numbers
def test_cosine_matrix_of_the_lexical_decomposition(package):
    assert_printed(package.cosine_score(LINES, OTHERS), [[1, 0, 0.447214], [0.707107, 0.707107, 0.948683]])


@with_golden_numbers
def test_additive_score_of_three_keys(package):
    actual = package.additive_score(QUERY, KEY, QUERY_KERNEL, KEY_KERNEL, np.array([1.0, 2]))
    assert_printed(actual, [[1.104484, 2.063115, 1.478787]])


@with_golden_numbers
def test_tanh_sum_score_of_three_keys(package):
    actual = package.tanh_sum_score(QUERY, KEY, np.concatenate([QUERY_KERNEL, KEY_KERNEL]))
    assert_printed(actual, [[1.004816, 1.262616, 0.508335]])


@with_golden_numbers
@pytest.mark.parametrize("name", ["additive_score", "concat_score"])
def test_hidden_layer_with_a_bias_to_forty_decimals(package, name):
    query, key = [[0.5, -1.0], [2.0, 0.25]], [[1.0, 0.0, -0.5], [0.75, 0.5, 1.0], [-1.0, 2.0, 0.0]]
    of_query = [[0.5, 1.0, -0.25, 0.0], [1.5, -0.5, 0.125, 1.0]]
    of_key = [[0.25, -1.0, 0.5, 0.75], [1.0, 0.5, -0.5, 0.0], [0.0, 0.25, 2.0, -0.125]]
    bias, out = [0.5, -0.25, 0.0, 1.0], [1.0, -2.0, 0.5, 0.25]
    with localcontext(prec=40):

        def hidden(q, k, c):
            part = sum(Decimal(a) * Decimal(row[c]) for a, row in zip(q, of_query, strict=True))
            return part + sum(Decimal(a) * Decimal(row[c]) for a, row in zip(k, of_key, strict=True)) + Decimal(bias[c])

        expected = [[sum(Decimal(w) * tanh(hidden(q, k, c)) for c, w in enumerate(out)) for k in key] for q in query]
    kernels = [np.array(of_query), np.array(of_key)]
    kernels = kernels if name == "additive_score" else [np.concatenate(kernels)]
    actual = getattr(package, name)(np.array(query), np.array(key), *kernels, np.array(out), bias=np.array(bias))
    assert_exact(package, actual, expected, terms=32)


@with_golden_numbers
def test_location_score_of_the_notebook(package):
    """Printed weights; their ratios are the differences of the scores. The kernel is stored (in, out)."""
    kernel = np.arange(12).reshape(3, 4).T / 10
    query, state = np.array([[1.0, 0]]), np.array([[0.0, 1]])
    assert_exact(
        package, package.location_score(query, state, kernel), [[Fraction(3, 10), Fraction(11, 10), Fraction(19, 10)]]
    )
    assert_printed(
        package.masked_softmax(package.location_score(query, state, kernel)), [[0.122271, 0.272118, 0.605611]]
    )
    shifted = package.location_score(query, state, kernel, bias=np.array([0.5, 0, -1]))
    assert_exact(package, shifted, [[Fraction(8, 10), Fraction(11, 10), Fraction(9, 10)]])


@with_golden_numbers
def test_trilinear_scores_of_bidaf(package):
    context, query = np.array([[1.0, 0], [0, 1], [1, 1]]), np.array([[1.0, 0], [0, 2]])
    actual = package.trilinear_score(context, query, np.arange(1, 7) / 10)
    assert_exact(package, actual, np.array([[9, 9], [5, 22], [11, 23]]) / 10)


@with_golden_numbers
def test_gaussian_score_in_fractions(package):
    query, key, bandwidth = [[3, -1], [0, 2]], [[1, 1], [0, 2], [-2, 5]], Fraction(3, 4)
    expected = [
        [-sum(Fraction(a - b) ** 2 for a, b in zip(q, k, strict=True)) / (2 * bandwidth**2) for k in key] for q in query
    ]
    actual = package.gaussian_score(np.array(query, float), np.array(key, float), bandwidth=float(bandwidth))
    assert_exact(package, actual, expected)


@with_golden_numbers
def test_gaussian_score_does_not_cancel_far_from_the_origin(package):
    """The expanded square loses a difference of 1 beside 4096: its terms are 2^24 and round to multiples of 2."""
    actual = package.gaussian_score(np.array([[4096.5, 4096.0]]), np.array([[4096.0, 4095.75]]))
    assert_exact(package, actual, [[Fraction(-5, 32)]], terms=1)
