"""Imports of a file, read from its text."""

import ast
import functools


@functools.cache
def imports_of(file):
    """The dotted names that a file imports, also in functions."""
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found += (f"{node.module}.{alias.name}" for alias in node.names)
    return found
