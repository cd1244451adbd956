"""Parameters that a module under test holds, by the names of its attributes."""

import sys
import types
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from attnpool_ref.table.suggestions import did_you_mean

DEPTH, LOOKED_AT = 4, 1000
"""Limits of the search for parameters: the levels of nested attributes, and the number of objects."""

MOST = 8
"""Largest number of parameters that a message names."""


def held(target):
    """Returns the dotted names of the arrays that a module holds.

    The list is empty for a function, a class or a Python module, and if reading an attribute raises an error.

    >>> import types, numpy as np
    >>> held(types.SimpleNamespace(query=np.ones(2), key=types.SimpleNamespace(kernel=np.ones((3, 2)))))
    ['query', 'key.kernel']
    """
    owner: Any = _owner(target)
    if isinstance(owner, (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)):
        return []
    try:
        if hasattr(owner, "named_parameters"):  # PyTorch, whose modules do not store parameters as plain attributes
            return [name for name, _ in owner.named_parameters()]
        return list(_arrays_in(owner, DEPTH, set()))
    except Exception:  # reading attributes runs the implementation's code, which may raise anything
        return []


def _owner(target):
    """Returns the object of a bound method, or the target itself."""
    return target.__self__ if isinstance(target, types.MethodType) else target


def _arrays_in(target, depth, seen):
    if id(target) in seen or len(seen) > LOOKED_AT:
        return
    seen.add(id(target))
    for name, value in _parts(target):
        if _is_array(value):
            yield name
        elif depth > 1:
            yield from (f"{name}.{inner}" for inner in _arrays_in(value, depth - 1, seen))


def _parts(target):
    """Returns (name, value) pairs of a mapping, a list or an object; none for a Python module or a function."""
    if isinstance(target, Mapping):
        return [(str(key), value) for key, value in target.items()]
    if isinstance(target, (list, tuple)):
        return [(str(place), value) for place, value in enumerate(target)]
    if isinstance(target, types.ModuleType) or (callable(target) and hasattr(target, "__code__")):
        return []
    return [(name, value) for name, value in getattr(target, "__dict__", {}).items() if not name.startswith("_")]


def _is_array(value):
    return isinstance(getattr(value, "shape", None), tuple) and hasattr(value, "dtype")


def at(target, path):
    """Returns the value under a dotted name of attributes, keys and list indices.

    Raises:
      ValueError: the target has no such attribute.
    """
    found = target = _owner(target)
    for part in path.split("."):
        try:
            found = _part(found, part)
        except (AttributeError, KeyError, IndexError):
            own = held(target)
            near = did_you_mean(path, own) or (f"; it holds {listed(own)}" if own else "")
            raise ValueError(f"the candidate has no attribute {path!r}{near}") from None
    return found


def _part(found, part):
    if isinstance(found, Mapping):
        return found[part]
    if part.isdigit() and isinstance(found, Sequence):
        return found[int(part)]
    return getattr(found, part)


def listed(names):
    """Returns names as text, in backticks; of more than :data:`MOST` the first ones and the number of the others."""
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return ", ".join(f"`{name}`" for name in names[:MOST]) + more


def attributes(target, paths):
    """Returns arguments of a function, read from attributes of a module.

    Args:
      target: the module.
      paths: the dotted name of the attribute, for each argument.

    Raises:
      ValueError: the module has no such attribute, or it is the weight of a ``torch.nn.Linear``, a transposed kernel.
    """
    return {argument: _as_it_lies(target, argument, path) for argument, path in paths.items()}


def _as_it_lies(target, argument, path):
    owner, _, name = path.rpartition(".")
    torch = sys.modules.get("torch")
    linear = getattr(getattr(torch, "nn", None), "Linear", ())
    if owner and name == "weight" and isinstance(at(target, owner), linear) and argument.endswith("kernel"):
        raise ValueError(
            f"`{path}` is the weight of a torch.nn.Linear, which holds the transposed kernel; {in_python(argument, path)}"
        )
    return at(target, path)


def in_python(argument, path="NAME"):
    """Returns the clause of a message that shows how to pass a kernel that the module holds transposed."""
    return f"what lies transposed needs Python: parameters=lambda m: {{{argument!r}: m.{path}.T}}"


def reshaped(argument):
    """Returns the clause of a message that shows how to pass a parameter that has another shape in the module."""
    return f"what has another shape needs Python: parameters=lambda m: {{{argument!r}: m.NAME.reshape(...)}}"


def parameters_of(candidate, row, adapter):
    """Returns the function's arguments that the implementation holds, as a dict of NumPy arrays.

    The dict is empty if ``Candidate.parameters`` is None.

    Raises:
      ValueError: the function has no such argument, needs another rank of it, or the target has no such attribute.
    """
    given = candidate.parameters
    if given is None:
        return {}
    for key in given if isinstance(given, Mapping) else ():
        _check_argument(row, key)
    held = attributes(candidate.target, given) if isinstance(given, Mapping) else given(candidate.target)
    found = {k: np.asarray(adapter.read(v)) for k, v in held.items() if v is not None}
    for key, value in found.items():
        _check_argument(row, key)
        if not any(len(own) == value.ndim for own in shapes_of(row, key)):
            needed = " or ".join(f"[{', '.join(own)}]" for own in shapes_of(row, key))
            raise ValueError(
                f"`{key}` has shape {value.shape}, {row.name} needs {needed} of a parameter; {reshaped(key)}"
            )
    return found


def _check_argument(row, key):
    if key not in row.arguments:
        near = did_you_mean(key, row.arguments)
        raise ValueError(f"{row.name} has no argument {key!r}, which `parameters` gives{near}")


def shapes_of(row, key):
    """Returns the shapes of an argument, without batch axes, which no parameter of a module has."""
    return [tuple(a for a in own if a != "...") for own in row.arguments[key].shapes]


def sized(row, sizes, parameters):
    """Returns the function's row with axis sizes fixed by ``sizes`` and by the shapes of ``parameters``.

    A name in place of a size is that of another axis, which has the same size.

    Raises:
      ValueError: the function has no such axis, or an axis gets two sizes.
    """
    axes = {axis: None for a in row.arguments.values() for own in a.shapes for axis in own if _is_name(axis)}
    equal = {axis: other for axis, other in sizes.items() if isinstance(other, str)}
    for axis in (*sizes, *equal.values()):
        if axis not in axes:
            raise ValueError(f"{row.name} has no axis {axis!r}{did_you_mean(axis, axes)}")
    if equal:
        row = replace(row, rules=(*row.rules, *(f"{axis}={other}" for axis, other in equal.items())))
    sizes = {axis: size for axis, size in sizes.items() if axis not in equal}
    told = dict.fromkeys(sizes, "`sizes`")
    for key, value in parameters.items():
        own = next(own for own in shapes_of(row, key) if len(own) == value.ndim)
        for axis, size in zip(own, value.shape, strict=True):
            if not _is_name(axis):
                continue
            if sizes.setdefault(axis, size) != size:
                raise ValueError(
                    f"`{key}` has shape {value.shape} and {row.name} needs {row.arguments[key]}, but {axis} is "
                    f"{sizes[axis]} by {told[axis]}; {in_python(key)}"
                )
            told.setdefault(axis, f"`{key}`")
    return replace(row, sizes=sizes) if sizes else row


def _is_name(axis):
    return axis.rstrip("'").isidentifier()
