"""Types of the Flax modules, for the stubs of ``attnpool_flax/modules`` and ``attnpool_flax/linen``.

The types of a constructor are those of the NNX class's fields. The types of a call follow from the row of its function,
as in :mod:`make_stubs`: with ``return_weights=True`` the result is a pair.
"""

import ast
import inspect
import textwrap

import attnpool_flax
from attnpool_flax.modules.creation import CommonFields
from attnpool_flax.modules.specs import SPECS
from attnpool_ref import table

IMPORTS = {
    "attnpool_flax.modules": """from typing import Literal, overload

from flax import nnx
from flax.typing import Dtype, Initializer, PrecisionLike
from jax import Array

from attnpool_flax import ArrayLike
from attnpool_flax.modules.parameters import Normalizer""",
    "attnpool_flax.linen": """from typing import Any, Literal, overload

from flax import linen as nn
from flax.typing import Dtype, Initializer, PrecisionLike
from jax import Array

from attnpool_flax import ArrayLike
from attnpool_flax.linen.formats import load as load
from attnpool_flax.linen.formats import save as save
from attnpool_flax.modules.parameters import Normalizer""",
}
OF_CALL = {
    "num_segments": "int | None",
    "deterministic": "bool | None",
    "rngs": "nnx.Rngs | nnx.RngStream | Array | None",
}
"""Arguments of calls that are not arrays."""


def module_stub(package):
    """Returns the text of a stub, unformatted."""
    namespace = vars(attnpool_flax)["linen"] if package == "attnpool_flax.linen" else attnpool_flax.modules
    parts = [IMPORTS[package], f"__all__ = {namespace.__all__!r}"]
    for name in SPECS:
        parts.append(_module(name, getattr(namespace, name), package == "attnpool_flax.linen"))
    return "\n\n".join(parts) + "\n"


def _module(name, kind, linen):
    """Returns a class: its docstring if it has no source, attributes, constructor and call."""
    lines = [f"class {name}({'nn' if linen else 'nnx'}.Module):"]
    if linen:
        lines.append(textwrap.indent(f'"""{inspect.getdoc(kind)}"""', "    "))
    constructor = _constructor(name, kind, linen)
    lines += [f"    {attribute}: {annotation}" for attribute, annotation in _attributes(name, constructor, linen)]
    lines.append(f"    def __init__(self, {arguments(constructor)}) -> None: ...")
    return "\n".join([*lines, *_calls(name, kind)])


def _constructor(name, kind, linen):
    """Returns (argument, annotation, default or None, keyword-only) of each argument, in order."""
    types = _field_types(CommonFields) | _field_types(getattr(attnpool_flax, name))
    types |= {"name": "str | None", "parent": "Any"} | ({"deterministic": "bool | None"} if linen else {})
    found = []
    for parameter in inspect.signature(kind.__init__).parameters.values():
        if parameter.name != "self":
            default = None if parameter.default is parameter.empty else _default(parameter.default)
            if parameter.name == "rngs" and default:
                types["rngs"] += " | None"
            keyword_only = parameter.kind is parameter.KEYWORD_ONLY
            found.append((parameter.name, types[parameter.name], default, keyword_only))
    return found


def _field_types(kind):
    """Returns the annotations of an NNX class as they are written, without ``InitVar``."""
    (tree,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            annotation = node.annotation
            if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "InitVar":
                annotation = annotation.slice
            found[node.target.id] = ast.unparse(annotation)
    return found


def _default(value):
    return repr(value) if value is None or isinstance(value, (bool, int, float, str)) else "..."


def _attributes(name, constructor, linen):
    """Yields the stored arguments and, of an NNX module, its parameters, some of which may be None."""
    entries = {}
    for parameter in SPECS[name].parameters:
        entries.setdefault(parameter.name, []).append(parameter)
    stored = [argument for argument, *_ in constructor if argument not in ("name", "parent", "rngs")]
    if not linen:
        stored = [each for each in stored if each not in entries and not each.endswith("_init")]
    types = {argument: annotation for argument, annotation, *_ in constructor}
    yield from ((argument, types[argument]) for argument in stored)
    if linen:
        return
    for parameter, ways in entries.items():
        variable = "nnx.BatchStat" if ways[0].frozen else "nnx.Param"
        yield parameter, f"{variable} | None" if len(ways) == 1 and ways[0].when else variable
    if "dropout_rate" in types:
        yield "dropout", "nnx.Dropout | None"


def _calls(name, kind):
    """Yields the call, or its overloads by ``return_weights``."""
    row, signature = table.get(SPECS[name].function), inspect.signature(kind.__call__)
    pooled = result_type(row.results)
    if "return_weights" not in signature.parameters:
        yield f"    def __call__({arguments(entries(signature, _call_type))}) -> {pooled}: ..."
        return
    for flag, result in overloads(pooled, result_type(row.weight_results)):
        yield f"    @overload\n    def __call__({arguments(entries(signature, _call_type, flag))}) -> {result}: ..."


def _call_type(parameter):
    if parameter.name == "self":
        return ""
    return OF_CALL.get(parameter.name, "ArrayLike" if parameter.default is parameter.empty else "ArrayLike | None")


def result_type(results, array="Array"):
    """Returns the type of a result: an array, or a tuple of several."""
    return array if len(results) == 1 else f"tuple[{', '.join([array] * len(results))}]"


def overloads(pooled, weights):
    """Returns (annotation of ``return_weights``, type of the result) of each overload of a function."""
    both = f"tuple[{pooled}, {weights}]"
    return ("Literal[False]", pooled), ("Literal[True]", both), ("bool", f"{pooled} | {both}")


def entries(signature, type_of, of_weights="bool"):
    """Yields (argument, annotation, default or None, keyword-only) of each argument of a signature.

    Overloads for True and for any bool have no default, because a call without the argument has another overload.
    """
    for parameter in signature.parameters.values():
        is_flag = parameter.name == "return_weights"
        default = None if parameter.default is parameter.empty else repr(parameter.default)
        default = None if is_flag and of_weights in ("Literal[True]", "bool") else default
        annotation = of_weights if is_flag else type_of(parameter)
        yield parameter.name, annotation, default, parameter.kind is parameter.KEYWORD_ONLY


def arguments(found):
    """Returns arguments as the text of a signature."""
    parts, keyword_only = [], False
    for name, annotation, default, only in found:
        if only and not keyword_only:
            parts.append("*")
            keyword_only = True
        typed = f"{name}: {annotation}" if annotation else name
        parts.append(typed if default is None else f"{typed} = {default}")
    return ", ".join(parts)
