"""Numbers for attention that come from outside: printed ones, exact fractions, and 40 decimals by loops."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from packages import with_golden_numbers
from rounding import assert_exact, assert_printed

QUERY, KEY = np.array([[1.0, 2]]), np.array([[1.0], [0], [-1]])
QUERY_KERNEL, KEY_KERNEL = np.array([[0.1, 0.3], [0.2, 0.4]]), np.array([[1.0, -1]])
VALUE = np.array([[1.0, 0], [0, 10], [0, 0]])


@with_golden_numbers
def test_attention_of_equal_scores_averages_exactly(package):
    value = np.array([[1.0], [2], [6], [99]])
    for normalizer in ("softmax", "sparsemax", "entmax15"):
        pooled = package.attend(np.full((1, 4), 5.0), value, np.array([[1, 1, 1, 0]]), normalizer=normalizer)
        assert_exact(package, pooled, [[3]])


@with_golden_numbers
def test_sparsemax_attends_to_two_of_three(package):
    pooled, weights = package.attend(
        np.array([[0.5, 0.25, -1.0]]), np.array([[8.0], [16], [99]]), normalizer="sparsemax", return_weights=True
    )
    assert_exact(package, weights, [[Fraction(5, 8), Fraction(3, 8), 0]])
    assert_exact(package, pooled, [[11]])


@with_golden_numbers
def test_additive_attention_of_three_keys(package):
    pooled, weights = package.additive_attention(
        QUERY, KEY, VALUE, QUERY_KERNEL, KEY_KERNEL, np.array([1.0, 2]), return_weights=True
    )
    assert_printed(weights, [[0.197546, 0.515226, 0.287228]])
    assert_printed(pooled, [[0.197546, 5.15226]], decimals=5)


@with_golden_numbers
def test_tanh_sum_attention_of_three_keys(package):
    pooled, weights = package.tanh_sum_attention(
        QUERY, KEY, VALUE, np.concatenate([QUERY_KERNEL, KEY_KERNEL]), return_weights=True
    )
    assert_printed(weights, [[0.344501, 0.445812, 0.209687]])
    assert_printed(pooled, [[0.344501, 4.45812]], decimals=5)


@with_golden_numbers
@pytest.mark.parametrize(
    ("mask", "weights", "result"),
    [(None, [0.122271, 0.272118, 0.605611], 1.666508), ([1, 1, 0], [0.310026, 0.689974, 0], 1 + 1.689974)],
)
def test_location_attention_of_the_notebook(package, mask, weights, result):
    """Its kernel is stored (in, out): a row for each of [query; state]; the masked result is the query's 1 and .310026 + 2 * .689974."""
    actual, actual_weights = package.location_attention(
        np.array([[1.0, 0]]),
        np.array([[0.0, 1]]),
        np.array([[1.0], [2], [0]]),
        np.arange(12).reshape(3, 4).T / 10,
        np.zeros(3),
        np.ones((3, 1)),
        np.zeros(1),
        None if mask is None else np.array(mask),
        return_weights=True,
    )
    assert_printed(actual_weights, [weights])
    assert_printed(actual, [[result]])


HEADS = {
    "query": [[0.5, -1.0, 2.0], [1.0, 0.25, 0.0]],
    "x": [[1.0, 0.5, -0.5], [-1.0, 2.0, 0.0], [0.25, 0.75, 1.5], [9.0, 9.0, 9.0]],
    "query_kernel": [[[0.5, 1.0], [-1.0, 0.0]], [[0.25, -0.5], [1.0, 1.0]], [[0.0, 1.5], [0.5, -0.25]]],
    "key_kernel": [[[1.0, 0.0], [0.5, 0.5]], [[-0.5, 2.0], [0.0, -1.0]], [[0.25, 0.25], [1.0, 0.5]]],
    "value_kernel": [
        [[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]],
        [[0.5, -1.0, 0.0], [2.0, 0.5, 0.0]],
        [[0.0, 1.0, 1.0], [-0.5, 0.0, 1.5]],
    ],
    "out_kernel": [
        [[1.0, 0.0, 0.5, -1.0], [0.0, 2.0, 0.0, 1.0], [0.5, 0.5, -1.0, 0.0]],
        [[0.0, 1.0, 1.0, 0.0], [-1.0, 0.0, 0.25, 0.5], [2.0, 0.0, 0.0, 1.0]],
    ],
    "query_bias": [[0.5, -0.5], [0.0, 0.25]],
    "key_bias": [[1.0, 2.0], [-3.0, 0.5]],
    "value_bias": [[0.5, 0.0, -1.0], [1.0, 0.25, 0.0]],
    "out_bias": [0.0, 1.0, -2.0, 0.5],
}
REAL = 3
"""The last token of ``HEADS["x"]`` is padding."""


def heads_by_loops():
    """Results and weights to forty decimals, an index at a time."""
    given = {key: np.vectorize(Decimal, otypes=[object])(np.array(value)) for key, value in HEADS.items()}
    query, x = given["query"], given["x"]
    (n, d), heads, c, c2 = query.shape, 2, 2, 3
    result = [[value for value in given["out_bias"]] for _ in range(n)]
    weights = [[[Decimal(0)] * len(x) for _ in range(n)] for _ in range(heads)]

    def project(token, name, head, column):
        kernel, bias = given[f"{name}_kernel"], given[f"{name}_bias"]
        return sum(token[a] * kernel[a, head, column] for a in range(d)) + bias[head, column]

    for head in range(heads):
        for i in range(n):
            scores = [
                sum(project(query[i], "query", head, a) * project(x[j], "key", head, a) for a in range(c))
                / Decimal(c).sqrt()
                for j in range(REAL)
            ]
            total = sum(score.exp() for score in scores)
            for j in range(REAL):
                weights[head][i][j] = scores[j].exp() / total
            for a in range(c2):
                attended = sum(weights[head][i][j] * project(x[j], "value", head, a) for j in range(REAL))
                for column in range(len(result[i])):
                    result[i][column] += attended * given["out_kernel"][head, a, column]
    return result, weights


@with_golden_numbers
@pytest.mark.parametrize("name", ["multi_head_attention", "multi_head_attention_pooling"])
def test_two_heads_by_loops_to_forty_decimals(package, name):
    with localcontext(prec=40):
        expected, expected_weights = heads_by_loops()
    parameters = {key: np.array(value) for key, value in HEADS.items() if key.endswith(("_kernel", "_bias"))}
    query, x, mask = np.array(HEADS["query"]), np.array(HEADS["x"]), np.arange(4) < REAL
    if name == "multi_head_attention":
        result, weights = package.multi_head_attention(query, x, x, mask, **parameters, return_weights=True)
    else:
        result, weights = package.multi_head_attention_pooling(x, mask, query=query, **parameters, return_weights=True)
    assert_exact(package, weights, expected_weights, terms=64)
    assert_exact(package, result, expected, terms=64)


SHAPES = {
    "boxcar": lambda squared: Fraction(squared <= 4),
    "epanechnikov": lambda squared: max(Fraction(3, 4) * (1 - squared / 4), Fraction(0)),
    "constant": lambda squared: Fraction(1),
    "triangular": lambda squared: max(1 - Fraction(np.sqrt(float(squared))) / 2, Fraction(0)),
}
"""Heights at bandwidth 2 by the squared distance, whose root is rational in the case."""


@with_golden_numbers
@pytest.mark.parametrize("kernel", SHAPES)
def test_kernel_regression_in_fractions(package, kernel):
    """Distances 0, 1, 5/4, 2 (the boxcar's edge) and 5, all of them exact; the last key is padding."""
    query, value = [0, 0], [3, 5, 7, 11, 13, 99]
    key = [[0, 0], [1, 0], [Fraction(3, 4), 1], [0, -2], [3, 4], [0, 1]]
    heights = [SHAPES[kernel](sum(Fraction(a - b) ** 2 for a, b in zip(query, k, strict=True))) for k in key[:5]]
    weights = [height / sum(heights) for height in heights] + [Fraction(0)]
    actual, actual_weights = package.kernel_regression(
        np.array([query], float),
        np.array(key).astype(float),
        np.array(value, float)[:, None],
        np.arange(6) < 5,
        kernel=kernel,
        bandwidth=2.0,
        return_weights=True,
    )
    assert_exact(package, actual_weights, [weights])
    assert_exact(package, actual, [[sum(w * v for w, v in zip(weights, value, strict=True))]])


@with_golden_numbers
def test_gaussian_regression_to_forty_decimals(package):
    query, key, value, bandwidth = 0.5, [0.0, 1.5, -2.0], [1.0, 4.0, 16.0], 0.75
    with localcontext(prec=40):
        heights = [(-((Decimal(query) - Decimal(k)) ** 2) / (2 * Decimal(bandwidth) ** 2)).exp() for k in key]
        expected = sum(h * Decimal(v) for h, v in zip(heights, value, strict=True)) / sum(heights)
    actual = package.kernel_regression(
        np.array([[query]]), np.array(key)[:, None], np.array(value)[:, None], bandwidth=bandwidth
    )
    assert_exact(package, actual, [[expected]])


@with_golden_numbers
def test_narrow_gaussian_does_not_underflow(package):
    """exp(-800) and exp(-1250) are 0 in float32 and 0 / 0 is NaN; in log space the nearer key has it all."""
    pooled, weights = package.kernel_regression(
        np.array([[0.0]]), np.array([[5.0], [4.0]]), np.array([[1.0], [2.0]]), bandwidth=0.1, return_weights=True
    )
    assert_exact(package, weights, [[0, 1]])
    assert_exact(package, pooled, [[2]])
