"""What ``make site`` makes of the repository, without Sphinx: the reference, the first page's table, MathJax as published."""

import hashlib
import inspect
import re
from itertools import pairwise

import nbformat
import numpy as np
import site_notebooks
import site_reference
from documents import ROOT
from site_tabs import tabbed

import attnpool_flax
import attnpool_ref
from attnpool_flax import linen, modules
from attnpool_ref import formats

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


def test_the_page_of_a_function_has_its_sentence_and_example_before_the_signature_and_its_arguments_as_a_table():
    pages = site_reference.reference()
    for name in (*attnpool_ref.table.BY_NAME, *modules.__all__):
        page = pages.get(name) or pages[f"modules/{name}"]
        assert page.index(inspect.getdoc(getattr(attnpool_flax, name)).partition("\n")[0]) < page.index(">>> ")
        assert page.index(">>> ") < page.index(f":: attnpool_flax.{name}")
    function = attnpool_flax.attention_pooling
    lines = inspect.getdoc(function).splitlines()
    site_reference.tabulated(None, "function", "attnpool_flax.attention_pooling", function, None, lines)
    text = "\n".join(lines)
    arguments = re.findall(r"^   \* - (.*)\n     - (.*)\n     - (.*)\n     - ", text, re.MULTILINE)
    assert [name.strip("`") for name, *_ in arguments[1:]] == list(inspect.signature(function).parameters)
    assert ("``x``", "``[..., L, d]``", "required") in arguments
    assert ("``mask``", "``[..., L]``", "``None``") in arguments  # the shape is from the table of functions
    assert ("``normalizer``", "", "``'softmax'``") in arguments
    assert "Args:" not in text and ">>>" not in text and "Returns:" in text


def test_the_first_page_shows_the_results_of_its_code():
    table = (DOCS / "index.md").read_text(encoding="utf-8").split("{div} proof\n")[1].split(":::")[0]
    rows = [row.strip("| ").split(" | ") for row in table.splitlines()[2:]]
    names = {name: getattr(attnpool_ref, name) for name in attnpool_ref.__all__}
    names |= {"where": np.where, "q": np.ones(1), "softmax": attnpool_ref.masked_softmax}
    assert len(rows) == 3
    for tokens, *codes in rows:
        found = re.findall(r"\[(\S+)\]\{\.(token|padding)\}", tokens)
        x, mask = np.array([[float(number)] for number, _ in found]), np.array([kind == "token" for _, kind in found])
        for code in codes:
            call, shown = re.match(r"`(.+)` \*\*(\w+)\*\*", code).groups()
            given = x[:, 0] if "(x * mask)" in call else x
            np.testing.assert_array_equal(np.squeeze(eval(call, names | {"x": given, "mask": mask})), float(shown))


def test_no_page_or_picture_asks_another_host():
    asked = re.compile(r"!\[[^\]]*\]\(https?:|(?:src|href)=[\"']?https?:|url\([\"']?https?:|@import")
    for kind in ("md", "css", "html", "js", "svg"):
        for path in set(DOCS.rglob(f"*.{kind}")) - set(MATHJAX.rglob("*")):
            text = re.sub(r"^ *```.*?^ *```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
            assert not asked.search(text), path  # outside of blocks of code


def test_sections_for_nnx_and_linen_are_tabs_and_the_text_around_them_stays():
    page = "## Train\n\nBoth.\n\n### NNX\n\none\n\n### Linen\n\ntwo\n\n## Next\n\nthree\n"
    before, tabs, after = re.fullmatch(r"(.*?)(::::\{tab-set\}.*\n::::\n)(.*)", tabbed(page), re.DOTALL).groups()
    assert (before, after) == ("## Train\n\nBoth.\n\n", "\n## Next\n\nthree\n")
    assert re.findall(r":::\{tab-item\} (\w+)\n:sync: \w+\n\n(\w+)\n:::\n", tabs) == [("NNX", "one"), ("Linen", "two")]
    assert tabbed(after) == after


def test_every_format_is_in_the_reference():
    page = site_reference.reference()["load"]
    for row in formats.FORMATS.values():
        assert f"\n{row.name}\n~" in page and row.source in page, row.name


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
