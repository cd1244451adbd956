"""Blocks: large scores never exist at once, and walking in blocks changes nothing."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from constants import replaced
from jax.sharding import Mesh, PartitionSpec
from programs import temporaries
from rounding import rounded

import attnpool_flax
import attnpool_ref
from attnpool_flax.reductions.loops import blocks

pytestmark = pytest.mark.thorough

FLOAT = 4  # bytes
N, K, WIDTH = 192, 256, 8
LARGEST = 2**14
"""Three blocks of 64 rows. The size is smaller than the real one so that the tests are quick."""

BLOCK = FLOAT * LARGEST


@pytest.fixture(autouse=True, scope="module")
def small_blocks():
    with replaced(blocks, LARGEST=LARGEST):
        yield


def held(function, *shapes):
    """Bytes that the program needs for float32 arrays of these shapes."""
    return temporaries(function, *(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes))


def step(function):
    """The gradients of all arguments, for a cotangent that depends on the result."""

    def loss(*arrays):
        return sum(jnp.sum(part**2) for part in jax.tree.leaves(function(*arrays)))

    def gradients(*arrays):
        return jax.grad(loss, tuple(range(len(arrays))))(*arrays)

    return gradients


LARGE = {
    "code_wise_attention": (attnpool_flax.code_wise_attention, [(K, WIDTH), (N, WIDTH)]),
    "mask_attention": (attnpool_flax.mask_attention, [(K, WIDTH), (N, WIDTH)]),
    "bidaf_attention": (attnpool_flax.bidaf_attention, [(N, WIDTH), (K, WIDTH), (3 * WIDTH,)]),
    "maxsim_score": (attnpool_flax.maxsim_score, [(N, WIDTH), (K, WIDTH)]),
}


@pytest.mark.parametrize("name", LARGE)
def test_no_more_than_a_block_of_scores_exists(name):
    """A block in a few copies (scores, weights, their gradients), however many rows there are."""
    function, shapes = LARGE[name]
    longer = [(4 * N, WIDTH) if shape == (N, WIDTH) else shape for shape in shapes]
    rows = FLOAT * 4 * N * 4 * WIDTH  # what is one vector a row
    assert held(function, *longer) < 2 * BLOCK + 4 * rows
    assert held(step(function), *longer) < 4 * BLOCK + 8 * rows
    assert 4 * N * K * FLOAT > 10 * BLOCK  # what all of them would take


@pytest.mark.parametrize("name", ["mask_attention", "bidaf_attention"])
def test_weights_that_are_asked_for_leave_the_pooled_result_to_its_blocks(name):
    """Bit for bit the same result, although the weights exist whole."""
    function, shapes = LARGE[name]
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    pooled, weights = function(*arrays, return_weights=True)
    chex.assert_shape(jax.tree.leaves(weights)[0], (N, K))
    assert np.array_equal(pooled, function(*arrays))


all_pairs_of_largest = functools.partial(attnpool_flax.cross_attention_pooling_all_pairs, reduction="max")


@pytest.mark.parametrize(
    ("x_shape", "y_shape"),
    [((4, 16, WIDTH), (60, 24, WIDTH)), ((16, 64, WIDTH), (3, 96, WIDTH))],
    ids=["many candidates", "long pairs"],
)
def test_the_scores_of_all_pairs_never_exist_at_once(x_shape, y_shape):
    (b, length, _), (c, other, _) = x_shape, y_shape
    everything = FLOAT * b * c * length * other
    assert everything > 5 * BLOCK
    weights = FLOAT * b * c * (length + other)
    assert held(all_pairs_of_largest, x_shape, y_shape) < 2 * BLOCK + 4 * weights < everything
    assert held(step(all_pairs_of_largest), x_shape, y_shape) < 4 * BLOCK + 8 * weights


@pytest.mark.parametrize(
    ("x_shape", "y_shape"),
    [((4, 16, WIDTH), (240, 24, WIDTH)), ((64, 16, WIDTH), (30, 96, WIDTH))],
    ids=["many documents", "many queries"],
)
def test_maxsim_takes_a_block_of_documents_at_a_time(x_shape, y_shape):
    """However many there are, and no copy of them all; backward their own gradient, and a number for each token of x."""
    (b, length, _), (c, other, _) = x_shape, y_shape
    everything, best = FLOAT * b * c * length * other, FLOAT * b * c * length
    assert everything > 15 * BLOCK
    score = attnpool_flax.maxsim_score_all_pairs
    own = FLOAT * max(b * length, c * other) * WIDTH
    assert held(score, x_shape, y_shape) < 4 * BLOCK + 2 * FLOAT * b * c + FLOAT * b * length * WIDTH
    assert held(step(score), x_shape, y_shape) < 6 * BLOCK + 2 * own + 4 * best < everything


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_the_linear_reductions_of_all_pairs_have_no_scores(reduction):
    pool = functools.partial(attnpool_flax.cross_attention_pooling_all_pairs, reduction=reduction)
    (b, length), (c, other) = (6, 200), (5, 300)
    weights = FLOAT * b * c * (length + other)
    assert held(pool, (b, length, WIDTH), (c, other, WIDTH)) < 4 * weights < FLOAT * b * c * length * other / 10


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_pooled_pairs_are_written_once(reduction):
    """No copy of either side's results, none of the tokens."""
    pool = functools.partial(attnpool_flax.cross_attention_pooling_all_pairs, reduction=reduction)
    (b, length), (c, other), width = (8, 6), (1600, 4), 16
    shapes, results = [(b, length, width), (c, other, width)], FLOAT * 2 * b * c * width
    assert held(pool, *shapes) < 4 * BLOCK < results / 4


def test_the_largest_products_of_all_pairs_in_blocks_are_the_definition():
    """Blocks that overlap; gradients and forward mode of whole products; NaN in padding changes no bit."""
    rng = np.random.default_rng(7)
    x, y = (rng.normal(size=shape).astype(np.float32) for shape in ((7, 5, 16), (331, 4, 16)))
    x_mask, y_mask = rng.random((7, 5)) < 0.7, rng.random((331, 4)) < 0.7
    x_mask[2], y_mask[330] = False, False
    x[~x_mask], y[~y_mask] = 0, 0
    pool = functools.partial(all_pairs_of_largest, return_weights=True)

    def loss(x, y):
        return sum(jnp.sum(jnp.sin(part)) for part in jax.tree.leaves(pool(x, y, x_mask, y_mask)))

    def everything(x, y):
        ahead = jax.jvp(loss, (x, y), (jnp.cos(x), jnp.cos(y)))
        return pool(x, y, x_mask, y_mask), jax.grad(loss, (0, 1))(x, y), ahead

    def compiled():
        return jax.jit(lambda x, y: everything(x, y))  # one of its own: JAX keeps what it traced of a function

    in_blocks = compiled()
    found = in_blocks(x, y)
    poisoned = in_blocks(np.where(x_mask[..., None], x, np.nan), np.where(y_mask[..., None], y, np.nan))
    chex.assert_trees_all_equal(found[:2], poisoned[:2])
    wanted = attnpool_ref.cross_attention_pooling_all_pairs(x, y, x_mask, y_mask, reduction="max", return_weights=True)
    for a, b in zip(jax.tree.leaves(found[0]), jax.tree.leaves(wanted), strict=True):
        chex.assert_trees_all_close(np.asarray(a), b, atol=rounded(b, 256), rtol=0)
    with replaced(blocks, LARGEST=2**24):
        whole = compiled()(x, y)
    for a, b in zip(jax.tree.leaves(found[1:]), jax.tree.leaves(whole[1:]), strict=True):
        chex.assert_trees_all_close(a, b, atol=rounded(np.asarray(b), 4096), rtol=0)


def test_small_scores_need_no_loop():
    for name, (function, shapes) in LARGE.items():
        small = [(shape[0] // 16, *shape[1:]) if len(shape) > 1 else shape for shape in shapes]
        arrays = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in small]
        assert "while" not in jax.jit(function).lower(*arrays).as_text(), name
        arrays = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
        assert "while" in jax.jit(function).lower(*arrays).as_text(), name


def test_blocks_run_under_shard_map():
    """With the checks of replication on; the values are those outside of it."""
    rng = np.random.default_rng(3)
    mesh = Mesh(np.array(jax.devices()[:1]), ("data",))
    specs = PartitionSpec(), PartitionSpec("data")
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in ((4, 16, 3), (30, 24, 3))]

    def total(*arrays):
        return sum(jnp.mean(part) for part in all_pairs_of_largest(*arrays))

    def inside(*arrays):
        return jax.value_and_grad(lambda *arrays: jax.lax.psum(total(*arrays), "data"), (0, 1))(*arrays)

    mapped = jax.shard_map(inside, mesh=mesh, in_specs=specs, out_specs=(PartitionSpec(), specs))
    found, wanted = (jax.jit(own)(*arrays) for own in (mapped, jax.value_and_grad(total, (0, 1))))
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert np.any(np.asarray(b) != 0)
        chex.assert_trees_all_close(a, b, atol=rounded(b, 256), rtol=0)


def test_the_largest_products_of_several_blocks_have_the_gradient_of_whole_products():
    """Tied tokens in two blocks share it; the last block overlaps the one before; padding holds NaN."""
    rng = np.random.default_rng(6)
    x, y = (rng.normal(size=(2, length, 4)).astype(np.float32) for length in (90, 200))
    x[:, 5] = x[:, 88] = 3 * x[:, 5]
    x_mask, y_mask = np.arange(90) != 7, rng.random((2, 200)) < 0.7
    x[:, 7], y[~y_mask] = np.nan, np.nan

    def gradients(implementation):
        def loss(x, y):
            pooled = attnpool_flax.cross_attention_pooling(
                x, y, x_mask, y_mask, reduction="max", scale=0.5, implementation=implementation
            )
            return sum(jnp.sum(jnp.sin(part)) for part in pooled)

        return jax.jit(jax.grad(loss, (0, 1)))(x, y)

    for a, b in zip(gradients("tiles"), gradients("einsum"), strict=True):
        chex.assert_tree_all_finite(b)
        chex.assert_trees_all_close(a, b, atol=rounded(np.asarray(b), 256), rtol=0)
