"""The cases: what they draw of each row, and that its definition takes all of them."""

import dataclasses
import inspect

import numpy as np
import pytest

import attnpool_ref
from attnpool_ref import table
from attnpool_ref.conformance import cases
from attnpool_ref.conformance.candidates.adapters import NumpyArrays
from attnpool_ref.conformance.checks import tolerances
from attnpool_ref.conformance.checks.agreement import compare
from attnpool_ref.conformance.checks.subject import Subject
from attnpool_ref.table.row import NUMBER, NUMBERS
from attnpool_ref.table.rows import streaming

WITH_MASKS = [row.name for row in table.VARIANTS if any(a.kind == "mask" for a in row.arguments.values())]


def forms_of(row):
    return [case for case, kind in cases.cases_of(row, shapes=("broadcasting",)) if kind == "form"]


@pytest.mark.parametrize("name", WITH_MASKS)
def test_every_mask_is_met_as_integers_of_lower_rank_and_with_axes_of_1(name):
    row = table.get(name)
    masks = [k for k, a in row.arguments.items() if a.kind == "mask"]
    for key in masks:
        met = [(case.values[key], len(case.spread.get(key, case.axes[key]))) for case in forms_of(row)]
        assert any(mask.dtype.kind == "i" for mask, _ in met)
        assert any(mask.ndim < rank for mask, rank in met)
        assert any(1 in mask.shape for mask, _ in met)


def test_a_mask_that_broadcasts_says_what_its_full_form_says():
    for case in forms_of(table.get("dot_product_attention")):
        mask, _ = cases.full_mask(case, "mask")
        padding = cases.padding(case, "value")
        assert mask.shape == (5, 3, 7)
        np.testing.assert_array_equal(padding[..., 0], ~mask.any(-2))


def test_an_array_that_all_examples_share_is_padding_where_all_see_padding():
    found = [case for case, _ in cases.cases_of(table.get("attend")) if case.title.endswith("`value` shared")]
    case = found[0]
    shared = cases.padding(case, "value")
    alone = np.array([cases.padding(case, "value", i) for i in range(case.batch[0])])
    np.testing.assert_array_equal(shared, alone.all(0))
    assert alone.any() and not alone.all()


def subject_of(name, dtype):
    row = table.get(name)
    case = next(iter(cases.cases_of(row)))[0]
    return Subject(row, None, NumpyArrays(), dtype), case


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_element_is_held_to_its_own_size(dtype):
    """The smallest weight is off by less than the rounding of the largest one, and by a sixteenth of its own."""
    subject, case = subject_of("masked_softmax", dtype)
    sharp = case.with_values("sharp", scores=(8 if dtype == "float32" else 20) * case.values["scores"])
    want = subject.exact(sharp)
    got = [w.astype(dtype) for w in want]
    assert not compare(subject, sharp, "", got, want, False).message
    place = np.unravel_index(np.argmin(np.where(want[0] == 0, 1, want[0])), want[0].shape)
    got[0][place] *= 17 / 16
    assert abs(got[0][place] - want[0][place]) < tolerances.EPSILON[dtype]
    assert "the result" in compare(subject, sharp, "", got, want, False).message


def test_a_narrow_result_is_rounded_once():
    subject, case = subject_of("mean_pooling", "float16")
    want = subject.exact(case)
    up = [np.nextafter(w.astype(np.float16), np.float16(9)) for w in want]
    assert compare(subject, case, "", up, want, False).message


def test_every_kind_of_case_is_drawn():
    met = {
        kind
        for row in table.VARIANTS
        for drawn in (
            cases.cases_of(row, shapes=("no batch", "broadcasting", "alone")),
            cases.cases_in(row, "float64", integers=True),
        )
        for _, kind in drawn
    }
    assert met == set(cases.KINDS)


def test_the_judge_calls_no_function_with_the_default_of_a_number():
    """Or a function that ignores the number would pass."""
    for row in table.BY_NAME.values():
        parameters = inspect.signature(getattr(attnpool_ref, row.name)).parameters
        numbers = {key for key, argument in row.arguments.items() if argument.numeric}
        same = [key for key in numbers if parameters[key].default == NUMBERS.get(key, NUMBER)]
        assert same == [], f"{row.name}: give {same} other values in NUMBERS of attnpool_ref/table/row.py"


def test_a_row_is_refused_whose_source_is_unknown():
    with pytest.raises(ValueError, match=r"sources.py; if it is in docs/references.bib, run `make docs`"):
        dataclasses.replace(table.get("quantile_pooling"), source="nobody1900")


def test_a_state_without_an_equation_or_an_example_is_refused_with_the_file_that_lacks_it():
    row = table.get("quantile_pooling")
    with pytest.raises(ValueError, match=r"EQUATIONS in attnpool_ref/table/rows/streaming.py does not say"):
        streaming.chunked(row)
    with pytest.raises(ValueError, match=r"quantile_state: TEXTS in attnpool_ref/streaming.py has no example"):
        attnpool_ref.streaming._function(dataclasses.replace(row, name="quantile_state", state=row.name))
