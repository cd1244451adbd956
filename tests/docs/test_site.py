"""What ``make site`` makes of the repository, without Sphinx: the reference, and MathJax as it was published."""

import hashlib
import inspect
import re
from itertools import pairwise

import nbformat
import site_notebooks
import site_reference
from documents import ROOT

import attnpool_flax
import attnpool_ref
from attnpool_flax import linen, modules

DOCS = ROOT / "docs"
MATHJAX = DOCS / "_static" / "mathjax"


def test_the_vendored_mathjax_is_the_one_that_was_published():
    lines = (MATHJAX / "SHA256SUMS").read_text().splitlines()
    sums = dict(line.split("  ")[::-1] for line in lines if not line.startswith("#"))
    files = {path.relative_to(MATHJAX).as_posix(): path for path in MATHJAX.rglob("*") if path.is_file()}
    del files["SHA256SUMS"]
    assert {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()} == sums
    assert {"LICENSE", "tex-chtml.js"} < files.keys()


def test_every_public_function_and_module_is_in_the_reference():
    lines = "\n".join(site_reference.reference().values()).splitlines()
    for package in (attnpool_ref, attnpool_flax):
        place = package.__name__
        defined = {line.partition("(")[0] for line, below in pairwise(lines) if below == f"   :module: {place}"}
        functions = [name for name in package.__all__ if inspect.isfunction(getattr(package, name))]
        written = {name for name in functions if f".. autofunction:: {place}.{name}" in lines}
        written |= {name for name in functions if f".. py:function:: {name}" in defined}
        assert len(functions) > 100
        assert set(functions) - written == set()
    classes = {line.partition("(")[0] for line in lines}
    for name in modules.__all__:
        assert {f".. autoclass:: attnpool_flax.{name}", f".. py:class:: {name}"} <= classes
        assert hasattr(linen, name)


def test_no_page_or_picture_asks_another_host():
    asked = re.compile(r"!\[[^\]]*\]\(https?:|(?:src|href)=[\"']?https?:|url\([\"']?https?:|@import")
    for kind in ("md", "css", "html", "js", "svg"):
        for path in set(DOCS.rglob(f"*.{kind}")) - set(MATHJAX.rglob("*")):
            assert not asked.search(path.read_text(encoding="utf-8")), path


def test_a_notebook_has_the_code_of_its_page_and_each_picture_has_a_description():
    assert len(site_notebooks.PAGES) == 5
    for path in site_notebooks.PAGES:
        page = path.read_text(encoding="utf-8")
        saved = site_notebooks.SAVED.findall(page)
        assert len(saved) == page.count("savefig") > 0, path
        shown = re.findall(r"!\[(.+)\]\(/project/notebooks/(.+)\)", site_notebooks.with_pictures(page, path.stem))
        assert shown == [(description, file) for _, file, description in saved]
        notebook = nbformat.reads(site_notebooks.notebook(page), as_version=4)
        nbformat.validate(notebook)
        code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
        assert code.count("display(figure)") == len(saved)
        assert "savefig" not in code and "print(" in code
