"""Each generated file is what its generator writes: stubs, pages, the bibliography, pictures, notebooks."""

import re
from functools import partial

import bibliography
import make_docs
import make_notebooks
import make_pictures
import make_stubs
import nbformat
import pytest

REPAIR = "run `make docs` and commit what it writes"
GENERATED = {
    **{make_stubs.path_of(package): partial(make_stubs.stub, package) for package in make_stubs.PACKAGES},
    make_docs.PATH: make_docs.page,
    make_docs.WHICH_PATH: make_docs.which_page,
    make_docs.HEADS_PATH: make_docs.heads_page,
    bibliography.PAGE: bibliography.page,
    bibliography.MODULE: bibliography.module,
    **{make_pictures.FOLDER / f"{name}.svg": draw for name, draw in make_pictures.PICTURES.items()},
}


def of_any_machine(text):
    """Removes measured errors, which differ between processors, and NumPy's version from the picture of a terminal."""
    return re.sub(r"numpy [\d.]+", "numpy", re.sub(r"[\d.]+/\d+", "error/allowed", text))


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: "/".join(path.parts[-2:]))
def test_a_file_is_what_its_generator_writes(path):
    stored, written = path.read_text(encoding="utf-8"), GENERATED[path]()
    if path.name == "terminal.svg":
        stored, written = of_any_machine(stored), of_any_machine(written)
    assert stored == written, REPAIR


def words(picture):
    """Returns the labels, ticks and percentages of an SVG."""
    return re.findall("<!-- (.*) -->", picture.read_text())


@pytest.mark.parametrize("path", make_notebooks.PAGES, ids=lambda path: path.stem)
def test_a_notebook_has_the_output_and_the_pictures_of_its_code(path, tmp_path):
    page = path.read_text()
    assert page == make_notebooks.executed(page, tmp_path), REPAIR
    drawn = sorted(picture.name for picture in tmp_path.iterdir())
    assert sorted(re.findall(r"^!\[.+\]\((.*)\)$", page, re.MULTILINE)) == drawn != []
    for name in drawn:
        assert words(path.parent / name) == words(tmp_path / name) != [], REPAIR
    stored = (path.parent / "ipynb" / f"{path.stem}.ipynb").read_text()
    assert stored == make_notebooks.notebook(path), REPAIR
    nbformat.validate(nbformat.reads(stored, as_version=4))
