"""Pictures and Jupyter notebooks of the pages in ``docs/notebooks/``, which each build makes of their code."""

import contextlib
import re
from pathlib import Path

import nbformat

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted((DOCS / "notebooks").glob("0*.md"))
FOLDER = DOCS / "project" / "notebooks"

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAVED = re.compile(r'^(\w+)\.savefig\("(.+)"\)  # (.+)$', re.MULTILINE)
"""A line of code that saves a picture, with the picture's description as comment."""

SETUP = "Save this notebook in the folder of a clone of attnpool in which `pip install -e '.[all]'` was run."
"""Second cell of each notebook."""


def write():
    """Writes the pictures and the notebooks of all pages."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        with contextlib.chdir(FOLDER), contextlib.redirect_stdout(None):
            exec(compile("\n".join(BLOCK.findall(page)), path.name, "exec"), {"__name__": path.stem})
        (FOLDER / f"{path.stem}.ipynb").write_text(notebook(page), encoding="utf-8")


def with_pictures(page, name):
    """Returns the text of a page with each picture behind its code, and a link to the notebook at the end."""

    def block(match):
        pictures = [
            f"\n\n![{description}](/project/notebooks/{file})" for _, file, description in SAVED.findall(match[1])
        ]
        return match[0] + "".join(pictures)

    return f"{BLOCK.sub(block, page)}\n[This page as a Jupyter notebook](/project/notebooks/{name}.ipynb).\n"


def notebook(page):
    """Returns a page as a Jupyter notebook without outputs, which shows the pictures instead of saving them."""
    cells = []
    for number, part in enumerate(BLOCK.split(page)):
        if number % 2:
            cells.append(nbformat.v4.new_code_cell(SAVED.sub(r"display(\1)  # \3", part).rstrip()))
        elif text := re.sub(r"\[([^\]]*)\]\((?!https?:)[^)]*\)", r"\1", part).strip():
            cells.append(nbformat.v4.new_markdown_cell(text))
    cells.insert(1, nbformat.v4.new_markdown_cell(SETUP))
    python = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.writes(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": python}))
