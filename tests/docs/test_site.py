"""What ``make site`` makes of the repository, without Sphinx: the reference, the side bar, links, and MathJax as it was published."""

import functools
import hashlib
import inspect
import re
from itertools import pairwise

import pytest
import site_links
import site_reference
from documents import ROOT

from attnpool_flax import linen, modules

DOCS = ROOT / "docs"
MATHJAX = DOCS / "_static" / "mathjax"
reference = functools.cache(site_reference.reference)


def exists(page):
    """Whether a page of the site is written by hand, or is one that the build writes."""
    page = page.removeprefix("/")
    if page.startswith("reference/"):
        return page.removeprefix("reference/") in reference()
    if page.startswith("project/"):
        return page.removeprefix("project/").upper() in (*site_reference.OF_REPOSITORY, "INTERACTIVE")
    return (DOCS / f"{page}.md").exists()


def test_the_vendored_mathjax_is_the_one_that_was_published():
    lines = (MATHJAX / "SHA256SUMS").read_text().splitlines()
    sums = dict(line.split("  ")[::-1] for line in lines if not line.startswith("#"))
    files = {path.relative_to(MATHJAX).as_posix(): path for path in MATHJAX.rglob("*") if path.is_file()}
    del files["SHA256SUMS"]
    assert {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()} == sums
    assert {"LICENSE", "tex-chtml.js"} < files.keys()


@pytest.mark.parametrize("package", ["attnpool_ref", "attnpool_flax"])
def test_every_public_function_is_in_the_reference_of_both_packages(package):
    namespace = __import__(package)
    functions = [name for name in namespace.__all__ if inspect.isfunction(getattr(namespace, name))]
    lines = "\n".join(reference().values()).splitlines()
    defined = {line.partition("(")[0] for line, below in pairwise(lines) if below == f"   :module: {package}"}
    assert len(functions) > 100
    assert {
        name
        for name in functions
        if f".. autofunction:: {package}.{name}" not in lines and f".. py:function:: {name}" not in defined
    } == set()


def test_every_module_is_in_the_reference_in_nnx_and_in_linen():
    anywhere = "\n".join(reference().values())
    for name in modules.__all__:
        assert f".. autoclass:: attnpool_flax.{name}\n" in anywhere
        assert f".. py:class:: {name}(" in anywhere
        assert hasattr(linen, name)


def test_names_in_use_elsewhere_are_in_the_index_of_their_function():
    page = reference()["additive"]
    assert "   ! single: ABMIL\n" in page
    assert "Known as: " in page
    assert "Module: :class:`~attnpool_flax.AdditiveAttentionPool`." in page


def test_the_side_bar_has_each_page_once_and_no_other():
    pages = [page.removeprefix("README <").removesuffix(">") for _, pages in site_links.captions() for page in pages]
    assert len(pages) == len(set(pages)) > 30
    assert [page for page in pages if not exists(page)] == []
    assert all(exists(page) for page in site_links.TERMS)


def test_links_lead_to_the_places_of_the_site():
    moved = site_links.moved
    assert moved("[a](variants.md)", "docs") == "[a](/reference/index.rst)"
    assert moved("[a](../../CONTRIBUTING.md#pages)", "docs/guides") == "[a](/project/contributing.markdown#pages)"
    assert moved("[a](docs/masks.md#x) [b](LICENSE)", "") == "[a](/masks.md#x) [b](/../LICENSE)"
    assert moved("[masks.md](../masks.md) [b](#c)", "docs/guides") == "[](../masks.md) [b](#c)"
    assert moved("[a](https://example.org/variants.md)", "docs") == "[a](https://example.org/variants.md)"


def test_no_page_asks_another_host_for_a_picture_or_a_script():
    for path in [*DOCS.rglob("*.md"), *DOCS.rglob("*.css"), *DOCS.rglob("*.html"), DOCS / "conf.py"]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"!\[[^\]]*\]\(https?:|src=[\"']?https?:|url\([\"']?https?:|@import", text), path
