"""Sums that are differentiated along each argument by itself: derivatives are those of JAX, and padding never matters."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rounding import rounded

from attnpool_flax.numerics.remat import by_argument
from attnpool_flax.reductions import vlad

B, L, D, K = 2, 5, 3, 4


def residuals(x, mask, centers, weights):
    x = jnp.where(mask[..., None], x, 0)
    return jnp.einsum("bkl,blkd->bkd", weights, x[:, :, None] - centers[None, None])


@pytest.fixture
def arrays(rng):
    mask = np.arange(L) < np.array([[3], [0]])
    weights = rng.normal(size=(B, K, L)) * mask[:, None]
    return [
        jnp.asarray(own, jnp.float32) for own in (rng.normal(size=(B, L, D)), rng.normal(size=(K, D)), weights)
    ], mask


def assert_agree(found, expected):
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        chex.assert_trees_all_close(ours, theirs, atol=rounded(theirs, terms=8 * L * D * K * B), rtol=0)


def derivatives(function, arrays):
    """First ones, those of their squares, and one along the arrays' sines."""

    def first(*arrays):
        return jax.grad(lambda *arrays: jnp.sum(jnp.sin(function(*arrays))), range(3))(*arrays)

    def all_of_them(*arrays):
        second = jax.grad(lambda *arrays: sum(jnp.sum(own * own) for own in first(*arrays)), range(3))(*arrays)
        return first(*arrays), second, jax.jvp(function, arrays, tuple(map(jnp.sin, arrays)))

    return jax.jit(all_of_them)(*arrays)


def test_derivatives_are_those_of_jax(arrays):
    arrays, mask = arrays
    ours = derivatives(lambda x, *own: vlad._at_once(x, mask, *own), arrays)
    assert_agree(ours, derivatives(lambda x, *own: residuals(x, mask, *own), arrays))


def test_padding_never_matters(arrays):
    (x, *own), mask = arrays
    bad = jnp.where(mask[..., None], x, jnp.nan)
    found, expected = (derivatives(lambda x, *own: vlad._at_once(x, mask, *own), [one, *own])[:2] for one in (bad, x))
    chex.assert_trees_all_equal(found, expected)


def test_no_gradient_needs_an_array_that_is_saved():
    large = by_argument(lambda x, y: jnp.sum(jnp.tanh(x[:, None] + y[None]), 0))
    _, vjp = jax.eval_shape(lambda x, y: jax.vjp(large, x, y), *[jax.ShapeDtypeStruct((64,), jnp.float32)] * 2)
    assert max(leaf.size for leaf in jax.tree.leaves(vjp)) == 64
