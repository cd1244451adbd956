"""Dropout of modules: what is drawn, when, and what it leaves as it is."""

import math

import chex
import flax.linen as nn
import jax
import numpy as np
import pytest
from flax import errors, nnx
from jax.sharding import AxisType, PartitionSpec
from marks import thorough
from modules.cases import NNX, Case, Linen, both_kinds, same_bits, some_dropping

import attnpool_flax
from attnpool_flax import linen
from attnpool_flax.modules.parameters import multiplier_shapes


def with_dropout(case, kind, rate, seed, **more):
    """Output with dropout drawn from a seed."""
    rngs = {"rngs": nnx.Rngs(seed) if kind is NNX else {"dropout": jax.random.key(seed)}}
    data, masks = case.draw()
    how = {"deterministic": False} | rngs | more
    return kind.call(case, case.parameters(), data, masks, {"dropout_rate": rate}, **how)


def differ(first, second):
    """Every array of two results differs."""
    jax.tree.map(lambda a, b: np.testing.assert_(np.any(a != b)), first, second)


@some_dropping
@both_kinds
def test_dropout_draws_anew_from_another_key_and_alike_from_the_same(case, kind):
    first, again, other = (with_dropout(case, kind, 0.5, seed) for seed in (3, 3, 4))
    same_bits(first, again)
    differ(first, other)


@some_dropping
@both_kinds
def test_dropout_is_off_when_deterministic_or_of_rate_zero(case, kind):
    data, masks = case.draw()
    expected = case.expected(data, masks, case.parameters())
    same_bits(with_dropout(case, kind, 0.5, 3, deterministic=True), expected)
    same_bits(with_dropout(case, kind, 0.0, 3), expected)


@some_dropping
@both_kinds
def test_the_weights_returned_are_those_before_dropout(case, kind):
    data, masks = case.draw()
    _, weights = with_dropout(case, kind, 0.5, 3, return_weights=True)
    same_bits(weights, case.expected(data, masks, case.parameters(), return_weights=True)[1])


@some_dropping
@both_kinds
def test_dropping_everything_leaves_what_an_empty_row_leaves(case, kind):
    for output in map(np.asarray, jax.tree.leaves(with_dropout(case, kind, 1.0, 3))):
        bias = case.parameters().get("out_bias", np.zeros(output.shape[-1], np.float32))
        same_bits(output, np.broadcast_to(bias, output.shape))


@both_kinds
def test_a_weight_is_dropped_or_scaled_up_so_that_its_mean_stays(kind):
    """One-hot tokens under equal weights show the multiplier itself."""
    slots, batch, rate = 64, 128, 0.25
    case = Case("AttentionPool", {"in_features": slots}, {"x": (batch, slots, slots)}, {"query": (slots,)})
    data = {"x": np.broadcast_to(np.eye(slots, dtype=np.float32), (batch, slots, slots))}
    rngs = nnx.Rngs(0) if kind is NNX else {"dropout": jax.random.key(0)}
    query = {"query": np.zeros(slots, np.float32)}
    pooled = kind.call(case, query, data, {}, {"dropout_rate": rate}, deterministic=False, rngs=rngs)
    multiplier = slots * np.asarray(pooled)
    np.testing.assert_array_equal(np.unique(multiplier), [0, np.float32(1) / np.float32(1 - rate)])
    standard_error = math.sqrt(rate / (1 - rate) / multiplier.size)
    assert abs(np.mean(multiplier, dtype=np.float64) - 1) < 5 * standard_error


@some_dropping
def test_train_and_eval_switch_the_dropout_of_nnx(case):
    data, _ = case.draw()
    module = NNX.build(case, dropout_rate=0.5)
    nnx.update(module, case.parameters())
    module.eval()
    same_bits(module(*data.values()), module(*data.values(), deterministic=True))
    module.train()
    differ(*(module(*data.values()) for _ in range(2)))


@some_dropping
def test_a_stream_of_its_own_leaves_the_callers_alone(case):
    rngs = nnx.Rngs(params=0, dropout=1)
    module = NNX.build(case, rngs, dropout_rate=0.5)
    count = int(rngs.dropout.count[...])
    module(*case.draw()[0].values())
    assert int(rngs.dropout.count[...]) == count


@some_dropping
def test_linen_initialises_without_a_key_for_dropout_and_asks_for_it_later(case):
    data, _ = case.draw()
    module = Linen.build(case, dropout_rate=0.5)
    variables = module.init(jax.random.key(0), *data.values())
    assert set(variables.get("params", {})) == set(case.shapes)
    with pytest.raises(ValueError, match=f"^{case.module}: `deterministic` is needed, as the module has dropout"):
        module.apply(variables, *data.values())


@some_dropping
def test_linen_drops_as_the_constructor_or_the_call_says_and_refuses_both(case):
    data, masks = case.draw()
    options = {"dropout_rate": 0.5, "deterministic": False}
    drawn = Linen.call(case, case.parameters(), data, masks, options, rngs={"dropout": jax.random.key(3)})
    same_bits(drawn, with_dropout(case, Linen, 0.5, 3))
    with pytest.raises(ValueError, match='"deterministic" was passed to the constructor and at call time'):
        Linen.call(case, case.parameters(), data, masks, options, deterministic=True)


@pytest.mark.thorough
def test_linen_drops_where_a_call_passes_only_the_tokens():
    """In a sequence of layers, and under the lifted vmap, which pass on what is pooled alone."""
    x = np.ones((3, 2, 5, 4), np.float32)
    how = {"dropout_rate": 0.5, "deterministic": False}
    keys = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
    layers = nn.Sequential([linen.AttentionPool(**how), linen.MultiHeadAttentionPool(num_heads=2, **how)])
    lifted = nn.vmap(
        linen.AttentionPool, variable_axes={"params": None}, split_rngs={"params": False, "dropout": True}
    )(**how)
    for module, shape in ((layers, (3, 1, 4)), (lifted, (3, 2, 4))):
        chex.assert_shape(module.init_with_output(keys, x)[0], shape)
        with pytest.raises(errors.InvalidRngError, match="dropout"):
            module.apply(module.init(keys, x), x)


@pytest.mark.mesh
@both_kinds
@pytest.mark.parametrize("axes", [*thorough(["tokens"]), ("batch", "tokens")], ids=["one axis", "two axes"])
@pytest.mark.parametrize("name", ["AttentionPool", *thorough(["CrossAttentionPool"])])
def test_each_device_draws_for_its_own_tokens(name, axes, kind):
    """One-hot tokens under equal weights show the multipliers: 32 for each device."""
    slots, devices = 32 * (8 if isinstance(axes, tuple) else 4), 8 if isinstance(axes, tuple) else 4
    x = np.eye(slots, dtype=np.float32)
    shapes = {"query": (slots,)} if name == "AttentionPool" else {}
    data = {"x": x} if shapes else {"x": x, "y": x}
    case = Case(name, {"in_features": slots} if shapes else {}, {key: x.shape for key in data}, shapes)
    parameters = {key: np.zeros(shape, np.float32) for key, shape in shapes.items()}

    def pooled(data):
        key = jax.random.key(0)
        options = {"dropout_rate": 0.5, "axis_name": axes}
        rngs = {"rngs": nnx.Rngs(dropout=key) if kind is NNX else {"dropout": key}}
        return kind.call(case, parameters, data, {}, options, deterministic=False, **rngs)

    mesh = jax.make_mesh((2, 4), ("batch", "tokens"), axis_types=(AxisType.Auto,) * 2)
    split = jax.shard_map(pooled, mesh=mesh, in_specs=PartitionSpec(axes), out_specs=PartitionSpec())
    for output in jax.tree.leaves(jax.jit(split)(data)):
        parts = np.asarray(output).reshape(devices, 32) > 0
        assert len(np.unique(parts, axis=0)) == devices


def test_a_stream_from_outside_of_a_transformation_is_refused_with_what_to_do():
    pool = attnpool_flax.AdditiveAttentionPool(4, 8, dropout_rate=0.5, rngs=nnx.Rngs(0))
    x = np.ones((2, 3, 4), np.float32)
    for transformed in (jax.jit(pool), jax.vmap(pool), jax.grad(lambda x: pool(x).sum())):
        with pytest.raises(
            errors.TraceContextError, match=r"^AdditiveAttentionPool: dropout cannot draw here .* `rngs=key`"
        ):
            transformed(x)
    jax.jit(pool)(x, rngs=jax.random.key(0))
    pool.eval()
    jax.jit(pool)(x)


def test_keys_of_another_kind_are_refused_by_name():
    pool = attnpool_flax.AttentionPool(4, dropout_rate=0.5, rngs=nnx.Rngs(0))
    x = np.ones((3, 4), np.float32)
    with pytest.raises(
        ValueError, match=r'^AttentionPool: `rngs` needs a stream "dropout", such as `nnx.Rngs\(dropout=1\)`'
    ):
        pool(x, rngs=nnx.Rngs(params=0))
    with pytest.raises(
        TypeError, match=r"^AttentionPool: `rngs` is an int, needs an nnx.Rngs, a stream of it or a key"
    ):
        pool(x, rngs=3)


def test_the_multiplier_has_a_number_for_each_weight_where_keys_are_shared():
    data = {"query": np.zeros((3, 2, 4)), "key": np.zeros((5, 6)), "value": np.zeros((5, 7))}
    x, y = np.zeros((5, 4)), np.zeros((7, 6))
    for module, arrays, given, *shapes in (
        ("AdditiveAttention", data, {}, (3, 2, 5)),
        ("MultiHeadAttention", data, {"num_heads": 8}, (3, 8, 2, 5)),
        ("AttentionPool", {"x": x}, {}, (5,)),
        ("AdditiveAttentionPool", {"x": x}, {"num_queries": None}, (5,)),
        ("AdditiveAttentionPool", {"x": x}, {"num_queries": 3}, (3, 5)),
        ("CrossAttentionPool", {"x": x, "y": y}, {}, (5,), (7,)),
    ):
        assert list(multiplier_shapes(module, arrays, given).values()) == shapes
