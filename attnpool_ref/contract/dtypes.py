"""Dtypes that arguments may have, their promotion, and messages about arguments that are not arrays of numbers.

The message about a float mask is in :mod:`attnpool_ref.contract.masks`.
"""

import functools
import re

import numpy as np

from attnpool_ref import table
from attnpool_ref.contract.text import suggested, type_of
from attnpool_ref.table.language import INTEGERS

FLOATING = ("float16", "bfloat16", "float32", "float64")
"""The floating-point dtypes of data and parameters."""

_NARROW = re.compile(r"(u?int|float)\d")


@functools.cache
def name_of(dtype):
    """Returns the dtype's name; cached, because NumPy builds the text at each access."""
    return dtype.name


def kind_of(dtype):
    """Returns NumPy's kind letter of a numeric dtype, or ""; for most dtypes of ml_dtypes NumPy itself says V."""
    if not isinstance(dtype, np.dtype):
        return ""  # the dtype of PRNG keys in JAX
    if dtype.kind in "buifc":
        return dtype.kind
    if name_of(dtype) == "bfloat16":
        return "f"
    match = _NARROW.match(name_of(dtype))
    return {"int": "i", "uint": "u", "float": "f"}[match[1]] if match else ""


def common_dtype(dtypes):
    """Promotes the floating dtypes of arguments to one (float16 and bfloat16 to float32); None if there are none."""
    floats = {name_of(dtype): dtype if dtype.isnative else dtype.newbyteorder("=") for dtype in dtypes}
    for wide in ("float64", "float32"):
        if wide in floats:
            return floats[wide]
    if len(floats) == 2:
        return np.dtype("float32")
    return next(iter(floats.values()), None)


def refuse_non_numeric(name, argument, value):
    """Raises a TypeError if ``value`` is not an array of numbers, a ValueError for an integer of more than 64 bits."""
    if value is None:
        raise TypeError(f"{name}: `{argument}` is None, needs an array")
    dtype = getattr(value, "dtype", None)
    if kind_of(dtype) and hasattr(value, "shape"):
        return
    if not hasattr(dtype, "name") or not hasattr(value, "shape"):  # dtypes of torch have no name
        refuse(name, argument, value)
    if isinstance(value, np.ndarray) and value.shape == () and isinstance(value.item(), int):
        raise ValueError(f"{name}: `{argument}` has the value {value.item()}, needs a number of at most 64 bits")
    repair = _conversion(name, argument, value) if isinstance(value, np.ndarray) else ""
    raise TypeError(f"{name}: `{argument}` has dtype {dtype}, needs {_needed(name, argument)}{repair}")


def check_dtype(name, key, value, role="data"):
    """Raises a ValueError if an argument cannot have the dtype of ``value``, such as lengths that are floats.

    ``name`` and ``key`` are the function and the argument; ``role`` is the argument's kind
    (:class:`~attnpool_ref.table.language.Argument`). Masks of floats have a message of their own
    (:func:`attnpool_ref.contract.masks.refuse_dtype`).
    """
    dtype, kind = value.dtype, kind_of(value.dtype)
    if role in INTEGERS and kind not in "ui":
        raise ValueError(
            f"{name}: `{key}` has dtype {dtype}, needs integers{suggested(_as_integers(key, value, role))}"
        )
    if kind == "c":
        raise ValueError(f"{name}: `{key}` has dtype {dtype}, needs real numbers")
    if dtype.kind == "V" and kind != "f":
        raise ValueError(
            f"{name}: `{key}` has dtype {dtype}, which is too narrow, needs integers of at least 8 bits; "
            f"did you mean `{key}.astype('int8')`?"
        )
    if kind == "f" and name_of(dtype) not in FLOATING:
        width, repair = ("too wide", "float64") if dtype.itemsize > 8 else ("too narrow", "float32")
        raise ValueError(
            f"{name}: `{key}` has dtype {dtype}, which is {width}, needs one of {', '.join(FLOATING)} or integers; "
            f"did you mean `{key}.astype('{repair}')`?"
        )
    if key == "weights" and kind == "b":
        raise ValueError(f"{name}: `weights` has dtype bool, needs numbers; did you mean `mask=`?")


def _as_integers(key, value, role):
    """Returns suggestions of code that makes integers; none that would change the value of a number on the host."""
    counts = key.endswith("lengths")
    if kind_of(value.dtype) == "b":
        return [f"`{key.removesuffix('lengths')}mask=`" if role == "lengths" else f"`{key}.astype(int)`"]
    plain, relative = f"`{key}.astype(int)`", f"`np.round({key} * L).astype(int)` for shares of L tokens"
    may_be_relative = may_be_whole = kind_of(value.dtype) == "f"
    if may_be_whole and isinstance(value, (np.ndarray, np.generic)) and value.size:
        numbers = np.asarray(value, np.float64)
        may_be_relative, may_be_whole = np.all((numbers >= 0) & (numbers <= 1)), np.all(numbers == np.floor(numbers))
    return [plain] * bool(may_be_whole) + [relative] * bool(counts and may_be_relative)


def _is_ragged(value):
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
    ragged = _is_ragged(value)
    given = f"a ragged {type(value).__name__}" if ragged else type_of(value)
    found = _conversion(name, key, value, error is None)
    reason = "" if ragged or found or error is None else ": " + str(error).partition("\n")[0]
    raise TypeError(f"{name}: `{key}` is {given}, needs {_needed(name, key)}{found}{reason}")


def _needed(name, key):
    """Returns what an argument has to be, in words."""
    argument = _arguments(name).get(key)
    return "a boolean array" if argument and argument.kind in ("mask", "bool") else "an array of numbers"


def _conversion(name, key, value, untried=True):
    """Returns "; did you mean ...?" for an argument that is not an array of numbers; "" if no repair is likely.

    ``untried`` says that ``np.asarray`` has not failed on the argument, so that it may be suggested.
    """
    argument, objects = _arguments(name).get(key), _objects(value)
    kind = "" if argument is None else argument.kind
    if _is_ragged(objects):
        if kind == "data":
            return "; did you mean `pad`, which makes an array and its mask from a list of [L, d], or `pack`?"
        return _of_ragged_masks(name, argument, objects) if kind == "mask" else ""
    if kind == "segments" and type(value).__module__.startswith("pandas."):
        return f"; did you mean `pd.factorize({key})[0]`?"
    if objects is not value or isinstance(value, np.ndarray):
        code = _to_numbers(value, objects, kind)
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


def _to_numbers(value, objects, kind):
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
        return "np.unique({}, return_inverse=True)[1]" if kind == "segments" and numbers.dtype.kind in "US" else ""
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
