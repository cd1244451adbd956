"""Averages under the softmax of products that are computed twice, as TPUs compute them: the numbers of the CPU, padding included."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from constants import compiling_anew, replaced
from marks import one_in
from rounded_products import TPU, on_device
from rounding import rounded

import attnpool_flax
from attnpool_flax.attention import sums_first
from attnpool_flax.call.compiled import FUNCTIONS
from attnpool_flax.queries.averages import Products
from attnpool_flax.reductions.loops import blocks

HIGHEST = jax.lax.Precision.HIGHEST
B, N, M, D, V = 2, 5, 7, 3, 4
RNG = np.random.default_rng(0)
MASK = RNG.random((B, N, M)) < 0.6
MASK[0, 2], MASK[1, :, 3] = False, False
QUERIES, KEYS, BIAS, VALUES, G = (
    RNG.normal(size=shape).astype(np.float32) for shape in [(B, N, D), (B, M, D), (B, N, M), (B, M, V), (B, N, V)]
)
BIAS = np.where(MASK, BIAS, np.float32(np.nan))
SCORES = Products(lambda queries, keys, bias: (queries, keys, bias), HIGHEST)
ONCE = functools.partial(sums_first, precision=HIGHEST)


def twice(*arrays):
    *arrays, value = arrays
    return SCORES.average(ONCE, arrays, MASK, value)


def once(*arrays):
    *arrays, value = arrays
    return ONCE(SCORES(*arrays), MASK, value)


def first(function, *arrays):
    """The result and the gradients of all arrays."""
    result, pull = jax.vjp(function, *arrays)
    return result, *pull(jnp.asarray(G))


def second(function, *arrays):
    """The gradients of a sum of gradients."""
    return jax.grad(lambda *own: sum(jnp.sum(jnp.sin(part)) for part in first(function, *own)[1:]), (0, 1, 3))(*arrays)


def forward_mode(function, *arrays):
    return jax.jvp(function, arrays, tuple(jnp.cos(jnp.nan_to_num(array)) for array in arrays))


def itself(function, *arrays):
    return (function(*arrays),)


def mapped(function, *arrays):
    stacked = [jnp.stack([array, 2 * array]) for array in arrays]
    return jax.vmap(function)(*stacked), jax.vmap(function, (0, None, None, None))(stacked[0], *arrays[1:])


@pytest.mark.thorough
@pytest.mark.parametrize("derivative", [itself, first, second, forward_mode, mapped])
def test_twice_and_once_agree(derivative):
    arrays = [jnp.asarray(array) for array in (QUERIES, KEYS, BIAS, VALUES)]
    found, known = (jax.jit(functools.partial(derivative, own))(*arrays) for own in (twice, once))
    for own, other in zip(found, known, strict=True):
        assert jnp.isfinite(own).all()
        np.testing.assert_allclose(own, other, rtol=0, atol=rounded(np.abs(other).max(), 4 * MASK.size, "float32"))


def test_a_fully_masked_query_is_0_and_a_real_nan_stays_in_its_row():
    found = twice(np.where(np.arange(N)[:, None] == 1, np.nan, QUERIES).astype(np.float32), KEYS, BIAS, VALUES)
    assert not found[0, 2].any()
    assert jnp.isnan(found[:, 1]).all()
    assert jnp.isfinite(jnp.delete(found, 1, 1)).all()


def test_the_largest_scores_are_returned_with_a_size():
    result, largest = SCORES.average(ONCE, (QUERIES, KEYS, BIAS), MASK, VALUES, jnp.ones((B, N)))
    masked = jnp.where(MASK, SCORES(QUERIES, KEYS, BIAS), -jnp.inf)
    np.testing.assert_array_equal(result, twice(QUERIES, KEYS, BIAS, VALUES))
    np.testing.assert_array_equal(largest, masked.max(-1, keepdims=True))


KERNELS = {f"{part}_kernel": np.ones((D, D), np.float32) for part in ("query", "key", "value")}
CALLS = {
    "mask_attention": ((KEYS, QUERIES, MASK[:, 0], MASK[0, :, :B].T), {}),
    "bidaf_attention": ((QUERIES, KEYS, np.ones(3 * D, np.float32), MASK[0, :, :B].T, MASK[:, 0]), {}),
    "label_attention": ((QUERIES, MASK[0, :, :B].T), KERNELS),
}


def lowered(name, platform, derived=lambda function: function):
    """The StableHLO of a call with more queries than make a block on a CPU."""
    arrays, keywords = CALLS[name]
    function = derived(functools.partial(getattr(attnpool_flax, name), **keywords))
    with replaced(blocks, LARGEST=1), compiling_anew(FUNCTIONS[name]):
        traced = jax.jit(lambda query: function(query, *arrays[1:])).trace(arrays[0])
    return traced.lower(lowering_platforms=(platform,)).as_text()


def step(function):
    return jax.grad(lambda *arrays: jnp.sum(function(*arrays) ** 2))


@pytest.mark.parametrize("name", one_in(2, CALLS))
def test_only_tpus_compute_products_twice_and_only_without_gradients(name):
    barrier = f"tensor<{B}x"
    found = {platform: lowered(name, platform) for platform in ("tpu", "cuda", "cpu")} | {
        "step": lowered(name, "tpu", step)
    }
    lines = {key: [line for line in text.splitlines() if "optimization_barrier" in line] for key, text in found.items()}
    assert {key: any(barrier in line for line in own) for key, own in lines.items()} == {
        "tpu": True,
        "cuda": False,
        "cpu": False,
        "step": False,
    }


@pytest.mark.parametrize("name", CALLS)
def test_tpus_compute_the_numbers_of_cpus(name):
    arrays, keywords = CALLS[name]
    expected = getattr(attnpool_flax, name)(*arrays, **keywords, precision="highest")
    with replaced(blocks, LARGEST=1), compiling_anew(FUNCTIONS[name]):
        own = functools.partial(getattr(attnpool_flax, name), **keywords, precision="highest")
        found = on_device(TPU, own)(*arrays)
    np.testing.assert_allclose(found, expected, rtol=0, atol=rounded(expected, 4 * MASK.size))
