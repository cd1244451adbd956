"""Sums over hidden units as GPUs compute them, run on a CPU: at once, with the gradient of each argument recomputed.

Results, gradients and second derivatives are judged in ``tests/functions/test_precision.py`` and ``test_accelerators.py``.
"""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from constants import replaced
from jax.sharding import Mesh, PartitionSpec
from rounding import rounded

import attnpool_flax
from attnpool_flax import scores

pytestmark = pytest.mark.thorough

N, M, D, H, V = 3, 5, 4, 7, 2
SHAPES = {
    "additive_score": [(D, H), (D, H), (H,)],
    "concat_score": [(2 * D, H), (H,)],
    "tanh_sum_score": [(2 * D, H)],
    "gaussian_score": [],
    "additive_attention": [(M, V), (D, H), (D, H), (H,)],
    "tanh_sum_attention": [(M, V), (2 * D, H)],
    "kernel_regression": [(M, V)],
}


def drawn(name, dtype="float32"):
    random = np.random.default_rng(len(name))
    shapes = [(2, N, D), (2, M, D), *((2, *shape) if shape[0] == M else shape for shape in SHAPES[name])]
    return [jnp.asarray(random.normal(size=shape), dtype) for shape in shapes]


@pytest.fixture
def on_gpus():
    """Runs a function with the branches of GPUs."""

    def default(*arrays, **branches):
        return branches["default"](*arrays)

    def run(function, *arrays):
        with replaced(scores.lax, platform_dependent=default):
            return jax.jit(lambda *arrays: function(*arrays))(*arrays)

    return run


def first(function, *arrays):
    """The result, and the gradients of the sum of its sines in float32."""

    def loss(*arrays):
        result = function(*arrays).astype(jnp.float32)
        return jnp.sum(jnp.sin(result)), result

    (_, result), gradients = jax.value_and_grad(loss, range(len(arrays)), has_aux=True)(*arrays)
    return result, gradients


def forward(function, *arrays):
    """The directional derivative along the arrays' sines."""
    return jax.jvp(function, arrays, tuple(map(jnp.sin, arrays)))[1]


def assert_agree(found, expected, dtype="float32"):
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        ours, theirs = np.asarray(ours, np.float32), np.asarray(theirs, np.float32)
        allowed = rounded(theirs, terms=2 * N * M * H * D) + float(jnp.finfo(dtype).eps) * np.abs(theirs).max()
        chex.assert_trees_all_close(ours, theirs, atol=allowed, rtol=0)


@pytest.mark.parametrize("name", SHAPES)
def test_forward_mode_is_that_of_the_loop(name, on_gpus):
    function, arrays = functools.partial(forward, getattr(attnpool_flax, name)), drawn(name)
    assert_agree(on_gpus(function, *arrays), jax.jit(function)(*arrays))


@pytest.mark.parametrize("argument", [None, 0, 1, 5], ids=["result", "query", "key", "out_kernel"])
def test_padding_reaches_neither_the_result_nor_the_gradient_of_one_argument(argument, on_gpus):
    """Without the gradient of all arguments at once: raw keys have hidden units that are NaN."""
    query, key, value, *others = drawn("additive_attention")
    mask = jnp.broadcast_to(jnp.arange(M) < 3, (2, N, M))

    def result(*arrays):
        return attnpool_flax.additive_attention(*arrays, mask=mask)

    def gradient(*arrays):
        return jax.grad(lambda *arrays: jnp.sum(jnp.sin(result(*arrays))), argument)(*arrays)

    padded, clean = ([jnp.where(mask[:, 0, :, None], own, content) for own in (key, value)] for content in (jnp.nan, 0))
    function = result if argument is None else gradient
    found, expected = (on_gpus(function, query, *own, *others) for own in (padded, clean))
    chex.assert_trees_all_equal(found, expected)


@pytest.mark.thorough
def test_shared_keys_and_values_are_padded_for_each_example(on_gpus):
    """On a mesh of one device, which checks that all branches vary over the same axes."""
    query, key, value, *others = drawn("additive_attention")
    mask = jnp.stack([jnp.arange(M) < 3, jnp.arange(M) < 0])[:, None]
    mesh, own = Mesh(np.array(jax.devices()[:1]), ("examples",)), PartitionSpec("examples")

    def attention(query, key, value, mask):
        return attnpool_flax.additive_attention(query, key, value, *others, mask=mask)

    def split(query, key, value):
        specs = own, PartitionSpec(), PartitionSpec(), own
        return jax.shard_map(attention, mesh=mesh, in_specs=specs, out_specs=own)(query, key, value, mask)

    arrays = query, key[0].at[3:].set(jnp.nan), value[0].at[3:].set(jnp.nan)
    function = functools.partial(first, split)
    assert_agree(on_gpus(function, *arrays), jax.jit(function)(*arrays))
    assert_agree(on_gpus(split, *arrays), first(split, *arrays)[0])


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)], ids=["tokens", "mask", "both"])
def test_gradients_of_padded_keys_under_vmap(axes, on_gpus):
    query, key, value, *others = drawn("additive_attention")
    tokens, mask = axes
    keys, masks = (key, value) if tokens == 0 else (key[0], value[0]), jnp.arange(M)[None] < jnp.array([3, 1])[:, None]
    masks = jnp.broadcast_to(masks[:, None], (2, N, M))

    def attention(query, key, value, mask):
        return attnpool_flax.additive_attention(query, key, value, *others, mask=mask)

    def mapped(query, key, value):
        own = masks if mask == 0 else masks[0]
        return jax.vmap(attention, (0, tokens, tokens, mask))(query, key, value, own)

    function = functools.partial(first, mapped)
    assert_agree(on_gpus(function, query, *keys), jax.jit(function)(query, *keys))


@pytest.mark.parametrize("name", ["additive_score", "concat_score", "tanh_sum_score"])
def test_gpus_keep_units_with_a_bias_and_their_gradient_behind_barriers(name):
    """Else XLA sums the terms of all pairs, which it writes, for the gradient of the bias."""

    def barriers(platform, **bias):
        def loss(bias, *arrays):
            return jnp.sum(jnp.sin(getattr(attnpool_flax, name)(*arrays, **bias)))

        step = jax.jit(jax.grad(loss, (0, 1, 2))).trace(bias, *drawn(name))
        text = step.lower(lowering_platforms=(platform,)).as_text()
        return sum(f"tensor<{H}x2x{M}xf32>" in line for line in text.splitlines() if "optimization_barrier" in line)

    bias = {"bias": jnp.ones(H)}
    assert barriers("cuda", **bias) > barriers("cuda")
    assert barriers("tpu", **bias) == barriers("tpu")
