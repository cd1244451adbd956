"""Tests of what not every system has: POSIX, or the packages of an extra.

Without an extra each file of its tests is one line among the skipped ones.

The target of the Makefile runs such a directory alone: with nothing but skipped files no test is left, which pytest counts
as a failure.
"""

import os
from importlib.util import find_spec

import pytest

posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="links, modes and signals of POSIX")


class Absent(pytest.Module):
    """A file of tests that is not imported."""

    reason = ""

    def collect(self):
        pytest.skip(self.reason, allow_module_level=True)


def collecting(extra, modules):
    """A directory's ``pytest_collect_file``: nothing in it is imported without the modules, for its doctests neither."""
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
