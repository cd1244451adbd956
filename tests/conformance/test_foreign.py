"""Foreign implementations: wrong ones are rejected by kind, right ones accepted by every route that they take."""

import pytest
from conformance.foreign import corners, right_pairs, right_poolings  # noqa: F401, whose functions are in RIGHT
from conformance.foreign.by_default import BY_DEFAULT, STATES, States
from conformance.foreign.judging import failures_of
from conformance.foreign.of_notebooks import OF_NOTEBOOKS
from conformance.foreign.plain_others import PLAIN
from conformance.foreign.rounded import RIGHT
from conformance.foreign.sizes import KINDS
from marks import one_in

import attnpool_ref
from attnpool_ref import conformance
from attnpool_ref.conformance.report import EXIT

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
    ("lengths are cast to int8", "masked_softmax"),
    ("a window of slots where x is shared", "semantic_match"),
    ("an array of rank 1 is left as it is", "masked_softmax"),
    ("counts beyond two are two", "semantic_match"),  # which counts in one of its methods alone
    ("float32 results are off by 1e-6", "segment_mean_pooling"),
    ("float32 results are off by 1e-6", "dot_product_attention"),
    ("the first mask for both sides where the lengths agree", "mask_attention"),
    ("the second mask for both sides where the lengths agree", "cross_attention_pooling_all_pairs"),
    ("wrong without a mask for two batch axes", "attention_pooling"),
]
SOME = list(dict.fromkeys([(kind, row) for kind in KINDS for row in KINDS[kind].rows()[:FEW]] + ONCE_MISSED))


@pytest.mark.parametrize("mistake", one_in(8, SOME), ids=", ".join)
def test_a_foreign_mistake_is_rejected(mistake):
    kind, row = mistake
    found = failures_of(KINDS[kind], row)
    assert any(not failure.message.startswith("raises ") for failure in found), f"survives: {kind}"


@pytest.mark.parametrize(
    "mistake", one_in(4, [(kind, row) for kind in BY_DEFAULT for row in BY_DEFAULT[kind].rows()[:FEW]]), ids=", ".join
)
def test_a_foreign_mistake_is_rejected_by_default(mistake):
    kind, row = mistake
    found = failures_of(BY_DEFAULT[kind], row, contract=False)
    assert any(not failure.message.startswith("raises ") for failure in found), f"survives: {kind}"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of 0/0, which is one of the mistakes
@pytest.mark.parametrize("name", one_in(3, OF_NOTEBOOKS))
def test_a_function_of_a_notebook_is_rejected_and_its_mistake_named(name):
    found = OF_NOTEBOOKS[name]
    scope = {"dtypes": ("float32", "float64"), "long": False, "whole_contract": True}
    (row,) = conformance.judge(found.candidate, only=(found.row,), **scope).rows
    broken = tuple(kept.guarantee for kept in row.accused if kept.guarantee != "integers alone")  # none takes integers
    assert broken == found.broken
    assert any(cause.startswith(found.cause) for cause in row.causes) or not found.cause


@pytest.mark.parametrize("mistake", STATES)
@pytest.mark.parametrize("row", ["sum_state", "max_state"])
def test_mistakes_of_states_are_rejected(row, mistake):
    options = {"only": (row,), "dtypes": ("float32",), "long": False}
    assert conformance.judge(States(row, ""), **options).verdict == "pass"
    assert conformance.judge(States(row, mistake), **options).verdict == "fail"


@pytest.mark.parametrize("kind", corners.UNSEEN)
def test_what_the_judge_does_not_see_has_a_reason_and_is_not_seen(kind):
    assert corners.REASONS[kind]
    for row in corners.UNSEEN[kind].rows()[:FEW]:
        assert not failures_of(corners.UNSEEN[kind], row)


def mean_without_a_mask(x):
    return attnpool_ref.mean_pooling(x)


def heads_without_a_mask(query, key, value, *, query_kernel, key_kernel, value_kernel, out_kernel):
    kernels = {"query_kernel": query_kernel, "key_kernel": key_kernel}
    kernels |= {"value_kernel": value_kernel, "out_kernel": out_kernel}
    return attnpool_ref.multi_head_attention(query, key, value, **kernels)


@pytest.mark.parametrize(
    ("row", "function"), [("mean_pooling", mean_without_a_mask), ("multi_head_attention", heads_without_a_mask)]
)
def test_a_function_without_a_mask_is_judged_in_part_unless_it_is_said_to_have_none(row, function):
    report = conformance.judge(function, only=(row,), dtypes=("float32",), long=False)
    assert report.verdict == "partial" and EXIT[report.verdict] == 3
    assert "it takes no `mask`, so its padding was never judged" in report.rows[0].partial[0]
    conformance.check(function, row, dtypes=("float32",), long=False, leave=("mask",))


def test_lengths_may_stand_in_for_a_mask():
    def mean(x, *, lengths=None):
        return attnpool_ref.mean_pooling(x, lengths=lengths)

    conformance.check(mean, "mean_pooling", dtypes=("float32",), long=False)


@pytest.mark.parametrize("route", one_in(9, RIGHT))
def test_a_right_function_by_another_route_is_accepted(route):
    row, function = RIGHT[route]
    report = conformance.judge(
        function, only=(row,), dtypes=conformance.DTYPES, long="mean" in row, whole_contract=True
    )
    overflow = {"integers alone"}  # of NumPy's products of int8, which no author of such a function has in mind
    assert {kept.guarantee for kept in report.rows[0].accused} <= overflow and not report.rows[0].partial, str(report)


@pytest.mark.parametrize("route", one_in(12, PLAIN))
def test_a_function_as_its_author_would_write_it_is_accepted(route):
    """Judged by default, as it is called: many take boolean masks with all axes, one batch axis or one dtype alone."""
    chosen = PLAIN[route]
    report = conformance.judge(
        chosen.function, only=(chosen.row,), dtypes=chosen.dtypes, long=chosen.long, **chosen.calls
    )
    assert report.verdict == "pass", report.smallest_failure or report.rows[0].partial


def test_there_are_thirty_routes_over_a_dozen_rows():
    assert len(RIGHT) >= 30 and len({row for row, _ in RIGHT.values()}) >= 12
    assert len(PLAIN) >= 44 and len({route.row for route in PLAIN.values()}) >= 30
