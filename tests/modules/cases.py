"""The ways to build and call a module, in NNX and in Linen, and what the tests of modules share."""

import inspect
import zlib
from dataclasses import dataclass, field

import chex
import head_formulas
import jax
import numpy as np
import pytest
from flax import nnx
from marks import one_in, one_of_each

import attnpool_flax
import attnpool_ref
from attnpool_flax import linen
from attnpool_flax.modules.specs import SPECS
from attnpool_ref import table
from attnpool_ref.conformance.checks import tolerances


@dataclass(frozen=True)
class Case:
    """One way to build a module and to call it.

    Attributes:
      module: its name.
      sizes: the sizes that NNX is given.
      data: the shapes of the arrays, in the order of the call; a batch has three examples.
      shapes: the shape of each parameter.
      fan: the fan-in of its kernel, if that is not what :func:`fan_in` says.
      options: what the constructors and the function are given alike.
      switches: what the constructors alone are given.
      sizes_of_linen: the sizes that Linen is given, if not all that it takes.
      masks: the shapes of the masks.
      padding: for each array the mask that says which of its tokens are real, and the axis over which a token is
        seen if any row of the mask sees it.
      zeros: the shapes of the arguments that are zeros instead of parameters.
      statistics: the shapes of statistics of batches, which no optimiser moves.
      maps: whether the result passes an affine map, so that an empty row need not be 0.
      title: what is special about it.
    """

    module: str
    sizes: dict
    data: dict
    shapes: dict
    fan: int | None = None
    options: dict = field(default_factory=dict)
    switches: dict = field(default_factory=dict)
    sizes_of_linen: dict | None = None
    masks: dict = field(default_factory=dict)
    padding: dict = field(default_factory=dict)
    zeros: dict = field(default_factory=dict)
    statistics: dict = field(default_factory=dict)
    maps: bool = False
    title: str = ""

    def __str__(self):
        return f"{self.module}-{self.title}" if self.title else self.module

    @property
    def function(self):
        return function_of(self.module)

    @property
    def definition(self):
        """What the oracle says: its function, or for a head the recipe over its functions."""
        if self.row.family != "heads":
            return getattr(attnpool_ref, self.row.name)
        recipe = getattr(head_formulas, self.row.name)

        def definition(return_weights=False, **arguments):
            both = recipe(attnpool_ref, **arguments)
            return both if return_weights else both[0]

        return definition

    @property
    def row(self):
        return table.get(SPECS[self.module].function)

    @property
    def fans(self):
        """The fan-in of each parameter that is drawn."""
        drawn = {key: shape for key, shape in self.shapes.items() if key in VECTORS or key.endswith("kernel")}
        return {key: self.fan or fan_in(key, shape) for key, shape in drawn.items()}

    @property
    def linen_sizes(self):
        """The sizes that Linen is given: those that it does not read from the data."""
        taken = constructor(getattr(linen, self.module))
        return self.sizes_of_linen or {key: size for key, size in self.sizes.items() if key in taken}

    @property
    def drops(self):
        return any(key.endswith("dropout_multiplier") for key in inspect.signature(self.function).parameters)

    @property
    def multiplies(self):
        return "precision" in inspect.signature(self.function).parameters

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
        shapes = self.shapes | self.statistics
        return {key: 1 + rng.standard_normal(shape).astype(dtype) / 4 for key, shape in shapes.items()}

    def arguments(self, data):
        """The data in the order of the call, which JAX's transformations of a dict do not keep."""
        return [data[key] for key in self.data]

    def expected(self, data, masks, parameters, **more):
        dtype = next(iter(data.values())).dtype
        zeros = {key: np.zeros(shape, dtype) for key, shape in self.zeros.items()}
        return self.function(**data, **masks, **parameters, **zeros, **self.options, **more)


VECTORS = ("query", "latents", "position", "class_token", "centers")
"""Parameters that are vectors of features, and no maps."""


def fan_in(key, shape):
    """The number of features that a parameter of this shape sums over."""
    if key in VECTORS:
        return shape[-1]
    return shape[0] * shape[1] if key == "out_kernel" and len(shape) == 3 else shape[0]


def function_of(module):
    """The function that a module calls, in the namespace of its file: that of a head is in no other."""
    return getattr(inspect.getmodule(getattr(attnpool_flax, module)), SPECS[module].function)


X, Y = {"x": (3, 5, 4)}, {"y": (3, 7, 6)}
PAIR = {"query": (3, 2, 4), "key": (3, 5, 6)}
ATTENDED = PAIR | {"value": (3, 5, 7)}
SLOTS = {"query": (3, 2, 4), "state": (3, 2, 6), "value": (3, 5, 7)}
ON_X = {"data": X, "masks": {"mask": (3, 5)}, "padding": {"x": ("mask", None)}}
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
LOCATION = {"query_features": 4, "state_features": 6, "value_features": 7, "num_slots": 5, "out_features": 9}
HEADS = {"num_heads": 2, "qkv_features": 6, "out_features": 9}
HEAD_BIASES = {"query_bias": (2, 3), "key_bias": (2, 3), "value_bias": (2, 3), "out_bias": (9,)}

OF_QUERY = {"query": (1, 4)}
INNER = {"query_kernel": (4, 2, 3), "key_kernel": (4, 2, 3), "value_kernel": (4, 2, 3)}
NARROW = {"query_kernel": (4, 2, 2), "key_kernel": (4, 2, 2), "value_kernel": (4, 2, 2)}
NARROW_BIASES = {"query_bias": (2, 2), "key_bias": (2, 2), "value_bias": (2, 2)}
OUT, OUT_BIAS = {"out_kernel": (2, 2, 4)}, {"out_bias": (4,)}
NORM, MLP_NORM = {"norm_scale": (4,), "norm_bias": (4,)}, {"mlp_norm_scale": (4,), "mlp_norm_bias": (4,)}
MLP = {"mlp_kernel": (4, 8), "mlp_bias": (8,), "mlp_out_kernel": (8, 4), "mlp_out_bias": (4,)}

CASES = [
    Case("BilinearScore", sizes={"query_features": 4, "key_features": 6}, data=PAIR, shapes={"kernel": (4, 6)}),
    Case("AdditiveScore", sizes=HIDDEN, data=PAIR, shapes=ADDITIVE),
    Case("AdditiveScore", title="with a bias", sizes=HIDDEN, data=PAIR, shapes=ADDITIVE | {"bias": (8,)}, **WITH_BIAS),
    Case(
        "ConcatScore",
        title="with a bias",
        sizes=HIDDEN,
        data=PAIR,
        shapes={"kernel": (10, 8), "out_kernel": (8,), "bias": (8,)},
        **WITH_BIAS,
    ),
    Case("TanhSumScore", sizes=HIDDEN, data=PAIR, shapes={"kernel": (10, 8), "bias": (8,)}),
    Case(
        "LocationScore",
        sizes={"query_features": 4, "state_features": 6, "num_slots": 5},
        data={"query": (3, 2, 4), "state": (3, 2, 6)},
        shapes={"kernel": (10, 5), "bias": (5,)},
    ),
    Case(
        "TrilinearScore",
        sizes={"in_features": 4},
        data={"query": (3, 2, 4), "key": (3, 5, 4)},
        shapes={"kernel": (12,)},
    ),
    Case("AdditiveAttention", sizes=HIDDEN, data=ATTENDED, shapes=ADDITIVE, **OVER_PAIRS),
    Case("TanhSumAttention", sizes=HIDDEN, data=ATTENDED, shapes={"kernel": (10, 8), "bias": (8,)}, **OVER_PAIRS),
    Case(
        "TanhSumAttention",
        title="without a bias",
        sizes=HIDDEN,
        data=ATTENDED,
        shapes={"kernel": (10, 8)},
        **OVER_PAIRS,
        **WITHOUT_BIAS,
    ),
    Case(
        "LocationAttention",
        sizes=LOCATION,
        data=SLOTS,
        shapes={"kernel": (10, 5), "bias": (5,), "out_kernel": (11, 9), "out_bias": (9,)},
        maps=True,
        **OVER_SLOTS,
    ),
    Case(
        "LocationAttention",
        title="without biases",
        sizes=LOCATION,
        data=SLOTS,
        shapes={"kernel": (10, 5), "out_kernel": (11, 9)},
        zeros={"bias": (5,), "out_bias": (9,)},
        maps=True,
        **OVER_SLOTS,
        **WITHOUT_BIAS,
    ),
    Case(
        "MultiHeadAttention",
        sizes={"query_features": 4, "key_features": 6, "value_features": 7} | HEADS,
        data=ATTENDED,
        shapes={"query_kernel": (4, 2, 3), "key_kernel": (6, 2, 3), "value_kernel": (7, 2, 3), "out_kernel": (2, 3, 9)}
        | HEAD_BIASES,
        maps=True,
        **OVER_PAIRS,
    ),
    Case(
        "MultiHeadAttention",
        title="of one width, without biases",
        sizes={"num_heads": 2, "query_features": 4},
        data={"query": (3, 2, 4), "key": (3, 5, 4), "value": (3, 5, 4)},
        shapes=NARROW | OUT,
        **OVER_PAIRS,
        **WITHOUT_BIAS,
    ),
    Case("WeightedPool", sizes={"num_slots": 5}, shapes={"weights": (5,)}, **ON_X),
    Case("PowerMeanPool", sizes={}, shapes={"p": ()}, **ON_X),
    Case(
        "PowerMeanPool",
        title="of an exponent for each feature",
        sizes={"num_features": 4},
        shapes={"p": (4,)},
        options={"epsilon": 0.1},
        **ON_X,
    ),
    Case("LogSumExpPool", sizes={}, shapes={"scale": ()}, options={"mean": False}, **ON_X),
    Case("SoftmaxPool", sizes={"num_features": 4}, shapes={"scale": (4,)}, **ON_X),
    Case("AttentionPool", sizes={"in_features": 4}, shapes={"query": (4,)}, **ON_X),
    Case(
        "AttentionPool",
        title="a fixed sink",
        sizes={"in_features": 4},
        shapes={"query": (4,)},
        options={"sink": 0.5},
        **ON_X,
    ),
    Case(
        "AttentionPool",
        title="a learned sink",
        sizes={"in_features": 4},
        shapes={"query": (4,), "sink": ()},
        switches={"sink": "learned"},
        **ON_X,
    ),
    Case(
        "MultiHeadAttentionPool",
        title="a learned sink for each head",
        sizes={"num_heads": 2, "in_features": 4},
        shapes=OF_QUERY | NARROW | OUT | {"sink": (2,)},
        switches={"sink": "learned", "use_bias": False},
        **ON_X,
    ),
    Case(
        "MultiHeadAttention",
        title="a learned sink for each head",
        sizes={"num_heads": 2, "query_features": 4},
        data={"query": (3, 2, 4), "key": (3, 5, 4), "value": (3, 5, 4)},
        shapes=NARROW | OUT | {"sink": (2,)},
        switches={"sink": "learned", "use_bias": False},
        **OVER_PAIRS,
    ),
    Case(
        "AdditiveAttentionPool",
        title="a learned sink for each hop",
        sizes={"in_features": 4, "hidden_features": 6, "num_queries": 2},
        shapes={"kernel": (4, 6), "out_kernel": (6, 2), "sink": (2,)},
        switches={"sink": "learned", "use_bias": False},
        **ON_X,
    ),
    Case(
        "AttentionPool",
        title="kernels and norm",
        sizes={"in_features": 4, "qk_features": 6},
        options={"normalize_query": True, "epsilon": 0.25, "scale": 0.75, "normalizer": "sigmoid"},
        shapes={"query": (4,), "query_kernel": (4, 6), "key_kernel": (4, 6)}
        | {"query_norm_scale": (4,), "query_norm_bias": (4,)},
        **ON_X,
    ),
    Case(
        "MultiHeadAttentionPool",
        sizes={"in_features": 4, "num_queries": 8} | HEADS,
        shapes={"query": (8, 4)} | INNER | {"out_kernel": (2, 3, 9)} | HEAD_BIASES,
        maps=True,
        **ON_X,
    ),
    Case(
        "MultiHeadAttentionPool",
        title="of one width, without biases",
        sizes={"num_heads": 2, "in_features": 4},
        shapes=OF_QUERY | NARROW | OUT,
        **ON_X,
        **WITHOUT_BIAS,
    ),
    Case(
        "AttentiveStatisticsPool",
        sizes={"in_features": 4, "hidden_features": 8},
        shapes={"kernel": (4, 8), "out_kernel": (8, 4), "bias": (8,)},
        **ON_X,
    ),
    Case(
        "AttentiveStatisticsPool",
        title="a weight for each token",
        sizes={"in_features": 4, "hidden_features": 8},
        options={"activation": "relu", "epsilon": 0.25},
        switches={"per_channel": False},
        shapes={"kernel": (4, 8), "out_kernel": (8,), "bias": (8,)},
        **ON_X,
    ),
    Case(
        "AttentiveStatisticsPool",
        title="context and norm",
        sizes={"in_features": 4, "hidden_features": 8},
        options={"global_context": True, "context_ddof": 1},
        switches={"use_norm": True},
        shapes={"kernel": (12, 8), "out_kernel": (8, 4), "bias": (8,), "norm_scale": (8,), "norm_bias": (8,)},
        **ON_X,
    ),
    Case(
        "MultiHeadAttentionPool",
        title="sigmoid weights, some biases",
        sizes={"in_features": 4} | HEADS,
        options={"scale": 0.75, "normalizer": "sigmoid"},
        switches={"use_bias": ("key_bias", "value_bias")},
        shapes=OF_QUERY | INNER | {"out_kernel": (2, 3, 9), "key_bias": (2, 3), "value_bias": (2, 3)},
        **ON_X,
    ),
    Case(
        "MAPHead",
        sizes={"in_features": 4, "num_heads": 2, "hidden_features": 8},
        options={"activation": "gelu", "epsilon": 0.25},
        shapes=OF_QUERY | NARROW | NARROW_BIASES | OUT | OUT_BIAS | NORM | MLP,
        maps=True,
        **ON_X,
    ),
    Case(
        "AttentionalPooler",
        sizes={"in_features": 4, "num_heads": 2, "num_queries": 8, "query_features": 7, "qkv_features": 6}
        | {"out_features": 9},
        options={"epsilon": 0.25},
        shapes={"query": (8, 7)}
        | INNER
        | {"query_kernel": (7, 2, 3), "out_kernel": (2, 3, 9), "query_norm_scale": (7,), "query_norm_bias": (7,)}
        | HEAD_BIASES
        | NORM,
        maps=True,
        **ON_X,
    ),
    Case(
        "AttentionPool2d",
        sizes={"in_features": 4, "num_slots": 5} | HEADS,
        shapes={"position": (6, 4)} | INNER | {"out_kernel": (2, 3, 9)} | HEAD_BIASES,
        maps=True,
        **ON_X,
    ),
    Case(
        "AttentionPool2d",
        title="class token",
        sizes={"in_features": 4, "num_slots": 5} | HEADS,
        switches={"use_class_token": True},
        shapes={"position": (6, 4), "class_token": (4,)} | INNER | {"out_kernel": (2, 3, 9)} | HEAD_BIASES,
        maps=True,
        **ON_X,
    ),
    Case(
        "PMA",
        sizes={"in_features": 4, "num_heads": 2, "num_queries": 8},
        options={"variant": "author"},
        switches={"normalize": True},
        shapes={"query": (8, 4)} | NARROW | NARROW_BIASES | NORM | MLP_NORM | {"mlp_kernel": (4, 4), "mlp_bias": (4,)},
        maps=True,
        **ON_X,
    ),
    Case(
        "PMA",
        title="of PyG",
        sizes={"in_features": 4, "num_heads": 2, "num_queries": 8},
        options={"variant": "pyg"},
        switches={"use_bias": False},
        shapes={"query": (8, 4), "input_kernel": (4, 4), "input_bias": (4,), "mlp_kernel": (4, 4), "mlp_bias": (4,)}
        | NARROW
        | OUT
        | NORM
        | MLP_NORM,
        maps=True,
        **ON_X,
    ),
    Case(
        "AttentiveProbe",
        sizes={"in_features": 4, "num_heads": 2, "num_queries": 7, "hidden_features": 8},
        options={"epsilon": 0.25},
        shapes={"query": (7, 4)} | NARROW | NARROW_BIASES | NORM | MLP_NORM | MLP,
        maps=True,
        **ON_X,
    ),
    Case(
        "AttentiveProbe",
        title="of AIM",
        sizes={"in_features": 4, "num_heads": 2, "num_queries": 7},
        options={"variant": "aim"},
        shapes={"query": (7, 2, 2), "key_kernel": (4, 2, 2), "value_kernel": (4, 2, 2)},
        statistics={"mean": (4,), "variance": (4,)},
        **ON_X,
    ),
    Case(
        "AdditiveAttentionPool",
        title="gated, of two hops",
        sizes={"in_features": 4, "hidden_features": 6, "num_queries": 2},
        shapes={"kernel": (4, 6), "bias": (6,), "gate_kernel": (4, 6), "gate_bias": (6,), "out_kernel": (6, 2)},
        options={"activation": "gelu"},
        switches={"gated": True},
        **ON_X,
    ),
    Case(
        "AdditiveAttentionPool",
        title="without a bias",
        sizes={"in_features": 4, "hidden_features": 6},
        shapes={"kernel": (4, 6), "out_kernel": (6,)},
        **ON_X,
        **WITHOUT_BIAS,
    ),
    Case(
        "LatentAttentionPool",
        sizes={"in_features": 4, "num_latents": 5, "num_heads": 2, "qkv_features": 6, "hidden_features": 3},
        shapes={"latents": (5, 4), "out_kernel": (2, 3, 4), "latent_norm_scale": (4,), "latent_norm_bias": (4,)}
        | {"mlp_kernel": (4, 6), "mlp_bias": (6,), "mlp_out_kernel": (3, 4), "mlp_out_bias": (4,)}
        | INNER
        | NORM
        | MLP_NORM,
        **ON_X,
    ),
    Case(
        "Set2SetPool",
        sizes={"in_features": 4},
        options={"num_steps": 2},
        shapes={"input_kernel": (8, 16), "recurrent_kernel": (4, 16), "bias": (16,)},
        **ON_X,
    ),
    Case(
        "VLADPool",
        sizes={"in_features": 4, "num_clusters": 6, "num_ghosts": 2},
        options={"normalize": False},
        shapes={"assign_kernel": (4, 8), "assign_bias": (8,), "centers": (6, 4)},
        **ON_X,
    ),
    Case(
        "GatedSumPool",
        sizes={"in_features": 4, "out_features": 6},
        shapes={"gate_kernel": (4, 6), "value_kernel": (4, 6), "gate_bias": (6,), "value_bias": (6,)},
        **ON_X,
    ),
    Case("CrossAttentionPool", sizes={}, data=X | {"y": (3, 7, 4)}, shapes={}, **OVER_BOTH),
    Case(
        "CrossAttentionPool",
        title="kernels",
        sizes={"x_features": 4, "y_features": 6, "qk_features": 2},
        sizes_of_linen={"qk_features": 2},
        data=X | Y,
        options={"reduction": "max", "scale": 0.25},
        shapes={"x_kernel": (4, 2), "y_kernel": (6, 2)},
        **OVER_BOTH,
    ),
    Case(
        "CrossAttentionPool",
        title="kernel of x",
        sizes={"x_features": 4, "qk_features": 6},
        data=X | Y,
        options={"reduction": "sum", "scale": 1.0},
        shapes={"x_kernel": (4, 6)},
        **OVER_BOTH,
    ),
    Case(
        "CrossAttentionPool",
        title="kernel of y",
        sizes={"y_features": 6, "qk_features": 4},
        data=X | Y,
        options={"reduction": "mean", "scale": None},
        shapes={"y_kernel": (6, 4)},
        **OVER_BOTH,
    ),
    Case(
        "CodeWiseAttention",
        sizes={},
        data={"query": (3, 6, 4), "context": (3, 5, 4)},
        shapes={},
        options={"scale": 0.25},
        **OVER_QUERY_AND_CONTEXT,
    ),
    Case(
        "MaskAttention",
        sizes={},
        data={"query": (3, 6, 4), "context": (3, 5, 4)},
        shapes={},
        options={"scale": 0.25},
        **OVER_QUERY_AND_CONTEXT,
    ),
    Case(
        "BiDAFAttention",
        sizes={"in_features": 4},
        data={"context": (3, 5, 4), "query": (3, 6, 4)},
        shapes={"kernel": (12,)},
        **OVER_QUERY_AND_CONTEXT,
    ),
    Case(
        "RelationVector",
        sizes={"in_features": 4, "hidden_features": 8},
        data={"x": (3, 4), "y": (3, 4)},
        shapes={"x_kernel": (4, 8), "y_kernel": (4, 8), "out_kernel": (8, 4), "bias": (8,)},
    ),
    Case(
        "RelationVector",
        title="of another width, without a bias",
        sizes={"in_features": 4, "hidden_features": 8, "out_features": 6},
        data={"x": (3, 4), "y": (3, 4)},
        shapes={"x_kernel": (4, 8), "y_kernel": (4, 8), "out_kernel": (8, 6)},
        zeros={"bias": (8,)},
        **WITHOUT_BIAS,
    ),
    Case(
        "FieldAttentionPool",
        sizes={"target_features": 4, "field_features": 6},
        data={"target": (3, 4), "fields": (3, 5, 6)},
        shapes={"kernel": (10,), "bias": ()},
        **OVER_FIELDS,
    ),
    Case(
        "FieldAttentionPool",
        title="of a kernel for each",
        sizes={"target_features": 4, "field_features": 6, "num_fields": 5},
        data={"target": (3, 4), "fields": (3, 5, 6)},
        shapes={"kernel": (5, 10), "bias": (5,)},
        fan=10,
        **OVER_FIELDS,
    ),
    Case(
        "FieldAttentionPool",
        title="without a target, without a bias",
        sizes={"target_features": 0, "field_features": 6},
        data={"target": (3, 0), "fields": (3, 5, 6)},
        shapes={"kernel": (6,)},
        zeros={"bias": ()},
        **OVER_FIELDS,
        **WITHOUT_BIAS,
    ),
    Case(
        "LabelAttention",
        sizes={"in_features": 4},
        data={"labels": (3, 5, 4)},
        shapes={"query_kernel": (4, 4), "key_kernel": (4, 4), "value_kernel": (4, 4)},
        masks={"mask": (3, 5)},
        padding={"labels": ("mask", None)},
    ),
    Case(
        "LabelAttention",
        title="of other widths",
        sizes={"in_features": 4, "qk_features": 6, "out_features": 7},
        data={"labels": (3, 5, 4)},
        shapes={"query_kernel": (4, 6), "key_kernel": (4, 6), "value_kernel": (4, 7)},
        masks={"mask": (3, 5)},
        padding={"labels": ("mask", None)},
    ),
]

THOROUGH = (
    "LocationAttention-without biases",
    "MultiHeadAttention",
    "WeightedPool",
    "AttentionPool-kernels and norm",
    "AttentiveStatisticsPool-context and norm",
    "AttentionPool2d",
    "AttentiveProbe-of AIM",
    "CrossAttentionPool-kernels",
    "FieldAttentionPool-of a kernel for each",
)
"""A case for each way in which modules differ: what is compiled anew is compiled for these."""

every_case = pytest.mark.parametrize("case", CASES, ids=str)
thorough_case = pytest.mark.parametrize("case", [case for case in CASES if str(case) in THOROUGH], ids=str)
some_thorough = pytest.mark.parametrize("case", one_in(3, [case for case in CASES if str(case) in THOROUGH]), ids=str)
some_cases = pytest.mark.parametrize("case", one_of_each(lambda case: case.row.family, CASES), ids=str)
masked = pytest.mark.parametrize("case", one_in(10, [case for case in CASES if case.masks]), ids=str)
weighted = pytest.mark.parametrize("case", one_in(8, [case for case in CASES if case.row.weights]), ids=str)
some_with_parameters = pytest.mark.parametrize(
    "case", one_of_each(lambda case: case.row.family, [case for case in CASES if case.shapes]), ids=str
)
multiplying = pytest.mark.parametrize("case", one_in(3, [case for case in CASES if case.multiplies]), ids=str)
dropping = pytest.mark.parametrize("case", [case for case in CASES if case.drops], ids=str)
some_dropping = pytest.mark.parametrize("case", one_in(8, [case for case in CASES if case.drops]), ids=str)


def constructor(module):
    """What a module's constructor takes; NNX's metaclass hides it from ``inspect.signature`` of the class."""
    parameters = inspect.signature(module.__init__).parameters
    return {key: value for key, value in parameters.items() if key not in ("self", "parent", "name")}


def ways_of(parameter):
    """A parameter of a spec with each of the axes that it may have."""
    if parameter.instead is None:
        return [parameter]
    return [parameter.resolved({parameter.instead[0]: flag}) for flag in (False, True)]


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
        statistics = {key: value for key, value in parameters.items() if key in case.statistics}
        variables = {"params": {key: value for key, value in parameters.items() if key not in statistics}}
        variables |= {"batch_stats": statistics} if statistics else {}
        return cls.build(case, **dict(options)).apply(variables, *case.arguments(data), **masks, **more)


both_kinds = pytest.mark.parametrize("kind", [NNX, Linen], ids=["nnx", "linen"])


def deterministic(case):
    """What a call must say where dropout is possible; at rate 0 it changes nothing."""
    return {"deterministic": True} if case.drops else {}


def same_bits(got, expected):
    chex.assert_trees_all_equal_shapes_and_dtypes(got, expected)
    jax.tree.map(np.testing.assert_array_equal, got, expected)


def allowed(case, data, masks, parameters, **more):
    """How far two roundings of a case's outputs may be apart: one list entry for each output."""

    def definition(arrays):
        zeros = {key: np.zeros(shape) for key, shape in case.zeros.items()}
        result = case.definition(**arrays, **masks, **zeros, **case.options, **more)
        return [np.asarray(part) for part in jax.tree.leaves(result)]

    arrays = {key: np.asarray(value, np.float64) for key, value in (data | parameters).items()}
    terms = 8 + sum(sum(value.shape) for value in arrays.values())
    sensitive = tolerances.sensitivity(definition, arrays, case.rng())
    return [
        2 * tolerances.allowed_error(np.max(np.abs(exact)), np.max(moved), terms, "float32")
        for exact, moved in zip(definition(arrays), sensitive, strict=True)
    ]


def assert_near(got, expected, errors):
    for a, b, error in zip(jax.tree.leaves(got), jax.tree.leaves(expected), errors, strict=True):
        chex.assert_equal_shape([a, b])
        np.testing.assert_allclose(a, b, rtol=0, atol=error)
