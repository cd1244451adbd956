"""Modules among Flax's own tools and layers."""

import inspect
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from modules.cases import (
    CASES,
    NNX,
    allowed,
    assert_near,
    both_kinds,
    every_case,
)

import attnpool_flax
from attnpool_flax import linen
from attnpool_flax.modules.specs import SPECS


def test_multi_head_attention_computes_what_flaxs_own_layer_computes_from_the_same_parameters():
    case = next(case for case in CASES if str(case) == "MultiHeadAttention")
    data, masks = case.draw()
    parameters = case.parameters()
    mask = masks["mask"] | (np.arange(5) == 0)  # Flax averages over all keys where a query sees none
    data["value"] = data["key"]  # Flax's layer takes keys and values of one width
    parameters["value_kernel"] = parameters["value_kernel"][:6]
    theirs = nnx.MultiHeadAttention(
        2, 4, qkv_features=6, out_features=9, in_kv_features=6, decode=False, rngs=nnx.Rngs(0)
    )
    for name in ("query", "key", "value", "out"):
        layer = getattr(theirs, name)
        layer.kernel[...], layer.bias[...] = parameters[f"{name}_kernel"], parameters[f"{name}_bias"]
    with jax.default_matmul_precision("highest"):
        expected = theirs(data["query"], data["key"], data["value"], mask=mask[:, None], deterministic=True)
    ours = attnpool_flax.MultiHeadAttention(
        num_heads=2, query_features=4, key_features=6, qkv_features=6, out_features=9, rngs=nnx.Rngs(0)
    )
    nnx.update(ours, parameters)
    assert_near(ours(*data.values(), mask=mask), expected, allowed(case, data, {"mask": mask}, parameters))


@pytest.mark.skipif("graph" not in inspect.signature(nnx.split).parameters, reason="this Flax splits graphs, not trees")
@every_case
def test_an_nnx_module_is_a_tree(case):
    module = NNX.build(case, **({"dropout_rate": 0.5} if case.drops else {}))
    assert nnx.find_duplicates(module) == []
    nnx.split(module, graph=False)


@every_case
@both_kinds
def test_a_repr_shows_what_was_chosen(case, kind):
    text = repr(kind.build(case))
    assert text.startswith(f"{case.module}(")
    for key, value in (case.options | case.switches | (case.sizes if kind is NNX else case.linen_sizes)).items():
        shown = "Param" if kind is NNX and key in case.shapes else re.escape(repr(value))  # a learned sink
        assert re.search(rf"\b{key} ?= ?{shown}", text)


@every_case
def test_a_repr_shows_arguments_of_the_constructor_and_parameters_and_nothing_else(case):
    module, spec = NNX.build(case), SPECS[case.module]
    shown = set(re.findall(r"^  (\w+)=", repr(module), re.MULTILINE))
    known = {*inspect.signature(type(module)).parameters, *(parameter.name for parameter in spec.parameters), "dropout"}
    assert shown - known - {"value"} == set()  # of a parameter: the oldest Flax does not indent it


def test_a_subclass_has_the_parameters_of_its_parent():
    class Mine(attnpool_flax.AttentionPool):
        pass

    class MineToo(linen.AttentionPool):
        pass

    assert set(nnx.to_pure_dict(nnx.state(Mine(4, rngs=nnx.Rngs(0))))) == {"query"}
    assert set(MineToo().init(jax.random.key(0), jnp.ones((5, 4)))["params"]) == {"query"}


def test_a_subclass_of_a_module_without_parameters_need_not_call_the_constructor_of_its_parent():
    class Mine(attnpool_flax.CodeWiseAttention):
        def __init__(self, width, rngs):
            self.map = nnx.Linear(width, width, rngs=rngs)

        def __call__(self, query, context):
            return super().__call__(self.map(query), context)

    assert Mine(4, rngs=nnx.Rngs(0))(jnp.ones((2, 3, 4)), jnp.ones((2, 5, 4))).shape == (2, 4)


def test_cross_attention_pool_needs_no_rngs():
    assert jax.tree.leaves(nnx.state(attnpool_flax.CrossAttentionPool())) == []
