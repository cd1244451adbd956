"""One bibliography: every paper that a docstring, a table or a page names is an entry of ``docs/references.bib``."""

import ast
import functools
import itertools
import re

import bibliography
import pytest
from documents import ROOT

import attnpool_ref
from attnpool_ref import table
from attnpool_ref.contract import docstrings
from attnpool_ref.table import names

REFERENCES = bibliography.read()
REPAIR = "run `make docs` and commit what it writes"
NAME = r"[A-ZČ][\w'-]+"
MENTION = re.compile(rf"({NAME}(?:, {NAME})*(?:,? and {NAME})?)( et al\.)?,? \(?((?:19|20)\d\d)\b")
"""A paper in a text: "Bahdanau et al. 2015", "Jang, Gu and Poole 2017"."""

PAGES = [path for path in sorted((ROOT / "docs").rglob("*.md")) if path.name != "references.md"]
CODE = [path for package in ("attnpool_ref", "attnpool_flax") for path in sorted((ROOT / package).rglob("*.py"))]
CODE.remove(bibliography.MODULE)


def named_in(text):
    """The keys of the papers that a text names, in their order.

    Raises:
      LookupError: a name and a year are no entry, or the authors are others.
    """
    for authors, others, year in MENTION.findall(" ".join(text.replace("`", "").split())):
        written = re.split(r", and |, | and ", authors)
        yield _key(written, bool(others), year)


def _key(written, others, year):
    found = [r for r in REFERENCES.values() if (r.authors[:1], r.year) == ((written[0],), year)]
    if others:
        found = [reference for reference in found if reference.others or len(reference.authors) > 2]
    else:
        found = [reference for reference in found if list(reference.authors) == written]
    if len(found) != 1:
        raise LookupError(f"{', '.join(written)}{' et al.' * others} {year}: {len(found)} entries in references.bib")
    return found[0].key


@functools.cache
def strings_of(path):
    """The strings of a module: docstrings and tables."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


@pytest.mark.parametrize("path", [*PAGES, *CODE], ids=lambda path: str(path.relative_to(ROOT)))
def test_every_paper_that_is_named_is_in_the_bibliography(path):
    texts = [path.read_text(encoding="utf-8")] if path.suffix == ".md" else strings_of(path)
    for text in texts:
        list(named_in(text))


@pytest.mark.parametrize("row", table.BY_NAME.values(), ids=lambda row: row.name)
def test_a_docstring_names_the_source_of_its_row(row):
    source = docstrings.of(getattr(attnpool_ref, row.name)).sections["Source"]
    reference = REFERENCES[row.source]
    if reference.year and row.source != "d2l":
        assert row.source in {*named_in(source), *re.findall(r"\((\w+)\)", source)}
    else:  # what has no author and year is named by its key or in words
        assert re.search(rf"\({row.source}\)|(?i:{row.source[:8]})", source)


def test_a_function_that_one_name_stands_for_has_the_source_of_its_row_there():
    """Where several do, each has the paper of the system that is known by it."""
    shown = [entry for group in names.GROUPS for entry in group.shown]
    outermost = [entry.call.partition("(")[0] for entry in shown]
    for entry, name in zip(shown, outermost, strict=True):
        row = table.BY_NAME.get(name)
        if row and not row.packed and outermost.count(name) == 1 and REFERENCES[row.source].year:
            papers = {*named_in(entry.source), *re.findall(r"\((\w+)\)", entry.source)}
            assert row.source in papers, entry.names[0]


def test_the_page_and_the_table_of_sources_follow_from_the_bibliography():
    assert bibliography.PAGE.read_text(encoding="utf-8") == bibliography.page(), REPAIR
    assert bibliography.MODULE.read_text(encoding="utf-8") == bibliography.module(), REPAIR
    assert REFERENCES.keys() == table.SOURCES.keys()


def test_every_entry_of_the_bibliography_is_named_somewhere():
    texts = [path.read_text(encoding="utf-8") for path in PAGES] + [text for path in CODE for text in strings_of(path)]
    named = {key for text in texts for key in named_in(text)} | {row.source for row in table.BY_NAME.values()}
    assert set(REFERENCES) == named


def test_the_bibliography_is_in_order_and_complete():
    for key, following in itertools.pairwise(REFERENCES):
        assert key < following, f"docs/references.bib: sort the entries by key, {following!r} before {key!r}"
    text = bibliography.BIB.read_text(encoding="utf-8")
    assert text.count("\n@") == len(REFERENCES)
    for key, reference in REFERENCES.items():
        assert reference.title and bool(reference.authors) == bool(reference.year)
        assert not re.search(r"\d{4}$", key) or key.endswith(reference.year)
        assert re.fullmatch(r"|\d{4}\.\d{4,5}", reference.arxiv)
