"""Blocks of examples change neither results nor derivatives, and exist only where they must."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from constants import replaced
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from marks import all_with_few_quick, thorough
from rounded_products import GPU, TPU, on_device
from rounding import rounded

import attnpool_flax
from attnpool_flax.call import example_blocks
from attnpool_flax.call.compiled import chosen_implementation
from attnpool_flax.reductions.loops import blocks

B, N, M, D, E = 5, 4, 3, 2, 6
RNG = np.random.default_rng(0)
PAIRS, KEYS, QUERIES = RNG.random((B, N, M)) < 0.7, RNG.random((B, M)) < 0.7, RNG.random((B, N)) < 0.7
PAIRS[1] = KEYS[2] = QUERIES[3] = False


def drawn(*shape, padding=None):
    """Normal numbers; NaN at padding."""
    array = RNG.normal(size=shape).astype(np.float32)
    return array if padding is None else np.where(np.expand_dims(padding, -1), np.float32(np.nan), array)


SEEN, SEEING = ~PAIRS.any(-2), ~PAIRS.any(-1)
HEADS = {"query_kernel": drawn(D, 2, 3), "key_kernel": drawn(D, 2, 3), "value_kernel": drawn(E, 2, 3)}
CALLS = {
    "attend": (np.where(PAIRS, drawn(B, N, M), np.nan), drawn(B, M, E, padding=SEEN), PAIRS),
    "dot_product_attention": (drawn(B, N, D, padding=SEEING), drawn(M, D), drawn(B, M, E, padding=SEEN), PAIRS),
    "multi_head_attention": (drawn(B, N, D), drawn(B, M, D), drawn(B, M, E), PAIRS[:, :1]),
    "kernel_regression": (drawn(N, D), drawn(B, M, D, padding=SEEN), drawn(B, M, E, padding=SEEN), PAIRS),
    "code_wise_attention": (drawn(B, M, D, padding=~KEYS), drawn(B, N, D, padding=~QUERIES), KEYS, QUERIES),
    "mask_attention": (drawn(B, M, D, padding=~KEYS), drawn(B, N, D, padding=~QUERIES), KEYS, QUERIES),
    "bidaf_attention": (drawn(B, N, D, padding=~QUERIES), drawn(B, M, D), drawn(3 * D), QUERIES, KEYS),
    "label_attention": (drawn(B, N, D, padding=~QUERIES), QUERIES),
}
KEYWORDS = {
    "multi_head_attention": HEADS | {"out_kernel": drawn(2, 3, E)},
    "label_attention": {f"{part}_kernel": drawn(D, D) for part in ("query", "key", "value")},
}
"""Sizes are pairwise different; some arrays have no batch axis, and one mask has an axis of size 1."""


def called(name):
    """From the floating arrays of a call to its result."""

    def function(*floats):
        own, dtype = iter(floats), floats[0].dtype
        arguments = [array if array.dtype == bool else next(own) for array in CALLS[name]]
        parameters = {key: kernel.astype(dtype) for key, kernel in KEYWORDS.get(name, {}).items()}
        return getattr(attnpool_flax, name)(*arguments, **parameters, precision="highest")

    return function


def floats_of(name, dtype="float32"):
    """The floating arrays of a call."""
    return [jnp.asarray(array, dtype) for array in CALLS[name] if array.dtype != bool]


def step(function):
    """From arrays to (the result, the gradients of all arrays)."""

    def loss(*arrays):
        result = function(*arrays)
        return jnp.sum(jnp.sin(result)), result

    def both(*arrays):
        gradients, result = jax.grad(loss, tuple(range(len(arrays))), has_aux=True)(*arrays)
        return result, *gradients

    return both


def second(function):
    """The gradients of a sum of gradients."""
    first = step(function)
    return lambda *arrays: jax.grad(lambda *a: sum(jnp.sum(jnp.sin(part)) for part in first(*a)), 0)(*arrays)


def forward_mode(function):
    return lambda *arrays: jax.jvp(function, arrays, tuple(jnp.cos(jnp.nan_to_num(array)) for array in arrays))


def mapped(function):
    return lambda *arrays: jax.vmap(step(function))(*(jnp.stack([array, 2 * array]) for array in arrays))


MORE = (second, forward_mode, mapped)
QUICK = ("dot_product_attention",)
every_call = pytest.mark.parametrize("name", all_with_few_quick(CALLS, QUICK))


def small_blocks(scores=4 * N * M, **constants):
    """Blocks of two examples, of a call without heads."""
    return replaced(blocks, BUDGET=dict.fromkeys(blocks.BUDGET, 4 * scores), **constants)


def assert_equal(parts, whole, called):
    """Compares the results of a call with those of whole arrays."""
    for own, other in zip(jax.tree.leaves(parts), jax.tree.leaves(whole), strict=True):
        if called == ("bidaf_attention", second) and jax.__version_info__ < (0, 11):  # docs/versions.md
            own, other = jnp.delete(own, 2, 0), jnp.delete(other, 2, 0)  # whose keys are all padding
        assert jnp.isfinite(own).all()
        np.testing.assert_allclose(own, other, rtol=0, atol=rounded(other, terms=4 * B * N * M * E))


@pytest.mark.thorough
@every_call
@pytest.mark.parametrize("derived", [step, *thorough(MORE)])
@pytest.mark.parametrize("platform", ["cpu", TPU, GPU, pytest.param("cpus", marks=pytest.mark.mesh)])
def test_blocks_change_neither_results_nor_derivatives(name, derived, platform):
    """On one CPU device they follow one another, on several each has examples from all over the batch."""
    arrays, on_cpu = floats_of(name), platform.startswith("cpu")
    run = jax.jit if on_cpu else functools.partial(on_device, platform)
    whole = run(derived(called(name)))(*arrays)
    with replaced(blocks, LARGEST=2 * N * M) if on_cpu else small_blocks():  # JAX has traced it above without blocks
        parts = run(derived(called(name)))(*arrays)
    assert_equal(parts, whole, (name, derived))


def loops(text):
    return text.count("stablehlo.while")


def lowered(name, platform, arrays=None):
    """The StableHLO of a call for a platform."""
    traced = jax.jit(called(name)).trace(*(arrays or floats_of(name)))
    return traced.lower(lowering_platforms=(platform,)).as_text()


@every_call
def test_every_platform_loops_over_examples(name):
    of_units = loops(lowered(name, "tpu"))
    with small_blocks():
        assert chosen_implementation(name, *CALLS[name], **KEYWORDS.get(name, {}), platform="tpu") == "tiles"
        assert [loops(lowered(name, platform)) for platform in ("tpu", "cuda")] == [1 + 2 * of_units, 1]
        assert loops(lowered(name, "cpu")) == of_units
    with replaced(blocks, LARGEST=2 * N * M):
        assert chosen_implementation(name, *CALLS[name], **KEYWORDS.get(name, {}), platform="cpu") == "tiles"
        assert loops(lowered(name, "cpu")) == 1 + 2 * of_units


def test_a_cpu_computes_two_blocks_at_once_and_an_example_that_exceeds_a_block_by_queries():
    name = "mask_attention"
    half = -(-B * N * M // 2)
    single, parts = (N * M - 1, 1, (1, N)), (N * M // 2 - 1, 2, (1, 1))
    for largest, looped, block in ((half, 0, (B, N)), (half - 1, 1, (2, N)), single, parts):
        with replaced(blocks, LARGEST=largest):
            text = lowered(name, "cpu")
            assert loops(text) == looped, largest
            assert f"tensor<{block[0]}x{block[1]}x{D}xf32>" in text, largest


@every_call
def test_the_loop_reads_and_writes_narrow_arrays(name):
    with small_blocks():
        text = lowered(name, "tpu", floats_of(name, "bfloat16"))
    (loop,) = [line for line in text.splitlines() if "stablehlo.while" in line and "bf16>" in line]
    assert not [part for part in loop.split(", tensor") if "f32>" in part and part.count("x") > 3]


@pytest.mark.parametrize(
    ("devices", "splits", "blocked"),
    [
        pytest.param(2, False, False, marks=pytest.mark.mesh),
        (1, False, True),
        pytest.param(2, True, True, marks=pytest.mark.mesh),
    ],
)
def test_a_mesh_of_several_devices_keeps_the_examples_together(devices, splits, blocked, monkeypatch):
    """Over which axes of a mesh arrays are split is not known, except inside of ``shard_map``."""
    mesh = Mesh(np.array(jax.devices()[:devices]), ("examples",), axis_types=(AxisType.Auto,))
    split = PartitionSpec("examples")
    arrays = [
        jax.device_put(np.concatenate([array] * 2), NamedSharding(mesh, split)) for array in CALLS["mask_attention"]
    ]
    function = attnpool_flax.mask_attention
    function = jax.shard_map(function, mesh=mesh, in_specs=split, out_specs=split) if splits else function
    calls, in_blocks = [], example_blocks._in_blocks
    monkeypatch.setattr(example_blocks, "_in_blocks", lambda *args: calls.append(args) or in_blocks(*args))
    with small_blocks():
        jax.jit(step(lambda query, context: function(query, context, *arrays[2:]))).trace(*arrays[:2])
    assert bool(calls) == blocked


def test_few_examples_are_whole_and_large_ones_are_split_by_queries():
    name = "mask_attention"
    with small_blocks(scores=B * N * M, LARGEST=1):
        assert chosen_implementation(name, *CALLS[name], platform="tpu") == "einsum"
        assert loops(lowered(name, "tpu")) == 0
    with small_blocks(scores=N * M - 1, LARGEST=1):
        assert f"tensor<{B}x1x{D}xf32>" in lowered(name, "tpu")  # a query of each example


def test_a_tpu_takes_small_blocks_of_a_loop_that_needs_several():
    with small_blocks(scores=100, LARGEST=7, ON_CHIP=30):
        assert [blocks.items_on(name, 2, 50) for name in ("cpu", "tpu", "default")] == [3, 50, 50]
        assert [blocks.items_on(name, 2, 60) for name in ("cpu", "tpu", "default")] == [3, 15, 30]
        assert [blocks.items_on(name, 40, 60) for name in ("cpu", "tpu", "default")] == [1, 2, 2]
        assert blocks.items_on("tpu", 2) == 50


@pytest.mark.parametrize(("devices", "largest"), [(1, 3), pytest.param(2, 5, marks=pytest.mark.mesh)])
def test_documents_on_several_devices_stay_in_large_blocks(devices, largest):
    mesh = Mesh(np.array(jax.devices()[:devices]), ("documents",), axis_types=(AxisType.Auto,))
    y = jax.device_put(drawn(6, M, D), NamedSharding(mesh, PartitionSpec("documents")))
    with small_blocks(scores=5 * B * N * M, LARGEST=1, ON_CHIP=3 * B * N * M):
        traced = jax.jit(attnpool_flax.maxsim_score_all_pairs).trace(drawn(B, N, D), y)
        text = traced.lower(lowering_platforms=("tpu",)).as_text()
    assert f"tensor<{largest}x{M}x{D}xf32>" in text
