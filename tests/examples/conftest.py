"""The examples' libraries come with the extra ``examples``; ``make examples`` runs this directory alone."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
ABSENT = [name for name in ("dask", "distributed", "pyarrow", "psutil") if find_spec(name) is None]


class Absent(pytest.Module):
    """A file of tests that is not imported."""

    def collect(self):
        pytest.skip(f"the extra `examples` is not installed: no {', no '.join(ABSENT)}", allow_module_level=True)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    """Nothing here is imported without the libraries."""
    collectors = yield
    if not ABSENT:
        return collectors
    return [Absent.from_parent(parent, path=file_path)] if file_path.name.startswith("test_") else []
