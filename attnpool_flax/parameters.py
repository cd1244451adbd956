"""What the modules own: one table, from which NNX and Linen both create their parameters.

The shape of a parameter is written in the symbols of its function's row (:mod:`attnpool_ref.variants`), so that a
checkpoint of an NNX module loads into the Linen module of the same name, and the other way round.
"""

import math
import operator
import re
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from flax.typing import Dtype, Initializer

from attnpool_ref import contract, variants

KERNEL_INIT = nnx.initializers.lecun_normal()
"""Kernels, by default: normal with variance 1 / fan-in, Flax's own choice."""

QUERY_INIT = nnx.initializers.lecun_normal()
"""Learned queries, by default: of length 1 in expectation, whatever their width."""

FIXED = {"ones": nnx.initializers.ones, "zeros": nnx.initializers.zeros}
"""Initialisers that no constructor offers to change."""

_TERM = re.compile(r"(\d*)([A-Za-z]\w*'?)")


@dataclass(frozen=True)
class Parameter:
    """One parameter.

    Attributes:
      name: the function's argument that it becomes.
      axes: its shape in the row's symbols; an axis with ``?`` is there if its size is given.
      init: "kernel" or "query", which the constructor can replace, or a key of :data:`FIXED`.
      over: the axes that are contracted with data: the initialiser's fan-in. All others are its fan-out, which is 1
        for a vector. Empty where the initialiser sees the shape as it is.
      when: the constructor argument without which the module has no such parameter.
    """

    name: str
    axes: tuple[str, ...]
    init: str
    over: tuple[str, ...] = ()
    when: str = ""


@dataclass(frozen=True)
class Owner:
    """One module.

    Attributes:
      function: the function whose arguments its parameters are.
      sizes: for each symbol in ``axes`` the constructor argument that says its size.
      parameters: in the order in which they are created.
    """

    function: str
    sizes: Mapping[str, str]
    parameters: tuple[Parameter, ...]


OWNERS = {
    "WeightedPool": Owner(
        "weighted_pooling",
        {"L": "num_slots"},
        (Parameter("weights", ("L",), "ones"),),
    ),
    "AttentionPool": Owner(
        "attention_pooling",
        {"d": "in_features", "c": "qk_features"},
        (
            Parameter("query", ("d",), "query", over=("d",)),
            Parameter("query_kernel", ("d", "c"), "kernel", over=("d",), when="qk_features"),
            Parameter("key_kernel", ("d", "c"), "kernel", over=("d",), when="qk_features"),
            Parameter("query_norm_scale", ("d",), "ones", when="normalize_query"),
            Parameter("query_norm_bias", ("d",), "zeros", when="normalize_query"),
        ),
    ),
    "CrossAttentionPool": Owner(
        "cross_attention_pooling",
        {"d": "x_features", "e": "y_features", "c": "qk_features"},
        (
            Parameter("x_kernel", ("d", "c"), "kernel", over=("d",), when="x_features"),
            Parameter("y_kernel", ("e", "c"), "kernel", over=("e",), when="y_features"),
        ),
    ),
}
"""The modules by name, in the order of their functions' rows."""


@dataclass(frozen=True)
class Shaped:
    """A parameter of one module whose sizes are known; ``shape`` is None if the module does not have it."""

    parameter: Parameter
    axes: tuple[str, ...]
    shape: tuple[int, ...] | None


def shaped_parameters(module: str, given: Mapping[str, Any]) -> Iterator[Shaped]:
    """Yields what a module owns.

    Args:
      module: a key of :data:`OWNERS`.
      given: the sizes and options by the names of the constructor's arguments.

    Raises:
      ValueError: a size that a parameter needs is None or no integer of at least 1.
    """
    owner = OWNERS[module]
    for parameter in owner.parameters:
        if parameter.when and (given[parameter.when] is None or given[parameter.when] is False):
            yield Shaped(parameter, (), None)
            continue
        axes = tuple(
            axis.rstrip("?") for axis in parameter.axes if axis[-1] != "?" or given[owner.sizes[axis[:-1]]] is not None
        )
        yield Shaped(parameter, axes, tuple(_size(module, parameter, axis, given) for axis in axes))


def _size(module, parameter, axis, given):
    """The size of an axis such as d, d+e or 3d."""
    owner, total = OWNERS[module], 0
    for number, symbol in _TERM.findall(axis):
        argument = owner.sizes[symbol]
        value = given[argument]
        if value is None:
            raise ValueError(
                f"{module}: `{parameter.name}` [{', '.join(parameter.axes)}] needs `{argument}`, which is None"
            )
        least = int(symbol in contract.FEATURES and f"{symbol} may be 0" not in variants.get(owner.function).rules)
        try:
            size = operator.index(value)
        except TypeError:
            size = -1
        if isinstance(value, bool) or size < least:
            raise ValueError(f"{module}: `{argument}` is {value!r}, needs an integer of at least {least}")
        total += int(number or 1) * size
    return total


def read_sizes(module: str, data: Mapping[str, Any]) -> dict[str, int]:
    """Reads sizes off the data, by the names of the constructor's arguments; refuses what the function refuses."""
    owner = OWNERS[module]
    arguments, found = contract.arguments_of(variants.get(owner.function).shapes), {}
    for key, value in data.items():
        contract.refuse_non_numeric(owner.function, key, value)
        axes = [axis for axis in arguments[key].shapes[0] if axis != "..."]
        if value.ndim < len(axes):
            raise ValueError(f"{owner.function}: `{key}` has shape {value.shape}, needs {arguments[key]}")
        for axis, size in zip(axes, value.shape[value.ndim - len(axes) :], strict=True):
            if axis in owner.sizes:
                found[owner.sizes[axis]] = size
    return found


def initialize(key: Any, shaped: Shaped, init: Initializer, dtype: Dtype):
    """A parameter's first value; ``init`` sees [fan-in, fan-out], so that heads and vectors count as they should.

    What partitioning wraps around a value (a Linen box, an NNX variable's metadata) stays around it.
    """
    axes, over, shape = shaped.axes, shaped.parameter.over, typing.cast("tuple[int, ...]", shaped.shape)
    if not over:
        return init(key, shape, dtype)
    sizes = dict(zip(axes, shape, strict=True))
    order = [*over, *(axis for axis in axes if axis not in over)]
    fan_in, fan_out = (math.prod(sizes[axis] for axis in part) for part in (over, order[len(over) :]))

    def lay_out(flat):
        value = jnp.reshape(flat, [sizes[axis] for axis in order])
        return jnp.transpose(value, [order.index(axis) for axis in axes])

    flat = init(key, (fan_in, fan_out), dtype)
    if isinstance(flat, nnx.VariableMetadata):
        return replace(flat, raw_value=lay_out(flat.raw_value))
    return jax.tree.map(lay_out, flat)


def check_rate(module: str, rate: float):
    """Refuses a dropout rate that is no probability."""
    if not 0 <= rate <= 1:
        raise ValueError(f"{module}: `dropout_rate` is {rate!r}, needs a number from 0 to 1")


def cast(value, dtype: Dtype | None):
    """``value`` in the dtype of a module; what is no array of real numbers stays, for the function to refuse."""
    real = hasattr(value, "dtype") and any(jnp.issubdtype(value.dtype, kind) for kind in (jnp.floating, jnp.integer))
    return jnp.asarray(value, dtype) if real and dtype is not None else value
