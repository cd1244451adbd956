"""docs/verdicts.md shows the table of implementations; what needs no other library is judged again."""

import re
from pathlib import Path

import numpy as np
import pytest
import verdicts
from verdicts import judging, of_notebooks, page
from verdicts.table import Entry

import attnpool_ref as ref
from attnpool_ref import table
from attnpool_ref.conformance import Candidate
from attnpool_ref.conformance.report.promises import INTEGERS, PROMISES, SPLIT

TEXT = (Path(__file__).resolve().parent.parent.parent / "docs" / "verdicts.md").read_text()
NOTEBOOKS = pytest.mark.parametrize("entry", of_notebooks.ENTRIES, ids=lambda entry: entry.name)


def test_the_page_shows_every_entry_once_and_in_order():
    assert re.findall(r"^### (.*)$", TEXT, re.MULTILINE) == list(verdicts.BY_NAME)
    assert re.findall(r"^\| \[(.*?)\]\(#", TEXT, re.MULTILINE) == list(verdicts.BY_NAME)
    assert len(verdicts.BY_NAME) == len(verdicts.ENTRIES)


def test_the_columns_hold_every_promise_once():
    names = [name for group in judging.GROUPS.values() for name in group]
    never = SPLIT, INTEGERS  # these are asked of those who want them; nobody takes `axis_name`
    asked = [promise.name for promise in PROMISES if promise.name not in never]
    assert sorted(names) == sorted(asked)


@pytest.mark.parametrize("entry", verdicts.ENTRIES, ids=lambda entry: entry.name)
def test_an_entry_says_what_is_asked_and_what_to_do(entry):
    assert entry.row in table.BY_NAME
    assert entry.offers.endswith(".") and entry.advice.endswith(".")
    assert not set(entry.differs) - {promise.name for promise in PROMISES}


@NOTEBOOKS
def test_a_notebooks_function_has_the_verdict_of_the_page(entry):
    verdict = judging.judged(entry)
    section = TEXT.partition(f"### {entry.name}\n")[2].partition("\n### ")[0]
    assert page.line(entry, verdict) in TEXT.splitlines()
    assert page.groups(entry, verdict) in section.splitlines()
    for text in page._guarantees_not_checked(verdict, judging.states(entry, verdict)):
        assert text in section


@NOTEBOOKS
def test_the_smallest_cases_of_the_page_run(entry, capsys):
    section = TEXT.partition(f"### {entry.name}\n")[2].partition("\n### ")[0]
    cases = re.findall(r"```python\n(from verdicts .*?)\n```", section, re.DOTALL)
    assert cases
    for code in cases:
        with np.errstate(all="ignore"):
            try:
                exec(code, {})
            except Exception as error:  # that it raises is what the page says of it
                assert f"raises {type(error).__name__}" in section
            else:
                assert "oracle:" in capsys.readouterr().out


def padded_mean(x, mask=None):
    return x.mean(-2)


def uniform_mean(x, mask=None):
    return ref.mean_pooling(x, None if mask is None else mask | ~mask.any(-1, keepdims=True))


def float32_mean(x, mask=None):
    if x.dtype != np.float32:
        raise TypeError("float32 only")
    return ref.mean_pooling(x, mask)


def entry_of(function, dtypes=("float32",), **rest):
    def make(dtype):
        """A mask."""
        del dtype
        return Candidate(function, arrays="numpy")

    return Entry("a mean", "mean_pooling", make, ("numpy",), "Nothing.", dtypes, **rest)


def test_a_broken_promise_is_counted_and_what_follows_from_it_is_not():
    entry = entry_of(padded_mean)
    states = judging.states(entry, judging.judged(entry))
    assert states["values"] == judging.KEPT
    assert states["values under masks"] == judging.BROKE
    assert states["NaN in padding"] == judging.FOLLOWS


def test_another_definition_is_named_and_shown_but_not_counted():
    entry = entry_of(uniform_mean, nothing_real="it takes everything for real")
    verdict = judging.judged(entry)
    states = judging.states(entry, verdict)
    assert states["empty rows"] == judging.DIFFERS
    assert judging.BROKE not in states.values()
    text = page.section(entry, verdict)
    assert (
        f"{page.DIFFERENT}\n\n* [**empty rows**](guarantees.md#empty-rows): it takes everything for real. Here the result is"
        in text
    )


def test_a_difference_that_does_not_show_is_named():
    entry = entry_of(ref.mean_pooling, differs={"values": "it is another mean"})
    assert judging.needless(entry, judging.judged(entry)) == ["values"]


def test_a_dtype_that_the_implementation_refuses_gives_no_reasons():
    entry = entry_of(float32_mean, ("float32", "float64"))
    verdict = judging.judged(entry)
    assert verdict.reports["float64"].promises["gradient"].why == "nothing was judged"
    (text,) = page._guarantees_not_checked(verdict, judging.states(entry, verdict))
    assert "forward over reverse: numpy arrays have no gradients.\n" in text
    assert "nothing was judged" not in text
