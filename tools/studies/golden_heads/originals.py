"""Originals: classes of installed libraries, and of files that cannot be installed or imported as they are."""

import ast
import importlib.metadata
import importlib.util
import subprocess
from pathlib import Path


class Checkouts:
    """A folder with checkouts of repositories, each named like its repository."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def definitions(self, repository, path, *names, given=(), replaced=()):
        """Returns classes and functions of a file; see :func:`definitions`."""
        return definitions(self.folder / repository / path, names, given, replaced)

    def commit(self, repository):
        """Returns the checked-out commit, in eight digits."""
        done = subprocess.run(
            ["git", "-C", str(self.folder / repository), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout[:8]


def installed(library, path, *names, given=()):
    """Returns classes and functions of a library's file, without importing the library."""
    (folder,) = importlib.util.find_spec(library).submodule_search_locations
    return definitions(Path(folder) / path, names, given)


def version(distribution):
    """Returns name and version of an installed library."""
    return f"{distribution} {importlib.metadata.version(distribution)}"


def definitions(path, names, given=(), replaced=()):
    """Runs some definitions of a file, unchanged.

    Args:
      path: the file.
      names: names of the classes and functions; for one name that object is returned, else a tuple.
      given: objects in place of imports from its own repository, by name. Other imports that fail are ignored.
      replaced: pairs of texts, for sizes that a constructor does not take as arguments and that are smaller here.
    """
    text = path.read_text()
    for old, new in replaced:
        if old not in text:
            raise ValueError(f"{path.name} has no {old!r}")
        text = text.replace(old, new)
    scope = {"__name__": path.stem, "__package__": ""}
    tree = ast.parse(text)
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            try:
                _run(statement, scope)
            except ImportError:
                continue
    scope |= dict(given)
    for statement in tree.body:
        if getattr(statement, "name", None) in names and statement.name not in dict(given):
            _run(statement, scope)
    found = tuple(scope[name] for name in names)
    return found[0] if len(found) == 1 else found


def _run(statement, scope):
    exec(compile(ast.Module([statement], []), scope["__name__"], "exec"), scope)
