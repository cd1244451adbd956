"""How parameters start: shapes, variances and partitioning that initialisers see and decide."""

import functools
import inspect
import math

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from modules.cases import (
    CASES,
    NNX,
    THOROUGH,
    Linen,
    both_kinds,
    constructor,
    drawn_by,
    filled,
    same_bits,
    thorough_case,
    ways_of,
)

import attnpool_flax
from attnpool_flax import linen
from attnpool_flax.modules.specs import SPECS


@pytest.mark.parametrize(
    ("case", "kind"),
    [(case, kind) for case in CASES for kind in (NNX, Linen) if case.fans and (kind is NNX or str(case) in THOROUGH)],
    ids=lambda value: str(getattr(value, "__name__", value)),
)
def test_an_initialiser_sees_the_fan_in_first_and_its_values_stand_where_they_belong(case, kind):
    seen = []

    def counting(key, shape, dtype):
        seen.append(shape)
        return np.arange(math.prod(shape), dtype=dtype).reshape(shape)

    initial = kind.initial(case, **drawn_by(counting, getattr(attnpool_flax, case.module)))
    ranks = {key: value.ndim for key, value in initial.items()}
    drawn = [shaped for p in SPECS[case.module].parameters if p.name in case.fans for shaped in ways_of(p)]
    drawn = [p for p in drawn if ranks[p.name] in (len(p.axes), len([a for a in p.axes if a[-1] != "?"]))]
    assert {p.name for p in drawn} == set(case.fans)
    for parameter in drawn:
        value = np.asarray(initial[parameter.name])
        fan = case.fans[parameter.name]
        assert (fan, value.size // fan) in seen
        axes = [axis for axis in parameter.axes if axis[-1] != "?" or value.ndim == len(parameter.axes)]
        out = [i for i in range(len(axes)) if i not in parameter.contracted(axes)]
        columns = np.moveaxis(value, out, range(-len(out), 0)).reshape(fan, -1)
        np.testing.assert_array_equal(columns, np.arange(value.size).reshape(fan, -1))


@pytest.mark.parametrize("kind", [NNX, Linen], ids=["nnx", "linen"])
@pytest.mark.parametrize("name", ["FieldAttentionPool-of a kernel for each", "AttentionPool"])
def test_a_kernel_starts_with_the_variance_that_its_fan_in_asks_for(name, kind):
    """Over many keys; the estimate's relative error is sqrt(2 / count) for a normal draw, less for a truncated one."""
    case = next(case for case in CASES if str(case) == name)
    initial = jax.jit(jax.vmap(lambda key: kind.initial(case, seed=key)))(jax.random.split(jax.random.key(5), 512))
    for key, value in initial.items():
        if key in case.fans:
            error = np.mean(np.asarray(value, np.float64) ** 2) * case.fans[key] - 1
            assert abs(error) < 5 * math.sqrt(2 / value.size), key
        else:
            same_bits(value, jnp.zeros_like(value))


def test_weights_and_norms_start_as_if_they_were_not_there():
    for kind in (NNX, Linen):
        for case in CASES:
            if case.module in ("WeightedPool", "AttentionPool"):
                for key, value in kind.initial(case).items():
                    if key not in case.fans:
                        same_bits(value, jnp.full_like(value, 0 if key.endswith("bias") or key == "sink" else 1))


@thorough_case
@both_kinds
def test_initialisers_are_the_callers_choice(case, kind):
    takes = constructor(getattr(attnpool_flax, case.module))
    chosen = {"kernel": 2.0, "query": 3.0, "bias": 5.0}
    given = {f"{k}_init": functools.partial(filled, v) for k, v in chosen.items() if f"{k}_init" in takes}
    initial = kind.initial(case, **given)
    for parameter in SPECS[case.module].parameters:
        if parameter.name in initial and parameter.init in chosen:
            value = initial[parameter.name]
            same_bits(value, jnp.full_like(value, chosen[parameter.init]))


@both_kinds
def test_the_values_drawn_for_two_kernels_differ(kind):
    initial = kind.initial(next(case for case in CASES if str(case) == "AttentionPool-kernels and norm"))
    assert np.any(np.asarray(initial["query_kernel"]) != np.asarray(initial["key_kernel"]))


def test_partitioning_of_an_initialiser_becomes_the_parameters():
    mesh = jax.make_mesh((1, 1), ("rows", "columns"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    lecun = nnx.initializers.lecun_normal()
    with jax.set_mesh(mesh):
        pool = attnpool_flax.AttentionPool(
            4,
            qk_features=6,
            kernel_init=nnx.with_partitioning(lecun, ("rows", "columns")),
            query_init=nnx.with_partitioning(lecun, ("rows",)),
            rngs=nnx.Rngs(0),
        )
        assert pool.query_kernel[...].sharding.spec == jax.sharding.PartitionSpec("rows", "columns")
        assert pool.query[...].sharding.spec == jax.sharding.PartitionSpec("rows")
    chex.assert_shape(pool.query[...], (4,))
    boxed = linen.AttentionPool(
        qk_features=6,
        kernel_init=nn.with_partitioning(lecun, ("rows", "columns")),
        query_init=nn.with_partitioning(lecun, ("rows",)),
    ).init(jax.random.key(0), jnp.ones((5, 4)))
    specs = nn.get_partition_spec(boxed)["params"]
    assert specs["key_kernel"] == jax.sharding.PartitionSpec("rows", "columns")
    assert specs["query"] == jax.sharding.PartitionSpec("rows")
    chex.assert_shape(nn.unbox(boxed)["params"]["query"], (4,))


SATURATED = {
    "CrossAttentionPool": "over 0.9",
    "CodeWiseAttention": "None is 1/sqrt(d), which gives it less than half",
    "MaskAttention": "None is 1/sqrt(d), which gives it less than half",
    "TanhSumAttention": "most of the weight",
}
"""Modules of which a fresh one gives most weight to one of 40 unit normal tokens, and the words of their help about it."""


def largest_weight(name, **options):
    """Returns the mean over the rows of the largest weight of a fresh module on 40 unit normal tokens of width 64."""
    kind = getattr(attnpool_flax, name)
    parameters, call = inspect.signature(kind).parameters, inspect.signature(kind.__call__).parameters
    required = {
        key: 4 if key == "num_heads" else 40 if key in ("num_slots", "num_fields") else 64
        for key, each in parameters.items()
        if each.default is each.empty and key != "rngs"
    }
    rngs = {"rngs": nnx.Rngs(0)} if "rngs" in parameters else {}
    random = np.random.default_rng(0)
    one = ("target",) if name == "FieldAttentionPool" else ()
    data = {
        key: jnp.asarray(random.standard_normal((8, 64) if key in one else (8, 40, 64)), jnp.float32)
        for key, each in call.items()
        if key != "self" and each.default is each.empty
    }
    _, weights = kind(**required | options, **rngs)(**data, return_weights=True)
    return max(float(jnp.max(each, -1).mean()) for each in jax.tree.leaves(weights))


def test_a_fresh_module_spreads_its_weights_or_its_help_says_why_not():
    names = [
        name
        for name in SPECS
        if "return_weights" in inspect.signature(getattr(attnpool_flax, name).__call__).parameters
        and name not in ("WeightedPool", "VLADPool")  # whose weights are not those of tokens
    ]
    assert len(names) > 15 and set(SATURATED) <= set(names)
    options = {"AttentiveProbe": {"hidden_features": 64}}
    saturated = {name for name in names if largest_weight(name, **options.get(name, {})) > 0.5}
    assert saturated == set(SATURATED)
    for name, words in SATURATED.items():
        assert words in " ".join((getattr(attnpool_flax, name).__doc__ or words).split())
    for name in ("CodeWiseAttention", "MaskAttention"):
        assert largest_weight(name, scale=None) < 0.5
    kernels = dict.fromkeys(("x_features", "y_features", "qk_features"), 64)
    assert largest_weight("CrossAttentionPool", **kernels) < 0.1


def test_cross_attention_pool_takes_the_mean_with_kernels_and_the_notebook_without():
    x, y = np.random.default_rng(0).standard_normal((2, 3, 5, 4)).astype(np.float32)
    for module in (attnpool_flax.CrossAttentionPool(), attnpool_flax.CrossAttentionPool(reduction="sum", scale=1.0)):
        got = module(x, y)
        chex.assert_trees_all_equal(got, attnpool_flax.cross_attention_pooling(x, y))
    sizes = {"x_features": 4, "y_features": 4, "qk_features": 9}
    pool = attnpool_flax.CrossAttentionPool(**sizes, rngs=nnx.Rngs(0))
    of_linen = linen.CrossAttentionPool(qk_features=9)
    variables = {"params": {"x_kernel": pool.x_kernel[...], "y_kernel": pool.y_kernel[...]}}
    expected = attnpool_flax.cross_attention_pooling(
        x, y, x_kernel=pool.x_kernel[...], y_kernel=pool.y_kernel[...], reduction="mean", scale=1 / 3
    )
    for got in (pool(x, y), of_linen.apply(variables, x, y)):
        chex.assert_trees_all_close(got, expected, rtol=1e-6)


@pytest.mark.parametrize("name", [name for name in SPECS if "out_kernel" in {p.name for p in SPECS[name].parameters}])
def test_the_out_kernel_has_an_initialiser_of_its_own(name):
    case = next(case for case in CASES if case.module == name and "out_kernel" in case.shapes)
    sizes = case.sizes | case.options
    module = getattr(attnpool_flax, name)(**sizes, out_kernel_init=nnx.initializers.constant(3.0), rngs=nnx.Rngs(0))
    other = getattr(attnpool_flax, name)(**sizes, rngs=nnx.Rngs(0))
    assert np.all(module.out_kernel[...] == 3)
    states = [nnx.to_pure_dict(nnx.state(each, nnx.Param)) for each in (module, other)]
    assert [state.pop("out_kernel").shape for state in states] == [case.shapes["out_kernel"]] * 2
    chex.assert_trees_all_equal(*states)


def test_each_kernel_of_heads_is_partitioned_along_its_own_axis():
    mesh = jax.make_mesh((1,), ("model",), axis_types=(jax.sharding.AxisType.Auto,))
    lecun, spec = nnx.initializers.lecun_normal(), jax.sharding.PartitionSpec
    inputs = nnx.with_partitioning(lecun, (None, "model", None))
    out = nnx.with_partitioning(lecun, ("model", None, None))
    with jax.set_mesh(mesh):
        options = {"kernel_init": inputs, "out_kernel_init": out, "rngs": nnx.Rngs(0)}
        pool = attnpool_flax.MultiHeadAttentionPool(num_heads=2, in_features=4, **options)
        assert pool.value_kernel[...].sharding.spec == spec(None, "model", None)
        assert pool.out_kernel[...].sharding.spec == spec("model", None, None)
        with pytest.raises(
            ValueError, match=r"^MAPHead: `mlp_kernel` has the shape \(4, 6\), but its initializer names 3"
        ):
            attnpool_flax.MAPHead(num_heads=2, in_features=4, hidden_features=6, **options)
        two = nnx.with_partitioning(lecun, (None, "model"))
        with pytest.raises(
            ValueError, match=r"^AdditiveAttentionPool: `out_kernel` has the shape \(6,\), but its init"
        ):
            attnpool_flax.AdditiveAttentionPool(4, 6, kernel_init=two, rngs=nnx.Rngs(0))
    boxed = linen.MultiHeadAttentionPool(
        num_heads=2,
        kernel_init=nn.with_partitioning(lecun, (None, "model", None)),
        out_kernel_init=nn.with_partitioning(lecun, ("model", None, None)),
    ).init(jax.random.key(0), jnp.ones((5, 4)))
    specs = nn.get_partition_spec(boxed)["params"]
    assert (specs["key_kernel"], specs["out_kernel"]) == (spec(None, "model", None), spec("model", None, None))
