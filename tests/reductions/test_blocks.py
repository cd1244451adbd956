"""A hidden layer over all pairs of queries and keys never exists at once, and blocks change nothing else."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from constants import replaced
from jax.sharding import Mesh, NamedSharding, PartitionSpec
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


@pytest.mark.parametrize("name", ["additive_attention", "kernel_regression"])
def test_blocks_differentiate_forward_map_scan_and_rematerialise(name):
    arrays = drawn(name, (), n=7, m=5, h=11)
    function = by_queries(name)
    axes = [0 if index < 3 else None for index in range(len(arrays))]
    directions = tuple(map(np.cos, arrays))

    def every_way(*arrays):
        stacked = [jnp.stack([array, array]) if index < 3 else array for index, array in enumerate(arrays)]
        mapped = jax.vmap(function, axes)(*stacked)
        _, scanned = jax.lax.scan(lambda carry, query: (carry, function(query, *arrays[1:])), (), stacked[0])
        _, forward = jax.jvp(lambda *arrays: jnp.sum(jnp.sin(function(*arrays))), arrays, directions)
        return step(function)(*arrays), step(jax.checkpoint(function))(*arrays), mapped, scanned, forward

    with small_blocks():
        plain, again, mapped, scanned, forward = jax.jit(every_way)(*arrays)
    (_, expected), gradients = plain
    allowed = rounded(np.asarray(expected), terms=5 * 11)
    chex.assert_trees_all_close(mapped, np.stack([expected, expected]), atol=allowed, rtol=0)
    chex.assert_trees_all_close(scanned, np.stack([expected, expected]), atol=allowed, rtol=0)
    assert_steps_agree(again, plain, terms=7 * 5 * 11)
    backward = sum(np.vdot(a, b) for a, b in zip(gradients, directions, strict=True))
    sizes = [np.abs(leaf).sum() for leaf in gradients]
    chex.assert_trees_all_close(forward, backward, atol=rounded(sizes, terms=7 * 5 * 11), rtol=0)


@pytest.mark.parametrize("name", ["additive_attention", "kernel_regression"])
def test_blocks_run_under_shard_map_with_replication_checks(name):
    arrays = drawn(name, (1,), n=7, m=5, h=11)
    mesh = Mesh(np.array(jax.devices()[:1]), ("examples",))
    specs = tuple(PartitionSpec("examples") if array.ndim == 3 else PartitionSpec() for array in arrays)
    function = by_queries(name)
    sharded = jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=PartitionSpec("examples"))
    placed = [jax.device_put(a, NamedSharding(mesh, spec)) for a, spec in zip(arrays, specs, strict=True)]
    with small_blocks():
        got, want = jax.jit(step(sharded))(*placed), jax.jit(step(function))(*arrays)
    assert_steps_agree(got, want, terms=7 * 5 * 11)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("n", "m"), [(0, 5), (7, 0), (0, 0)])
def test_no_queries_or_no_keys_keep_their_axes(name, n, m):
    result = getattr(attnpool_flax, name)(*drawn(name, (2,), n, m, h=11))
    last = m if name.endswith("_score") else V
    chex.assert_trees_all_equal(result, jnp.zeros((2, n, last)))


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
