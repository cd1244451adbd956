"""What the judge says of attnpool_flax in float32, function by function; ``attnpool check`` judges everything.

``test_equivalence.py`` compares values in every dtype. Here are gradients and padding: in ``make test`` of a function of each
family with the fewest and with all arguments, and of almost every dense function in one program, in ``make thorough`` in the
ways to call that :data:`SHOWN_BY` selects, then in all of them, with the laws.
"""

import functools

import chex
import numpy as np
import pytest
from constants import replaced
from drawn import way
from walks import small_tiles

import attnpool_flax
from attnpool_flax.call.compiled import FUNCTIONS
from attnpool_flax.reductions import perceptron
from attnpool_flax.reductions.packed import sums as packed_sums
from attnpool_ref import conformance, table
from attnpool_ref.conformance import cases
from attnpool_ref.conformance.candidates.adapters.jax_arrays import JaxArrays
from attnpool_ref.conformance.cases.case import poisoned
from attnpool_ref.conformance.checks import CHECKS, Situation
from attnpool_ref.conformance.checks.agreement import agreement
from attnpool_ref.conformance.checks.gradients import cotangents_of, gradient
from attnpool_ref.conformance.checks.subject import Subject

pytestmark = pytest.mark.compiles

ONE_OF_EACH = set({row.family: row.name for row in table.VARIANTS}.values())
"""A function of each family, which ``make test`` judges; all the others are judged by ``make thorough`` and ``make check``."""

every_row = pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, marks=() if row.name in ONE_OF_EACH else pytest.mark.thorough, id=row.name)
        for row in table.VARIANTS
    ],
)

every_state = pytest.mark.parametrize("row", table.STATES, ids=lambda row: row.name)

IN_TILES = (
    "mean_pooling",
    "max_pooling",
    "weighted_pooling",
    "attention_pooling",
    "additive_attention_pooling",
    "segment_mean_pooling",
    "segment_max_pooling",
    "segment_weighted_pooling",
    "segment_attention_pooling",
)
"""A function for each loop over tiles: dense and packed sums without and with weights, maxima, softmax, hidden layers."""

LIKE_OTHERS = ("concat_score", "tanh_sum_score", "tanh_sum_attention", "statistics_pooling")
"""Functions whose gradient is that of the code of others."""

IN_ONE_PROGRAM = [
    row
    for row in table.VARIANTS
    if row.name not in {*ONE_OF_EACH, *IN_TILES, *LIKE_OTHERS}
    and row.family != "masks"
    and (not row.packed or row.name == "segment_noisy_or_pooling")  # whose slots no dense function has
]
"""The functions of which ``make test`` judges only the gradient, of the call with the most arguments."""

SHARED = ("activation=", "normalizer=", "axis=", "indices_are_sorted=")
"""Options that one code computes for all functions; normalizers have one for dense and one for packed scores."""

HINTS = ("indices_are_sorted=",)
"""Options that change no number: only the function that shows one is called with it."""


def option_of(row, title):
    """The option and value that a way to call is about, and whether it normalises packed scores."""
    option = title.partition(", ")[0]
    return option, option.startswith("normalizer=") and row.family == "segments"


SHOWN_BY = {}
"""For each value of a shared option the first function that takes it: its gradients are judged there only."""

for _row in table.VARIANTS:
    for _title, *_ in cases.configurations(_row):
        SHOWN_BY.setdefault(option_of(_row, _title), _row.name)


WITH_ALL_ARGUMENTS = {
    row.name for row in table.VARIANTS if "fullest" in {title for title, *_ in cases.configurations(row)}
}


def is_differentiated(row, title):
    """Whether the gradients of this way to call the function are judged: all arguments have theirs in the fullest one."""
    if title == "smallest" and row.name in WITH_ALL_ARGUMENTS:
        return False
    return not title.startswith(SHARED) or SHOWN_BY[option_of(row, title)] == row.name


def is_called(row, title):
    """Whether the function is called in this way at all."""
    return not title.startswith(HINTS) or is_differentiated(row, title)


PLAIN = ("smallest", "fullest", "without masks")
"""Ways to call that need no program of their own for each value of an option."""


@pytest.mark.parametrize("ways", ["plain", pytest.param("others", marks=pytest.mark.thorough)])
@every_row
def test_results_gradients_and_padding_in_float32(row, ways):
    subject = Subject(row, getattr(attnpool_flax, row.name), JaxArrays(), "float32")
    drawn = [*cases.cases_of(row, None, (), partial=False), *cases.cases_in(row, "float32")]
    wrong = []
    with np.errstate(all="ignore"):
        for case, kind in drawn:
            if is_called(row, case.title) and (case.title.partition(", ")[0] in PLAIN) == (ways == "plain"):
                wrong += [
                    f"{case.title}: {finding.message}" for finding in findings(subject, case, kind) if finding.message
                ]
    assert not wrong, f"`attnpool check --only {row.name}` shows the smallest case"


@pytest.mark.parametrize("row", IN_ONE_PROGRAM, ids=lambda row: row.name)
def test_the_gradient_is_right_whatever_stands_in_padding(row):
    assert_gradient(*with_all_arguments(row, getattr(attnpool_flax, row.name)), bool(row.weights))


@pytest.mark.parametrize("name", IN_TILES)
def test_tiles_are_right_whatever_stands_in_padding(name):
    """A tile is 3 tokens, which do not divide the case's 7 or 14: the last one overlaps."""
    tiles = functools.partial(getattr(attnpool_flax, name), implementation="tiles")
    with (
        small_tiles(WHOLE=0, ROW=0, TOKENS=3),
        replaced(packed_sums, TOKENS=3, FEWEST=3),
        replaced(perceptron, TOKENS=3),
    ):
        subject, case = with_all_arguments(table.get(name), tiles)
        assert not agreement(subject, case, False).message
        assert_gradient(subject, case, False)


def with_all_arguments(row, candidate):
    """Returns (subject, case) of the call with the most arguments in float32."""
    return Subject(row, candidate, JaxArrays(), "float32"), cases.draw(row, *way(row), cases.BATCH)


def assert_gradient(subject, case, weights):
    """Checks the gradient, which is the same to the bit with NaN in the padding; ``weights``: of the call with weights."""
    found = gradient(subject, case, weights)
    assert not found.message
    if poison := poisoned(case, np.nan):
        cotangents = cotangents_of(subject, case, weights)
        clean, dirty = (subject.gradients(own, cotangents, weights) for own in (case, poison))
        chex.assert_trees_all_equal(dirty, clean)


def findings(subject, case, kind):
    """The findings of all checks that apply to a case."""
    asked = is_differentiated(subject.row, case.title)
    situation = Situation(subject, case, kind, True, asked, False, None)
    for weights in situation.with_weights:
        yield agreement(subject, case, weights)
    for name, check in CHECKS.items():
        if check.applies(situation):
            found = (
                one_gradient(subject, case, situation) if name == "gradient" else check.run(subject, case, situation)
            )
            yield from [finding for finding in np.ravel(found) if finding is not None]


def one_gradient(subject, case, situation):
    """The gradient of the call that returns the weights, too: unless they are computed apart, it is that of both calls."""
    if situation.gradients_with_weights and FUNCTIONS[subject.row.name].weights_apart:
        return CHECKS["gradient"].run(subject, case, situation)
    return gradient(subject, case, return_weights=situation.gradients_with_weights)


@pytest.mark.thorough
@every_row
def test_laws_all_gradients_and_sequences_of_length_0_in_float32(row):
    function = getattr(attnpool_flax, row.name)
    conformance.check(
        function, row.name, dtypes=("float32",), shapes=("length 0",), partial=False, long=False, contract=True
    )


@pytest.mark.thorough
@every_state
def test_chunks_merge_to_the_dense_results_and_gradients_in_float32(row):
    """Random chunks, one of them empty, in random order and bracketing; ``attnpool check`` judges all that dense rows have."""
    conformance.check(
        attnpool_flax, row.name, dtypes=("float32",), shapes=(), laws=False, partial=False, long=False, contract=True
    )
