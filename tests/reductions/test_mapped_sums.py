"""Sums of a function of the tokens in blocks: the same as at once, whatever the layout, and finite beside NaN in the padding."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from constants import replaced
from jax.sharding import Mesh, PartitionSpec
from programs import temporaries

import attnpool_flax
import attnpool_ref
from attnpool_flax.reductions.loops import blocks

LENGTH, D, WIDTH = 13, 3, 2
SMALL = 40
"""Elements of a block here: 5 of 13 tokens where one example holds 2 times 2 numbers for each token."""


def drawn(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


PARAMETERS = {
    "gate_kernel": drawn(D, WIDTH),
    "value_kernel": drawn(D, WIDTH) + 1,
    "gate_bias": drawn(WIDTH),
    "value_bias": drawn(WIDTH),
}
MASK = np.arange(LENGTH) < np.array([[13], [6], [0]])
CASES = {
    "all tokens": ((2, LENGTH, D), None),
    "mask": ((3, LENGTH, D), MASK),
    "mask shared by examples": ((2, LENGTH, D), MASK[1]),
    "no batch": ((LENGTH, D), MASK[1]),
}


def with_nan_in_padding(x, mask):
    return x if mask is None else np.where(mask[..., None], x, np.nan)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("case", CASES)
def test_blocks_give_the_definition(case, dtype):
    shape, mask = CASES[case]
    x = jnp.asarray(with_nan_in_padding(drawn(*shape), mask), dtype)
    parameters = jax.tree.map(lambda array: jnp.asarray(array, dtype), PARAMETERS)
    x_, parameters_ = jax.tree.map(lambda array: np.asarray(array, np.float64), (x, parameters))
    expected = attnpool_ref.gated_sum_pooling(x_, mask, **parameters_)
    with replaced(blocks, LARGEST=SMALL):
        result = attnpool_flax.gated_sum_pooling(x, mask, **parameters)
    chex.assert_type(result, dtype)
    tolerance = 1e-2 if dtype == "bfloat16" else 1e-5
    chex.assert_trees_all_close(np.float64(result), expected, rtol=tolerance, atol=1e-5)


@pytest.mark.thorough
def test_the_gradient_of_blocks_is_that_of_all_at_once():
    x = with_nan_in_padding(drawn(3, LENGTH, D), MASK)

    def gradients():
        def loss(x, parameters):
            return jnp.sum(jnp.sin(attnpool_flax.gated_sum_pooling(x, MASK, **parameters)))

        return jax.grad(loss, (0, 1))(x, PARAMETERS)

    whole = gradients()
    with replaced(blocks, LARGEST=SMALL):
        chex.assert_trees_all_close(gradients(), whole, rtol=1e-5, atol=1e-6)
    chex.assert_trees_all_equal(whole[0][~MASK], np.zeros((np.sum(~MASK), D), np.float32))


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_blocks_of_packed_tokens(order):
    x, ids, mask = drawn(LENGTH, D), np.arange(LENGTH) // 5, np.arange(LENGTH) % 4 != 1
    if order == "shuffled":
        ids = np.random.default_rng(0).permutation(ids)
    x = np.where(mask[:, None], x, np.nan)
    expected = attnpool_ref.segment_gated_sum_pooling(x, ids, 4, mask, **PARAMETERS)
    with replaced(blocks, LARGEST=SMALL):
        result = attnpool_flax.segment_gated_sum_pooling(
            x, ids, 4, mask, **PARAMETERS, indices_are_sorted=order == "sorted"
        )
    chex.assert_trees_all_close(np.asarray(result), expected.astype(np.float32), rtol=1e-5, atol=1e-5)


def test_blocks_of_a_chunk_and_inside_of_shard_map():
    x = with_nan_in_padding(drawn(3, LENGTH, D), MASK)
    expected = attnpool_ref.gated_sum_pooling(x, MASK, **PARAMETERS).astype(np.float32)
    with replaced(blocks, LARGEST=SMALL):
        halves = [attnpool_flax.gated_sum_state(x[:, s], MASK[:, s], **PARAMETERS) for s in (slice(7), slice(7, None))]
        merged = attnpool_flax.finalize_state(attnpool_flax.merge_states(*halves))
        mesh = Mesh(np.array(jax.devices()[:1]), ("data",))
        spec = PartitionSpec("data")
        mapped = jax.shard_map(
            lambda x, mask: attnpool_flax.gated_sum_pooling(x, mask, **PARAMETERS),
            mesh=mesh, in_specs=(spec, spec), out_specs=spec,
        )  # fmt: skip
        sharded = jax.jit(mapped)(x, MASK)
    chex.assert_trees_all_close(np.asarray(merged), expected, rtol=1e-5, atol=1e-5)
    chex.assert_trees_all_close(np.asarray(sharded), expected, rtol=1e-5, atol=1e-5)


def test_blocks_bound_the_memory():
    shapes = jax.ShapeDtypeStruct((1, 2**13, 32), jnp.bfloat16), jax.ShapeDtypeStruct((32, 1024), jnp.float32)

    def of_shapes():
        def pooled(x, kernel):
            return attnpool_flax.gated_sum_pooling(x, gate_kernel=kernel, value_kernel=kernel)

        return temporaries(pooled, *shapes)

    blocked = of_shapes()
    with replaced(blocks, LARGEST=2**30):
        assert blocked < of_shapes() / 6
