"""What tools/ writes is what stands in the repository: the stubs, the pages of variants, mistakes, names and trained heads."""

import re

import bugs
import make_docs
import make_stubs
import pytest
from bugs.table import NOTE

import attnpool_ref
from attnpool_ref import formats, table
from attnpool_ref.table import names

REPAIR = "run `make docs` and commit what it writes"


def section_of(page, title):
    """The text under a heading of the third level, which stands on a page once."""
    (text,) = re.findall(rf"^### {re.escape(title)}\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
    return text


@pytest.mark.parametrize("package", make_stubs.PACKAGES)
def test_the_stub_follows_from_the_table_and_the_signatures(package):
    assert make_stubs.path_of(package).read_text() == make_stubs.stub(package), REPAIR


def test_the_page_of_variants_follows_from_the_table_and_the_docstrings():
    assert make_docs.PATH.read_text() == make_docs.page(), REPAIR


def test_the_page_of_mistakes_follows_from_their_table():
    assert make_docs.BUGS_PATH.read_text() == make_docs.bugs_page(), REPAIR


def test_the_page_of_names_follows_from_their_table():
    page = make_docs.WHICH_PATH.read_text()
    assert page == make_docs.which_page(), REPAIR
    for entry in (entry for group in names.GROUPS for entry in group.shown):
        card = section_of(page, entry.names[0])
        assert all(part in card for part in (*entry.names[1:], entry.call, entry.source, entry.differs))


def test_the_page_of_trained_heads_follows_from_the_formats():
    page = make_docs.HEADS_PATH.read_text()
    assert page == make_docs.heads_page(), REPAIR
    for row in formats.FORMATS.values():
        section = page.split(f"\n## {row.name}\n")[1].split("\n## ")[0]
        assert all(
            part in section
            for part in (row.title[1:], row.module, row.verified, row.notes, row.source, f'(source, "{row.name}"')
        )


@pytest.mark.parametrize("bug", bugs.BUGS, ids=lambda bug: bug.name)
def test_every_mistake_has_its_card_or_note_with_all_that_its_row_says(bug):
    page = make_docs.BUGS_PATH.read_text()
    if bug.kind == NOTE:
        (text,) = (line for line in page.splitlines() if line.startswith(f"* {bug.name}: "))
    else:
        text = section_of(page, bug.name)
    assert all(part in text for part in (bug.what, bug.call, bug.reason, *bug.given, *bug.now.split()))


@pytest.mark.parametrize("row", table.BY_NAME.values(), ids=lambda row: row.name)
def test_every_variant_has_its_place_on_the_page(row):
    section = make_docs.PATH.read_text().split(f"\n### {row.name}\n")[1].split("\n### ")[0]
    assert "```math" in section
    assert "\n* shapes: `" in section
    assert re.search(rf"^\* source: .*`{row.source}`$", section, re.MULTILINE)
    assert (f"\n* Flax module: `{row.module}`" in section) == bool(row.module)
    assert ":math:" not in section
    assert f"{row.name}(" in section.split("```pycon")[1]
    assert getattr(attnpool_ref, row.name).__doc__.splitlines()[0].split("`")[0].split(":func:")[0].strip() in section
