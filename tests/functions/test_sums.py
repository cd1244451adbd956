"""Sums under weights: what their gradients hold."""

import jax
import jax.numpy as jnp

import attnpool_flax

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
