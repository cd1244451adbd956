"""Wording of docstrings: the first line names a thing (module, class, property) or says what a function does."""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
FORBIDDEN = ("what", "how", "which", "where", "who")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@pytest.mark.parametrize("package", ["attnpool_ref", "attnpool_flax"])
def test_no_docstring_begins_with_a_question_word(package):
    found = []
    for path in sorted((ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = (ast.get_docstring(node) or "") if isinstance(node, DOCUMENTED) else ""
            if text and text.split()[0].strip(",:;.`*").lower() in FORBIDDEN:
                place = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"
                found.append(f"{place} {getattr(node, 'name', '(module)')}: {text.splitlines()[0]}")
    assert not found, f"{len(found)} docstrings begin with one of {FORBIDDEN}:\n" + "\n".join(found)
