"""Folders and files of the packages: their READMEs name them truly, and no file is too long to read."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("attnpool_flax", "attnpool_ref")
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
MOST_LINES = 600
"""Of a hand-written file (docs/decisions/0002-a-family-per-file.md)."""


def named_in_readme(package):
    """The files and folders at the beginning of each line of the tree in a package's README."""
    (tree,) = re.findall(r"```\n(.*?)```", (ROOT / package / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    heads = [re.split(r" {2,}", line)[0] for line in tree.splitlines()]
    return [name for head in heads for name in head.split()]


@pytest.mark.parametrize("package", PACKAGES)
def test_the_readme_of_a_package_names_its_files_and_folders_once(package):
    files = [path.name for path in (ROOT / package).glob("*.py") if path.name != "__init__.py"]
    folders = [f"{path.name}/" for path in (ROOT / package).iterdir() if (path / "__init__.py").exists()]
    assert sorted(named_in_readme(package)) == sorted(files + folders)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_readme_of_a_package_fits_one_screen(package):
    lines = (ROOT / package / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 130


@pytest.mark.parametrize("package", PACKAGES)
def test_no_file_has_more_lines_than_one_reads(package):
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / package).rglob("*.py")}
    long = {str(path.relative_to(ROOT)): count for path, count in lines.items() if count > MOST_LINES}
    assert long == {}


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", *(f"docs/decisions/{p.name}" for p in DECISIONS)])
def test_the_paths_that_a_page_names_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    paths = re.findall(r"`((?:[\w.]+/)+(?:[\w.]+)?)`", text)
    paths = [path for path in paths if "FAMILY" not in path and not path.startswith("build/")]
    roots = (ROOT, *(ROOT / package for package in PACKAGES))
    assert [path for path in paths if not any((root / path).exists() for root in roots)] == []
