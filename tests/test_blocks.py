"""A hidden layer over all pairs of queries and keys never exists at once, and blocks change nothing else."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from programs import temporaries
from rounding import rounded

import attnpool_flax
from attnpool_flax import blocks

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
    return [jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in arguments_of(name, batch, n, m, h)]


def temporary_bytes(function, shapes):
    return temporaries(function, *(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes))


def total(name):
    return lambda *arrays: jnp.sum(jnp.sin(getattr(attnpool_flax, name)(*arrays)))


@pytest.mark.parametrize("name", NAMES)
def test_hidden_layer_of_all_pairs_is_never_held(name):
    """Nor in the backward pass; the scores [n, m] and a few blocks may be."""
    n, m, h = 1030, 128, 96
    shapes = arguments_of(name, (), n, m, h)
    whole = n * m * h * np.dtype(np.float32).itemsize
    assert temporary_bytes(getattr(attnpool_flax, name), shapes) < whole
    assert temporary_bytes(jax.grad(total(name), tuple(range(len(shapes)))), shapes) < whole


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of two queries in the cases below; their number, 7, is no multiple of it."""
    monkeypatch.setattr(blocks, "LARGEST", 2 * 5 * 11 + 1)
    jax.clear_caches()
    yield
    jax.clear_caches()


@pytest.mark.parametrize("name", NAMES)
def test_blocks_change_neither_result_nor_gradient(name, monkeypatch):
    arrays = drawn(name, (), n=7, m=5, h=11)
    every = tuple(range(len(arrays)))
    whole = getattr(attnpool_flax, name)(*arrays), jax.grad(total(name), every)(*arrays)
    monkeypatch.setattr(blocks, "LARGEST", 2 * 5 * 11 + 1)
    jax.clear_caches()
    parts = getattr(attnpool_flax, name)(*arrays), jax.grad(total(name), every)(*arrays)
    jax.clear_caches()
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(whole)]
    chex.assert_trees_all_close(whole, parts, atol=rounded(leaves, terms=7 * 5 * 11), rtol=0)


@pytest.mark.parametrize("name", ["additive_attention", "kernel_regression"])
def test_blocks_differentiate_forward_map_scan_and_rematerialise(name, small_blocks):
    arrays = drawn(name, (), n=7, m=5, h=11)
    function = getattr(attnpool_flax, name)
    expected = function(*arrays)
    allowed = rounded(np.asarray(expected), terms=5 * 11)

    stacked = [jnp.stack([array, array]) if index < 3 else array for index, array in enumerate(arrays)]
    axes = [0 if index < 3 else None for index in range(len(arrays))]
    mapped = jax.vmap(function, axes)(*stacked)
    chex.assert_trees_all_close(mapped, jnp.stack([expected, expected]), atol=allowed, rtol=0)

    _, scanned = jax.lax.scan(lambda carry, query: (carry, function(query, *arrays[1:])), (), stacked[0])
    chex.assert_trees_all_close(scanned, jnp.stack([expected, expected]), atol=allowed, rtol=0)

    every = tuple(range(len(arrays)))
    gradients = jax.grad(total(name), every)(*arrays)
    again = jax.grad(jax.checkpoint(total(name)), every)(*arrays)
    leaves = [np.asarray(leaf) for leaf in gradients]
    chex.assert_trees_all_close(again, gradients, atol=rounded(leaves, terms=7 * 5 * 11), rtol=0)

    directions = [jnp.cos(array) for array in arrays]
    _, forward = jax.jvp(total(name), arrays, directions)
    backward = sum(jnp.vdot(a, b) for a, b in zip(gradients, directions, strict=True))
    sizes = [np.abs(leaf).sum() for leaf in leaves]
    chex.assert_trees_all_close(forward, backward, atol=rounded(sizes, terms=7 * 5 * 11), rtol=0)


@pytest.mark.parametrize("name", ["additive_attention", "kernel_regression"])
def test_blocks_run_under_shard_map_with_replication_checks(name, small_blocks):
    arrays = drawn(name, (1,), n=7, m=5, h=11)
    mesh = Mesh(np.array(jax.devices()[:1]), ("examples",))
    specs = tuple(PartitionSpec("examples") if array.ndim == 3 else PartitionSpec() for array in arrays)
    function = getattr(attnpool_flax, name)
    sharded = jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=PartitionSpec("examples"))
    placed = [jax.device_put(a, NamedSharding(mesh, spec)) for a, spec in zip(arrays, specs, strict=True)]
    expected = function(*arrays)
    chex.assert_trees_all_close(sharded(*placed), expected, atol=rounded(np.asarray(expected), 5 * 11), rtol=0)

    def loss(function):
        return lambda *arrays: jnp.sum(jnp.sin(function(*arrays)))

    every = tuple(range(len(arrays)))
    gradients = jax.grad(loss(function), every)(*arrays)
    leaves = [np.asarray(leaf) for leaf in gradients]
    chex.assert_trees_all_close(
        jax.grad(loss(sharded), every)(*placed), gradients, atol=rounded(leaves, terms=7 * 5 * 11), rtol=0
    )


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

    def step(function):
        return jax.grad(lambda *arrays: jnp.sum(jnp.sin(function(*arrays))), tuple(range(6)))

    assert temporaries(mapped, *arrays) <= 64e6
    scores = 4 * examples * n * m
    assert (
        temporaries(step(mapped), *arrays) <= temporaries(step(attnpool_flax.additive_attention), *arrays) + 2 * scores
    )
