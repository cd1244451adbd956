"""Errors about arguments that are not arrays of numbers, with a suggestion; the same text in both packages."""

import numpy as np

from attnpool_ref import table
from attnpool_ref.contract.text import type_of
from attnpool_ref.table.language import INTEGERS


def is_ragged(value):
    """Returns whether a value is a list, or an array of objects, whose parts differ in shape."""
    if isinstance(value, np.ndarray):
        return value.dtype == object and value.ndim > 0 and _shape(value.tolist()) is None
    return isinstance(value, (list, tuple)) and _shape(value) is None


def refuse(name, key, value, error=None):
    """Raises a TypeError about a value that is not an array, with a suggestion.

    Args:
      name: the function's name.
      key: the argument's name.
      value: the argument.
      error: the exception of NumPy if the conversion was tried; its text then takes the place of the suggestion
        "np.asarray".
    """
    ragged = is_ragged(value)
    given = f"a ragged {type(value).__name__}" if ragged else type_of(value)
    found = repair(name, key, value, error is None)
    reason = "" if ragged or found or error is None else ": " + str(error).partition("\n")[0]
    raise TypeError(f"{name}: `{key}` is {given}, needs {needed(name, key)}{found}{reason}")


def needed(name, key):
    """Returns what an argument has to be, in words."""
    argument = _arguments(name).get(key)
    return "a boolean array" if argument and argument.kind in ("mask", "bool") else "an array of numbers"


def repair(name, key, value, untried=True):
    """Returns "; did you mean ...?" for an argument that is not an array of numbers; "" if no repair is likely.

    ``untried`` says that ``np.asarray`` has not failed on the argument, so that it may be suggested.
    """
    argument, objects = _arguments(name).get(key), _objects(value)
    kind = "" if argument is None else argument.kind
    if is_ragged(objects):
        if kind == "data":
            return "; did you mean `pad`, which makes an array and its mask from a list of [L, d], or `pack`?"
        return _of_ragged_masks(name, argument, objects) if kind == "mask" else ""
    if objects is not value or isinstance(value, np.ndarray):
        code = _conversion(value, objects, kind)
        return f"; did you mean `{code.format(key)}`?" if code else ""
    steps = [step for step, needed in _steps(value) if needed]
    if steps and (untried or steps[1:]):
        return f"; did you mean `{'.'.join([key, *(f'{step}()' for step in steps)])}`?"
    if untried and (isinstance(value, (list, tuple)) or hasattr(value, "__array__")):
        return "" if isinstance(value, np.generic) else f"; did you mean `np.asarray({key})`?"
    return ""


def _objects(value):
    """Returns the objects of a column or table that NumPy converts to objects; any other value unchanged."""
    try:
        array = np.asarray(value) if hasattr(value, "to_numpy") else None
    except (ValueError, TypeError, RuntimeError, AttributeError):
        return value
    return array if array is not None and array.dtype == object else value


def _of_ragged_masks(name, argument, rows):
    """Returns the suggestion for masks of different lengths: their lengths if they have no padding, else padding."""
    key, lengths = argument.name, argument.lengths
    real = all(np.ndim(row) == 1 and np.all(row) for row in rows)
    if real and lengths in _arguments(name):
        return f"; did you mean `{lengths}=np.array([len(row) for row in {key}])`?"
    return "; did you mean to pad each row with False to the length of the tokens?"


def _conversion(value, objects, kind):
    """Returns code, with {} for an argument of this kind, that converts objects to an array of numbers; "" if none does."""
    if hasattr(value, "to_numpy_ndarray"):  # tensors of pyarrow
        return "{}.to_numpy_ndarray()"
    if hasattr(value, "combine_chunks") and hasattr(value.combine_chunks(), "to_numpy_ndarray"):
        return "{}.combine_chunks().to_numpy_ndarray()"
    try:
        numbers = np.array(objects.tolist())
    except ValueError:  # their shapes differ
        return ""
    if numbers.dtype.kind not in "buif":
        return ""
    if numbers.ndim > objects.ndim:
        return "np.stack({}.to_pylist())" if hasattr(value, "to_pylist") else "np.stack(list({}))"
    return f"{{}}.astype({'bool' if kind in ('mask', 'bool') else 'int' if kind in INTEGERS else 'float'})"


def _steps(value):
    """Returns (method, whether it is needed) for each step that converts a tensor or a table to NumPy."""
    if hasattr(value, "to_numpy"):
        return [("to_numpy", True)]
    if not hasattr(value, "numpy"):
        return []
    return [
        ("detach", getattr(value, "requires_grad", False)),
        ("cpu", str(getattr(value, "device", "cpu")).startswith(("cuda", "mps", "xpu"))),
        ("float", str(getattr(value, "dtype", "")) == "torch.bfloat16"),  # NumPy has no such dtype
        ("numpy", True),
    ]


def refuse_masked(name, key, value):
    """Raises a ValueError for a masked array or a list of them: NumPy would drop the mask silently."""
    if isinstance(value, np.ma.MaskedArray):
        mask = _mask_of(_arguments(name), key)
        mask = f", and `{mask}`" if mask else ""
        raise ValueError(
            f"{name}: `{key}` is a masked array, whose mask would be lost, needs a plain one; "
            f"did you mean `{key}.filled(0)`{mask}?"
        )
    if isinstance(value, (list, tuple)) and any(issubclass(kind, np.ma.MaskedArray) for kind in set(map(type, value))):
        raise ValueError(
            f"{name}: `{key}` is {type_of(value)} of masked arrays, whose masks would be lost, needs a plain array; "
            f"did you mean `np.ma.stack({key})`?"
        )


def _arguments(name):
    return table.BY_NAME[name].arguments if name in table.BY_NAME else {}


def _mask_of(arguments, key):
    """Returns code that passes the mask of a masked array, or "". A token with a masked number becomes padding."""
    if key not in arguments or arguments[key].kind not in ("data", "parameter"):
        return ""
    axes, whole = arguments[key].own, f"np.ma.getmaskarray({key})"
    for name, mask in arguments.items():
        if mask.kind != "mask":
            continue
        own = mask.own
        if own == axes:
            return f"{name}=~{whole}"
        if own == axes[:-1] and (len(own) > 1 or arguments[key].batched):
            return f"{name}=~{whole}.any(-1)"
        if len(own) == len(axes) == 2 and own[1] == axes[0]:  # a mask over pairs, from masked keys or masked queries
            return f"{name}=~{whole}.any(-1)[..., None, :]"
        if len(own) == len(axes) == 2 and own[0] == axes[0]:
            return f"{name}=~{whole}.any(-1)[..., None]"
    return ""


def _shape(value):
    """Returns the shape of nested lists; None if the shapes of parts differ."""
    if hasattr(value, "shape"):
        return tuple(value.shape)
    if not isinstance(value, (list, tuple)):
        return ()
    shapes = {_shape(part) for part in value}
    return None if None in shapes or len(shapes) > 1 else (len(value), *next(iter(shapes), ()))
