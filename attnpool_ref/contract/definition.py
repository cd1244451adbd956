"""The `@definition` decorator: checks arguments, computes in float64, casts the result."""

import functools
import math
import warnings
from typing import Any

import numpy as np

from attnpool_ref import contract, table
from attnpool_ref.contract import docstrings, dtypes
from attnpool_ref.numerics import blocks


def definition(function=None, *, selects=False) -> Any:  # __init__.pyi has the public types
    """Turns the body of a definition into the public function.

    The body gets data (with all batch axes), parameters and numbers as float64 arrays, and boolean masks of the full
    shape, also if the caller gives lengths or neither; only the softmaxes convert their lengths themselves. The result
    of the body is cast to the result dtype that follows from the arguments (``docs/contract.md``). A function that
    returns states instead gets a dict of the arguments, with numbers in the caller's dtype, and the resolved call.

    The body is called on one block of examples after another (:mod:`attnpool_ref.numerics.blocks`), unless the function
    takes packed tokens or an option ``axis``, or returns a state. It may write into arrays with batch axes. The body of
    another definition is called as ``other.body``, without checks, on arrays like those that it would receive. Packed
    tokens come in the caller's dtype: the body converts those of one segment after another.

    Args:
      function: the body, which has the name of its row in the table. If its docstring has no section ``Raises``, it gets
        the one that follows from the row.
      selects: whether the body only selects elements. It then receives all examples at once, in the caller's dtype.
    """
    if function is None:
        return functools.partial(definition, selects=selects)
    row = table.get(function.__name__)
    arguments = row.arguments
    signature = contract.signature_of(function)
    resolved = {}
    in_blocks = _in_blocks(row) and not selects
    masks = [argument for argument in arguments.values() if argument.kind == "mask"]
    lengths = dict.fromkeys(key for key, argument in arguments.items() if argument.kind == "lengths")
    broadcast = [
        key
        for key, argument in arguments.items()
        if argument.kind != "mask" and (argument.kind == "index" or not argument.integers)
    ]
    received = {} if selects else _dtypes_of(row, in_blocks)

    def checked(args, kwargs):
        """Returns (arguments for the body by name, :class:`~attnpool_ref.contract.Call`, bytes of all examples)."""
        values = contract.bind(row, signature, args, kwargs)
        for key in arguments:
            if values[key] is not None:
                values[key] = as_array(row.name, key, values[key])
        call, size = _resolve_once(row, values, received, resolved)
        contract.check_values(row, values, call)
        for argument in masks:
            values[argument.name] = _full_mask(values[argument.name], argument, call, values)
        for key in broadcast:
            if values[key] is not None:
                values[key] = _broadcast(values[key], call.targets.get(key, values[key].shape))
        return values | lengths, call, size  # lengths are in the masks now

    @functools.wraps(function)
    def checked_definition(*args, **kwargs):
        try:
            values, call, size = checked(args, kwargs)
        except (TypeError, ValueError) as error:
            raise contract.without_frames(error) from None
        if row.state:
            return function(values, call)
        dtype = values.get("result_dtype") or call.dtype or np.dtype(np.float64)
        divided, batched = in_blocks and size > blocks.SIZE, {}
        for key, kind in received.items():
            if values[key] is None:
                continue
            if divided and call.arguments[key].batched:
                batched[key] = values.pop(key), kind
            else:
                values[key] = np.array(values[key], kind, order="C")
        if divided:
            return with_warning(
                row.name, dtype, lambda: blocks.call_in_blocks(function, call.batch, batched, values, dtype)
            )
        return with_warning(row.name, dtype, lambda: blocks.cast(function(**values), dtype))

    function.__doc__ = docstrings.with_errors(row, function)
    checked_definition.__doc__ = docstrings.help_text(function)
    checked_definition = contract.with_frame_name(checked_definition, function)
    checked_definition.__dict__["body"] = function
    return checked_definition


def with_warning(name, dtype, compute, level=3):
    """Returns what ``compute`` returns; an overflow in it is one warning at the line that called the function ``name``.

    NumPy's own warning would name a line of this package. ``level`` is the number of frames up to that line.
    """
    overflows = []
    warns = {"over": "call", "call": lambda *_: overflows.append(True)} if np.geterr()["over"] == "warn" else {}
    with np.errstate(**warns):
        result = compute()
    if overflows:
        warnings.warn(f"{name}: overflow on the way to a {dtype} result", RuntimeWarning, stacklevel=level)
    return result


def _in_blocks(row):
    """Returns whether the examples of a function are independent of one another, and first in each result."""
    first = all(axes[:1] == ("...",) for axes in (*row.results, *row.weight_results))
    return first and row.batched and "axis" not in row.options


def _dtypes_of(row, in_blocks):
    """Returns the dtypes in which a body receives its arguments, by name, without those that it receives as they are."""
    packed_axes = {axis for argument in row.arguments.values() if argument.kind == "segments" for axis in argument.own}
    dtypes = {}
    for key, argument in row.arguments.items():
        packed = argument.kind == "data" and not packed_axes.isdisjoint(argument.own)
        if packed or argument.kind in ("int", "position") or (argument.kind == "mask" and not in_blocks):
            continue
        integers = np.int64 if argument.integers else np.float64
        dtypes[key] = np.dtype(bool if argument.kind in ("mask", "bool") else integers)
    return dtypes


CACHE_SIZE = 256
"""Largest number of resolved calls (by shapes, dtypes and options) in the cache of a definition."""


def _resolve_once(row, values, received, resolved):
    """Resolves a call once for its shapes, dtypes and static arguments; ``resolved`` is the cache.

    Returns (the :class:`~attnpool_ref.contract.Call`, the bytes of float64 copies of its arrays with batch axes).
    """
    key = tuple([_static(value) for value in values.values()])  # a list is faster than a generator
    found = resolved.get(key)
    if found is None:
        call = contract.resolve(row, values)
        if len(resolved) >= CACHE_SIZE:
            resolved.clear()
        found = resolved[key] = call, sum(8 * _size(call, call.arguments[name], values[name]) for name in received)
    return found


def _static(value):
    """Returns what a resolved call depends on: shape and dtype of an array, otherwise the value and its type."""
    if type(value) is np.ndarray:
        return value.shape, value.dtype
    return None if value is None else (type(value), None if callable(value) else value)


def _size(call, argument, value):
    """Returns the number of elements of an argument that has batch axes; 0 if it has none or is not given."""
    if not argument.batched or (value is None and argument.kind != "mask"):
        return 0
    if argument.name in call.targets:
        return math.prod(call.targets[argument.name])
    return math.prod(contract.full_shape(argument.shapes[0], call.batch, call.sizes))


def _broadcast(value, shape):
    return value if value.shape == shape else np.broadcast_to(value, shape)


def as_array(name, key, value):
    """Converts an argument with ``np.asarray``; returns None and text unchanged.

    Later checks reject text, and None for a required argument.

    Raises:
      TypeError: if NumPy cannot convert it, such as a ragged list or a tensor that requires a gradient.
      ValueError: if it is a masked array, or a list of arrays that has one.
    """
    if value is None or isinstance(value, (str, bytes)):
        return value
    if type(value) is not np.ndarray:
        dtypes.refuse_masked(name, key, value)
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError, AttributeError) as error:
        if not hasattr(getattr(value, "dtype", None), "name"):  # not an array of JAX
            dtypes.refuse(name, key, value, error)
        contract.refuse_non_numeric(name, key, value)  # raises for PRNG keys
        raise  # an error of JAX about a tracer or a deleted array
    if array.dtype == object and hasattr(value, "to_numpy"):  # a column of lists, a table of nullable integers
        dtypes.refuse(name, key, value)
    return array


def _full_mask(mask, argument, call, values):
    """Returns the mask as booleans of its full shape, from the mask, the lengths or neither (all real).

    It is None if ``masked_softmax`` has lengths, which that function converts itself.
    """
    if mask is not None:
        return _broadcast(mask.astype(bool, copy=False), call.targets[argument.name])
    lengths = values.get(argument.lengths)
    if lengths is None:
        return np.broadcast_to(np.True_, contract.full_shape(argument.shapes[0], call.batch, call.sizes))
    if argument.lengths not in call.targets:
        return None  # masked_softmax: its lengths count along any axis
    target = call.targets[argument.name]
    lengths = np.reshape(lengths, contract.with_all_axes(lengths.shape, call.targets[argument.lengths]))
    return np.broadcast_to(np.arange(target[-1]) < lengths[..., None], target)
