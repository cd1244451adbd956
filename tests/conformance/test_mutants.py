"""The judge is judged: every known mistake is rejected, and the right function is not."""

import warnings

import pytest
from conformance.mutants import MUTANTS

import attnpool_ref
from attnpool_ref import conformance, variants

ALL = [(row, mistake) for row, mistakes in MUTANTS.items() for mistake in mistakes]


def rejected(row, function):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a mistake may divide by 0 as it likes
        try:
            conformance.check(function, row)
        except AssertionError as failure:
            return str(failure)
    return ""


@pytest.mark.parametrize(("row", "mistake"), ALL, ids=[mistake for _, mistake in ALL])
def test_mistake_is_rejected(row, mistake):
    assert rejected(row, MUTANTS[row][mistake]), f"survives: {mistake}"


@pytest.mark.parametrize("row", [row.name for row in variants.VARIANTS])
def test_right_function_passes_every_check(row):
    conformance.check(getattr(attnpool_ref, row), row, dtypes=conformance.DTYPES)


def test_every_row_has_at_least_two_mistakes():
    assert {
        row.name: len(MUTANTS.get(row.name, ())) for row in variants.VARIANTS if len(MUTANTS.get(row.name, ())) < 2
    } == {}
