"""Sums under weights: their rounding errors, what their gradients hold, and that tokens are not copied."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnpool_flax
from attnpool_flax.numerics.sums import FEW, weighted

TOKENS, WEIGHTS = jnp.ones((1300, 4)), jnp.ones(1300)  # three slices


def test_the_gradient_of_a_sum_in_slices_makes_no_array_like_x_for_each_slice():
    def pooled(x, weights):
        return jnp.sum(attnpool_flax.weighted_pooling(x, weights, implementation="einsum"))

    assert "1300,4] = pad[" not in str(jax.make_jaxpr(jax.grad(pooled, argnums=(0, 1)))(TOKENS, WEIGHTS))


def test_what_has_no_gradient_in_a_sum_gives_none():
    def pooled(x, weights):
        x, weights = jax.lax.stop_gradient((x, weights))
        return jnp.sum(attnpool_flax.weighted_pooling(x, weights, implementation="einsum"))

    assert not jnp.any(jax.grad(pooled)(TOKENS, WEIGHTS))


@pytest.mark.parametrize("rows", [1, FEW + 1])
@pytest.mark.parametrize("length", [513, 577, 1300, 2048])
def test_equal_terms_do_not_drift(length, rows):
    x, weights = jnp.full((2, length, 4), 0.1), jnp.full((2, rows, length), 1 / 3)
    result = jax.jit(lambda weights, x: weighted(weights, x, None))(weights, x)
    assert result.shape == (2, rows, 4)
    np.testing.assert_allclose(result, np.float64(x[0, 0, 0]) * np.float64(weights[0, 0, 0]) * length, 1e-5)


@pytest.mark.parametrize("length", [1300, 577], ids=["parts divide the tokens", "no part does"])
@pytest.mark.parametrize("implementation", ["einsum", "tiles"])
def test_unmasked_tokens_are_not_copied(length, implementation):
    x, query = jax.ShapeDtypeStruct((16, length, 64), jnp.float32), jnp.ones(64)

    def pooled(x):
        return attnpool_flax.attention_pooling(x, query=query, implementation=implementation)

    compiled = jax.jit(pooled).lower(x).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < x.size * 4 // 3


@pytest.mark.parametrize("masked", [False, True])
def test_only_masked_tokens_are_reduced_in_a_loop(masked):
    x, mask = jnp.ones((8, 512, 96)), jnp.ones((8, 512), bool) if masked else None
    for pooling in (attnpool_flax.mean_pooling, attnpool_flax.attention_pooling):
        program = jax.jit(lambda x, own=pooling: own(x, mask, implementation="tiles")).lower(x)
        assert ("stablehlo.while" in program.as_text()) == masked


def test_the_gradient_of_a_gate_is_not_padded():
    x, kernel = jnp.ones((1, 50, 6)), jnp.ones((6, 4))

    def pooled(x, kernel):
        options = {"kernel": kernel, "gate_kernel": kernel, "out_kernel": jnp.ones(4)}
        return jnp.sum(attnpool_flax.additive_attention_pooling(x, **options))

    gradient = str(jax.make_jaxpr(jax.grad(pooled, argnums=(0, 1)))(x, kernel))
    assert "[1,50,8] = pad[" not in gradient  # the hidden layer and the gate
    assert "= split[" in gradient
