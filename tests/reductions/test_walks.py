"""How tokens are walked: bytes, trips, collectives and loops of the compiled programs, and nothing that is timed."""

import functools
import json
import math
import re

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from programs import compiled
from walks import BATCH, WALKERS, Call, size, small_tiles, trips, walked

from attnpool_flax import chosen_implementation
from attnpool_flax.reductions.dispatch import logged_dispatches
from attnpool_flax.reductions.loops import tiling

pytestmark = pytest.mark.thorough

NARROW_SIZES = {"L": 24, "T": 16, "d": 20, "e": 12, "q": 20, "n": 2}
"""For what is counted in a program whatever its sizes."""

# Bytes beside arguments and results, bytes that the program's whole arrays are accessed by (of a loop one trip), both
# over those of the tokens; and how often the tokens are walked in tiles. Forward, then step.
PINNED = {
    ("tiles", "float32", "mean_pooling", "smallest"): ((0.07, 0.21, 1), (0.01, 1.21, 1)),
    ("tiles", "float32", "sum_pooling", "smallest"): ((0.07, 0.21, 1), (0.01, 1.21, 1)),
    ("tiles", "float32", "max_pooling", "smallest"): ((0.07, 0.20, 1), (0.01, 2.40, 1)),
    ("tiles", "float32", "min_pooling", "smallest"): ((0.07, 0.20, 1), (0.01, 2.40, 1)),
    ("tiles", "float32", "mean_max_pooling", "smallest"): ((0.07, 0.41, 2), (0.02, 2.62, 2)),
    ("tiles", "float32", "weighted_pooling", "smallest"): ((0.07, 0.21, 1), (0.01, 1.21, 1)),
    ("tiles", "float32", "weighted_pooling", "fullest"): ((0.07, 0.23, 1), (0.08, 1.46, 2)),
    ("tiles", "float32", "attention_pooling", "smallest"): ((0.07, 0.47, 2), (0.02, 1.78, 3)),
    ("tiles", "float32", "attention_pooling", "fullest"): ((0.08, 0.30, 1), (0.03, 1.65, 2)),
    ("tiles", "float32", "multi_head_attention_pooling", "smallest"): ((0.08, 0.31, 1), (0.08, 1.93, 2)),
    ("tiles", "float32", "multi_head_attention_pooling", "fullest"): ((0.13, 0.49, 1), (0.13, 2.33, 2)),
    ("tiles", "float32", "additive_attention_pooling", "smallest"): ((0.07, 0.38, 1), (0.13, 1.94, 2)),
    ("tiles", "float32", "additive_attention_pooling", "fullest"): ((0.09, 0.34, 0), (0.18, 1.88, 0)),
    ("tiles", "float32", "set2set_pooling", "smallest"): ((0.08, 0.99, 2), (0.05, 3.56, 4)),
    ("tiles", "float32", "cross_attention_pooling", "smallest"): ((0.07, 0.32, 1), (0.03, 1.65, 2)),
    ("tiles", "float32", "cross_attention_pooling", "fullest"): ((0.05, 0.48, 2), (0.03, 1.82, 3)),
    ("einsum", "float32", "mean_pooling", "smallest"): ((1.01, 3.02, 0), (0.01, 4.02, 0)),
    ("einsum", "float32", "sum_pooling", "smallest"): ((1.01, 3.02, 0), (0.01, 4.02, 0)),
    ("einsum", "float32", "max_pooling", "smallest"): ((1.26, 4.53, 0), (0.26, 9.61, 0)),
    ("einsum", "float32", "min_pooling", "smallest"): ((1.26, 4.53, 0), (0.26, 9.61, 0)),
    ("einsum", "float32", "mean_max_pooling", "smallest"): ((2.00, 6.03, 0), (1.04, 11.12, 0)),
    ("einsum", "float32", "weighted_pooling", "smallest"): ((1.01, 3.02, 0), (0.01, 4.02, 0)),
    ("einsum", "float32", "attention_pooling", "smallest"): ((1.01, 5.07, 0), (0.02, 8.13, 0)),
    ("einsum", "float32", "multi_head_attention_pooling", "smallest"): ((2.02, 6.2, 0), (2.02, 11.49, 0)),
    ("einsum", "float32", "additive_attention_pooling", "smallest"): ((2.05, 6.28, 0), (2.09, 13.86, 0)),
    ("einsum", "float32", "set2set_pooling", "smallest"): ((2.01, 8.56, 0), (1.04, 14.62, 0)),
    ("einsum", "float32", "cross_attention_pooling", "smallest"): ((1.02, 5.08, 0), (0.02, 8.16, 0)),
    ("tiles", "bfloat16", "mean_pooling", "smallest"): ((0.13, 0.35, 1), (0.01, 1.37, 1)),
    ("tiles", "bfloat16", "sum_pooling", "smallest"): ((0.13, 0.35, 1), (0.01, 1.37, 1)),
    ("tiles", "bfloat16", "max_pooling", "smallest"): ((0.13, 0.20, 1), (0.07, 2.54, 1)),
    ("tiles", "bfloat16", "min_pooling", "smallest"): ((0.13, 0.20, 1), (0.07, 2.54, 1)),
    ("tiles", "bfloat16", "mean_max_pooling", "smallest"): ((0.13, 0.57, 2), (0.07, 2.95, 2)),
    ("tiles", "bfloat16", "weighted_pooling", "smallest"): ((0.13, 0.35, 1), (0.01, 1.37, 1)),
    ("tiles", "bfloat16", "attention_pooling", "smallest"): ((0.14, 0.80, 2), (0.04, 2.36, 3)),
    # several queries: the gradient of x is a product, which is rounded after it was written in float32
    ("tiles", "bfloat16", "multi_head_attention_pooling", "smallest"): ((0.15, 0.56, 1), (2.05, 6.72, 2)),
    ("tiles", "bfloat16", "additive_attention_pooling", "smallest"): ((0.15, 2.57, 1), (2.15, 14.47, 2)),
    # its kernels are half as large as the tokens, and computed with in float32
    ("tiles", "bfloat16", "set2set_pooling", "smallest"): ((0.79, 4.85, 2), (0.59, 11.86, 4)),
    ("tiles", "bfloat16", "cross_attention_pooling", "smallest"): ((0.14, 0.59, 1), (0.05, 2.18, 2)),
}

HEADROOM = 4 / 3  # between versions of JAX

# What XLA's cost analysis says of a cut that widens: all of the array, of which only the part is read.
COUNTED = 1 if jax.__version_info__ < (0, 12) else 0


@functools.cache
def forward_program(name, title, implementation, dtype="float32", batch=BATCH):
    """The compiled forward program of a row, which more than one test measures."""
    row = next(row for row in WALKERS if row.name == name)
    call = Call(row, title, implementation, dtype, batch)
    return compiled(call.forward, call.arrays)


def measured(implementation, dtype, name, title):
    """What ``PINNED`` has of a function, for the forward program and for the step."""
    row = next(row for row in WALKERS if row.name == name)
    call = Call(row, title, implementation, dtype)
    tokens = sum(map(size, call.tokens.values()))
    programs = forward_program(name, title, implementation, dtype), compiled(call.step, call.arrays)
    for function, program in zip((call.forward, call.step), programs, strict=True):
        walks = walked(function, call)
        accessed = program.cost_analysis()["bytes accessed"] / tokens
        widened = COUNTED * walks if dtype == "bfloat16" else 0
        yield program.memory_analysis().temp_size_in_bytes / tokens, accessed - widened, walks


def line_of(key, found):
    """The line of ``PINNED`` for numbers that were measured, rounded up."""
    rounded = ", ".join(f"({math.ceil(100 * a) / 100}, {math.ceil(100 * b) / 100}, {walks:g})" for a, b, walks in found)
    return f"    ({', '.join(map(json.dumps, key))}): ({rounded}),"


@pytest.mark.parametrize("key", PINNED, ids="-".join)
def test_bytes_and_walks_are_what_they_were(key):
    found = list(measured(*key))
    where = f"more than PINNED in tests/reductions/test_walks.py has; measured here:\n{line_of(key, found)}"
    for (temporary, accessed, walks), (most, reads, passes) in zip(found, PINNED[key], strict=True):
        assert temporary <= HEADROOM * most, where
        assert accessed <= HEADROOM * reads, where
        assert walks == passes, where


@pytest.mark.parametrize("row", WALKERS, ids=lambda row: row.name)
def test_every_function_that_walks_is_pinned(row):
    kinds = [("tiles", "float32"), ("einsum", "float32"), ("tiles", "bfloat16")]
    missing = {(*kind, row.name, "smallest") for kind in kinds} - PINNED.keys()
    lines = "\n".join(line_of(key, measured(*key)) for key in sorted(missing))
    assert not missing, f"PINNED in tests/reductions/test_walks.py lacks {row.name}; measured here:\n{lines}"


@pytest.mark.parametrize("row", WALKERS, ids=lambda row: row.name)
def test_temporaries_grow_by_the_weights_and_never_by_the_tokens(row):
    small = Call(row, "smallest", "tiles")
    weights = {"return_weights": True} if row.weights else {}
    results = size_of_all(jax.eval_shape(small.changed(**weights).forward, small.arrays))
    few, many = (forward_program(row.name, "smallest", "tiles", batch=batch) for batch in (BATCH, 2 * BATCH))
    grown = many.memory_analysis().temp_size_in_bytes - few.memory_analysis().temp_size_in_bytes
    if row.name == "set2set_pooling":
        results += size_of_all(small.arrays["bias"]) * BATCH  # the gates of each example
    tokens = sum(map(size, small.tokens.values()))
    assert grown <= min(3 * results, tokens / 8), (  # accumulators of a maximum, a minimum and a sum for each result
        f"{row.name}: {BATCH} more examples take {grown} bytes more, needs at most 3 times the {results} of their results and "
        f"weights, and an eighth of the {tokens} of their tokens: does its body copy tokens?"
    )


def size_of_all(tree):
    return sum(map(size, jax.tree.leaves(tree)))


@pytest.mark.parametrize("row", WALKERS, ids=lambda row: row.name)
def test_a_prime_length_takes_one_tile_more_and_a_prime_batch_one_block_more(row):
    """A search for a divisor would end at tiles of one token."""
    names = {"x": "L", "y": "T"}
    title = (
        "fullest" if row.name == "cross_attention_pooling" else "smallest"
    )  # without kernels it takes whole examples
    call = Call(row, title, "tiles", batch=11, sizes=NARROW_SIZES | {"L": 131, "T": 67})
    with small_tiles(WHOLE=0, ROW=0, TOKENS=8):
        found = trips(call.forward, call)
    lengths = [call.case.sizes[names[key]] for key in call.tokens]
    assert set(found) == {11 * -(-length // 8) for length in lengths}

    call = Call(row, title, "tiles", batch=11, sizes={"L": 6, "T": 6, "d": 8, "e": 8, "q": 8})
    with small_tiles(WHOLE=4 * 6 * 8 * 4, ROW=2**20):
        assert set(trips(call.forward, call)) == {3}


# --------------------------------------------------------------------------------------------------------------
# Several devices

COLLECTIVES = re.compile(r"= (.*?) (all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter)(?:-start)?\(")
SHAPE = re.compile(r"\w+\[([\d,]*)\]")


def gathered(program):
    """Numbers of elements of what the program gathers."""
    found = [shape for shape, kind in COLLECTIVES.findall(program.as_text()) if kind == "all-gather"]
    return [int(np.prod([int(n) for n in own.split(",") if n])) for shapes in found for own in SHAPE.findall(shapes)]


def sharded(call, mesh, axis):
    """The call's arrays, described as they lie on the mesh: along "batch" or "length" where they have that axis."""
    places = {}
    for key, array in call.arrays.items():
        own = call.case.axes[key]
        wanted = "..." if axis == "batch" else {"y": "T", "y_mask": "T"}.get(key, "L")
        spec = [None] * len(array.shape)
        if wanted in own:
            spec[own.index(wanted)] = "devices"
        places[key] = jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=NamedSharding(mesh, PartitionSpec(*spec)))
    return places


@pytest.fixture(scope="module")
def mesh():
    return jax.make_mesh((4,), ("devices",), axis_types=(AxisType.Auto,))


@pytest.mark.mesh
@pytest.mark.parametrize("axis", ["batch", "length"])
@pytest.mark.parametrize("row", WALKERS, ids=lambda row: row.name)
def test_tokens_on_several_devices_are_never_gathered(row, axis, mesh):
    """Neither forward nor backward: a step has both."""
    with small_tiles(WHOLE=0, ROW=0, TOKENS=8):  # were it tiles, they would be several
        call = Call(row, "smallest", None, sizes=NARROW_SIZES)
        least = min(map(np.prod, (array.shape for array in call.tokens.values())))
        program = compiled(call.step_with_results, sharded(call, mesh, axis))
        assert max(gathered(program), default=0) < least


@pytest.mark.mesh
@pytest.mark.parametrize("row", WALKERS, ids=lambda row: row.name)
def test_each_device_tiles_its_own_examples_under_shard_map(row, mesh):
    """Without a collective; ``tests/call/test_transformations.py`` judges what it computes."""
    with small_tiles(WHOLE=0, ROW=0, TOKENS=5):
        call = Call(row, "smallest", None, batch=8, sizes=NARROW_SIZES)
        specs = {
            key: PartitionSpec("devices") if "..." in own else PartitionSpec() for key, own in call.case.axes.items()
        }
        mapped = jax.shard_map(call.forward, mesh=mesh, in_specs=(specs,), out_specs=PartitionSpec("devices"))
        with logged_dispatches() as heard:
            program = compiled(mapped, call.arrays)
        assert set(heard) == {"tiles"}
        assert COLLECTIVES.search(program.as_text()) is None
        assert "while" in program.as_text()


# --------------------------------------------------------------------------------------------------------------
# One device


@pytest.mark.parametrize("row", WALKERS, ids=lambda row: row.name)
def test_one_cpu_device_takes_tiles_of_which_accelerators_see_no_loop(row):
    call = Call(row, "smallest", None)
    chosen = chosen_implementation(row.name, **call.arrays, **call.options)
    assert chosen == "tiles"
    for function in (call.forward, call.step):
        traced = jax.jit(function).trace(call.arrays)
        texts = [traced.lower(lowering_platforms=(platform,)).as_text() for platform in ("cpu", "cuda", "tpu")]
        assert [text.count("stablehlo.while") > 0 for text in texts] == [True, False, False]


def test_the_pinned_arrays_are_worth_a_loop():
    for row in WALKERS:
        for dtype in ("float32", "bfloat16"):
            for array in Call(row, "smallest", None, dtype).tokens.values():
                assert size(array) > tiling.WHOLE, (row.name, dtype)
