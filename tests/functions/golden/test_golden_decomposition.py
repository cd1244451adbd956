"""Numbers for the decompositions that come from outside: printed ones, by hand, and exact fractions."""

from fractions import Fraction

import chex
import numpy as np
import pytest
from exact import dot
from packages import with_golden_numbers
from rounding import assert_exact, assert_printed, printed, rounded

X = np.array([[1.0, 0], [1, 1]])
Y = np.array([[1.0, 0], [0, 1], [1, 2]])


@with_golden_numbers
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [[1, 0], [1, 2]]),
        ({"method": "global"}, [[1, 0.618034], [0.700746, 1.102237]]),
        ({"method": "local"}, [[1, 0], [0.572949, 1.572949]]),
        ({"method": "local", "window": 2}, [[1, 0.618034], [0.700746, 1.102237]]),
        ({"method": "local", "window": 0}, [[1, 0], [1, 2]]),
        # by hand: 1 * (1, 0) + 1/sqrt(5) * (1, 2), and 1/sqrt(2) * (1, 1) + 3/sqrt(10) * (1, 2)
        ({"method": "global", "normalize": False}, [[1.447214, 0.894427], [1.655790, 2.604473]]),
        # by hand: the window of the second row holds (0, 1) and (1, 2)
        ({"method": "local", "normalize": False}, [[1, 0], [0.948683, 2.604473]]),
    ],
)
def test_semantic_match_of_two_tokens_among_three(package, options, expected):
    assert_printed(package.semantic_match(X, Y, **options), expected)


@with_golden_numbers
def test_the_three_decompositions_of_the_best_match(package):
    match = package.semantic_match(X, Y)
    similar, dissimilar = package.orthogonal_decomposition(X, match)
    assert_printed(similar, [[1, 0], [0.6, 1.2]])
    assert_printed(dissimilar, [[0, 0], [0.4, -0.2]])
    similar, dissimilar = package.linear_decomposition(X, match)
    assert_printed(similar, [[1, 0], [0.948683, 0.948683]])
    assert_printed(dissimilar, [[0, 0], [0.051317, 0.051317]])
    similar, dissimilar = package.rigid_decomposition(X, match)
    assert_printed(similar, [[1, 0], [0, 0]])
    assert_printed(dissimilar, [[0, 0], [1, 1]])


@with_golden_numbers
def test_the_normalised_match_has_the_sign_of_its_weights(package):
    """Without the denominator the cosine of x with its match is .9986; with it, -.9986."""
    x, y = np.array([[1.0, 0]]), np.array([[-1.0, 0], [-0.9, 0.1]])
    for normalize, sign in ((True, -1), (False, 1)):
        match = package.semantic_match(x, y, method="global", normalize=normalize)
        similar, _ = package.linear_decomposition(x, match)
        chex.assert_trees_all_close(np.asarray(similar[0, 0]), sign * 0.9986, atol=printed(4), rtol=0)


@with_golden_numbers
def test_the_window_counts_real_tokens(package):
    """Token 1 is padding: the real neighbours of token 2 are tokens 0 and 3."""
    x, y = np.array([[0.0, 3]]), np.array([[3.0, 4], [9, 9], [0, 5], [4, 3], [5, 0]])
    mask = np.array([True, False, True, True, True])
    # cosines 4/5, -, 1, 3/5, 0
    numerators = Fraction(4, 5) * 3 + Fraction(3, 5) * 4, Fraction(4, 5) * 4 + 5 + Fraction(3, 5) * 3
    expected = [[numerator / Fraction(12, 5) for numerator in numerators]]
    assert_exact(package, package.semantic_match(x, y, y_mask=mask, method="local"), expected)


@with_golden_numbers
def test_ties_go_to_the_first_real_token(package):
    y, mask = np.array([[7.0, 0], [2, 0], [3, 0], [1, 0]]), np.array([False, True, True, True])
    assert_exact(package, package.semantic_match(np.array([[5.0, 0]]), y, y_mask=mask), [[2, 0]])


@with_golden_numbers
def test_weights_that_cancel_give_nothing(package):
    x, y = np.array([[2.0, 0]]), np.array([[3.0, 0], [-5, 0]])
    assert_exact(package, package.semantic_match(x, y, method="global"), [[0, 0]])
    assert_exact(package, package.semantic_match(x, y, method="global", normalize=False), [[8, 0]])


@with_golden_numbers
def test_projections_of_short_vectors_keep_their_length(package):
    """An epsilon of 1e-10 under the fraction would halve the projection."""
    similar, dissimilar = package.orthogonal_decomposition(np.array([3e-6, 4e-6]), np.array([1e-5, 0]))
    assert_exact(package, similar, [3e-6, 0])
    assert_exact(package, dissimilar, [0, 4e-6])


@with_golden_numbers
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("reference_size", [1e-30, 1.0, 1e30])
def test_no_size_is_too_small_or_too_large(package, size, reference_size):
    """Projection of (3, 1) on (3, 4): 13/25 of it; cosine of (3, 4) with (4, 3): 24/25."""
    x, reference = np.float32(size) * np.float32([3, 1]), np.float32(reference_size) * np.float32([3, 4])
    similar, _ = package.orthogonal_decomposition(x, reference)
    chex.assert_type(similar, np.float32)
    expected = np.array([39 / 25, 52 / 25]) * float(np.float32(size))
    chex.assert_trees_all_close(np.float64(similar), expected, atol=rounded(expected, 16), rtol=0)
    x = np.float32(size) * np.float32([4, 3])
    similar, _ = package.linear_decomposition(x, reference)
    expected = 24 / 25 * np.array([4.0, 3]) * float(np.float32(size))
    chex.assert_trees_all_close(np.float64(similar), expected, atol=rounded(expected, 16), rtol=0)


@with_golden_numbers
def test_orthogonal_decomposition_equals_fractions(package):
    x, reference = [[1, -2, 3], [0, 5, 1]], [[2, 1, -1], [-3, 4, 7]]
    share = [Fraction(dot(a, b), dot(b, b)) for a, b in zip(x, reference, strict=True)]
    similar = [[s * c for c in b] for s, b in zip(share, reference, strict=True)]
    dissimilar = [[p - q for p, q in zip(a, s, strict=True)] for a, s in zip(x, similar, strict=True)]
    actual = package.orthogonal_decomposition(np.array(x, float), np.array(reference, float))
    assert_exact(package, actual[0], similar)
    assert_exact(package, actual[1], dissimilar)


@with_golden_numbers
def test_rigid_decomposition_allows_a_difference_of_atol_itself(package):
    x, reference = np.array([[1.0, 2], [1, 2.25], [1, 2.5]]), np.array([1.0, 2])
    similar, dissimilar = package.rigid_decomposition(x, reference, atol=0.25)
    assert_exact(package, similar, [[1, 2], [1, 2.25], [0, 0]])
    assert_exact(package, dissimilar, [[0, 0], [0, 0], [1, 2.5]])


LABELS = [[1, 0], [1, 1], [0, 2]]
NEIGHBOURS = {0: [1], 1: [0, 2], 2: []}


@with_golden_numbers
@pytest.mark.parametrize(
    ("num_layers", "expected"),
    [
        (0, LABELS),
        (1, [[0.5, -0.5], [0.5, 0.5], [0, 2]]),
        (2, [[0.5, -0.5], [0.5, 0.25], [0, 2]]),
    ],
)
def test_graph_decomposition_of_three_labels(package, num_layers, expected):
    adjacency = np.array([[j in NEIGHBOURS[i] for j in range(3)] for i in range(3)])
    actual = package.graph_decomposition(np.array(LABELS, float), adjacency, num_layers=num_layers)
    assert_exact(package, actual, expected)


@with_golden_numbers
@pytest.mark.parametrize(
    ("num_layers", "neighbours"),
    [
        (1, {0: [1, 2], 1: [0], 2: [0, 2, 3], 3: [3]}),  # a True diagonal takes the label itself
        (3, {0: [1, 2], 1: [0], 2: [0, 3], 3: [0]}),
    ],
)
def test_graph_decomposition_equals_fractions(package, num_layers, neighbours):
    """A zero neighbour counts in the number."""
    labels = [[3, 1, 0], [0, 0, 0], [1, -1, 2], [2, 0, 5]]
    adjacency = np.array([[j in neighbours[i] for j in range(4)] for i in range(4)])
    expected = [[Fraction(c) for c in row] for row in labels]
    for _ in range(num_layers):
        expected = [without_neighbours(row, [expected[j] for j in neighbours[i]]) for i, row in enumerate(expected)]
    actual = package.graph_decomposition(np.array(labels, float), adjacency, num_layers=num_layers)
    assert_exact(package, actual, expected, 64)


def without_neighbours(row, others):
    shares = [dot(row, other) / dot(other, other) if any(other) else 0 for other in others]
    return [c - dot(shares, column) / len(others) for c, column in zip(row, zip(*others, strict=True), strict=True)]
