"""Lowered programs of accelerators: which tokens they copy, what they divide and which products they compute twice."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from constants import compiling_anew, replaced
from marks import all_with_few_quick, thorough

import attnpool_flax
from attnpool_flax.call.compiled import FUNCTIONS
from attnpool_flax.reductions.loops import blocks

B, N, M, D, V = 2, 5, 7, 3, 4
PLATFORMS = ("cpu", "cuda", "tpu")


def ones(*shape):
    return np.ones(shape, np.float32)


QUERIES, KEYS, VALUES, WIDE = ones(B, N, D), ones(B, M, D), ones(B, M, V), ones(3 * D)
OF_QUERIES, OF_KEYS = np.arange(N) < [[N], [2]], np.arange(M) < [[3], [M]]
KERNELS = {f"{part}_kernel": ones(D, D) for part in ("query", "key", "value")}
CALLS = {
    "attend": ((ones(B, N, M), VALUES, OF_KEYS[:, None] & OF_QUERIES[..., None]), {}),
    "dot_product_attention": ((QUERIES, KEYS, VALUES, OF_KEYS[:, None]), {}),
    "mask_attention": ((KEYS, QUERIES, OF_KEYS, OF_QUERIES), {}),
    "bidaf_attention": ((QUERIES, KEYS, WIDE, OF_QUERIES, OF_KEYS), {}),
    "label_attention": ((QUERIES, OF_QUERIES), KERNELS),
}


def lowered(name, platform, derived=lambda function: function):
    """The StableHLO of a call with more queries than make a block on a CPU, in lines."""
    arrays, keywords = CALLS[name]
    function = derived(functools.partial(getattr(attnpool_flax, name), **keywords))
    with replaced(blocks, LARGEST=1), compiling_anew(FUNCTIONS[name]):
        traced = jax.jit(lambda first: function(first, *arrays[1:])).trace(arrays[0])
    return traced.lower(lowering_platforms=(platform,)).as_text().splitlines()


@pytest.mark.parametrize("name", ["attend", *thorough(["dot_product_attention", "bidaf_attention"])])
def test_gpus_divide_the_weights_and_others_the_averages(name):
    divided = [
        any("stablehlo.divide" in line and f"tensor<{B}x{N}x{M}xf32>" in line for line in lowered(name, platform))
        for platform in PLATFORMS
    ]
    assert divided == [False, True, False]


@pytest.mark.parametrize("name", thorough(["mask_attention", "bidaf_attention", "label_attention"]))
def test_only_tpus_compute_products_twice_and_only_without_gradients(name):
    """The barrier keeps XLA from computing them once."""

    def has_barrier(lines):
        return any("optimization_barrier" in line and f"tensor<{B}x" in line for line in lines)

    def step(function):
        return jax.grad(lambda *arrays: jnp.sum(function(*arrays) ** 2))

    assert [has_barrier(lowered(name, platform)) for platform in PLATFORMS] == [False, False, True]
    assert not has_barrier(lowered(name, "tpu", step))


@pytest.mark.parametrize("platform", all_with_few_quick(PLATFORMS, ["cuda"]))
def test_maxsim_copies_no_tokens_forward(platform):
    """Its products are of raw tokens, beside NaN in the padding."""
    traced = jax.jit(attnpool_flax.maxsim_score).trace(QUERIES, KEYS, OF_QUERIES, OF_KEYS)
    lines = traced.lower(lowering_platforms=(platform,)).as_text().splitlines()
    assert not [line for line in lines if "stablehlo.select" in line and f"x{D}xf32" in line]
