"""Programs for accelerators of poolings with a hidden layer, and of VLAD, evaluated on a CPU."""

import contextlib
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from marks import thorough
from rounded_products import GPU, TPU, on_device
from walks import small_tiles

import attnpool_flax

B, L, D, H = 3, 7, 5, 4
RNG = np.random.default_rng(0)
MASK = RNG.random((B, L)) < 0.6
MASK[1] = False  # a fully masked row
X = RNG.normal(size=(B, L, D))
KERNEL, GATE, OUT = (RNG.normal(size=shape) for shape in ((D, H), (D, H), (H, D)))
IDS = np.repeat(np.arange(B), L)

CALLS = {
    "additive_attention_pooling": {"kernel": KERNEL, "gate_kernel": GATE, "out_kernel": OUT[:, 0]},
    "gated_sum_pooling": {"gate_kernel": GATE, "value_kernel": KERNEL},
    "attentive_statistics_pooling": {"kernel": KERNEL, "out_kernel": OUT},
    "vlad_pooling": {"assign_kernel": KERNEL, "centers": OUT},
}


def pooled(name, layout, x, kernels):
    if layout == "dense":
        return getattr(attnpool_flax, name)(x, MASK, **kernels)
    return getattr(attnpool_flax, f"segment_{name}")(jnp.reshape(x, (-1, D)), IDS, B, MASK.ravel(), **kernels)


def itself(function, *arrays):
    return function(*arrays)


def gradients(function, *arrays):
    return jax.grad(lambda *arrays: jnp.sum(jnp.sin(function(*arrays).astype("float32"))), (0, 1))(*arrays)


@pytest.fixture(params=["large", *thorough(["small"])])
def size(request):
    """Small arrays are computed as large ones are, with gradient rules of their own, or as they are."""
    with small_tiles(WHOLE=0) if request.param == "large" else contextlib.nullcontext():
        yield


@pytest.mark.thorough
@pytest.mark.usefixtures("size")
@pytest.mark.parametrize("platform", [*thorough([GPU]), TPU])
@pytest.mark.parametrize("dtype", ["bfloat16", *thorough(["float32"])])
@pytest.mark.parametrize("layout", ["dense", *thorough(["packed"])])
@pytest.mark.parametrize("name", CALLS)
def test_values_in_the_padding_change_no_bit(name, layout, dtype, platform):
    kernels = jax.tree.map(lambda own: jnp.asarray(own, dtype), CALLS[name])

    def computed(derived, fill, compiled):
        x = jnp.asarray(np.where(MASK[..., None], X, fill), dtype)
        run = compiled(lambda x, kernels: derived(lambda x, k: pooled(name, layout, x, k), x, kernels))
        return jax.tree.map(np.asarray, run(x, kernels))

    there = functools.partial(on_device, platform)
    for derived in (itself, gradients):
        clean = computed(derived, 0, there)
        chex.assert_tree_all_finite(clean)
        chex.assert_trees_all_equal(computed(derived, np.nan, there), clean)
        chex.assert_trees_all_equal(computed(derived, np.inf, there), clean)
        wide = [jax.tree.map(np.float32, own) for own in (clean, computed(derived, 0, jax.jit))]
        chex.assert_trees_all_close(*wide, atol={"bfloat16": 0.05, "float32": 1e-5}[dtype])
    assert not computed(itself, np.nan, there)[1].any()
