"""Numbers for statistics pooling that NumPy 2.4, SpeechBrain's and WeSpeaker's own classes gave; the rest by hand."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packages import with_golden_numbers
from rounding import assert_printed, rounded

import attnpool_flax

pytestmark = pytest.mark.thorough

X = np.array([(1, 2), (3, -1), (0.5, 4), (9, 9)], np.float32)
MASK = np.array([True, True, True, False])
KERNEL = np.array([(0.1, 0.2), (0.3, -0.4)], np.float32)
CONTEXT = np.concatenate([KERNEL, np.array([(0.2, 0.1), (-0.1, 0.2), (0.05, 0), (0, -0.05)], np.float32)])
BIAS, OUT = np.array([0.1, -0.1], np.float32), np.array([(1, -1), (2, 0.5)], np.float32)
NORM = {"norm_scale": np.array([0.5, 2], np.float32), "norm_bias": np.array([0.1, -0.2], np.float32)}


@with_golden_numbers
def test_the_mean_and_the_deviation_of_three_tokens(package):
    weights = np.array([1, 2, 1, 5], np.float32)
    assert_printed(package.statistics_pooling(X, MASK), [1.5, 1.666667, 1.080123, 2.054805])
    assert_printed(package.std_pooling(X, MASK, ddof=1), [1.322876, 2.516611])
    assert_printed(package.statistics_pooling(X, MASK, weights), [1.875, 1, 1.138804, 2.121320])
    assert_printed(package.std_pooling(X, MASK, weights, ddof=1), [1.440486, 2.683282])
    each = np.stack([weights, np.ones(4, np.float32)], -1)
    assert_printed(package.statistics_pooling(X, MASK, each), [1.875, 1.666667, 1.138804, 2.054805])


CASES = {
    "a score for each token": (
        {"kernel": KERNEL, "out_kernel": np.array([1, 2], np.float32)},
        [0.103797, 0.828316, 0.067887, 0],
        [2.622689, -0.349174, 0.834936, 1.485858],
    ),
    "for each channel": (
        {"kernel": KERNEL, "out_kernel": OUT},
        [(0.103797, 0.196278), (0.828316, 0.667965), (0.067887, 0.135757), (0, 0)],
        [2.622689, 0.267620, 0.834936, 1.885091],
    ),
    "beside the whole": (
        {"kernel": CONTEXT, "out_kernel": OUT, "global_context": True},
        [(0.128304, 0.220212), (0.819821, 0.635200), (0.051875, 0.144588), (0, 0)],
        [2.613706, 0.383578, 0.829583, 1.918939],
    ),
    "beside the whole, unbiased (WeSpeaker)": (
        {"kernel": CONTEXT, "out_kernel": OUT, "global_context": True, "context_ddof": 1},
        [(0.124512, 0.219716), (0.823874, 0.634550), (0.051614, 0.145734), (0, 0)],
        [2.621941, 0.387817, 0.823230, 1.922174],
    ),
    "beside the whole, with a norm (SpeechBrain)": (
        {"kernel": CONTEXT, "out_kernel": OUT, "global_context": True, **NORM},
        [(0.099249, 0.234498), (0.783326, 0.567301), (0.117425, 0.198201), (0, 0)],
        [2.507940, 0.694498, 0.942751, 2.047969],
    ),
}


@with_golden_numbers
@pytest.mark.parametrize("case", CASES)
def test_attentive_statistics(package, case):
    parameters, weights, pooled = CASES[case]
    found = package.attentive_statistics_pooling(X, MASK, bias=BIAS, **parameters, return_weights=True)
    assert_printed(found[0], pooled)
    assert_printed(found[1], weights)


def test_the_gradient_of_the_deviation_forwards_and_backwards():
    """Of (1, 2, 3); of seven times 0.7, whose float32 mean is not 0.7; and of the second of a floor."""
    tokens, constant = jnp.array([[1.0], [2.0], [3.0]]), jnp.full((7, 1), 0.7)
    zero = np.zeros((7, 1), np.float32)
    for gradient in (jax.grad, jax.jacfwd):
        of = gradient(lambda x, **options: attnpool_flax.std_pooling(x, **options)[0])
        assert_printed(of(tokens)[:, 0], [-0.408248, 0, 0.408248])
        for options in ({}, {"ddof": 1}, {"epsilon": 1e-6}):
            chex.assert_trees_all_equal(np.asarray(of(constant, **options)), zero)
        chex.assert_trees_all_equal(np.asarray(of(tokens[:1], ddof=1)), zero[:1])
        chex.assert_trees_all_equal(np.asarray(of(tokens, epsilon=1.0)), zero[:3])


@with_golden_numbers
def test_the_edges_of_the_deviation(package):
    """A constant, one token and any ddof are 0; epsilon floors the variance; weights that cancel are an empty row."""
    std = package.std_pooling
    assert not np.any(std(np.full((7, 2), 0.7, np.float32)))
    for ddof in (0, 1, 2.5):
        assert not np.any(std(X[:1], ddof=ddof))
        assert not np.any(std(X[:2], np.array([True, False]), ddof=ddof))
    chex.assert_trees_all_close(np.asarray(std(X[:1], epsilon=0.25)), np.full(2, 0.5, np.float32), rtol=0)
    cancelled = package.statistics_pooling(X[:2], None, np.array([1, -1], np.float32), epsilon=0.25)
    assert not np.any(cancelled) and not np.any(package.statistics_pooling(X, MASK & False, epsilon=0.25))
    assert np.all(np.isnan(package.statistics_pooling(np.float32([[np.nan], [1.0]]))))


TRAPS = {
    "a difference of squares gives 0 (PyG)": [4096, 4096.25, 4096.5],
    "a floor of 1e-5 gives 0 (PyG)": [0, 0.006],
    "a difference of squares gives .000316 (WeSpeaker, 3D-Speaker)": [100, 100.01],
    "a difference of squares gives .003906 (voxceleb_trainer)": [10, 10.002],
    "an unbiased deviation gives NaN (SpeechBrain, WeSpeaker, pyannote)": [1],
}


@with_golden_numbers
def test_numbers_that_others_lose(package):
    """Over the numbers that float32 holds; at any scale."""
    for values in TRAPS.values():
        x = np.array(values, np.float32)
        for scale in (1, np.float32(1e30), np.float32(1e-30)):
            held = np.float64(x * scale)
            found = np.asarray(package.statistics_pooling((x * scale)[:, None]), np.float64)
            mean, deviation = np.mean(held), np.std(held)
            assert abs(found[0] - mean) <= rounded(mean, 4)
            assert abs(found[1] - deviation) <= rounded(deviation, 4)
    assert_printed(package.statistics_pooling(np.array([[1.0], [3.0]])), [2, 1])  # SpeechBrain: the mean is NaN


@with_golden_numbers
def test_states_of_a_chunk_of_one_token_and_one_of_two(package):
    """Sums of squares (3.5, 12.666667) of the whole; at any scale, and of a constant exactly 0."""
    whole = package.merge_states(package.std_state(X[:1]), package.std_state(X[1:3]))
    assert_printed(3 * np.asarray(package.finalize_state(whole)) ** 2, [3.5, 12.666667])
    for size in (1, 1e30, 1e-30):
        chunks = [np.float32(size) * X[i : i + 1] for i in (2, 0, 1)]
        for ddof, deviation in ((0, [1.0801234, 2.0548047]), (1, [1.3228757, 2.5166115])):
            state = functools.partial(package.statistics_state, ddof=ddof)
            found = np.asarray(package.finalize_state(functools.reduce(package.merge_states, map(state, chunks))))
            assert_printed(found / np.float32(size), [1.5, 1.666667, *deviation])
    constant = [package.std_state(np.full((n, 1), 0.7, np.float32), epsilon=0.0) for n in (3, 1, 7)]
    assert not np.any(package.finalize_state(functools.reduce(package.merge_states, constant)))


@with_golden_numbers
def test_states_of_attentive_statistics(package):
    """The first two rows of the table above, in chunks of one token."""
    for case in list(CASES)[:2]:
        parameters, _, pooled = CASES[case]
        states = [
            package.attentive_statistics_state(X[i : i + 1], MASK[i : i + 1], bias=BIAS, **parameters) for i in range(4)
        ]
        assert_printed(package.finalize_state(functools.reduce(package.merge_states, states)), pooled)
    with pytest.raises(ValueError, match="`global_context` is True, needs False: the statistics of the whole"):
        package.attentive_statistics_state(X, kernel=CONTEXT, out_kernel=OUT, global_context=True)


def test_the_gradient_through_states_is_that_of_the_whole():
    """Of tokens and weights; one chunk's weights cancel, one is empty, one token is 0."""
    x, weights = jnp.array([[0.0], [2.0], [-1.0], [5.0]]), jnp.array([1.0, 2.0, -2.0, 4.0])

    def in_chunks(x, weights):
        parts = [(x[:1], weights[:1]), (x[1:3], weights[1:3]), (x[:0], weights[:0]), (x[3:], weights[3:])]
        states = [attnpool_flax.statistics_state(part, None, own, ddof=0.5) for part, own in parts]
        return jnp.sum(attnpool_flax.finalize_state(functools.reduce(attnpool_flax.merge_states, states)))

    def whole(x, weights):
        return jnp.sum(attnpool_flax.statistics_pooling(x, None, weights, ddof=0.5))

    found, want = (jax.jit(jax.grad(of, (0, 1)))(x, weights) for of in (in_chunks, whole))
    for got, exact in zip(found, want, strict=True):
        chex.assert_trees_all_close(got, exact, atol=rounded(np.asarray(exact), 64), rtol=0)
