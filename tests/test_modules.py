"""The modules hold parameters and configuration: every number is their function's, in NNX and in Linen."""

import functools
import inspect
import math
import re
import zlib
from dataclasses import dataclass, field

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import pytest
from flax import nnx

import attnpool_flax
import attnpool_ref
from attnpool_flax import linen
from attnpool_flax.parameters import OWNERS, multiplier_shape
from attnpool_ref import contract, variants
from attnpool_ref.conformance import tolerances

pytestmark = pytest.mark.usefixtures("compiled_quickly")


@dataclass(frozen=True)
class Case:
    """One way to build a module and to call it.

    Attributes:
      title: what is special about it.
      module: its name.
      sizes: the sizes that NNX is given.
      data: the shapes of the arrays, in the order of the call; a batch has three examples.
      owns: the shape of each parameter.
      fans: the fan-in of each parameter that is drawn.
      options: what the constructors and the function are given alike.
      switches: what the constructors alone are given.
      linen_sizes: the sizes that Linen is given.
      masks: the shapes of the masks.
      padding: for each array the mask that says which of its tokens are real, and the axis over which a token is
        seen if any row of the mask sees it.
      zeros: the shapes of the arguments that are zeros instead of parameters.
      maps: whether the result passes an affine map, so that an empty row need not be 0.
    """

    title: str
    module: str
    sizes: dict
    data: dict
    owns: dict
    fans: dict = field(default_factory=dict)
    options: dict = field(default_factory=dict)
    switches: dict = field(default_factory=dict)
    linen_sizes: dict = field(default_factory=dict)
    masks: dict = field(default_factory=dict)
    padding: dict = field(default_factory=dict)
    zeros: dict = field(default_factory=dict)
    maps: bool = False

    def __str__(self):
        return f"{self.module}-{self.title}" if self.title else self.module

    @property
    def function(self):
        return getattr(attnpool_flax, OWNERS[self.module].function)

    @property
    def row(self):
        return variants.get(OWNERS[self.module].function)

    @property
    def drops(self):
        return "dropout_multiplier" in inspect.signature(self.function).parameters

    def rng(self):
        return np.random.default_rng(zlib.crc32(str(self).encode()))

    def draw(self, dtype=np.float32):
        """Data and masks; each mask has a full, a partial and an empty example."""
        rng = self.rng()
        data = {key: rng.standard_normal(shape).astype(dtype) for key, shape in self.data.items()}
        masks = {key: rng.random(shape) < 0.6 for key, shape in self.masks.items()}
        for mask in masks.values():
            mask[0], mask[1], mask[1, ..., 1], mask[2] = True, False, True, False
        return data, masks

    def parameters(self, dtype=np.float32):
        rng = self.rng()
        return {key: 1 + rng.standard_normal(shape).astype(dtype) / 4 for key, shape in self.owns.items()}

    def arguments(self, data):
        """The data in the order of the call, which JAX's transformations of a dict do not keep."""
        return [data[key] for key in self.data]

    def expected(self, data, masks, parameters, **more):
        dtype = next(iter(data.values())).dtype
        zeros = {key: np.zeros(shape, dtype) for key, shape in self.zeros.items()}
        return self.function(**data, **masks, **parameters, **zeros, **self.options, **more)


X, Y = {"x": (3, 5, 4)}, {"y": (3, 7, 6)}
PAIR = {"query": (3, 2, 4), "key": (3, 5, 6)}
ATTENDED = PAIR | {"value": (3, 5, 7)}
SLOTS = {"query": (3, 2, 4), "state": (3, 2, 6), "value": (3, 5, 7)}
OVER_X = {"masks": {"mask": (3, 5)}, "padding": {"x": ("mask", None)}}
OVER_BOTH = {"masks": {"x_mask": (3, 5), "y_mask": (3, 7)}, "padding": {"x": ("x_mask", None), "y": ("y_mask", None)}}
OVER_PAIRS = {
    "masks": {"mask": (3, 2, 5)},
    "padding": {"query": ("mask", -1), "key": ("mask", -2), "value": ("mask", -2)},
}
OVER_SLOTS = {"masks": {"mask": (3, 5)}, "padding": {"value": ("mask", None)}}
OVER_QUERY_AND_CONTEXT = {
    "masks": {"query_mask": (3, 6), "context_mask": (3, 5)},
    "padding": {"query": ("query_mask", None), "context": ("context_mask", None)},
}
OVER_FIELDS = {"masks": {"mask": (3, 5)}, "padding": {"fields": ("mask", None)}}
HIDDEN = {"query_features": 4, "key_features": 6, "hidden_features": 8}
WITH_BIAS = {"switches": {"use_bias": True}}
WITHOUT_BIAS = {"switches": {"use_bias": False}}
ADDITIVE = {"query_kernel": (4, 8), "key_kernel": (6, 8), "out_kernel": (8,)}
ADDITIVE_FANS = {"query_kernel": 4, "key_kernel": 6, "out_kernel": 8}
LOCATION = {"query_features": 4, "state_features": 6, "value_features": 7, "num_slots": 5, "out_features": 9}
HEADS = {"num_heads": 2, "qkv_features": 6, "out_features": 9}
HEAD_BIASES = {"query_bias": (2, 3), "key_bias": (2, 3), "value_bias": (2, 3), "out_bias": (9,)}

CASES = [
    Case(
        "",
        "BilinearScore",
        sizes={"query_features": 4, "key_features": 6},
        data=PAIR,
        owns={"kernel": (4, 6)},
        fans={"kernel": 4},
    ),
    Case("", "AdditiveScore", HIDDEN, PAIR, ADDITIVE, ADDITIVE_FANS, linen_sizes={"hidden_features": 8}),
    Case(
        "with a bias",
        "AdditiveScore",
        HIDDEN,
        PAIR,
        ADDITIVE | {"bias": (8,)},
        ADDITIVE_FANS,
        linen_sizes={"hidden_features": 8},
        **WITH_BIAS,
    ),
    Case(
        "with a bias",
        "ConcatScore",
        HIDDEN,
        PAIR,
        owns={"kernel": (10, 8), "out_kernel": (8,), "bias": (8,)},
        fans={"kernel": 10, "out_kernel": 8},
        linen_sizes={"hidden_features": 8},
        **WITH_BIAS,
    ),
    Case(
        "",
        "TanhSumScore",
        HIDDEN,
        PAIR,
        owns={"kernel": (10, 8), "bias": (8,)},
        fans={"kernel": 10},
        linen_sizes={"hidden_features": 8},
    ),
    Case(
        "",
        "LocationScore",
        sizes={"query_features": 4, "state_features": 6, "num_slots": 5},
        data={"query": (3, 2, 4), "state": (3, 2, 6)},
        owns={"kernel": (10, 5), "bias": (5,)},
        fans={"kernel": 10},
        linen_sizes={"num_slots": 5},
    ),
    Case(
        "",
        "TrilinearScore",
        sizes={"in_features": 4},
        data={"query": (3, 2, 4), "key": (3, 5, 4)},
        owns={"kernel": (12,)},
        fans={"kernel": 12},
    ),
    Case(
        "",
        "AdditiveAttention",
        HIDDEN,
        ATTENDED,
        ADDITIVE,
        ADDITIVE_FANS,
        linen_sizes={"hidden_features": 8},
        **OVER_PAIRS,
    ),
    Case(
        "",
        "TanhSumAttention",
        HIDDEN,
        ATTENDED,
        owns={"kernel": (10, 8), "bias": (8,)},
        fans={"kernel": 10},
        linen_sizes={"hidden_features": 8},
        **OVER_PAIRS,
    ),
    Case(
        "without a bias",
        "TanhSumAttention",
        HIDDEN,
        ATTENDED,
        owns={"kernel": (10, 8)},
        fans={"kernel": 10},
        linen_sizes={"hidden_features": 8},
        **OVER_PAIRS,
        **WITHOUT_BIAS,
    ),
    Case(
        "",
        "LocationAttention",
        LOCATION,
        SLOTS,
        owns={"kernel": (10, 5), "bias": (5,), "out_kernel": (11, 9), "out_bias": (9,)},
        fans={"kernel": 10, "out_kernel": 11},
        linen_sizes={"out_features": 9},
        maps=True,
        **OVER_SLOTS,
    ),
    Case(
        "without biases",
        "LocationAttention",
        LOCATION,
        SLOTS,
        owns={"kernel": (10, 5), "out_kernel": (11, 9)},
        fans={"kernel": 10, "out_kernel": 11},
        zeros={"bias": (5,), "out_bias": (9,)},
        linen_sizes={"out_features": 9},
        maps=True,
        **OVER_SLOTS,
        **WITHOUT_BIAS,
    ),
    Case(
        "",
        "MultiHeadAttention",
        sizes={"query_features": 4, "key_features": 6, "value_features": 7} | HEADS,
        data=ATTENDED,
        owns={"query_kernel": (4, 2, 3), "key_kernel": (6, 2, 3), "value_kernel": (7, 2, 3), "out_kernel": (2, 3, 9)}
        | HEAD_BIASES,
        fans={"query_kernel": 4, "key_kernel": 6, "value_kernel": 7, "out_kernel": 6},
        linen_sizes=HEADS,
        maps=True,
        **OVER_PAIRS,
    ),
    Case(
        "of one width, without biases",
        "MultiHeadAttention",
        sizes={"num_heads": 2, "query_features": 4},
        data={"query": (3, 2, 4), "key": (3, 5, 4), "value": (3, 5, 4)},
        owns={"query_kernel": (4, 2, 2), "key_kernel": (4, 2, 2), "value_kernel": (4, 2, 2), "out_kernel": (2, 2, 4)},
        fans={"query_kernel": 4, "key_kernel": 4, "value_kernel": 4, "out_kernel": 4},
        linen_sizes={"num_heads": 2},
        **OVER_PAIRS,
        **WITHOUT_BIAS,
    ),
    Case("", "WeightedPool", sizes={"num_slots": 5}, data=X, owns={"weights": (5,)}, **OVER_X),
    Case("", "AttentionPool", sizes={"in_features": 4}, data=X, owns={"query": (4,)}, fans={"query": 4}, **OVER_X),
    Case(
        "kernels and norm",
        "AttentionPool",
        sizes={"in_features": 4, "qk_features": 6},
        linen_sizes={"qk_features": 6},
        data=X,
        options={"normalize_query": True, "epsilon": 0.25, "scale": 0.75},
        owns={
            "query": (4,),
            "query_kernel": (4, 6),
            "key_kernel": (4, 6),
            "query_norm_scale": (4,),
            "query_norm_bias": (4,),
        },
        fans={"query": 4, "query_kernel": 4, "key_kernel": 4},
        **OVER_X,
    ),
    Case(
        "",
        "MultiHeadAttentionPool",
        sizes={"in_features": 4, "num_queries": 8} | HEADS,
        data=X,
        owns={
            "query": (8, 4),
            "query_kernel": (4, 2, 3),
            "key_kernel": (4, 2, 3),
            "value_kernel": (4, 2, 3),
            "out_kernel": (2, 3, 9),
        }
        | HEAD_BIASES,
        fans={"query": 4, "query_kernel": 4, "key_kernel": 4, "value_kernel": 4, "out_kernel": 6},
        linen_sizes={"num_queries": 8} | HEADS,
        maps=True,
        **OVER_X,
    ),
    Case(
        "of one width, without biases",
        "MultiHeadAttentionPool",
        sizes={"num_heads": 2, "in_features": 4},
        data=X,
        owns={
            "query": (1, 4),
            "query_kernel": (4, 2, 2),
            "key_kernel": (4, 2, 2),
            "value_kernel": (4, 2, 2),
            "out_kernel": (2, 2, 4),
        },
        fans={"query": 4, "query_kernel": 4, "key_kernel": 4, "value_kernel": 4, "out_kernel": 4},
        linen_sizes={"num_heads": 2},
        **OVER_X,
        **WITHOUT_BIAS,
    ),
    Case("", "CrossAttentionPool", sizes={}, data=X | {"y": (3, 7, 4)}, owns={}, **OVER_BOTH),
    Case(
        "kernels",
        "CrossAttentionPool",
        sizes={"x_features": 4, "y_features": 6, "qk_features": 2},
        linen_sizes={"qk_features": 2},
        data=X | Y,
        options={"reduction": "max", "scale": 0.25},
        owns={"x_kernel": (4, 2), "y_kernel": (6, 2)},
        fans={"x_kernel": 4, "y_kernel": 6},
        **OVER_BOTH,
    ),
    Case(
        "kernel of x",
        "CrossAttentionPool",
        sizes={"x_features": 4, "qk_features": 6},
        linen_sizes={"x_features": 4, "qk_features": 6},
        data=X | Y,
        owns={"x_kernel": (4, 6)},
        fans={"x_kernel": 4},
        **OVER_BOTH,
    ),
    Case(
        "kernel of y",
        "CrossAttentionPool",
        sizes={"y_features": 6, "qk_features": 4},
        linen_sizes={"y_features": 6, "qk_features": 4},
        data=X | Y,
        options={"reduction": "mean"},
        owns={"y_kernel": (6, 4)},
        fans={"y_kernel": 6},
        **OVER_BOTH,
    ),
    Case(
        "",
        "CodeWiseAttention",
        sizes={},
        data={"query": (3, 6, 4), "context": (3, 5, 4)},
        owns={},
        options={"scale": 0.25},
        **OVER_QUERY_AND_CONTEXT,
    ),
    Case(
        "",
        "MaskAttention",
        sizes={},
        data={"query": (3, 6, 4), "context": (3, 5, 4)},
        owns={},
        options={"scale": 0.25},
        **OVER_QUERY_AND_CONTEXT,
    ),
    Case(
        "",
        "BiDAFAttention",
        sizes={"in_features": 4},
        data={"context": (3, 5, 4), "query": (3, 6, 4)},
        owns={"kernel": (12,)},
        fans={"kernel": 12},
        **OVER_QUERY_AND_CONTEXT,
    ),
    Case(
        "",
        "RelationVector",
        sizes={"in_features": 4, "hidden_features": 8},
        data={"x": (3, 4), "y": (3, 4)},
        owns={"x_kernel": (4, 8), "y_kernel": (4, 8), "out_kernel": (8, 4), "bias": (8,)},
        fans={"x_kernel": 4, "y_kernel": 4, "out_kernel": 8},
        linen_sizes={"hidden_features": 8},
    ),
    Case(
        "of another width, without a bias",
        "RelationVector",
        sizes={"in_features": 4, "hidden_features": 8, "out_features": 6},
        data={"x": (3, 4), "y": (3, 4)},
        owns={"x_kernel": (4, 8), "y_kernel": (4, 8), "out_kernel": (8, 6)},
        fans={"x_kernel": 4, "y_kernel": 4, "out_kernel": 8},
        zeros={"bias": (8,)},
        linen_sizes={"hidden_features": 8, "out_features": 6},
        **WITHOUT_BIAS,
    ),
    Case(
        "",
        "FieldAttentionPool",
        sizes={"target_features": 4, "field_features": 6},
        data={"target": (3, 4), "fields": (3, 5, 6)},
        owns={"kernel": (10,), "bias": ()},
        fans={"kernel": 10},
        **OVER_FIELDS,
    ),
    Case(
        "of a kernel for each",
        "FieldAttentionPool",
        sizes={"target_features": 4, "field_features": 6, "num_fields": 5},
        data={"target": (3, 4), "fields": (3, 5, 6)},
        owns={"kernel": (5, 10), "bias": (5,)},
        fans={"kernel": 10},
        linen_sizes={"num_fields": 5},
        **OVER_FIELDS,
    ),
    Case(
        "without a target, without a bias",
        "FieldAttentionPool",
        sizes={"target_features": 0, "field_features": 6},
        data={"target": (3, 0), "fields": (3, 5, 6)},
        owns={"kernel": (6,)},
        fans={"kernel": 6},
        zeros={"bias": ()},
        **OVER_FIELDS,
        **WITHOUT_BIAS,
    ),
    Case(
        "",
        "LabelAttention",
        sizes={"in_features": 4},
        data={"labels": (3, 5, 4)},
        owns={"query_kernel": (4, 4), "key_kernel": (4, 4), "value_kernel": (4, 4)},
        fans={"query_kernel": 4, "key_kernel": 4, "value_kernel": 4},
        masks={"mask": (3, 5)},
        padding={"labels": ("mask", None)},
    ),
    Case(
        "of other widths",
        "LabelAttention",
        sizes={"in_features": 4, "qk_features": 6, "out_features": 7},
        data={"labels": (3, 5, 4)},
        owns={"query_kernel": (4, 6), "key_kernel": (4, 6), "value_kernel": (4, 7)},
        fans={"query_kernel": 4, "key_kernel": 4, "value_kernel": 4},
        linen_sizes={"qk_features": 6, "out_features": 7},
        masks={"mask": (3, 5)},
        padding={"labels": ("mask", None)},
    ),
]

THOROUGH = (
    "LocationAttention-without biases",
    "MultiHeadAttention",
    "WeightedPool",
    "AttentionPool-kernels and norm",
    "CrossAttentionPool-kernels",
    "FieldAttentionPool-of a kernel for each",
)
"""A case for each way in which modules differ: what is compiled anew is compiled for these."""

every_case = pytest.mark.parametrize("case", CASES, ids=str)
thorough_case = pytest.mark.parametrize("case", [case for case in CASES if str(case) in THOROUGH], ids=str)
masked = pytest.mark.parametrize("case", [case for case in CASES if case.masks], ids=str)
weighted = pytest.mark.parametrize("case", [case for case in CASES if case.row.weights], ids=str)
owning = pytest.mark.parametrize("case", [case for case in CASES if case.owns], ids=str)
dropping = pytest.mark.parametrize("case", [case for case in CASES if case.drops and not case.title], ids=str)


def constructor(module):
    """What a module's constructor takes; NNX's metaclass hides it from ``inspect.signature`` of the class."""
    parameters = inspect.signature(module.__init__).parameters
    return {key: value for key, value in parameters.items() if key not in ("self", "parent", "name")}


def blank(key, shape, dtype):
    """An initialiser that costs nothing, for what is replaced before the call."""
    return np.zeros(shape, dtype)


def filled(value, key, shape, dtype):
    """An initialiser of one value."""
    return np.full(shape, value, dtype)


def drawn_by(initializer, module):
    """The module's initialisers, all replaced."""
    return {key: initializer for key in constructor(module) if key.endswith("_init")}


class NNX:
    """Builds and calls a case's NNX module."""

    @staticmethod
    def build(case, rngs=None, **options):
        """The module, of blank parameters unless their initialisers are given."""
        module = getattr(attnpool_flax, case.module)
        options = drawn_by(blank, module) | options
        return module(**case.sizes, **case.options, **case.switches, **options, rngs=rngs or nnx.Rngs(0))

    @staticmethod
    def initial(case, seed=0, **options):
        module = getattr(attnpool_flax, case.module)
        module = module(**case.sizes, **case.options, **case.switches, **options, rngs=nnx.Rngs(params=seed))
        return nnx.to_pure_dict(nnx.state(module, nnx.Param))

    @classmethod
    def call(cls, case, parameters, data, masks, options=(), **more):
        module = cls.build(case, **dict(options))
        nnx.update(module, parameters)
        return module(*case.arguments(data), **masks, **more)


class Linen:
    """Builds and calls a case's Linen module."""

    @staticmethod
    def build(case, **options):
        return getattr(linen, case.module)(**case.linen_sizes, **case.options, **case.switches, **options)

    @classmethod
    def initial(cls, case, seed=0, **options):
        key = jax.random.key(seed) if isinstance(seed, int) else seed
        return cls.build(case, **options).init(key, *case.draw()[0].values()).get("params", {})

    @classmethod
    def call(cls, case, parameters, data, masks, options=(), **more):
        return cls.build(case, **dict(options)).apply({"params": parameters}, *case.arguments(data), **masks, **more)


both_kinds = pytest.mark.parametrize("kind", [NNX, Linen], ids=["nnx", "linen"])


def deterministic(case):
    """What a call must say where dropout is possible; at rate 0 it changes nothing."""
    return {"deterministic": True} if case.drops else {}


def same_bits(got, expected):
    chex.assert_trees_all_equal_shapes_and_dtypes(got, expected)
    jax.tree.map(np.testing.assert_array_equal, got, expected)


# --------------------------------------------------------------------------------------------------------------
# One table


def test_every_module_of_the_table_of_variants_has_its_owner_and_both_classes():
    rows = {row.module: row.name for row in variants.VARIANTS if row.module}
    assert {name: owner.function for name, owner in OWNERS.items()} == rows
    for name in rows:
        assert issubclass(getattr(attnpool_flax, name), nnx.Module)
        assert issubclass(getattr(linen, name), nn.Module)
        assert name in attnpool_flax.__all__
        assert name in linen.__all__


@pytest.mark.parametrize("name", OWNERS)
def test_a_parameter_has_the_shape_that_its_row_shows(name):
    owner = OWNERS[name]
    row = variants.get(owner.function)
    arguments = contract.arguments_of(row.shapes)
    learned = {"q": "d"} if "q=d if query_kernel" in row.rules else {}
    for parameter in owner.parameters:
        shown = [
            tuple(learned.get(axis, axis) for axis in axes if axis != "...")
            for axes in arguments[parameter.name].shapes
        ]
        whole = tuple(axis.rstrip("?") for axis in parameter.axes)
        least = tuple(axis for axis in parameter.axes if not axis.endswith("?"))
        assert {whole, least} <= set(shown)


def test_a_relation_triplet_takes_the_parameters_of_a_relation_vector():
    arguments = contract.arguments_of(variants.get("relation_triplet_loss").shapes)
    taken = {key for key, argument in arguments.items() if argument.kind == "parameter"}
    assert taken == {parameter.name for parameter in OWNERS["RelationVector"].parameters}


@pytest.mark.parametrize("name", OWNERS)
def test_every_module_is_a_case(name):
    assert name in {case.module for case in CASES}


@every_case
@both_kinds
def test_a_module_owns_flat_parameters_named_as_the_arguments(case, kind):
    initial = jax.eval_shape(lambda: kind.initial(case))
    assert {key: value.shape for key, value in initial.items()} == case.owns
    assert {value.dtype for value in initial.values()} <= {jnp.dtype(np.float32)}


@pytest.mark.parametrize("name", OWNERS)
def test_linen_takes_the_same_arguments_less_the_sizes_it_reads(name):
    ours, theirs = constructor(getattr(attnpool_flax, name)), constructor(getattr(linen, name))
    read = set(OWNERS[name].sizes.values())
    assert set(theirs) <= set(ours)
    assert set(ours) - set(theirs) - {"rngs"} <= read
    for key in set(theirs) & set(ours) - read:
        assert (theirs[key].default, theirs[key].annotation) == (ours[key].default, ours[key].annotation), key


@pytest.mark.parametrize("name", OWNERS)
def test_both_classes_are_called_alike(name):
    ours = inspect.signature(getattr(attnpool_flax, name).__call__)
    theirs = inspect.signature(getattr(linen, name).__call__)
    assert [str(p) for p in ours.parameters.values() if p.name != "rngs"] == [
        str(p) for p in theirs.parameters.values()
    ]


@pytest.mark.parametrize("name", OWNERS)
def test_a_call_takes_what_the_function_takes_as_data_masks_and_weights(name):
    owner = OWNERS[name]
    function = inspect.signature(getattr(attnpool_flax, owner.function)).parameters
    call = set(inspect.signature(getattr(attnpool_flax, name).__call__).parameters) - {"self"}
    arguments = contract.arguments_of(variants.get(owner.function).shapes)
    taken = {key for key, a in arguments.items() if a.kind in ("data", "mask")} - {p.name for p in owner.parameters}
    taken |= {"return_weights"} & set(function)
    taken |= {"deterministic", "rngs"} if "dropout_multiplier" in function else set()
    assert call == taken


@pytest.mark.parametrize("name", OWNERS)
@pytest.mark.parametrize("package", [attnpool_flax, linen], ids=["nnx", "linen"])
def test_a_module_documents_its_function_its_arguments_and_its_parameters(name, package):
    module = getattr(package, name)
    text = inspect.getdoc(module)
    assert text.startswith(f"Parameters of :func:`attnpool_flax.{OWNERS[name].function}`.\n")
    for parameter in OWNERS[name].parameters:
        assert f"``{parameter.name}`` [" in " ".join(text.split())
    documented = re.findall(r"^  (\w+): ", text, re.MULTILINE)
    assert documented == list(constructor(module))


# --------------------------------------------------------------------------------------------------------------
# The function's numbers


@every_case
@both_kinds
def test_the_output_is_the_functions_to_the_bit(case, kind):
    data, masks = case.draw()
    parameters = case.parameters()
    for given in (masks, {}) if str(case) in THOROUGH else (masks,):
        got = kind.call(case, parameters, data, given, **deterministic(case))
        same_bits(got, case.expected(data, given, parameters))


@weighted
@both_kinds
def test_the_weights_are_the_functions_and_change_no_bit(case, kind):
    data, masks = case.draw()
    parameters = case.parameters()
    drops = deterministic(case)
    both = kind.call(case, parameters, data, masks, return_weights=True, **drops)
    same_bits(both, case.expected(data, masks, parameters, return_weights=True))
    same_bits(both[0], kind.call(case, parameters, data, masks, **drops))


@thorough_case
@both_kinds
def test_gradients_are_the_functions_and_finite_with_padding_and_empty_rows(case, kind):
    data, masks = case.draw()
    parameters = case.parameters()

    def loss(call, parameters, data):
        return sum(jnp.sum(part * part) for part in jax.tree.leaves(call(parameters, data)))

    def module(parameters, data):
        return kind.call(case, parameters, data, masks)

    def function(parameters, data):
        return case.expected(data, masks, parameters)

    got = jax.grad(functools.partial(loss, module), argnums=(0, 1))(parameters, data)
    chex.assert_tree_all_finite(got)
    same_bits(got, jax.grad(functools.partial(loss, function), argnums=(0, 1))(parameters, data))


@masked
@both_kinds
def test_what_stands_in_padding_never_matters(case, kind):
    data, masks = case.draw()
    parameters = case.parameters()
    poisoned = {key: value.copy() for key, value in data.items()}
    for key, (mask, axis) in case.padding.items():
        real = masks[mask] if axis is None else np.any(masks[mask], axis)
        poisoned[key][~real] = np.nan
    drops = deterministic(case)
    clean = kind.call(case, parameters, data, masks, **drops)
    same_bits(kind.call(case, parameters, poisoned, masks, **drops), clean)
    chex.assert_tree_all_finite(clean)


@masked
@both_kinds
def test_an_example_without_a_real_token_gives_zero(case, kind):
    data, masks = case.draw()
    drops = deterministic(case)
    more = drops | ({"return_weights": True} if case.row.weights else {})
    result = kind.call(case, case.parameters(), data, masks, **more)
    for part in jax.tree.leaves(result[1] if case.maps else result):
        np.testing.assert_array_equal(part[2], 0)
        assert np.any(part[0] != 0)


def allowed(case, data, masks, parameters):
    """How far two roundings of a case's outputs may be apart: one list entry for each output."""

    def definition(arrays):
        function = getattr(attnpool_ref, case.row.name)
        zeros = {key: np.zeros(shape) for key, shape in case.zeros.items()}
        return [np.asarray(part) for part in jax.tree.leaves(function(**arrays, **masks, **zeros, **case.options))]

    arrays = {key: np.asarray(value, np.float64) for key, value in (data | parameters).items()}
    terms = 8 + sum(sum(value.shape) for value in arrays.values())
    sensitive = tolerances.sensitivity(definition, arrays, case.rng())
    return [
        2 * tolerances.allowed_error(np.max(np.abs(exact)), moved, terms, "float32")
        for exact, moved in zip(definition(arrays), sensitive, strict=True)
    ]


def assert_near(got, expected, errors):
    for a, b, error in zip(jax.tree.leaves(got), jax.tree.leaves(expected), errors, strict=True):
        chex.assert_equal_shape([a, b])
        np.testing.assert_allclose(a, b, rtol=0, atol=error)


@thorough_case
@both_kinds
def test_jit_and_vmap_change_nothing_but_rounding_and_trace_once(case, kind):
    data, masks = case.draw()
    parameters = case.parameters()
    expected = case.expected(data, masks, parameters)
    errors = allowed(case, data, masks, parameters)
    chex.clear_trace_counter()  # chex counts by name, and every case has a function of this one

    @jax.jit
    @functools.partial(chex.assert_max_traces, n=1)
    def jitted(parameters, data, masks):
        return kind.call(case, parameters, data, masks)

    assert_near(jitted(parameters, data, masks), expected, errors)
    assert_near(jitted(parameters, jax.tree.map(np.copy, data), masks), expected, errors)
    mapped = jax.vmap(lambda data, masks: kind.call(case, parameters, data, masks))
    assert_near(mapped(data, masks), expected, errors)


# --------------------------------------------------------------------------------------------------------------
# Checkpoints and training


@pytest.mark.parametrize("case", [case for case in CASES if "kernels" in case.title], ids=str)
def test_a_checkpoint_of_either_kind_loads_into_the_other(case, tmp_path):
    data, masks = case.draw()
    saver = ocp.StandardCheckpointer()
    for source, target in ((NNX, Linen), (Linen, NNX)):
        trained = jax.tree.map(lambda value: value + 1, source.initial(case, seed=1))
        path = tmp_path / source.__name__
        saver.save(path, trained)
        saver.wait_until_finished()
        loaded = saver.restore(path, target.initial(case, seed=2))
        same_bits(loaded, trained)
        drops = deterministic(case)
        same_bits(target.call(case, loaded, data, masks, **drops), source.call(case, trained, data, masks, **drops))
    saver.close()


class Head(nnx.Module):
    """Pools and projects."""

    def __init__(self, rngs):
        self.pool = attnpool_flax.AttentionPool(8, qk_features=6, dropout_rate=0.25, rngs=rngs)
        self.project = nnx.Linear(8, 1, rngs=rngs)

    def __call__(self, x, mask):
        return self.project(self.pool(x, mask))[..., 0]


class LinenHead(nn.Module):
    """The same for Linen."""

    @nn.compact
    def __call__(self, x, mask, *, deterministic):
        pooled = linen.AttentionPool(qk_features=6, dropout_rate=0.25)(x, mask, deterministic=deterministic)
        return nn.Dense(1)(pooled)[..., 0]


def marked_tokens():
    """Sequences whose target stands in the one token that is marked, among louder ones that are not."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal((64, 9, 8)).astype(np.float32)
    mask = np.arange(9) < rng.integers(2, 10, (64, 1))
    marked = rng.integers(0, mask.sum(-1))
    x[..., 0] = 0
    x[np.arange(64), marked, 0] = 3
    return x, mask, x[np.arange(64), marked, 1]


def test_an_nnx_model_learns_which_token_counts():
    x, mask, target = marked_tokens()
    model = Head(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.sgd(2.0**-4), wrt=nnx.Param)

    def loss(model):
        return jnp.mean((model(x, mask) - target) ** 2)

    @nnx.jit
    def step(model, optimizer):
        optimizer.update(model, nnx.grad(loss)(model))

    model.eval()
    before = loss(model)
    model.train()
    for _ in range(100):
        step(model, optimizer)
    model.eval()
    assert loss(model) < before / 2


def test_a_linen_model_learns_which_token_counts():
    x, mask, target = marked_tokens()
    model, optimizer = LinenHead(), optax.sgd(2.0**-4)
    variables = model.init(jax.random.key(0), x, mask, deterministic=True)

    def loss(variables, **how):
        return jnp.mean((model.apply(variables, x, mask, **how) - target) ** 2)

    @jax.jit
    def step(variables, state, key):
        gradient = jax.grad(loss)(variables, deterministic=False, rngs={"dropout": key})
        updates, state = optimizer.update(gradient, state)
        return optax.apply_updates(variables, updates), state

    before, state = loss(variables, deterministic=True), optimizer.init(variables)
    for key in jax.random.split(jax.random.key(1), 100):
        variables, state = step(variables, state, key)
    assert loss(variables, deterministic=True) < before / 2


# --------------------------------------------------------------------------------------------------------------
# Dropout


def with_dropout(case, kind, rate, seed, **more):
    """Output with dropout drawn from a seed."""
    rngs = {"rngs": nnx.Rngs(seed) if kind is NNX else {"dropout": jax.random.key(seed)}}
    data, masks = case.draw()
    how = {"deterministic": False} | rngs | more
    return kind.call(case, case.parameters(), data, masks, {"dropout_rate": rate}, **how)


@dropping
@both_kinds
def test_dropout_draws_anew_from_another_key_and_alike_from_the_same(case, kind):
    first, again, other = (with_dropout(case, kind, 0.5, seed) for seed in (3, 3, 4))
    same_bits(first, again)
    assert np.any(np.asarray(first) != np.asarray(other))


@dropping
@both_kinds
def test_dropout_is_off_when_deterministic_or_of_rate_zero(case, kind):
    data, masks = case.draw()
    expected = case.expected(data, masks, case.parameters())
    same_bits(with_dropout(case, kind, 0.5, 3, deterministic=True), expected)
    same_bits(with_dropout(case, kind, 0.0, 3), expected)


@dropping
@both_kinds
def test_the_weights_returned_are_those_before_dropout(case, kind):
    data, masks = case.draw()
    _, weights = with_dropout(case, kind, 0.5, 3, return_weights=True)
    same_bits(weights, case.expected(data, masks, case.parameters(), return_weights=True)[1])


@dropping
@both_kinds
def test_dropping_everything_leaves_what_an_empty_row_leaves(case, kind):
    output = np.asarray(with_dropout(case, kind, 1.0, 3))
    bias = case.parameters().get("out_bias", np.zeros(output.shape[-1], np.float32))
    same_bits(output, np.broadcast_to(bias, output.shape))


@both_kinds
def test_a_weight_is_dropped_or_scaled_up_so_that_its_mean_stays(kind):
    """One-hot tokens under equal weights show the multiplier itself."""
    slots, batch, rate = 64, 128, 0.25
    case = Case("one-hot", "AttentionPool", {"in_features": slots}, {"x": (batch, slots, slots)}, {"query": (slots,)})
    data = {"x": np.broadcast_to(np.eye(slots, dtype=np.float32), (batch, slots, slots))}
    rngs = nnx.Rngs(0) if kind is NNX else {"dropout": jax.random.key(0)}
    query = {"query": np.zeros(slots, np.float32)}
    pooled = kind.call(case, query, data, {}, {"dropout_rate": rate}, deterministic=False, rngs=rngs)
    multiplier = slots * np.asarray(pooled)
    np.testing.assert_array_equal(np.unique(multiplier), [0, np.float32(1) / np.float32(1 - rate)])
    standard_error = math.sqrt(rate / (1 - rate) / multiplier.size)
    assert abs(np.mean(multiplier, dtype=np.float64) - 1) < 5 * standard_error


@dropping
def test_train_and_eval_switch_the_dropout_of_nnx(case):
    data, _ = case.draw()
    module = NNX.build(case, dropout_rate=0.5)
    nnx.update(module, case.parameters())
    module.eval()
    same_bits(module(*data.values()), module(*data.values(), deterministic=True))
    module.train()
    first, second = (np.asarray(module(*data.values())) for _ in range(2))
    assert np.any(first != second)


@dropping
def test_a_stream_of_its_own_leaves_the_callers_alone(case):
    rngs = nnx.Rngs(params=0, dropout=1)
    module = NNX.build(case, rngs, dropout_rate=0.5)
    count = int(rngs.dropout.count[...])
    module(*case.draw()[0].values())
    assert int(rngs.dropout.count[...]) == count


@dropping
def test_linen_initialises_without_a_key_for_dropout_and_asks_for_it_later(case):
    data, _ = case.draw()
    module = Linen.build(case, dropout_rate=0.5)
    variables = module.init(jax.random.key(0), *data.values())
    assert set(variables["params"]) == set(case.owns)
    with pytest.raises(ValueError, match='"deterministic" must be passed'):
        module.apply(variables, *data.values())


@dropping
@both_kinds
@pytest.mark.parametrize("rate", [-0.5, 1.5])
def test_a_rate_that_is_no_probability_is_refused(case, kind, rate):
    with pytest.raises(ValueError, match=f"{case.module}: `dropout_rate` is {rate}, needs a number from 0 to 1"):
        with_dropout(case, kind, rate, 3)


def test_the_multiplier_has_a_number_for_each_weight_where_keys_are_shared():
    data = {"query": np.zeros((3, 2, 4)), "key": np.zeros((5, 6)), "value": np.zeros((5, 7))}
    assert multiplier_shape("AdditiveAttention", data, {}) == (3, 2, 5)
    assert multiplier_shape("MultiHeadAttention", data, {"num_heads": 8}) == (3, 8, 2, 5)
    assert multiplier_shape("AttentionPool", {"x": np.zeros((5, 4))}, {}) == (5,)


# --------------------------------------------------------------------------------------------------------------
# Dtypes


@thorough_case
@both_kinds
def test_dtype_is_what_data_and_parameters_are_cast_to(case, kind):
    data, masks = case.draw()
    parameters = case.parameters()
    got = kind.call(case, parameters, data, masks, {"dtype": jnp.bfloat16})
    narrow = jax.tree.map(lambda value: jnp.asarray(value, jnp.bfloat16), (data, parameters))
    same_bits(got, case.expected(narrow[0], masks, narrow[1]))
    assert {part.dtype for part in jax.tree.leaves(got)} == {jnp.dtype(jnp.bfloat16)}


@every_case
@both_kinds
def test_without_a_dtype_data_and_parameters_decide(case, kind):
    data, masks = case.draw(jnp.bfloat16)
    got = jax.eval_shape(lambda: kind.call(case, case.parameters(), data, masks, **deterministic(case)))
    wide = np.float32 if case.owns else jnp.bfloat16  # a number decides nothing, but every module has a vector too
    assert {part.dtype for part in jax.tree.leaves(got)} == {jnp.dtype(wide)}


@owning
@both_kinds
def test_param_dtype_is_the_dtype_of_the_parameters_alone(case, kind):
    data, masks = case.draw()
    options = {"param_dtype": jnp.bfloat16}

    def create_and_call():
        initial = kind.initial(case, **options)
        return initial, kind.call(case, initial, data, masks, options, **deterministic(case))

    initial, got = jax.eval_shape(create_and_call)
    assert {value.dtype for value in initial.values()} == {jnp.dtype(jnp.bfloat16)}
    assert {part.dtype for part in jax.tree.leaves(got)} == {jnp.dtype(np.float32)}


@thorough_case
@both_kinds
def test_integers_are_data_too(case, kind):
    data, masks = case.draw()
    whole = {key: np.round(2 * value).astype(np.int32) for key, value in data.items()}
    floats = {key: value.astype(np.float32) for key, value in whole.items()}
    same_bits(
        kind.call(case, case.parameters(), whole, masks, {"dtype": jnp.float32}),
        kind.call(case, case.parameters(), floats, masks),
    )


# --------------------------------------------------------------------------------------------------------------
# Initialisers


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
    drawn = [p for p in OWNERS[case.module].parameters if p.name in case.fans]
    assert {p.name for p in drawn} == set(case.fans)
    for parameter in drawn:
        value = np.asarray(initial[parameter.name])
        fan = case.fans[parameter.name]
        assert (fan, value.size // fan) in seen
        axes = [axis for axis in parameter.axes if axis[-1] != "?" or value.ndim == len(parameter.axes)]
        out = [i for i, axis in enumerate(axes) if axis not in parameter.over]
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
                        same_bits(value, jnp.full_like(value, 0 if key.endswith("bias") else 1))


@thorough_case
@both_kinds
def test_initialisers_are_the_callers_choice(case, kind):
    takes = constructor(getattr(attnpool_flax, case.module))
    chosen = {"kernel": 2.0, "query": 3.0, "bias": 5.0}
    given = {f"{k}_init": functools.partial(filled, v) for k, v in chosen.items() if f"{k}_init" in takes}
    initial = kind.initial(case, **given)
    for parameter in OWNERS[case.module].parameters:
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
        assert pool.query_kernel.out_sharding == ("rows", "columns")
        assert pool.query.out_sharding == ("rows",)
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


# --------------------------------------------------------------------------------------------------------------
# Flax's own tools and layers


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
    ours = attnpool_flax.MultiHeadAttention(2, 4, 6, qkv_features=6, out_features=9, rngs=nnx.Rngs(0))
    nnx.update(ours, parameters)
    assert_near(ours(*data.values(), mask=mask), expected, allowed(case, data, {"mask": mask}, parameters))


@every_case
def test_splitting_and_merging_an_nnx_module_keeps_it(case):
    data, masks = case.draw()
    module = NNX.build(case)
    graph, state = nnx.split(module)
    same_bits(nnx.merge(graph, state)(*data.values(), **masks), module(*data.values(), **masks))
    assert nnx.split(NNX.build(case))[0] == graph


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
        assert re.search(rf"\b{key} ?= ?{re.escape(repr(value))}", text)


def test_a_subclass_owns_what_its_parent_owns():
    class Mine(attnpool_flax.AttentionPool):
        pass

    class MineToo(linen.AttentionPool):
        pass

    assert set(nnx.to_pure_dict(nnx.state(Mine(4, rngs=nnx.Rngs(0))))) == {"query"}
    assert set(MineToo().init(jax.random.key(0), jnp.ones((5, 4)))["params"]) == {"query"}


def test_cross_attention_pool_needs_no_rngs():
    assert jax.tree.leaves(nnx.state(attnpool_flax.CrossAttentionPool())) == []


# --------------------------------------------------------------------------------------------------------------
# Errors


def nnx_of(name, **sizes):
    return lambda: getattr(attnpool_flax, name)(**sizes, rngs=nnx.Rngs(0))


def linen_of(name, *data, **sizes):
    return lambda: getattr(linen, name)(**sizes).init(jax.random.key(0), *data)


TOKENS = np.ones((5, 4), np.float32)

REFUSED = [
    (nnx_of("AttentionPool"), TypeError, "missing 1 required positional argument: 'in_features'"),
    (
        nnx_of("AttentionPool", in_features=None),
        ValueError,
        "AttentionPool: `query` [d] needs `in_features`, which is None",
    ),
    (
        nnx_of("AttentionPool", in_features=0),
        ValueError,
        "AttentionPool: `in_features` is 0, needs an integer of at least 1",
    ),
    (nnx_of("AttentionPool", in_features=4.0), ValueError, "`in_features` is 4.0, needs an integer of at least 1"),
    (nnx_of("AttentionPool", in_features=4, qk_features=True), ValueError, "`qk_features` is True, needs an integer"),
    (
        nnx_of("WeightedPool", num_slots=-1),
        ValueError,
        "WeightedPool: `num_slots` is -1, needs an integer of at least 0",
    ),
    (
        nnx_of("CrossAttentionPool", x_features=4),
        ValueError,
        "CrossAttentionPool: `x_kernel` [d, c] needs `qk_features`, which is None",
    ),
    (
        nnx_of("CrossAttentionPool", qk_features=4),
        ValueError,
        "CrossAttentionPool: `qk_features` needs `x_features`, `y_features` or both",
    ),
    (
        lambda: attnpool_flax.CrossAttentionPool(x_features=4, qk_features=3),
        ValueError,
        "CrossAttentionPool: `x_kernel` needs `rngs`",
    ),
    (
        linen_of("CrossAttentionPool", TOKENS, TOKENS, y_features=4),
        ValueError,
        "CrossAttentionPool: `y_kernel` [e, c] needs `qk_features`, which is None",
    ),
    (
        nnx_of("MultiHeadAttention", num_heads=3, query_features=4),
        ValueError,
        "MultiHeadAttention: `qkv_features` is 4, needs a multiple of `num_heads`, 3",
    ),
    (nnx_of("MultiHeadAttentionPool", num_heads=0, in_features=4), ValueError, "`num_heads` is 0, needs an integer"),
    (
        linen_of("MultiHeadAttention", TOKENS, TOKENS, TOKENS, num_heads=2, qkv_features=5),
        ValueError,
        "MultiHeadAttention: `qkv_features` is 5, needs a multiple of `num_heads`, 2",
    ),
    (nnx_of("FieldAttentionPool", target_features=4, field_features=0), ValueError, "`field_features` is 0, needs"),
    (linen_of("LocationScore", TOKENS, TOKENS, num_slots=None), ValueError, "needs `num_slots`, which is None"),
    (
        linen_of("FieldAttentionPool", TOKENS[0], TOKENS, num_fields=3),
        ValueError,
        "field_attention_pooling: `kernel` has shape (3, 8)",
    ),
    (linen_of("AttentionPool", None), TypeError, "attention_pooling: `x` is None, needs an array"),
    (linen_of("AttentionPool", TOKENS[0]), ValueError, "attention_pooling: `x` has shape (4,), needs [..., L, d]"),
    (
        linen_of("AttentionPool", TOKENS, qk_features=0),
        ValueError,
        "`qk_features` is 0, needs an integer of at least 1",
    ),
    (
        lambda: attnpool_flax.AttentionPool(3, rngs=nnx.Rngs(0))(TOKENS),
        ValueError,
        "attention_pooling: `query` has shape (3,)",
    ),
    (
        lambda: attnpool_flax.CrossAttentionPool()(TOKENS, TOKENS, TOKENS[:, 0]),
        ValueError,
        "cross_attention_pooling: `x_mask` has dtype float32",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED, ids=[message for _, _, message in REFUSED])
def test_what_does_not_fit_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()
