"""Errors about arguments that are not arrays of numbers, with a suggestion; the same text in both packages."""

import numpy as np

from attnpool_ref import table
from attnpool_ref.contract.type_names import type_of


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
    raise TypeError(f"{name}: `{key}` is {given}, needs an array of numbers{found}{reason}")


def repair(name, key, value, untried=True):
    """Returns "; did you mean ...?" for an argument that is not an array of numbers; "" if no repair is likely.

    ``untried`` says that ``np.asarray`` has not failed on the argument, so that it may be suggested.
    """
    if is_ragged(value):
        argument = _arguments(name).get(key)
        if argument is None or argument.kind not in ("data", "mask"):
            return ""
        return "; did you mean `pad`, which makes an array and its mask from a list of [L, d], or `pack`?"
    steps = [step for step, needed in _steps(value) if needed]
    if steps and (untried or steps[1:]):
        return f"; did you mean `{'.'.join([key, *(f'{step}()' for step in steps)])}`?"
    if untried and (isinstance(value, (list, tuple)) or hasattr(value, "__array__")):
        return "" if isinstance(value, (np.ndarray, np.generic)) else f"; did you mean `np.asarray({key})`?"
    return ""


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
    """Raises a ValueError for a masked array: NumPy would drop the mask silently."""
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
