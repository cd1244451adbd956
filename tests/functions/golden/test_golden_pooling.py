"""Numbers for masks, the softmax, poolings and pairs that come from outside: printed ones, fractions, 40 decimals."""

from decimal import Decimal, localcontext
from fractions import Fraction

import chex
import numpy as np
import pytest
from packages import with_golden_numbers
from rounding import assert_exact, assert_printed, printed, rounded


def exact_softmax(scores):
    """Softmax of decimals to 40 digits."""
    with localcontext() as context:
        context.prec = 40
        exponentials = [Decimal(s).exp() for s in scores]
        return [e / sum(exponentials) for e in exponentials]


def column(*values):
    return np.array(values, float)[:, None]


@with_golden_numbers
def test_masked_softmax_of_d2l(package):
    """Zhang et al., the notebook's own printed output: lengths 3 of (1, 2, 3, 4)."""
    weights = package.masked_softmax(np.array([1.0, 2, 3, 4]), lengths=3)
    assert_printed(weights, [0.090031, 0.244728, 0.665241, 0])
    assert_exact(package, weights[:3], [float(w) for w in exact_softmax([1, 2, 3])])


@with_golden_numbers
def test_masked_softmax_where_finite_stand_ins_lose(package):
    """Real scores below -1e4, -1e6 and -1e9, and what the padding would have won with 0."""
    for low in (-20000.0, -3e6, -5e9):
        weights = package.masked_softmax(np.array([low, low, 0.0]), np.array([True, True, False]))
        assert_exact(package, weights, [0.5, 0.5, 0])


@with_golden_numbers
def test_log_softmax_of_exact_numbers(package):
    """Logarithms of the weights by decimal arithmetic; weights of e^-1000, which float32 and float64 take for 0."""
    scores, mask = np.array([1.0, 2, 3, 4]), np.array([True, True, True, False])
    exact = [float(w.ln()) for w in exact_softmax([1, 2, 3])]
    found = package.masked_log_softmax(scores, mask)
    assert_exact(package, found[:3], exact)
    assert found[3] == -np.inf
    assert np.array_equal(found, package.masked_log_softmax(scores, lengths=3))
    assert_exact(package, package.masked_log_softmax(np.array([0.0, -1000.0])), [0, -1000])
    assert np.array_equal(package.masked_log_softmax(scores, lengths=0), [-np.inf] * 4)


@with_golden_numbers
def test_log_softmax_at_the_ends_of_the_numbers(package):
    """A real -inf is -inf; NaN and inf stay in their row; padding is -inf in every row."""
    inf, nan = np.inf, np.nan
    rows = np.array([[0, -inf, 0, nan], [-inf, -inf, -inf, 0], [nan, 0, 1, 0], [0, inf, 1, 0]])
    found = package.masked_log_softmax(rows, np.array([True, True, True, False]))
    assert_exact(package, found[0, [0, 2]], [float(w.ln()) for w in exact_softmax([0, 0])])
    assert np.array_equal(found[0, [1, 3]], [-inf, -inf])
    assert np.array_equal(found[1:], [[-inf] * 4, [nan, nan, nan, -inf], [nan, nan, nan, -inf]], equal_nan=True)


@with_golden_numbers
def test_unit_vectors_of_pythagorean_triples(package):
    x = np.array([[3.0, 4], [-5, 12], [8, 15], [0, 0]])
    expected = [
        [Fraction(3, 5), Fraction(4, 5)],
        [Fraction(-5, 13), Fraction(12, 13)],
        [Fraction(8, 17), Fraction(15, 17)],
    ]
    assert_exact(package, package.l2_normalize(x), [*expected, [0, 0]])
    for size in (1e-30, 1e30):
        assert_exact(package, package.l2_normalize(size * x), [*expected, [0, 0]])


@with_golden_numbers
def test_means_as_fractions(package):
    rows = [[Fraction(1, 2), Fraction(-7, 4)], [Fraction(3), Fraction(5, 8)], [Fraction(-2), Fraction(9)]]
    x, mask = np.array(rows).astype(float), [True, False, True]
    kept = [row for row, real in zip(rows, mask, strict=True) if real]
    expected = [sum(values) / len(kept) for values in zip(*kept, strict=True)]
    assert_exact(package, package.mean_pooling(x, np.array(mask)), expected)


@with_golden_numbers
def test_largest_first_and_last_of_what_is_real(package):
    x, mask = column(9, -3, -1, -2, 9), np.array([False, True, True, True, False])
    assert_exact(package, package.max_pooling(x, mask), [-1])
    assert_exact(package, package.first_pooling(x, mask), [-3])
    assert_exact(package, package.last_pooling(x, mask), [-2])


@with_golden_numbers
def test_means_of_shuffled_segments_as_fractions(package):
    """By hand: (1/2 + 7) / 2 and (3 - 2 + 5/4) / 3; segment 1 has no token, the last token is padding."""
    x = column(0.5, 3, -2, 7, 1.25, 99)
    numbers, mask = np.array([2, 0, 0, 2, 0, 2]), np.array([True] * 5 + [False])
    pooled = package.segment_mean_pooling(x, numbers, 3, mask)
    assert_exact(package, pooled, [[Fraction(3, 4)], [0], [Fraction(15, 4)]])


@with_golden_numbers
def test_packed_attention_by_softmaxes_of_integers(package):
    """Scores 0, ln 2 and ln 3 of a query of 1: weights 1/6, 1/3, 1/2 beside 1/4, 3/4."""
    x = column(0, np.log(3), np.log(2), 0, np.log(3))
    pooled, weights = package.segment_attention_pooling(
        x, np.array([1, 0, 1, 0, 1]), 2, query=np.ones(1), scale=1.0, return_weights=True
    )
    assert_exact(package, weights, [Fraction(1, 6), Fraction(3, 4), Fraction(1, 3), Fraction(1, 4), Fraction(1, 2)])
    assert_exact(package, pooled, [[0.75 * np.log(3)], [np.log(2) / 3 + np.log(3) / 2]])


@with_golden_numbers
def test_weighted_mean_as_fractions(package):
    weights, values, mask = [2, -1, 4, 100], [Fraction(1, 3), 6, Fraction(5, 2), 9], [True, True, True, False]
    expected = sum(w * v for w, v in zip(weights[:3], values[:3], strict=True)) / Fraction(sum(weights[:3]))
    x = np.array([float(v) for v in values])[:, None]
    assert_exact(package, package.weighted_pooling(x, np.array(weights, float), np.array(mask)), [expected])


@with_golden_numbers
def test_weights_that_sum_to_exactly_zero_give_an_empty_row(package):
    assert_exact(package, package.weighted_pooling(column(1, 2), np.array([1.0, -1])), [0])


@with_golden_numbers
def test_learned_query_with_layer_norm_and_kernels(package):
    pooled, weights = package.attention_pooling(
        np.array([[1.0, 2], [3, 4], [5, 6]]), np.array([True, True, False]), np.array([1.0, -1]),
        query_kernel=np.diag([1.0, 0.5]), key_kernel=np.diag([1.0, 0.0]), normalize_query=True,
        query_norm_scale=np.ones(2), query_norm_bias=np.zeros(2), epsilon=1e-12, return_weights=True,
    )  # fmt: skip
    assert_printed(weights, [0.195570, 0.804430, 0])
    assert_printed(pooled, [2.608859, 3.608859])


@with_golden_numbers
def test_pooling_without_a_query_by_its_definition(package):
    """Tokens 0, 3 and a padded 7: the mean 3/2 is the query, scores are 0 and 9/2."""
    _, weights = package.attention_pooling(column(0, 3, 7), np.array([True, True, False]), return_weights=True)
    assert_exact(package, weights, [*(float(w) for w in exact_softmax([0, "4.5"])), 0])


@with_golden_numbers
def test_scaled_dot_product_of_two_keys(package):
    """Q = (1, 1), keys (1, 0) and (0, 3): scores 1/sqrt 2 and 3/sqrt 2, to 40 digits."""
    with localcontext() as context:
        context.prec = 40
        low, high = exact_softmax([1 / Decimal(2).sqrt(), 3 / Decimal(2).sqrt()])
    pooled, weights = package.dot_product_attention(
        np.array([[1.0, 1]]), np.array([[1.0, 0], [0, 3]]), column(10, 20), return_weights=True
    )
    assert_exact(package, weights, [[float(low), float(high)]])
    assert_exact(package, pooled, [[float(10 * low + 20 * high)]])


@with_golden_numbers
def test_cross_pooling_of_two_tokens_and_one(package):
    (x, y), (x_weights, y_weights) = package.cross_attention_pooling(column(1, 2), column(1), return_weights=True)
    assert_printed(x, [1.731059])
    assert_printed(x_weights, [0.268941, 0.731059])
    assert_exact(package, y, [1])
    assert_exact(package, y_weights, [1])


@with_golden_numbers
@pytest.mark.parametrize(("count", "weight"), [(1, 0.525), (10, 0.731), (50, 0.993)])
def test_cross_pooling_sharpens_with_the_other_sides_length(package, count, weight):
    """Three decimals printed for tokens 1 and 1.1 against ones; the mean over the other side does not sharpen."""
    x, y = column(1, 1.1), np.ones((count, 1))
    _, (weights, _) = package.cross_attention_pooling(x, y, return_weights=True)
    chex.assert_trees_all_close(float(weights[1]), weight, atol=printed(3) + rounded(1.0, count), rtol=0)
    _, (weights, _) = package.cross_attention_pooling(x, y, reduction="mean", return_weights=True)
    chex.assert_trees_all_close(float(weights[1]), 0.525, atol=printed(3) + rounded(1.0, count), rtol=0)


@with_golden_numbers
@pytest.mark.parametrize("reduction", ["sum", "mean", "max"])
def test_cross_pooling_against_nothing_is_the_mean(package, reduction):
    x, y = package.cross_attention_pooling(
        column(1, 4, 99), column(7), np.array([True, True, False]), np.array([False]), reduction=reduction
    )
    assert_exact(package, x, [Fraction(5, 2)])
    assert_exact(package, y, [0])


@with_golden_numbers
def test_cross_pooling_by_the_largest_score_scales_first(package):
    """X = 1, 2 against y = -1, 3 with scale -1: products 1, -3 and 2, -6, so the largest are 1 and 2."""
    _, (weights, _) = package.cross_attention_pooling(
        column(1, 2), column(-1, 3), reduction="max", scale=-1.0, return_weights=True
    )
    assert_exact(package, weights, [float(w) for w in exact_softmax([1, 2])])


@with_golden_numbers
def test_lengths_as_masks(package):
    assert np.asarray(package.lengths_to_mask(np.array([[0, 1], [3, 2]]), 3)).tolist() == [
        [[False, False, False], [True, False, False]],
        [[True, True, True], [True, True, False]],
    ]


@with_golden_numbers
def test_lengths_as_masks_with_the_padding_on_the_left(package):
    """As attention masks of tokenizers with ``padding_side="left"``: of lengths 0, 1, 3 among 3 the last are real."""
    mask = package.lengths_to_mask(np.array([0, 1, 3], np.uint8), 3, side="left")
    assert np.asarray(mask).tolist() == [[False] * 3, [False, False, True], [True] * 3]
    assert np.asarray(package.lengths_to_mask(2, 300, side="left")).sum() == 2


@with_golden_numbers
def test_the_mean_stands_before_the_maximum(package):
    """(1 + 3 + 4)/3 and 4, (-2 - 5 - 2)/3 and -2; fastai's concat pooling has the maximum first."""
    x = np.array([[1.0, -2.0], [3.0, -5.0], [4.0, -2.0], [99.0, 99.0]])
    mask = np.array([True, True, True, False])
    assert_exact(package, package.mean_max_pooling(x, mask), [Fraction(8, 3), -3, 4, -2])
    packed = package.segment_mean_max_pooling(x, np.array([1, 0, 1, 1]), 2, mask)
    assert_exact(package, packed, [[3, -5, 3, -5], [Fraction(5, 2), -2, 4, -2]])
