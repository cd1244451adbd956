"""Where tests live: what they share stands in ``support/``, base names are unique, pages name paths that exist."""

import re
from collections import Counter
from pathlib import Path

import pytest
from imports import imports_of

ROOT = Path(__file__).resolve().parent.parent.parent
TESTS = sorted((ROOT / "tests").rglob("*.py"))
PAGES = [
    *(ROOT / name for name in ("CONTRIBUTING.md", "README.md", "attnpool_flax/README.md", "attnpool_ref/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "decisions").glob("*.md")),
]
PLACEHOLDER = re.compile(r"FAMILY|\b[A-Z]{4,}\b|[*<{]|\.\.\.")
"""What stands for any name in a path: FAMILY.py."""


def test_no_test_file_is_imported():
    files = {path.stem for path in TESTS if path.name.startswith("test_")}
    assert not {
        (path.relative_to(ROOT), name) for path in TESTS for name in imports_of(path) if files & set(name.split("."))
    }


def test_no_two_files_of_tests_have_one_name():
    """Pytest imports them by their base names, but for those of packages."""
    names = Counter(path.name for path in TESTS if not (path.parent / "__init__.py").exists())
    del names["conftest.py"]
    assert not [name for name, count in names.items() if count > 1]


def test_every_shared_module_is_named_for_its_subject_and_used():
    shared = {path.stem for path in (ROOT / "tests" / "support").glob("*.py")}
    assert not shared & {"helpers", "utils", "util", "common", "misc", "shared"}
    used = {name.split(".")[0] for path in TESTS for name in imports_of(path)}
    assert shared - used == {"sharded"}  # is run as a program


def paths_of(page):
    """What a page names in backticks, or links to, and looks like a path of this repository."""
    text = page.read_text()
    for name in re.findall(r"`([\w./-]+)`", text):
        if "/" in name and name.split("/")[0] in TOP and not PLACEHOLDER.search(name):
            yield ROOT / name
    for words, target in re.findall(r"\[([^\]]*)\]\((?!https?:|mailto:)([^)#\s]+)", text):
        assert words, target
        yield page.parent / target


TOP = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".git")} - {"build", "dist"}


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.exists()], ids=lambda page: str(page.relative_to(ROOT))
)
def test_every_path_that_a_page_names_is_there(page):
    assert not [str(path) for path in paths_of(page) if not path.exists()]
