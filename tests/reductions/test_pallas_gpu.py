"""Pallas kernels for GPUs: lowered programs, refusals, bytes, heads that do not meet. Their values are in test_pallas.py."""

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

import attnpool_flax
from attnpool_flax.kernels import triton as pallas_triton
from bench.aot import kernels

if jax.__version_info__ < (0, 10):
    pytest.skip("older JAX describes no GPU without one", allow_module_level=True)
GPU = jax.sharding.AbstractDevice("NVIDIA H200", 132, "gpu")


def lowered(width, direction):
    """The program of multi-head pooling under 3 queries for a GPU, as text."""
    x = jax.ShapeDtypeStruct((2, 40, width), "bfloat16")
    given = {"query": jax.ShapeDtypeStruct((1, width), "float32")}
    given |= {f"{name}_kernel": jax.ShapeDtypeStruct((width, 3, 2), "float32") for name in ("query", "key", "value")}
    given |= {"out_kernel": jax.ShapeDtypeStruct((3, 2, 4), "float32")}

    def pooled(x, given):
        found = attnpool_flax.multi_head_attention_pooling(x, None, **given, implementation="pallas")
        return jnp.sum(found.astype("float32") ** 2)

    return for_gpu(pooled if direction == "forward" else jax.grad(pooled), x, given)


def for_gpu(run, *shapes, mesh=None):
    """The program for a GPU, as text."""
    mesh = mesh or jax.sharding.AbstractMesh((), (), abstract_device=GPU)
    with jax.sharding.use_abstract_mesh(mesh), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Triton, from JAX 0.11 on
        return jax.jit(run).trace(*shapes).lower(lowering_platforms=("cuda",)).as_text()


@pytest.mark.parametrize("direction, count", [("forward", 1), pytest.param("step", 2, marks=pytest.mark.thorough)])
def test_several_queries_are_lowered_to_one_kernel_for_each_pass(direction, count):
    assert lowered(48, direction).count("__gpu$xla.gpu.triton") == count


@pytest.mark.parametrize("x64", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_kernels_are_lowered_under_shard_map_with_check_vma(x64):
    mesh = jax.sharding.AbstractMesh((2,), ("parts",), (jax.sharding.AxisType.Auto,), abstract_device=GPU)
    place = PartitionSpec("parts")

    def pool(x, mask, query):
        return attnpool_flax.attention_pooling(x, mask, query, implementation="pallas")

    run = jax.shard_map(pool, mesh=mesh, in_specs=(place, place, PartitionSpec()), out_specs=place)
    shapes = [jax.ShapeDtypeStruct(*own) for own in (((2, 300, 5), "float32"), ((2, 300), bool), ((5,), "float32"))]
    with jax.enable_x64(x64):
        step = jax.grad(lambda x, mask, query: jnp.sum(run(x, mask, query) ** 2), (0, 2))
        assert for_gpu(step, *shapes, mesh=mesh).count("__gpu$xla.gpu.triton") == 2


def test_wide_tokens_under_several_queries_are_refused_by_name():
    with pytest.raises(ValueError, match='at most 1152 features with several queries on a GPU; pass None, "einsum"'):
        lowered(1153, "forward")


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_kernels_with_16_queries_read_x_once_and_write_dx_once(dtype):
    x, rows = jax.ShapeDtypeStruct((264, 512, 256), dtype), jax.ShapeDtypeStruct((264, 16, 256), "float32")
    queries, numbers = jax.ShapeDtypeStruct((1, 16, 256), "float32"), jax.ShapeDtypeStruct((264, 16), "float32")
    size, vectors, each = x.size * x.dtype.itemsize, rows.size * 4, numbers.size * 4  # bytes for all examples
    shared = queries.size * 4  # the cache holds them
    assert vectors > kernels.CACHED > shared

    def forward(x, queries):
        return pallas_triton.forward(x, None, queries, None, None)

    def backward(x, queries, numbers, rows):
        return pallas_triton.backward(x, None, queries, None, None, numbers, None, numbers, rows)

    found = kernels.moved(jax.make_jaxpr(forward)(x, queries), False)
    assert found == size + vectors + shared + 2 * each
    found = kernels.moved(jax.make_jaxpr(backward)(x, queries, numbers, rows), False)
    assert found == 2 * size + 2 * vectors + shared + 2 * each


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_nan_and_very_large_numbers_of_one_query_reach_no_other(dtype):
    random = np.random.default_rng(3)
    x = jnp.asarray(random.normal(size=(2, 21, 19)), dtype)
    queries = random.normal(size=(2, 3, 19)).astype(np.float32)
    forward = functools.partial(pallas_triton.forward, x, None, multiplier=None, bias=None, interpret=True)
    want = forward(queries=queries[:, :2])
    for other in (np.nan, np.inf, 1e30, 1e-30):
        queries[:, 2] = other
        for own, two in zip(forward(queries=queries), want, strict=True):
            np.testing.assert_array_equal(own[:, :2], two)


@pytest.mark.thorough
@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_tokens_outside_of_the_range_of_float16_are_pooled(scale):
    random = np.random.default_rng(4)
    x = random.normal(size=(2, 21, 19)).astype(np.float32) * random.choice([1, 1e-4], (2, 21, 1)).astype(np.float32)
    queries = random.normal(size=(1, 2, 19)).astype(np.float32)
    found = pallas_triton.forward(x * np.float32(scale), None, queries / np.float32(scale), None, None, interpret=True)
    scores = np.einsum("bld,hd->bhl", x.astype(float), queries[0].astype(float))
    weights = np.exp(scores - scores.max(2, keepdims=True))
    np.testing.assert_allclose(found[0], scores.max(2), 1e-5)
    np.testing.assert_allclose(found[2] / scale, np.einsum("bhl,bld->bhd", weights, x), 1e-5, 1e-5)
