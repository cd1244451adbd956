"""What the command shows on narrow terminals: names and sources whole, and nothing wider than the screen."""

import re

import pytest
from command import FAILED, PASSED, report_of, run

from attnpool_ref import table
from attnpool_ref.cli import finding, show
from attnpool_ref.conformance import RowReport

LONGEST = max(table.BY_NAME, key=len)


@pytest.mark.parametrize("columns", [60, 80, finding.TABULAR])
def test_the_list_shows_names_modules_and_sources_whole(columns):
    output = run("list", columns=columns).output
    assert max(map(len, output.splitlines())) <= columns
    words = set(re.findall(r"\w+", output))
    for row in table.BY_NAME.values():
        assert {row.name, row.source, row.module} - {""} <= words
    if columns < finding.TABULAR:
        assert all(f"  {row.name} " in output and f" {row.source}\n" in output for row in table.BY_NAME.values())


def test_the_list_can_be_narrowed_to_families_and_words():
    def names(*arguments):
        return [name for name in re.findall(r"\w+", run("list", *arguments).output) if name in table.BY_NAME]

    assert names("--family", "masks", "--family", "scores") == [
        row.name for row in table.BY_NAME.values() if row.family in ("masks", "scores")
    ]
    assert names("--search", "BAHDANAU") == [
        *("additive_score", "tanh_sum_score"),
        *("additive_attention", "tanh_sum_attention"),
    ]
    assert names("--search", "multihead attention-pool", "--family", "pooling") == ["multi_head_attention_pooling"]
    assert names("--search", "luong", "--search", "dot_score") == ["dot_score"]
    nothing = run("list", "--search", "maen-poling")
    assert (nothing.exit_code, nothing.stdout) == (1, "")
    assert "Near it: mean_pooling, " in nothing.stderr


@pytest.mark.parametrize("name", ["attention_pooling", "segment_attention_pooling", "graph_decomposition"])
@pytest.mark.parametrize("columns", [60, 80])
def test_a_variant_is_shown_with_its_arguments_and_the_marks_of_its_shapes(name, columns):
    row, output = table.get(name), run("show", name, columns=columns).output
    assert max(map(len, output.splitlines())) <= columns
    rest = output.partition("\narguments\n")[2]
    arguments, _, marks = rest.partition("\nhow to read the shapes\n")
    source = show.read_source("attnpool_ref", row)
    assert re.findall(r"^  (\w+)  ", arguments, re.MULTILINE) == list(source.arguments)
    assert {*row.arguments, *row.options} <= set(source.arguments)
    assert not re.search(r"[`\\]|:math:", arguments)
    shown = re.findall(r"^  (\S+(?: \S+)*)  ", marks.partition("\n\n")[0], re.MULTILINE)
    assert shown == [mark for mark in show.MARKS if show.mark_stands_in(mark, row.shapes)]
    assert (":segments" in shown, "|" in row.shapes) == (":segments" in row.shapes, "a|b" in shown)


def test_every_mark_of_the_language_is_explained():
    marks = {mark for row in table.BY_NAME.values() for mark in re.findall(r":\w+|~|\||->", row.shapes)}
    explained = " ".join(show.MARKS)
    assert all(mark in explained for mark in marks)
    assert all(any(show.mark_stands_in(mark, r.shapes) for r in table.BY_NAME.values()) for mark in show.MARKS)


@pytest.mark.parametrize("columns", [60, 80, 100, 160])
def test_broken_promises_stand_above_a_table_that_is_too_narrow_for_them(judged, columns):
    wide = RowReport(LONGEST, "pass", cells=PASSED.cells, promises=PASSED.promises)
    judged(report_of(wide, FAILED))
    output = run("check", "attnpool_ref", columns=columns).output
    above, _, head = output.partition(" against the oracle")
    lines = head.splitlines()[1:]
    assert max(map(len, lines)) <= columns
    assert any(LONGEST in line and "pass" in line and "2/2" in line for line in lines)
    assert any("max_pooling" in line and "fail" in line and "1/3" in line for line in lines)
    assert all(dtype in head for dtype in ("float32", "bfloat16")) and "0.4/18  3.2/61" in head
    assert ("NaN in padding" in head) == (columns == 160)
    assert "  broken: NaN in padding\n" in above
