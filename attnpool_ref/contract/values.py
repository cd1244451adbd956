"""Checks of values in host arrays: masks, lengths, indices and segment numbers. Device arrays are never read back."""

import numpy as np

from attnpool_ref.contract import masks
from attnpool_ref.contract.shapes import exceeds
from attnpool_ref.contract.text import suggested
from attnpool_ref.table.language import NotZero

LARGEST = np.iinfo(np.int64).max
"""The largest position that int64 holds, which the NumPy package uses."""


def check_values(row, values, call, largest=LARGEST):
    """Checks the values of masks, adjacencies, lengths, positions, indices and segment numbers in host (NumPy) arrays.

    Values in other arrays, such as JAX's, are not checked.

    Args:
      row: the :class:`~attnpool_ref.table.Variant`.
      values: every argument by name.
      call: the resolved :class:`~attnpool_ref.contract.Call`.
      largest: the largest position that the caller's integers hold.

    Raises:
      ValueError: if an integer mask has another value than 0 and 1, if a length, position, index or segment number is
        out of range, or if a number is 0 that an option forbids to be 0.
    """
    for key, argument in row.arguments.items():
        value = values[key]
        if argument.kind in ("mask", "bool"):
            wrong = _out_of_range(value, 1) if _on_host(value) and value.dtype.kind in "ui" else None
            if wrong is not None:
                masks.refuse_values(row, argument, wrong, values, call)
        elif argument.kind in ("int", "lengths") and _on_host(value):
            wrong = _out_of_range(value, call.limits[key])
            if wrong is not None:
                raise ValueError(f"{row.name}: `{key}` has the value {wrong}, needs 0 to {call.limits[key]}")
        elif argument.kind == "position" and _on_host(value):
            _check_position(row.name, key, int(value), call.sizes["L"], largest)
        elif argument.kind == "index" and _on_host(value):
            _check_index(row, key, values, call)
        elif argument.kind == "segments" and _on_host(value):
            count = call.sizes["num_segments"]
            wrong = _out_of_range(value, count - 1)
            if wrong is not None:
                dropped = {
                    count: f"to drop the tokens that `pack` appended, by `real = {key} < {count}`",
                    -1: f"to drop the tokens of no segment, by `real = {key} >= 0`",
                }
                raise ValueError(
                    f"{row.name}: `{key}` has the value {wrong}, needs 0 to `num_segments` - 1 = {count - 1}"
                    f"{suggested([dropped[wrong]] if wrong in dropped else [])}"
                )
    check_not_zero(row.name, row, values)


def check_not_zero(name, row, values):
    """Raises a ValueError for a 0 on the host that a rule (:class:`NotZero`) permits only with an option that is off.

    An example is ``scale=0`` in ``logsumexp_pooling`` with ``mean=False``. ``name`` is the function in the message.
    """
    for rule in row.relations:
        if isinstance(rule, NotZero) and not values[rule.option]:
            value = values[rule.argument]
            if (_on_host(value) or isinstance(value, (int, float))) and np.any(np.equal(value, 0)):
                raise ValueError(f"{name}: `{rule.argument}` has the value 0, needs `{rule.option}=True` there")


def _check_position(name, key, position, length, largest):
    """Raises a ValueError for a position below 0, or if ``length`` tokens from there exceed the largest position."""
    if position < 0:
        raise ValueError(f"{name}: `{key}` has the value {position}, needs at least 0")
    most = largest - max(length - 1, 0)
    if position > most:
        x64 = "" if largest == LARGEST else " without x64"
        raise ValueError(
            f"{name}: `{key}` has the value {position}, needs at most {most}{x64}, as the chunk has {length} tokens"
        )


def _check_index(row, key, values, call):
    """Raises a ValueError for an index out of range at a real position; checks nothing if the mask is on a device."""
    value, limit = values[key], values["max_length"]
    for argument in row.arguments.values():
        mask = values[argument.name]
        if argument.kind == "mask" and mask is not None:
            if not _on_host(mask):
                return
            real = np.broadcast_to(mask, call.targets[argument.name]).astype(bool)
            value = np.broadcast_to(value, call.targets[key])[real]
    wrong = _out_of_range(value, limit - 1)
    if wrong is not None:
        raise ValueError(f"{row.name}: `{key}` has the value {wrong}, needs 0 to `max_length` - 1 = {limit - 1}")


def _on_host(value):
    return isinstance(value, (np.ndarray, np.generic))


def _out_of_range(value, largest):
    """Returns a number below 0, else one above ``largest`` (which may be a symbol), else None."""
    if not np.size(value):
        return None
    low, high = int(np.min(value)), int(np.max(value))
    return low if low < 0 else high if exceeds(high, largest) else None
