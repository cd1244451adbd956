"""The pages of docs/notebooks are executed: what stands behind each print, and each picture, is what their code gives."""

import re

import bugs
import make_notebooks
import nbformat
import pytest

REPAIR = "run `make docs` and commit what it writes"


@pytest.fixture(scope="module", params=make_notebooks.PAGES, ids=lambda path: path.stem)
def run(request, tmp_path_factory):
    """A page, the same after its blocks ran, and the folder with the pictures that they saved."""
    folder = tmp_path_factory.mktemp(request.param.stem)
    page = request.param.read_text()
    return request.param, make_notebooks.executed(page, folder), folder


def test_a_page_prints_what_it_says(run):
    path, executed, _ = run
    assert path.read_text() == executed, REPAIR


def words(picture):
    """What is written in an SVG: labels, ticks, percentages."""
    return re.findall("<!-- (.*) -->", picture.read_text())


def test_a_page_shows_the_pictures_that_its_code_draws(run):
    path, page, folder = run
    drawn = sorted(picture.name for picture in folder.iterdir())
    assert sorted(re.findall(r"^!\[.+\]\((.*)\)$", page, re.MULTILINE)) == drawn
    assert drawn
    for name in drawn:
        assert words(path.parent / name) == words(folder / name) != [], REPAIR


def test_a_page_has_every_mistake_of_its_notebook(run):
    path, page, _ = run
    number = str(int(path.stem[:3]))
    own = {bug.name.rstrip("abcd") for bug in bugs.BUGS if re.match(rf"S{number}-\d", bug.name)}
    assert own <= set(re.findall(r"\*\*(S\d-\w+)\*\*", page)) <= {bug.name.rstrip("abcd") for bug in bugs.BUGS}


def test_what_prints_twice_is_refused(tmp_path):
    with pytest.raises(ValueError, match="1 lines with print"):
        make_notebooks.executed("```python\nfor i in range(2):\n    print(i)\n```", tmp_path)


def test_a_page_is_a_valid_notebook_with_the_same_code_and_outputs(run):
    path, _, _ = run
    stored = (path.parent / "ipynb" / f"{path.stem}.ipynb").read_text()
    assert stored == make_notebooks.notebook(path), REPAIR
    notebook = nbformat.reads(stored, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"][1:]
    blocks = make_notebooks.BLOCK.findall(path.read_text())
    assert len(code) == len(blocks)
    for cell, block in zip(code, blocks, strict=True):
        lines = [line for line in cell.source.splitlines() if not line.startswith("display(SVG")]
        assert lines == [line.split("  # ")[0] if "print(" in line else line for line in block.splitlines()]
        printed = "".join(output.text for output in cell.outputs if output.output_type == "stream").splitlines()
        assert printed == [line.split("  # ", 1)[1] for line in block.splitlines() if "print(" in line]
        drawn = [output for output in cell.outputs if output.output_type == "display_data"]
        assert len(drawn) == block.count("savefig(")
    for link in re.findall(r"\]\(((?!https?:|#)[^)#]*)", "".join(cell.source for cell in notebook.cells)):
        assert (path.parent / "ipynb" / link).exists(), link


def test_ids_in_pictures_are_numbered():
    assert make_notebooks._numbered('<g clip-path="url(#pab)"/><clipPath id="pab"/>') == (
        '<g clip-path="url(#clip0)"/><clipPath id="clip0"/>'
    )
