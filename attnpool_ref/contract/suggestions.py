"""Suggestions for a refused call: arguments in the place of others, and code that makes a mask boolean."""

import types

import numpy as np

from attnpool_ref import table
from attnpool_ref.contract.dtypes import kind_of


def substitutions(row, values, refusal):
    """Yields (other arguments, the suggestion, an argument to blame or None) for each likely substitution.

    ``refusal`` is the message about the call.
    """
    given = {key: (argument, values[key]) for key, argument in row.arguments.items() if hasattr(values[key], "shape")}
    for key, (argument, value) in given.items():
        shape = tuple(value.shape)
        if len(shape) > 1 and shape[-1] == 1 and refusal.startswith(f"{row.name}: `{key}` has "):
            yield {key: with_shape(value, shape[:-1])}, f"`{column(key, shape)}`", None
        if argument.kind == "segments":
            yield from _of_segments(key, argument, value, values["num_segments"], given)
        if argument.kind == "lengths" and values[argument.mask] is None:
            yield {key: None, argument.mask: value}, f"`{argument.mask}=`", None
            if len(shape) == 1 and is_packed(row, given):
                ids = f"np.repeat(np.arange({shape[0]}), {key})"
                yield {key: None}, f"`segment_{row.name}(x, {ids}, {shape[0]})` for packed tokens", None
        if argument.kind == "mask":
            yield from _of_mask(key, argument, value, values, given, refusal)


def _of_segments(key, argument, value, count, given):
    """Yields substitutions for lengths or offsets of segments that were passed as the segment of each token."""
    tokens = next(theirs.shape[0] for their, theirs in given.values() if their.own[:1] == argument.own)
    for size, lengths, kind in ((count, key, "lengths"), (count + 1, f"np.diff({key})", "offsets")):
        if tuple(value.shape) == (size,):
            ids = f"`np.repeat(np.arange({count}), {lengths})` for {kind}"
            yield {key: with_shape(value, (tokens,))}, ids, None


def _of_mask(key, argument, value, values, given, refusal):
    shape = tuple(value.shape)
    if kind_of(value.dtype) in ("u", "i") and values.get(argument.lengths, value) is None:
        yield {key: None, argument.lengths: value}, f"`{argument.lengths}=`", None
    for other, (their, theirs) in given.items():
        if other != key and their.kind in ("data", "mask"):
            first, second = sorted((key, other), key=list(given).index)
            yield {key: theirs, other: value}, f"to exchange `{first}` and `{second}`", None
        if their.kind != "data" or len(their.own) < 2:
            continue
        if tuple(theirs.shape) == shape:
            if len(shape) > 2 and their.own[:-1] == argument.own:
                one = f"`{key}[..., 0]`, or a mask for each feature (docs/masks.md)"
                yield {key: with_shape(value, shape[:-1])}, one, None
            yield {other: with_shape(theirs, (*shape, 1))}, f"`{other}[..., None]`", their
        if "did you mean" not in refusal and their.own[:-1] == argument.own:
            *batch, width, length = theirs.shape
            if shape == (*batch, length):
                yield {other: with_shape(theirs, (*batch, length, width))}, f"`{other}.swapaxes(-1, -2)`", None


def with_shape(value, shape, dtype=None):
    """Returns a stand-in for an array of this shape; its dtype is that of ``value`` unless another is given."""
    return types.SimpleNamespace(shape=shape, ndim=len(shape), dtype=dtype or value.dtype)


def column(key, shape):
    """Returns code that takes the only element of the last axis.

    >>> column("lengths", (3, 1))
    'lengths[:, 0]'
    """
    return f"{key}[{':, ' * (len(shape) - 1)}0]"


def is_packed(row, given):
    """Returns whether the first data have no batch axes, as packed tokens do, and there is a function for those."""
    tokens = next(((a, value) for a, value in given.values() if a.kind == "data"), None)
    return f"segment_{row.name}" in table.BY_NAME and tokens is not None and len(tokens[0].own) == tokens[1].ndim


def as_boolean(key, mask):
    """Returns suggestions of code that makes a mask of numbers boolean.

    For values on the host it is only the code that is right for them. All zeros are ambiguous: they are padding, or
    real tokens of an additive mask.
    """
    additive = f"`{key} == 0` for an additive mask"
    floats = kind_of(mask.dtype) == "f"
    on_host = isinstance(mask, (np.ndarray, np.generic)) and mask.size
    low, high = (float(np.min(mask)), float(np.max(mask))) if on_host else (0, 0)
    if low < 0 and high == 0:
        return [additive]
    if floats and low == high == 0:
        return [f"`{key}.astype(bool)` for 0.0 and 1.0", additive, "`dtype=bool` in Flax's mask helpers"]
    if floats:
        return [f"`{key}.astype(bool)`"] if np.all((mask == 0) | (mask == 1)) else []
    return [f"`{key} != 0`"] if low >= 0 else []


def did_you_mean(suggestions):
    """Returns the end of a message, or "" without suggestions.

    >>> did_you_mean(["`mask != 0`", "`lengths=`"])
    '; did you mean `mask != 0`, or `lengths=`?'
    """
    *others, last = suggestions or [""]
    return f"; did you mean {', '.join([*others, 'or ' * bool(others) + last])}?" if suggestions else ""
