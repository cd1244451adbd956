"""Every function under jit, vmap, scan, remat and shard_map; one trace a shape; silent under the NaN checker."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import arguments_of, assert_agree, assert_gradients_agree
from jax.sharding import PartitionSpec

import attnpool_flax
from attnpool_ref import variants
from attnpool_ref.conformance import cases, hazards

pytestmark = pytest.mark.usefixtures("compiled_quickly")

BATCH = 4  # divides among the devices of tests/conftest.py


def fullest(row):
    """The case with every argument, with a batch that divides, and one example without anything real."""
    named = {title: (names, options) for title, names, options in cases.configurations(row)}
    names, options = named.get("fullest", named["smallest"])
    return cases.draw(row, "transformations", names, options, (BATCH,))


ALL = [(row, fullest(row)) for row in variants.VARIANTS]
BATCHED = [(row, case) for row, case in ALL if any("..." in own for own in case.axes.values())]
FLOATING = [(row, case) for row, case in BATCHED if row.name != "lengths_to_mask"]

# Each shape of algorithm once: what holds for one folded query, block or score matrix holds for the others.
FOLDED = {"attention_pooling", "multi_head_attention_pooling", "cross_attention_pooling", "weighted_pooling"}
BLOCKED = {"additive_attention", "mask_attention", "bidaf_attention", "gaussian_score"}
DENSE = {"masked_softmax", "entmax15", "multi_head_attention", "location_attention", "semantic_match", "max_pooling"}
KINDS = [(row, case) for row, case in FLOATING if row.name in FOLDED | BLOCKED | DENSE]
ids = {"ids": lambda value: value.name if isinstance(value, variants.Variant) else ""}


def batched(case):
    """Names of the arguments that have the batch axis."""
    return [key for key, own in case.axes.items() if "..." in own]


@pytest.mark.parametrize(("row", "case"), BATCHED, **ids)
def test_vmap_under_jit_gives_what_the_call_gives(row, case):
    arrays, call = arguments_of(case, getattr(attnpool_flax, row.name))
    each, shared = {k: arrays[k] for k in batched(case)}, {k: v for k, v in arrays.items() if k not in batched(case)}
    assert_agree(case, jax.jit(jax.vmap(lambda one: call(one | shared)))(each), call(arrays))


@pytest.mark.parametrize(("row", "case"), KINDS, **ids)
def test_jit_and_scan_give_what_the_call_gives(row, case):
    arrays, call = arguments_of(case, getattr(attnpool_flax, row.name))
    want = call(arrays)
    assert_agree(case, jax.jit(call)(arrays), want)
    each, shared = {k: arrays[k] for k in batched(case)}, {k: v for k, v in arrays.items() if k not in batched(case)}

    def step(carry, one):
        return carry, call(one | shared)

    assert_agree(case, jax.lax.scan(step, 0, each)[1], want)


@pytest.mark.parametrize(("row", "case"), KINDS, **ids)
def test_remat_and_forward_mode_agree_with_reverse_mode(row, case):
    arrays, call = arguments_of(case, getattr(attnpool_flax, row.name))
    assert_gradients_agree(case, jax.checkpoint(call), call, arrays)
    floats = {k: v for k, v in arrays.items() if v.dtype == np.float32}
    rest = {k: v for k, v in arrays.items() if k not in floats}

    def objective(floats):
        return sum(out.sum() for out in call(floats | rest))

    ones = jax.tree.map(np.ones_like, floats)
    _, forward = jax.jit(lambda f: jax.jvp(objective, (f,), (ones,)))(floats)
    terms = jax.tree.map(lambda g: np.asarray(g, np.float64), jax.jit(jax.grad(objective))(floats))
    size = sum(float(np.abs(g).sum()) for g in terms.values())
    allowed = float(np.finfo(np.float32).eps) * case.terms() * (1 + size)
    chex.assert_trees_all_close(float(forward), sum(float(g.sum()) for g in terms.values()), atol=allowed, rtol=0)


@pytest.mark.parametrize(("row", "case"), KINDS, **ids)
def test_shard_map_over_the_batch_with_its_checks_on(row, case):
    arrays, call = arguments_of(case, getattr(attnpool_flax, row.name))
    mesh = jax.make_mesh((2,), ("batch",), axis_types=(jax.sharding.AxisType.Auto,))
    specs = {k: PartitionSpec("batch") if k in batched(case) else PartitionSpec() for k in arrays}
    sharded = jax.jit(jax.shard_map(call, mesh=mesh, in_specs=(specs,), out_specs=PartitionSpec("batch")))
    assert_agree(case, [np.asarray(out) for out in sharded(arrays)], [np.asarray(out) for out in call(arrays)])
    assert_gradients_agree(case, sharded, call, arrays)


@pytest.mark.parametrize(("row", "case"), ALL, **ids)
def test_another_value_does_not_compile_again(row, case):
    arrays, call = arguments_of(case, getattr(attnpool_flax, row.name))
    numbers = case.given("number")
    call(arrays | {k: 0.5 for k in numbers})
    events = []
    jax.monitoring.register_event_duration_secs_listener(listener := lambda name, *_, **__: events.append(name))
    try:
        call({k: v + 1 if v.dtype == np.float32 else v for k, v in arrays.items()} | {k: 2 for k in numbers})
    finally:
        jax.monitoring.unregister_event_duration_listener(listener)
    assert [name for name in events if "trace" in name or "compile" in name] == []


def test_a_users_jit_traces_once_a_shape():
    pool = jax.jit(chex.assert_max_traces(lambda x, scale: attnpool_flax.attention_pooling(x, scale=scale), n=1))
    x = np.ones((2, 3, 4), np.float32)
    for scale in (0.5, 1.5, 2.5):
        chex.assert_shape(pool(x, scale), (2, 4))
    with pytest.raises(AssertionError, match="traced > 1 times"):
        pool(x[:1], 0.5)


@pytest.mark.parametrize(("row", "case"), KINDS, **ids)
def test_the_nan_checker_stays_silent_on_poison_and_empty_rows(row, case):
    poisoned = hazards.poisoned(case, np.nan)
    if poisoned is None:
        assert not case.given("mask"), "a row with a mask has padding to poison"
        return
    arrays, call = arguments_of(poisoned, getattr(attnpool_flax, row.name))
    floats = {k: v for k, v in arrays.items() if v.dtype == np.float32}
    rest = {k: v for k, v in arrays.items() if k not in floats}
    with jax.debug_nans(True):
        call(arrays)
        jax.jit(jax.grad(lambda f: sum(out.sum() for out in call(f | rest))))(floats)


def test_the_nan_checker_would_speak():
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        attnpool_flax.mean_pooling(jnp.full((2, 3), jnp.nan))


def test_numbers_are_differentiable():
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 3, 4)
    slope = jax.grad(lambda scale: attnpool_flax.attention_pooling(x, scale=scale).sum())(1.0)
    step = 2.0**-7
    ahead, behind = (attnpool_flax.attention_pooling(x, scale=1 + s).sum() for s in (step, -step))
    assert abs(slope - (ahead - behind) / (2 * step)) < step**2 + 24 * np.finfo(np.float32).eps / step
