"""Softmax of packed tokens on accelerators, run on a CPU: by chunks as on TPUs, by slots as on GPUs."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from constants import replaced
from jax.sharding import Mesh, PartitionSpec

from attnpool_flax.numerics.platforms import unify_varying
from attnpool_flax.reductions.packed import chunks as packed_chunks
from attnpool_flax.reductions.packed import softmax as packed_softmax
from attnpool_flax.reductions.packed.segments import segments_of

pytestmark = pytest.mark.thorough

N, S, D = 37, 6, 5
BITS = {"bfloat16": 16, "float16": 22, "float32": 22}
"""Bits of a factor that products see: of two narrow rows, or of float32."""

HIGHEST = jax.lax.Precision.HIGHEST
every_form = pytest.mark.parametrize("on_gpus", [False, True], ids=["chunks", "slots"])


@pytest.fixture(autouse=True)
def on_accelerators(on_gpus):
    """Takes the branch of accelerators, with chunks and slots of a few tokens."""

    def by_platform(tiled, plain, tiling, *arrays, whole):
        return whole(*arrays, on_gpus=on_gpus)

    with (
        replaced(packed_softmax, by_platform=by_platform, LEAST=4, LONGEST=6),
        replaced(packed_chunks, FEWEST_TOKENS=8, ROWS=8),
    ):
        yield


def tokens(ordered, heads, own_queries=False, length=N, count=S):
    """Tokens, segment numbers with padding and an empty segment, a mask, queries, a multiplier and a bias."""
    random = np.random.default_rng(7)
    x = random.normal(size=(length, D)).astype(np.float32)
    ids = random.integers(0, max(count - 1, 1), length)
    ids[random.random(length) < 0.1] = -1
    ids = jnp.asarray(np.sort(ids) if ordered else ids, jnp.int32)
    mask = jnp.asarray(random.random(length) > 0.1)
    queries = random.normal(size=(count if own_queries else 1, heads, D)).astype(np.float32)
    multiplier, bias = random.uniform(0, 2, (2, length, heads)).astype(np.float32)
    has_query = jnp.arange(count) % 3 > 0 if own_queries else None
    return x, (ids, mask, has_query, ordered), tuple(map(jnp.asarray, (queries, multiplier, bias)))


def pooled(kernel, x, packing, queries, multiplier, bias):
    """(Averages of the segments, scores that are 0 at padding)."""
    ids, mask, has_query, ordered = packing
    count = len(has_query) if has_query is not None else S
    segments = segments_of(ids, mask, count, ordered)
    scores, state = kernel(x, segments, has_query, queries, multiplier, bias, HIGHEST)
    return state.finalize(), jnp.where(segments.real[:, None], scores, 0)


def loss(kernel, x, packing, *factors):
    found, scores = pooled(kernel, x, packing, *factors)
    return jnp.sum(jnp.square(found)) + jnp.sum(jnp.sin(scores)), found


def with_gradients(kernel, packing):
    """A function of tokens and factors: results and gradients, those of multiplier and bias only at real tokens."""
    differentiated = jax.value_and_grad(functools.partial(loss, kernel), (0, 2, 3, 4), has_aux=True)
    compiled = jax.jit(lambda x, *factors: differentiated(x, packing, *factors))
    real = np.asarray((packing[0] >= 0) & packing[1])[:, None]

    def both(*arrays):
        (_, found), gradients = compiled(*arrays)
        dx, dqueries, *others = map(np.asarray, gradients)
        return [np.asarray(found), dx, dqueries, *(np.where(real, other, 0) for other in others)]

    return both


@pytest.mark.parametrize(
    ("on_gpus", "ordered", "heads", "own_queries", "dtype"),
    [
        (False, True, 4, False, "bfloat16"),
        (False, False, 1, False, "float16"),
        (False, True, 2, True, "float32"),
        (True, True, 1, False, "bfloat16"),
        (True, False, 4, False, "float16"),
        (True, False, 2, True, "float32"),
    ],
)
def test_results_and_gradients_are_those_of_float64(on_gpus, ordered, heads, own_queries, dtype):
    x, packing, factors = tokens(ordered, heads, own_queries)
    x = jnp.asarray(x, dtype)
    found = with_gradients(packed_softmax.tiled, packing)(x, *factors)
    with jax.enable_x64(True):
        wide = [jnp.asarray(array, jnp.float64) for array in (x, *factors)]
        expected = with_gradients(packed_softmax.plain, packing)(*wide)
    size, factor = float(jnp.max(jnp.abs(x))), float(jnp.abs(factors[0]).sum(-1).max())
    # a score is off by its factors' bits, a weight by twice that relatively, and averages keep it; gradients have a factor more
    allowed = 2.0 ** -BITS[dtype] * (2 + 2 * factor * size) * (1 + size)
    for place, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        largest = np.abs(theirs).max() + 1
        rounding = float(jnp.finfo(dtype).eps) * largest if place == 1 else 0
        atol = allowed * ((2 + factor) * largest if place else 1) + rounding
        chex.assert_trees_all_close(ours.astype(np.float64), theirs, atol=atol, rtol=0)


@every_form
@pytest.mark.parametrize(
    ("length", "count"), [(5, 1), *(pytest.param(*own, marks=pytest.mark.thorough) for own in ((40, 40), (64, 3)))]
)
def test_any_number_of_segments_and_tokens(length, count, on_gpus):
    x, (ids, mask, _, ordered), factors = tokens(True, 2, length=length, count=count)
    packing = ids, mask, jnp.ones(count, bool), ordered
    found, expected = (
        jax.jit(lambda x, *factors, kernel=kernel: pooled(kernel, x, packing, *factors))(x, *factors)
        for kernel in (packed_softmax.tiled, packed_softmax.plain)
    )
    allowed = 2.0 ** -BITS["float32"] * length * D * 64
    chex.assert_trees_all_close(found, expected, atol=allowed, rtol=0)


@pytest.mark.mesh
@every_form
def test_they_are_mapped_and_sharded(on_gpus):
    x, packing, factors = tokens(False, 2)
    both = jnp.stack([jnp.asarray(x), jnp.flip(jnp.asarray(x), 0)])

    def step(x):
        _, *own = unify_varying(x, *factors)
        gradient, found = jax.grad(lambda x: loss(packed_softmax.tiled, x, packing, *own), has_aux=True)(x)
        return found, gradient

    expected = [jax.jit(step)(one) for one in both]
    expected = jax.tree.map(lambda *parts: jnp.stack(parts), *expected)
    allowed = 2.0 ** -BITS["float32"] * N * D * 64
    chex.assert_trees_all_close(jax.jit(jax.vmap(step))(both), expected, atol=allowed, rtol=0)
    mesh = Mesh(np.array(jax.devices()[:2]), ("tokens",))
    by_device = PartitionSpec("tokens")
    sharded = jax.shard_map(
        lambda x: jax.tree.map(lambda part: part[None], step(x[0])), mesh=mesh, in_specs=by_device, out_specs=by_device
    )
    chex.assert_trees_all_close(jax.jit(sharded)(both), expected, atol=allowed, rtol=0)
