"""The `@definition` decorator: checks arguments, computes in float64, casts the result."""

import functools
from typing import Any

import numpy as np

from attnpool_ref import contract, table
from attnpool_ref.contract import blocks, conversion_errors, docstrings


def definition(function=None, *, selects=False) -> Any:  # __init__.pyi has the public types
    """Turns the body of a definition into the public function.

    The body gets data (with all batch axes), parameters and numbers as float64 arrays, and boolean masks of the full
    shape, also if the caller gives lengths or neither; only the softmaxes convert their lengths themselves. The result
    of the body is cast to the result dtype that follows from the arguments (``docs/contract.md``). A state stays in
    float64 and has this dtype as its field ``dtype``, to which ``finalize_state`` casts the result.

    The body is called on one block of examples after another (:mod:`attnpool_ref.contract.blocks`), unless the function
    takes packed tokens or an option ``axis``, or returns a state. It may write into arrays with batch axes. The body of
    another definition is called as ``other.body``, without checks, on arrays like those that it would receive. Packed
    tokens come in the caller's dtype: the body converts those of one segment after another.

    Args:
      function: the body, which has the name of its row in the table.
      selects: whether the body only selects elements. It then receives all examples at once, in the caller's dtype.
    """
    if function is None:
        return functools.partial(definition, selects=selects)
    row = table.get(function.__name__)
    arguments = row.arguments
    signature = contract.signature_of(function)
    resolved = {}
    in_blocks = _in_blocks(row) and not selects
    received = {} if selects else {key: _dtype_of(argument, row, in_blocks) for key, argument in arguments.items()}

    def checked(args, kwargs):
        """Returns (arguments for the body by name, the :class:`~attnpool_ref.contract.Call`)."""
        values = contract.bind(row, signature, args, kwargs)
        for key in arguments:
            values[key] = as_array(row.name, key, values[key])
        call = _resolve_once(row, values, resolved)
        contract.check_values(row, values, call)
        for key, argument in arguments.items():
            value = values[key]
            if argument.kind == "mask":
                values[key] = _full_mask(value, argument, call, values)
            elif value is not None and (argument.kind == "index" or not argument.integers):
                values[key] = _broadcast(value, call.targets.get(key, value.shape))
        values |= {key: None for key, argument in arguments.items() if argument.kind == "lengths"}  # now in the masks
        return values, call

    @functools.wraps(function)
    def checked_definition(*args, **kwargs):
        try:
            values, call = checked(args, kwargs)
        except (TypeError, ValueError) as error:
            raise contract.without_frames(error) from None
        dtype = call.dtype or np.dtype(np.float64)
        batched, shared = {}, {}
        for key, value in values.items():
            how = None if value is None else received.get(key)
            if how is None:
                shared[key] = value
            elif in_blocks and call.arguments[key].batched:
                batched[key] = value, how
            else:
                shared[key] = np.array(value, how, order="C")
        if in_blocks:
            return blocks.call_in_blocks(function, call.batch, batched, shared, dtype)
        result = function(**shared)
        return result._replace(dtype=call.dtype) if row.state else blocks.cast(result, dtype)

    checked_definition.__doc__ = docstrings.help_text(function)
    checked_definition = contract.with_frame_name(checked_definition, function)
    checked_definition.__dict__["body"] = function
    return checked_definition


def _in_blocks(row):
    """Returns whether the examples of a function are independent of one another, and first in each result."""
    first = all(axes[:1] == ("...",) for axes in (*row.results, *row.weight_results))
    return first and row.batched and not row.state and "axis" not in row.options


def _dtype_of(argument, row, in_blocks):
    """Returns the dtype in which a body receives an argument; None if it receives the caller's array."""
    packed_axes = {axis for other in row.arguments.values() if other.kind == "segments" for axis in other.own}
    if argument.kind in ("int", "position") or (not in_blocks and argument.kind == "mask"):
        return None
    if argument.kind == "data" and not packed_axes.isdisjoint(argument.own):
        return None
    if argument.kind in ("mask", "bool"):
        return np.dtype(bool)
    return np.dtype(np.int64 if argument.integers else np.float64)


CACHE_SIZE = 256
"""Largest number of resolved calls (by shapes, dtypes and options) in the cache of a definition."""


def _resolve_once(row, values, resolved):
    """Resolves a call once for its shapes, dtypes and static arguments; ``resolved`` is the cache."""
    key = tuple(
        (v.shape, v.dtype) if type(v) is np.ndarray else (type(v), None if callable(v) else v) for v in values.values()
    )
    call = resolved.get(key)
    if call is None:
        call = contract.resolve(row, values)
        if len(resolved) >= CACHE_SIZE:
            resolved.clear()
        resolved[key] = call
    return call


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
        conversion_errors.refuse_masked(name, key, value)
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError, AttributeError) as error:
        if not hasattr(getattr(value, "dtype", None), "name"):  # not an array of JAX
            conversion_errors.refuse(name, key, value, error)
        contract.refuse_non_numeric(name, key, value)  # raises for PRNG keys
        raise  # an error of JAX about a tracer or a deleted array
    if array.dtype == object and hasattr(value, "to_numpy"):  # a column of lists, a table of nullable integers
        conversion_errors.refuse(name, key, value)
    return array


def _full_mask(mask, argument, call, values):
    """Returns the mask as booleans of its full shape, from the mask, the lengths or neither (all real).

    It is None if ``masked_softmax`` has lengths, which that function converts itself.
    """
    if mask is not None:
        return _broadcast(mask.astype(bool), call.targets[argument.name])
    lengths = values.get(argument.lengths)
    if lengths is None:
        return np.broadcast_to(np.True_, contract.full_shape(argument.shapes[0], call.batch, call.sizes))
    if argument.lengths not in call.targets:
        return None  # masked_softmax: its lengths count along any axis
    target = call.targets[argument.name]
    lengths = np.reshape(lengths, contract.with_all_axes(lengths.shape, call.targets[argument.lengths]))
    return np.broadcast_to(np.arange(target[-1]) < lengths[..., None], target)
