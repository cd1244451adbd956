"""The table of right implementations that compute in float64 and give the dtype of their data."""

import functools

import numpy as np

from attnpool_ref import table

RIGHT = {}


def right(row, route):
    """Keeps a function as the row's implementation by a route; it computes in float64 and gives the dtype of its data."""
    stretched = [k for k, a in table.get(row).arguments.items() if a.kind == "stretch"]  # which never widen

    def keep(function):
        @functools.wraps(function)
        def rounded(*args, **kwargs):
            with np.errstate(all="ignore"):
                result = function(*map(_wide, args), **{k: _wide(v) for k, v in kwargs.items()})
            dtype = _dtype_of([*args, *(v for k, v in kwargs.items() if k not in stretched)])
            return _cast(result, dtype)

        RIGHT[f"{row}: {route}"] = row, rounded
        return function

    return keep


def _wide(value):
    floating = hasattr(value, "dtype") and value.dtype.kind not in "biu"
    return value.astype(np.float64) if floating else value


def _dtype_of(values):
    arrays = [v for v in values if hasattr(v, "dtype") and v.ndim and v.dtype.kind != "b"]
    names = {a.dtype.name: a.dtype for a in arrays if a.dtype.kind not in "iu"}
    for wide in ("float64", "float32"):
        if wide in names:
            return names[wide]
    if len(names) == 2:
        return np.dtype(np.float32)
    return next(iter(names.values()), np.dtype(np.float64))


def _cast(result, dtype):
    if isinstance(result, tuple):
        return tuple(_cast(part, dtype) for part in result)
    return np.asarray(result).astype(dtype)


def keep_of(x, mask):
    """The mask of tokens [..., L] in full."""
    return np.broadcast_to(True if mask is None else np.asarray(mask) != 0, x.shape[:-1])


def per_example(function):
    """From a function of [L, d] and [L] to one of any batch axes, as a loop."""

    def looped(x, keep):
        out = np.zeros((*x.shape[:-2], x.shape[-1]))
        for index in np.ndindex(*x.shape[:-2]):
            out[index] = function(x[index], keep[index])
        return out

    return looped
