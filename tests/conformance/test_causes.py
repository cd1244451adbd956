"""The cause in words: each known mistake is named, and a mistake that nobody knows is not named after another."""

import types
from unittest import mock

import numpy as np
import pytest
from conformance.mutants import MUTANTS

import attnpool_ref as ref
from attnpool_ref import conformance, variants
from attnpool_ref.conformance import causes, mistakes, promises, shrinking
from attnpool_ref.conformance.adapters import NumpyArrays
from attnpool_ref.conformance.checks import CHECKS
from attnpool_ref.conformance.subject import Subject

FEW = {"shapes": ("no batch",), "long": False, "contract": True}


def causes_of(function, name, dtypes=("float32",)):
    with mock.patch.object(shrinking, "shrink", lambda case, fails: case):  # it takes long, and no cause comes of it
        (row,) = conformance.judge(function, only=(name,), dtypes=dtypes, **FEW).rows
    assert row.status == "fail"
    return row.causes


NAMED = {
    "mean: over the padded length": "takes the mean over the padded length: divides by all tokens, not the real ones",
    "mean: multiplies by the mask": "multiplies padding by 0, and 0 times NaN is NaN: select it before any product",
    "softmax: -1e6 for padding": "-1e4 to -1e9 instead of -inf for padding",
    "softmax: -1e4 added to padding": "-1e4 to -1e9 added to padded scores instead of -inf",
    "softmax: an epsilon in the denominator": "an epsilon of 1e-4 in the denominator",
    "softmax: scores multiplied by the mask": "scores multiplied by the mask: padding has the score 0",
    "entmax: masked after the threshold": "the mask after normalising, and not normalised again",
    "attention pooling: not scaled": "no 1/sqrt(d)",
    "attention pooling: the mask ignored": "ignores the mask",
    "scaled dot: divided by d": "1/d in place of 1/sqrt(d)",
    "scaled dot: scale ignored": "ignores `scale`",
    "attend: softmax whatever the normaliser": "`normalizer` is always 'softmax'",
    "additive attention: normalises over the queries": "normalises over the wrong axis",
    "orthogonal: parts swapped": "the two results are swapped",
    "cosine: 1e-8 added to the norms": "an epsilon of 1e-12 to 1e-4 added to the norm",
    "triplet: exemplars swapped": "`positive` and `negative` are swapped",
}


@pytest.mark.parametrize("mistake", NAMED)
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


def test_masks_that_mean_the_opposite():
    assert causes_of(inverted, "mean_pooling")[0] == "equals the definition with `~mask`: its masks mean the opposite"


def test_nan_where_nothing_is_real():
    assert causes_of(nan_when_empty, "mean_pooling") == ["NaN where nothing is real"]


def test_a_finite_stand_in_is_named():
    assert "instead of -inf for padding" in causes_of(fill(-1e9), "masked_softmax")[0]


def test_an_epsilon_that_only_float64_shows_is_named():
    assert (
        conformance.judge(tiny_epsilon, only=("masked_softmax",), dtypes=("float32",), **FEW).rows[0].status == "pass"
    )
    assert causes_of(tiny_epsilon, "masked_softmax", ("float32", "float64")) == [
        "an epsilon of 1e-9 in the denominator"
    ]


def test_computing_in_the_inputs_own_dtype_is_named():
    found = causes_of(a_few_roundings_off, "mean_pooling", ("float32", "bfloat16"))
    assert found == ["sums in the input's own dtype: right to the rounding of bfloat16, not of float32"]


def test_lengths_that_are_not_read_are_named():
    def ignoring(query, key, value, mask=None, *, lengths=None, scale=None):
        return ref.dot_product_attention(query, key, value, mask, scale=scale)

    assert causes_of(ignoring, "dot_product_attention") == ["ignores `lengths`"]


def test_an_unknown_mistake_has_no_name():
    assert causes_of(lambda x, mask=None: ref.mean_pooling(x, mask) * np.float32(1.01), "mean_pooling") == []


def test_the_cause_comes_first_in_the_message():
    with pytest.raises(AssertionError, match=r"^mean_pooling: equals the definition with `~mask`"):
        conformance.check(inverted, "mean_pooling", **FEW)


@pytest.mark.parametrize("row", variants.VARIANTS, ids=lambda row: row.name)
def test_every_mistake_has_an_answer_somewhere_and_it_is_a_wrong_one(row):
    """A mistake that always gives what is right would name nothing; one that always breaks down neither."""
    from attnpool_ref.conformance import cases

    subject = Subject(row, getattr(ref, row.name), NumpyArrays(), "float64")
    drawn = [case for case, _ in cases.cases_of(row, shapes=("no batch",))]
    asked = [mistakes.Asked(subject, subject.fit(case), bool(row.weights)) for case in drawn[:6]]
    for mistake in mistakes.mistakes_of(row, subject.oracle):
        for each in asked:
            try:
                answer = mistake.answer(each)
            except ValueError as error:  # no legal call, in the oracle's own words
                assert str(error).startswith(row.name)
                continue
            assert answer is None or len(answer) == len(each.exact)


def test_what_follows_is_told_under_what_it_follows_from():
    row = conformance.judge(inverted, only=("mean_pooling",), dtypes=("float32",), **FEW).rows[0]
    assert [kept.promise for kept in row.broken if not kept.follows_from] == ["values under masks"]
    assert {kept.follows_from for kept in row.broken} == {"", "values under masks"}
    assert len(row.broken) > 5


def test_a_failure_in_one_dtype_does_not_explain_one_in_another():
    assert promises.explained_by("shapes", {"shapes": {"float32"}, "values": {"bfloat16"}}) == ""
    assert promises.explained_by("shapes", {"shapes": {"float32"}, "values": {"float32", "bfloat16"}}) == "values"
    broken = {name: {"float32"} for name in ("inf in padding", "NaN in padding", "values under masks")}
    assert promises.explained_by("inf in padding", broken) == "values under masks"


BY_THEMSELVES = {"agreement", "long sums", "stated gradients", "refusals"}
"""Checks beside the table: what comes first, and what draws its own cases."""


def test_every_promise_names_a_check_and_what_it_follows_from():
    names = [promise.name for promise in promises.PROMISES]
    assert len(set(names)) == len(names)
    for promise in promises.PROMISES:
        assert promise.judged_by in {*CHECKS, *BY_THEMSELVES}
        assert all(names.index(cause) < names.index(promise.name) for cause in promise.follows_from)
        assert promise.says.endswith(".") and 0 <= promise.line <= 18
    assert {*BY_THEMSELVES, *CHECKS} == {promise.judged_by for promise in promises.PROMISES}


def test_nothing_is_named_where_nothing_is_wrong(monkeypatch):
    monkeypatch.setattr(causes, "mistakes_of", None)
    report = conformance.judge(types.SimpleNamespace(dot_score=ref.dot_score), only=("dot_score",), **FEW)
    assert report.passed and report.rows[0].causes == []
