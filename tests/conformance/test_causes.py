"""The cause in words: each known mistake is named, and a mistake that nobody knows is not named after another."""

import json
import re
import types
from unittest import mock

import numpy as np
import pytest
from conformance.mutants import MUTANTS
from marks import one_in

import attnpool_ref as ref
from attnpool_ref import conformance, table
from attnpool_ref.conformance import formats
from attnpool_ref.conformance.candidates.adapters import NumpyArrays
from attnpool_ref.conformance.causes import diagnosis, mistakes, of_tokens, of_weights
from attnpool_ref.conformance.causes.wrong_answers import Call
from attnpool_ref.conformance.checks import CHECKS
from attnpool_ref.conformance.checks.subject import Subject
from attnpool_ref.conformance.formats import words
from attnpool_ref.conformance.report import guarantees
from attnpool_ref.conformance.running import runner

FEW = {"shapes": ("no batch",), "long": False, "whole_contract": True}


def judged(function, name, dtypes=("float32",)):
    with mock.patch.object(runner, "shrink", lambda case, fails: case):  # it takes long, and no cause comes of it
        (row,) = conformance.judge(function, only=(name,), dtypes=dtypes, **FEW).rows
    assert row.status == "fail"
    return row


def causes_of(function, name, dtypes=("float32",)):
    return judged(function, name, dtypes).causes


NAMED = {
    "mean: over the padded length": "takes the mean over the padded length: divides by all tokens, not the real ones",
    "mean: multiplies by the mask": "multiplies padding by 0, but 0 times NaN is NaN: use where(mask, x, 0) before the product",
    "softmax: -1e6 for padding": "a finite number in place of -inf for padding",
    "softmax: -1e4 added to padding": "a finite number in place of -inf for padding",
    "softmax: an epsilon in the denominator": "an epsilon in the denominator",
    "softmax: scores multiplied by the mask": "multiplies scores by the mask: padding gets the score 0",
    "entmax: masked after the threshold": "applies the mask after the normalizer, without normalizing again",
    "attention pooling: not scaled": "no 1/sqrt(d)",
    "attention pooling: the mask ignored": "ignores the mask",
    "scaled dot: divided by d": "1/d in place of 1/sqrt(d)",
    "scaled dot: scale ignored": "ignores `scale`",
    "attend: softmax whatever the normaliser": "`normalizer` is always 'softmax'",
    "additive attention: normalises over the queries": "normalizes over the wrong axis",
    "orthogonal: parts swapped": "the two results are swapped",
    "cosine: 1e-8 added to the norms": "an epsilon added to the norm",
    "triplet: exemplars swapped": "`positive` and `negative` are swapped",
    "max: padding as 0": "replaces padding by a finite number before the maximum or minimum",
    "max: of nothing is -inf": "an infinite number for a fully masked row",
    "packed max: of nothing is -inf": "an infinite number for a fully masked row",
    "first: a padding token when empty": "reads the padding of a fully masked row",
    "packed mean: over the padded segment": "counts the masked tokens: divides by all tokens, not the real ones",
}


@pytest.mark.parametrize("mistake", one_in(3, NAMED))
def test_a_known_mistake_is_named_first(mistake):
    row = next(row for row, known in MUTANTS.items() if mistake in known)
    assert causes_of(MUTANTS[row][mistake], row)[0] == NAMED[mistake]


def fill(number):
    def softmax(scores, mask=None, *, axis=-1):
        real = np.broadcast_to(True if mask is None else mask, scores.shape)
        return ref.masked_softmax(np.where(real, scores, number).astype(scores.dtype), axis=axis)

    return softmax


def inverted(x, mask=None):
    return ref.mean_pooling(x, None if mask is None else ~mask)


def nan_when_empty(x, mask=None):
    mask = np.broadcast_to(True if mask is None else mask, x.shape[:-1])
    with np.errstate(all="ignore"):
        return np.where(mask.any(-1)[..., None], ref.mean_pooling(x, mask), np.nan).astype(x.dtype)


def tiny_epsilon(scores, mask=None, *, axis=-1):
    real = np.broadcast_to(True if mask is None else mask, scores.shape)
    top = np.max(np.where(real, scores, -np.inf), axis, keepdims=True, initial=-np.inf)
    with np.errstate(all="ignore"):
        powers = np.where(real, np.exp(scores - np.where(np.isfinite(top), top, 0)), 0)
        powers = np.where(np.isnan(top), np.nan, powers)
        return (powers / (np.sum(powers, axis, keepdims=True) + 1e-9)).astype(scores.dtype)


def a_few_roundings_off(x, mask=None):
    """What adding up in the input's own narrow dtype comes to, without waiting for an unlucky case."""
    found = ref.mean_pooling(x, mask)
    off = (found != 0) * 3
    return found if x.dtype.itemsize > 2 else (found.view(np.int16) + off.astype(np.int16)).view(x.dtype)


def lengths_ignored(query, key, value, mask=None, *, lengths=None, scale=None):
    return ref.dot_product_attention(query, key, value, mask, scale=scale)


def mask_ignored_beside_a_bias(query, key, value, mask=None, *, bias=None, scale=None):
    return ref.dot_product_attention(query, key, value, mask if bias is None else None, bias=bias, scale=scale)


def with_the_column_of_the_sink(query, key, value, mask=None, *, sink=None, return_weights=False):
    pooled, weights = ref.dot_product_attention(query, key, value, mask, sink=sink, return_weights=True)
    if sink is not None:
        weights = np.concatenate([weights, 1 - np.sum(weights, -1, keepdims=True)], -1)
    return (pooled, weights) if return_weights else pooled


def under_all_weights(x, weights=None, mask=None):
    real = np.broadcast_to(True if mask is None else mask, x.shape[:-1])[..., None]
    weights = np.where(real, 1.0, 0) if weights is None else weights
    weights = weights if weights.ndim == x.ndim else weights[..., None]
    with np.errstate(all="ignore"):
        found = np.where(real, weights * x, 0).sum(-2) / weights.sum(-2)
    return np.where(real.any(-2), found, 0).astype(x.dtype)


def one_token_of_each(x, segment_ids, num_segments, mask=None):
    if mask is not None:
        x, segment_ids = x[mask], segment_ids[mask]
    sums = np.zeros((num_segments, x.shape[-1]), x.dtype)
    sums[segment_ids] += x
    return sums / np.maximum(np.bincount(segment_ids, minlength=num_segments), 1)[:, None].astype(x.dtype)


def with_other_gates(x, mask=None, *, input_kernel, recurrent_kernel, bias, num_steps=3):
    kernels = {"input_kernel": input_kernel, "recurrent_kernel": recurrent_kernel, "bias": bias}
    swapped = {k: np.concatenate([np.split(v, 4, -1)[i] for i in (0, 1, 3, 2)], -1) for k, v in kernels.items()}
    return ref.set2set_pooling(x, mask, num_steps=num_steps, **swapped)


def a_hundredth_off(x, mask=None):
    return ref.mean_pooling(x, mask) * np.float32(1.01)


@pytest.mark.parametrize(
    ("function", "row", "causes"),
    [
        (inverted, "mean_pooling", [mistakes.INVERTED]),
        (nan_when_empty, "mean_pooling", [mistakes.NAN]),
        (fill(-1e9), "masked_softmax", [of_weights.STAND_IN]),
        (lengths_ignored, "dot_product_attention", ["ignores `lengths`"]),
        (under_all_weights, "weighted_pooling", [mistakes.ALL_WEIGHTS]),
        (one_token_of_each, "segment_mean_pooling", [of_tokens.OVERWRITTEN]),
        (with_other_gates, "set2set_pooling", [mistakes.GATES]),
        (with_the_column_of_the_sink, "dot_product_attention", [diagnosis.WITH_SINK]),
        (mask_ignored_beside_a_bias, "dot_product_attention", []),  # a mixed batch contradicts that it ignores masks
        (a_hundredth_off, "mean_pooling", []),  # nobody knows it
    ],
)
def test_the_cause_is_the_mistake_or_nothing_if_it_is_unknown(function, row, causes):
    assert causes_of(function, row) == causes


def test_an_epsilon_that_only_float64_shows_is_named():
    assert (
        conformance.judge(tiny_epsilon, only=("masked_softmax",), dtypes=("float32",), **FEW).rows[0].status == "pass"
    )
    row = judged(tiny_epsilon, "masked_softmax", ("float32", "float64"))
    assert row.sentences == ["an epsilon in the denominator (1e-9; float64)"]


def test_computing_in_the_inputs_own_dtype_is_named():
    found = causes_of(a_few_roundings_off, "mean_pooling", ("float32", "bfloat16"))
    assert found == [diagnosis.OWN_DTYPE]


def nan_when_empty_and_ignoring(x, mask=None):
    """Two mistakes, neither of which hides the other."""
    bare = ref.mean_pooling(x)
    return bare if mask is None else np.where(np.any(mask, -1)[..., None], bare, np.nan).astype(x.dtype)


def test_two_mistakes_are_both_named():
    found = causes_of(nan_when_empty_and_ignoring, "mean_pooling", conformance.DTYPES)
    assert found == ["ignores the mask", "NaN for a fully masked row"]


def test_the_inputs_own_dtype_is_named_beside_a_mistake_and_never_instead():
    def rounded(function):
        return lambda x, mask=None: a_few_roundings_off(np.expand_dims(function(x, mask), -2))

    dtypes = ("float32", "bfloat16")
    assert causes_of(rounded(nan_when_empty), "mean_pooling", dtypes)[1:] == [diagnosis.OWN_DTYPE]
    assert (
        causes_of(rounded(lambda x, mask: ref.mean_pooling(x, mask) * x.dtype.type(1.01)), "mean_pooling", dtypes) == []
    )


def test_a_function_that_computes_in_float32_is_told_so():
    def narrow(x, mask=None):
        return ref.mean_pooling(x, mask).astype(np.float32).astype(x.dtype)

    assert judged(narrow, "mean_pooling", ("float32", "float64")).sentences == [f"{diagnosis.FLOAT32} (float64)"]


def averaged(x, mask, divisor):
    real = np.broadcast_to(mask, x.shape[:-1])
    return np.where(real[..., None], x, 0).sum(-2) / np.maximum(divisor(real), 1)[..., None]


def test_a_wider_result_is_one_cause_and_one_broken_guarantee():
    row = judged(lambda x, mask: averaged(x, mask, lambda real: real.sum(-1)), "mean_pooling")
    cause = "the result is float64: an integer count, an integer mask or np.sqrt(d) widens it; write `.astype(x.dtype)`"
    assert row.sentences == [f"{cause} (float32)"]
    assert [kept.guarantee for kept in row.accused] == ["dtype"]
    (failure,) = row.guarantees["dtype"].failures
    assert failure.snippet.count(".dtype)\n") == 2


def test_wrong_values_of_a_wider_result_are_named_and_shown():
    report = conformance.judge(
        lambda x, mask: averaged(x, mask, lambda real: np.full(real.shape[:-1], real.shape[-1])),
        only=("mean_pooling",), dtypes=("float32",), long=False,
    )  # fmt: skip
    (row,) = report.rows
    assert row.causes[0].startswith("takes the mean over the padded length") and "float64" in row.causes[1]
    assert [kept.guarantee for kept in row.accused] == ["dtype", "values under masks"]
    assert report.smallest_failure.check == "values under masks"


def test_a_cause_in_values_and_in_fully_masked_rows_is_named_once():
    def filled(x, mask):
        return np.where(mask[..., None], x, np.float32(-1e4)).max(-2)

    row = conformance.judge(
        filled, only=("max_pooling",), dtypes=("float32", "float64"), batched=True, laws=False, long=False
    ).rows[0]
    assert row.sentences[0] == f"{of_tokens.FILLED} (-1e4; float64, float32)"
    assert len(set(row.causes)) == len(row.causes)


def test_nan_in_fully_masked_rows_is_not_named_if_most_of_them_are_right():
    def pool(x, mask=None):
        empty = ~np.broadcast_to(True if mask is None else mask, x.shape[:-1]).any(-1) & (np.abs(x).max() > 100)
        return np.where(empty[..., None], np.nan, ref.mean_pooling(x, mask)).astype(x.dtype)

    row = conformance.judge(pool, only=("mean_pooling",), dtypes=("float32",), long=False).rows[0]
    assert row.status == "fail" and row.causes == []


def test_wrong_values_far_from_0_alone_without_a_known_cause_say_so():
    def rounded(scores, mask=None):
        return ref.masked_softmax(np.where(np.abs(scores) > 100, scores * scores.dtype.type(0.99), scores), mask)

    row = conformance.judge(rounded, only=("masked_softmax",), dtypes=("float32",), leave=("axis",), long=False).rows[0]
    assert "far from 0" in [kept.guarantee for kept in row.accused] and words.causes(row) == ["no cause found."]


def overflowing(scores, mask=None, *, axis=-1):
    """Ignores the mask, and overflows where scores are extreme."""
    with np.errstate(all="ignore"):
        heights = np.exp(scores)
        return heights / np.sum(heights, axis, keepdims=True)


def test_a_cause_that_explains_most_says_of_how_many():
    row = judged(overflowing, "masked_softmax")
    assert row.causes[0] == "ignores the mask"
    ((explained, wrong),) = re.findall(r"(\d+) of (\d+) wrong cases in float32", row.sentences[0])
    explained, wrong = int(explained), int(wrong)
    assert wrong / 2 < explained < wrong


UNKNOWN = (
    "lengths: counted from the end",
    "rigid: the distance up to atol",
    "attention: scales the bias",
)
"""Mistakes that have no words, and that a known one explains in part."""


@pytest.mark.parametrize("mistake", UNKNOWN)
def test_a_mistake_that_another_explains_in_part_is_not_named_after_it(mistake):
    row = next(row for row, known in MUTANTS.items() if mistake in known)
    assert causes_of(MUTANTS[row][mistake], row) == []


def test_every_report_says_what_a_cause_explains():
    report = conformance.judge(nan_when_empty, name="mine", only=("mean_pooling",), dtypes=("float32",), **FEW)
    sentence = "NaN for a fully masked row (float32)"
    assert sentence in formats.as_junit(report)
    assert json.loads(formats.as_json(report))["rows"][0]["explained"] == {"NaN for a fully masked row": "float32"}


def test_the_cause_comes_first_in_the_message():
    with pytest.raises(AssertionError, match=r"^mean_pooling: equals the definition with `~mask`"):
        conformance.check(inverted, "mean_pooling", **FEW)


@pytest.mark.parametrize("row", one_in(3, table.VARIANTS), ids=lambda row: row.name)
def test_every_mistake_has_an_answer_somewhere_and_it_is_a_wrong_one(row):
    """A mistake that always gives what is right would name nothing; one that always breaks down neither."""
    from attnpool_ref.conformance import cases

    subject = Subject(row, getattr(ref, row.name), NumpyArrays(), "float64")
    drawn = [case for case, _ in cases.cases_of(row, shapes=("no batch",))]
    asked = [Call(subject, subject.fit(case), bool(row.weights)) for case in drawn[:6]]
    for mistake in (*mistakes.mistakes_of(row, subject.oracle), *mistakes.of_empty_rows(row)):
        for each in asked:
            try:
                answer = mistake.answer(each)
            except ValueError as error:  # no legal call, in the oracle's own words
                assert str(error).startswith(row.name)
                continue
            assert answer is None or len(answer) == len(each.exact)


def test_what_follows_is_told_under_what_it_follows_from():
    row = conformance.judge(inverted, only=("mean_pooling",), dtypes=("float32",), **FEW).rows[0]
    assert [kept.guarantee for kept in row.broken if not kept.follows_from] == ["values under masks"]
    assert {kept.follows_from for kept in row.broken} == {"", "values under masks"}
    assert len(row.broken) > 5


def test_a_failure_in_one_dtype_does_not_explain_one_in_another():
    assert guarantees.explained_by("shapes", {"shapes": {"float32"}, "values": {"bfloat16"}}) == ""
    assert guarantees.explained_by("shapes", {"shapes": {"float32"}, "values": {"float32", "bfloat16"}}) == "values"
    broken = {name: {"float32"} for name in ("inf in padding", "NaN in padding", "values under masks")}
    assert guarantees.explained_by("inf in padding", broken) == "values under masks"


BY_THEMSELVES = {"agreement", "long sums"}
"""Checks beside the table: what comes first, and what draws its own cases."""


def test_every_guarantee_names_a_check_and_what_it_follows_from():
    names = [guarantee.name for guarantee in guarantees.GUARANTEES]
    assert len(set(names)) == len(names)
    for guarantee in guarantees.GUARANTEES:
        assert guarantee.judged_by in {*CHECKS, *BY_THEMSELVES}
        assert all(names.index(cause) < names.index(guarantee.name) for cause in guarantee.follows_from)
        assert guarantee.says.endswith(".") and 0 <= guarantee.line <= 18
    assert {*BY_THEMSELVES, *CHECKS} == {guarantee.judged_by for guarantee in guarantees.GUARANTEES}


def test_nothing_is_named_where_nothing_is_wrong(monkeypatch):
    monkeypatch.setattr(mistakes, "mistakes_of", None)
    report = conformance.judge(types.SimpleNamespace(dot_score=ref.dot_score), only=("dot_score",), **FEW)
    assert report.passed and report.rows[0].causes == []


def test_nan_that_reaches_a_maximum_is_no_product():
    def added(x, mask=None):
        return (x if mask is None else x + np.where(mask, 0, -1e15)[..., None].astype(x.dtype)).max(-2)

    (row,) = conformance.judge(added, only=("max_pooling",), dtypes=("float32",), batched=True, long=False).rows
    assert row.causes == [of_tokens.FILLED, diagnosis.IN_MAXIMUM]
