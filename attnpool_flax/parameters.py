"""What the modules own: one table, from which NNX and Linen both create their parameters.

The shape of a parameter is written in the symbols of its function's row (:mod:`attnpool_ref.variants`), so that a
checkpoint of an NNX module loads into the Linen module of the same name, and the other way round.
"""

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from flax.typing import Dtype, Initializer

from attnpool_ref import contract, variants

KERNEL_INIT = nnx.initializers.lecun_normal()
"""Kernels, by default: normal with variance 1 / fan-in, Flax's own choice."""

QUERY_INIT = nnx.initializers.lecun_normal()
"""Learned queries, by default: of length 1 in expectation, whatever their width. So are latents and centres."""

BIAS_INIT = nnx.initializers.zeros
"""Biases, by default."""

Normalizer = str | Callable[[Any, Any], Any]
"""A name, or a function of scores and mask."""

FIXED = {"ones": nnx.initializers.ones, "zeros": nnx.initializers.zeros}
"""Initialisers that no constructor offers to change."""

UNDRAWN = (*FIXED, "start")
"""Kinds of initialisers that need no key: "start" is a number that the constructor is given."""

_TERM = re.compile(r"(\d*)([A-Za-z]\w*'?)")


@dataclass(frozen=True)
class Parameter:
    """One parameter.

    Attributes:
      name: the function's argument that it becomes.
      axes: its shape in the row's symbols; an axis with ``?`` is there if its size is given.
      init: "kernel", "bias", "query", "latents" or "centers", which the constructor can replace, or one of :data:`UNDRAWN`.
      over: the axes that are contracted with data: the initialiser's fan-in. All others are its fan-out, which is 1
        for a vector. Empty where the initialiser sees the shape as it is.
      when: the constructor arguments without which the module has no such parameter; ``variant=pyg`` asks for a value.
      instead: (a constructor argument, the axes that the parameter has where that is true), if there is one.
      frozen: whether it is a statistic of batches, which no optimiser moves.
    """

    name: str
    axes: tuple[str, ...]
    init: str
    over: tuple[str, ...] = ()
    when: tuple[str, ...] = ()
    instead: tuple[str, tuple[str, ...]] | None = None

    frozen: bool = False

    def settled(self, given: Mapping[str, Any]):
        """The parameter with the axes that it has among these arguments of the constructor."""
        if self.instead is None or not given[self.instead[0]]:
            return self
        return replace(self, axes=self.instead[1], over=self.instead[1][:1], instead=None)

    def contracted(self, axes):
        """The places among its axes of those that are contracted with data."""
        return [axes.index(axis) for axis in self.over]


@dataclass(frozen=True)
class Owner:
    """One module.

    Attributes:
      function: the function whose arguments its parameters are.
      sizes: for each symbol in ``axes`` the constructor argument, or the module's attribute, that says its size.
      parameters: in the order in which they are created.
    """

    function: str
    sizes: Mapping[str, str]
    parameters: tuple[Parameter, ...]


def _kernel(name, *axes, over=None, when=()):
    """A kernel (in, out), whose first axis is contracted unless ``over`` says otherwise."""
    return Parameter(name, axes, "kernel", over or axes[:1], _names(when))


def _bias(name, *axes, when=()):
    return Parameter(name, axes, "bias", when=("use_bias", *_names(when)))


def _norm(name, axis, when=()):
    """Scale and bias of a layer normalisation."""
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
    """The kernels and biases of heads over inputs of these widths."""
    query_kernel, *kernels, query_bias, key_bias, value_bias = _inner_heads(query, key, value)
    out_kernel, out_bias = _out_map(out)
    return query_kernel, *kernels, out_kernel, query_bias, key_bias, value_bias, out_bias


def _inner_heads(query, key, value, when=()):
    """The same without an output map; ``when`` there are maps of the query, and biases."""
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
    """The kernels and biases of a hidden layer, and of an output layer."""
    first = _kernel("mlp_kernel", "d", hidden, when=when), Parameter("mlp_bias", (hidden,), "bias", when=_names(when))
    if not out:
        return first
    last = Parameter("mlp_out_bias", ("d",), "bias", when=_names(when))
    return *first, _kernel("mlp_out_kernel", hidden, "d", when=when), last


_QUERY = Parameter("query", ("n", "d"), "query", over=("d",))
_OF_HEAD = {"d": "in_features", "n": "num_queries", "H": "num_heads", "c": "head_features", "c'": "head_features"}

OWNERS = {
    "BilinearScore": Owner(
        "bilinear_score",
        {"d": "query_features", "e": "key_features"},
        (_kernel("kernel", "d", "e"),),
    ),
    "AdditiveScore": Owner("additive_score", _HIDDEN, _ADDITIVE),
    "ConcatScore": Owner(
        "concat_score",
        _HIDDEN,
        (_kernel("kernel", "d+e", "h"), _kernel("out_kernel", "h"), _bias("bias", "h")),
    ),
    "TanhSumScore": Owner("tanh_sum_score", _HIDDEN, _TANH_SUM),
    "LocationScore": Owner(
        "location_score",
        {"d": "query_features", "e": "state_features", "m": "num_slots"},
        (_kernel("kernel", "d+e", "m"), _bias("bias", "m")),
    ),
    "TrilinearScore": Owner("trilinear_score", {"d": "in_features"}, (_kernel("kernel", "3d"),)),
    "AdditiveAttention": Owner("additive_attention", _HIDDEN, _ADDITIVE),
    "TanhSumAttention": Owner("tanh_sum_attention", _HIDDEN, _TANH_SUM),
    "LocationAttention": Owner(
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
    "MultiHeadAttention": Owner(
        "multi_head_attention",
        {"d": "query_features", "e": "key_features", "v": "value_features"} | _HEADS,
        _multi_head("d", "e", "v"),
    ),
    "WeightedPool": Owner("weighted_pooling", {"L": "num_slots"}, (Parameter("weights", ("L",), "ones"),)),
    "AttentionPool": Owner(
        "attention_pooling",
        {"d": "in_features", "c": "qk_features"},
        (
            Parameter("query", ("d",), "query", over=("d",)),
            _kernel("query_kernel", "d", "c", when="qk_features"),
            _kernel("key_kernel", "d", "c", when="qk_features"),
            *_norm("query_norm", "d", when="normalize_query"),
        ),
    ),
    "MultiHeadAttentionPool": Owner(
        "multi_head_attention_pooling",
        {"d": "in_features", "n": "num_queries"} | _HEADS,
        (_QUERY, *_multi_head("d", "d", "d")),
    ),
    "MAPHead": Owner(
        "map_head",
        _OF_HEAD | {"f": "hidden_features"},
        (_QUERY, *_multi_head("d", "d", "d", "d"), *_norm("norm", "d"), *_perceptron("f")),
    ),
    "AttentionalPooler": Owner(
        "attentional_pooler",
        _OF_HEAD | {"q": "query_features", "o": "out_features"},
        (
            Parameter("query", ("n", "q"), "query", over=("q",)),
            *_multi_head("q", "d", "d"),
            *_norm("norm", "d"),
            *_norm("query_norm", "q"),
        ),
    ),
    "AttentionPool2d": Owner(
        "attention_pool_2d",
        _OF_HEAD | {"p": "num_positions", "o": "out_features"},
        (Parameter("position", ("p", "d"), "query", over=("d",)), *_multi_head("d", "d", "d")),
    ),
    "PMA": Owner(
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
    ),
    "AttentiveProbe": Owner(
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
    "PowerMeanPool": Owner("power_mean_pooling", {"d": "num_features"}, (Parameter("p", ("d?",), "start"),)),
    "LogSumExpPool": Owner("logsumexp_pooling", {"d": "num_features"}, (Parameter("scale", ("d?",), "start"),)),
    "SoftmaxPool": Owner("softmax_pooling", {"d": "num_features"}, (Parameter("scale", ("d?",), "start"),)),
    "AttentiveStatisticsPool": Owner(
        "attentive_statistics_pooling",
        {"d": "in_features", "h": "hidden_features"},
        (
            Parameter("kernel", ("d", "h"), "kernel", ("d",), instead=("global_context", ("3d", "h"))),
            Parameter("out_kernel", ("h",), "kernel", ("h",), instead=("per_channel", ("h", "d"))),
            Parameter("bias", ("h",), "bias"),
            Parameter("norm_scale", ("h",), "ones", when=("use_norm",)),
            Parameter("norm_bias", ("h",), "zeros", when=("use_norm",)),
        ),
    ),
    "AdditiveAttentionPool": Owner(
        "additive_attention_pooling",
        {"d": "in_features", "h": "hidden_features", "n": "num_queries"},
        (
            _kernel("kernel", "d", "h"),
            _bias("bias", "h"),
            _kernel("gate_kernel", "d", "h", when="gated"),
            Parameter("gate_bias", ("h",), "bias", when=("gate_has_bias",)),
            _kernel("out_kernel", "h", "n?"),
        ),
    ),
    "LatentAttentionPool": Owner(
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
            Parameter("norm_scale", ("d",), "ones"),
            Parameter("norm_bias", ("d",), "zeros"),
            Parameter("latent_norm_scale", ("e",), "ones"),
            Parameter("latent_norm_bias", ("e",), "zeros"),
            Parameter("mlp_norm_scale", ("d",), "ones"),
            Parameter("mlp_norm_bias", ("d",), "zeros"),
        ),
    ),
    "Set2SetPool": Owner(
        "set2set_pooling",
        {"d": "in_features"},
        (
            _kernel("input_kernel", "2d", "4d"),
            _kernel("recurrent_kernel", "d", "4d"),
            Parameter("bias", ("4d",), "bias"),
        ),
    ),
    "VLADPool": Owner(
        "vlad_pooling",
        {"d": "in_features", "K": "num_clusters", "G": "num_ghosts"},
        (
            _kernel("assign_kernel", "d", "K+G"),
            Parameter("assign_bias", ("K+G",), "bias"),
            Parameter("centers", ("K", "d"), "centers", over=("d",)),
        ),
    ),
    "CrossAttentionPool": Owner(
        "cross_attention_pooling",
        {"d": "x_features", "e": "y_features", "c": "qk_features"},
        (_kernel("x_kernel", "d", "c", when="x_features"), _kernel("y_kernel", "e", "c", when="y_features")),
    ),
    "CodeWiseAttention": Owner("code_wise_attention", {}, ()),
    "MaskAttention": Owner("mask_attention", {}, ()),
    "BiDAFAttention": Owner("bidaf_attention", {"d": "in_features"}, (_kernel("kernel", "3d"),)),
    "RelationVector": Owner(
        "relation_vector",
        {"f": "in_features", "h": "hidden_features", "o": "out_features"},
        (
            _kernel("x_kernel", "f", "h"),
            _kernel("y_kernel", "f", "h"),
            _kernel("out_kernel", "h", "o"),
            _bias("bias", "h"),
        ),
    ),
    "FieldAttentionPool": Owner(
        "field_attention_pooling",
        {"d": "target_features", "e": "field_features", "J": "num_fields"},
        (_kernel("kernel", "J?", "d+e", over=("d+e",)), _bias("bias", "J?")),
    ),
    "LabelAttention": Owner(
        "label_attention",
        {"d": "in_features", "c": "qk_features", "v": "out_features"},
        (_kernel("query_kernel", "d", "c"), _kernel("key_kernel", "d", "c"), _kernel("value_kernel", "d", "v")),
    ),
}
"""The modules by name, in the order of their functions' rows."""


@dataclass(frozen=True)
class Shaped:
    """A parameter of one module whose sizes are known.

    Attributes:
      parameter: its entry of the table.
      axes: those of its axes that are there.
      shape: their sizes.
      owned: False if the module was told to go without, and its function takes zeros instead.
    """

    parameter: Parameter
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    owned: bool


def shaped_parameters(module: str, given: Mapping[str, Any]) -> dict[str, Shaped | None]:
    """What a module owns, by name; None for what its function does not need.

    Args:
      module: a key of :data:`OWNERS`.
      given: the sizes and options by the names of the constructor's arguments.

    Raises:
      ValueError: a size that a parameter needs is None or no integer of at least 1.
    """
    _check_biases(module, given)
    owner, shaped = OWNERS[module], {}
    arguments = variants.get(owner.function).arguments
    for parameter in (own.settled(given) for own in owner.parameters):
        if not _has(parameter, given):
            shaped.setdefault(parameter.name, None)
            continue
        owned = all(_is_wanted(parameter, given[name]) for name in parameter.when if "=" not in name)
        if not owned and arguments[parameter.name].optional:
            shaped[parameter.name] = None
            continue
        there = [axis for axis in parameter.axes if axis[-1] != "?" or given[owner.sizes[axis[:-1]]] is not None]
        axes = tuple(axis.rstrip("?") for axis in there)
        shape = tuple(_size(module, parameter, axis, given) for axis in axes)
        shaped[parameter.name] = Shaped(parameter, axes, shape, owned)
    return shaped


def _has(parameter, given):
    """Whether the module is of a variant that has the parameter."""
    asked = (condition.partition("=") for condition in parameter.when if "=" in condition)
    return all(given[name] == value for name, _, value in asked)


def _is_wanted(parameter, wanted):
    """Whether an option asks for a parameter: a flag, a size, or the names of those that there are."""
    if isinstance(wanted, (tuple, frozenset)):
        return parameter.name in wanted
    return wanted is not None and not (isinstance(wanted, (bool, np.bool_)) and not wanted)


def _check_biases(module, given):
    """Refuses names of biases that the module does not have."""
    use_bias = given.get("use_bias", True)
    if isinstance(use_bias, (bool, np.bool_)):
        return
    there = [p.name for p in OWNERS[module].parameters if "use_bias" in p.when and _has(p, given)]
    if not isinstance(use_bias, (tuple, frozenset)) or not set(use_bias) <= set(there):
        raise ValueError(f"{module}: `use_bias` is {use_bias!r}, needs True, False or a tuple of {', '.join(there)}")


def _size(module, parameter, axis, given):
    """The size of an axis such as d, d+e or 3d."""
    owner, total = OWNERS[module], 0
    for number, symbol in _TERM.findall(axis):
        argument = owner.sizes[symbol]
        if _given(argument, given) is None:
            raise ValueError(
                f"{module}: `{parameter.name}` [{', '.join(parameter.axes)}] needs `{argument}`, which is None"
            )
        may_be_0 = parameter.init in FIXED or f"{symbol} may be 0" in variants.get(owner.function).rules
        total += int(number or 1) * checked_size(module, argument, _given(argument, given), 0 if may_be_0 else 1)
    return total


def _given(argument, given):
    """The size that a constructor was given: 1 where it makes one query, and has no axis for it in its results."""
    return 1 if argument == "num_queries" and given[argument] is None else given[argument]


def checked_size(module: str, argument: str, value: Any, least: int = 1) -> int:
    """``value`` as an int; refuses what is no integer or too small."""
    try:
        size = operator.index(value)
    except TypeError:
        size = least - 1
    if isinstance(value, bool) or size < least:
        none = "; None makes one query, without an axis for it" if argument == "num_queries" else ""
        raise ValueError(f"{module}: `{argument}` is {value!r}, needs an integer of at least {least}{none}")
    return size


def name_of(module: Any) -> str:
    """The module's name in the table, a subclass has its parent's; its own where the table does not have it."""
    return next((kind.__name__ for kind in type(module).__mro__ if kind.__name__ in OWNERS), type(module).__name__)


def head_features(module: str, num_heads: int, qkv_features: int) -> int:
    """The width of one head."""
    heads = checked_size(module, "num_heads", num_heads)
    width = checked_size(module, "qkv_features", qkv_features)
    if width % heads:
        raise ValueError(f"{module}: `qkv_features` is {width}, needs a multiple of `num_heads`, {heads}")
    return width // heads


def read_sizes(module: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Reads sizes off the data, by the names of the constructor's arguments; refuses what the function refuses."""
    owner = OWNERS[module]
    _, sizes = _read(owner.function, data)
    return {owner.sizes[symbol]: size for symbol, size in sizes.items() if symbol in owner.sizes}


def check_sizes(module: str, given: Mapping[str, Any], data: Mapping[str, Any]):
    """Refuses data of another size than the module was made for, in the names of the module's arguments."""
    owner, arguments = OWNERS[module], variants.get(OWNERS[module].function).arguments
    for key, value in data.items():
        own, shape = arguments[key].own, tuple(getattr(value, "shape", ()))
        for symbol, size in zip(reversed(own), reversed(shape), strict=False):
            argument = owner.sizes.get(symbol)
            made_for = None if argument is None else given[argument]
            if made_for is not None and size != made_for:
                raise ValueError(f"{module}: `{argument}` is {made_for}, but `{key}` has {size}: its shape is {shape}")


def check_options(module: str, given: Mapping[str, Any]):
    """Refuses what an option of the module's function does not take, when the module is made."""
    row = variants.get(OWNERS[module].function)
    for key in row.options.keys() & given.keys():
        contract.checked_static(module, key, given[key], row.options[key], row.refused)


def multiplier_shape(module: str, data: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[int, ...]:
    """The shape of the dropout multiplier, one number for each weight."""
    owner = OWNERS[module]
    batch, sizes = _read(owner.function, data)
    known = {symbol: _given(argument, given) for symbol, argument in owner.sizes.items() if argument in given}
    target = variants.get(owner.function).arguments["dropout_multiplier"].shapes[0]
    return contract.full_shape(target, batch, known | sizes)


def _read(function, data):
    """The batch axes that some of the data have, and the size of each axis that the row names."""
    arguments, batch, sizes = variants.get(function).arguments, (), {}
    for key, value in data.items():
        contract.refuse_non_numeric(function, key, value)
        axes = [axis for axis in arguments[key].shapes[0] if axis != "..."]
        rank = value.ndim - len(axes)
        if rank < 0:
            raise ValueError(f"{function}: `{key}` has shape {tuple(value.shape)}, needs {arguments[key]}")
        batch = max(batch, tuple(value.shape[:rank]), key=len)
        sizes |= dict(zip(axes, value.shape[rank:], strict=True))
    return batch, sizes


def initialize(key: Any, shaped: Shaped, init: Initializer, dtype: Dtype):
    """A parameter's first value; ``init`` sees [fan-in, fan-out], so that heads and vectors count as they should.

    What partitioning wraps around a value (a Linen box, an NNX variable's metadata) stays around it.
    """
    shape, first = shaped.shape, shaped.parameter.contracted(shaped.axes)
    if not first:
        return init(key, shape, dtype)
    order = [*first, *(place for place in range(len(shape)) if place not in first)]
    fan_in, fan_out = (math.prod(shape[place] for place in part) for part in (first, order[len(first) :]))

    def lay_out(flat):
        value = jnp.reshape(flat, [shape[place] for place in order])
        return jnp.transpose(value, [order.index(place) for place in range(len(shape))])

    flat = init(key, (fan_in, fan_out), dtype)
    if isinstance(flat, nnx.VariableMetadata):
        return replace(flat, raw_value=lay_out(flat.raw_value))
    return jax.tree.map(lay_out, flat)


def checked_variant(module: str, variant: str) -> str:
    """``variant``; refuses one that the module does not have."""
    return contract.checked_static(module, "variant", variant, variants.get(OWNERS[module].function).options["variant"])


def check_rate(module: str, rate: float):
    """Refuses a dropout rate that is no probability."""
    if not 0 <= rate <= 1:
        raise ValueError(f"{module}: `dropout_rate` is {rate!r}, needs a number from 0 to 1")


def cast(value, dtype: Dtype | None):
    """``value`` in the dtype of a module; what is no array of real numbers stays, for the function to refuse."""
    if (
        dtype is None
        or isinstance(value, np.ma.MaskedArray)
        or contract.kind_of(getattr(value, "dtype", None)) not in ("f", "i", "u")
    ):
        return value
    return jnp.asarray(value.astype(dtype) if isinstance(value, np.ndarray) else value, dtype)  # NumPy wraps no integer
