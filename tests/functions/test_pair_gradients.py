"""Gradients where the formulas have none: each docstring says what they are there, and nothing is infinite."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnpool_flax
from attnpool_flax.numerics import rounding
from attnpool_flax.numerics.rounding import tied

LABELS = np.array([[1.0, 0], [1, 0], [0, 1]], np.float32)
CONTEXT = np.array([[2.0, 1], [0.5, 0.25]], np.float32)


def gradient(function, *arrays):
    gradients = jax.jit(jax.grad(lambda *a: jnp.sum(function(*a)), tuple(range(len(arrays)))))
    return jax.tree.map(np.asarray, gradients(*arrays))


def test_equal_labels_share_the_gradient_of_the_maximum():
    def pool(labels):
        return attnpool_flax.code_wise_attention(labels, CONTEXT)

    (of_labels,) = gradient(pool, LABELS)
    (alone,) = gradient(pool, LABELS[1:])
    assert np.any(alone[0] != 0)
    chex.assert_trees_all_equal(of_labels[:2], np.stack([alone[0] / 2] * 2))


@pytest.mark.thorough
def test_equal_query_tokens_share_the_gradient_of_bidafs_maximum():
    kernel = np.array([0, 0, 0, 0, 1, 1], np.float32)

    def summary(query):
        return attnpool_flax.bidaf_attention(CONTEXT, query, kernel)[..., 6:]

    (of_query,) = gradient(summary, LABELS)
    (alone,) = gradient(summary, LABELS[1:])
    assert np.any(alone[0] != 0)
    chex.assert_trees_all_equal(of_query[:2], np.stack([alone[0] / 2] * 2))


@pytest.mark.thorough
def test_equal_tokens_share_the_gradient_of_all_pairs_maximum():
    def pool(y):
        return attnpool_flax.cross_attention_pooling_all_pairs(CONTEXT[None], y[None], reduction="max")[0]

    (of_y,) = gradient(pool, LABELS)
    (alone,) = gradient(pool, LABELS[1:])
    assert np.any(alone[0] != 0)
    chex.assert_trees_all_equal(of_y[:2], np.stack([alone[0] / 2] * 2))


def test_the_best_match_has_the_gradient_of_the_token_that_was_chosen():
    of_x, of_y = gradient(attnpool_flax.semantic_match, CONTEXT, np.array([[1.0, 1], [2, 1], [2, 1]], np.float32))
    chex.assert_trees_all_equal(of_x, np.zeros_like(of_x))
    chex.assert_trees_all_equal(of_y, np.array([[0, 0], [2, 2], [0, 0]], np.float32))


@pytest.mark.parametrize("method", ["max", "global", "local"])
def test_a_zero_token_has_no_direction_to_learn(method):
    def match(x):
        return attnpool_flax.semantic_match(x, LABELS, method=method, normalize=False)

    (of_x,) = gradient(match, np.zeros((2, 2), np.float32))
    chex.assert_trees_all_equal(of_x, np.zeros_like(of_x))


@pytest.mark.parametrize("name", ["orthogonal", "linear"])
def test_a_zero_reference_has_gradient_zero(name):
    split = getattr(attnpool_flax, f"{name}_decomposition")
    of_x, of_reference = gradient(lambda x, r: split(x, r)[0], CONTEXT, np.zeros_like(CONTEXT))
    chex.assert_trees_all_equal((of_x, of_reference), (np.zeros_like(CONTEXT), np.zeros_like(CONTEXT)))


def test_a_zero_vector_has_a_cosine_without_gradient():
    of_x, of_reference = gradient(
        lambda x, r: attnpool_flax.linear_decomposition(x, r)[0], np.zeros_like(CONTEXT), CONTEXT
    )
    chex.assert_trees_all_equal((of_x, of_reference), (np.zeros_like(CONTEXT), np.zeros_like(CONTEXT)))


@pytest.mark.parametrize("size", [1e-30, 1e30])
@pytest.mark.parametrize("name", ["orthogonal", "linear"])
def test_gradients_of_short_and_long_vectors_are_those_of_ordinary_ones(name, size):
    """Both parts are of degree 1 in x and 0 in the reference."""
    split = getattr(attnpool_flax, f"{name}_decomposition")
    x, reference = CONTEXT, LABELS[1:] + np.float32(0.5)
    size = np.float32(2.0 ** np.round(np.log2(size)))  # exact, so that no digit changes
    of_x, of_reference = gradient(lambda x, r: split(x, r)[0], x, reference)
    big_x, big_reference = gradient(lambda x, r: split(x, r)[0], size * x, size * reference)
    assert np.any(of_reference != 0)
    chex.assert_trees_all_equal((big_x, big_reference), (of_x, of_reference))


def test_a_rigid_decomposition_passes_the_gradient_to_x_alone():
    of_x, of_reference = gradient(
        lambda x, r: attnpool_flax.rigid_decomposition(x, r)[0], LABELS, np.broadcast_to(LABELS[0], LABELS.shape)
    )
    chex.assert_trees_all_equal(of_x, np.array([[1, 1], [1, 1], [0, 0]], np.float32))
    chex.assert_trees_all_equal(of_reference, np.zeros_like(LABELS))


def test_zero_labels_of_a_graph_have_finite_gradients():
    labels = np.array([[1.0, 2], [0, 0], [3, 1]], np.float32)
    adjacency = np.array([[False, True, True], [True, False, False], [False, True, False]])
    (of_labels,) = gradient(lambda a: attnpool_flax.graph_decomposition(a, adjacency), labels)
    chex.assert_tree_all_finite(of_labels)
    assert np.any(of_labels[0] != 0)


def test_a_zero_attention_vector_takes_no_gradient_from_its_direction():
    exemplars = np.array([[0.5, 0.5], [0.25, 0.75]], np.float32)
    (of_attention,) = gradient(lambda s: attnpool_flax.differential_context(s, *exemplars), np.zeros(2, np.float32))
    chex.assert_trees_all_equal(of_attention, np.ones(2, np.float32))  # the s of s + d alone


@pytest.mark.parametrize(("margin", "share"), [(2.9375, 0), (3.0, 0.5), (3.0625, 1)])
def test_a_triplet_at_its_hinge_has_half_the_gradient(margin, share):
    anchor, positive, negative = np.array([[0.0, 0], [1, 0], [0, 2]], np.float32)  # 1 - 4 + margin

    def loss(anchor):
        return attnpool_flax.attention_triplet_loss(anchor, positive, negative, margin=margin)

    chex.assert_trees_all_equal(gradient(loss, anchor)[0], np.float32(share) * np.array([-2, 4], np.float32))


def test_a_relation_triplet_at_its_hinge_has_half_the_gradient():
    """Equal exemplars and no margin: the hinge is exactly at 0."""
    case, other = np.array([[1.0, 0], [0, 1]], np.float32)
    kernels = [np.eye(2, dtype=np.float32)] * 3 + [np.zeros(2, np.float32)]

    def loss(similar, margin):
        return attnpool_flax.relation_triplet_loss(case, similar, other, *kernels, margin=margin)

    (at_hinge,), (above,) = gradient(lambda s: loss(s, 0.0), other), gradient(lambda s: loss(s, 0.5), other)
    assert np.any(above != 0)
    chex.assert_trees_all_equal(at_hinge, above / 2)


def test_no_score_of_minus_infinity_is_tied():
    scores = jnp.array([[1.0, 1.0, 0.0], [-jnp.inf, 1.0, 0.0], [-jnp.inf, -jnp.inf, -jnp.inf]])
    found = tied(scores, jnp.max(scores, -1), jnp.ones(3), 3)
    np.testing.assert_array_equal(found, [[True, True, False], [False, True, False], [False, False, False]])


every_norm = pytest.mark.parametrize("norm", [rounding._norm_in_unit_of_largest, rounding._norm_in_three_units])


@every_norm
@pytest.mark.parametrize("exponent", [-110, -85, -60, -20, 0, 30, 62, 63, 85, 120])
def test_no_square_of_a_norm_over_or_underflows(norm, exponent):
    x = np.ldexp(np.random.default_rng(7).standard_normal((4, 64)).astype(np.float32), exponent)
    found = np.float64(jax.jit(norm)(x))
    np.testing.assert_allclose(found, np.linalg.norm(np.float64(x), axis=-1, keepdims=True), rtol=1e-6)


@every_norm
def test_norms_of_special_vectors(norm):
    x = jnp.array([[0.0, 0.0], [jnp.inf, 1.0], [jnp.nan, 1.0]])
    np.testing.assert_array_equal(norm(x)[:, 0], [0.0, np.inf, np.nan])
