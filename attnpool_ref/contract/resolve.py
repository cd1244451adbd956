"""Resolution of a call: sizes, broadcast shapes and the result's dtype from the shapes and dtypes of arguments."""

import functools
import inspect
from dataclasses import dataclass, field

import numpy as np

from attnpool_ref.contract.dtypes import MEANING, POLARITY, check_dtype, common_dtype, kind_of, refuse_non_numeric
from attnpool_ref.contract.keywords import with_suggestion
from attnpool_ref.contract.options import checked_static
from attnpool_ref.contract.shapes import (
    alternative,
    batch_of,
    check_broadcast,
    check_counts,
    check_lengths,
    full_shape,
    normalize_axis,
    own_axes,
    shape_text,
    sizes_of,
)
from attnpool_ref.contract.suggestions import as_boolean, did_you_mean, substitutions, with_shape
from attnpool_ref.table.language import Argument, Excludes, Needs, arguments_of


@dataclass(frozen=True, eq=False)
class Call:
    """Sizes, shapes and dtype of a call, resolved from the shapes and dtypes of its arguments; hashable by identity.

    Attributes:
      batch: the sizes of the batch axes.
      sizes: the size of each named axis.
      dtype: the dtype of the result, or None if no argument that decides it has a floating dtype; callers then use the
        default floating dtype.
      targets: shapes after broadcasting, by argument: data and index arrays with batch axes, masks, lengths (and the
        mask that they replace), and other arguments that broadcast.
      limits: the largest allowed length, for each argument that holds lengths.
      arguments: the function's arguments, with the shapes that they may have in this call.
    """

    batch: tuple[int, ...]
    sizes: dict[str, int]
    dtype: np.dtype | None
    targets: dict[str, tuple[int, ...]]
    limits: dict[str, int]
    arguments: dict[str, Argument] = field(default_factory=dict)


@functools.cache
def signature_of(function):
    """Returns the signature; cached, because reading it costs more than the rest of a check."""
    return inspect.signature(function)


def bind(row, signature, args, kwargs):
    """Returns all arguments of a call by name, defaults included; static ones are Python values.

    Raises:
      TypeError: if the arguments do not fit the signature.
      ValueError: if the row does not allow the value of a static argument.
    """
    parameters = signature.parameters
    placed = [name for name, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD][: len(args)]
    values = {name: p.default for name, p in parameters.items()} | dict(zip(placed, args, strict=False)) | kwargs
    missing = len(placed) < len(args) or any(value is inspect.Parameter.empty for value in values.values())
    if missing or len(values) > len(parameters) or not kwargs.keys().isdisjoint(placed):
        try:  # only here, because signature.bind takes five times as long as the lines above
            for key in [key for key in kwargs if key not in parameters]:  # before a missing one that it may stand for
                raise TypeError(f"got an unexpected keyword argument '{key}'")
            signature.bind(*args, **kwargs)
        except TypeError as error:
            shown = {*row.arguments, *row.options, "return_weights"}  # the arguments that both packages have
            message = with_suggestion(str(error), kwargs, list(parameters), shown)
            if message.startswith("too many positional"):
                needed = [
                    f"`{p.name}=`" for p in parameters.values() if p.kind is p.KEYWORD_ONLY and p.default is p.empty
                ]
                message += did_you_mean(needed) or f"; after `{placed[-1]}` all are keywords"
            raise TypeError(f"{row.name}: {message}") from None
    for key, allowed in row.options.items():
        values[key] = checked_static(row.name, key, values[key], allowed, row.refused)
    if row.weights:
        values["return_weights"] = checked_static(row.name, "return_weights", values["return_weights"], "flag")
    return values


def resolve(row, values):
    """Returns the :class:`Call` of arguments, after a check of their shapes and dtypes against ``row``.

    Args:
      row: the :class:`~attnpool_ref.table.Variant`.
      values: every argument by name, as :func:`bind` returns them; arrays have ``shape`` and ``dtype``.

    Raises:
      TypeError: if an argument is not an array of numbers, or is None although it is required.
      ValueError: if a shape, a dtype or a combination of arguments disagrees with the row. If the call is valid after a
        likely substitution, such as of lengths passed as a mask, the message suggests it.
    """
    try:
        return _resolve(row, values)
    except ValueError as error:
        for substituted, suggestion, argument in substitutions(row, values, str(error)):
            if _agree(row, values | substituted):
                reason = str(error).partition("; did you mean")[0]
                if argument:
                    reason = f"{row.name}: {shape_text(argument.name, values[argument.name])}, needs {argument}"
                raise ValueError(f"{reason}; did you mean {suggestion}?") from None
        raise


def _resolve(row, values):
    name, arguments, given = row.name, arguments_of(row, values), {}
    for key, argument in arguments.items():
        value = values[key]
        if value is None and argument.optional:
            continue
        if value is None:
            reasons = [f": {reason}" for option, unlike, reason in row.refused if (option, unlike) == (key, None)]
            raise TypeError(f"{name}: `{key}` is None, needs an array{''.join(reasons)}")
        refuse_non_numeric(name, key, value)
        if argument.kind in ("mask", "bool") and key not in MEANING and kind_of(value.dtype) == "f":
            _refuse_floats(row, key, values)
        check_dtype(name, key, value, argument.kind)
        given[key] = value
    for key, allowed in row.options.items():
        if allowed == "axis":
            first = next(iter(given.values()))
            if first.ndim == 0:
                raise ValueError(f"{name}: `{next(iter(given))}` has shape (), needs at least one axis")
            normalize_axis(name, values[key], first.ndim)
    check_combinations(row.name, row, values)
    batch = batch_of(name, arguments, given)
    sizes = sizes_of(row, arguments, given, values, batch)
    targets, limits = {}, {}
    for key, value in given.items():
        argument = arguments[key]
        if argument.kind in ("data", "index") and argument.batched:
            rank = len(own_axes(alternative(name, argument, value, batch)))
            targets[key] = batch + tuple(value.shape[value.ndim - rank :] if value.ndim else ())
        elif argument.kind in ("mask", "stretch"):
            targets[key] = check_broadcast(name, argument, value, batch, sizes)
        elif argument.kind == "int":
            limits[key] = check_lengths(name, key, value, values, given)
        elif argument.kind == "lengths":
            mask = arguments[argument.mask].shapes[0]
            targets[argument.mask] = full_shape(mask, batch, sizes)
            targets[key] = check_counts(name, argument, value, batch, sizes)
            limits[key] = sizes[mask[-1]]
    return Call(batch, sizes, _result_dtype(arguments, given), targets, limits, arguments)


def _refuse_floats(row, key, values):
    """Raises the ValueError about a float mask.

    The message suggests arguments that are not given and whose shapes fit the floats, such as a query that was passed
    in the place of the mask.
    """
    floats = values[key]
    others = [
        f"`{other}=`"
        for other, argument in row.arguments.items()
        if argument.kind == "data" and values[other] is None
        if _agree(row, values | {key: None, other: floats})
    ]
    repairs = as_boolean(key, floats)
    if others and not _agree(row, values | {key: with_shape(floats, floats.shape, np.dtype(bool))}):
        repairs = []
    raise ValueError(f"{row.name}: `{key}` has dtype {floats.dtype}, but {POLARITY}{did_you_mean(others + repairs)}")


def _agree(row, values):
    """Returns whether a call with these arguments would pass."""
    try:
        _resolve(row, values)
    except (TypeError, ValueError):
        return False
    return True


def check_combinations(name, row, values):
    """Raises a ValueError for two arguments that exclude each other, or for one without an argument that it needs.

    ``name`` is the function in the message. Rules about arguments that are not in ``values`` are skipped.
    """
    for rule in row.relations:
        if isinstance(rule, Excludes):
            a, b = rule.first, rule.second
            if values.get(a) is not None and values.get(b) is not None:
                raise ValueError(f"{name}: `{a}` and `{b}` are both given, needs at most one of them")
        elif isinstance(rule, Needs) and values.get(rule.argument) is not None:
            a, b = rule.argument, rule.option
            if b not in values or rule.met(values):
                continue
            if rule.value:
                raise ValueError(f"{name}: `{a}` is given with `{b}` {values[b]!r}, needs {rule.value!r}")
            repair = f"; did you mean `{b}=True`?" if b in row.options else f", needs `{b}` as well"
            raise ValueError(f"{name}: `{a}` is given without `{b}`{repair}")


def _result_dtype(arguments, given):
    """Returns the dtype of the result, from data and parameters other than arrays of shape ()."""
    deciding = [v.dtype for k, v in given.items() if arguments[k].kind in ("data", "parameter") and v.ndim]
    return common_dtype(dtype for dtype in deciding if kind_of(dtype) == "f")
