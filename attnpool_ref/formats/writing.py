"""Conversion of a head to the tensors of a file."""

import numpy as np

from attnpool_ref.contract.text import bracketed, with_article
from attnpool_ref.formats.row import SPELLING


def tensors_of(row, head):
    """Returns the tensors of a head, by the keys of a format.

    Args:
      row: the format.
      head: a :class:`~attnpool_ref.formats.row.Head`.

    Raises:
      ValueError: if the head is of another module, if an option differs from the value that the format fixes, or if no
        form of the format holds the parameters.
    """
    if head.module != row.module:
        raise ValueError(f"{row.name} holds {with_article(row.module)}, and this is {with_article(head.module)}")
    extras = dict(head.extras)
    if row.restore is not None:
        extras |= row.restore(head.parameters, extras)
    reasons, first = [], int(extras.pop(SPELLING, 0))
    for form in row.forms[first:] + row.forms[:first]:
        reason = _other_option(row, form, head)
        if reason is None:
            tensors, reason = _laid_out(form, head.parameters, extras)
            if reason is None:
                return tensors
        reasons.append(reason)
    raise ValueError(f"{row.name} cannot hold this {head.module}: {'; or '.join(dict.fromkeys(reasons))}")


def _other_option(row, form, head):
    for name, value in {**row.fixed, **form.fixed}.items():
        if head.options.get(name) != value:
            return f"`{name}` is {head.options.get(name)!r}, needs {value!r}"
    return None


def _laid_out(form, parameters, extras):
    """Returns (tensors, None); if the form cannot hold the parameters, the second entry is the reason."""
    tensors, sizes, held = {}, {}, set()
    for tensor in form.tensors:
        if not tensor.parameters:
            continue
        there = [parameters.get(name) for name in tensor.parameters]
        lacking = [name for name, ours in zip(tensor.parameters, there, strict=True) if ours is None]
        if lacking and (not tensor.optional or len(lacking) < len(there)):
            return None, f"`{tensor.key}` needs `{'`, `'.join(lacking)}`"
        if lacking:
            continue
        held.update(tensor.parameters)
        array, reason = _joined(tensor, there)
        if reason is None and not tensor.fits(array.shape, sizes):
            needed = bracketed(tensor.filled(sizes))
            reason = f"`{tensor.key}` would be {bracketed(array.shape)}, needs {needed}"
        if reason is not None:
            return None, reason
        tensors[tensor.key] = np.array(array, order="C")  # otherwise a view of the parameter
    more = sorted(name for name, ours in parameters.items() if ours is not None and name not in held | form.derived)
    if more:
        return None, f"it has no place for `{'`, `'.join(more)}`"
    for tensor in form.tensors:
        if tensor.parameters or (tensor.optional and tensor.key not in extras):
            continue
        tensors[tensor.key] = extras[tensor.key] if tensor.key in extras else _absent(tensor, sizes, tensors)
    return {tensor.key: tensors[tensor.key] for tensor in form.tensors if tensor.key in tensors}, None


def _joined(tensor, parameters):
    dtypes = {ours.dtype for ours in parameters}
    if len(dtypes) > 1:
        return None, f"`{tensor.key}` holds several parameters, and they have several dtypes"
    if any(ours.ndim != parameters[0].ndim for ours in parameters):
        return None, f"`{tensor.key}` holds several parameters, and they have several ranks"
    try:
        return np.concatenate([tensor.layout.write(ours) for ours in parameters]), None
    except ValueError:  # kernels of inputs of several widths
        return None, f"`{tensor.key}` holds several parameters, and they have several shapes"


def _absent(tensor, sizes, tensors):
    """Returns zeros for a tensor that is not a parameter and has no effect, if the head was not read from a file."""
    dtype = np.result_type(*tensors.values()) if tensor.axes else np.int64
    return np.zeros(tensor.filled(sizes), dtype)
