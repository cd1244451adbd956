"""Tests that need POSIX, or the packages of an extra, and are skipped without them.

Without an extra, pytest reports each file of its tests as one skipped test. A target of the Makefile that runs only
these files then fails, because pytest exits with an error if it collects no tests.
"""

import os
from importlib.util import find_spec

import pytest

posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="links, modes and signals of POSIX")


class Absent(pytest.Module):
    """A file of tests that is not imported, because a package is missing."""

    reason = ""

    def collect(self):
        pytest.skip(self.reason, allow_module_level=True)


def collecting(extra, modules):
    """Returns a directory's hook ``pytest_collect_file``, which imports no file if a module is missing."""
    absent = [name for name in modules if find_spec(name) is None]

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(file_path, parent):
        collectors = yield
        if not absent:
            return collectors
        if not file_path.name.startswith("test_"):
            return []
        file = Absent.from_parent(parent, path=file_path)
        file.reason = f"the extra `{extra}` is not installed: no {', no '.join(absent)}"
        return [file]

    return pytest_collect_file
