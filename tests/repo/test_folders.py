"""Imports between the files and folders of both packages have no cycle; the oracle's package loads the other only by command."""

import ast
import graphlib
from pathlib import Path

import pytest
from imports import imports_of

ROOT = Path(__file__).parents[2]
PACKAGES = ("attnpool_ref", "attnpool_flax")
FOLDERS = sorted(
    {str(file.parent.relative_to(ROOT)) for package in PACKAGES for file in (ROOT / package).rglob("*.py")}
)

EXCEPTIONS = {
    (
        "attnpool_ref",
        "table",
        "__init__",
    ): "names/entry.py reads the signatures of all functions; only the command and docs import it",
    ("attnpool_flax/linen", "formats", "__init__"): "a class by its name, at a call",
}
"""Imports (folder, importing, imported) that close a cycle, with the reason; one that closes none has to go."""

LOADS = {
    "cli/application.py": "the default candidate",
    "cli/check.py": "the default candidate has to have all functions",
    "cli/finding.py": "the names of its modules, as text",
    "cli/heads.py": "the call that loads a head, as text",
    "cli/show.py": "its source, read as text",
}
"""Files of ``attnpool_ref`` that name ``attnpool_flax`` in code."""

MENTIONS = {"streaming.py", "table/names/images.py", "table/names/texts.py"}
"""Files with sentences for readers that name one of its functions."""


def graph_of(folder):
    """The imports between the files and folders in a folder: for each, the set of those that it imports."""
    here, own = ROOT / folder, folder.replace("/", ".")
    entries = {file.stem: [file] for file in here.glob("*.py")}
    entries |= {inner.name: list(inner.rglob("*.py")) for inner in here.iterdir() if any(inner.glob("*.py"))}
    graph = {}
    for name, files in entries.items():
        found = (path for file in files for path in imports_of(file) if f"{path}.".startswith(f"{own}."))
        roots = (path.removeprefix(own).removeprefix(".").partition(".")[0] for path in found)
        graph[name] = {root if root in entries else "__init__" for root in roots} - {name}
    return graph


def cycle_of(graph):
    """A cycle as a list of names, each imported by the one after it; an empty one if there is none."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


@pytest.mark.parametrize("folder", FOLDERS)
def test_imports_between_files_and_folders_have_no_cycle(folder):
    graph = graph_of(folder)
    for where, importing, imported in EXCEPTIONS:
        if where == folder:
            assert cycle_of(graph), f"EXCEPTIONS has a row for {folder}, which has no cycle"
            graph[importing].discard(imported)
    assert cycle_of(graph) == []


def test_a_cycle_is_found():
    assert cycle_of({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "c", "b", "a"]
    assert graph_of("attnpool_ref/conformance")["checks"] >= {"cases", "candidates", "report"}


def names_the_other(tree):
    """Whether code names ``attnpool_flax``: in an import, or in a string that is no docstring."""
    docstrings = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    strings = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
    ]
    return any("attnpool_flax" in text for text in strings)


def test_the_oracle_names_the_other_package_only_where_the_command_loads_it():
    files = sorted((ROOT / "attnpool_ref").rglob("*.py"))
    found = {
        str(file.relative_to(ROOT / "attnpool_ref"))
        for file in files
        if names_the_other(ast.parse(file.read_text(encoding="utf-8")))
        or any(path.partition(".")[0] == "attnpool_flax" for path in imports_of(file))
    }
    assert found == LOADS.keys() | MENTIONS
    assert all(name.startswith("cli/") for name in LOADS)
