"""A hidden layer over all pairs of queries and keys never exists at once, and blocks change nothing else."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from constants import replaced
from programs import temporaries
from rounding import rounded

import attnpool_flax
from attnpool_flax.reductions.loops import blocks

pytestmark = pytest.mark.thorough

D, E, V = 3, 4, 5

NAMES = [
    "additive_score",
    "concat_score",
    "tanh_sum_score",
    "gaussian_score",
    "additive_attention",
    "tanh_sum_attention",
    "kernel_regression",
]


def arguments_of(name, batch, n, m, h):
    """Shapes of the function's arrays; of width h is what spans the pairs."""
    distances = name in ("gaussian_score", "kernel_regression")
    d, e = (h, h) if distances else (D, E)
    shapes = [(*batch, n, d), (*batch, m, e)]
    if not name.endswith("_score"):
        shapes.append((*batch, m, V))
    if name.startswith("additive"):
        shapes += [(d, h), (e, h), (h,)]
    elif not distances:
        shapes.append((d + e, h))
    if name == "concat_score":
        shapes.append((h,))
    return shapes


def drawn(name, batch, n, m, h):
    rng = np.random.default_rng(len(name))
    return [rng.normal(size=shape).astype(np.float32) for shape in arguments_of(name, batch, n, m, h)]


def temporary_bytes(function, shapes):
    return temporaries(function, *(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes))


def step(function):
    """From arrays to ((the sum of the result's sines, the result), the gradients of all of them)."""

    def loss(*arrays):
        result = function(*arrays)
        return jnp.sum(jnp.sin(result)), result

    return lambda *arrays: jax.value_and_grad(loss, tuple(range(len(arrays))), has_aux=True)(*arrays)


def assert_steps_agree(got, want, terms):
    """Results and gradients of two steps, and their losses, to as many roundings."""
    for a, b in zip(got, want, strict=True):
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(b)]
        chex.assert_trees_all_close(a, b, atol=rounded(leaves, terms), rtol=0)


@pytest.mark.parametrize("name", NAMES)
def test_hidden_layer_of_all_pairs_is_never_held(name):
    """In a step, neither forward nor backward; the scores [n, m] and a few blocks may be."""
    n, m, h = 1030, 128, 96
    shapes = arguments_of(name, (), n, m, h)
    whole = n * m * h * np.dtype(np.float32).itemsize
    assert temporary_bytes(step(getattr(attnpool_flax, name)), shapes) < whole


def by_queries(name):
    """The function in blocks of queries: by itself it takes one hidden unit after the other on CPUs."""
    return functools.partial(getattr(attnpool_flax, name), implementation="einsum")


def small_blocks():
    """Blocks of two queries in the cases below; their number, 7, is no multiple of it."""
    return replaced(blocks, LARGEST=2 * 5 * 11 + 1)


@pytest.mark.parametrize("name", NAMES)
def test_blocks_change_neither_result_nor_gradient(name):
    arrays = drawn(name, (), n=7, m=5, h=11)
    function = by_queries(name)
    whole = jax.jit(step(function)).lower(*arrays)
    with small_blocks():
        parts = jax.jit(step(function)).lower(*arrays)
    assert "while" in parts.as_text()
    assert "while" not in whole.as_text()
    assert_steps_agree(parts.compile()(*arrays), whole.compile()(*arrays), terms=7 * 5 * 11)


def test_blocks_of_a_gated_sum_bound_its_memory():
    shapes = jax.ShapeDtypeStruct((1, 2**13, 32), jnp.bfloat16), jax.ShapeDtypeStruct((32, 1024), jnp.float32)

    def held():
        def pooled(x, kernel):
            return attnpool_flax.gated_sum_pooling(x, gate_kernel=kernel, value_kernel=kernel)

        return temporaries(pooled, *shapes)

    blocked = held()
    with replaced(blocks, LARGEST=2**30):
        assert blocked < held() / 6


def test_additive_attention_holds_no_more_under_vmap_than_with_batch_axes():
    """512 examples of 2**18 hidden numbers each: 528 MB when each example was one block."""
    examples, n, m, h = 512, 64, 64, 64
    shapes = [(examples, n, 8), (examples, m, 8), (examples, m, 8), (8, h), (8, h), (h,)]
    arrays = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    mapped = jax.vmap(attnpool_flax.additive_attention, (0, 0, 0, None, None, None))

    assert temporaries(mapped, *arrays) <= 64e6
    scores = 4 * examples * n * m
    assert (
        temporaries(step(mapped), *arrays) <= temporaries(step(attnpool_flax.additive_attention), *arrays) + 2 * scores
    )
