"""Every mistake of the notebooks: their formula gives their number, both packages give the right one."""

import re

import bugs
import numpy as np
import pytest
from bugs.table import ERROR, NOTE, WRONG
from packages import the_definition
from printed_text import agree, allowed, flat, numbers
from rounding import package_dtype, printed

import attnpool_ref
from attnpool_ref.plot import show_heatmaps

IDS = {
    *(f"T-{i}" for i in range(1, 9)),
    *(f"S0-{i}" for i in range(1, 10)),
    *(f"S0-S{i}" for i in range(1, 7)),
    *(f"S1-{i}" for i in range(1, 12)),
    *(f"S2-{i}" for i in range(1, 6)),
    *(f"S2-R{i}" for i in range(1, 6)),
    *(f"S3-{i}" for i in range(1, 10)),
    *(f"S3-N{i}" for i in range(1, 6)),
    "S3-H1",
    *(f"S4-{i}" for i in range(1, 12)),
    *(f"S4-T{i}" for i in range(1, 3)),
    *(f"S4-B{i}" for i in range(1, 4)),
    *(f"S4-L{i}" for i in range(1, 7)),
    *(f"S4-C{i}" for i in range(1, 9)),
    *(f"S4-M{i}" for i in range(1, 5)),
}


def rows(*kinds, **having):
    """Parametrises over the rows of these kinds that have, or have not, these fields."""
    chosen = [b for b in bugs.BUGS if b.kind in kinds and all(bool(getattr(b, k)) == v for k, v in having.items())]
    return pytest.mark.parametrize("bug", chosen, ids=lambda bug: bug.name)


def test_every_mistake_has_its_row():
    assert {bug.name.rstrip("abcd") for bug in bugs.BUGS} == IDS
    assert len({bug.name for bug in bugs.BUGS}) == len(bugs.BUGS)
    assert {bug.kind for bug in bugs.BUGS} == {WRONG, ERROR, NOTE}


@rows(WRONG)
def test_the_notebooks_formula_gives_the_notebooks_number(bug):
    result = bug.wrong()
    assert agree(bug.was, result), result


@the_definition
@rows(WRONG, ERROR, refuses=False)
def test_attnpool_gives_the_right_number(bug, package):
    result = bug.right(package)
    assert agree(bug.now, result, package_dtype(package)), result


@rows(WRONG, ERROR, refuses=False)
def test_what_the_page_shows_can_be_typed(bug):
    names = {name: getattr(attnpool_ref, name) for name in attnpool_ref.__all__} | {"np": np}
    names["show_heatmaps"] = show_heatmaps
    with np.errstate(all="ignore"):
        exec("\n".join(bug.given), names)
    assert agree(bug.now, eval(bug.call, names))


@the_definition
@rows(WRONG, refuses=True)
def test_attnpool_refuses_what_can_only_be_a_mistake(bug, package):
    with pytest.raises(ValueError, match=re.escape(bug.refuses)):
        bug.right(package)


@the_definition
@rows(WRONG, refuses=False)
def test_the_two_numbers_differ_by_more_than_their_rounding(bug, package):
    was, now = flat(bug.wrong()).astype(float), flat(bug.right(package)).astype(float)
    if was.shape == now.shape:
        gap = np.abs(was - now) - np.maximum(allowed(bug.was, was), allowed(bug.now, bug.right(package), "float32"))
        assert np.any((gap > 0) | (np.isnan(was) != np.isnan(now)))


@rows(ERROR, code=True)
def test_the_notebooks_formula_fails(bug):
    with pytest.raises(bug.raises):
        bug.wrong()


@rows(ERROR)
def test_an_error_says_how_the_source_fails(bug):
    assert bug.was
    assert bool(bug.code) == bool(bug.raises)


@rows(NOTE)
def test_a_note_says_why_there_is_nothing_to_run(bug):
    assert bug.reason.endswith(".")
    assert not (bug.given or bug.code or bug.call or bug.was or bug.now)


def test_reading_printed_numbers():
    values, units = numbers("1 0.25 1.5000e-06 nan 2e-9")
    np.testing.assert_array_equal(values, [1, 0.25, 1.5e-6, np.nan, 2e-9])
    np.testing.assert_array_equal(units, [0, printed(2), printed(10), 0, printed(9)])
