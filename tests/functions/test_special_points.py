"""Points where a formula divides by 0, takes a root of 0, is not differentiable, or has nothing to average."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drawn import draw, draw_heads
from packages import every_package
from rounding import assert_close

import attnpool_flax
import attnpool_ref
from attnpool_flax.numerics.elementwise import OF_SCORES
from attnpool_ref.conformance.checks.tolerances import allowed_error

pytestmark = pytest.mark.thorough

SPARSE = pytest.mark.parametrize("name", ["sparsemax", "entmax15"])
KERNELS = ["gaussian", "boxcar", "triangular", "epanechnikov", "constant"]
N, M, D, E, V, O, H, C, C2 = 2, 5, 3, 4, 6, 7, 2, 8, 9  # noqa: E741


# Activations


def test_the_slope_of_tanh_keeps_its_digits_where_tanh_is_near_1():
    x = np.linspace(-40, 40, 801)
    slope = jax.vmap(jax.grad(OF_SCORES["tanh"]))(jnp.asarray(x, jnp.float32))
    expected = np.cosh(x) ** -2
    moves = np.abs(2 * x * np.tanh(x) * expected)  # when x moves relatively
    assert (np.abs(slope - expected) <= allowed_error(expected, moves, 2, "float32")).all()
    chex.assert_trees_all_equal(jax.grad(OF_SCORES["tanh"])(jnp.inf), 0.0)


# Sparse normalisers


@every_package
@SPARSE
@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([1e30, -1e30, 0], [1, 0, 0]),
        ([-1e30, -1e30, -3e38], [0.5, 0.5, 0]),
        ([-np.inf, 2.0, 2.0], [0, 0.5, 0.5]),
        ([-np.inf, -np.inf, -np.inf], [0, 0, 0]),
        ([], []),
    ],
)
def test_sparse_weights_of_extreme_scores(package, name, scores, expected):
    assert_close(getattr(package, name)(np.array(scores, np.float32)), expected)


@every_package
@SPARSE
def test_sparse_weights_of_plus_infinity_are_nan_in_that_row_alone(package, name):
    scores = np.array([[1.0, np.inf, 0, 0], [np.nan, 1, -9, 0], [3.0, 1, 0, 0]])
    weights = np.asarray(getattr(package, name)(scores, np.array([True, True, True, False])))
    chex.assert_trees_all_equal(np.isnan(weights), np.array([[1, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 0]], bool))
    assert_close(weights[2], [1, 0, 0, 0])


@every_package
@SPARSE
@pytest.mark.parametrize("others", [1, 2, 97])
def test_scores_far_below_the_largest_have_weight_exactly_zero(package, name, others):
    """2 below is where 1.5-entmax stops; what lies there or deeper must not take part by rounding."""
    for depth in (2.0, 2.25, 40.0):
        scores = np.append(np.full(others, 0.1 - depth), 0.1)
        chex.assert_trees_all_equal(
            np.asarray(getattr(package, name)(scores), np.float64), np.append(np.zeros(others), 1.0)
        )


@functools.cache
def jacobian_of(name):
    """One program for all scores of a length."""
    return jax.jit(jax.jacobian(getattr(attnpool_flax, name)))


def jacobian(name, scores):
    return np.asarray(jacobian_of(name)(np.asarray(scores, np.float32)))


def test_sparsemax_jacobian_is_that_of_a_mean_over_its_support():
    """Martins and Astudillo 2016, section 2.5: Diag(s) - s s^T / |S|, s the indicator of the support S."""
    indicator = np.array([1.0, 1, 0, 1])
    expected = np.diag(indicator) - np.outer(indicator, indicator) / 3
    assert_close(jacobian("sparsemax", [0.5, 0.25, -1.0, 0.375]), expected)


def test_entmax15_jacobian_is_that_of_a_mean_under_the_roots_of_its_weights():
    """Peters, Niculae and Martins 2019, proposition 2: Diag(g) - g g^T / sum(g), g the roots of the weights."""
    scores = np.array([0.5, 0.25, -3.0, 0.375])
    roots = np.sqrt(attnpool_ref.entmax15(scores))
    assert_close(jacobian("entmax15", scores), np.diag(roots) - np.outer(roots, roots) / roots.sum())


# Directions and distances


@every_package
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_cosine_knows_no_length_and_a_zero_vector_has_none(package, size):
    query = np.array([[3.0, 4], [0, 0]], np.float32) * np.float32(size)
    assert_close(package.cosine_score(query, np.array([[0.0, 2], [0, 0]], np.float32)), [[0.8, 0], [0, 0]])


@pytest.mark.parametrize("kernel", KERNELS)
def test_weights_at_distance_zero_have_a_finite_gradient(kernel):
    """Two keys at the query and one beside it: every kernel has a flat top, the triangular one by decision."""
    keys, value = np.array([[0.0, 0], [0, 0], [0.5, 0]], np.float32), np.ones((3, 1), np.float32)

    def weights(query):
        return attnpool_flax.kernel_regression(query, keys, value, kernel=kernel, return_weights=True)[1][0]

    of_query = jax.jit(jax.jacobian(weights))
    slopes = np.asarray(of_query(np.zeros((1, 2), np.float32)))[:, 0]
    rises = {"gaussian": 0.5 * np.exp(-1 / 8), "triangular": 1, "epanechnikov": 0.75, "boxcar": 0, "constant": 0}
    heights = {"gaussian": np.exp(-1 / 8), "triangular": 0.5, "epanechnikov": 0.75 * 0.75, "boxcar": 1, "constant": 1}
    tops = {"epanechnikov": 0.75}
    top, height, rise = tops.get(kernel, 1), heights[kernel], rises[kernel]
    total = 2 * top + height  # w = height / total; the tops do not move
    assert_close(slopes, np.outer([-top * rise / total**2, -top * rise / total**2, 2 * top * rise / total**2], [1, 0]))


@every_package
@pytest.mark.parametrize("kernel", ["boxcar", "triangular", "epanechnikov"])
def test_nobody_in_range_is_an_empty_row(package, kernel):
    pooled, weights = package.kernel_regression(
        np.zeros((1, 1)), np.array([[3.0], [-4.0]]), np.ones((2, 1)), kernel=kernel, return_weights=True
    )
    chex.assert_trees_all_equal((np.asarray(pooled), np.asarray(weights)), (np.zeros((1, 1)), np.zeros((1, 2))))


@pytest.mark.parametrize("kernel", ["boxcar", "triangular", "epanechnikov"])
def test_nobody_in_range_has_gradient_zero(kernel):
    def loss(query, key, value, bandwidth):
        return jnp.sum(jnp.cos(attnpool_flax.kernel_regression(query, key, value, kernel=kernel, bandwidth=bandwidth)))

    arrays = jnp.zeros((1, 1)), jnp.array([[3.0], [-4.0]]), jnp.ones((2, 1)), jnp.asarray(1.0)
    slopes = jax.jit(jax.grad(loss, (0, 1, 2, 3)))(*arrays)
    chex.assert_trees_all_equal(slopes, tuple(map(jnp.zeros_like, arrays)))


# Output maps


@every_package
def test_location_attention_without_a_real_slot_maps_the_query(package, rng):
    query, out_kernel, out_bias = draw(rng, N, D), draw(rng, D + V, O), draw(rng, O)
    state, value = np.full((N, E), np.nan, np.float32), np.full((M, V), np.inf, np.float32)
    kernel, bias = draw(rng, D + E, M), draw(rng, M)
    result, weights = package.location_attention(
        query, state, value, kernel, bias, out_kernel, out_bias, np.zeros(M, bool), return_weights=True
    )
    assert_close(result, query @ out_kernel[:D] + out_bias)
    chex.assert_trees_all_equal(np.asarray(weights), np.zeros((N, M), np.float32))


def test_key_bias_of_learned_queries_changes_no_bit_and_has_gradient_zero(rng):
    parameters, x, query = draw_heads(rng, D, H, C, C2, O), draw(rng, M, D), draw(rng, N, D)

    def pool(key_bias):
        return attnpool_flax.multi_head_attention_pooling(x, query=query, **parameters | {"key_bias": key_bias})

    chex.assert_trees_all_equal(pool(100 * parameters["key_bias"]), pool(None))
    slope = jax.jit(jax.grad(lambda bias: jnp.sum(jnp.sin(pool(bias)))))(parameters["key_bias"])
    chex.assert_trees_all_equal(slope, np.zeros((H, C), np.float32))
