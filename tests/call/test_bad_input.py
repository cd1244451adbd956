"""Both packages refuse every call that the rows' descriptions call bad."""

import bad_input
import numpy as np
import pytest
from packages import every_package

import attnpool_ref as ref
from attnpool_ref import table
from attnpool_ref.conformance import Candidate
from attnpool_ref.conformance.candidates.adapters import NumpyArrays, family
from attnpool_ref.conformance.checks.subject import Subject


def subject_of(package, row):
    """A package's function as it is called in float32; of states the one that pools by them."""
    adapter = NumpyArrays() if package is ref else family("jax")
    return Subject(row, Candidate(package).for_row(row), adapter, "float32")


def outcomes(subject):
    """For the title of each bad call, what the function did instead of raising the expected error, or ""."""
    return {call.title: bad_input.outcome(subject, call) for call in bad_input.refusals_of(subject)}


@every_package
def test_both_packages_refuse_whatever_is_bad(package):
    for row in table.BY_NAME.values():
        found = outcomes(subject_of(package, row))
        assert len(found) >= 7, row.name
        assert not {title: did for title, did in found.items() if did}, row.name


@pytest.mark.parametrize("row", table.BY_NAME.values(), ids=lambda row: row.name)
def test_each_bad_call_differs_from_a_legal_one(row):
    """The call that they are all made from is legal: what is refused is what the title says."""
    subject = subject_of(ref, row)
    calls = list(bad_input.refusals_of(subject))
    titles = [call.title for call in calls]
    assert len(set(titles)) == len(titles)
    for title in {"fullest" if bad_input._has_fullest(row) else "smallest", *bad_input._with_lengths(row)}:
        args, kwargs = subject.calling.arrange(bad_input._Call(subject, bad_input._drawn(subject, title)).values)
        subject.function(*args, **kwargs)


def lenient(x, mask=None):
    """Takes whatever NumPy takes."""
    x = np.asarray(x)
    return ref.mean_pooling(np.real(x), None if mask is None else np.asarray(mask) != 0)


def changing(x, mask=None):
    if isinstance(x, np.ndarray) and x.size and x.dtype.kind in "fc":
        x[...] = 0
    return ref.mean_pooling(x, mask)


@pytest.mark.parametrize(
    ("function", "title", "did"),
    [
        (lenient, "`mask` is of floats", "returned a result"),
        (lenient, "`mask` has the value 2", "returned a result"),
        (lambda x, mask=None: 1 / 0, "`x` has too few axes", "raised ZeroDivisionError: division by zero"),
        (changing, "`x` is complex", "changed its inputs before it raised"),
        (
            lambda x, mask=None, **rest: ref.mean_pooling(x, mask),
            "an argument that does not exist",
            "returned a result",
        ),
    ],
)
def test_a_function_that_does_something_else_is_found(function, title, did):
    assert outcomes(Subject(table.get("mean_pooling"), function, NumpyArrays(), "float32"))[title] == did
