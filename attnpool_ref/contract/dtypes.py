"""Dtypes that arguments may have, and their promotion to the dtype of the result."""

import functools
import re

import numpy as np

from attnpool_ref.contract import conversion_errors
from attnpool_ref.table.language import INTEGERS

DTYPES = ("float16", "bfloat16", "float32", "float64")

POLARITY = "a mask is boolean, True = real (`~mask` where True means padding)"
MEANING = {"adjacency": "an adjacency is boolean, True = neighbour"}  # of any other boolean array: POLARITY

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
        conversion_errors.refuse(name, argument, value)
    if isinstance(value, np.ndarray) and value.shape == () and isinstance(value.item(), int):
        raise ValueError(f"{name}: `{argument}` has the value {value.item()}, needs a number of at most 64 bits")
    repair = conversion_errors.repair(name, argument, value) if isinstance(value, np.ndarray) else ""
    raise TypeError(f"{name}: `{argument}` has dtype {dtype}, needs {conversion_errors.needed(name, argument)}{repair}")


def check_dtype(name, key, value, role="data"):
    """Raises a ValueError if an argument cannot have the dtype of ``value``, such as a mask of floats.

    ``name`` and ``key`` are the function and the argument; ``role`` is the argument's kind
    (:class:`~attnpool_ref.table.language.Argument`).
    """
    role = "mask" if role == "bool" and key not in MEANING else role
    dtype, kind = value.dtype, kind_of(value.dtype)
    if role in ("mask", "bool") and kind in "fc":
        repair = f"; did you mean `{key} != 0`?" if role == "bool" else ""
        raise ValueError(f"{name}: `{key}` has dtype {dtype}, but {MEANING.get(key, POLARITY)}{repair}")
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
