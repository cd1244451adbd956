"""The judge is judged: every known mistake is rejected, and the right function is not."""

import contextlib
import types
import warnings

import pytest
from conformance.mutants import MUTANTS
from conformance.mutants.mistakes import Mistakes
from conformance.mutants.streaming import RIGHT, states
from marks import one_in, thorough

import attnpool_ref
from attnpool_ref import conformance, table
from attnpool_ref.conformance import cases
from attnpool_ref.conformance.candidates.adapters import NumpyArrays
from attnpool_ref.conformance.checks.agreement import agreement
from attnpool_ref.conformance.checks.subject import Subject

ALL = [(row, mistake) for row, mistakes in MUTANTS.items() for mistake in mistakes]


ONE_OF_EACH = list({row.family: row.name for row in reversed(table.BY_NAME.values())}.values())
"""The first row of each family: every family makes its mistakes in its own way."""

SLOW = ("latent_attention_pooling", "additive_attention_pooling", "cross_attention_pooling")
"""Of these, to which a million tokens take seconds; the bound on long sums is one for all rows."""

EXACT = {row.name: {} for row in table.BY_NAME.values()}
"""The oracle's results, which all mistakes of a row are held against."""


def is_rejected(name, function, long=True):
    """Whether a check of the row fails: agreement where most mistakes show, and where it does not show, all of them.

    A function that breaks down proves nothing: a mistake gives a wrong answer. A mistake with states is a mapping of all
    the functions that they need.
    """
    row = table.get(name)
    candidate = function if row.state else types.SimpleNamespace(**{name: function})
    subject = Subject(row, conformance.Candidate(candidate).for_row(row), NumpyArrays(), "float32", EXACT[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a mistake may divide by 0 as it likes
        for case, _ in cases.cases_of(row, shapes=("no batch",)):
            with contextlib.suppress(Exception):
                if agreement(subject, case, bool(row.weights)).message:
                    return True
        alone = {
            "shapes": (),
            "laws": False,
            "partial": False,
        }  # the long rows take longest, and are judged by themselves
        for options in ({"long": False}, alone) if long else ({"long": False},):
            report = conformance.judge(candidate, only=(name,), dtypes=("float32",), whole_contract=True, **options)
            if any(not failure.message.startswith("raises ") for failure in report.rows[0].failures):
                return True
        return False


SECONDS = [
    ("additive_attention_pooling", "additive pooling: the tokens in place of the values"),
    ("latent_attention_pooling", "latent: the latents ask the tokens"),
    ("additive_attention", "additive attention: 0 times NaN"),
    ("mask_attention", "mask attention: NaN patched away"),
]
"""Mistakes that only the last of all checks rejects, which takes seconds."""

QUICK = [own for own in ALL if own[1] in list(MUTANTS[own[0]])[:3] and own not in SECONDS]
"""Three mistakes of each row; only the thorough run makes all of them."""


@pytest.mark.parametrize(
    ("row", "mistake"),
    [pytest.param(*own, marks=[pytest.mark.thorough] * (own not in QUICK), id=", ".join(own)) for own in ALL],
)
def test_mistake_is_rejected(row, mistake):
    assert is_rejected(row, MUTANTS[row][mistake]), f"survives: {mistake}"


@pytest.mark.parametrize("row", one_in(6, ONE_OF_EACH))
def test_mistake_that_changes_nothing_is_not_rejected(row):
    long = row not in SLOW
    if table.get(row).state:
        assert not is_rejected(row, states())
        return
    harmless = Mistakes()
    harmless.of(row, "none")(lambda a: a.oracle())
    assert not is_rejected(row, harmless[row]["none"], long)


@pytest.mark.parametrize("row", [*thorough([row for row in RIGHT if row != "attention_state"]), "attention_state"])
def test_online_softmax_that_the_mistakes_vary_is_not_rejected(row):
    assert not is_rejected(row, RIGHT[row])


@pytest.mark.parametrize("row", one_in(5, [row.name for row in table.BY_NAME.values()]))
def test_right_function_passes_every_check(row):
    conformance.check(attnpool_ref, row, shapes=(), laws=False, partial=False, long=False, whole_contract=True)


def test_every_row_has_at_least_two_mistakes():
    few = [row.name for row in table.BY_NAME.values() if len(MUTANTS.get(row.name, ())) < 2]
    assert few == [], "write two wrong versions of it in the file of its family in tests/conformance/mutants/"
