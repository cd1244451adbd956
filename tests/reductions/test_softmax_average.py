"""Averages under a softmax, as GPUs compute them: the numbers of the CPU, padding and fully masked rows included."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from constants import compiling_anew, replaced
from rounded_products import GPU, on_device
from rounding import rounded

import attnpool_flax
from attnpool_flax.attention import average
from attnpool_flax.call.compiled import FUNCTIONS
from attnpool_flax.normalizers import exp_and_sum
from attnpool_flax.queries.averages import softmax_average
from attnpool_flax.reductions.loops import blocks

HIGHEST = jax.lax.Precision.HIGHEST
SCORES, VALUES, G = (
    np.random.default_rng(i).normal(size=shape) for i, shape in enumerate([(2, 5, 7), (2, 7, 3), (2, 5, 3)])
)
MASK = np.random.default_rng(3).random((2, 5, 7)) < 0.6
MASK[0, 2] = False
SCORES, VALUES = np.where(MASK, SCORES, np.nan), np.where(np.expand_dims(np.any(MASK, -2), -1), VALUES, 0)


def weights_first(scores, value):
    return softmax_average(scores, MASK, value, HIGHEST)


def sums_first(scores, value):
    return average(*exp_and_sum(scores, MASK), value, HIGHEST)


def first(function, scores, value):
    """The result and both gradients."""
    result, pull = jax.vjp(function, scores, value)
    return result, *pull(jnp.asarray(G, result.dtype))


def second(function, scores, value):
    """The gradients of a sum of gradients."""

    def total(scores, value):
        return sum(jnp.sum(jnp.sin(part)) for part in first(function, scores, value)[1:])

    return jax.grad(total, (0, 1))(scores, value)


def forward_mode(function, scores, value):
    """The tangent."""
    return jax.jvp(function, (scores, value), (jnp.cos(jnp.where(MASK, scores, 0)), jnp.cos(value)))[1:]


@pytest.mark.parametrize("derivative", [first, second, forward_mode])
def test_weights_first_and_sums_first_agree(derivative):
    arrays = [jnp.asarray(array, jnp.float32) for array in (SCORES, VALUES)]
    found, known = (on_device(GPU, functools.partial(derivative, own))(*arrays) for own in (weights_first, sums_first))
    for own, other in zip(found, known, strict=True):
        assert jnp.isfinite(own).all()
        np.testing.assert_allclose(own, other, rtol=0, atol=rounded(np.abs(other).max(), 4 * MASK.size, "float32"))


def test_a_fully_masked_row_is_0_and_has_no_gradient():
    arrays = [jnp.asarray(array, jnp.float32) for array in (SCORES, VALUES)]
    result, dscores, _ = first(weights_first, *arrays)
    assert not result[0, 2].any()
    assert not dscores[0, 2].any()


CALLS = {
    "attend": (SCORES, VALUES),
    "dot_product_attention": (SCORES, np.ones((2, 7, 7)), VALUES),
    "bidaf_attention": (np.ones((2, 5, 3)), np.ones((2, 7, 3)), np.ones(9)),
}


@pytest.mark.parametrize("name", CALLS)
def test_gpus_divide_the_weights_and_others_the_averages(name):
    """Of more queries than make a block on a CPU."""
    arrays = [np.asarray(array, np.float32) for array in CALLS[name]]
    with replaced(blocks, LARGEST=1), compiling_anew(FUNCTIONS[name]):
        traced = jax.jit(getattr(attnpool_flax, name)).trace(*arrays)

    def divides_weights(platform):
        lines = traced.lower(lowering_platforms=(platform,)).as_text().splitlines()
        return any("stablehlo.divide" in line and "tensor<2x5x7xf32>" in line for line in lines)

    assert [divides_weights(platform) for platform in ("cuda", "tpu", "cpu")] == [True, False, False]
