"""Import of the implementation that the arguments of ``attnpool check`` name."""

import importlib
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnpool_ref import cli, table
from attnpool_ref.cli.exits import Refused
from attnpool_ref.conformance.candidates import Candidate, as_candidate, naming
from attnpool_ref.conformance.candidates.capture import said


@dataclass(frozen=True)
class Named:
    """Name of an implementation on the command line; calling this object imports the implementation.

    Attributes:
      words: "my.module", "my.module:function", or a file in the module's place.
      row: the attnpool function that the function implements, or None.
      only: names of the functions to judge; if empty, ``row`` or all functions.
      calls: the calling convention (:class:`~attnpool_ref.conformance.Calls`).
    """

    words: str
    row: str | None = None
    only: tuple[str, ...] = ()
    calls: dict[str, Any] | None = None

    def __call__(self):
        """Imports the implementation; returns its Candidate, and the names of the functions to judge (empty for all).

        Raises:
          Refused: see :func:`find_candidate`.
          ValueError: the calling convention is not valid, or the implementation is a Candidate, which has its own.
        """
        target, rows = find_candidate(self.words, self.row)
        given = {
            key: value for key, value in (self.calls or {}).items() if value or (value == 0 and value is not False)
        }
        if isinstance(target, Candidate) and given:
            raise Refused(f"{self.words} is a Candidate, which has its own calling convention: leave out the options")
        return as_candidate(target, given), tuple(dict.fromkeys(self.only)) or rows


def find_candidate(candidate, row=None):
    """Imports an implementation by its name; returns it, and the names of the functions to judge (empty for all).

    ``candidate`` and ``row`` are :attr:`Named.words` and :attr:`Named.row`. The function needs no ``row`` if both have
    the same name.

    Raises:
      Refused: nothing of that name can be imported, or it is not clear which function it implements.
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
    if not callable(function) and not isinstance(function, Candidate):
        raise Refused(f"{module_name} has no function {attribute!r}")
    row = row or attribute.rpartition(".")[2]
    if row not in table.BY_NAME:
        raise Refused(f"{row!r} is no function of attnpool; say which one it is: --as NAME (see attnpool list)")
    return function, (row,)


def _import_file(name):
    """Imports a module from its file, with the file's folder on the path, as for a script in the same folder.

    Raises:
      Refused: there is no such file, its name is no identifier, another module of its name is imported already, or the
        import fails.
    """
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
        sys.path.insert(0, os.getcwd())  # it is not on the path of an installed command
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name in cli.EXTRAS["flax"]:
            raise Refused(cli.missing("flax").removeprefix("attnpool: ")) from None
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise Refused(f"there is no module {name!r}, here or among what is installed") from None
        raise Refused(f"{name} needs {error.name!r}, which is not installed") from None
    except (Exception, SystemExit, GeneratorExit) as error:  # any error of the implementation
        raise Refused(f"{name} cannot be imported ({said(error).partition(chr(10))[0]})") from None
