"""Shapes and initial values of the parameters of a module, from its spec and the arguments of its constructor."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from flax.typing import Dtype, Initializer

from attnpool_flax.modules.specs import FIXED, SPECS, Parameter, checked_size, head_features
from attnpool_ref import contract, table
from attnpool_ref.contract.dtypes import FLOATING
from attnpool_ref.table import language


@dataclass(frozen=True)
class NamedInitializer:
    """Initializer whose ``repr`` is its name, so that signatures in ``help`` show no memory addresses.

    Attributes:
      function: an initializer of Flax.
      name: the text to show.
    """

    function: Callable[..., Any]
    name: str

    def __call__(self, key: Any, shape: Any, dtype: Any = jnp.float32, **kwargs: Any) -> Any:
        """Computes the initial value of a parameter, like an initializer of Flax."""
        return self.function(key, shape, dtype, **kwargs)

    def __repr__(self):
        return self.name


KERNEL_INIT = NamedInitializer(nnx.initializers.lecun_normal(), "lecun_normal()")
"""Default initializer of kernels: normal with variance 1 / fan-in, as in Flax."""

QUERY_INIT = NamedInitializer(nnx.initializers.lecun_normal(), "lecun_normal()")
"""Default initializer of queries, positions, latents and centers: squared length 1 on average, at any width."""

BIAS_INIT = NamedInitializer(nnx.initializers.zeros, "zeros")
"""Default initializer of biases."""

Normalizer = str | Callable[[Any, Any], Any]
"""Type of ``normalizer``: a name, or a function (scores, mask) -> weights."""

_TERM = re.compile(r"(\d*)([A-Za-z]\w*'?)")


@dataclass(frozen=True)
class Shaped:
    """A parameter of one module, with known sizes.

    Attributes:
      parameter: its entry in the module's spec.
      axes: its axes, without those whose size is None.
      shape: their sizes.
      present: False if an option such as ``use_bias`` omits the parameter; the function then gets zeros in its place.
    """

    parameter: Parameter
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    present: bool


def shaped_parameters(module: str, given: Mapping[str, Any]) -> dict[str, Shaped | None]:
    """Returns the parameters of a module by name; None for those that it lacks and its function does not need.

    Args:
      module: a key of :data:`SPECS`.
      given: the sizes and options by the names of the constructor's arguments.

    Raises:
      ValueError: a size that a parameter needs is None, not an integer or too small; or ``use_bias`` is invalid.
    """
    _check_biases(module, given)
    spec, shaped = SPECS[module], {}
    arguments = table.get(spec.function).arguments
    for parameter in (each.resolved(given) for each in spec.parameters):
        if not _has(parameter, given):
            shaped.setdefault(parameter.name, None)
            continue
        present = _is_wanted(parameter, given)
        if not present and arguments[parameter.name].optional:
            shaped[parameter.name] = None
            continue
        axes = [axis for axis in parameter.axes if axis[-1] != "?" or given[spec.sizes[axis[:-1]]] is not None]
        axes = tuple(axis.rstrip("?") for axis in axes)
        shape = tuple(_size(module, parameter, axis, given) for axis in axes)
        shaped[parameter.name] = Shaped(parameter, axes, shape, present)
    return shaped


def _has(parameter, given):
    """Returns whether the module has the parameter in its variant, such as ``variant="pyg"``."""
    asked = (condition.partition("=") for condition in parameter.when if "=" in condition)
    return all(given[name] == value for name, _, value in asked)


def _is_wanted(parameter, given):
    """Returns whether all options request a parameter. An option is a flag, a size, or a tuple of parameter names."""
    for option in (given[name] for name in parameter.when if "=" not in name):
        if isinstance(option, (tuple, frozenset)):
            if parameter.name not in option:
                return False
        elif option is None or (isinstance(option, (bool, np.bool_)) and not option):
            return False
    return True


def _check_biases(module, given):
    """Raises a ValueError unless ``use_bias`` is True, False or a tuple of names of the module's biases."""
    use_bias = given.get("use_bias", True)
    if isinstance(use_bias, (bool, np.bool_)):
        return
    biases = [p for p in SPECS[module].parameters if "use_bias" in p.when]
    names = [p.name for p in biases if _has(p, given)]
    if not isinstance(use_bias, (tuple, frozenset)) or not set(use_bias) <= set(names):
        needs = f"True, False or a tuple of {', '.join(names)}"
        if not names:
            options = sorted({condition.partition("=")[0] for p in biases for condition in p.when if "=" in condition})
            shown = " and ".join(f"`{option}` {given[option]!r}" for option in options)
            needs = f"True or False, as the module has no biases with {shown}"
        raise ValueError(f"{module}: `use_bias` is {use_bias!r}, needs {needs}")


def _size(module, parameter, axis, given):
    """Returns the size of an axis such as d, d+e or 3d; raises a ValueError if an argument in it is no valid size."""
    spec, total = SPECS[module], 0
    for number, symbol in _TERM.findall(axis):
        argument = spec.sizes[symbol]
        if _given(argument, given) is None:
            raise ValueError(
                f"{module}: `{parameter.name}` [{', '.join(parameter.axes)}] needs `{argument}`, which is None"
            )
        may_be_0 = parameter.init in FIXED or f"{symbol} may be 0" in table.get(spec.function).rules
        total += int(number or 1) * checked_size(module, argument, _given(argument, given), 0 if may_be_0 else 1)
    return total


def _given(argument, given):
    """Returns the given size; ``num_queries=None`` counts as 1, for one query whose axis the results do not have."""
    return 1 if argument == "num_queries" and given[argument] is None else given[argument]


def resolved(module: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments and derived sizes such as ``head_features``; replaces None where the spec has a default."""
    spec, given = SPECS[module], dict(given)
    for argument, default in spec.defaults.items():
        if given.get(argument) is None:
            given[argument] = default(given) if callable(default) else given[default]
    if "head_features" in spec.sizes.values():
        width = given["qkv_features"] if "qkv_features" in given else given["in_features"]
        given["head_features"] = head_features(module, given["num_heads"], width)
    return given


def read_sizes(module: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the data's sizes, keyed by the constructor's arguments; raises the function's errors for wrong arrays."""
    spec = SPECS[module]
    _, sizes = _read(spec.function, data)
    return {spec.sizes[symbol]: size for symbol, size in sizes.items() if symbol in spec.sizes}


def check_options(module: str, given: Mapping[str, Any]):
    """Raises an error at construction for options with which no call could work.

    Args:
      module: a key of :data:`SPECS`.
      given: the constructor's arguments by name, or those of them that are known.

    Raises:
      ValueError: an option that the module's function does not take, or does not take with the module's parameters; a
        value that is not a number (or for ``sink`` "learned"), a dtype that is not floating, a rate outside of 0 to 1, or a number that is 0 where
        the function does not allow it.
    """
    row, sink = table.get(SPECS[module].function), given.get("sink")
    if isinstance(sink, str):
        contract.checked_static(module, "sink", sink, ("learned",))
    elif sink is not None:
        _check_number(module, "sink", sink)
        if np.ndim(sink):
            raise ValueError(f"{module}: `sink` has shape {np.shape(sink)}, needs None, a number or 'learned'")
    for key in row.options.keys() & given.keys():
        contract.checked_static(module, key, given[key], row.options[key], row.refused)
    contract.check_combinations(module, row, {**given, **_present(module, given)})
    for key in sorted(row.arguments.keys() & given.keys()):
        if row.arguments[key].numeric and given[key] is not None:
            _check_number(module, key, given[key])
    check_dtypes(module, given)
    if "dropout_rate" in given:
        check_rate(module, given["dropout_rate"])
    if all(rule.argument in given for rule in row.relations if isinstance(rule, language.NotZero)):
        contract.check_not_zero(module, row, given)


def _present(module, given):
    """Returns the module's parameters as keys, without those that depend on arguments that ``given`` lacks."""
    known = [p for p in SPECS[module].parameters if all(each.partition("=")[0] in given for each in p.when)]
    return {parameter.name: True for parameter in known if _has(parameter, given) and _is_wanted(parameter, given)}


def _check_number(module, key, value):
    """Raises a ValueError for a value that is no real number or array of them; JAX arrays and variables pass."""
    if isinstance(value, (nnx.Variable, jax.Array)):  # a parameter of that name, or a traced number
        return
    if isinstance(value, (bool, np.bool_)) or contract.kind_of(np.asarray(value).dtype) not in ("f", "i", "u"):
        raise ValueError(f"{module}: `{key}` is {value!r}, needs a number")


def check_dtypes(module: str, given: Mapping[str, Any]):
    """Raises a ValueError unless ``param_dtype`` is one of :data:`FLOATING`, and ``dtype`` one of them or None."""
    for key, optional in (("dtype", True), ("param_dtype", False)):
        value = given.get(key, jnp.float32)
        if value is None and optional:
            continue
        try:
            name = "None" if value is None else jnp.dtype(value).name
        except TypeError:
            name = repr(value)
        if name not in FLOATING:
            raise ValueError(f"{module}: `{key}` is {name}, needs one of {', '.join(FLOATING)}")


def sizes_of_data(module: str) -> tuple[tuple[str, int, str], ...]:
    """Returns (argument of the call, axis, argument of the constructor) for each size of the data; the last axis is -1."""
    if module not in SPECS:
        return ()
    spec, found = SPECS[module], []
    parameters = {parameter.name for parameter in spec.parameters}
    for key, argument in table.get(spec.function).arguments.items():
        if argument.kind == "data" and key not in parameters:
            for axis, symbol in enumerate(reversed(argument.own), 1):
                if symbol in spec.sizes:
                    found.append((key, -axis, spec.sizes[symbol]))
    return tuple(found)


def initializer(parameter: Parameter, given: Mapping[str, Any]) -> Initializer:
    """Returns the initializer of a parameter, from its spec or from the arguments of the constructor."""
    if callable(parameter.init):
        return parameter.init
    if parameter.init == "start":
        return nnx.initializers.constant(given[parameter.name])
    own = given.get(f"{parameter.name}_init")  # only of `out_kernel`
    return FIXED.get(parameter.init) or own or given[f"{parameter.init}_init"]


def multiplier_shapes(module: str, data: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Returns the shape of each dropout multiplier, which has one number for each weight, by the argument's name."""
    spec = SPECS[module]
    batch, sizes = _read(spec.function, data)
    arguments = table.get(spec.function).arguments
    shapes = {}
    for key, argument in arguments.items():
        if key.endswith("dropout_multiplier"):
            lacks = bool(argument.lacks) and given[spec.sizes[argument.lacks]] is None
            known = {symbol: _given(name, given) for symbol, name in spec.sizes.items() if name in given}
            shapes[key] = contract.full_shape(argument.shapes[lacks], batch, known | sizes)
    return shapes


def _read(function, data):
    """Returns the batch axes of the data, and the size of each axis by its symbol in the function's row."""
    arguments, batch, sizes = table.get(function).arguments, (), {}
    for key, value in data.items():
        contract.refuse_non_numeric(function, key, value)
        axes = [axis for axis in arguments[key].shapes[0] if axis != "..."]
        rank = value.ndim - len(axes)
        if rank < 0:
            raise ValueError(f"{function}: `{key}` has shape {tuple(value.shape)}, needs {arguments[key]}")
        batch = max(batch, tuple(value.shape[:rank]), key=len)
        sizes |= dict(zip(axes, value.shape[rank:], strict=True))
    return batch, sizes


def initialize(module: str, key: Any, shaped: Shaped, init: Initializer, dtype: Dtype):
    """Computes the initial value of a parameter. ``init`` is called with [fan-in, fan-out], also for heads and vectors.

    If no axis is contracted with data, as for biases, ``init`` is called with the parameter's shape. A Linen box or the
    metadata of an NNX variable, which partitioning wraps around a value, is preserved.
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
    names = _axis_names(flat)
    if len(names) > len(shape):
        raise ValueError(
            f"{module}: `{shaped.parameter.name}` has the shape {shape}, but its initializer names {len(names)} axes: {names}; "
            "see docs/scale.md#parameters-over-a-mesh"
        )
    if isinstance(flat, nnx.VariableMetadata):
        return replace(flat, raw_value=lay_out(flat.raw_value))
    return jax.tree.map(lay_out, flat)


def _axis_names(value):
    """Returns the names of mesh axes with which an initializer annotated a value; () without any."""
    if isinstance(value, nnx.VariableMetadata):
        return next((names for key, names in value.metadata.items() if "sharding" in key and names), ())
    return getattr(value, "names", ())


def check_rate(module: str, rate: float):
    """Raises a ValueError if a dropout rate is not a number from 0 to 1."""
    number = isinstance(rate, (int, float, np.integer, np.floating)) and not isinstance(rate, bool)
    if not number or not 0 <= rate <= 1:
        raise ValueError(f"{module}: `dropout_rate` is {rate!r}, needs a number from 0 to 1")


def cast(value, dtype: Dtype | None):
    """Casts an array of real numbers to a dtype. Anything else, and everything if the dtype is None, stays as it is."""
    if (
        dtype is None
        or isinstance(value, np.ma.MaskedArray)
        or contract.kind_of(getattr(value, "dtype", None)) not in ("f", "i", "u")
    ):
        return value
    return jnp.asarray(value.astype(dtype) if isinstance(value, np.ndarray) else value, dtype)  # JAX may wrap integers
