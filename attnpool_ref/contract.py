"""Argument checks and their messages: the promise that both packages share. No arithmetic on data.

``check`` reads a row's shapes (the language is described in :mod:`attnpool_ref.variants`) and refuses or passes;
what passes is described by a :class:`Checked`: the batch axes, the size of every named axis, the result's dtype.
It looks at shapes and dtypes alone, so that it can run while JAX traces, except for masks and lengths whose values
are at hand on the host.
"""

import functools
import inspect
import math
import operator
import re
from dataclasses import dataclass

import numpy as np

FEATURES = frozenset({"d", "e", "v", "c", "c'", "h", "f", "o", "q", "H"})
"""Axes that must not be empty: a vector of width 0 is a mistake, a sequence of length 0 is an empty row."""

DTYPES = ("float16", "bfloat16", "float32", "float64")

_ARGUMENT = re.compile(r"(\w+)(\?)?(~)?(?::(\w+))?((?:\[[^\]]*\])(?:\|\[[^\]]*\])*)")
_TERM = re.compile(r"(\d*)([A-Za-z]\w*'?)")
_POLARITY = "a mask is boolean, True = real (`~mask` where True means padding)"


@dataclass(frozen=True)
class Argument:
    """One argument as a row's shapes describe it; ``shapes`` are its alternatives, each a tuple of axes."""

    name: str
    optional: bool
    kind: str  # data, parameter, mask, stretch, number, int, bool
    shapes: tuple[tuple[str, ...], ...]

    def __str__(self):
        return " or ".join(f"[{', '.join(axes)}]" for axes in self.shapes)


@dataclass(frozen=True)
class Checked:
    """What the arguments of one call turned out to be.

    Attributes:
      batch: the batch axes, as sizes.
      sizes: the size of each named axis.
      dtype: the result's dtype, or None where integers alone decide nothing.
      targets: for each data array, mask and stretched array the shape to which it broadcasts.
    """

    batch: tuple[int, ...]
    sizes: dict[str, int]
    dtype: np.dtype | None
    targets: dict[str, tuple[int, ...]]


@functools.cache
def arguments_of(shapes):
    """The arguments that a row's shapes name, as a dict in their order."""
    found = {}
    for name, optional, stretch, kind, alternatives in _ARGUMENT.findall(shapes.split("->")[0]):
        axes = tuple(
            tuple(a.strip() for a in part.split(",") if a.strip()) for part in re.findall(r"\[([^\]]*)\]", alternatives)
        )
        if not kind:
            if name == "mask" or name.endswith("_mask"):
                kind = "mask"
            elif stretch:
                kind = "stretch"
            elif axes == ((),):
                kind = "number"
            else:
                kind = "data" if any("..." in a for a in axes) else "parameter"
        found[name] = Argument(name, bool(optional), kind, axes)
    return found


@functools.cache
def signature_of(function):
    """The signature, kept: reading it anew costs more than the rest of a check."""
    return inspect.signature(function)


def roundings(terms):
    """How many roundings two sums of so many equal products may lie apart, relative to the product of the norms.

    Both packages call equal what is no further apart, each with the epsilon of its computing dtype: the first of equal
    cosines, equal largest products, a residual of 0. Rounding errors add up like a random walk (Higham and Mary 2019,
    theorem 2.4): twice the root of their number, and a few for the norms.
    """
    return 4 + 2 * math.sqrt(terms)


def bind(name, signature, args, kwargs):
    """All arguments of one call by name, defaults included; a TypeError that names the function if they do not fit."""
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
    bound.apply_defaults()
    return bound.arguments


def refuse_non_numeric(name, argument, value):
    """Raises TypeError if ``value`` is no array of numbers."""
    dtype = getattr(value, "dtype", None)
    if value is None:
        raise TypeError(f"{name}: `{argument}` is None, needs an array")
    if dtype is None or not hasattr(value, "shape"):
        raise TypeError(f"{name}: `{argument}` is a {type(value).__name__}, needs an array of numbers")
    if not _is_numeric(dtype):
        raise TypeError(f"{name}: `{argument}` has dtype {dtype}, needs an array of numbers")


def _is_numeric(dtype):
    return _is_float(dtype) or getattr(dtype, "kind", "") in "buic"


def _is_float(dtype):
    return getattr(dtype, "kind", "") == "f" or dtype.name in DTYPES


def _axes(size_of):
    return "(" + ", ".join(map(str, size_of)) + ("," if len(size_of) == 1 else "") + ")"


def check(row, values):
    """Checks the arguments of one call against ``row``.

    Args:
      row: the :class:`~attnpool_ref.variants.Variant`.
      values: every argument by name; arrays have ``shape`` and ``dtype``.

    Returns:
      A :class:`Checked`.

    Raises:
      TypeError: an argument is no numeric array, or is None and required.
      ValueError: any other disagreement with the row.
    """
    name, arguments = row.name, arguments_of(row.shapes)
    for key, allowed in row.options.items():
        _check_option(name, key, values[key], allowed)
    if row.weights:
        _check_option(name, "return_weights", values["return_weights"], "flag")
    given = {}
    for key, argument in arguments.items():
        value = values[key]
        if value is None and argument.optional:
            continue
        refuse_non_numeric(name, key, value)
        _check_dtype(name, argument, value)
        given[key] = value
    for key, allowed in row.options.items():
        if allowed == "axis":
            first = next(iter(given.values()))
            if first.ndim == 0:
                raise ValueError(f"{name}: `{next(iter(given))}` has shape (), needs at least one axis")
            normalize_axis(name, values[key], first.ndim)
    _check_company(row, values)
    batch = _batch(name, arguments, given)
    sizes = _sizes(row, arguments, given, values)
    targets = {}
    for key, value in given.items():
        argument = arguments[key]
        if argument.kind == "data" and "..." in argument.shapes[0]:
            own = value.shape[value.ndim - _own_rank(argument) :] if value.ndim else ()
            targets[key] = batch + tuple(own)
        elif argument.kind in ("mask", "stretch"):
            targets[key] = _check_broadcast(name, argument, value, batch, sizes)
        elif argument.kind == "int":
            _check_lengths(name, key, value, values, given)
    return Checked(batch, sizes, _result_dtype(arguments, given), targets)


def _check_option(name, key, value, allowed):
    if allowed == "flag":
        if not isinstance(value, (bool, np.bool_)):
            raise ValueError(f"{name}: `{key}` is {value!r}, needs True or False")
    elif isinstance(allowed, tuple):
        if not isinstance(value, str) or value not in allowed:
            raise ValueError(f"{name}: `{key}` is {value!r}, needs one of {', '.join(map(repr, allowed))}")
    else:
        try:
            number = operator.index(value)
        except TypeError:
            raise ValueError(f"{name}: `{key}` is {value!r}, needs an integer") from None
        if isinstance(value, (bool, np.bool_)) or (allowed in ("size", "count") and number < 0):
            raise ValueError(f"{name}: `{key}` is {value!r}, needs an integer of at least 0")


def _check_dtype(name, argument, value):
    key, dtype, kind = argument.name, value.dtype, argument.kind
    if kind == "mask":
        if _is_float(dtype):
            raise ValueError(
                f"{name}: `{key}` has dtype {dtype}, but {_POLARITY}; did you mean `{key}.astype(bool)`, "
                f"`additive == 0` for an additive mask, or `dtype=bool` in Flax's mask helpers?"
            )
        if dtype.kind == "c":
            raise ValueError(f"{name}: `{key}` has dtype {dtype}, but {_POLARITY}")
        _check_mask_values(name, key, value)
    elif kind == "bool":
        if dtype.kind not in "bui":
            raise ValueError(f"{name}: `{key}` has dtype {dtype}, needs bool; did you mean `{key}.astype(bool)`?")
        _check_mask_values(name, key, value)
    elif kind == "int":
        if dtype.kind not in "ui":
            raise ValueError(f"{name}: `{key}` has dtype {dtype}, needs integers; did you mean `{key}.astype(int)`?")
    elif dtype.kind == "c":
        raise ValueError(f"{name}: `{key}` has dtype {dtype}, needs real numbers")
    elif _is_float(dtype) and dtype.name not in DTYPES:
        raise ValueError(f"{name}: `{key}` has dtype {dtype}, needs one of {', '.join(DTYPES)} or integers")
    elif key == "weights" and dtype.kind == "b":
        raise ValueError(f"{name}: `weights` has dtype bool, needs numbers; did you mean `mask=`?")


def _on_host(value):
    return isinstance(value, (np.ndarray, np.generic))


def _check_mask_values(name, key, value):
    if value.dtype.kind in "ui" and _on_host(value) and np.size(value):
        low, high = int(np.min(value)), int(np.max(value))
        if low < 0 or high > 1:
            worst = low if low < 0 else high
            raise ValueError(
                f"{name}: `{key}` has the value {worst}, but {_POLARITY}, or 0/1 integers; did you mean "
                f"`{key} != 0`, or `lengths_to_mask` for lengths?"
            )


def _check_company(row, values):
    for rule in row.rules:
        if match := re.fullmatch(r"not (\w+) with (\w+)", rule):
            a, b = match.groups()
            if values[a] is not None and values[b] is not None:
                raise ValueError(f"{row.name}: `{a}` and `{b}` are both given, needs at most one of them")
        elif match := re.fullmatch(r"(\w+) needs (\w+)", rule):
            a, b = match.groups()
            if values[a] is not None and not values[b]:
                raise ValueError(f"{row.name}: `{a}` is given without `{b}`; did you mean `{b}=True`?")


def _own_rank(argument):
    """Number of axes that are not batch axes."""
    return len([a for a in argument.shapes[0] if a != "..."])


def _batch(name, arguments, given):
    """The batch axes that the data arguments have."""
    batch, donor = (), None
    for key, value in given.items():
        argument = arguments[key]
        if argument.kind != "data" or "..." not in argument.shapes[0]:
            continue
        rank = _own_rank(argument)
        if value.ndim < max(rank, 1):
            raise ValueError(f"{name}: `{key}` has shape {_axes(value.shape)}, needs {argument}")
        own = tuple(value.shape[: value.ndim - rank])
        if not own:
            continue
        if donor is None:
            batch, donor = own, key
        elif own != batch:
            repair = ""
            for other, axes in ((key, own), (donor, batch)):
                if set(axes) == {1}:
                    repair = f"; did you mean `{other}[{', '.join('0' * len(axes))}]`, to share it, or `broadcast_to`?"
            raise ValueError(
                f"{name}: `{key}` has batch axes {_axes(own)} but `{donor}` has {_axes(batch)}; batch axes are equal "
                f"or absent, none is stretched{repair}"
            )
    return batch


def _sizes(row, arguments, given, values):
    """The size of each named axis, from the data and the parameters; disagreements are refused."""
    sizes, owners = {}, {}
    same = unions(row.rules, values)

    def root(axis):
        return same.get(axis, axis)

    def settle(key, argument, value, axis, size):
        axis_name = root(axis)
        if axis_name not in sizes:
            sizes[axis_name], owners[axis_name] = size, key
        elif sizes[axis_name] != size:
            other = owners[axis_name]
            raise ValueError(
                f"{row.name}: `{key}` has shape {_axes(value.shape)} but `{other}` has {_axes(given[other].shape)}: "
                f"`{key}` needs {argument} with {axis} = {sizes[axis_name]}"
            )

    pending = []
    for key, value in given.items():
        argument = arguments[key]
        if argument.kind not in ("data", "parameter", "bool", "number"):
            continue
        axes = _alternative(row.name, argument, value)
        own = [a for a in axes if a != "..."]
        for axis, size in zip(own, value.shape[value.ndim - len(own) :], strict=True):
            if re.fullmatch(r"[A-Za-z]\w*'?", axis):
                settle(key, argument, value, axis, size)
            else:
                pending.append((key, argument, value, axis, size))
    for key, argument, value, axis, size in pending:
        total = size_of(axis, {symbol: sizes[root(symbol)] for _, symbol in _TERM.findall(axis)})
        if total != size:
            raise ValueError(
                f"{row.name}: `{key}` has shape {_axes(value.shape)}, needs {argument} with {axis} = {total}"
            )
    for axis, rooted in same.items():
        if rooted in sizes:
            sizes[axis], owners[axis] = sizes[rooted], owners[rooted]
    for axis, size in sizes.items():
        if axis in FEATURES and size == 0 and f"{axis} may be 0" not in row.rules:
            key = owners[axis]
            raise ValueError(
                f"{row.name}: `{key}` has shape {_axes(given[key].shape)}, needs {arguments[key]} with {axis} at least 1"
            )
    return sizes


def size_of(axis, sizes):
    """The size of an axis that may be a sum of multiples, such as d+e or 3d."""
    return sum(int(number or 1) * sizes[symbol] for number, symbol in _TERM.findall(axis))


def unions(rules, values):
    """Axes that the rules make equal in this call: each to the one that stands for it."""
    same = {}

    def find(axis):
        while axis in same:
            axis = same[axis]
        return axis

    for rule in rules:
        if match := re.fullmatch(r"(\w+)=(\w+) (if|unless) (.+)", rule):
            a, b, word, names = match.groups()
            present = any(values[n] is not None for n in names.split(" or "))
            if present == (word == "if") and find(a) != find(b):
                same[find(a)] = find(b)
    return {axis: find(axis) for axis in same}


def _alternative(name, argument, value):
    """The alternative of the argument's shapes that fits the value's rank."""
    for axes in argument.shapes:
        own = len([a for a in axes if a != "..."])
        if value.ndim == own or ("..." in axes and value.ndim >= max(own, 1)):
            return axes
    raise ValueError(f"{name}: `{argument.name}` has shape {_axes(value.shape)}, needs {argument}")


def _check_broadcast(name, argument, value, batch, sizes):
    """The full shape to which a mask (or bias, or dropout multiplier) broadcasts."""
    targets = [full_shape(axes, batch, sizes) for axes in argument.shapes]
    for target in targets:
        if value.ndim <= len(target):
            if all(a in (1, b) for a, b in zip(value.shape[::-1], target[::-1], strict=False)):
                return target
            break
    target = targets[0]
    if argument.kind == "mask":
        needs = f"needs a shape that broadcasts to {argument} = {_axes(target)}"
        raise ValueError(
            f"{name}: `{argument.name}` has shape {_axes(value.shape)}, {needs}{_repair(argument, value, batch, target)}"
        )
    raise ValueError(
        f"{name}: `{argument.name}` has shape {_axes(value.shape)}, needs a shape that broadcasts to {argument} = {_axes(target)}"
    )


def full_shape(axes, batch, sizes):
    """The shape that ``axes`` stand for in this call."""
    return tuple(size for axis in axes for size in (batch if axis == "..." else (sizes[axis],)))


def _repair(argument, value, batch, target):
    """The likely repair of a mask whose shape does not fit."""
    key, shape = argument.name, tuple(value.shape)

    def fits(candidate):
        return len(candidate) <= len(target) and all(
            a in (1, b) for a, b in zip(candidate[::-1], target[::-1], strict=False)
        )

    if shape and fits((*shape[:-1], 1, shape[-1])):
        return f"; did you mean `{key}[..., None, :]`?"
    squeezed = tuple(s for s in shape if s != 1)
    if len(shape) > len(target) and fits(squeezed):
        index = ", ".join("0" if s == 1 else ":" for s in shape)
        return f"; did you mean `{key}[{index}]`?"
    if shape and len(shape) >= 2 and fits((*shape[:-2], shape[-1], shape[-2])):
        return f"; did you mean `{key}.swapaxes(-1, -2)`?"
    return ""


def _check_lengths(name, key, value, values, given):
    """Lengths have a prefix of the scores' axes and, where they can be read, values within the axis."""
    if "max_length" in values:
        limit = operator.index(values["max_length"])
    else:
        scores = given["scores"]
        axis = normalize_axis(name, values["axis"], scores.ndim)
        limit = scores.shape[axis]
        rest = tuple(s for i, s in enumerate(scores.shape) if i != axis)
        if tuple(value.shape) != rest[: value.ndim]:
            raise ValueError(
                f"{name}: `{key}` has shape {_axes(value.shape)}, needs () or the first axes of {_axes(rest)}, which are "
                f"those of `scores` without axis {values['axis']}"
            )
    if _on_host(value) and np.size(value):
        low, high = int(np.min(value)), int(np.max(value))
        if low < 0 or high > limit:
            raise ValueError(f"{name}: `{key}` has the value {low if low < 0 else high}, needs 0 to {limit}")


def normalize_axis(name, axis, ndim):
    """The axis counted from 0; a ValueError that names the function if there is no such axis."""
    number = operator.index(axis)
    if not -ndim <= number < ndim:
        raise ValueError(f"{name}: `axis` is {number}, needs {-ndim} to {ndim - 1} for an array with {ndim} axes")
    return number % ndim


def _result_dtype(arguments, given):
    """float64 wins, then float32; float16 beside bfloat16 gives float32; integers alone decide nothing (None).

    Numbers decide nothing either, also where they stand for a parameter (a bias of shape ()).
    """
    floats = {
        value.dtype.name: np.dtype(value.dtype)
        for key, value in given.items()
        if arguments[key].kind in ("data", "parameter") and value.ndim and _is_float(value.dtype)
    }
    for wide in ("float64", "float32"):
        if wide in floats:
            return floats[wide]
    if len(floats) == 2:
        return np.dtype("float32")
    return next(iter(floats.values()), None)
