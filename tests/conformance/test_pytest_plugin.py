"""``pytest --attnpool`` and ``each_guarantee``: one test for each guarantee and row, and nothing of the kit under a failure."""

import os
import sys
import unittest

import numpy as np
import pytest

import attnpool_ref as ref
from attnpool_ref import conformance
from attnpool_ref.cli import check  # noqa: F401, imported once and not by each run
from attnpool_ref.conformance.running.claims import WHOLE

WORDS = "--quick --dtype float32 --jobs 0"

POOLS = """
import attnpool_ref
import numpy as np

def mean_pooling(x, mask=None):
    with open("called", "a") as file:
        file.write("x")
    return attnpool_ref.mean_pooling(x, mask)

def max_pooling(x, mask=None):
    return np.max(x if mask is None else np.where(mask[..., None], x, -1e4).astype(x.dtype), -2)

def padded(tokens, is_padding):
    return attnpool_ref.mean_pooling(tokens, ~is_padding)

def many(x, mask=None, temperature=1.0):
    return attnpool_ref.mean_pooling(x, mask)
"""


@pytest.fixture
def run(pytester):
    """Runs pytest beside a module ``pools_of_a_test``."""
    pytester.makepyfile(pools_of_a_test=POOLS)

    def run(*arguments):
        # hypothesis' own plugin imports it anew in each run
        without = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
        return pytester.runpytest_inprocess("-p", "pytest_attnpool", *without, *arguments)

    return run


def test_collecting_names_each_guarantee_of_each_row_and_calls_nothing(run, pytester):
    shown = run("--attnpool", "pools_of_a_test --jobs 0", "--collect-only", "-q").outlines
    assert "attnpool::mean_pooling::NaN in padding" in shown and "attnpool::max_pooling::values" in shown
    count = 2 * (len(conformance.GUARANTEES) + 1)
    assert sum(line.startswith("attnpool::") for line in shown) == count
    assert not (pytester.path / "called").exists()


def test_a_broken_guarantee_fails_with_its_code_and_no_source_of_the_kit(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    result = run("--attnpool", f"pools_of_a_test {WORDS} --only max_pooling", "-rsf")
    counts = result.parseoutcomes()
    assert counts["failed"] == 1 and counts["passed"] > 5
    assert sum(counts.values()) == len(conformance.GUARANTEES) + 1
    text = result.stdout.str()
    assert "FAILED attnpool::max_pooling::empty rows - " in text
    cause = "max_pooling: replaces padding by a finite number before the maximum or minimum\n  (-1e4; float32)\n"
    assert cause in text, "wrapped between words"
    assert "empty rows (float32): the result is [-10000.], needs [0.]" in text
    assert "\ncandidate = max_pooling\n" in text and "\nprint('candidate:', candidate(x, mask))\n" in text
    failures = text.split("short test summary")[0]
    assert "attnpool_ref/conformance" not in failures and "During handling" not in failures
    assert "numpy arrays have no gradients" in text, "what is n/a is skipped, and says why"
    assert "broken, which follows from: empty rows" in text
    assert "broken: empty rows" in text, "the verdict accuses nobody once more"


def test_tests_are_chosen_like_others(run, pytester):
    pytester.makepyfile("def test_of_mine(): pass")
    words, all_tests = f"pools_of_a_test {WORDS}", 2 * (len(conformance.GUARANTEES) + 1)
    run("--attnpool", words, "-k", "max_pooling and shape and not shapes").assert_outcomes(
        passed=1, deselected=all_tests
    )
    assert not (pytester.path / "called").exists(), "a row is judged when its first test runs"
    chosen = ["attnpool::max_pooling::empty rows", "attnpool::mean_pooling::dtype"]
    run("--attnpool", words, *chosen).assert_outcomes(failed=1, passed=1)
    run("--attnpool", words, "-x", "attnpool::max_pooling", "-k", "answer or empty or amount").assert_outcomes(
        passed=1, failed=1, deselected=all_tests // 2 - 4
    )
    result = run("--attnpool", words, "-m", "not attnpool")
    result.assert_outcomes(passed=1, deselected=all_tests)


def test_what_the_settings_name_is_judged_where_it_is_asked_for(run, pytester):
    lines = f'["pools_of_a_test {WORDS} --only mean_pooling", "pools_of_a_test:padded --as mean_pooling --padding-true --jobs 0"]'
    pytester.makepyprojecttoml(f"[tool.pytest.ini_options]\nattnpool = {lines}\n")
    pytester.makepyfile("def test_of_mine(): pass")
    run().assert_outcomes(passed=1)
    shown = run("--attnpool", "-k", "side", "--collect-only", "-q").outlines
    assert shown[:2] == [
        f"attnpool::pools_of_a_test {WORDS} --only mean_pooling::mean_pooling::padding side",
        "attnpool::pools_of_a_test:padded --as mean_pooling --padding-true --jobs 0::mean_pooling::padding side",
    ]


def test_several_entries_may_have_brackets(run):
    fixed = ("--attnpool", f"pools_of_a_test:many --as mean_pooling {WORDS} --leave temperature --parameter query=q[0]")
    shown = run(*fixed, "--attnpool", f"pools_of_a_test {WORDS}", "--collect-only", "-q").outlines
    assert "attnpool::pools_of_a_test --quick --dtype float32 --jobs 0::mean_pooling::values" in shown
    assert any(line.startswith("attnpool::") and line.endswith("query=q(0)::mean_pooling::values") for line in shown)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("no_such_module", "there is no module 'no_such_module'"),
        ("pools_of_a_test:padded --jobs 0", "'padded' is no function of attnpool; say which one it is: --as NAME"),
        ("pools_of_a_test --colour red", "No such option: --colour"),
        ("pools_of_a_test --only mean_poolin", "did you mean mean_pooling"),
        (
            "pools_of_a_test --json report.json",
            "--json and --junit are the command's; pytest writes --junit-xml",
        ),
        ("pools_of_a_test --all", "--all is the command's; pytest has -rs"),
        ("unittest", "the implementation has none of attnpool's functions"),
    ],
)
def test_a_candidate_that_cannot_be_found_is_an_error_in_a_line(run, words, text):
    result = run("--attnpool", words)
    result.assert_outcomes(errors=1)
    assert text in result.stdout.str().replace("No such option '--colour'", "No such option: --colour")
    assert "Traceback" not in result.stdout.str() and ".py:" not in result.stdout.str()


def test_an_option_without_a_candidate_and_an_unknown_id_are_refused(run):
    assert "--attnpool needs a candidate, or the setting `attnpool`" in run("--attnpool").stderr.str()
    result = run("--attnpool", "pools_of_a_test", "attnpool::mean_pooling::beauty")
    assert "not found: attnpool::mean_pooling::beauty" in result.stderr.str()


def test_what_was_never_judged_fails_a_test_of_its_own(run):
    words = f"pools_of_a_test:many --as mean_pooling {WORDS}"
    result = run("--attnpool", words)
    assert result.parseoutcomes()["failed"] == 1
    assert "mean_pooling is partial: its argument `temperature` was never given" in result.stdout.str()
    assert "failed" not in run("--attnpool", f"{words} --leave temperature").parseoutcomes()


@pytest.mark.thorough
def test_processes_share_the_rows(pytester, monkeypatch):
    pytester.makepyfile(pools_of_a_test=POOLS)
    words = f"pools_of_a_test {WORDS}"
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(entry or os.getcwd() for entry in sys.path))
    result = pytester.runpytest_subprocess(
        *("-p", "pytest_attnpool", "-p", "no:hypothesispytest", "-n", "2", "--dist", "loadgroup"),
        *("--attnpool", words, "-k", "padding or empty"),
    )
    counts = result.parseoutcomes()
    assert (counts["failed"], counts["passed"], counts["skipped"]) == (1, 9, 4)


def test_a_process_that_ends_is_a_failed_test_and_pytest_goes_on(run, pytester):
    pytester.makepyfile(
        ending_of_a_test="import os\nfrom attnpool_ref import mean_pooling\ndef max_pooling(x, mask=None):\n    os._exit(0)\n"
    )
    pytester.makepyfile("def test_of_mine(): pass")
    result = run("--attnpool", "ending_of_a_test --quick --dtype float32", "-k", "of_mine or answer or shape")
    result.assert_outcomes(passed=4, failed=1, skipped=4, deselected=2 * (len(conformance.GUARANTEES) + 1) - 8)
    assert "max_pooling: an answer: smallest: the process ended with status 0" in result.stdout.str()
    assert "ending_of_a_test" not in sys.modules


OWN = """
import pytest
from attnpool_ref import conformance
from pools_of_a_test import max_pooling, padded

few = {"dtypes": ("float32",), "shapes": (), "laws": False, "partial": False, "long": False}

@pytest.mark.parametrize("guarantee", conformance.each_guarantee(max_pooling, "max_pooling", **few))
def test_max(guarantee):
    guarantee.check()

def test_padded(attnpool_check):
    attnpool_check(padded, "mean_pooling", padding_true=True, **few)

def test_check():
    conformance.check(max_pooling, "max_pooling", **few)
"""


def test_a_parametrised_test_of_ones_own_has_an_id_for_each_guarantee(run, pytester):
    path = pytester.makepyfile(OWN)
    result = run(path, "-v", "-rs")
    text = result.stdout.str()
    assert "::test_max[NaN in padding] PASSED" in text and "::test_max[gradient] SKIPPED" in text
    assert "::test_max[empty rows] FAILED" in text and "::test_padded PASSED" in text
    assert result.parseoutcomes()["failed"] == 2
    shown = text.split("FAILURES")[1].split("short test summary")[0]
    assert shown.count("E       empty rows (float32): the result is [-10000.]") == 2
    assert "__tracebackhide__" not in shown, "the user's own line, and no source of the kit"


def wrong(x, mask=None):
    return ref.mean_pooling(x, mask) + np.float32(1)


QUICK = conformance.QUICK | {"dtypes": ("float32",)}


def outcome(claim):
    """What a test of the claim would show; pytest would take a SkipTest for this test's own."""
    try:
        claim.check()
    except unittest.SkipTest as reason:
        return f"skipped: {reason}"
    except AssertionError as broken:
        return str(broken)
    return "passed"


def test_each_guarantee_is_judged_once_when_it_is_first_asked_for():
    calls = []

    def pool(x, mask=None):
        calls.append(1)
        return ref.mean_pooling(x, mask)

    claims = conformance.each_guarantee(pool, "mean_pooling", **QUICK)
    assert [claim.__name__ for claim in claims] == [*(p.name for p in conformance.GUARANTEES), WHOLE] and not calls
    by_name = {claim.guarantee: claim for claim in claims}
    assert outcome(by_name["shape"]) == "passed"
    count = len(calls)
    assert outcome(by_name["values under masks"]) == outcome(by_name[WHOLE]) == "passed"
    assert len(calls) == count > 0


def test_what_follows_from_a_broken_guarantee_is_skipped():
    claims = {claim.guarantee: claim for claim in conformance.each_guarantee(wrong, "mean_pooling", **QUICK)}
    assert outcome(claims["values under masks"]).startswith("mean_pooling: values under masks (float32): the result is")
    assert outcome(claims["padding side"]) == "skipped: skipped with laws=False, --quick"
    assert outcome(claims["extreme scores"]) == "skipped: broken, which follows from: values under masks"
    assert outcome(claims[WHOLE]) == "skipped: broken: values under masks"


def test_several_rows_are_named_in_the_ids():
    first, *_ = conformance.each_guarantee(ref, "mean_pooling", "max_pooling")
    assert (repr(first), first.__name__) == ("<mean_pooling: an answer>", "mean_pooling: an answer")
    found = conformance.each_guarantee({"max_pooling": wrong, "mean_pooling": wrong})
    assert {claim.row for claim in found} == {"max_pooling", "mean_pooling"}


@pytest.mark.parametrize(
    ("target", "rows", "options", "error", "text"),
    [
        (ref, ("mean_poolin",), {}, ValueError, "did you mean mean_pooling"),
        (wrong, (), {}, ValueError, "name the one that it is: each_guarantee"),
        (wrong, ("mean_pooling",), {"dtype": "float32"}, TypeError, "no argument 'dtype'; did you mean dtypes"),
        (wrong, ("mean_pooling",), {"mask_form": "bits"}, ValueError, "no form of masks is called 'bits'"),
    ],
)
def test_a_wrong_word_is_refused_before_anything_is_judged(target, rows, options, error, text):
    with pytest.raises(error, match=text):
        conformance.each_guarantee(target, *rows, **options)


def test_a_row_that_is_missing_or_cannot_be_asked_fails():
    missing, other, *_ = conformance.each_guarantee({"mean_pooling": wrong}, "max_pooling", **QUICK)
    assert outcome(missing) == "max_pooling: an answer: there is no `max_pooling`"
    assert outcome(other) == "skipped: nothing was judged"
    whole = conformance.each_guarantee(lambda x, *, beauty: x, "mean_pooling", **QUICK)[-1]
    assert outcome(whole).startswith("mean_pooling: nothing was judged: it needs `beauty`")
