"""Examples by hypothesis find what the drawn cases do not, make it small, and are the same at every run."""

import sys

import numpy as np
import pytest
from click.testing import CliRunner

import attnpool_ref as ref
from attnpool_ref import conformance, extras
from attnpool_ref.cli.application import application
from attnpool_ref.conformance.running import examples

FEW = {"only": ("mean_pooling",), "dtypes": ("float32",), "shapes": (), "laws": False, "partial": False, "long": False}


def row_of(function, **options):
    return conformance.judge(function, **(FEW | options)).rows[0]


def mean_wrong_where(wrong):
    def pool(x, mask=None):
        result = ref.mean_pooling(x, mask)
        return result * np.float32(1.01) if wrong(x, mask) else result

    return pool


WRONG = {
    "five features": (lambda x, mask: x.shape[-1] == 5, "values", (5,)),
    "one feature under a mask": (
        lambda x, mask: x.shape[-1] == 1 and not np.all(True if mask is None else mask),
        "values under masks",
        None,
    ),
    "a long row": (lambda x, mask: x.shape[-2] > 60, "values", None),
    "two batch axes": (lambda x, mask: x.ndim > 3, "values", None),
}


@pytest.mark.parametrize(("wrong", "promise", "shape"), WRONG.values(), ids=WRONG)
def test_a_mistake_that_no_drawn_case_shows_is_found(wrong, promise, shape):
    pool = mean_wrong_where(wrong)
    assert row_of(pool).status == "pass"
    row = row_of(pool, examples=200)
    (kept,) = [kept for kept in row.broken if not kept.follows_from]
    assert kept.promise == promise and kept.failures[0].snippet
    if shape is not None:
        assert kept.failures[0].size <= 2 * shape[0]


def test_what_was_found_is_code_that_shows_it(capsys):
    globals()["pool_of_a_test"] = pool = mean_wrong_where(WRONG["five features"][0])
    try:
        pool.__qualname__, pool.__module__ = "pool_of_a_test", __name__
        (failure,) = row_of(pool, examples=200).failures
        exec(failure.snippet, {})
    finally:
        del globals()["pool_of_a_test"]
    got, want = capsys.readouterr().out.splitlines()
    assert got.removeprefix("candidate: ") != want.removeprefix("oracle: ")


def test_the_examples_are_the_same_at_every_run_and_others_with_another_seed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def seen(**options):
        arrays = []

        def pool(x, mask=None):
            arrays.append((x.shape, x.tobytes()))
            return ref.mean_pooling(x, mask)

        assert row_of(pool, examples=20, **options).status == "pass"
        return arrays

    first = seen()
    assert seen() == first != seen(seed=1)
    assert len({shape for shape, _ in first}) > 10
    assert list(tmp_path.iterdir()) == [], "no database is left behind"


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["dot_product_attention", "semantic_match", "masked_softmax"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_what_is_right_is_never_accused(name, dtype):
    row = row_of(getattr(ref, name), only=(name,), dtypes=(dtype,), examples=40)
    assert row.status == "pass" and row.cases >= 40


class Differentiated(conformance.NumpyArrays):
    """Arrays whose means have a gradient, wrong for five features."""

    def gradient(self, function, arrays, fixed, cotangents):
        x, mask = arrays["x"], fixed.get("mask")
        mask = np.ones(x.shape[:-1], bool) if mask is None else np.broadcast_to(mask, x.shape[:-1])
        share = np.where(mask, 1 / np.maximum(mask.sum(-1, keepdims=True), 1), 0)
        found = cotangents[0][..., None, :] * share[..., None] * (1.5 if x.shape[-1] == 5 else 1)
        return {"x": found.astype(x.dtype)}


def test_a_wrong_gradient_is_found():
    assert row_of(ref.mean_pooling, arrays=Differentiated()).promises["gradient"].status == "held"
    row = row_of(ref.mean_pooling, arrays=Differentiated(), examples=300)
    assert [kept.promise for kept in row.broken] == ["gradient"]


def test_a_row_that_is_wrong_already_is_not_searched():
    row = row_of(mean_wrong_where(lambda x, mask: True), examples=100)
    assert {u.what: u.why for u in row.unasked}["more examples"].startswith("broken already: values")


def test_an_answer_that_is_wrong_once_is_told():
    calls, wrong = [], []

    def unsteady(x, mask=None):
        calls.append(1)
        result = ref.mean_pooling(x, mask)
        if wrong and len(calls) > wrong[0] and result.size:
            wrong.clear()
            return result + np.float32(1)
        return result

    row_of(unsteady)
    wrong.append(2 * len(calls) + 20)  # among the examples of the second judgement
    row = row_of(unsteady, examples=100)
    (kept,) = row.broken
    assert kept.promise == "the same answer twice"
    assert kept.failures[0].message.startswith("wrong once, right when asked again (the result is ")


def test_where_no_example_fits_the_report_says_so(monkeypatch):
    monkeypatch.setattr(examples, "_underflows", lambda result, dtype: True)
    row = row_of(ref.mean_pooling, examples=5)
    assert [(u.what, u.why) for u in row.unasked] == [("more examples", "none was drawn that it takes")]


def test_a_candidate_is_called_as_it_was_said():
    shapes = set()

    def pool(tokens, padding):
        shapes.add((tokens.ndim, padding.dtype.name))
        return ref.mean_pooling(tokens, ~padding)

    assert row_of(pool, padding_true=True, mask_required=True, batched=True, examples=30).status == "pass"
    assert shapes == {(3, "bool")}


def test_without_hypothesis_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"hypothesis is not installed; pip install 'attnpool\[test\]'"):
        row_of(ref.mean_pooling, examples=1)
    words = ["check", "attnpool_ref", "--only", "mean_pooling", "--examples", "5", "--jobs", "0"]
    result = CliRunner().invoke(application, words)
    assert result.exit_code == 2 and "pip install 'attnpool[test]'" in result.output


def test_hypothesis_is_imported_only_for_examples(monkeypatch):
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    assert row_of(ref.mean_pooling).status == "pass"
