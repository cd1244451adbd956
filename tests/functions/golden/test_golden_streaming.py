"""Numbers for states, worked out by hand: fractions and logarithms, merged from two chunks and from three."""

import functools
import math
from fractions import Fraction

import chex
import numpy as np
from packages import with_golden_numbers
from rounding import rounded


def assert_pooled(package, states, expected):
    """What the states come to together, merged from either end."""
    expected = np.array(expected).astype(float)
    for order in (states, states[::-1]):
        pooled = package.finalize_state(functools.reduce(package.merge_states, order))
        chex.assert_shape(pooled, expected.shape)
        chex.assert_trees_all_close(np.asarray(pooled), expected, atol=rounded(expected, 16), rtol=0)


@with_golden_numbers
def test_attention_of_scores_that_are_logarithms(package):
    """Scores ln 1, ln 3 | ln 2, padding: weights 1/6, 3/6, 2/6 of the tokens (0, 6), (ln 3, 12), (ln 2, 18)."""
    first = np.array([[0, 6], [math.log(3), 12]], np.float32)
    second = np.array([[math.log(2), 18], [50, 99]], np.float32)
    query = np.array([1, 0], np.float32)
    states = [
        package.attention_state(first, None, query, scale=1.0),
        package.attention_state(second, np.array([True, False]), query, scale=1.0),
    ]
    assert_pooled(package, states, [(3 * math.log(3) + 2 * math.log(2)) / 6, 13])


@with_golden_numbers
def test_a_mean_of_unequal_chunks(package):
    """(1 + 2 + 4) | 8 | nothing: 15/4, where a mean of means is 31/6."""
    chunks = [[1], [2], [4]], [[8]], np.zeros((0, 1))
    states = [package.mean_state(np.array(chunk, np.float32)) for chunk in chunks]
    assert_pooled(package, states, [Fraction(15, 4)])


@with_golden_numbers
def test_weights_of_chunks_that_differ_in_size(package):
    """(3·1 − 3·5) | (1/4)·8 + (1/4)·4: -9 over 1/2."""
    first = package.weighted_state(np.array([[1], [5]], np.float32), np.array([3, -3], np.float32))
    second = package.weighted_state(np.array([[8], [4]], np.float32), np.array([0.25, 0.25], np.float32))
    assert_pooled(package, [first, second], [-18])


@with_golden_numbers
def test_heads_of_one_query(package):
    """One head scores by the first feature, the other by the second: ln 3 | 0, and 0 | ln 2."""
    query, kernel = np.ones((1, 2), np.float32), np.eye(2, dtype=np.float32).reshape(2, 2, 1)
    chunks = [[math.log(3), 0]], [[0, math.log(2)]]
    states = [
        package.multi_head_attention_state(
            np.array(chunk, np.float32), query=query, query_kernel=kernel, key_kernel=kernel
        )
        for chunk in chunks
    ]
    three, two = math.log(3), math.log(2)
    assert_pooled(package, states, [[[3 * three / 4, two / 4], [three / 3, 2 * two / 3]]])


@with_golden_numbers
def test_a_mean_and_a_maximum_of_unequal_chunks(package):
    """(1 + 2 + 4) | 8 | nothing: 15/4 and 8."""
    chunks = [[1], [2], [4]], [[8]], np.zeros((0, 1))
    states = [package.mean_max_state(np.array(chunk, np.float32)) for chunk in chunks]
    assert_pooled(package, states, [Fraction(15, 4), 8])


@with_golden_numbers
def test_a_gated_sum_of_logarithms_in_chunks(package):
    """2/3 · 3/5 | 3/4 · 4/5 | padding: 1."""
    kernels = {"gate_kernel": np.ones((1, 1), np.float32), "value_kernel": np.ones((1, 1), np.float32)}
    chunks = ([[math.log(2)]], [True]), ([[math.log(3)]], [True]), ([[99]], [False])
    states = [package.gated_sum_state(np.array(chunk, np.float32), np.array(mask), **kernels) for chunk, mask in chunks]
    assert_pooled(package, states, [1])
