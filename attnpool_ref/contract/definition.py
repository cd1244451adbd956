"""The `@definition` decorator: checks arguments, computes in float64, casts the result."""

import functools
from typing import Any

import numpy as np

from attnpool_ref import contract, table
from attnpool_ref.contract import conversion_errors, docstrings


def definition(function=None, *, as_they_come=()) -> Any:  # the public types stand in __init__.pyi
    """Turns the body of a definition into the public function.

    The body sees float64 arrays with all batch axes in place, boolean masks of the full shape (never None), also where
    lengths say what is real, and numbers as floats. The caller gets the dtype that the arguments decide (``docs/conventions.md``).

    Args:
      function: the body; its name is that of its row.
      as_they_come: arrays that the body receives in the caller's dtype, since it reads them in blocks, or a part of them.
    """
    if function is None:
        return functools.partial(definition, as_they_come=as_they_come)
    row = table.get(function.__name__)
    arguments = row.arguments
    signature = contract.signature_of(function)
    resolved = {}

    def checked(args, kwargs):
        """(the arguments as the body takes them, the :class:`~attnpool_ref.contract.Call`)."""
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
                values[key] = _stretched(value, call.targets.get(key, value.shape))
        values |= {key: None for key, argument in arguments.items() if argument.kind == "lengths"}  # the masks say it
        return values, call

    @functools.wraps(function)
    def checked_definition(*args, **kwargs):
        try:
            values, call = checked(args, kwargs)
        except (TypeError, ValueError) as error:
            raise contract.shortened(error) from None
        result = function(**values)
        if row.state:
            return result._replace(dtype=call.dtype)
        return cast(result, call.dtype or np.dtype(np.float64))

    checked_definition.__doc__ = docstrings.help_text(function)
    return contract.named(checked_definition, function)


KEPT = 256
"""How many signatures of calls a definition remembers."""


def _resolve_once(row, values, resolved):
    """The :class:`~attnpool_ref.contract.Call`, which shapes, dtypes and static arguments decide; kept in ``resolved``."""
    key = tuple((v.shape, v.dtype) if type(v) is np.ndarray else (type(v), v) for v in values.values())
    call = resolved.get(key)
    if call is None:
        call = contract.resolve(row, values)
        if len(resolved) >= KEPT:
            resolved.clear()
        resolved[key] = call
    return call


def _stretched(value, shape):
    return value if value.shape == shape else np.broadcast_to(value, shape)


def as_array(name, key, value):
    """Converts an argument with ``np.asarray``; leaves None and text as they are, which later checks reject.

    Raises:
      TypeError: NumPy cannot convert it, such as a ragged list or a tensor that requires a gradient.
      ValueError: a masked array.
    """
    if value is None or isinstance(value, (str, bytes)):
        return value
    if type(value) is not np.ndarray:
        conversion_errors.refuse_masked(name, key, value)
    try:
        return np.asarray(value)
    except (ValueError, TypeError, RuntimeError, AttributeError) as error:
        if not hasattr(getattr(value, "dtype", None), "name"):  # no array of JAX
            conversion_errors.refuse(name, key, value, error)
        contract.refuse_non_numeric(name, key, value)  # PRNG keys
        raise  # what JAX says of a tracer, or of a deleted array


def _full_mask(mask, argument, call, values):
    """The mask as a boolean array of its full shape; None is all real, except where lengths say it."""
    if mask is not None:
        return _stretched(mask.astype(bool), call.targets[argument.name])
    lengths = values.get(argument.lengths)
    if lengths is None:
        return np.broadcast_to(np.True_, contract.full_shape(argument.shapes[0], call.batch, call.sizes))
    if argument.lengths not in call.targets:
        return None  # those of masked_softmax, which count along any axis
    target = call.targets[argument.name]
    lengths = np.reshape(lengths, contract.with_all_axes(lengths.shape, call.targets[argument.lengths]))
    return np.broadcast_to(np.arange(target[-1]) < lengths[..., None], target)


def cast(result, dtype):
    """The arrays of a result in its dtype; booleans stay."""
    if isinstance(result, tuple):
        return tuple(cast(part, dtype) for part in result)
    result = np.asarray(result)
    return result.astype(dtype) if result.dtype == np.float64 else result
