"""Specs of the modules: the parameters of each, in one table, from which both NNX and Linen modules create them.

Shapes are written in the symbols of the function's row (:mod:`attnpool_ref.table`). An NNX module and the Linen module
of the same name have the same parameters; Linen has batch statistics in a collection of their own.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from flax import nnx
from flax.typing import Initializer

from attnpool_ref import contract

FIXED = {"ones": nnx.initializers.ones, "zeros": nnx.initializers.zeros}
"""Initializers by their names in specs; no argument of a constructor replaces them."""

UNDRAWN = (*FIXED, "start")
"""Initializers without a random key. "start": the constructor's argument with the parameter's name is the value."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a module.

    Attributes:
      name: the parameter's name, an argument of the function.
      axes: the shape in the symbols of the function's row; an axis with ``?`` exists only if its size is given.
      init: "kernel", "bias", "query", "latents" or "centers", which an argument of the constructor replaces; one of
        :data:`UNDRAWN`; or an initializer.
      over: the axes that are contracted with data: the initializer's fan-in. All other axes are the fan-out, which is 1
        for a vector. Empty if the initializer is called with the shape unchanged.
      when: the constructor arguments, or names in ``Spec.defaults``, without which the module has no such parameter;
        ``variant=pyg`` requires a value.
      instead: (a constructor argument, the axes of the parameter if that argument is true), or None.
      frozen: whether the parameter is a batch statistic, which no optimizer changes.
    """

    name: str
    axes: tuple[str, ...]
    init: str | Initializer
    over: tuple[str, ...] = ()
    when: tuple[str, ...] = ()
    instead: tuple[str, tuple[str, ...]] | None = None
    frozen: bool = False

    def resolved(self, given: Mapping[str, Any]):
        """Returns the parameter with the axes that it has for these arguments of the constructor."""
        if self.instead is None or not given[self.instead[0]]:
            return self
        return replace(self, axes=self.instead[1], over=self.instead[1][:1], instead=None)

    def contracted(self, axes):
        """Returns the positions of the axes that are contracted with data."""
        return [axes.index(axis) for axis in self.over]


@dataclass(frozen=True)
class Spec:
    """Function and parameters of one module.

    Attributes:
      function: the function that takes the parameters as arguments.
      sizes: for each symbol in ``axes``, the constructor argument or the derived value that has its size.
      parameters: in the order in which they are created.
      defaults: for each constructor argument whose None is replaced, the argument whose value replaces it, or a
        function of all arguments; they are applied in order. Other names are derived values, which the module does not
        store. With ``num_heads`` there is also ``head_features``, the width of a head: ``qkv_features`` (or
        ``in_features``) divided by ``num_heads``.
    """

    function: str
    sizes: Mapping[str, str]
    parameters: tuple[Parameter, ...]
    defaults: Mapping[str, str | Callable[[Mapping[str, Any]], Any]] = field(default_factory=dict)


def _kernel(name, *axes, over=None, when=()):
    """Returns the parameter of a kernel. Its first axis is contracted with data, or the axes in ``over``."""
    return Parameter(name, axes, "kernel", over or axes[:1], _names(when))


def _bias(name, *axes, when=()):
    return Parameter(name, axes, "bias", when=("use_bias", *_names(when)))


def _norm(name, axis, when=()):
    """Returns the parameters ``NAME_scale`` and ``NAME_bias`` of a layer normalization."""
    when = _names(when)
    return Parameter(f"{name}_scale", (axis,), "ones", when=when), Parameter(
        f"{name}_bias", (axis,), "zeros", when=when
    )


def _names(when):
    return (when,) if isinstance(when, str) else tuple(when)


_HIDDEN = {"d": "query_features", "e": "key_features", "h": "hidden_features"}
_ADDITIVE = (
    _kernel("query_kernel", "d", "h"),
    _kernel("key_kernel", "e", "h"),
    _kernel("out_kernel", "h"),
    _bias("bias", "h"),
)
_TANH_SUM = (_kernel("kernel", "d+e", "h"), _bias("bias", "h"))
_HEADS = {"H": "num_heads", "c": "head_features", "c'": "head_features", "o": "out_features"}


def _multi_head(query, key, value, out="o"):
    """Returns the kernels and biases of heads over inputs whose widths are these symbols, with an output projection."""
    query_kernel, *kernels, query_bias, key_bias, value_bias = _inner_heads(query, key, value)
    out_kernel, out_bias = _out_map(out)
    return query_kernel, *kernels, out_kernel, query_bias, key_bias, value_bias, out_bias


def _inner_heads(query, key, value, when=()):
    """Returns the kernels and biases of heads without an output projection.

    ``when`` is the condition for the query kernel and the biases.
    """
    return (
        _kernel("query_kernel", query, "H", "c", when=when),
        _kernel("key_kernel", key, "H", "c"),
        _kernel("value_kernel", value, "H", "c'"),
        _bias("query_bias", "H", "c", when=when),
        _bias("key_bias", "H", "c", when=when),
        _bias("value_bias", "H", "c'", when=when),
    )


def _out_map(out, when=()):
    return _kernel("out_kernel", "H", "c'", out, over=("H", "c'"), when=when), _bias("out_bias", out, when=when)


def _perceptron(hidden, out=True, when=()):
    """Returns the kernels and biases of a hidden layer and, unless ``out`` is False, of an output layer."""
    first = _kernel("mlp_kernel", "d", hidden, when=when), Parameter("mlp_bias", (hidden,), "bias", when=_names(when))
    if not out:
        return first
    last = Parameter("mlp_out_bias", ("d",), "bias", when=_names(when))
    return *first, _kernel("mlp_out_kernel", hidden, "d", when=when), last


def _sink(*axes):
    return Parameter("sink", axes, "zeros", when=("sink=learned",))


_QUERY = Parameter("query", ("n", "d"), "query", over=("d",))
_OF_HEAD = {"d": "in_features", "n": "num_queries", "H": "num_heads", "c": "head_features", "c'": "head_features"}

SPECS = {
    "BilinearScore": Spec(
        "bilinear_score",
        {"d": "query_features", "e": "key_features"},
        (_kernel("kernel", "d", "e"),),
    ),
    "AdditiveScore": Spec("additive_score", _HIDDEN, _ADDITIVE),
    "ConcatScore": Spec(
        "concat_score",
        _HIDDEN,
        (_kernel("kernel", "d+e", "h"), _kernel("out_kernel", "h"), _bias("bias", "h")),
    ),
    "TanhSumScore": Spec("tanh_sum_score", _HIDDEN, _TANH_SUM),
    "LocationScore": Spec(
        "location_score",
        {"d": "query_features", "e": "state_features", "m": "num_slots"},
        (_kernel("kernel", "d+e", "m"), _bias("bias", "m")),
    ),
    "TrilinearScore": Spec("trilinear_score", {"d": "in_features"}, (_kernel("kernel", "3d"),)),
    "AdditiveAttention": Spec("additive_attention", _HIDDEN, _ADDITIVE),
    "TanhSumAttention": Spec("tanh_sum_attention", _HIDDEN, _TANH_SUM),
    "LocationAttention": Spec(
        "location_attention",
        {
            "d": "query_features",
            "e": "state_features",
            "v": "value_features",
            "m": "num_slots",
            "o": "out_features",
        },
        (
            _kernel("kernel", "d+e", "m"),
            _bias("bias", "m"),
            _kernel("out_kernel", "d+v", "o"),
            _bias("out_bias", "o"),
        ),
    ),
    "MultiHeadAttention": Spec(
        "multi_head_attention",
        {"d": "query_features", "e": "key_features", "v": "value_features"} | _HEADS,
        (*_multi_head("d", "e", "v"), _sink("H")),
        {
            "key_features": "query_features",
            "value_features": "key_features",
            "qkv_features": "query_features",
            "out_features": "query_features",
        },
    ),
    "WeightedPool": Spec("weighted_pooling", {"L": "num_slots"}, (Parameter("weights", ("L",), "ones"),)),
    "AttentionPool": Spec(
        "attention_pooling",
        {"d": "in_features", "c": "qk_features"},
        (
            Parameter("query", ("d",), "query", over=("d",)),
            _kernel("query_kernel", "d", "c", when="qk_features"),
            _kernel("key_kernel", "d", "c", when="qk_features"),
            *_norm("query_norm", "d", when="normalize_query"),
            _sink(),
        ),
    ),
    "MultiHeadAttentionPool": Spec(
        "multi_head_attention_pooling",
        {"d": "in_features", "n": "num_queries"} | _HEADS,
        (_QUERY, *_multi_head("d", "d", "d"), _sink("H")),
        {"qkv_features": "in_features", "out_features": "in_features"},
    ),
    "MAPHead": Spec(
        "map_head",
        _OF_HEAD | {"f": "hidden_features"},
        (_QUERY, *_multi_head("d", "d", "d", "d"), *_norm("norm", "d"), *_perceptron("f")),
        {"num_queries": lambda given: 1},
    ),
    "AttentionalPooler": Spec(
        "attentional_pooler",
        _OF_HEAD | {"q": "query_features", "o": "out_features"},
        (
            Parameter("query", ("n", "q"), "query", over=("q",)),
            *_multi_head("q", "d", "d"),
            *_norm("norm", "d"),
            *_norm("query_norm", "q"),
        ),
        {"query_features": "in_features", "qkv_features": "query_features", "out_features": "query_features"},
    ),
    "AttentionPool2d": Spec(
        "attention_pool_2d",
        _OF_HEAD | {"p": "num_positions", "o": "out_features"},
        (
            Parameter("position", ("p", "d"), "query", over=("d",)),
            Parameter("class_token", ("d",), "query", over=("d",), when=("use_class_token",)),
            *_multi_head("d", "d", "d"),
        ),
        {
            "num_positions": lambda given: checked_size("AttentionPool2d", "num_slots", given["num_slots"]) + 1,
            "qkv_features": "in_features",
            "out_features": "in_features",
        },
    ),
    "PMA": Spec(
        "pma",
        _OF_HEAD,
        (
            _QUERY,
            *_inner_heads("d", "d", "d"),
            *_out_map("d", when="variant=pyg"),
            _kernel("input_kernel", "d", "d", over=("d",), when="variant=pyg"),
            Parameter("input_bias", ("d",), "bias", when=("variant=pyg",)),
            *_perceptron("d", out=False),
            *_norm("norm", "d", when="normalize"),
            *_norm("mlp_norm", "d", when="normalize"),
        ),
        {"normalize": lambda given: given["variant"] == "pyg"},
    ),
    "AttentiveProbe": Spec(
        "attentive_probe",
        _OF_HEAD | {"f": "hidden_features"},
        (
            Parameter("query", ("n", "d"), "query", over=("d",), when=("variant=vjepa",)),
            Parameter("query", ("n", "H", "c"), "query", over=("c",), when=("variant=aim",)),
            *_inner_heads("d", "d", "d", when="variant=vjepa"),
            *_norm("norm", "d", when="variant=vjepa"),
            *_norm("mlp_norm", "d", when="variant=vjepa"),
            *_perceptron("f", when="variant=vjepa"),
            Parameter("mean", ("d",), "zeros", when=("variant=aim",), frozen=True),
            Parameter("variance", ("d",), "ones", when=("variant=aim",), frozen=True),
        ),
    ),
    "PowerMeanPool": Spec("power_mean_pooling", {"d": "num_features"}, (Parameter("p", ("d?",), "start"),)),
    "LogSumExpPool": Spec("logsumexp_pooling", {"d": "num_features"}, (Parameter("scale", ("d?",), "start"),)),
    "SoftmaxPool": Spec("softmax_pooling", {"d": "num_features"}, (Parameter("scale", ("d?",), "start"),)),
    "AttentiveStatisticsPool": Spec(
        "attentive_statistics_pooling",
        {"d": "in_features", "h": "hidden_features"},
        (
            Parameter("kernel", ("d", "h"), "kernel", ("d",), instead=("global_context", ("3d", "h"))),
            Parameter("out_kernel", ("h",), "kernel", ("h",), instead=("per_channel", ("h", "d"))),
            Parameter("bias", ("h",), "bias"),
            *_norm("norm", "h", when="use_norm"),
        ),
    ),
    "AdditiveAttentionPool": Spec(
        "additive_attention_pooling",
        {"d": "in_features", "h": "hidden_features", "n": "num_queries"},
        (
            _kernel("kernel", "d", "h"),
            _bias("bias", "h"),
            _kernel("gate_kernel", "d", "h", when="gated"),
            Parameter("gate_bias", ("h",), "bias", when=("gate_has_bias",)),
            _kernel("out_kernel", "h", "n?"),
            _sink("n?"),
        ),
        {"gate_has_bias": lambda given: given["gated"] and given["use_bias"]},
    ),
    "LatentAttentionPool": Spec(
        "latent_attention_pooling",
        {"d": "in_features", "e": "in_features", "r": "num_latents", "f": "hidden_features"} | _HEADS,
        (
            Parameter("latents", ("r", "e"), "latents", over=("e",)),
            _kernel("query_kernel", "d", "H", "c"),
            _kernel("key_kernel", "e", "H", "c"),
            _kernel("value_kernel", "e", "H", "c'"),
            _kernel("out_kernel", "H", "c'", "d", over=("H", "c'")),
            _kernel("mlp_kernel", "d", "2f"),
            _kernel("mlp_out_kernel", "f", "d"),
            Parameter("mlp_bias", ("2f",), "bias"),
            Parameter("mlp_out_bias", ("d",), "bias"),
            *_norm("norm", "d"),
            *_norm("latent_norm", "e"),
            *_norm("mlp_norm", "d"),
        ),
        {
            "qkv_features": "in_features",
            "hidden_features": lambda given: (
                4 * checked_size("LatentAttentionPool", "in_features", given["in_features"])
            ),
        },
    ),
    "Set2SetPool": Spec(
        "set2set_pooling",
        {"d": "in_features"},
        (
            _kernel("input_kernel", "2d", "4d"),
            _kernel("recurrent_kernel", "d", "4d"),
            Parameter("bias", ("4d",), "bias"),
        ),
    ),
    "VLADPool": Spec(
        "vlad_pooling",
        {"d": "in_features", "K": "num_clusters", "G": "num_ghosts"},
        (
            _kernel("assign_kernel", "d", "K+G"),
            Parameter("assign_bias", ("K+G",), "bias"),
            Parameter("centers", ("K", "d"), "centers", over=("d",)),
        ),
    ),
    "GatedSumPool": Spec(
        "gated_sum_pooling",
        {"d": "in_features", "o": "out_features"},
        (
            _kernel("gate_kernel", "d", "o"),
            _kernel("value_kernel", "d", "o"),
            _bias("gate_bias", "o"),
            _bias("value_bias", "o"),
        ),
    ),
    "CrossAttentionPool": Spec(
        "cross_attention_pooling",
        {"d": "x_features", "e": "y_features", "c": "qk_features"},
        (_kernel("x_kernel", "d", "c", when="x_features"), _kernel("y_kernel", "e", "c", when="y_features")),
    ),
    "CodeWiseAttention": Spec("code_wise_attention", {}, ()),
    "MaskAttention": Spec("mask_attention", {}, ()),
    "BiDAFAttention": Spec("bidaf_attention", {"d": "in_features"}, (_kernel("kernel", "3d"),)),
    "RelationVector": Spec(
        "relation_vector",
        {"f": "in_features", "h": "hidden_features", "o": "out_features"},
        (
            _kernel("x_kernel", "f", "h"),
            _kernel("y_kernel", "f", "h"),
            _kernel("out_kernel", "h", "o"),
            _bias("bias", "h"),
        ),
        {"out_features": "in_features"},
    ),
    "FieldAttentionPool": Spec(
        "field_attention_pooling",
        {"d": "target_features", "e": "field_features", "J": "num_fields"},
        (_kernel("kernel", "J?", "d+e", over=("d+e",)), _bias("bias", "J?")),
    ),
    "LabelAttention": Spec(
        "label_attention",
        {"d": "in_features", "c": "qk_features", "v": "out_features"},
        (_kernel("query_kernel", "d", "c"), _kernel("key_kernel", "d", "c"), _kernel("value_kernel", "d", "v")),
        {"qk_features": "in_features", "out_features": "in_features"},
    ),
}
"""The specs by the names of the modules, in the order of :mod:`attnpool_ref.table`, with the heads in between."""


def checked_size(module: str, argument: str, value: Any, least: int = 1) -> int:
    """Returns ``value`` as an int; raises a ValueError if it is not an integer, too small, or larger than any axis."""
    try:
        size = operator.index(value)
    except TypeError:
        size = least - 1
    if isinstance(value, bool) or size < least:
        none = "; None makes one query, without an axis for it" if argument == "num_queries" else ""
        raise ValueError(f"{module}: `{argument}` is {value!r}, needs an integer of at least {least}{none}")
    if size > contract.LARGEST_SIZE:
        raise ValueError(f"{module}: `{argument}` is {value!r}, needs an integer of at most {contract.LARGEST_SIZE}")
    return size


def head_features(module: str, num_heads: int, qkv_features: int) -> int:
    """Returns the width of one head; raises a ValueError unless ``num_heads`` divides ``qkv_features``."""
    heads = checked_size(module, "num_heads", num_heads)
    width = checked_size(module, "qkv_features", qkv_features)
    if width % heads:
        raise ValueError(f"{module}: `qkv_features` is {width}, needs a multiple of `num_heads`, {heads}")
    return width // heads
