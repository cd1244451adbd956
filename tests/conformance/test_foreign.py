"""Foreign implementations: wrong ones are rejected by kind, right ones accepted by every route that they take."""

import types
import warnings
from unittest import mock

import pytest
from conformance.foreign.plain_others import PLAIN
from conformance.foreign.right import RIGHT
from conformance.foreign.wrong import KINDS

import attnpool_ref
from attnpool_ref import conformance
from attnpool_ref.conformance import shrinking

FEW = 1
"""Rows on which each kind is judged here; all of them by ``python -m tests.conformance.foreign``."""

ONCE_MISSED = [
    ("masks of lower rank are ignored", "last_pooling"),  # which reads the last token alone
    ("integer masks are ignored", "segment_mean_pooling"),  # none of whose axes is one of a batch
    ("masks of lower rank are ignored", "segment_mean_pooling"),
    ("a wrong default", "attention_pooling"),  # of a number that a flag asks for
    ("a wrong default", "kernel_regression"),  # whose cause could not be asked for
    ("NaN at length 0 where the weights are not asked for", "bidaf_attention"),  # of two sequences one
    ("a single NaN is patched", "first_pooling"),
    ("a single NaN is patched", "segment_first_pooling"),
    ("a single NaN is patched", "attention_triplet_loss"),  # beyond its hinge
    ("one unit off in bfloat16", "maxsim_score_all_pairs"),  # no axis of which is "..."
    ("a division by 0 that is mended", "maxsim_score_all_pairs"),
    ("a division by 0 that is mended", "segment_mean_pooling"),
    ("rounded to bfloat16 within float16", "segment_max_pooling"),  # which copies
    ("rounded to float32 within float64", "first_pooling"),
    ("integers are rounded to integers", "mean_pooling"),  # whose only array they are
    ("integers alone are narrow", "segment_softmax_pooling"),
    ("an epsilon under the sum of the weights", "segment_weighted_pooling"),
    ("an argument is ignored where it stands alone", "segment_cross_attention_pooling"),
]
SOME = [(kind, row) for kind in KINDS for row in KINDS[kind].rows()[:FEW]] + ONCE_MISSED


def failures_of(kind, row):
    """What the judge says of a kind of mistake in a row."""
    candidate = types.SimpleNamespace(**{row: kind.candidate(row)})
    with warnings.catch_warnings(), mock.patch.object(shrinking, "shrink", lambda case, fails: case):  # it takes long
        warnings.simplefilter("ignore")  # a mistake may divide by 0 as it likes
        long, integers = kind.dtypes == ("bfloat16",), kind.dtypes == ("float64",)
        report = conformance.judge(
            candidate, only=(row,), dtypes=kind.dtypes, long=long, integers=integers, contract=True
        )
    return report.rows[0].failures


@pytest.mark.parametrize(("kind", "row"), SOME)
def test_a_foreign_mistake_is_rejected(kind, row):
    found = failures_of(KINDS[kind], row)
    assert any(not failure.message.startswith("raises ") for failure in found), f"survives: {kind}"


@pytest.mark.parametrize("route", RIGHT)
def test_a_right_function_by_another_route_is_accepted(route):
    row, function = RIGHT[route]
    conformance.check(function, row, dtypes=conformance.DTYPES, long="mean" in row, contract=True)


@pytest.mark.parametrize("route", PLAIN)
def test_a_function_as_its_author_would_write_it_is_accepted(route):
    """Judged by default, as it is called: many take boolean masks with all axes, one batch axis or one dtype alone."""
    chosen = PLAIN[route]
    report = conformance.judge(
        chosen.function, only=(chosen.row,), dtypes=chosen.dtypes, long=chosen.long, **chosen.calls
    )
    assert report.verdict == "pass", report.smallest_failure or report.rows[0].partial


def test_a_packed_definition_that_refuses_odd_numbers_is_accepted():
    conformance.check(attnpool_ref, "segment_mean_pooling", dtypes=("float32",))


def test_there_are_thirty_routes_over_a_dozen_rows():
    assert len(RIGHT) >= 30 and len({row for row, _ in RIGHT.values()}) >= 12
    assert len(PLAIN) >= 44 and len({route.row for route in PLAIN.values()}) >= 30
