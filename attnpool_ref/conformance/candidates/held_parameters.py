"""Parameters that a module under test holds, by the names of its attributes."""

import difflib
import re
import sys
import types
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from attnpool_ref.conformance.cases.case import SEQUENCES
from attnpool_ref.contract.text import listed
from attnpool_ref.table import did_you_mean
from attnpool_ref.table.language import Shaped, terms

DEPTH, LOOKED_AT = 4, 1000
"""Limits of the search for parameters: the levels of nested attributes, and the number of objects."""

_INDEX = re.compile(r"\[\d+\]")


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

    The name may end with an index in brackets, such as ``[0]``, and with ``.T``, the transpose.

    Raises:
      ValueError: the target has no such attribute.
    """
    target = _owner(target)
    found: Any = target
    for part in path.replace("[", ".[").split("."):
        try:
            found = _part(found, part)
        except (AttributeError, KeyError, IndexError, TypeError):
            names = as_kernels(target)
            near = did_you_mean(path, names) or (f"; it holds {listed(names)}" if names else "")
            raise ValueError(f"the implementation has no attribute {path!r}{near}") from None
    return found


def code_of(target, path, root):
    """Returns the expression of :func:`at` in Python, of the variable ``root``."""
    found, code = _owner(target), root
    for part in path.replace("[", ".[").split("."):
        is_item = isinstance(found, Mapping) or (part.isdigit() and isinstance(found, Sequence))
        key = repr(part) if isinstance(found, Mapping) else part
        code += part if part.startswith("[") else f"[{key}]" if is_item else f".{part}"
        found = _part(found, part)
    return code


def _part(found, part):
    if _INDEX.fullmatch(part):
        return found[int(part[1:-1])]
    if isinstance(found, Mapping):
        return found[part]
    if part.isdigit() and isinstance(found, Sequence):
        return found[int(part)]
    return getattr(found, part)


def _as_it_lies(target, argument, path):
    """Returns an argument of a function, read from the attribute of a module that has the dotted name ``path``.

    Raises:
      ValueError: the module has no such attribute, or it is the weight of a ``torch.nn.Linear``, a transposed kernel.
    """
    if _is_weight_of_linear(target, path) and argument.endswith("kernel"):
        raise ValueError(
            f"`{path}` is the weight of a torch.nn.Linear, which holds the transposed kernel; "
            f"{_write(argument, _as_kernel(target, path))}"
        )
    return at(target, path)


def _is_weight_of_linear(target, path):
    owner, _, name = path.rpartition(".")
    torch = sys.modules.get("torch")
    linear = getattr(getattr(torch, "nn", None), "Linear", ())
    return name == "weight" and isinstance(at(target, owner) if owner else _owner(target), linear)


def _as_kernel(target, path):
    """Returns the name of a parameter, that of the weight of a ``torch.nn.Linear`` with ``[0]`` or ``.T``.

    With one output, the kernel is usually a vector, and its name ends with ``[0]``.
    """
    if not _is_weight_of_linear(target, path):
        return path
    return f"{path}[0]" if len(at(target, path)) == 1 else f"{path}.T"


def as_kernels(target):
    """Returns the names of :func:`held`, those of weights of ``torch.nn.Linear`` as they name kernels.

    >>> import types, numpy as np
    >>> as_kernels(types.SimpleNamespace(query=np.ones(2)))
    ['query']
    """
    return [_as_kernel(target, path) for path in held(target)]


PER_TOKEN = SEQUENCES - {"n"}
HOLDABLE = ("data", "parameter", "number", "stretch")
"""Kinds of arguments that a module may hold."""


def assignments(row, target, taken):
    """Returns the ways to give each array of a module to an argument of the function, the most likely one first.

    A way is a dict from arguments to names as :func:`at` takes them. The shapes of the arrays agree with those of the
    arguments, among which are all required ones but those in ``taken``. The most likely way has the fewest transposes
    and indices, and names that resemble the arguments.
    """
    names = as_kernels(target)
    free = [k for k, a in row.arguments.items() if a.kind in HOLDABLE and k not in taken and not PER_TOKEN & {*a.own}]
    needed = {key for key in free if not row.arguments[key].optional and row.arguments[key].kind != "number"}
    found = []

    def extend(chosen, sizes, cost):
        if len(chosen) == len(names):
            found.extend([(cost, chosen)] if needed <= chosen.keys() else [])
            return
        for turned, path in enumerate(_turns(target, names[len(chosen)])):
            shape = tuple(at(target, path).shape)
            for key in free:
                fitting = (axes for axes in shapes_of(row, key) if len(axes) == len(shape))
                together = next((agreed for axes in fitting if (agreed := _agreed(axes, shape, sizes))), None)
                if key not in chosen and together is not None and len(found) < LOOKED_AT:
                    alike = difflib.SequenceMatcher(None, path.replace("weight", "kernel"), key).ratio()
                    extend(chosen | {key: path}, together, cost + turned + 1 - alike)

    extend({}, {"": 0}, 0.0)
    return [chosen for _, chosen in sorted(found, key=lambda each: each[0])]


def _turns(target, name):
    """Returns a name of :func:`as_kernels`, and with ``[0]`` or ``.T`` if this makes another shape."""
    shape, plain = tuple(at(target, name).shape), name.rpartition(".")[2].isidentifier() and not name.endswith(".T")
    return [
        name,
        *([f"{name}[0]"] if plain and shape[:1] == (1,) else []),
        *([f"{name}.T"] if plain and len(shape) == 2 else []),
    ]


def _agreed(axes, shape, sizes):
    """Returns the sizes of axes with those of one more array; None if two disagree."""
    for axis, size in zip(axes, shape, strict=True):
        if sizes.get(axis, size) != size:
            return None
        sizes = sizes | ({axis: size} if _is_name(axis) else {})
    return sizes


def _write(argument, path):
    return f"write `{path}` (--parameter {argument}={path}, parameters={{{argument!r}: {path!r}}})"


def transposed(argument):
    """Returns the clause of a message that shows how to name a kernel that the module holds transposed."""
    return f"if it is transposed, {_write(argument, 'NAME.T')}"


def reshaped(argument, shape, given):
    """Returns the clause of a message that shows how to pass a parameter that has another shape in the module."""
    if isinstance(given, Mapping) and shape[:1] == (1,):
        return _write(argument, f"{given[argument]}[0]")
    return f"what has another shape needs Python: parameters=lambda m: {{{argument!r}: m.NAME.reshape(...)}}"


def parameters_of(candidate, row):
    """Returns the function's arguments that the implementation holds, as a dict of arrays of its library.

    The dict is empty if ``Candidate.parameters`` is None.

    Raises:
      ValueError: the function has no such argument, or the target has no such attribute.
    """
    given = candidate.parameters
    if given is None:
        return {}
    if isinstance(given, Mapping):
        for key in given:
            _check_argument(row, key)
        held = {key: _as_it_lies(candidate.target, key, path) for key, path in given.items()}
    else:
        held = given(candidate.target)
    found = {k: v for k, v in held.items() if v is not None}
    for key in found:
        _check_argument(row, key)
    return found


def _check_rank(row, key, shape, given):
    if not any(len(axes) == len(shape) for axes in shapes_of(row, key)):
        needed = " or ".join(f"[{', '.join(axes)}]" for axes in shapes_of(row, key))
        raise ValueError(
            f"`{key}` has shape {shape}, {row.name} needs {needed} of a parameter; {reshaped(key, shape, given)}"
        )


def _check_argument(row, key):
    if key not in row.arguments:
        near = did_you_mean(key, row.arguments)
        raise ValueError(f"{row.name} has no argument {key!r}, which `parameters` gives{near}")


def shapes_of(row, key):
    """Returns the shapes of an argument, without batch axes, which no parameter of a module has."""
    return [tuple(a for a in shape if a != "...") for shape in row.arguments[key].shapes]


def restricted(row, candidate, parameters):
    """Returns the function's row as the implementation has it: with fixed sizes, shared data, and without axes.

    Sizes are fixed by ``Candidate.sizes`` and by the shapes of ``parameters``. A name in place of a size is that of
    another axis, which has the same size. An optional axis is absent if ``Candidate.without`` names it, or if a
    parameter lacks it.

    Raises:
      ValueError: the function has no such argument or axis, a size of 0 is that of an axis that is not only a term of
        a sum, an axis gets two sizes, a parameter has another rank, or the data in ``Candidate.shared`` cannot be
        shared.
    """
    _check_shared(row, candidate.shared)
    _check_without(row, candidate.without)
    lacked = {a.lacks for k, a in row.arguments.items() if k in parameters and parameters[k].ndim < len(a.own)}
    row = replace(row, shared=tuple(candidate.shared), without=(*candidate.without, *(lacked - {""})))
    for key, value in parameters.items():
        _check_rank(row, key, value.shape, candidate.parameters)
    row = _sized(row, candidate.sizes, parameters, candidate.fixed)
    ruled = {rule.argument for rule in row.relations if isinstance(rule, Shaped)}
    held = {k: shapes_of(row, k) for k in parameters.keys() - ruled if not row.arguments[k].lacks}
    held = {k: tuple(s for s in shapes if len(s) == parameters[k].ndim) for k, shapes in held.items()}
    return replace(row, held=held)


def _check_shared(row, names):
    """Raises a ValueError if the function has no such data, or if no data with batch axes would be left."""
    data = [k for k, a in row.arguments.items() if a.kind == "data" and a.batched and a.own]
    can = data if len(data) > 1 else []
    for name in names:
        if name not in row.arguments:
            raise ValueError(f"{row.name} has no argument {name!r}, which `shared` gives{did_you_mean(name, can)}")
        if name not in can:
            raise ValueError(f"{row.name}: `shared` gives `{name}`, {_only(listed(can), 'data to share')}")
    if can and set(can) <= set(names):
        raise ValueError(f"{row.name}: `shared` gives all data, {listed(can)}; one of them needs batch axes")


def _check_without(row, axes):
    """Raises a ValueError for an axis that is not optional."""
    can = dict.fromkeys(a.lacks for a in row.arguments.values() if a.lacks)
    for axis in axes:
        if axis not in can:
            raise ValueError(f"{row.name}: `without` gives the axis {axis!r}, {_only(listed(can), 'optional axis')}")


def _only(names, kind):
    return f"needs one of {names}" if names else f"but it has no {kind}"


def _alternatives(row, key, parameters, fixed):
    """Returns the shapes that a parameter may have: of its rank, and as the options in ``fixed`` require."""
    given = dict.fromkeys(parameters, True) | dict(fixed)
    shapes = [shape for shape in shapes_of(row, key) if len(shape) == parameters[key].ndim]
    for rule in row.relations:
        if isinstance(rule, Shaped) and rule.argument == key and rule.name in given:
            axes = tuple(axis for axis in rule.axes if axis != "...")
            shapes = [shape for shape in shapes if (shape == axes) == rule.holds(given)] or shapes
    return shapes


def _sizes_in(shape, value):
    """Yields (axis, size) of each axis of a parameter, of 3d that of d; the size is a fraction if the axis has another."""
    for axes, size in zip(map(terms, shape), value.shape, strict=True):
        if len(axes) == 1:
            (count, axis), *_ = axes
            yield axis, size if count == 1 else size // count if size % count == 0 else size / count


def _sized(row, sizes, parameters, fixed):
    single = {axis: None for a in row.arguments.values() for shape in a.shapes for axis in shape if _is_name(axis)}
    axes = {
        axis: None for a in row.arguments.values() for shape in a.shapes for long in shape for _, axis in terms(long)
    }
    equal = {axis: other for axis, other in sizes.items() if isinstance(other, str)}
    for axis in (*sizes, *equal.values()):
        if axis not in axes:
            raise ValueError(f"{row.name} has no axis {axis!r}{did_you_mean(axis, axes)}")
        if sizes.get(axis) == 0 and axis in single:
            raise ValueError(f"{row.name}: the size of {axis} is 0, needs 1 or more; only a term of a sum may be 0")
    if equal:
        row = replace(row, rules=(*row.rules, *(f"{axis}={other}" for axis, other in equal.items())))
    sizes = {axis: size for axis, size in sizes.items() if axis not in equal}
    told = dict.fromkeys(sizes, "`sizes`")
    shapes = {key: _alternatives(row, key, parameters, fixed) for key in parameters}
    for key in sorted(parameters, key=lambda key: len(shapes[key])):
        value = parameters[key]
        fits = (s for s in shapes[key] if all(sizes.get(axis, size) == size for axis, size in _sizes_in(s, value)))
        for axis, size in _sizes_in(next(fits, shapes[key][0]), value):
            if sizes.setdefault(axis, size) != size:
                raise ValueError(
                    f"`{key}` has shape {value.shape} and {row.name} needs {row.arguments[key]}, but {axis} is "
                    f"{sizes[axis]} by {told[axis]}; {transposed(key)}"
                )
            told.setdefault(axis, f"`{key}`")
    return replace(row, sizes=sizes) if sizes else row


def _is_name(axis):
    return axis.rstrip("'").isidentifier()
