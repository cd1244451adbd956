"""Entries of the index of names: a name in common use, and the call here, checked against this version."""

import ast
import functools
import inspect
from dataclasses import dataclass

import attnpool_ref
from attnpool_ref import table

NUMPY = {"abs", "arange", "broadcast_to", "concatenate", "log1p", "relu", "sqrt", "swapaxes", "tanh", "where", "zeros"}
FOREIGN = frozenset(NUMPY | {"f", "g"})
"""Functions that a call may use besides those of attnpool: NumPy's and JAX's, and f and g of the caller."""


@dataclass(frozen=True)
class Entry:
    """One entry of the index.

    Attributes:
      names: names in use, the usual one first.
      call: Python statements; empty if attnpool does not have the function, and ``differs`` then says what to do.
      source: the paper, and well-known code.
      differs: the difference from that code, or what the call needs, in one to three short sentences.
      module: the class of attnpool_flax that holds the parameters, if any.
      takes: shapes and options that the call needs, as "function argument[axes]" or "function option=value".
    """

    names: tuple[str, ...]
    call: str
    source: str
    differs: str
    module: str = ""
    takes: tuple[str, ...] = ()

    @functools.cached_property
    def functions(self):
        """The functions of attnpool that the call names, in their order."""
        return tuple(dict.fromkeys(name for name, _ in _calls(self.call)))

    @functools.cached_property
    def missing(self):
        """Parts of the call that this version lacks; empty if the entry can be shown."""
        found = [why for name, node in _calls(self.call) for why in _wrong(name, node)]
        for place in self.takes:
            function, argument = place.split(" ", 1)
            if function in table.BY_NAME and not _takes(table.get(function), argument):
                found.append(place)
        return tuple(dict.fromkeys(found))


def entries(text):
    """Parses entries: a line with the names, separated by " | ", then the other fields, each as "  field: text".

    A line with four blanks continues a field. In a call it is the next statement, unless a bracket is open. Without the
    field ``module`` it is the module of a function in the call, if one has a module; "none" is none.
    """
    found, fields, key = [], {}, "names"
    for line in text.strip().splitlines():
        if not line.startswith(" "):
            fields, key = {"names": line, "call": ""}, "names"
            found.append(fields)
        elif line.startswith("    "):
            whole = fields[key].count("(") == fields[key].count(")")
            fields[key] += ("\n" if key == "call" and whole else " ") + line.strip()
        else:
            key, _, value = line.strip().partition(": ")
            fields[key] = value
    for fields in found:
        modules = [table.get(name).module for name, _ in _calls(fields["call"]) if name in table.BY_NAME]
        module = fields.get("module") or next(filter(None, modules), "")
        fields["module"] = "" if module == "none" else module
        fields |= {key: tuple(fields[key].split(" | ")) for key in ("names", "takes") if key in fields}
    return tuple(Entry(**fields) for fields in found)


def _calls(text):
    """Returns (name, call) of each call by a plain name that is not in ``FOREIGN``, in the order of the text."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    calls = sorted(calls, key=lambda node: (node.lineno, node.col_offset))
    named = [(node.func.id, node) for node in calls if isinstance(node.func, ast.Name)]
    return [(name, node) for name, node in named if name not in FOREIGN]


def _wrong(name, node):
    """Returns the reasons why a call does not work in this version."""
    function = getattr(attnpool_ref, name, None) if name in attnpool_ref.__all__ else None
    if function is None:
        return [name]
    given = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    signature = inspect.signature(function)
    spread = any(keyword.arg is None for keyword in node.keywords)  # **maps stands for all other required arguments
    try:
        (signature.bind_partial if spread else signature.bind)(*node.args, **given)
    except TypeError as error:
        return [f"{name}: {error}"]
    options = table.BY_NAME[name].options if name in table.BY_NAME else {}
    return [
        f"{name}: {key}={value.value!r}"
        for key, value in given.items()
        if isinstance(value, ast.Constant) and isinstance(options.get(key), tuple) and value.value not in options[key]
    ]


def _takes(row, argument):
    """Returns whether a row has this shape of an argument, as in "weights[..., L, d]", or this value of an option."""
    option, equals, value = argument.partition("=")
    if equals:
        return value in row.options.get(option, ())
    name, _, axes = argument.removesuffix("]").partition("[")
    return name in row.arguments and tuple(axes.split(", ")) in row.arguments[name].shapes
