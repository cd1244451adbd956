"""Refusals: both packages refuse every call that the rows' descriptions call bad, and who does not is told."""

import numpy as np
import pytest

import attnpool_flax
import attnpool_ref as ref
from attnpool_ref import conformance, table
from attnpool_ref.conformance import Candidate
from attnpool_ref.conformance.candidates.adapters import NumpyArrays, family
from attnpool_ref.conformance.checks import bad_input
from attnpool_ref.conformance.checks.subject import Subject
from attnpool_ref.conformance.report import RowReport
from attnpool_ref.conformance.report.promises import REFUSALS
from attnpool_ref.conformance.running import refusals

FEW = {"dtypes": ("float32",), "shapes": (), "laws": False, "partial": False, "long": False}


def asked(candidate, row, adapter=None):
    """The promise to refuse, after every bad call of one row."""
    report = RowReport(row)
    refusals.judge(report, Subject(table.get(row), candidate, adapter or NumpyArrays(), "float32"))
    return report.promises[REFUSALS]


def candidate_for(package, row):
    """A row's function; of states the one that pools by them."""
    return Candidate(package).for_row(row)


@pytest.mark.parametrize("package", [ref, attnpool_flax], ids=lambda package: package.__name__)
def test_both_packages_refuse_whatever_is_bad(package):
    adapter = NumpyArrays() if package is ref else family("jax")
    for row in table.BY_NAME.values():
        kept = asked(candidate_for(package, row), row.name, adapter)
        assert kept.status == "held" and kept.cases >= 7, (row.name, [f.message for f in kept.failures])


@pytest.mark.parametrize("row", table.BY_NAME.values(), ids=lambda row: row.name)
def test_each_bad_call_differs_from_a_legal_one(row):
    """The call that they are all made from is legal: what is refused is what the title says."""
    subject = Subject(row, candidate_for(ref, row), NumpyArrays(), "float32")
    calls = list(bad_input.refusals_of(subject))
    titles = [call.title for call in calls]
    assert len(set(titles)) == len(titles)
    for title in {"fullest" if bad_input._has_fullest(row) else "smallest", *bad_input._with_lengths(row)}:
        args, kwargs = subject.calling.arrange(bad_input._Call(subject, bad_input._drawn(subject, title)).values)
        subject.function(*args, **kwargs)


def titles_of(name):
    """What the bad calls of a row are called."""
    subject = Subject(table.get(name), getattr(ref, name), NumpyArrays(), "float32")
    return {call.title for call in bad_input.refusals_of(subject)}


def test_the_kinds_of_bad_input_are_there():
    assert titles_of("dot_product_attention") >= {
        "`query` is None",
        "`key` is text",
        "`value` is an array of objects",
        "`query` is complex",
        "`mask` is of floats",
        "`mask` has the value 2",
        "`mask` has a higher rank",
        "`mask` does not broadcast",
        "`bias` does not broadcast",
        "`key` disagrees with another argument on d",
        "`value` disagrees with another argument on m",
        "a batch axis of 1 in `key` meets 3",
        "the width d is 0",
        "`scale` has shape (2,)",
        "an argument that does not exist",
        "`return_weights` is 'yes'",
    }
    assert titles_of("masked_softmax") >= {
        "`lengths` is negative",
        "`lengths` is of floats",
        "`axis` is 3",
        "`mask` and `lengths` are both given",
    }


def lenient(x, mask=None):
    """Takes whatever NumPy takes."""
    x = np.asarray(x)
    return ref.mean_pooling(np.real(x), None if mask is None else np.asarray(mask) != 0)


def changing(x, mask=None):
    if isinstance(x, np.ndarray) and x.size and x.dtype.kind in "fc":
        x[...] = 0
    return ref.mean_pooling(x, mask)


MISTAKES = {
    "a float mask is taken": (lenient, "`mask` is of floats: returned an array of shape (3, 2), needs a ValueError"),
    "a 2 is taken": (lenient, "`mask` has the value 2: returned an array of shape (3, 2), needs a ValueError"),
    "complex numbers are taken": (lenient, "`x` is complex: returned an array of shape (3, 2), needs a ValueError"),
    "another error": (
        lambda x, mask=None: np.linalg.norm(x) and 1 / 0,
        "`x` has too few axes: raised ZeroDivisionError: division by zero, needs a ValueError",
    ),
    "a TypeError for a shape": (
        lambda x, mask=None: ref.mean_pooling(x, mask) if np.ndim(x) > 1 else len(3),
        "`x` has too few axes: raised TypeError: object of type 'int' has no len(), needs a ValueError",
    ),
    "inputs changed first": (changing, "`x` is complex: changed its inputs before it raised, needs a ValueError"),
    "anything that is raised": (
        lambda x, mask=None: (_ for _ in ()).throw(SystemExit(3)),
        "`x` is None: raised SystemExit: 3, needs a TypeError",
    ),
    "no array": (
        lambda x, mask=None: (None, 3),
        "`x` is text: returned 2 things, the first a NoneType, needs a TypeError",
    ),
    "any argument": (
        lambda x, mask=None, **rest: ref.mean_pooling(x, mask),
        "an argument that does not exist: returned an array of shape (3, 2), needs a TypeError",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_was_done_instead_is_told(mistake):
    candidate, message = MISTAKES[mistake]
    kept = asked(candidate, "mean_pooling")
    assert kept.status == "broken" and message in [failure.message for failure in kept.failures]


def test_a_bad_call_can_be_pasted(capsys):
    kept = asked(lenient, "mean_pooling")
    for failure in kept.failures:
        exec(failure.snippet, {})
        assert capsys.readouterr().out
    assert "from test_bad_input import lenient" in failure.snippet


def test_who_does_not_promise_it_is_not_asked():
    def judged(**options):
        return conformance.judge(lenient, only=("mean_pooling",), **FEW, **options)

    kept = judged().rows[0].promises[REFUSALS]
    assert (kept.status, kept.why) == ("n/a", "skipped without refusals=True, --refusals")
    report = judged(refusals=True)
    assert [kept.promise for kept in report.rows[0].accused] == [REFUSALS] and report.verdict == "fail"
    assert judged(refusals=True, waive={REFUSALS: "internal"}).passed
    with pytest.raises(AssertionError, match=r"(?s)mean_pooling: bad input refused .*complex.*\n.*`mask` is of floats"):
        conformance.check(lenient, "mean_pooling", refusals=True, **FEW)


def test_masks_in_another_form_are_bad_in_their_own_way():
    def additive(x, mask=None):
        return ref.mean_pooling(x, None if mask is None else mask == 0)

    def of_lengths(x, lengths=None):
        return ref.mean_pooling(x, None if lengths is None else ref.lengths_to_mask(lengths, x.shape[-2]))

    def titles(candidate):
        subject = Subject(table.get("mean_pooling"), candidate, NumpyArrays(), "float32")
        return {call.title for call in bad_input.refusals_of(subject)}

    assert "`mask` is of floats" not in titles(Candidate(additive, mask_form="additive"))
    assert "`mask` is negative" in titles(Candidate(of_lengths, mask_form="lengths"))


def test_masks_that_mean_padding_are_bad_in_the_same_way():
    def pool(x, padding=None):
        if padding is not None and np.asarray(padding).dtype == bool:
            return ref.mean_pooling(x, ~padding)
        return ref.mean_pooling(x, padding)

    assert asked(Candidate(pool, padding_true=True), "mean_pooling").status == "held"
