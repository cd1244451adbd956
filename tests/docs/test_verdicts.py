"""docs/verdicts.md shows the table of implementations; what needs no other library is judged again."""

import re
from pathlib import Path

import numpy as np
import pytest
from verdicts import judging, of_notebooks, page
from verdicts.table import Entry

import attnpool_ref as ref
from attnpool_ref.conformance import Candidate

TEXT = (Path(__file__).resolve().parent.parent.parent / "docs" / "verdicts.md").read_text()
NOTEBOOKS = pytest.mark.parametrize("entry", of_notebooks.ENTRIES, ids=lambda entry: entry.name)


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


def entry_of(function, **rest):
    def make(dtype):
        """A mask."""
        del dtype
        return Candidate(function, arrays="numpy")

    return Entry("a mean", "mean_pooling", make, ("numpy",), "Nothing.", ("float32",), **rest)


def test_a_broken_guarantee_is_counted_and_what_follows_from_it_is_not():
    entry = entry_of(padded_mean)
    states = judging.states(entry, judging.judged(entry))
    assert states["values"] == judging.KEPT
    assert states["values under masks"] == judging.BROKE
    assert states["NaN in padding"] == judging.FOLLOWS


def test_another_definition_is_named_but_not_counted():
    entry = entry_of(uniform_mean, nothing_real="it takes everything for real")
    states = judging.states(entry, judging.judged(entry))
    assert states["empty rows"] == judging.DIFFERS
    assert judging.BROKE not in states.values()
