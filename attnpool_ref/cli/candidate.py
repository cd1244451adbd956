"""Imports the implementation that the arguments of ``attnpool check`` name."""

import functools
import importlib
import inspect
import os
import re
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnpool_ref import extras, table
from attnpool_ref.cli.exits import Refused
from attnpool_ref.conformance.candidates import Candidate, naming
from attnpool_ref.conformance.candidates.capture import said


@dataclass(frozen=True)
class Named:
    """Name of an implementation on the command line; calling this object imports it, in the calling process.

    Attributes:
      words: "my.module", "my.module:function", or a file in the module's place.
      row: the row that the function implements, or None.
      only: names of the rows to judge; all that are named if empty.
      implementation: the value of an argument ``implementation``, or None.
      calls: how it is called (:class:`~attnpool_ref.conformance.Calls`).
    """

    words: str
    row: str | None = None
    only: tuple[str, ...] = ()
    implementation: str | None = None
    calls: dict[str, Any] | None = None

    def __call__(self):
        """Imports it; returns the Candidate, and the names of the rows to judge (none: all of them).

        Raises:
          Refused: nothing of that name can be imported, or it is not clear which row it is.
          ValueError: it cannot be called so.
        """
        target, rows = find_candidate(self.words, self.row)
        if self.implementation is not None:
            target, rows = forced(target, self.implementation, rows)
        return Candidate(target, **(self.calls or {})), tuple(dict.fromkeys(self.only)) or rows


def find_candidate(candidate, row=None):
    """Returns the target that an implementation's name leads to, and the rows to judge (none: all of them).

    Args:
      candidate: "my.module", "my.module:function", or a file in the module's place, "./my_file.py:function".
      row: the row that the function implements; needless where it has the row's name.

    Raises:
      Refused: nothing of that name can be imported, or it is not clear which row it is.
    """
    module_name, _, attribute = candidate.partition(":")
    if row and not attribute:
        raise Refused(f"--as {row} needs one function: {module_name}:function")
    module = _import_file(module_name) if module_name.endswith(".py") else _import(module_name)
    if not attribute:
        return module, ()
    function = module
    for part in attribute.split("."):
        function = getattr(function, part, None)
    if not callable(function):
        raise Refused(f"{module_name} has no function {attribute!r}")
    row = row or attribute.rpartition(".")[2]
    if row not in table.BY_NAME:
        raise Refused(f"{row!r} is no row of the table; say which one it is: --as NAME (see attnpool list)")
    return function, (row,)


def forced(namespace, implementation, rows=()):
    """Returns the functions of a namespace that take ``implementation``, each with this value, and their names.

    Raises:
      Refused: no function takes it.
    """
    functions = {}
    for name in rows or table.BY_NAME:
        function = getattr(namespace, name, None)
        if function is not None and "implementation" in inspect.signature(function).parameters:
            functions[name] = functools.partial(function, implementation=implementation)
    if not functions:
        raise Refused("no function of the candidate takes `implementation`")
    states = {name: getattr(namespace, name, None) for name in ("merge_states", "finalize_state")}
    return types.SimpleNamespace(**functions, **states), tuple(functions)


def _import_file(name):
    """Imports a module from its file, with the file's folder on the path, as for a script in the same folder."""
    path = Path(name).resolve()
    if not path.is_file():
        raise Refused(f"there is no file {name}")
    if not path.stem.isidentifier():
        better = re.sub(r"\W", "_", path.stem)
        raise Refused(f"{name} has no name that Python can import; call it {better}.py")
    sys.path.insert(0, str(path.parent))
    module = _import(path.stem)
    if Path(getattr(module, "__file__", None) or "").resolve() != path:
        raise Refused(f"{name} has the name of a module that is imported already; call it otherwise")
    if path.parent != Path.cwd():
        naming.FOLDERS[path.stem] = str(path.parent)
    return module


def _import(name):
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # an installed command does not look there by itself
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name in extras.EXTRAS["flax"]:
            raise Refused(extras.missing("flax").removeprefix("attnpool: ")) from None
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise Refused(f"there is no module {name!r}, here or among what is installed") from None
        raise Refused(f"{name} needs {error.name!r}, which is not installed") from None
    except (Exception, SystemExit, GeneratorExit) as error:  # any error of the implementation
        raise Refused(f"{name} cannot be imported ({said(error).partition(chr(10))[0]})") from None
