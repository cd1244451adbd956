"""Numbers for the normalisers that come from outside: the papers' closed forms, exact fractions, 40 decimals."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packages import with_golden_numbers
from rounding import assert_exact

import attnpool_flax

ROWS = [
    [0.5, 0.25, -1.0, 0.375],
    [3.0, 2.75, 2.5, 2.25, -4.0],
    [1.0, 1.0, 1.0],
    [0.0, -1.0, -1.0],
    [-0.125, 0.0, 0.5, 1.0, 1.25, 1.25],
    [7.0],
]


@with_golden_numbers
@pytest.mark.parametrize("t", [-3.0, -1.0, -0.5, 0.0, 0.25, 1.0, 2.0])
def test_sparsemax_of_two_scores_is_the_hard_sigmoid(package, t):
    """Martins and Astudillo 2016, section 2.3: (t + 1) / 2, clipped to 0 and 1."""
    first = min(max((Fraction(t) + 1) / 2, 0), 1)
    assert_exact(package, package.sparsemax(np.array([t, 0.0])), [first, 1 - first], 4)


@with_golden_numbers
@pytest.mark.parametrize("row", ROWS)
def test_sparsemax_is_the_one_support_that_fits(package, row):
    """Every support is tried: its threshold lies below all of its scores and below none of the others."""
    scores = [Fraction(score) for score in row]
    fitting = []
    for size in range(1, len(row) + 1):
        for support in combinations(range(len(row)), size):
            threshold = (sum(scores[j] for j in support) - 1) / size
            if all((scores[j] > threshold) == (j in support) for j in range(len(row))):
                fitting.append([max(score - threshold, Fraction(0)) for score in scores])
    (expected,) = fitting
    assert_exact(package, package.sparsemax(np.array(row)), expected, 4 * len(row))


@with_golden_numbers
@pytest.mark.parametrize("t", [-4.0, -1.0, 0.0, 0.5, 2.0, 3.0])
def test_entmax15_of_two_scores_has_a_closed_form(package, t):
    """By hand: (t / 2 - tau)^2 + tau^2 = 1, where neither weight is 0: |t| < 2."""
    with localcontext(prec=40):
        half = Decimal(t) / 2
        if abs(half) >= 1:
            first = Decimal(half > 0)
        else:
            threshold = (half - (2 - half * half).sqrt()) / 2
            first = (half - threshold) ** 2
        assert_exact(package, package.entmax15(np.array([t, 0.0])), [first, 1 - first], 8)


@with_golden_numbers
@pytest.mark.parametrize("row", ROWS)
def test_entmax15_is_what_bisection_finds(package, row):
    """The threshold at which max(0, s / 2 - tau)^2 sums to 1, to 40 decimals."""
    with localcontext(prec=50):
        halves = [Decimal(score) / 2 for score in row]
        low, high = max(halves) - 1, max(halves)
        for _ in range(140):
            middle = (low + high) / 2
            too_low = sum(max(half - middle, Decimal(0)) ** 2 for half in halves) > 1
            low, high = (middle, high) if too_low else (low, middle)
        expected = [max(half - low, Decimal(0)) ** 2 for half in halves]
        assert_exact(package, package.entmax15(np.array(row)), expected, 8 * len(row))


@with_golden_numbers
def test_segment_softmax_of_exact_fractions(package):
    """Scores that are logarithms of integers: exp gives the integers back, and the weights are their fractions."""
    scores = np.log([[1.0, 2.0], [5.0, 1.0], [3.0, 6.0], [7.0, 7.0]])
    ids, mask = np.array([2, 0, 2, 0]), np.array([True, True, True, False])
    weights = [[Fraction(1, 4), Fraction(1, 4)], [1, 1], [Fraction(3, 4), Fraction(3, 4)], [0, 0]]
    assert_exact(package, package.segment_softmax(scores, ids, 3, mask), weights)
    assert_exact(
        package,
        package.segment_softmax(scores[:, 1], ids, 3),
        [Fraction(n, 8) for n in (2, 1, 6, 7)],
    )
    logarithms = package.segment_log_softmax(scores, ids, 3, mask)
    assert_exact(package, logarithms[:3], [[Decimal(float(w)).ln() for w in row] for row in weights[:3]])
    assert np.array_equal(logarithms[3], [-np.inf, -np.inf])


@with_golden_numbers
def test_segment_softmax_at_the_ends_of_the_numbers(package):
    """exp(-1000) is no 0 of the logarithm, a segment of -inf is 0, NaN stays in its segment and column."""
    scores = np.array([[0.0, np.nan], [-1000.0, 0.0], [-np.inf, 3e38], [0.0, 3e38]])
    ids = np.array([1, 1, 0, 2])
    assert_exact(package, package.segment_log_softmax(scores, ids, 4)[:2, 0], [0, -1000])
    found = package.segment_softmax(scores, ids, 4)
    assert np.array_equal(found, [[1, np.nan], [0, np.nan], [0, 1], [1, 1]], equal_nan=True)


@with_golden_numbers
def test_a_sink_is_a_term_of_the_denominator(package):
    """Scores that are logarithms: 1 and 3 beside a sink of 1 are 1/5 and 3/5; a sink of ln 4 leaves 1/8 and 3/8."""
    scores = np.log([[1.0, 3.0, 9.0], [2.0, 2.0, 9.0]])
    mask = np.array([True, True, False])
    fifths = [[Fraction(1, 5), Fraction(3, 5), 0], [Fraction(2, 5), Fraction(2, 5), 0]]
    assert_exact(package, package.masked_softmax(scores, mask, sink=0.0), fifths)
    sinks = np.log([4.0, 12.0])
    eighths = [[Fraction(1, 8), Fraction(3, 8), 0], [Fraction(1, 8), Fraction(1, 8), 0]]
    assert_exact(package, package.masked_softmax(scores, mask, sink=sinks), eighths)
    assert_exact(package, package.masked_softmax(scores.T, mask[:, None], sink=sinks, axis=0).T, eighths)
    value = np.array([[5.0], [10.0], [np.nan]])
    assert_exact(package, package.attend(scores, value, mask, sink=0.0), [[7], [6]])


@with_golden_numbers
def test_sinks_at_the_ends_of_the_numbers(package):
    """-inf is no sink, inf takes all, NaN spoils its row; a row without a finite score is 0 for each of them."""
    inf, nan = np.inf, np.nan
    scores, sinks = np.array([[0.0, 0.0], [1e30, 0], [-1e30, -1e30]]), np.array([-inf, 1e30, -1e30])
    assert_exact(package, package.masked_softmax(scores, sink=sinks), [[0.5, 0.5], [0.5, 0], [1 / 3, 1 / 3]])
    assert np.array_equal(
        package.masked_softmax(scores, sink=np.array([inf, nan, inf])), [[0, 0], [nan, nan], [0, 0]], equal_nan=True
    )
    for sink in (0.0, -inf, inf, nan):
        assert not np.any(package.masked_softmax(np.full((2, 3), -inf), np.array([[True], [False]]), sink=sink))
    assert np.all(np.isnan(package.masked_softmax(np.array([[nan, 0.0], [inf, 0.0]]), sink=inf)))


def test_gradients_of_a_sink():
    """-w times the weight of the sink; 0 for an infinite sink and in an empty row."""

    def weights(sink, mask=None):
        return attnpool_flax.masked_softmax(jnp.log(jnp.array([1.0, 3.0])), mask, sink=sink)

    chex.assert_trees_all_close(jax.jacobian(weights)(0.0), jnp.array([-0.04, -0.12]), rtol=1e-5)
    for sink in (jnp.inf, -jnp.inf):
        assert not np.any(jax.jacobian(weights)(sink))
    assert not np.any(jax.jacobian(weights)(0.0, jnp.array([False, False])))
