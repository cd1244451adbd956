"""Every mistake of the notebooks and of public code: its formula gives its number, both packages give the right one."""

import re

import bugs
import numpy as np
import pytest
import traps
from bugs.table import ERROR, NOTE, WRONG
from packages import the_definition
from printed_text import agree, allowed, flat, numbers
from rounding import package_dtype, printed

import attnpool_ref
from attnpool_ref.plot import show_heatmaps

MISTAKES = (*bugs.BUGS, *traps.TRAPS)
every_mistake = pytest.mark.parametrize(
    "mistake", [row for row in MISTAKES if row.kind != NOTE], ids=lambda mistake: mistake.name
)


def test_every_mistake_has_a_name_of_its_own():
    assert len({mistake.name for mistake in MISTAKES}) == len(MISTAKES)


@the_definition
@every_mistake
def test_attnpool_gives_the_right_number_or_refuses_what_can_only_be_a_mistake(mistake, package):
    if mistake.refuses:
        with pytest.raises(ValueError, match=re.escape(mistake.refuses)):
            mistake.right(package)
        return
    right = mistake.right(package)
    assert agree(mistake.now, right, package_dtype(package)), right
    if mistake.kind == WRONG:
        wrong = mistake.wrong()
        was, now = flat(wrong).astype(float), flat(right).astype(float)
        if was.shape == now.shape:  # they differ by more than rounding
            gap = np.abs(was - now) - np.maximum(allowed(mistake.was, was), allowed(mistake.now, right, "float32"))
            assert np.any((gap > 0) | (np.isnan(was) != np.isnan(now)))


@every_mistake
def test_the_source_gives_its_number_or_fails_and_what_the_page_shows_can_be_typed(mistake):
    if mistake.kind == ERROR:
        assert mistake.was and bool(mistake.code) == bool(mistake.raises)
        if mistake.code:
            with pytest.raises(mistake.raises):
                mistake.wrong()
    else:
        result = mistake.wrong()
        assert agree(mistake.was, result), result
    if not mistake.refuses:
        names = {name: getattr(attnpool_ref, name) for name in attnpool_ref.__all__} | {"np": np}
        names["show_heatmaps"] = show_heatmaps
        with np.errstate(all="ignore"):
            exec("\n".join(mistake.given), names)
            assert agree(mistake.now, eval(mistake.call, names))


def test_reading_printed_numbers():
    values, units = numbers("1 0.25 1.5000e-06 nan 2e-9")
    np.testing.assert_array_equal(values, [1, 0.25, 1.5e-6, np.nan, 2e-9])
    np.testing.assert_array_equal(units, [0, printed(2), printed(10), 0, printed(9)])
