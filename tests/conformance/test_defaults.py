"""What breaks a promise by default, and what does so only where an option asks for it."""

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import attnpool_ref as ref
from attnpool_ref import conformance, table
from attnpool_ref.cli.application import application
from attnpool_ref.conformance import cases
from attnpool_ref.conformance.checks import optional_checks
from attnpool_ref.conformance.checks.agreement import compare
from attnpool_ref.conformance.checks.subject import Subject
from attnpool_ref.conformance.report import promises

PAGE = Path(__file__).parents[2] / "docs/guarantees.md"
FEW = {"dtypes": ("float32", "float64"), "shapes": ("no batch", "length 0", "broadcasting", "shared"), "long": False}


def row_of(function, name, **options):
    return conformance.judge(function, only=(name,), **(FEW | options)).rows[0]


def accused(row):
    return [kept.promise for kept in row.accused]


def in_the_first_dtype(query, key, *, scale=None):
    return ref.scaled_dot_score(query, key, scale=scale).astype(query.dtype)


def of_one_dtype(query, key, *, scale=None):
    if query.dtype != key.dtype:
        raise TypeError(f"query is {query.dtype}, key is {key.dtype}")
    return ref.scaled_dot_score(query, key, scale=scale)


def wrong_beside_another_dtype(query, key, *, scale=None):
    return in_the_first_dtype(query, key, scale=scale) * query.dtype.type(1 if query.dtype == key.dtype else 1.01)


@pytest.mark.parametrize("function", [in_the_first_dtype, of_one_dtype])
def test_another_dtype_and_a_refusal_of_mixed_dtypes_are_notes_unless_asked_for(function):
    row = row_of(function, "scaled_dot_score")
    kept = row.promises["mixed dtypes"]
    assert (row.status, kept.status) == ("pass", "n/a") and kept.why == kept.notes[0]
    assert any("mixed dtypes: " in note and "float32 beside float64" in note for note in row.notes)
    for option in ("mixed", "contract"):
        assert accused(row_of(function, "scaled_dot_score", **{option: True})) == ["mixed dtypes"]


def test_a_wrong_number_beside_another_dtype_is_a_mistake():
    assert accused(row_of(wrong_beside_another_dtype, "scaled_dot_score")) == ["mixed dtypes"]


def wrong_beside_integers(query, key, *, scale=None):
    scores = ref.scaled_dot_score(query, key, scale=scale)
    return scores * scores.dtype.type(1.5 if query.dtype.kind == "i" else 1)


def test_any_result_for_integers_beside_floats_is_a_note_unless_asked_for():
    row = row_of(wrong_beside_integers, "scaled_dot_score")
    assert row.status == "pass" and any("integers in `query`" in note for note in row.notes)
    for option in ("mixed", "contract"):
        assert accused(row_of(wrong_beside_integers, "scaled_dot_score", **{option: True})) == ["mixed dtypes"]


def test_mixed_is_a_word_of_the_command_and_of_each_promise(current_folder):
    lines = "import attnpool_ref\ndef score(query, key):\n    return attnpool_ref.dot_score(query, key).astype(query.dtype)\n"
    (current_folder / "score_of_a_test.py").write_text(lines)
    words = [
        "check",
        "./score_of_a_test.py:score",
        "--as",
        "dot_score",
        "--jobs",
        "0",
        "--dtype",
        "float64",
        "--dtype",
        "float32",
    ]
    assert CliRunner().invoke(application, words).exit_code == 0
    assert CliRunner().invoke(application, [*words, "--mixed"]).exit_code == 1
    assert CliRunner().invoke(application, [*words, "--broadcasting"]).exit_code == 0
    assert CliRunner().invoke(application, [*words, "--contract"]).exit_code == 1
    claims = conformance.each_promise(in_the_first_dtype, "scaled_dot_score", mixed=True, **FEW)
    with pytest.raises(AssertionError, match="mixed dtypes"):
        next(claim for claim in claims if claim.promise == "mixed dtypes").check()
    with pytest.raises(AssertionError, match="mixed dtypes"):
        conformance.check(in_the_first_dtype, "scaled_dot_score", mixed=True, **FEW)


@pytest.mark.parametrize(
    ("words", "asked"), [([], True), (["attnpool_ref"], False), (["attnpool_ref", "--contract"], True)]
)
def test_attnpool_flax_is_always_asked_for_the_contract(words, asked):
    seen = {}
    check = application.commands["check"]
    check.main(words, standalone_mode=False, obj=lambda candidate, **options: seen.update(options))
    assert seen["contract"] is asked and not seen["mixed"] and not seen["broadcasting"]


def by_index(x, mask=None):
    """A mean that takes boolean masks with all axes."""
    pooled = np.zeros((*x.shape[:-2], x.shape[-1]), x.dtype)
    for i in np.ndindex(*x.shape[:-2]):
        kept = x[i] if mask is None else x[i][mask[i]]
        pooled[i] = kept.sum(0) / x.dtype.type(max(len(kept), 1))
    return pooled


def test_masks_of_integers_and_of_a_lower_rank_are_asked_only_of_what_takes_them():
    row = row_of(by_index, "mean_pooling")
    assert (row.status, row.promises["arguments that broadcast"].status) == ("pass", "n/a")
    assert any(note.startswith("arguments that broadcast: ") for note in row.notes)
    for option in ("broadcasting", "contract"):
        assert "arguments that broadcast" in accused(row_of(by_index, "mean_pooling", **{option: True}))
    assert row_of(ref.mean_pooling, "mean_pooling").promises["arguments that broadcast"].status == "held"


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
    assert accused(row_of(narrow(1), "dot_score", dtypes=dtypes, contract=True))
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
        row = row_of(function, "mean_pooling")
        assert row.status == "pass" and any("length 0" in note for note in row.notes)
        assert row_of(function, "mean_pooling", contract=True).status == "fail"
    assert row_of(is_nan_of_padding, "mean_pooling").status == "fail"


def test_warnings_of_numpy_are_a_note_unless_asked_for():
    def warns(x, mask=None):
        np.ones(1) / np.zeros(1)
        return ref.mean_pooling(x, mask)

    row = row_of(warns, "mean_pooling")
    assert (row.status, row.promises["no warnings"].status) == ("pass", "n/a")
    assert any(note.startswith("no warnings: ") for note in row.notes)
    assert accused(row_of(warns, "mean_pooling", contract=True)) == ["no warnings"]


def test_the_weights_may_change_the_rounding_of_the_result_and_no_more():
    def attend(off):
        def attend(scores, value, mask=None, *, return_weights=False):
            found = ref.attend(scores, value, mask, return_weights=return_weights)
            return (found[0] * value.dtype.type(off), found[1]) if return_weights else found

        return attend

    rounded, wrong = 1 + 2.0**-22, 1.001
    options = {"dtypes": ("float32",)}
    row = row_of(attend(rounded), "attend", contract=True, **options)
    assert (row.status, row.promises["return_weights"].status) == ("pass", "held")
    assert "return_weights" in accused(row_of(attend(wrong), "attend", **options))


def test_vectors_of_1e30_are_asked_of_norms_by_the_contract_alone():
    def norm(x):
        size = np.sqrt((x * x).sum(-1, keepdims=True))
        return x / np.where(size == 0, 1, size).astype(x.dtype)

    row = row_of(norm, "l2_normalize", dtypes=("float32",))
    assert row.status == "pass" and any("vectors of 1e+30" in note for note in row.notes)
    assert accused(row_of(norm, "l2_normalize", dtypes=("float32",), contract=True)) == ["extreme scores"]


def test_a_log_sum_exp_may_be_rounded_by_itself_where_it_is_not_promised():
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
    assert row_of(softmax_only, "attend", contract=True).status == "fail"


def test_the_page_says_of_each_promise_by_which_option_it_is_asked():
    found = dict(
        re.findall(
            r"^## (.*)\n(?:\n.*)+?\n\* Checked (by default|with the option `\w+`)\. ", PAGE.read_text(), re.MULTILINE
        )
    )
    said = {p.name: f"with the option `{p.asked}`" if p.asked else "by default" for p in promises.PROMISES}
    assert found == said
    assert {p.asked for p in promises.PROMISES} - {"", "integers"} <= optional_checks.OPTIONS
