"""Messages about masks: of a float mask (:func:`refuse_dtype`), and of an integer mask with other values than 0 and 1.

Those about a mask of the wrong shape are in :mod:`attnpool_ref.contract.shapes`.
"""

from types import SimpleNamespace

import numpy as np

from attnpool_ref import table
from attnpool_ref.contract.dtypes import kind_of
from attnpool_ref.contract.shapes import exceeds
from attnpool_ref.contract.text import suggested

POLARITY = "a mask is boolean, True = real (`~mask` where True means padding)"
MEANING = {"adjacency": "an adjacency is boolean, True = neighbour"}  # of any other boolean array: POLARITY


def refuse_dtype(row, argument, values, passes):
    """Raises the ValueError about a mask of floats or of complex numbers.

    The message about floats suggests code that makes them boolean, and arguments that are not given and whose shapes fit
    the floats, such as a query that was passed in the place of the mask.

    Args:
      row: the :class:`~attnpool_ref.table.Variant`.
      argument: the mask, or another boolean argument.
      values: every argument by name.
      passes: a function that returns whether a call with other values would pass.
    """
    key = argument.name
    mask = values[key]
    refusal = f"{row.name}: `{key}` has dtype {mask.dtype}, but {MEANING.get(key, POLARITY)}"
    if key in MEANING:
        raise ValueError(f"{refusal}{suggested([f'`{key} != 0`'])}")
    if kind_of(mask.dtype) == "c":
        raise ValueError(refusal)
    others = [
        f"`{other}=`"
        for other, their in row.arguments.items()
        if their.kind == "data" and values[other] is None and passes(values | {key: None, other: mask})
    ]
    repairs = as_boolean(key, mask)
    if others and not passes(values | {key: with_shape(mask, mask.shape, np.dtype(bool))}):
        repairs = []
    raise ValueError(f"{refusal}{suggested(others + repairs)}")


def refuse_values(row, argument, wrong, values, call):
    """Raises the ValueError about an integer mask on the host with the value ``wrong``, which is neither 0 nor 1."""
    key = argument.name
    repairs = [f"`{key} != 0`"] if key in MEANING else _repairs(row, argument, values[key], values, call)
    raise ValueError(
        f"{row.name}: `{key}` has the value {wrong}, but {MEANING.get(key, POLARITY)}, or 0/1 integers"
        f"{suggested(repairs)}"
    )


def _repairs(row, argument, mask, values, call):
    """Returns what may have been meant by an integer mask with other values than 0 and 1."""
    key, lengths, shape = argument.name, argument.lengths, mask.shape
    axis, whole = values.get("axis", -1), list(call.targets.get(key, shape))
    limit, low = whole.pop(axis), np.min(mask)
    fit = lengths in row.arguments and low >= 0 and not exceeds(np.max(mask), limit)
    counts = [(), call.batch, tuple(whole)] if fit else []
    if shape[-1:] == (1,) and shape[:-1] in counts:
        return [f"`{lengths}={column(key, shape)}`"]
    repairs = as_boolean(key, mask)
    if shape in counts:
        repairs.append(f"`{lengths}=` for lengths")
    given = {name: (a, values[name]) for name, a in row.arguments.items() if hasattr(values[name], "shape")}
    if low >= 0 and len(shape) == 1 and is_packed(row, given):
        repairs.append(f"`segment_{row.name}` for segment numbers")
    if low >= 0 and lengths not in row.arguments and not row.packed:
        repairs.append("`lengths_to_mask` for lengths")
    return repairs


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


def with_shape(value, shape, dtype=None):
    """Returns a stand-in for an array of this shape; its dtype is that of ``value`` unless another is given."""
    return SimpleNamespace(shape=shape, ndim=len(shape), dtype=dtype or value.dtype)


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
