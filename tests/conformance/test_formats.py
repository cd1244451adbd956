"""Reports as JSON and JUnit XML: each says what the judgement found, and is what it claims to be."""

import io
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import command
import numpy as np
import pytest
from rich.console import Console

import attnpool_ref as ref
from attnpool_ref import conformance
from attnpool_ref.cli import verdicts
from attnpool_ref.conformance import formats
from attnpool_ref.conformance.formats import words
from attnpool_ref.conformance.report import Report, RowReport, Unasked

FEW = {"dtypes": ("float32",), "shapes": (), "laws": False, "partial": False, "long": False}


def inverted(query, key, value, mask=None, *, return_weights=False):
    """The wrong polarity."""
    mask = None if mask is None else ~np.asarray(mask)
    return ref.dot_product_attention(query, key, value, mask, return_weights=return_weights)


def partial_mean(x, mask=None, keepdims=False):
    return ref.mean_pooling(x, mask)


@pytest.fixture(scope="module")
def report():
    """Two rows: one wrong, one that was never wholly judged, and two waivers, of which one is idle."""
    return conformance.judge(
        {"dot_product_attention": inverted, "mean_pooling": partial_mean},
        only=("dot_product_attention", "mean_pooling"),
        name="a <strange> & name",
        waive={"dot_product_attention/NaN in padding": "no <NaN> here", "mean_pooling/shape": "why not"},
        **FEW,
    )


# JUnit XML

ALLOWED = {  # junit-10.xsd, which Jenkins checks
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "time", "skipped", "timestamp", "hostname", "id", "package"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), {"property"}),
    "property": ({"name", "value"}, set()),
    "testcase": ({"name", "time", "classname", "group"}, {"skipped", "error", "failure", "system-out", "system-err"}),
    "skipped": ({"type", "message"}, set()),
    "failure": ({"type", "message"}, set()),
    "error": ({"type", "message"}, set()),
    "system-out": (set(), set()),
}


def test_junit_has_the_elements_that_its_schema_knows(report):
    root = ET.fromstring(formats.as_junit(report).encode())
    assert root.tag == "testsuites"
    for element in root.iter():
        attributes, children = ALLOWED[element.tag]
        assert set(element.attrib) <= attributes and {child.tag for child in element} <= children
    for suite in root:
        assert {"name", "tests", "failures", "errors"} <= set(suite.attrib)
        assert re.fullmatch(r"\d+\.\d{3}", suite.get("time"))


def test_junit_has_a_case_for_each_row_and_guarantee_and_counts_them(report):
    root = ET.fromstring(formats.as_junit(report).encode())
    suites = {suite.get("name"): suite for suite in root}
    for row in report.rows:
        names = [case.get("name") for case in suites[row.name].findall("testcase")]
        assert names[: len(row.guarantees)] == list(row.guarantees)
        assert suites[row.name].get("tests") == str(len(names))
    assert root.get("failures") == str(len(report.rows[0].accused)) != "0"
    assert root.get("tests") == str(sum(len(suite.findall("testcase")) for suite in root))


def test_junit_tells_what_failed_what_was_skipped_and_what_is_an_error(report):
    root = ET.fromstring(formats.as_junit(report).encode())
    cases = {(suite.get("name"), case.get("name")): case for suite in root for case in suite.findall("testcase")}
    failure = cases["dot_product_attention", "values under masks"].find("failure")
    assert failure.get("message").startswith("equals the definition with `~mask`")
    assert "import attnpool_ref" in failure.text and "What follows from it: " in failure.text
    skipped = {name: cases["dot_product_attention", name].find("skipped").get("message") for name in (
        "NaN in padding", "inf in padding", "gradient",
    )}  # fmt: skip
    assert skipped == {
        "NaN in padding": "waived: no <NaN> here",
        "inf in padding": "follows from values under masks",
        "gradient": "numpy arrays have no gradients",
    }
    assert not list(cases["mean_pooling", "shape"]), "what held has no remark"
    partial = cases["mean_pooling", "judged wholly"].find("error")
    assert partial.get("message").startswith("its argument `keepdims` was never given")
    idle = cases["the report", "mean_pooling/shape"].find("error")
    assert idle.get("message") == "the waiver waives nothing: it holds"


def test_characters_that_xml_lacks_are_replaced():
    row = RowReport("mean_pooling", "partial", notes=["prints: \x1b[31mred\x00"])
    text = formats.as_junit(Report("x", "cpu", {}, [row]))
    assert "[31mred" in ET.fromstring(text.encode()).find("testsuite/system-out").text
    assert words.printable("a\ud800\x0b\ttab\nline ≠ 😀") == "a\ufffd\ufffd\ttab\nline ≠ 😀"


def test_an_interrupted_report_is_an_error():
    root = ET.fromstring(formats.as_junit(Report("x", "cpu", {}, [], interrupted=True)).encode())
    assert root.find("testsuite/testcase/error").get("message") == "stopped by Ctrl-C"


def test_rows_that_are_not_there_are_skipped():
    found = Report("x", "cpu", {}, [RowReport("mean_pooling", "missing"), RowReport("dot_score", "missing")])
    cases = ET.fromstring(formats.as_junit(found).encode()).findall("testsuite/testcase")
    assert [case.find("skipped").get("message") for case in cases] == [
        "there is no `mean_pooling`", "there is no `dot_score`",
    ]  # fmt: skip


# JSON and the command


def test_json_has_the_arrays_of_a_failure_and_the_waivers(report):
    plain = json.loads(formats.as_json(report), parse_constant=pytest.fail)
    failures = plain["rows"][0]["guarantees"]["values under masks"]["failures"]
    assert [array["name"] for array in failures[0]["arrays"]] == ["the result", "the weights"]
    assert np.asarray(failures[0]["arrays"][1]["got"], float).shape[-1] >= 1
    assert plain["idle_waivers"] == {"mean_pooling/shape": "it holds"} and not plain["passed"]


def keys_of(plain):
    """Every key of the schema, those of rows and guarantees by their fields."""
    row = plain["rows"][0]
    kept = row["guarantees"]["values under masks"]
    parts = [plain, row, kept, kept["failures"][0], kept["failures"][0]["arrays"][0], row["unasked"][0]]
    return (
        {key for part in parts for key in part} | set(row["cells"]["float32"]) | {"error", "allowed", "case", "passed"}
    )


def test_the_schema_is_documented(report):
    page = (Path(__file__).parents[2] / "docs" / "embedding.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`([a-z_]+)`", page.partition("## JSON and JUnit")[2]))
    assert keys_of(json.loads(formats.as_json(report))) <= documented


def test_wrong_values_without_a_known_cause_are_said_to_have_none():
    def unknown(x, mask=None):
        return ref.mean_pooling(x, mask) * np.float32(1.01)

    few = {"dtypes": ("float32",), "shapes": (), "long": False}
    (row,) = conformance.judge(unknown, only=("mean_pooling",), **few).rows
    assert words.causes(row) == ["no cause found."]
    (row,) = conformance.judge(ref.mean_pooling, only=("mean_pooling",), **few).rows
    assert words.causes(row) == []


def test_known_causes_come_before_what_has_none_and_are_wrapped_like_other_lines():
    def unknown(x, mask=None):
        return ref.mean_pooling(x, mask) * np.float32(1.01)

    def inverted_mean(x, mask):
        return ref.mean_pooling(x, ~mask)

    both = {"max_pooling": unknown, "mean_pooling": inverted_mean}
    report = conformance.judge(both, only=tuple(both), **FEW)
    out = io.StringIO()
    verdicts.render(report, Console(file=out, width=40))
    first = out.getvalue().splitlines()
    assert first[:2] == ["mean_pooling: equals the definition with", "  `~mask`: its masks mean the opposite"]
    assert "max_pooling: no cause found." in first[2:5]


def test_lines_are_wrapped_between_words_only():
    line = "  a-hyphenated-word and/averylongwordthatiswiderthanthepage [0.5, nan]"
    assert words.wrapped(line, 20).splitlines() == [
        "  a-hyphenated-word", "    and/averylongwordthatiswiderthanthepage", "    [0.5, nan]",
    ]  # fmt: skip
    assert words.wrapped("", 20) == ""


def test_one_note_a_guarantee_is_a_remark_and_the_others_are_listed_with_what_was_skipped():
    row = RowReport("mean_pooling", "pass", cases=1)
    row.unasked = [Unasked("`scale` (default 1.0)", "no such argument"), Unasked("`lengths`", "no such argument")]
    row.guarantees["shape"].notes = ["first", "second"]
    row.notes = ["prints: x", "shape: first", "shape: second"]
    assert words.notes(row) == ["prints: x", "shape: first"] and not list(words.remarks(row))
    with_parameters = RowReport("mean_pooling", unasked=[Unasked(words.PARAMETERS, "it holds `q`: say which")])
    assert list(words.remarks(with_parameters)) == ["its parameters: it holds `q`: say which"]
    listed = list(words.others(row))
    assert listed[0] == "skipped, no such argument: `scale` (default 1.0), `lengths`"
    assert "n/a, as its note says: shape" in listed and words.more_notes(row) == ["shape: second"]
    assert words.counted([row]) == f"Held: 0; not judged: {len(row.guarantees)}; skipped: 2; more notes: 1"


def test_the_words_of_each_outcome(report):
    row = report.rows[0]
    outcomes = {words.outcome(kept) for kept in row.guarantees.values()}
    assert outcomes == {"held", "broken", "waived", "follows", "n/a"}
    assert (
        words.reason(RowReport("mean_pooling", "missing"), row.guarantees["gradient"]) == "there is no `mean_pooling`"
    )


def test_the_command_writes_every_format_beside_the_table(current_folder):
    (current_folder / "formats_of_a_test.py").write_text(
        "import attnpool_ref\npool = lambda x, mask=None: attnpool_ref.mean_pooling(x, None if mask is None else ~mask)\n"
    )
    files = {kind: current_folder / f"report.{kind}" for kind in formats.FORMATS}
    options = [word for kind, file in files.items() for word in (f"--{kind}", str(file))]
    words = ["--as", "mean_pooling", "--quick", "--dtype", "float32", "--jobs", "0"]
    result = command.run("check", "formats_of_a_test:pool", *words, *options)
    assert result.exit_code == 1
    assert result.stdout.startswith("mean_pooling: equals the definition with `~mask`")
    assert "from formats_of_a_test import pool" in result.stdout
    assert "\nmean_pooling\n  broken: values under masks\n      float32: the result is " in result.stdout
    assert "\n      what follows from it: " in result.stdout
    assert json.loads(files["json"].read_text())["verdict"] == "fail"
    assert ET.parse(files["junit"]).getroot().get("failures") == "1"
