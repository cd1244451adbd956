"""Layer normalization by the programs for TPUs and GPUs, evaluated on a CPU."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rounded_products import GPU, TPU, on_device

from attnpool_flax import layer_norm

RNG = np.random.default_rng(0)
LARGE, EQUAL, POISONED = 1, 2, 3
"""Vectors of large numbers, of equal numbers, and with a NaN; vector 0 is ordinary."""


def vectors(dtype):
    x = RNG.normal(size=(4, 7))
    x[LARGE] *= 1e30
    x[EQUAL] = 0.1
    x[POISONED, 0] = np.nan
    return jnp.asarray(x, dtype)


def results(x, scale, cotangent):
    """Returns the result and the gradients with respect to x and scale."""
    result, pull = jax.vjp(lambda x, scale: layer_norm(x, scale, epsilon=1e-6), x, scale)
    return result, *pull(cotangent.astype(result.dtype))


@pytest.mark.parametrize("platform", [TPU, GPU])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_each_platform_gives_what_a_cpu_gives(platform, dtype):
    x, scale, cotangent = vectors(dtype), jnp.asarray(RNG.normal(size=7), dtype), jnp.asarray(RNG.normal(size=(4, 7)))
    expected = jax.jit(results)(x, scale, cotangent)
    found = on_device(platform, results)(x, scale, cotangent)
    found, expected = jax.tree.map(np.float32, (found, expected))
    chex.assert_trees_all_close(found, expected, rtol={"float32": 1e-5, "bfloat16": 0.02}[dtype], atol=1e-6)
    assert not found[0][EQUAL].any(), "equal numbers are exactly 0"
    assert np.isfinite(found[0][:POISONED]).all()
    assert np.isnan(found[0][POISONED]).all()
