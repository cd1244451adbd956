"""Sequences split over a mesh (``axis_name=``): what the whole gives, on every device, with few collectives."""

import functools
import math
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import arguments_of, assert_agree, assert_gradients_agree
from constants import replaced
from drawn import draw
from flax import nnx
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from rounding import rounded
from splits import NAMES, Split, gradients_inside, with_gradients

import attnpool_flax
from attnpool_flax import linen
from attnpool_flax.tokens import tiles
from attnpool_ref import table
from attnpool_ref.conformance import cases

pytestmark = pytest.mark.mesh

COLLECTIVES = {
    ("mean_pooling", "smallest"): (1, 1),
    ("max_pooling", "smallest"): (2, 2),
    ("first_pooling", "smallest"): (2, 2),
    ("last_pooling", "smallest"): (2, 2),
    ("weighted_pooling", "fullest"): (1, 1),
    ("sum_pooling", "smallest"): (1, 1),
    ("min_pooling", "smallest"): (2, 2),
    ("noisy_or_pooling", "smallest"): (1, 1),
    ("power_mean_pooling", "smallest"): (2, 3),
    ("logsumexp_pooling", "mean=False"): (2, 3),
    ("softmax_pooling", "smallest"): (2, 3),
    ("weighted_pooling", "weights as [..., L, d]"): (1, 1),
    ("attention_pooling", "smallest"): (3, 4),
    ("attention_pooling", "fullest"): (2, 3),
    ("attention_pooling", "normalizer=sigmoid"): (1, 2),
    ("multi_head_attention_pooling", "fullest"): (2, 3),
    ("statistics_pooling", "fullest"): (3, 3),
    ("attentive_statistics_pooling", "fullest"): (4, 5),
    ("attentive_statistics_pooling", "global_context=True"): (7, 8),
    ("additive_attention_pooling", "fullest"): (2, 3),
    ("cross_attention_pooling", "smallest"): (3, 4),
    ("latent_attention_pooling", "smallest"): (1, 2),
    ("set2set_pooling", "smallest"): (4, 6),  # of two steps
    ("vlad_pooling", "fullest"): (2, 3),
}
"""How many a program has, and one with gradients, whatever the length."""

KINDS = re.compile(r"\b(?:all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter)(?:-start)?\(")


SPLIT, WHOLE = PartitionSpec(None, NAMES), PartitionSpec()


def over(mesh, function, specs=SPLIT, result=WHOLE):
    return jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=result)


@pytest.fixture(scope="module")
def mesh():
    return jax.make_mesh((2, 4), NAMES, axis_types=(AxisType.Auto,) * 2)


IN_PIECES = [
    ("max_pooling", "smallest"),
    ("weighted_pooling", "weights as [..., L, d]"),
    ("attention_pooling", "fullest"),
    ("attention_pooling", "normalizer=sigmoid"),
    ("attentive_statistics_pooling", "global_context=True"),
    ("cross_attention_pooling", "reduction=mean"),
    ("vlad_pooling", "fullest"),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "title"), IN_PIECES)
def test_devices_give_what_the_whole_gives_in_pieces(name, title, mesh):
    """Results, weights, gradients inside and outside of the shard_map; values at padding change no bit of them."""
    call = Split(name, title)

    @jax.jit
    def program(arrays):
        return (
            with_gradients(call.over(mesh))(arrays),
            gradients_inside(call, mesh)(arrays),
            with_gradients(call.forward)(arrays),
        )

    with replaced(tiles, WHOLE=0, EXAMPLES=0, PIECE=0, LEAST=2):
        (results, outside), inside, (want, gradients) = found = jax.tree.map(np.asarray, program(call.values))
    assert_agree(call.case, results, want, call.weights)
    assert_gradients_agree(call.case, outside, gradients)
    assert_gradients_agree(call.case, inside, gradients)
    poisoned = {key: value.copy() for key, value in call.values.items()}
    for key, mask in (("x", "x_mask" if "x_mask" in poisoned else "mask"), ("y", "y_mask")):
        if key in poisoned:
            poisoned[key][~poisoned[mask]] = np.nan
    chex.assert_trees_all_equal(jax.tree.map(np.asarray, program(poisoned)), found)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "title"), COLLECTIVES)
def test_collectives_are_few_and_the_same_for_any_length(name, title, mesh):
    call = Split(name, title, weights=False)
    programs = call.over(mesh), with_gradients(call.over(mesh))
    texts = [jax.jit(function).lower(call.values).compile().as_text() for function in programs]
    assert tuple(len(KINDS.findall(text)) for text in texts) == COLLECTIVES[name, title]


LARGE = {
    "mean_pooling": [(8, 1600, 64)],
    "max_pooling": [(8, 1600, 64)],
    "attention_pooling": [(8, 1600, 64)],
    "mask_attention": [(8, 1024, 16), (8, 1032, 16)],
}
"""Shapes of arrays that one device computes in pieces or blocks."""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "spec"),
    [(name, PartitionSpec("devices")) for name in LARGE]
    + [(name, PartitionSpec(None, "devices")) for name, shapes in LARGE.items() if len(shapes) == 1],
    ids=str,
)
def test_jit_never_gathers_tokens_that_are_on_several_devices(name, spec):
    """Neither forward nor backward; a loop that slices pieces of them would."""
    mesh = jax.make_mesh((8,), ("devices",), axis_types=(AxisType.Auto,))
    split = functools.partial(jax.ShapeDtypeStruct, sharding=NamedSharding(mesh, spec))
    tokens, masks = (
        [split(shape[:rank], dtype) for shape in LARGE[name]] for rank, dtype in ((3, "float32"), (2, bool))
    )
    function = getattr(attnpool_flax, name)

    def step(tokens, masks):
        return jax.value_and_grad(lambda tokens: jnp.sum(jnp.sin(function(*tokens, *masks))))(tokens)

    lines = jax.jit(step).lower(tokens, masks).compile().as_text().splitlines()
    gathered = [line.split(" all-gather")[0] for line in lines if " all-gather" in line]
    sizes = [math.prod(map(int, shape.split(","))) for line in gathered for shape in re.findall(r"\[([\d,]+)\]", line)]
    assert max(sizes, default=0) < min(map(math.prod, LARGE[name]))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["mean_pooling", "max_pooling", "attention_pooling"])
def test_each_device_loops_over_its_own_examples_without_a_collective(name):
    """Under ``shard_map`` over the batch."""
    mesh, spec = jax.make_mesh((2,), ("devices",), axis_types=(AxisType.Auto,)), PartitionSpec("devices")
    x, mask = jax.ShapeDtypeStruct((8, 1601, 64), "float32"), jax.ShapeDtypeStruct((8, 1601), bool)
    mapped = jax.shard_map(getattr(attnpool_flax, name), mesh=mesh, in_specs=(spec, spec), out_specs=spec)
    text = jax.jit(mapped).lower(x, mask).compile().as_text()
    assert "while" in text
    assert not KINDS.search(text)


@pytest.mark.thorough
def test_blocks_of_pairs_run_under_shard_map(rng):
    """With the checks of replication on; the values are those outside of it."""
    mesh = jax.make_mesh((2,), ("devices",), axis_types=(AxisType.Auto,))
    specs, arrays = (PartitionSpec(), PartitionSpec("devices")), [draw(rng, 4, 64, 3), draw(rng, 182, 96, 3)]
    pool = functools.partial(attnpool_flax.cross_attention_pooling_all_pairs, reduction="max")

    def total(*arrays):
        return sum(jnp.mean(part) for part in pool(*arrays))

    def inside(*arrays):
        found = jax.value_and_grad(lambda *arrays: jax.lax.pmean(total(*arrays), "devices"), (0, 1))
        return found(*arrays)

    mapped = jax.shard_map(inside, mesh=mesh, in_specs=specs, out_specs=(PartitionSpec(), specs))
    found, wanted = (jax.jit(own)(*arrays) for own in (mapped, jax.value_and_grad(total, (0, 1))))
    for own, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        chex.assert_trees_all_close(own, other, atol=rounded(np.asarray(other), 4096), rtol=0)


@pytest.mark.thorough
@pytest.mark.parametrize("context", [False, True])
def test_bfloat16_gradients_of_shared_kernels_under_shard_map(context, rng):
    """With the checks of replication on; the kernels do not vary over the mesh."""
    shapes = (2, 8, 4), (12 if context else 4, 3), (3, 4)
    arrays = [jnp.asarray(draw(rng, *shape), jnp.bfloat16) for shape in shapes]

    def pooled(x, kernel, out_kernel, axis_name=None):
        options = {"global_context": context, "axis_name": axis_name}
        return attnpool_flax.attentive_statistics_pooling(x, kernel=kernel, out_kernel=out_kernel, **options)

    def gradients(function):
        return jax.jit(jax.grad(lambda *arrays: jnp.sum(jnp.sin(function(*arrays))), (0, 1, 2)))(*arrays)

    mesh = jax.make_mesh((2, 1), NAMES, axis_types=(AxisType.Auto,) * 2)
    split = over(mesh, functools.partial(pooled, axis_name=NAMES), (SPLIT, WHOLE, WHOLE))
    for own, whole in zip(gradients(split), gradients(pooled), strict=True):
        np.testing.assert_allclose(own.astype("float32"), whole.astype("float32"), atol=0.02)


X = np.arange(40, dtype=np.float32).reshape(1, 8, 5) - 17


def test_the_same_call_over_another_mesh_is_another_program(mesh):
    """Twice the tokens a device, other names, no names, and one of two axes: nothing is taken from another's program."""
    small = jax.make_mesh((2,), ("slow",), axis_types=(AxisType.Auto,))
    mean = attnpool_flax.mean_pooling
    split = over(mesh, lambda x: mean(x, axis_name=NAMES))(X)
    chex.assert_trees_all_equal(
        split, over(small, lambda x: mean(x, axis_name="slow"), PartitionSpec(None, "slow"))(X), mean(X)
    )
    parts = over(mesh, lambda x: mean(x, axis_name="fast"), result=PartitionSpec("slow"))(X)
    chex.assert_trees_all_equal(np.asarray(parts), X.reshape(2, 4, 5).mean(1))
    with pytest.raises(ValueError, match="mean_pooling: `axis_name` has 'slow', which is not bound here"):
        mean(X, axis_name="slow")


@pytest.mark.parametrize("name", [(), ("slow", "slow"), ["slow"], 3, ("slow", None)], ids=str)
def test_what_is_no_name_of_an_axis_is_refused(name):
    words = "`axis_name` is .*, needs None, a name or a tuple of different names of mesh axes"
    calls = {
        "max_pooling": lambda: attnpool_flax.max_pooling(X, axis_name=name),
        "AttentionPool": lambda: attnpool_flax.AttentionPool(5, axis_name=name, rngs=nnx.Rngs(0)),
        "CrossAttentionPool": lambda: linen.CrossAttentionPool(axis_name=name),
    }
    for who, call in calls.items():
        with pytest.raises(ValueError, match=f"{who}: {words}"):
            call()


def test_what_cannot_be_split_is_refused_by_name(mesh):
    def cross(x, **options):
        return attnpool_flax.cross_attention_pooling(x, x, axis_name=NAMES, **options)

    with pytest.raises(
        ValueError, match="cross_attention_pooling: `reduction` is 'max', needs 'sum' or 'mean' with `axis_name`"
    ):
        over(mesh, lambda x: cross(x, reduction="max"))(X)
    with pytest.raises(ValueError, match="cross_attention_pooling: `x` is the same on all devices along 'slow'"):
        over(mesh, cross, PartitionSpec(None, "fast"))(X)
    with pytest.raises(ValueError, match=r"mean_pooling: `x` is the same .* with `check_vma=True`"):
        unchecked = {
            "mesh": mesh,
            "in_specs": PartitionSpec(None, NAMES),
            "out_specs": PartitionSpec(),
            "check_vma": False,
        }
        jax.shard_map(lambda x: attnpool_flax.mean_pooling(x, axis_name=NAMES), **unchecked)(X)


def test_lengths_and_segment_numbers_are_refused(mesh):
    """The lengths of the whole sequence do not say what is real in a part of it; packed tokens are not split."""
    words = "{} and `axis_name` are both given, needs `{}`, of which each device has its own part"

    def refused(call, message):
        with pytest.raises(ValueError, match=message):
            over(mesh, call)(X)

    def both(x):
        return attnpool_flax.cross_attention_pooling(x, x, y_lengths=np.array([3]), axis_name=NAMES)

    lengths = np.array([3])
    mean = functools.partial(attnpool_flax.mean_pooling, lengths=lengths, axis_name=NAMES)
    pool = attnpool_flax.AttentionPool(5, axis_name=NAMES, rngs=nnx.Rngs(0))
    refused(mean, "mean_pooling: " + words.format("`lengths`", "mask"))
    refused(both, "cross_attention_pooling: " + words.format("`y_lengths`", "y_mask"))
    refused(lambda x: pool(x, lengths=lengths), "attention_pooling: " + words.format("`lengths`", "mask"))
    ids, cross = np.zeros(8, np.int32), linen.CrossAttentionPool(axis_name=NAMES)
    words = "`axis_name` and `{}` are both given, needs at most one"
    with pytest.raises(ValueError, match="AttentionPool: " + words.format("segment_ids")):
        pool(X[0], segment_ids=ids, num_segments=1)
    with pytest.raises(ValueError, match="CrossAttentionPool: " + words.format("x_segment_ids")):
        cross.apply({}, X[0], X[0], x_segment_ids=ids, y_segment_ids=ids, num_segments=1)


@pytest.mark.thorough
def test_modules_split_what_their_functions_split(mesh):
    """With the parameters of a module that was made outside; Linen's `init` needs no mesh."""
    pool = attnpool_flax.AttentionPool(5, axis_name=NAMES, rngs=nnx.Rngs(0))
    both = attnpool_flax.CrossAttentionPool(axis_name=NAMES)
    heads = linen.MultiHeadAttentionPool(num_heads=5, num_queries=2, axis_name=NAMES)
    variables = heads.init(jax.random.key(0), X)

    def modules(x):
        return pool(x), both(x, x), heads.apply(variables, x)

    def functions(x):
        names, pooling = {"axis_name": NAMES}, attnpool_flax.multi_head_attention_pooling
        one = attnpool_flax.attention_pooling(x, query=pool.query[...], **names)
        return one, attnpool_flax.cross_attention_pooling(x, x, **names), pooling(x, **variables["params"], **names)

    both_ways = jax.jit(over(mesh, lambda x: (modules(x), functions(x))))
    chex.assert_trees_all_equal(*both_ways(X / 8))


EXPLICIT = (
    "first_pooling",
    "last_pooling",
    "attention_pooling",
    "cross_attention_pooling",
    "multi_head_attention",
    "semantic_match",
)


@pytest.mark.thorough
def test_over_explicit_axes_functions_give_what_one_device_gives():
    """Split over batch and length; results lie as the arguments do, and so does a state."""
    mesh = jax.make_mesh((2, 2), ("examples", "tokens"), axis_types=(AxisType.Explicit,) * 2)
    for name in EXPLICIT:
        row = table.get(name)
        names, options = {own: rest for own, *rest in cases.configurations(row)}["smallest"]
        sizes = {"L": 8, "T": 6, "m": 8, "n": 2}
        case = cases.draw(row, "explicit", names, options, (4,), sizes)
        arrays, call = arguments_of(case, getattr(attnpool_flax, name))
        found = call({key: explicit(value, case.axes[key], mesh) for key, value in arrays.items()})
        assert_agree(case, [np.asarray(out) for out in found], [np.asarray(out) for out in call(arrays)])
        assert jax.typeof(found[0]).sharding.spec[0] == "examples", name
    state = attnpool_flax.mean_state(explicit(np.ones((4, 8, 5), np.float32), ("B", "L", "d"), mesh))
    assert {jax.typeof(leaf).sharding.spec[0] for leaf in jax.tree.leaves(state)} == {"examples"}


def explicit(array, axes, mesh):
    """The array with its batch on "examples" and its tokens on "tokens"."""
    places = {"...": "examples", "B": "examples", "L": "tokens", "T": "tokens", "m": "tokens"}
    own = [places.get(axis) for axis in axes] if len(axes) == array.ndim else [None] * array.ndim
    return jax.device_put(array, NamedSharding(mesh, PartitionSpec(*own))) if array.ndim else array


ALONE = Path(__file__).parents[1] / "support" / "sharded.py"


def one_of_two(address, index):
    path = os.pathsep.join([str(ALONE.parents[2]), str(ALONE.parent)])
    environment = os.environ | {"PYTHONPATH": path, "JAX_PLATFORMS": "cpu", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    environment |= {"JAX_NUM_CPU_DEVICES": "2", "XLA_FLAGS": ""}
    command = [sys.executable, str(ALONE), address, "2", str(index)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(process):
    try:
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
    assert not process.returncode, err
    return out.split()[-1]


@pytest.mark.thorough
def test_two_processes_with_two_devices_each_give_what_one_device_gives():
    """As a cluster starts them, on the loopback; gradients as well."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    processes = [one_of_two(address, index) for index in range(2)]
    assert [finished(process) for process in processes] == ["4", "4"]
