"""Both ends of the float range, infinite data, huge integers: dense, packed and in chunks, against exact arithmetic."""

import decimal
import functools
import math
import sys
from decimal import Decimal

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packages import every_package
from rounding import rounded

import attnpool_flax

pytestmark = pytest.mark.thorough

in_both = pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.thorough)])
EXACT = decimal.Context(prec=60, Emin=-(10**9), Emax=10**9)
LAYOUTS = ("dense", "packed", "chunks")


def pooled(package, layout, name, x, options=(), of_tokens=()):
    """A pooling [d] of tokens [L, d] by its name; ``of_tokens`` are arguments that each token has."""
    options, of_tokens = dict(options), dict(of_tokens)
    if layout == "dense":
        return getattr(package, f"{name}_pooling")(x, **of_tokens, **options)
    if layout == "packed":
        numbers = np.zeros(len(x), np.int32)
        return getattr(package, f"segment_{name}_pooling")(x, numbers, 1, **of_tokens, **options)[0]
    parts = [{key: value[part] for key, value in of_tokens.items()} for part in (slice(1), slice(1, None))]
    make = getattr(package, f"{name}_state")
    first, second = make(x[:1], **parts[0], **options), make(x[1:], **parts[1], **options)
    return package.finalize_state(package.merge_states(first, second))


def checked(package, dtype, layout, name, x, expected, allowed, **more):
    """Holds a pooling, and in JAX its compiled form, against what is expected; gradients are finite."""
    with jax.enable_x64(dtype == "float64"):
        x = np.asarray(x, dtype)
        results = [pooled(package, layout, name, x, **more)]
        if package is attnpool_flax and layout == "dense":
            call = functools.partial(pooled, package, layout, name, **more)
            results.append(jax.jit(call)(x))
            assert np.all(np.isfinite(jax.jit(jax.grad(lambda x: jnp.sum(call(x) / 2)))(x)))
        for result in results:
            assert result.dtype == dtype
            assert np.all(np.abs(np.asarray(result, np.float64) - expected) <= allowed), (result, expected)


def exact_power_mean(x, p, epsilon):
    """Of one channel, by decimal arithmetic."""
    with decimal.localcontext(EXACT):
        logarithms = [Decimal(max(float(number), epsilon)).ln() for number in x]
        if p == 0:
            return float((sum(logarithms) / len(x)).exp())
        return float(
            (sum((Decimal(p) * each).exp() for each in logarithms) / len(x)).ln().__truediv__(Decimal(p)).exp()
        )


POWER_MEANS = [(1e36, 0.0, 0.0), (1e20, 1e-25, 0.0), (1e-25, 1e20, -0.01), (1e-25, 1e20, 0.75)]
"""One token, 1000 others, and p."""


@every_package
@in_both
@pytest.mark.parametrize("layout", LAYOUTS)
def test_power_means_far_from_the_largest_value_neither_underflow_nor_overflow(package, dtype, layout):
    epsilon, p = 1e-30, np.asarray([p for *_, p in POWER_MEANS], dtype)
    x = np.asarray([[one for one, *_ in POWER_MEANS]] + [[rest for _, rest, _ in POWER_MEANS]] * 1000, dtype)
    expected = np.array([exact_power_mean(x[:, i], float(p[i]), epsilon) for i in range(len(p))])
    # a sum of 1001 logarithms, or of powers, and the exponential of what rounding made of it
    spread = 2 * math.log(1e36 / epsilon)
    allowed = [rounded(spread * each, len(x), dtype) for each in expected]
    with jax.enable_x64(dtype == "float64"):
        result = np.asarray(pooled(package, layout, "power_mean", x, {"p": p, "epsilon": epsilon}), np.float64)
    assert np.all(np.abs(result - expected) <= allowed), (result, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_slopes_of_power_means_far_from_the_largest_value_are_finite(layout):
    x = jnp.asarray([[1e20]] + [[1e-25]] * 1000)
    slopes = jax.grad(lambda x: pooled(attnpool_flax, layout, "power_mean", x, {"p": 0.0, "epsilon": 0.0})[0])(x)
    mean = exact_power_mean(np.asarray(x)[:, 0], 0, 0)
    expected = mean / np.asarray(x, np.float64) / len(x)
    spread = 2 * math.log(1e45)
    assert np.all(np.abs(slopes - expected) <= rounded(spread * expected, 32))  # of plain sums of up to 512 terms


@every_package
@in_both
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["logsumexp", "softmax"])
def test_both_ends_of_the_range_average_at_a_small_scale(package, dtype, layout, name):
    most = float(np.finfo(dtype).max) / 2
    least = float(np.finfo(dtype).tiny)
    ends = [0.875 * 2 * most, -0.875 * 2 * most, -0.875 * 2 * most]
    for scale in (0.0, 4 * least, -4 * least):
        exact = exact_mean_of_exponentials if name == "logsumexp" else exact_softmax
        expected = exact(ends, scale)
        allowed = rounded(ends, 16, dtype)
        checked(package, dtype, layout, name, [[end] for end in ends], expected, allowed, options={"scale": scale})


def exact_mean_of_exponentials(x, scale):
    with decimal.localcontext(EXACT):
        x, scale = [Decimal(each) for each in x], Decimal(scale)
        if not scale:
            return float(sum(x) / len(x))
        return float((sum((scale * each).exp() for each in x) / len(x)).ln() / scale)


def exact_softmax(x, scale):
    with decimal.localcontext(EXACT):
        x, scale = [Decimal(each) for each in x], Decimal(scale)
        weights = [(scale * each).exp() for each in x]
        return float(sum(each * weight for each, weight in zip(x, weights, strict=True)) / sum(weights))


@every_package
@in_both
def test_quantiles_between_both_ends_of_the_range_are_finite(package, dtype):
    end = 0.875 * float(np.finfo(dtype).max)
    for q, expected in ((0.5, 0), (1e-9, -end), (0.25, -end / 2)):
        allowed = rounded(end, 4, dtype) + 2e-9 * end * (q == 1e-9)
        checked(package, dtype, "dense", "quantile", [[end], [-end]], expected, allowed, options={"q": q})


@every_package
@in_both
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_token_without_weight_decides_no_unit_of_a_deviation(package, dtype, layout):
    for huge in (1e20, 0.875 * float(np.finfo(dtype).max)):
        for size in (1.0, 2.0**-10):
            x = [[huge], [2 * size], [5 * size]]
            weights = {"weights": np.array([0, 1, 2], dtype)}
            expected = size * math.sqrt(2)
            checked(package, dtype, layout, "std", x, expected, rounded(expected, 16, dtype), of_tokens=weights)


INFINITE = [
    ("softmax", {"scale": 0.0}, (-np.inf, 1.0), -np.inf),
    ("softmax", {"scale": 0.0}, (np.inf, 1.0), np.inf),
    ("softmax", {"scale": 0.0}, (np.inf, -np.inf), np.nan),
    ("softmax", {"scale": 1.0}, (-np.inf, 1.0), 1.0),
    ("softmax", {"scale": -2.0}, (-np.inf, 1.0), -np.inf),
    ("logsumexp", {"scale": 0.0}, (-np.inf, 1.0), -np.inf),
    ("logsumexp", {"scale": 0.0}, (np.inf, 1.0), np.inf),
    ("power_mean", {"p": 0.005}, (np.inf, 1.0), np.inf),
    ("power_mean", {"p": 0.0}, (np.inf, 1.0), np.inf),
    ("power_mean", {"p": -1.0}, (np.inf, 1.0), 2.0),
    ("noisy_or", {}, (np.inf, 0.5), np.inf),
    ("noisy_or", {}, (0.5, np.inf), np.inf),
    ("quantile", {"q": 0.25}, (-np.inf, 1.0), -np.inf),
    ("quantile", {"q": np.nan}, (2.0, 1.0), np.nan),
    ("quantile", {"q": np.nan}, (2.0, 2.0), np.nan),
]


@every_package
@pytest.mark.parametrize(("name", "options", "x", "expected"), INFINITE)
def test_infinite_data_are_pooled_as_the_definition_says(package, name, options, x, expected):
    x = np.float32(x)[:, None]
    for layout in LAYOUTS if hasattr(package, f"{name}_state") else ("dense",):
        chex.assert_trees_all_close(
            np.asarray(pooled(package, layout, name, x, options)), np.float32([expected]), rtol=0
        )


STEEP = [
    ([1e-30, 2e-30, 0], 100.0, [0.478650984151, 0.521349015849, 0]),
    ([1e-30, 2e-30, 0], 1e4, [0.005969440766, 0.994030559234, 0]),
    ([0.1, 0.1, 0.05], 20.0, [0.5, 0.5, 0]),
    ([1.0, 1.0, 0.5], 1e4, [0.5, 0.5, 0]),
]


@every_package
@in_both
@pytest.mark.parametrize(("scores", "alpha", "expected"), STEEP)
def test_entmax_keeps_its_digits_at_a_large_alpha(package, dtype, scores, alpha, expected):
    with jax.enable_x64(dtype == "float64"):
        scores = np.asarray(scores, dtype)
        calls = [package.entmax] + [jax.jit(package.entmax)] * (package is attnpool_flax)
        for call in calls:
            weights = np.asarray(call(scores, alpha=alpha), np.float64)
            assert np.all(np.abs(weights - expected) <= rounded(1, 8, "float32"))
            assert np.sum(weights) == pytest.approx(1, abs=rounded(1, 8, dtype))


@every_package
@pytest.mark.parametrize("alpha", [np.inf, np.nan])
def test_entmax_of_an_alpha_that_is_not_finite_is_nan_where_anything_is_real(package, alpha):
    scores, mask = np.float32([[1, 2, 0.5], [1, 2, 3]]), np.array([[True, True, False], [False, False, False]])
    expected = np.float32([[np.nan, np.nan, 0], [0, 0, 0]])
    for call in [package.entmax] + [jax.jit(package.entmax)] * (package is attnpool_flax):
        chex.assert_trees_all_equal(np.asarray(call(scores, mask, alpha=alpha)), expected)


# Integers


HUGE = (sys.maxsize, 2**31, 2**70)


@every_package
@pytest.mark.parametrize("huge", HUGE)
def test_a_huge_k_or_window_takes_all_tokens(package, huge):
    x = np.float32([[1.0], [2.0], [6.0]])
    chex.assert_trees_all_equal(np.asarray(package.top_k_pooling(x, k=huge)), np.float32([3.0]))
    every = package.top_k_softmax(x, k=huge, axis=0)
    chex.assert_trees_all_equal(np.asarray(every), np.asarray(package.masked_softmax(x, axis=0)))
    some, whole = (package.semantic_match(x, x, method=m, window=huge) for m in ("local", "global"))
    chex.assert_trees_all_close(np.asarray(some), np.asarray(whole), atol=rounded(whole, 8), rtol=0)


@every_package
@pytest.mark.parametrize("huge", HUGE)
def test_a_size_that_32_bits_do_not_count_is_refused_by_name(package, huge):
    x, numbers = np.ones((3, 2), np.float32), np.zeros(3, np.int32)
    needs = f"is {huge}, needs an integer of at most 2147483647$"
    with pytest.raises(ValueError, match=f"^segment_mean_pooling: `num_segments` {needs}"):
        package.segment_mean_pooling(x, numbers, huge)
    with pytest.raises(ValueError, match=f"^lengths_to_mask: `max_length` {needs}"):
        package.lengths_to_mask(np.array([1]), huge)
    with pytest.raises(ValueError, match=f"^spans_to_mask: `max_length` {needs}"):
        package.spans_to_mask(np.zeros((1, 2), int), huge)


@every_package
def test_integers_of_more_than_64_bits_are_refused_by_name(package):
    x = np.ones((3, 2), np.float32)
    for key, call in {
        "lengths": lambda: package.mean_pooling(x, lengths=2**70),
        "start": lambda: package.first_state(x, start=2**70),
    }.items():
        with pytest.raises(ValueError, match=f"`{key}` has the value {2**70}, needs a number of at most 64 bits"):
            call()


@every_package
@pytest.mark.parametrize("make", ["first_state", "last_state"])
def test_a_chunk_that_reaches_beyond_the_largest_position_is_refused(package, make):
    x, make = np.ones((4, 1), np.float32), getattr(package, make)
    most = 2**31 - 1 if package is attnpool_flax else 2**63 - 1
    without = " without x64" if package is attnpool_flax else ""
    make(x, start=most - 3)
    make(x[:0], start=most)
    for start in (most - 2, most, most + 1):
        message = f"`start` has the value {start}, needs at most {most - 3}{without}, as the chunk has 4 tokens$"
        with pytest.raises(ValueError, match=message):
            make(x, start=start)


@every_package
def test_the_last_of_chunks_is_the_one_of_the_largest_position(package):
    early, late = np.float32([[1.0]] * 4), np.float32([[2.0]] * 4)
    states = package.last_state(early, start=5), package.last_state(late, start=2**31 - 4)
    chex.assert_trees_all_equal(np.asarray(package.finalize_state(package.merge_states(*states))), np.float32([2.0]))
