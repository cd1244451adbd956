"""The commonest mistakes are named in every function whose definition calls the primitive that they are about."""

import functools

import numpy as np
import pytest
from marks import one_in

import attnpool_ref
from attnpool_ref import conformance, table
from attnpool_ref.conformance import cases
from attnpool_ref.conformance.candidates.chunks import oracle_of
from attnpool_ref.conformance.causes import mistakes, of_tokens, of_vectors, of_weights
from attnpool_ref.conformance.causes.mistake import Exchanged
from attnpool_ref.primitives import exchanged, maximum, mean, moments, recorded, softmax, standardized, unit_vector

FEW = {"dtypes": ("float32",), "shapes": ("no batch",)} | dict.fromkeys(("laws", "partial", "long", "gradients"), False)

FAULTS = {
    "-1e9 for padding": (softmax, of_weights.filled, -1e9, {of_weights.STAND_IN, of_weights.AVERAGED, mistakes.READ}),
    "an epsilon in the denominator": (softmax, of_weights.with_an_epsilon, 1e-3, {of_weights.EPSILON}),
    "scores times the mask": (softmax, of_weights.multiplied, None, {of_weights.MULTIPLIED}),
    "the mask after the softmax": (softmax, of_weights.masked_afterwards, None, {of_weights.NOT_AGAIN}),
    "the padded length": (mean, of_tokens.over_the_padded_length, None, {of_tokens.PADDED_LENGTH, of_tokens.COUNTED}),
    "0 in a maximum": (maximum, of_tokens.filled_maximum, 0.0, {of_tokens.FILLED}),
    "an epsilon beside a norm": (unit_vector, of_vectors.added_to_the_norm, 1e-3, {"an epsilon added to the norm"}),
    "an epsilon outside of the root": (
        standardized,
        of_vectors.epsilon_outside,
        None,
        {"adds epsilon to the standard deviation of the layer normalization: it belongs under the root"},
    ),
    "a variance in place of a deviation": (
        moments,
        of_tokens.variance_itself,
        None,
        {"returns the variance, not its root"},
    ),
}
"""For each mistake the primitive, the wrong function, its number, and the words of which one must be among the causes."""


@functools.cache
def called_by(name):
    """The primitives that a definition calls in its call with the fewest arguments."""
    row = table.get(name)
    case = next(case for case, _ in cases.cases_of(row, shapes=()))
    with recorded() as called, np.errstate(all="ignore"):
        given = {key: value for key, value in case.values.items() if value is not None} | case.options
        oracle_of(name)(**given)
    return called


ASKED = [
    (fault, row.name)
    for fault, (primitive, *_) in FAULTS.items()
    for row in table.VARIANTS
    if primitive in called_by(row.name) and (primitive is not unit_vector or row.norms)  # norms of the data
]


def with_a_fault(row, fault):
    """The definition in which a primitive is exchanged."""
    primitive, function, number, _ = FAULTS[fault]

    @functools.wraps(getattr(attnpool_ref, row))
    def wrong(*args, **kwargs):
        known = Exchanged(None, primitive.__wrapped__, number, 0, [], [], 0)
        with np.errstate(all="ignore"), exchanged({primitive: functools.partial(function, known)}):
            return getattr(attnpool_ref, row)(*args, **kwargs)

    return wrong


@pytest.mark.parametrize("asked", one_in(9, ASKED), ids=", ".join)
def test_a_common_mistake_is_named_in_each_function_that_can_have_it(asked):
    fault, row = asked
    (judged,) = conformance.judge(with_a_fault(row, fault), only=(row,), **FEW).rows
    assert judged.status == "pass" or FAULTS[fault][-1] & {*judged.causes}, judged.causes


def test_the_mistakes_are_asked_of_many_functions():
    assert sum(fault == "the mask after the softmax" for fault, _ in ASKED) >= 30
