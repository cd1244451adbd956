"""The `@definition` decorator: checks arguments, computes in float64, casts the result."""

import functools
from typing import Any

import numpy as np

from attnpool_ref import contract, table
from attnpool_ref.contract import conversion_errors, docstrings


def definition(function=None, *, as_they_come=()) -> Any:  # __init__.pyi has the public types
    """Turns the body of a definition into the public function.

    The body gets data (with all batch axes), parameters and numbers as float64 arrays, and boolean masks of the full
    shape, also if the caller gives lengths or neither; only ``masked_softmax`` converts its lengths itself. The result
    of the body is cast to the result dtype that follows from the arguments (``docs/contract.md``). A state stays in
    float64 and has this dtype as its field ``dtype``, to which ``finalize_state`` casts the result.

    Args:
      function: the body, which has the name of its row in the table.
      as_they_come: names of arrays that the body receives in the caller's dtype, because it converts them to float64 in
        blocks.
    """
    if function is None:
        return functools.partial(definition, as_they_come=as_they_come)
    row = table.get(function.__name__)
    arguments = row.arguments
    signature = contract.signature_of(function)
    resolved = {}

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
            elif value is None:
                continue
            elif argument.kind == "bool":
                values[key] = value.astype(bool)
            elif argument.kind == "segments":
                values[key] = value.astype(np.int64)
            elif argument.kind == "index":
                values[key] = np.broadcast_to(value.astype(np.int64), call.targets[key])
            elif not argument.integers:
                value = value if key in as_they_come else value.astype(np.float64)
                values[key] = _broadcast(value, call.targets.get(key, value.shape))
        values |= {key: None for key, argument in arguments.items() if argument.kind == "lengths"}  # now in the masks
        return values, call

    @functools.wraps(function)
    def checked_definition(*args, **kwargs):
        try:
            values, call = checked(args, kwargs)
        except (TypeError, ValueError) as error:
            raise contract.without_frames(error) from None
        result = function(**values)
        if row.state:
            return result._replace(dtype=call.dtype)
        return cast(result, call.dtype or np.dtype(np.float64))

    checked_definition.__doc__ = docstrings.help_text(function)
    return contract.with_frame_name(checked_definition, function)


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


def cast(result, dtype):
    """Casts the float64 arrays of a result to a dtype; other arrays, such as masks, stay as they are."""
    if isinstance(result, tuple):
        return tuple(cast(part, dtype) for part in result)
    result = np.asarray(result)
    return result.astype(dtype) if result.dtype == np.float64 else result
