"""The peers come with the extra ``peers``. Without it each file of tests here is one line among the skipped ones.

``make peers`` runs this directory alone: with nothing but skipped files no test is left, which pytest counts as a failure.
"""

import os
from importlib.util import find_spec

import pytest

os.environ.setdefault("KERAS_BACKEND", "torch")  # it needs one that is installed
ABSENT = [name for name in ("onnx", "torch", "keras") if find_spec(name) is None]


class Absent(pytest.Module):
    """A file of tests that is not imported."""

    def collect(self):
        pytest.skip(f"the extra `peers` is not installed: no {', no '.join(ABSENT)}", allow_module_level=True)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    """Nothing here is imported without the peers, for its doctests neither."""
    collectors = yield
    if not ABSENT:
        return collectors
    return [Absent.from_parent(parent, path=file_path)] if file_path.name.startswith("test_") else []
