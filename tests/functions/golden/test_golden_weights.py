"""Numbers for positions, spans, weights and normalisers that come from outside.

Printed to six decimals in the specification of these poolings; where a library or a paper says them, its name stands here.
"""

import functools

import numpy as np
from packages import with_golden_numbers
from rounding import assert_printed

X, MASK = np.array([[1.0, 2], [3, -1], [0.5, 4], [9, 9]]), np.array([True, True, True, False])
"""Three real tokens and a pad."""


@with_golden_numbers
def test_positions_and_spans(package):
    assert np.array_equal(package.token_positions(np.array([False, True, True, False, True])), [-1, 0, 1, -1, 2])
    spans = package.spans_to_mask(np.array([[0, 1], [2, 1]]), 3)
    assert np.array_equal(spans, [[True, True, False], [False, False, False]])


@with_golden_numbers
def test_weights_for_each_channel(package):
    for poison in (9.0, np.nan):
        weights, channels = np.array([1, 2, 1, poison]), np.array([[1, 0], [2, 1], [1, 3], [poison, poison]])
        assert_printed(package.weighted_pooling(X, weights, MASK), [1.875, 1])
        assert_printed(package.weighted_pooling(X, channels, MASK), [1.875, 2.75])
    cancelling = package.weighted_pooling(X, np.array([[1, 1], [-1, 1], [0, 1], [9, 9]]), MASK)
    assert_printed(cancelling, [0, 1.666667])  # the channel whose weights cancel is empty, and no other


@with_golden_numbers
def test_recipes_of_positions(package):
    """SGPT's weighted mean, as sentence-transformers has it (weightedmean); exponential decay; distance to the end."""
    position, count = np.asarray(package.token_positions(MASK)), MASK.sum()
    assert_printed(package.weighted_pooling(X, position + 1.0, MASK), [1.416667, 2])
    assert_printed(package.weighted_pooling(X, 0.5 ** (count - 1 - position), MASK), [1.285714, 2.285714])
    query = np.array([1, 0.5])
    distance = np.where(MASK, count - 1 - position, np.nan)  # padded places of a bias may hold anything
    pooled, weights = package.attention_pooling(X, MASK, query, bias=-0.5 * distance, return_weights=True)
    assert_printed(weights, [0.138521, 0.325243, 0.536236, 0])
    assert_printed(pooled, [1.382369, 2.096741])
    weights = package.attention_pooling(X, MASK, query, return_weights=True)[1]
    assert_printed(weights, [0.259859, 0.370070, 0.370070, 0])


@with_golden_numbers
def test_recipe_of_a_prompt_that_is_left_out(package):
    """sentence-transformers with include_prompt=False: positions count the prompt, and it is not pooled: not 1.666667."""
    tokens, mask = np.array([[7.0], [1], [2]]), np.ones(3, bool)
    position = np.asarray(package.token_positions(mask))
    assert_printed(package.weighted_pooling(tokens, position + 1.0, mask & (position >= 1)), [1.6])


@with_golden_numbers
def test_recipe_of_windows(package):
    """A window counts tokens, so that it does not move with the side of the padding; the last one may be short."""
    for width, step, expected in ((2, 1, [[2, 0.5], [1.75, 1.5]]), (2, 2, [[2, 0.5], [0.5, 4]])):
        count = max(0, -(-(3 - width) // step)) + 1
        first = step * np.arange(count)[:, None]
        for x, mask in ((X, MASK), (X[[3, 0, 1, 2]], MASK[::-1])):
            position = np.asarray(package.token_positions(mask))
            windows = mask & (position >= first) & (position < first + width)
            assert_printed(package.attend(np.zeros(windows.shape), x, windows), expected)


@with_golden_numbers
def test_recipe_of_spans(package):
    """AllenNLP's self-attentive span extractor: its mask of the sequence is not forgotten here."""
    scores, spans = X @ np.array([0.5, -0.25]), np.array([[0, 1], [1, 3], [2, 2]])
    inside = np.asarray(package.spans_to_mask(spans, 4)) & MASK
    pooled = package.attend(np.broadcast_to(scores, inside.shape), X, inside)
    assert_printed(pooled, [[2.703906, -0.555858], [2.810355, -0.620709], [0.5, 4]])


@with_golden_numbers
def test_normalizers_on_three_scores(package):
    """The README of the package entmax says the same at 1.5 and 2."""
    scores, other = np.array([1, 2, 0.5, 9]), np.array([-2, 0, 0.5, 9])
    for alpha, first in ((1.25, [0.200027, 0.712547, 0.087426]), (1.5, [0.162070, 0.814649, 0.023280]), (2, [0, 1, 0])):
        assert_printed(package.entmax(scores, MASK, alpha=alpha), [*first, 0])
    assert_printed(package.entmax(other, MASK), [0, 0.326007, 0.673993, 0])
    assert_printed(package.entmax(other, MASK, alpha=2), [0, 0.25, 0.75, 0])
    assert_printed(package.top_k_softmax(scores, MASK, k=2), [0.268941, 0.731059, 0, 0])
    noise = np.array([0.3, -0.2, 1.9, np.nan])
    soft = functools.partial(package.gumbel_softmax, scores, MASK, noise)
    assert_printed(soft(), [0.176901, 0.291660, 0.531439, 0])
    assert_printed(soft(temperature=0.5), [0.078473, 0.213311, 0.708217, 0])
    assert np.array_equal(soft(hard=True), [0, 0, 1, 0])
    assert_printed(package.masked_sigmoid(np.array([-0.544699, 1.532264, -0.969284])), [0.367095, 0.822337, 0.275023])
    shares = package.masked_sigmoid(np.array([-0.544699, 1.532264, -0.969284]), normalize=True)
    assert_printed(shares, [0.250670, 0.561531, 0.187799])


@with_golden_numbers
def test_ties_and_the_ends_of_the_numbers(package):
    """The first of the largest; all that reach the k-th; scores so low that every sigmoid is 0."""
    inf, nan = np.inf, np.nan
    rows, real = np.array([[1, 3, 3], [-inf, -inf, -inf], [1, inf, 2], [nan, 1, 2], [nan, 1, 2]]), np.ones((5, 3), bool)
    real[4, 0] = False
    assert np.array_equal(
        package.hardmax(rows, real), [[0, 1, 0], [0, 0, 0], [nan] * 3, [nan] * 3, [0, 0, 1]], equal_nan=True
    )
    largest, gentle = (
        np.asarray(f(rows, real)) for f in (functools.partial(package.top_k_softmax, k=1), package.entmax)
    )
    assert_printed(largest[[0, 1, 4]], [[0, 0.5, 0.5], [0, 0, 0], [0, 0, 1]])
    assert np.isnan(largest[2:4]).all()
    assert np.isnan(gentle[2:4]).all()
    assert np.array_equal(gentle[1], [0, 0, 0])
    assert_printed(package.masked_sigmoid(np.full(4, -1000.0), MASK, normalize=True), [1 / 3, 1 / 3, 1 / 3, 0])
    assert np.array_equal(package.masked_sigmoid(rows[1:3], real[1:3])[:, 1], [0, nan], equal_nan=True)


@with_golden_numbers
def test_positions_in_the_middle_count_real_tokens(package):
    """A masked token is as if deleted: 1.666667, where sentence-transformers counts slots and gives 1.75."""
    mask = np.array([True, False, True])
    weights = np.asarray(package.token_positions(mask)) + 1.0
    assert_printed(package.weighted_pooling(np.array([[1.0], [9], [2]]), weights, mask), [1.666667])
