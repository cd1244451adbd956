"""Imports between the files and folders of both packages have no cycle, and the oracle's package does not know the other."""

import ast
import graphlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("attnpool_ref", "attnpool_flax")
FOLDERS = sorted({file.parent for package in PACKAGES for file in (ROOT / package).rglob("*.py")})


def imports_of(file):
    """Yields the dotted names that a file imports, of a function's body too."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def entries_of(folder):
    """The files and folders with code in a folder, by the names that imports give them."""
    files = {file.stem: [file] for file in folder.glob("*.py")}
    return files | {
        inner.name: list(inner.rglob("*.py"))
        for inner in folder.iterdir()
        if inner.is_dir() and any(inner.rglob("*.py"))
    }


def graph_of(folder):
    """For each file and folder in a folder those that it imports; ``__init__`` is one of the files."""
    own, entries = ".".join(folder.relative_to(ROOT).parts), entries_of(folder)
    graph = {}
    for name, files in entries.items():
        inner = [
            found.removeprefix(f"{own}.")
            for file in files
            for found in imports_of(file)
            if f"{found}.".startswith(f"{own}.")
        ]
        roots = {"__init__" if found == own else found.partition(".")[0] for found in inner}
        graph[name] = {root if root in entries else "__init__" for root in roots} - {name}
    return graph


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_no_cycle_of_imports_between_files_and_folders(folder):
    try:
        tuple(graphlib.TopologicalSorter(graph_of(folder)).static_order())
    except graphlib.CycleError as error:
        pytest.fail(f"{folder.relative_to(ROOT)}: {' imports '.join(reversed(error.args[1]))}", pytrace=False)
