"""Argument checks and their messages: the promise that both packages share. No arithmetic on data.

:func:`bind` gives every argument a name, :func:`resolve` reads a row (:mod:`attnpool_ref.language`) and refuses or
passes: what passes is described by a :class:`Call`. It looks at shapes and dtypes alone, so that it can run while JAX
traces, and once a signature. :func:`check_values` looks at masks, lengths and segment numbers that are at hand on the host.
"""

import functools
import inspect
import math
import operator
import re
import types
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attnpool_ref import arrays
from attnpool_ref.language import (
    INTEGERS,
    Argument,
    Equal,
    Excludes,
    MayBeEmpty,
    Needs,
    NotZero,
    OrFunction,
    arguments_of,
    terms,
)

FEATURES = frozenset({"d", "e", "v", "c", "c'", "h", "f", "o", "q", "H", "K", "r"})
"""Axes that must not be empty: a vector of width 0 is a mistake, a sequence of length 0 is an empty row."""

COUNTS = ("num_segments",)
"""Options that are the size of an axis of arguments."""

DTYPES = ("float16", "bfloat16", "float32", "float64")

_NARROW = re.compile(r"(u?int|float)\d")
_POLARITY = "a mask is boolean, True = real (`~mask` where True means padding)"
_MEANING = {"adjacency": "an adjacency is boolean, True = neighbour"}  # every other boolean array is a mask


@dataclass(frozen=True, eq=False)
class Call:
    """What a signature comes to: all that the shapes and dtypes of a call's arguments decide. Hashable, by identity.

    Attributes:
      batch: the batch axes, as sizes.
      sizes: the size of each named axis.
      dtype: the result's dtype, or None where integers alone decide nothing.
      targets: for each data array with batch axes, mask and stretched array the shape to which it broadcasts.
      limits: the largest length, for each argument that holds lengths.
      arguments: the row's arguments, with the shapes that they may have in this call.
    """

    batch: tuple[int, ...]
    sizes: dict[str, int]
    dtype: np.dtype | None
    targets: dict[str, tuple[int, ...]]
    limits: dict[str, int]
    arguments: dict[str, Argument] = field(default_factory=dict)


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


def bind(row, signature, args, kwargs):
    """All arguments of one call by name, defaults included, the static ones as Python values.

    Raises:
      TypeError: the arguments do not fit the signature.
      ValueError: a static argument is not what the row allows.
    """
    parameters = signature.parameters
    placed = [name for name, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD][: len(args)]
    values = {name: p.default for name, p in parameters.items()} | dict(zip(placed, args, strict=False)) | kwargs
    missing = len(placed) < len(args) or any(value is inspect.Parameter.empty for value in values.values())
    if missing or len(values) > len(parameters) or not kwargs.keys().isdisjoint(placed):
        try:  # what signature.bind alone would do, in a fifth of its time
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{row.name}: {error}") from None
    for key, allowed in row.options.items():
        values[key] = checked_static(row.name, key, values[key], allowed, row.refused)
    if row.weights:
        values["return_weights"] = checked_static(row.name, "return_weights", values["return_weights"], "flag")
    return values


def refuse_non_numeric(name, argument, value):
    """Raises TypeError if ``value`` is no array of numbers."""
    if value is None:
        raise TypeError(f"{name}: `{argument}` is None, needs an array")
    dtype = getattr(value, "dtype", None)
    if kind_of(dtype) and hasattr(value, "shape"):
        return
    if not hasattr(dtype, "name") or not hasattr(value, "shape"):  # torch has dtypes too, which have no name
        arrays.refuse(name, argument, value)
    repair = arrays.repair(name, argument, value) if isinstance(value, np.ndarray) else ""
    raise TypeError(f"{name}: `{argument}` has dtype {dtype}, needs an array of numbers{repair}")


@functools.cache
def name_of(dtype):
    """The dtype's name, kept: NumPy puts it together anew each time."""
    return dtype.name


def kind_of(dtype):
    """NumPy's letter for a dtype of numbers, that of ml_dtypes' too (NumPy says V); "" for any other."""
    if not isinstance(dtype, np.dtype):
        return ""  # a PRNG key's
    if dtype.kind in "buifc":
        return dtype.kind
    if name_of(dtype) == "bfloat16":
        return "f"
    match = _NARROW.match(name_of(dtype))
    return {"int": "i", "uint": "u", "float": "f"}[match[1]] if match else ""


def axes_text(size_of):
    """A shape as Python writes it."""
    return "(" + ", ".join(map(str, size_of)) + ("," if len(size_of) == 1 else "") + ")"


def resolve(row, values):
    """The :class:`Call` of arguments that agree with ``row``, by their shapes and dtypes alone.

    Args:
      row: the :class:`~attnpool_ref.variants.Variant`.
      values: every argument by name, as :func:`bind` gives them; arrays have ``shape`` and ``dtype``.

    Raises:
      TypeError: an argument is no numeric array, or is None and required.
      ValueError: any other disagreement with the row.
    """
    name, arguments, given = row.name, arguments_of(row, values), {}
    for key, argument in arguments.items():
        value = values[key]
        if value is None and argument.optional:
            continue
        refuse_non_numeric(name, key, value)
        if argument.kind == "mask" and kind_of(value.dtype) == "f":
            _refuse_floats(row, key, values)
        check_dtype(name, key, value, argument.kind)
        given[key] = value
    for key, allowed in row.options.items():
        if allowed == "axis":
            first = next(iter(given.values()))
            if first.ndim == 0:
                raise ValueError(f"{name}: `{next(iter(given))}` has shape (), needs at least one axis")
            normalize_axis(name, values[key], first.ndim)
    _check_company(row, values)
    batch = _batch(name, arguments, given)
    sizes = _sizes(row, arguments, given, values, batch)
    targets, limits = {}, {}
    for key, value in given.items():
        argument = arguments[key]
        if argument.kind in ("data", "index") and argument.batched:
            rank = len(_own(_alternative(name, argument, value, batch)))
            targets[key] = batch + tuple(value.shape[value.ndim - rank :] if value.ndim else ())
        elif argument.kind in ("mask", "stretch"):
            targets[key] = _check_broadcast(name, argument, value, batch, sizes)
        elif argument.kind == "int":
            limits[key] = _check_lengths(name, key, value, values, given)
        elif argument.kind == "lengths":
            mask = arguments[argument.mask].shapes[0]
            targets[argument.mask] = full_shape(mask, batch, sizes)
            targets[key] = _check_counts(name, argument, value, batch, sizes)
            limits[key] = sizes[mask[-1]]
    return Call(batch, sizes, _result_dtype(arguments, given), targets, limits, arguments)


def _refuse_floats(row, key, values):
    """Raises the ValueError of a mask of floats, which may have been meant for another argument.

    That is one that is not given, such as the query behind the mask, and fits.
    """
    floats = values[key]
    others = [
        f"`{other}=`"
        for other, argument in row.arguments.items()
        if argument.kind == "data" and values[other] is None
        if _agree(row, values | {key: None, other: floats})
    ]
    repairs = [
        f"`{key}.astype(bool)`",
        "`additive == 0` for an additive mask",
        "or `dtype=bool` in Flax's mask helpers",
    ]
    boolean = types.SimpleNamespace(shape=floats.shape, ndim=floats.ndim, dtype=np.dtype(bool))
    if others and not _agree(row, values | {key: boolean}):
        repairs = []
    raise ValueError(
        f"{row.name}: `{key}` has dtype {floats.dtype}, but {_POLARITY}; did you mean {', '.join(others + repairs)}?"
    )


def _agree(row, values):
    """Whether a call with these arguments would pass."""
    try:
        resolve(row, values)
    except (TypeError, ValueError):
        return False
    return True


def check_values(row, values, call):
    """Checks what stands in masks, adjacencies, lengths and segment numbers on the host; a device's are never read back.

    Raises:
      ValueError: an integer mask with another value than 0 and 1, a length or a segment number out of its range.
    """
    for key, argument in row.arguments.items():
        value = values[key]
        if argument.kind in ("mask", "bool"):
            _check_mask_values(row.name, key, value)
        elif argument.kind in ("int", "lengths") and _on_host(value) and np.size(value):
            low, high, limit = int(np.min(value)), int(np.max(value)), call.limits[key]
            if low < 0 or high > limit:
                raise ValueError(f"{row.name}: `{key}` has the value {low if low < 0 else high}, needs 0 to {limit}")
        elif argument.kind == "position" and _on_host(value) and int(value) < 0:
            raise ValueError(f"{row.name}: `{key}` has the value {int(value)}, needs at least 0")
        elif argument.kind == "index" and _on_host(value):
            _check_index(row, key, values, call)
        elif argument.kind == "segments" and _on_host(value) and np.size(value):
            low, high, count = int(np.min(value)), int(np.max(value)), call.sizes["num_segments"]
            if low < 0 or high >= count:
                wrong = low if low < 0 else high
                raise ValueError(
                    f"{row.name}: `{key}` has the value {wrong}, needs 0 to `num_segments` - 1 = {count - 1}"
                )
    for rule in row.relations:
        if isinstance(rule, NotZero) and not values[rule.option]:
            value = values[rule.argument]
            if (_on_host(value) or isinstance(value, (int, float))) and np.any(np.equal(value, 0)):
                raise ValueError(f"{row.name}: `{rule.argument}` has the value 0, needs `{rule.option}=True` there")


def checked_static(name, key, value, allowed, refused=()) -> Any:
    """A static argument as a Python value, refused if it is not what the row allows, with the reason if there is one."""
    if isinstance(allowed, OrFunction) and callable(value):
        if getattr(type(value), "__hash__", None) is None:
            raise ValueError(
                f"{name}: `{key}` is a {type(value).__name__} without a hash, needs a function that has one"
            )
        return value
    if isinstance(allowed, tuple):
        if not isinstance(value, str) or value not in allowed:
            kind = "a function" if callable(value) else value
            reasons = [f": {reason}" for option, unlike, reason in refused if (option, unlike) == (key, kind)]
            or_function = ", or a function (scores, mask) -> weights" if isinstance(allowed, OrFunction) else ""
            names = ", ".join(map(repr, allowed))
            raise ValueError(f"{name}: `{key}` is {value!r}, needs one of {names}{or_function}{''.join(reasons)}")
        return value
    needs = "True or False" if allowed == "flag" else "an integer"
    if getattr(value, "shape", None) == () and kind_of(getattr(value, "dtype", None)):
        try:
            value = np.asarray(value).item()
        except TypeError:  # a tracer
            raise ValueError(
                f"{name}: `{key}` is traced, needs {needs} whose value is known while JAX traces; "
                f"did you mean `static_argnames`?"
            ) from None
    if allowed == "flag":
        if not isinstance(value, bool):
            raise ValueError(f"{name}: `{key}` is {value!r}, needs {needs}")
        for option, unlike, reason in refused:
            if (option, unlike) == (key, value):
                raise ValueError(f"{name}: `{key}` is {value!r}, needs {not value!r}: {reason}")
        return value
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name}: `{key}` is {value!r}, needs {needs}") from None
    least = {"size": 0, "count": 0, "positive": 1}.get(allowed)
    if isinstance(value, bool) or (least is not None and number < least):
        raise ValueError(f"{name}: `{key}` is {value!r}, needs an integer of at least {least or 0}")
    return number


def check_weights(normalizer, weights, shape):
    """Refuses what a function in a normaliser's place returned, if it is no array of numbers of the scores' shape."""
    name = getattr(normalizer, "__name__", type(normalizer).__name__)
    refuse_non_numeric(name, "weights", weights)
    if kind_of(weights.dtype) == "c":
        raise ValueError(f"{name}: `weights` has dtype {weights.dtype}, needs real numbers")
    if tuple(weights.shape) != tuple(shape):
        raise ValueError(
            f"{name}: `weights` has shape {axes_text(weights.shape)}, needs that of the scores, {axes_text(shape)}"
        )


def check_dtype(name, key, value, role="data"):
    """Raises a ValueError if an argument of this kind cannot have the dtype of ``value``."""
    role = "mask" if role == "bool" and key not in _MEANING else role
    dtype, kind = value.dtype, kind_of(value.dtype)
    if role in ("mask", "bool") and kind in "fc":
        repair = f"; did you mean `{key} != 0`?" if role == "bool" else ""
        raise ValueError(f"{name}: `{key}` has dtype {dtype}, but {_MEANING.get(key, _POLARITY)}{repair}")
    if role in INTEGERS and kind not in "ui":
        repair = f"{key.removesuffix('lengths')}mask=" if role == "lengths" and kind == "b" else f"{key}.astype(int)"
        raise ValueError(f"{name}: `{key}` has dtype {dtype}, needs integers; did you mean `{repair}`?")
    if kind == "c":
        raise ValueError(f"{name}: `{key}` has dtype {dtype}, needs real numbers")
    if dtype.kind == "V" and kind != "f":
        raise ValueError(
            f"{name}: `{key}` has dtype {dtype}, which is too narrow, needs integers of at least 8 bits; "
            f"did you mean `{key}.astype('int8')`?"
        )
    if kind == "f" and name_of(dtype) not in DTYPES:
        width, repair = ("too wide", "float64") if dtype.itemsize > 8 else ("too narrow", "float32")
        raise ValueError(
            f"{name}: `{key}` has dtype {dtype}, which is {width}, needs one of {', '.join(DTYPES)} or integers; "
            f"did you mean `{key}.astype('{repair}')`?"
        )
    if key == "weights" and kind == "b":
        raise ValueError(f"{name}: `weights` has dtype bool, needs numbers; did you mean `mask=`?")


def _check_index(row, key, values, call):
    """Refuses an index beyond `max_length`; what a mask on the host calls padding may hold anything, one elsewhere all."""
    value, limit = values[key], values["max_length"]
    for argument in row.arguments.values():
        mask = values[argument.name]
        if argument.kind == "mask" and mask is not None:
            if not _on_host(mask):
                return
            real = np.broadcast_to(mask, call.targets[argument.name]).astype(bool)
            value = np.broadcast_to(value, call.targets[key])[real]
    if np.size(value):
        low, high = int(np.min(value)), int(np.max(value))
        if low < 0 or high >= limit:
            wrong = low if low < 0 else high
            raise ValueError(f"{row.name}: `{key}` has the value {wrong}, needs 0 to `max_length` - 1 = {limit - 1}")


def _on_host(value):
    return isinstance(value, (np.ndarray, np.generic))


def _check_mask_values(name, key, value):
    if _on_host(value) and value.dtype.kind in "ui" and np.size(value):
        low, high = int(np.min(value)), int(np.max(value))
        if low < 0 or high > 1:
            worst, repair = low if low < 0 else high, "" if key in _MEANING else ", or `lengths_to_mask` for lengths"
            raise ValueError(
                f"{name}: `{key}` has the value {worst}, but {_MEANING.get(key, _POLARITY)}, or 0/1 integers; "
                f"did you mean `{key} != 0`{repair}?"
            )


def _check_company(row, values):
    for rule in row.relations:
        if isinstance(rule, Excludes):
            a, b = rule.first, rule.second
            if values[a] is not None and values[b] is not None:
                raise ValueError(f"{row.name}: `{a}` and `{b}` are both given, needs at most one of them")
        elif isinstance(rule, Needs) and values[rule.argument] is not None and not rule.met(values):
            a, b = rule.argument, rule.option
            if rule.value:
                raise ValueError(f"{row.name}: `{a}` is given with `{b}` {values[b]!r}, needs {rule.value!r}")
            repair = f"; did you mean `{b}=True`?" if b in row.options else f", needs `{b}` as well"
            raise ValueError(f"{row.name}: `{a}` is given without `{b}`{repair}")


def _batch(name, arguments, given):
    """The batch axes that the data arguments have."""
    batch, donor = (), None
    for key, value in given.items():
        argument = arguments[key]
        if argument.kind not in ("data", "index") or not argument.batched:
            continue
        rank = len(argument.own)
        if len(argument.shapes) > 1:  # the data before it say how many batch axes there are
            rank = len(_own(_alternative(name, argument, value, batch)))
        if value.ndim < max(rank, 1):
            raise ValueError(f"{name}: `{key}` has shape {axes_text(value.shape)}, needs {argument}")
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
                f"{name}: `{key}` has batch axes {axes_text(own)} but `{donor}` has {axes_text(batch)}; batch axes are equal "
                f"or absent, none is stretched{repair}"
            )
    return batch


def _sizes(row, arguments, given, values, batch):
    """The size of each named axis, from the data and the parameters; disagreements are refused."""
    sizes, owners = {key: values[key] for key in COUNTS if key in row.options} | row.sizes, {}
    same = unions(row, values)
    may_be_0 = {rule.axis for rule in row.relations if isinstance(rule, MayBeEmpty)}

    def root(axis):
        return same.get(axis, axis)

    def settle(key, argument, value, axis, size):
        axis_name = root(axis)
        if axis_name not in sizes:
            sizes[axis_name], owners[axis_name] = size, key
        elif sizes[axis_name] != size:
            other = owners.get(axis_name)
            theirs = f"`{other}` has {axes_text(given[other].shape)}" if other else f"`{axis}` is {sizes[axis_name]}"
            raise ValueError(
                f"{row.name}: `{key}` has shape {axes_text(value.shape)} but {theirs}: "
                f"`{key}` needs {argument} with {axis} = {sizes[axis_name]}"
            )

    pending, having = [], {}
    for key, value in given.items():
        argument = arguments[key]
        if argument.kind not in ("data", "parameter", "bool", "number", "position", "segments", "index"):
            continue
        own = _own(_alternative(row.name, argument, value, batch))
        if argument.lacks:
            other, theirs = having.setdefault(argument.lacks, (key, argument.lacks in own))
            if theirs != (argument.lacks in own):
                needs = ", ".join(argument.shapes[0 if theirs else 1])
                raise ValueError(
                    f"{row.name}: `{key}` has shape {axes_text(value.shape)} but `{other}` has "
                    f"{axes_text(given[other].shape)}: `{key}` needs [{needs}]"
                )
        for axis, size in zip(own, value.shape[value.ndim - len(own) :], strict=True):
            if terms(axis) == [(1, axis)]:
                settle(key, argument, value, axis, size)
            else:
                pending.append((key, argument, value, axis, size))
    for key, argument, value, axis, size in pending:
        unknown = [symbol for _, symbol in terms(axis) if root(symbol) not in sizes]
        if len(unknown) == 1:  # what the others leave of it
            rest = size - size_of(axis, {symbol: sizes.get(root(symbol), 0) for _, symbol in terms(axis)})
            settle(key, argument, value, unknown[0], max(rest, 0))
        total = size_of(axis, {symbol: sizes[root(symbol)] for _, symbol in terms(axis)})
        if total != size:
            raise ValueError(
                f"{row.name}: `{key}` has shape {axes_text(value.shape)}, needs {argument} with {axis} = {total}"
            )
    for axis, rooted in same.items():
        if rooted in sizes:
            sizes[axis], owners[axis] = sizes[rooted], owners[rooted]
    for axis, size in sizes.items():
        if axis in FEATURES and axis not in may_be_0 and size == 0:
            key = owners[axis]
            raise ValueError(
                f"{row.name}: `{key}` has shape {axes_text(given[key].shape)}, needs {arguments[key]} with {axis} at least 1"
            )
    return sizes


def size_of(axis, sizes):
    """The size of an axis that may be a sum of multiples, such as d+e or 3d."""
    return sum(number * sizes[symbol] for number, symbol in terms(axis))


def unions(row, values):
    """Axes that the rules make equal in this call: each to the one that stands for it."""
    same = {}

    def find(axis):
        while axis in same:
            axis = same[axis]
        return axis

    for rule in row.relations:
        if isinstance(rule, Equal):
            present = any(values[name] is not None for name in rule.names)
            if present == rule.present and find(rule.first) != find(rule.second):
                same[find(rule.first)] = find(rule.second)
    return {axis: find(axis) for axis in same}


def _alternative(name, argument, value, batch):
    """The alternative of the argument's shapes that fits the value's rank beside the batch axes."""
    shapes = argument.shapes
    if argument.batched and len(shapes) > 1:
        fitting = [axes for axes in shapes if value.ndim == len(_own(axes)) + len(batch)]
        fitting += [axes for axes in shapes[:1] if value.ndim == len(_own(axes))]
    else:
        fitting = [axes for axes in shapes if value.ndim == len(_own(axes))]
        fitting += [axes for axes in shapes if "..." in axes and value.ndim >= max(len(_own(axes)), 1)]
    if not fitting:
        raise ValueError(f"{name}: `{argument.name}` has shape {axes_text(value.shape)}, needs {argument}")
    return fitting[0]


def _own(axes):
    """The axes that are no batch axes."""
    return [axis for axis in axes if axis != "..."]


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
        needs = f"needs a shape that broadcasts to {argument} = {axes_text(target)}"
        raise ValueError(
            f"{name}: `{argument.name}` has shape {axes_text(value.shape)}, {needs}{_repair(argument, value, batch, target)}"
        )
    raise ValueError(
        f"{name}: `{argument.name}` has shape {axes_text(value.shape)}, needs a shape that broadcasts to {argument} = {axes_text(target)}"
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
    """The size of the axis that lengths count along; they have a prefix of the scores' other axes."""
    if "max_length" in values:
        limit = values["max_length"]
    else:
        scores = given["scores"]
        axis = normalize_axis(name, values["axis"], scores.ndim)
        limit = scores.shape[axis]
        rest = tuple(s for i, s in enumerate(scores.shape) if i != axis)
        if tuple(value.shape) != rest[: value.ndim]:
            raise ValueError(
                f"{name}: `{key}` has shape {axes_text(value.shape)}, needs () or the first axes of {axes_text(rest)}, which are "
                f"those of `scores` without axis {values['axis']}"
            )
    return limit


def _check_counts(name, argument, value, batch, sizes):
    """The shape to which lengths in place of a mask broadcast: the axes of the mask without its last one."""
    axes, shape = argument.shapes[0], tuple(value.shape)
    whole = full_shape(axes, batch, sizes)
    own = full_shape(axes[:1], batch, sizes)
    if shape in ((), own, whole):
        return whole
    needs = " or ".join(dict.fromkeys(axes_text(legal) for legal in ((), own, whole)))
    raise ValueError(f"{name}: `{argument.name}` has shape {axes_text(shape)}, needs {needs}")


def with_all_axes(shape, whole):
    """The shape of lengths, () or the first axes of ``whole``, with an axis of 1 for each that is missing."""
    return tuple(shape) + (1,) * (len(whole) - len(shape))


def normalize_axis(name, axis, ndim):
    """The axis counted from 0; a ValueError that names the function if there is no such axis."""
    if not -ndim <= axis < ndim:
        raise ValueError(f"{name}: `axis` is {axis}, needs {-ndim} to {ndim - 1} for an array with {ndim} axes")
    return axis % ndim


def _result_dtype(arguments, given):
    """The dtype that data and parameters decide.

    Numbers decide nothing, also where they stand for a parameter (a bias of shape ()).
    """
    deciding = [v.dtype for k, v in given.items() if arguments[k].kind in ("data", "parameter") and v.ndim]
    return common_dtype(dtype for dtype in deciding if kind_of(dtype) == "f")


def common_dtype(dtypes):
    """The dtype that floating dtypes together decide, as arguments of one call; None where there is none."""
    floats = {name_of(dtype): dtype if dtype.isnative else dtype.newbyteorder("=") for dtype in dtypes}
    for wide in ("float64", "float32"):
        if wide in floats:
            return floats[wide]
    if len(floats) == 2:
        return np.dtype("float32")
    return next(iter(floats.values()), None)
