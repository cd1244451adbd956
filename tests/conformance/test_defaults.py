"""What breaks a guarantee, and what does so only in attnpool's own functions."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from documents import section

import attnpool_ref as ref
from attnpool_ref import conformance, table
from attnpool_ref.cli.application import application
from attnpool_ref.conformance import cases
from attnpool_ref.conformance.checks import optional_checks
from attnpool_ref.conformance.checks.agreement import compare
from attnpool_ref.conformance.checks.subject import Subject
from attnpool_ref.conformance.report import guarantees

PAGE = Path(__file__).parents[2] / "docs/guarantees.md"
FEW = {"dtypes": ("float32", "float64"), "shapes": ("no batch", "length 0", "broadcasting", "shared"), "long": False}


def row_of(function, name, **options):
    return conformance.judge(function, only=(name,), **(FEW | options)).rows[0]


def accused(row):
    return [kept.guarantee for kept in row.accused]


def in_the_first_dtype(query, key, *, scale=None):
    return ref.scaled_dot_score(query, key, scale=scale).astype(query.dtype)


def of_one_dtype(query, key, *, scale=None):
    if query.dtype != key.dtype:
        raise TypeError(f"query is {query.dtype}, key is {key.dtype}")
    return ref.scaled_dot_score(query, key, scale=scale)


def wrong_beside_another_dtype(query, key, *, scale=None):
    return in_the_first_dtype(query, key, scale=scale) * query.dtype.type(1 if query.dtype == key.dtype else 1.01)


@pytest.mark.parametrize("function", [in_the_first_dtype, of_one_dtype])
def test_another_dtype_and_a_refusal_of_mixed_dtypes_are_notes(function):
    row = row_of(function, "scaled_dot_score")
    kept = row.guarantees["mixed dtypes"]
    assert (row.status, kept.status) == ("pass", "n/a") and kept.why == kept.notes[0]
    assert any("mixed dtypes: " in note and "float32 beside float64" in note for note in row.notes)
    assert "mixed dtypes" in accused(row_of(function, "scaled_dot_score", whole_contract=True))


def test_a_wrong_number_beside_another_dtype_is_a_mistake():
    assert accused(row_of(wrong_beside_another_dtype, "scaled_dot_score")) == ["mixed dtypes"]


def beside_integers(query, key, factor):
    scores = ref.scaled_dot_score(query, key)
    return scores * scores.dtype.type(factor if query.dtype.kind == "i" else 1)


def test_a_wrong_number_and_a_result_of_integers_are_notes_for_integers_beside_floats():
    row = row_of(lambda query, key: beside_integers(query, key, 1.5), "scaled_dot_score", fixed={"scale": None})
    assert row.status == "pass" and any("integers in `query`" in note for note in row.notes)

    def rounded(query, key):
        scores = ref.scaled_dot_score(query, key)
        return scores.astype(query.dtype) if query.dtype.kind == "i" else scores

    row = row_of(rounded, "scaled_dot_score", fixed={"scale": None})
    assert row.status == "pass" and any("integers in `query`" in note for note in row.notes)


def test_data_of_integers_only_are_not_for_others_to_judge():
    row = row_of(ref.scaled_dot_score, "scaled_dot_score").guarantees["integers alone"]
    assert (row.status, row.why) == ("n/a", "only attnpool's own functions must keep it")
    assert row_of(ref.scaled_dot_score, "scaled_dot_score", whole_contract=True).guarantees["integers alone"].cases


@pytest.mark.parametrize(("words", "whole"), [([], True), (["attnpool_ref"], False)])
def test_attnpool_flax_is_always_judged_by_the_whole_contract(words, whole):
    seen = {}
    check = application.commands["check"]
    check.main(words, standalone_mode=False, obj=lambda candidate, **options: seen.update(options))
    assert seen["whole_contract"] is whole


def by_index(x, mask=None):
    """A mean that takes boolean masks with all axes."""
    pooled = np.zeros((*x.shape[:-2], x.shape[-1]), x.dtype)
    for i in np.ndindex(*x.shape[:-2]):
        kept = x[i] if mask is None else x[i][mask[i]]
        pooled[i] = kept.sum(0) / x.dtype.type(max(len(kept), 1))
    return pooled


def of_full_masks(x, mask=None):
    if mask is not None and mask.ndim != x.ndim - 1:
        raise ValueError("a mask for each example")
    return ref.mean_pooling(x, mask)


def warns(x, mask=None):
    np.ones(1) / np.zeros(1)
    return ref.mean_pooling(x, mask)


@pytest.mark.parametrize(
    ("function", "guarantee"), [(of_full_masks, "arguments that broadcast"), (warns, "no warnings")]
)
def test_an_error_for_a_mask_of_a_lower_rank_and_a_warning_of_numpy_are_notes(function, guarantee):
    row = row_of(function, "mean_pooling")
    assert (row.status, row.guarantees[guarantee].status) == ("pass", "n/a")
    assert any(note.startswith(f"{guarantee}: ") for note in row.notes)
    assert accused(row_of(function, "mean_pooling", whole_contract=True)) == [guarantee]


def test_arguments_that_broadcast_are_judged():
    assert row_of(ref.mean_pooling, "mean_pooling").guarantees["arguments that broadcast"].status == "held"


def test_a_wrong_number_for_a_mask_of_a_lower_rank_is_a_mistake():
    def of_lower_rank(x, mask=None):
        return ref.mean_pooling(x, mask if mask is None or mask.ndim == x.ndim - 1 else None)

    assert accused(row_of(of_lower_rank, "mean_pooling")) == ["arguments that broadcast"]


def test_a_mask_with_one_element_for_all_tokens_is_only_for_attnpool_to_take():
    def counted(x, mask=None):
        real = np.ones(x.shape[:-1], bool) if mask is None else mask.astype(bool)
        total = np.where(real[..., None], x, 0).sum(-2)
        return (total / np.maximum(real.sum(-1, keepdims=True), 1)).astype(x.dtype)

    row = row_of(counted, "mean_pooling")
    assert row.status == "pass" and row.guarantees["arguments that broadcast"].status == "held"
    assert "arguments that broadcast" in accused(row_of(counted, "mean_pooling", whole_contract=True))


def test_the_gradient_of_a_saturated_softmax_in_bfloat16_itself_passes():
    def masked_softmax(scores, mask=None):
        mask = jnp.broadcast_to(True if mask is None else mask, scores.shape)
        nothing = jnp.all(~mask | jnp.isneginf(scores), -1, keepdims=True)
        weights = jax.nn.softmax(jnp.where(nothing, 0, jnp.where(mask, scores, -jnp.inf)), -1)
        return jnp.where(mask & ~nothing, weights, 0)

    assert row_of(masked_softmax, "masked_softmax", dtypes=("bfloat16", "float64"), shapes=()).status == "pass"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_rounding_in_the_narrow_dtype_itself_is_a_note_and_a_fifth_is_not(dtype):
    def narrow(factor):
        def score(query, key):
            product = query[..., :, None, :] * key[..., None, :, :]
            total = sum(np.moveaxis(product, -1, 0), np.zeros((), query.dtype))
            return total * query.dtype.type(factor if query.dtype.itemsize == 2 else 1)

        return score

    dtypes = ("float32", dtype)
    row = row_of(narrow(1), "dot_score", dtypes=dtypes)
    assert row.status == "pass" and any(f"rounded in {dtype} itself" in note for note in row.notes)
    assert accused(row_of(narrow(1), "dot_score", dtypes=dtypes, whole_contract=True))
    assert "values" in accused(row_of(narrow(1.2), "dot_score", dtypes=dtypes))


def naive(x, mask=None):
    return x.mean(-2) if mask is None else by_index(x, mask)


def refuses_length_0(x, mask=None):
    if not x.shape[-2]:
        raise ValueError("nothing to pool")
    return by_index(x, mask)


def is_nan_of_padding(x, mask=None):
    return naive(x, mask) if mask is None or mask.any(-1).all() else naive(x, mask) * x.dtype.type(np.nan)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_sequence_of_length_0_may_be_nan_or_refused_and_a_masked_one_may_not():
    for function in (naive, refuses_length_0):
        row = row_of(function, "mean_pooling", mask_form="boolean")
        assert row.status == "pass" and any("length 0" in note for note in row.notes)
        assert row_of(function, "mean_pooling", whole_contract=True).status == "fail"
    assert row_of(is_nan_of_padding, "mean_pooling").status == "fail"


def test_the_weights_may_change_the_rounding_of_the_result_and_no_more():
    def attend(off):
        def attend(scores, value, mask=None, *, return_weights=False):
            found = ref.attend(scores, value, mask, return_weights=return_weights)
            return (found[0] * value.dtype.type(off), found[1]) if return_weights else found

        return attend

    rounded, wrong = 1 + 2.0**-22, 1.001
    options = {"dtypes": ("float32",)}
    row = row_of(attend(rounded), "attend", whole_contract=True, **options)
    assert (row.status, row.guarantees["return_weights"].status) == ("pass", "held")
    assert "return_weights" in accused(row_of(attend(wrong), "attend", **options))


def test_vectors_of_1e30_are_a_note_for_norms():
    def norm(x):
        size = np.sqrt((x * x).sum(-1, keepdims=True))
        return x / np.where(size == 0, 1, size).astype(x.dtype)

    row = row_of(norm, "l2_normalize", dtypes=("float32",))
    assert row.status == "pass" and any("vectors of 1e+30" in note for note in row.notes)
    assert accused(row_of(norm, "l2_normalize", dtypes=("float32",), whole_contract=True)) == ["extreme scores"]


def test_a_log_sum_exp_may_be_rounded_by_itself_where_it_is_not_guaranteed():
    def softmax(scores):
        return np.exp(scores - np.logaddexp.reduce(scores, -1, keepdims=True))

    row = table.get("masked_softmax")
    drawn = cases.draw(row, "without masks", (), {}, (2,))
    sharp = np.broadcast_to([80, 67.5, 0, 0, 0, 0, 0], drawn.values["scores"].shape).astype(np.float64)
    case = drawn.with_values("sharp", scores=sharp)  # the logarithm of the sum is 80 and 4e-6
    subject = Subject(row, None, conformance.NumpyArrays(), "float32")
    scores, want = case.values["scores"].astype(np.float32), subject.exact(case)
    assert compare(subject, case, "", [softmax(scores)], want, False).message
    subject.tolerated = frozenset({optional_checks.LOGARITHMS})
    assert not compare(subject, case, "", [softmax(scores)], want, False).message
    assert compare(subject, case, "", [softmax(scores) * np.float32(1.001)], want, False).message


def test_an_option_whose_other_values_are_refused_by_name_is_not_wrong():
    def softmax_only(scores, value, mask=None, *, normalizer="softmax"):
        if normalizer != "softmax":
            raise NotImplementedError(f"no normalizer {normalizer}")
        return ref.attend(scores, value, mask)

    row = row_of(softmax_only, "attend")
    assert row.status == "pass" and any("no normalizer sparsemax" in note for note in row.notes)
    assert row_of(softmax_only, "attend", whole_contract=True).status == "fail"


def test_the_page_states_each_guarantee_and_whether_a_deviation_is_a_note():
    listed = re.findall(
        r"^\* \*\*(.*?)\*\*: (.*(?:\n  .*)*)", section(PAGE.read_text(encoding="utf-8"), "The guarantees"), re.MULTILINE
    )
    assert [name for name, _ in listed] == [each.name for each in guarantees.GUARANTEES]
    for each, (_, text) in zip(guarantees.GUARANTEES, listed, strict=True):
        said = " ".join(text.split())
        assert said.startswith(each.says)
        assert said.removeprefix(each.says).startswith(" (Note.)") == each.is_note, each.name
