"""Generator of the outputs, pictures and Jupyter notebooks of the pages of ``docs/notebooks/``.

The blocks of a page run one after another in one namespace, like the cells of a notebook. The output of each ``print``
is written behind it, and the pictures are saved. Each page also becomes a Jupyter notebook in
``docs/notebooks/ipynb/``.
"""

import contextlib
import io
import os
import re
from pathlib import Path
from unittest import mock

import matplotlib
import nbformat

FOLDER = Path(__file__).resolve().parent.parent.parent / "docs" / "notebooks"
PAGES = sorted(FOLDER.glob("0*.md"))

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINT = re.compile(r"^( *print\(.*?\))(?:  # .*)?$", re.MULTILINE)
PRINT_SHOWN = re.compile(r"^( *print\(.*?\))  # (.*)$", re.MULTILINE)
PICTURE = re.compile(r"^!\[.*\]\(.*\)$\n?", re.MULTILINE)

SETUP = """# %pip install 'attnpool[flax,plot]'
from IPython.display import SVG, display"""
"""First cell of each notebook, in addition to the code of its page."""


def executed(page, folder):
    """Returns the text of a page with the output of its blocks, and saves their pictures in ``folder``."""
    names = {"__name__": "page"}

    def run(block):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block[1], "a page of docs/notebooks", "exec"), names)
        lines = printed.getvalue().splitlines()
        statements = PRINT.findall(block[1])
        if len(lines) != len(statements):
            raise ValueError(f"{len(statements)} lines with print, each runs once and prints one line, gave {lines}")
        remaining = iter(lines)
        return "```python\n" + PRINT.sub(lambda line: f"{line[1]}  # {next(remaining)}", block[1]) + "```"

    with (
        contextlib.chdir(folder),
        matplotlib.rc_context({"svg.hashsalt": "attnpool"}),  # no random ids in a picture
        mock.patch.dict(os.environ, {"SOURCE_DATE_EPOCH": "0"}),  # nor the date of today
    ):
        page = BLOCK.sub(run, page)
    for picture in Path(folder).glob("*.svg"):
        picture.write_text(_numbered(picture.read_text()))
    return page


def _numbered(picture):
    """Returns a picture with numbered clip paths; matplotlib's ids are hashes of unrounded positions, which vary."""
    for number, name in enumerate(dict.fromkeys(re.findall(r'<clipPath id="(\w+)"', picture))):
        picture = picture.replace(name, f"clip{number}")
    return picture


def notebook(path):
    """Returns the page at a path as a Jupyter notebook, with outputs and pictures below each cell."""
    cells = []
    for number, part in enumerate(BLOCK.split(path.read_text())):
        cells += _cells_of_code(part, path) if number % 2 else _cells_of_text(part)
    cells.insert(1, nbformat.v4.new_code_cell(SETUP))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    python = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": python, "language_info": {"name": "python"}})
    return nbformat.writes(made) + "\n"


def _cells_of_text(text):
    """Returns cells of text without pictures, which cells of code show, and with links from the notebooks' folder."""
    text = PICTURE.sub("", text)
    text = re.sub(r"\]\((?!https?:|#)([^)]*)\)", r"](../\1)", text).strip()
    return [nbformat.v4.new_markdown_cell(text)] if text else []


def _cells_of_code(block, path):
    code, drawn = block.rstrip("\n"), re.findall(r'savefig\("(.*)"\)', block)
    printed = [line[2] for line in PRINT_SHOWN.finditer(code)]
    code = PRINT_SHOWN.sub(r"\1", code) + "".join(f'\ndisplay(SVG(filename="{name}"))' for name in drawn)
    outputs = [nbformat.v4.new_output("stream", name="stdout", text="\n".join(printed) + "\n")] if printed else []
    for name in drawn:
        picture = {"image/svg+xml": (path.parent / name).read_text()}
        outputs.append(nbformat.v4.new_output("display_data", data=picture))
    return [nbformat.v4.new_code_cell(code, outputs=outputs)]


if __name__ == "__main__":
    (FOLDER / "ipynb").mkdir(exist_ok=True)
    for path in PAGES:
        path.write_text(executed(path.read_text(), FOLDER))
        (FOLDER / "ipynb" / f"{path.stem}.ipynb").write_text(notebook(path))
