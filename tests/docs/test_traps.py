"""Every trap of public code: its formula gives its number, both packages give the right one; the page says both."""

import bugs
import make_docs
import numpy as np
import pytest
import traps
from bugs.table import ERROR, NOTE, WRONG
from packages import the_definition
from printed_text import agree
from rounding import package_dtype

import attnpool_ref

IDS = {f"P-{i}" for i in range(1, 26)}
RUN = [trap for trap in traps.TRAPS if trap.kind != NOTE]
every_row = pytest.mark.parametrize("trap", RUN, ids=lambda trap: trap.name)


def test_every_trap_has_its_rows():
    names = [trap.name for trap in traps.TRAPS]
    assert {name.rstrip("abcde") for name in names} == IDS
    assert len(set(names)) == len(names) and not set(names) & {bug.name for bug in bugs.BUGS}
    assert all(trap.place for trap in traps.TRAPS)


@the_definition
@every_row
def test_the_source_is_wrong_and_attnpool_is_right(trap, package):
    now = trap.right(package)
    assert agree(trap.now, now, package_dtype(package)), now
    if trap.kind == ERROR:
        assert trap.was and bool(trap.code) == bool(trap.raises)
        if trap.code and package is attnpool_ref:
            with pytest.raises(trap.raises):
                trap.wrong()
        return
    was = trap.wrong()
    assert agree(trap.was, was), was
    assert not agree(trap.now, was, "float32")


@every_row
def test_what_the_page_shows_can_be_typed_and_stands_on_one_card(trap):
    names = {name: getattr(attnpool_ref, name) for name in attnpool_ref.__all__} | {"np": np}
    with np.errstate(all="ignore"):
        exec("\n".join(trap.given), names)
        assert agree(trap.now, eval(trap.call, names), "float64")
    _, _, card = make_docs.TRAPS_PATH.read_text().partition(f"\n### {trap.name}: {trap.place}\n")
    card = card.partition("\n#")[0]
    assert all(part in card for part in (trap.what, trap.call, *trap.given, *trap.now.split()))


def test_the_page_follows_from_the_table():
    assert make_docs.TRAPS_PATH.read_text() == make_docs.traps_page(), "run `make docs` and commit what it writes"
    assert {trap.kind for trap in traps.TRAPS} == {WRONG, ERROR, NOTE}
