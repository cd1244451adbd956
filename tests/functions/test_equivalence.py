"""attnpool_flax against attnpool_ref, row by row: what ``make test`` judges; ``attnpool check`` judges everything."""

from dataclasses import replace

import pytest

import attnpool_flax
from attnpool_flax.call.compiled import FRAMES
from attnpool_ref import conformance, table
from attnpool_ref.conformance import cases, checks
from attnpool_ref.conformance.cases import table as case_table
from attnpool_ref.conformance.checks.gradients import gradient
from attnpool_ref.conformance.running import rows

every_row = pytest.mark.parametrize("row", [row.name for row in table.VARIANTS])

every_state = pytest.mark.parametrize("row", [row.name for row in table.STATES])

ALIKE = ("activation=", "normalizer=", "axis=", "indices_are_sorted=")
"""Ways to call that one code computes for all rows; where they normalise, one for the dense and one for the packed ones."""

FIRST = {}
"""The first row of each of these ways."""


def _shared(row, title):
    way = title.split(", ")[0]
    return way, way.startswith("normalizer=") and row.family == "segments"


for _row in table.VARIANTS:
    for _title, *_ in cases.configurations(_row):
        FIRST.setdefault(_shared(_row, _title), _row.name)


def shows(row, title):
    """Whether this row is the one that shows a way to call."""
    return not title.startswith(ALIKE) or FIRST[_shared(row, title)] == row.name


@pytest.fixture
def few_programs(monkeypatch):
    """What rows compute alike is differentiated in one of them, what is a mere hint is called in one of them.

    A gradient is that of a call for the weights, too, where these are computed in any case.
    """
    ways_of, situation_of, whole = case_table.ways_of, rows.situation_of, checks.CHECKS["gradient"]

    def hinted(row, restrict=None):
        return (way for way in ways_of(row, restrict) if not way[0].startswith("indices") or shows(row, way[0]))

    def seldom(subject, case, kind, first, gradients, *rest):
        return situation_of(subject, case, kind, first, gradients and shows(subject.row, case.title), *rest)

    def once(subject, case, situation):
        if FRAMES[case.row.name].weights_apart or not situation.gradients_with_weights:
            return whole.run(subject, case, situation)
        return gradient(subject, case, return_weights=True)

    monkeypatch.setattr(case_table, "ways_of", hinted)
    monkeypatch.setattr(rows, "situation_of", seldom)
    monkeypatch.setitem(checks.CHECKS, "gradient", replace(whole, run=once))


@every_row
def test_results_gradients_and_hazards_in_float32(row, few_programs):
    function = getattr(attnpool_flax, row)
    conformance.check(
        function, row, dtypes=("float32",), shapes=(), laws=False, partial=False, long=False, contract=True
    )


@pytest.mark.thorough
@every_row
def test_laws_all_gradients_and_sequences_of_length_0_in_float32(row):
    function = getattr(attnpool_flax, row)
    conformance.check(
        function, row, dtypes=("float32",), shapes=("length 0",), partial=False, long=False, contract=True
    )


@pytest.mark.thorough
@every_state
def test_chunks_merge_to_the_dense_results_and_gradients_in_float32(row):
    """Random chunks, one of them empty, in random order and bracketing; ``attnpool check`` judges all that dense rows have."""
    conformance.check(
        attnpool_flax, row, dtypes=("float32",), shapes=(), laws=False, partial=False, long=False, contract=True
    )
