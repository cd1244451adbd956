"""The originals: classes of installed libraries, and of files that are no library or that need more than is wanted here."""

import ast
import importlib.metadata
import importlib.util
import subprocess
from pathlib import Path


class Checkouts:
    """A folder with checkouts of repositories, each under the repository's own name."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def definitions(self, repository, path, *names, given=(), replaced=()):
        """Classes and functions of a file; see :func:`definitions`."""
        return definitions(self.folder / repository / path, names, given, replaced)

    def commit(self, repository):
        """What is checked out, in eight digits."""
        done = subprocess.run(
            ["git", "-C", str(self.folder / repository), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout[:8]


def installed(library, path, *names, given=()):
    """Classes and functions of a file of a library, which is not imported."""
    (folder,) = importlib.util.find_spec(library).submodule_search_locations
    return definitions(Path(folder) / path, names, given)


def version(distribution):
    """Name and version of an installed library."""
    return f"{distribution} {importlib.metadata.version(distribution)}"


def definitions(path, names, given=(), replaced=()):
    """Runs some definitions of a file, word for word.

    Args:
      path: the file.
      names: its classes and functions that are wanted; with one name that object is returned, else a tuple.
      given: what the file would import of its own repository, by name. Other imports that fail are left out.
      replaced: pairs of texts: sizes that a constructor does not take, here smaller.
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
