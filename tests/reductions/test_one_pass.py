"""Products of narrow numbers: in one pass, which CPUs do not take, and of raw tokens with float32 factors as two narrow rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, PartitionSpec
from marks import all_with_few_quick, thorough
from rounded_products import GPU, on_device

import attnpool_flax
from attnpool_flax.numerics import products

PLAIN, NARROW = jax.lax.Precision.DEFAULT, products.OnePass.BFLOAT16
WIDE = products.wide_gradients(NARROW)
SPECS = {
    "...nd,...md->...nm": ((2, 3, 4), (2, 5, 4)),
    "...nl,...ld->...nd": ((2, 3, 4), (1, 4, 5)),
    "...ld,dhc->...hlc": ((2, 3, 4), (4, 5, 6)),
    "...hnc,hco->...no": ((2, 3, 4, 5), (3, 5, 6)),
    "...jd,d->...j": ((2, 3, 4), (4,)),
}

first_spec = pytest.mark.parametrize("spec", all_with_few_quick(SPECS, list(SPECS)[:1]))
"""The first one in each run, all in the thorough one."""


def drawn(*shapes):
    """Normal numbers, which bfloat16 does not hold."""
    rng = np.random.default_rng(0)
    return [jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in shapes]


def uses(spec, precision):
    """Programs around a product: itself, gradients, a second derivative, forward mode, and ``vmap`` over each operand and both."""

    def product(x, y):
        return products.einsum(spec, x, y, precision)

    def total(x, y):
        return jnp.sum(jnp.sin(product(x, y)))

    gradients = jax.grad(total, (0, 1))
    yield "itself", product, 0
    yield "gradients", gradients, 0
    yield "second", jax.grad(lambda x, y: sum(jnp.sum(jnp.sin(part)) for part in gradients(x, y)), (0, 1)), 0
    yield "forward mode", lambda x, y: jax.jvp(product, (x, y), (jnp.cos(x), jnp.cos(y))), 0
    for axes in ((0, None), (-1, None), (None, 1), (1, 0), (-1, -1)):
        yield f"vmap {axes}", jax.vmap(product, axes), axes
        yield f"vmap {axes} of gradients", jax.vmap(gradients, axes), axes


def grown(array, axis):
    """The array with a mapped axis of 3."""
    return array if axis is None else jnp.stack([array, 2 * array, array + 1], axis)


def calls(spec):
    """(title, program in one pass, plain program, arrays)."""
    for (title, narrow, axes), (_, plain, _) in zip(uses(spec, NARROW), uses(spec, PLAIN), strict=True):
        arrays = drawn(*SPECS[spec])
        yield title, narrow, plain, [grown(a, axis) for a, axis in zip(arrays, axes, strict=True)] if axes else arrays


def text(function, arrays, platform):
    """The StableHLO of a program for a platform."""
    lowered = jax.jit(lambda *arrays: function(*arrays)).trace(*arrays).lower(lowering_platforms=(platform,))
    return lowered.as_text()


@pytest.mark.thorough
@first_spec
def test_cpus_compute_the_same_bits_as_without(spec):
    for title, narrow, plain, arrays in calls(spec):
        for own, other in zip(*(jax.tree.leaves(jax.jit(f)(*arrays)) for f in (narrow, plain)), strict=True):
            np.testing.assert_array_equal(own, other, title)


@pytest.mark.thorough
@pytest.mark.parametrize("spec", SPECS)
def test_accelerators_compute_the_same_up_to_one_rounding_of_bfloat16(spec):
    for title, narrow, plain, arrays in calls(spec):
        for own, other in zip(*(jax.tree.leaves(on_device(GPU, f)(*arrays)) for f in (narrow, plain)), strict=True):
            assert 0 < np.abs(own - other).max() <= 0.1 * np.abs(other).max(), title


@first_spec
@pytest.mark.parametrize("platform", ["tpu", *thorough(["cuda"])])
def test_every_product_of_an_accelerator_has_narrow_operands(spec, platform):
    for title, narrow, _, arrays in calls(spec):
        lines = [line for line in text(narrow, arrays, platform).splitlines() if "stablehlo.dot_general" in line]
        operands = [line.split(" : (")[1].split(")")[0] for line in lines]
        assert operands, title
        assert all(part.endswith("xbf16>") for pair in operands for part in pair.split(", ")), title


@first_spec
def test_a_program_for_cpus_has_no_narrow_number(spec):
    for title, narrow, plain, arrays in calls(spec):
        own, other = (text(function, arrays, "cpu") for function in (narrow, plain))
        assert "bf16" not in own, title
        assert own.count("stablehlo.") == other.count("stablehlo."), title


@pytest.mark.parametrize("precision", [NARROW, WIDE])
def test_results_of_gradients_are_rounded_where_they_may_be(precision):
    def product(x, y):
        return products.einsum("...nd,...md->...nm", x, y, precision)

    def gradients(x, y):
        result, pull = jax.vjp(product, x, y)
        return result, *pull(result)

    results = on_device(GPU, gradients)(*drawn((3, 4), (5, 4)))
    is_rounded = [bool(jnp.array_equal(array.astype(jnp.bfloat16).astype(jnp.float32), array)) for array in results]
    assert is_rounded == [False, precision is NARROW, precision is NARROW]


@pytest.mark.thorough
@pytest.mark.parametrize("context", [False, True])
@pytest.mark.mesh
def test_bfloat16_gradients_of_shared_kernels_under_shard_map(context):
    """With replication checks; the kernels do not vary over the mesh."""
    x, kernel, out_kernel = (
        array.astype(jnp.bfloat16) for array in drawn((2, 8, 4), (12 if context else 4, 3), (3, 4))
    )
    mesh, split = jax.make_mesh((2,), ("tokens",), axis_types=(AxisType.Auto,)), PartitionSpec(None, "tokens")

    def pooled(axis_name):
        options = {"global_context": context, "axis_name": axis_name}
        return lambda x, *kernels: attnpool_flax.attentive_statistics_pooling(
            x, **dict(zip(("kernel", "out_kernel"), kernels, strict=True)), **options
        )

    def gradients(function):
        return jax.jit(jax.grad(lambda *arrays: jnp.sum(jnp.sin(function(*arrays))), (0, 1, 2)))(x, kernel, out_kernel)

    specs = (split, PartitionSpec(), PartitionSpec())
    sharded = jax.shard_map(pooled("tokens"), mesh=mesh, in_specs=specs, out_specs=PartitionSpec())
    for own, whole in zip(gradients(sharded), gradients(pooled(None)), strict=True):
        np.testing.assert_allclose(own.astype("float32"), whole.astype("float32"), atol=0.02)


@pytest.mark.parametrize("heads", [1, 4])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e4, 3e38])
def test_factors_beyond_the_range_of_float16_are_scaled(size, heads):
    factors = np.linspace(0.5, 1, heads * 5, dtype=np.float32).reshape(1, heads, 5) * np.float32(size)
    x = jnp.asarray(np.eye(5)[None] / 8, jnp.float16)
    found = products.token_products(x, factors, None)
    np.testing.assert_allclose(found[0].T, factors[0] / 8, rtol=2.0**-21)


def test_many_small_weights_are_not_lost_in_float16():
    """2^16 tokens of weight 1e-7: together 0.0066, each half of float16's smallest number."""
    count = 2**16
    weights, x = jnp.full((1, count, 1), 1e-7), jnp.ones((1, count, 1), jnp.float16)
    total = products.token_sums(weights.at[0, -1].set(1.0), x, None, None)
    np.testing.assert_allclose(total[0, 0, 0], 1 + (count - 1) * 1e-7, rtol=1e-5)
