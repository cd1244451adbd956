"""Which check judges which kind of case, and which promises it speaks of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance import hazards, laws, promises
from attnpool_ref.conformance.adapters.numpy_arrays import numpy_dtype
from attnpool_ref.conformance.agreement import Finding, agreement, compare, finite_gradients, gradient
from attnpool_ref.conformance.hazards import POISONS
from attnpool_ref.conformance.purity import repeated

GRADIENT_SHAPES = ("length 0", "shared")
"""Other shapes than the mixed batch whose gradient is judged: where there is nothing, and where examples add up."""

PROMISE_OF = {"shape": "shapes", "exact": "ties and edges", "extreme": "extreme scores"}
"""The promise that agreement judges on the kinds of cases beside the main ones."""


@dataclass(frozen=True)
class Situation:
    """What is known of a case before it is judged.

    Attributes:
      kind: "main", "shape", "exact" or "extreme".
      title: the case's.
      weights: whether the weights are asked for.
      gradients: whether gradients are judged.
      laws: whether the candidate is judged against itself.
      differentiable: whether the case has floating data at all.
      masked: whether a mask speaks of a sequence by itself, and its padding is passed.
    """

    kind: str
    title: str
    weights: bool
    gradients: bool
    laws: bool
    differentiable: bool
    masked: bool


@dataclass(frozen=True)
class Check:
    """One check: ``run(subject, case, situation)`` gives a finding, several, or None where the case has nothing to say."""

    applies: Callable[[Situation], bool]
    run: Callable[[Any, Any, Situation], Any]


def _gradients(s):
    return s.gradients and s.differentiable


def _plain(s):
    return s.kind not in ("extreme", "exact")


def _alone(s):
    return s.laws and s.kind == "main"


def _of_shapes(s):
    return s.laws and s.kind == "shape"


def _poison(name):
    return Check(
        lambda s: s.kind == "main" and s.masked,
        lambda subject, case, s: hazards.poison_in_padding(subject, case, name, s.weights, _gradients(s)),
    )


def _with_weights(law):
    return lambda subject, case, s: law(subject, case, s.weights)


def _plainly(law):
    return lambda subject, case, s: law(subject, case)


CHECKS = {
    "empty rows": Check(_plain, _with_weights(hazards.empty_rows)),
    "gradient": Check(
        lambda s: _plain(s) and _gradients(s) and (s.kind == "main" or s.title.endswith(GRADIENT_SHAPES)),
        _with_weights(gradient),
    ),
    "finite gradients": Check(lambda s: not _plain(s) and _gradients(s), _with_weights(finite_gradients)),
    **{f"{name} in padding": _poison(name) for name in POISONS},
    "padding amount": Check(
        lambda s: _alone(s) and s.masked and s.title in ("smallest", "fullest"), _with_weights(laws.appending)
    ),
    "padding side": Check(_of_shapes, _with_weights(laws.siding)),
    "deleting": Check(_of_shapes, _with_weights(laws.deleting)),
    "permuting": Check(_alone, _with_weights(laws.permuting)),
    "shifting": Check(_alone, _with_weights(laws.shifting)),
    "batch mates": Check(_alone, _plainly(hazards.batch_mates)),
    "NaN at a real token": Check(_alone, _plainly(hazards.nan_stays_in_its_example)),
    "return_weights": Check(lambda s: _alone(s) and s.weights, _plainly(hazards.weights_change_nothing)),
    "inputs unchanged": Check(_alone, _plainly(hazards.inputs_unchanged)),
    "repeated": Check(_alone, _with_weights(repeated)),
}
"""Beside agreement, which comes first, and the long sums, which have their own cases; in the order of judging."""


def agreeing(subject, case, situation, got=None):
    """Agreement with the definition, as findings of the promises that it speaks of; those that held among them."""
    got = subject.outputs(case, situation.weights) if got is None else got
    found = agreement(subject, case, situation.weights, got)
    if situation.kind != "main":
        return [_named(found, PROMISE_OF[situation.kind])]
    values = promises.MASKED if _hides(case) else promises.VALUES
    judged = [Finding(promises.ANSWER, case)]
    if found.aspect == "shape" and found.message:
        return [*judged, _named(found, promises.SHAPE)]
    judged.append(Finding(promises.SHAPE, case))
    if found.aspect == "dtype" and found.message:
        judged.append(_named(found, promises.DTYPE))
        got = in_the_right_dtype(subject, subject.exact(case, situation.weights), got)
        if got is None:
            return judged
        found = agreement(subject, case, situation.weights, got)
    else:
        judged.append(Finding(promises.DTYPE, case))
    if not found.message:
        held = [Finding(promises.WEIGHTS, case)] if situation.weights else []
        return [*judged, *held, _named(found, values)]
    if values == promises.MASKED and _only_where_nothing_is_real(subject, case, got, situation.weights):
        return [*judged, _named(found, promises.EMPTY)]
    if not situation.weights:
        return [*judged, _named(found, values)]
    count, want = len(subject.row.results), subject.exact(case, True)
    right = [w.astype(g.dtype) for w, g in zip(want, got, strict=True)]  # each part beside the right other one
    weights = agreement(subject, case, True, [*right[:count], *got[count:]])
    found = agreement(subject, case, True, [*got[:count], *right[count:]])
    return [*judged, _named(weights, promises.WEIGHTS), _named(found, values)]


def _hides(case):
    """Whether masks, or the lengths in their place, hide something."""
    lengths = [k for k in case.given("int") if k == "lengths" and case.arguments()[k].optional]
    return bool(lengths) or any(not np.all(case.values[k]) for k in case.given("mask"))


def _named(finding, promise):
    return Finding(promise, finding.case, finding.error, finding.allowed, finding.message, finding.aspect)


def in_the_right_dtype(subject, exact, got):
    """Results of a wrong dtype, rounded to the right one; None where they are no floats."""
    kept = []
    for output, want in zip(got, exact, strict=False):
        if want.dtype != bool and output.dtype.name != subject.dtype:
            if output.dtype.kind not in "fiuV":
                return None
            with np.errstate(all="ignore"):
                output = output.astype(numpy_dtype(subject.dtype))
        kept.append(output)
    return kept


def _only_where_nothing_is_real(subject, case, got, return_weights):
    """Whether the results are right but for what must be 0 whatever the data are."""
    zeros = hazards.always_zero(subject, case, return_weights)
    mended = [np.where(zero, np.zeros((), g.dtype), g) for g, zero in zip(got, zeros, strict=True)]
    mended = [m.astype(g.dtype) for m, g in zip(mended, got, strict=True)]
    want = subject.exact(case, return_weights)
    return not compare(subject, case, promises.EMPTY, mended, want, return_weights).message


def booked(name, finding):
    """The promise that a finding of the check ``name`` is about."""
    if finding.check in promises.BY_NAME:
        return finding.check
    return next(p.name for p in promises.PROMISES if p.judged_by == name)


def situation_of(subject, case, kind, gradients, laws, weights):
    """The :class:`Situation` of a case."""
    return Situation(
        kind,
        case.title,
        weights,
        gradients,
        laws,
        bool(subject.floats(case, ("data", "parameter"))),
        bool(drawing.masked_axes(case)) and subject.candidate.mask_form != "segments",
    )
