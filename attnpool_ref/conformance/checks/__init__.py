"""Table of the checks: the kinds of cases that each judges, and the guarantees that it is about."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.candidates import meshes
from attnpool_ref.conformance.candidates.adapters.numpy_arrays import numpy_dtype
from attnpool_ref.conformance.candidates.calling import NotAsked
from attnpool_ref.conformance.checks import hazards, laws, second, transformations
from attnpool_ref.conformance.checks.agreement import Finding, agreement, compare
from attnpool_ref.conformance.checks.gradients import finite_gradients, gradient
from attnpool_ref.conformance.checks.hazards import POISONS
from attnpool_ref.conformance.checks.purity import answers, purity, silence
from attnpool_ref.conformance.checks.subject import Subject
from attnpool_ref.conformance.report import promises

GRADIENT_SHAPES = ("length 0", "shared", "no batch", "batch (2, 1, 3)")
"""Other shapes than the mixed batch whose gradient is judged: where there is nothing, where examples add up, ranks."""

PROMISE_OF = {
    "shape": "shapes",
    "way": "one argument alone",
    "form": "arguments that broadcast",
    "exact": "ties and edges",
    "tied": "ties and edges",
    "extreme": "extreme scores",
    "far": "far from 0",
    "cancelling": "sums that cancel",
    "mixed": "mixed dtypes",
    "integers": promises.INTEGERS,
}
"""The promise that agreement judges on the kinds of cases beside the main ones."""


@dataclass(frozen=True)
class Situation:
    """Properties of a case that are known before it is judged.

    Attributes:
      kind: one of :data:`~attnpool_ref.conformance.cases.KINDS`.
      title: the case's title.
      most: the title of the way that passes the most arguments that the implementation takes.
      first: whether the dtype is the first one.
      measure: whether it is float64: gradients are compared with differences, and are the reference for other dtypes.
      weights: whether the implementation can return the weights.
      gradients: whether gradients are judged.
      laws: whether the implementation is compared with itself.
      floating: whether the case has floating-point data.
      masked: whether there is a mask of a sequence, [..., L], and its padding is passed.
      surrogate: whether the gradient is a stated one, not the derivative of the values.
      degenerate: whether the case is about directions of vectors of width 1, which have no gradient to compare.
      reference: the implementation in float64, where its gradients are judged; or None.
      family: the name of the array family of the implementation.
    """

    kind: str
    title: str
    most: str
    first: bool
    measure: bool
    weights: bool
    gradients: bool
    laws: bool
    floating: bool
    masked: bool
    surrogate: bool
    degenerate: bool
    reference: Any
    family: str

    @property
    def asked(self):
        """Whether the weights are asked for, call by call."""
        if self.kind in ("way", "mixed", "integers"):
            return (False,)
        if self.kind in ("form", "precise"):
            return (self.weights,)
        return (False, True) if self.weights else (False,)

    @property
    def fullest(self):
        """Whether the case is drawn for the way that gives most of what the candidate takes."""
        return self.title.split(", ")[0] == self.most

    @property
    def differentiable(self):
        """Whether gradients are asked for: each way is a program, so most dtypes have those of the fullest alone."""
        ways = self.first or self.fullest or (self.measure and self.title.startswith("smallest"))
        return self.gradients and self.floating and ways

    @property
    def differentiated(self):
        """Whether the gradients of the case are compared."""
        if not self.differentiable or self.surrogate:
            return False
        if self.kind == "shape":
            whole = self.fullest or self.title.endswith("length 0")
            return whole and self.title.endswith(GRADIENT_SHAPES) and not self.degenerate
        if self.kind == "main":
            more = self.most == "fullest"  # which is also drawn without masks
            less = self.title == "without numbers" or (more and self.title == "without masks")
            return not less and (self.laws or self.title != "everything but masks")
        return self.kind in ("cancelling", "tied")

    @property
    def differentiated_twice(self):
        """Whether second derivatives are judged: once in a row, of the fullest call, in float64."""
        return self.measure and self.differentiated and self.kind == "main" and self.fullest

    @property
    def gradients_with_weights(self):
        """Whether a call is differentiated that asks for the weights."""
        return self.weights and self.fullest and (self.first or self.measure)


@dataclass(frozen=True)
class Check:
    """One check: ``run(subject, case, situation)`` gives a finding, several, or None where the case has nothing to say."""

    applies: Callable[[Situation], bool]
    run: Callable[[Any, Any, Situation], Any]


def _whole(s):
    return s.kind in ("main", "shape")


def _alone(s):
    return s.laws and s.kind == "main"


def _of_shapes(s):
    return s.laws and s.kind == "shape"


def _gradient(subject, case, s):
    compared = s.kind in ("main", "cancelling") and (s.fullest or s.title == "smallest")
    asked = (False, True) if s.kind == "main" and s.gradients_with_weights else (False,)
    return [gradient(subject, case, weights, s.reference if compared else None) for weights in asked]


def _poison(name):
    def run(subject, case, s):
        gradients = s.gradients_with_weights if s.kind == "main" and s.differentiated else None
        return hazards.poison_in_padding(subject, case, name, s.weights, gradients)

    kinds = ("main", "shape", "form") if name == "NaN" else ("main",)
    return Check(lambda s: s.kind in kinds and s.masked and (s.laws or s.kind != "shape"), run)


def _plain(s):
    return s.kind == "main" and s.title in ("smallest", "fullest", "everything but masks")


def _pure(subject, case, s):
    if s.kind == "shape":
        return silence(subject, case, s.weights)
    if not _plain(s) and not answers(subject, case, s.asked):
        return None  # which agreement says
    reuse = _plain(s) and s.laws
    return [finding for weights in s.asked for finding in purity(subject, case, weights, reuse)]


def _with_weights(law):
    return lambda subject, case, s: law(subject, case, s.weights)


def _plainly(law):
    return lambda subject, case, s: law(subject, case)


def _over_devices(subject, case, s):
    """Agreement, gradients and hazards of the function under ``jax.shard_map``."""
    if "mesh" not in case.row.layouts:
        return None
    if not meshes.takes_axis_name(subject.function):
        raise NotAsked("it takes no `axis_name`")
    case = meshes.divisible(case)
    split = Subject(
        case.row, meshes.OverMesh(subject.function, case), subject.adapter, subject.dtype, watch=subject.watch
    )
    found = [
        agreement(split, case, s.weights),
        hazards.empty_rows(split, case, s.weights),
        gradient(split, case, s.gradients_with_weights) if s.gradients else None,
        hazards.poison_in_padding(split, case, "NaN", s.weights, s.gradients_with_weights if s.gradients else None),
    ]
    return [replace(finding, check=promises.SPLIT) for finding in found if finding is not None]


CHECKS = {
    "empty rows": Check(_whole, _with_weights(hazards.empty_rows)),
    "gradient": Check(lambda s: s.differentiated, _gradient),
    "finite gradients": Check(
        lambda s: s.kind in ("extreme", "exact") and s.differentiable,
        lambda subject, case, s: finite_gradients(subject, case, s.gradients_with_weights),
    ),
    **{f"{name} in padding": _poison(name) for name in POISONS},
    second.REVERSE: Check(
        lambda s: s.differentiated_twice,
        lambda subject, case, s: second.reverse_over_reverse(subject, case, s.gradients_with_weights),
    ),
    second.FORWARD: Check(
        lambda s: s.differentiated_twice,
        lambda subject, case, s: second.forward_over_reverse(subject, case, s.gradients_with_weights),
    ),
    "poison in shared arrays": Check(_of_shapes, _plainly(hazards.poison_in_shared_arrays)),
    "padding amount": Check(
        lambda s: _alone(s) and s.masked and s.title in ("smallest", "fullest"), _with_weights(laws.appending)
    ),
    "padding side": Check(_of_shapes, _with_weights(laws.siding)),
    "deleting": Check(_of_shapes, _with_weights(laws.deleting)),
    "permuting": Check(_alone, _with_weights(laws.permuting)),
    "shifting": Check(_alone, _with_weights(laws.shifting)),
    "batch mates": Check(_alone, _plainly(hazards.batch_mates)),
    "NaN at a real token": Check(_alone, _plainly(hazards.not_finite_stays_in_its_example)),
    "return_weights": Check(lambda s: _whole(s) and s.weights, _plainly(hazards.weights_change_nothing)),
    "purity": Check(
        lambda s: (
            _plain(s)
            or (s.laws and s.kind in ("main", "way", "form"))
            or (s.kind == "shape" and s.title.endswith("length 0"))
        ),
        _pure,
    ),
    "jit and vmap": Check(
        lambda s: _alone(s) and s.fullest and s.family == "jax", _with_weights(transformations.traced)
    ),
    "split over devices": Check(
        lambda s: s.laws and s.kind == "main" and s.fullest and s.family == "jax" and s.masked, _over_devices
    ),
    "one program": Check(
        lambda s: _alone(s) and s.title in ("smallest", "fullest") and s.family == "jax",
        _plainly(transformations.compiles_once),
    ),
}
"""Beside agreement, which comes first, and what draws its own cases (long sums, stated gradients); in this order."""


def agreeing(subject, case, situation, return_weights):
    """Agreement with the definition, as findings of the promises that it speaks of; those that held among them."""
    if situation.kind in ("mixed", "integers") and not subject.adapter.promotes:
        raise NotAsked(f"{subject.adapter.name} arrays of several dtypes do not meet")
    if situation.kind == "mixed" and subject.adapter.name == "numpy" and "bfloat16" in case.dtypes.values():
        try:
            subject.outputs(case)
        except Exception as error:  # the candidate's own, in any words
            raise NotAsked(f"it refuses bfloat16 beside other dtypes ({type(error).__name__})") from error
    got = subject.outputs(case, return_weights)
    found = agreement(subject, case, return_weights, got)
    if situation.kind not in ("main", "precise", "average"):
        judged = [_named(found, PROMISE_OF[situation.kind])]
    else:
        judged = _of_each_promise(subject, case, return_weights, got, found)
    return [replace(finding, with_weights=return_weights) for finding in judged]


def _of_each_promise(subject, case, return_weights, got, found):
    values = promises.MASKED if _hides(case) else promises.VALUES
    judged = [Finding(promises.ANSWER, case)]
    if found.aspect == "shape" and found.message:
        return [*judged, _named(found, promises.SHAPE)]
    judged.append(Finding(promises.SHAPE, case))
    if found.aspect == "dtype" and found.message:
        judged.append(_named(found, promises.DTYPE))
        got = in_the_right_dtype(subject, subject.exact(case, return_weights), got)
        if got is None:
            return judged
        found = agreement(subject, case, return_weights, got)
    else:
        judged.append(Finding(promises.DTYPE, case))
    if not found.message:
        held = [Finding(promises.WEIGHTS, case)] if return_weights else []
        return [*judged, *held, _named(found, values)]
    if values == promises.MASKED and _only_where_nothing_is_real(subject, case, got, return_weights):
        return [*judged, _named(found, promises.EMPTY)]
    if not return_weights:
        return [*judged, _named(found, values)]
    count, want = len(subject.row.results), subject.exact(case, True)
    right = [w.astype(g.dtype) for w, g in zip(want, got, strict=True)]  # each part beside the right other one
    weights = agreement(subject, case, True, [*right[:count], *got[count:]])
    found = agreement(subject, case, True, [*got[:count], *right[count:]])
    return [*judged, _named(weights, promises.WEIGHTS), _named(found, values)]


def _hides(case):
    """Returns whether masks, or lengths given in place of them, hide any token."""
    lengths = [k for k in case.given("int", "lengths") if case.arguments()[k].optional]
    return bool(lengths) or any(not np.all(case.values[k]) for k in case.given("mask"))


def _named(finding, promise):
    return replace(finding, check=promise)


def in_the_right_dtype(subject, exact, got):
    """Results of a wrong dtype, rounded to the right one; None where they are no floats."""
    kept = []
    for output, want in zip(got, exact, strict=False):
        if want.dtype.kind == "f" and output.dtype.name != subject.dtype:
            if output.dtype.kind not in "fiuV":
                return None
            with np.errstate(all="ignore"):
                output = output.astype(numpy_dtype(subject.dtype))
        kept.append(output)
    return kept


def _only_where_nothing_is_real(subject, case, got, return_weights):
    """Returns whether the results are right except where they must be 0 for any data."""
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


def situation_of(subject, case, kind, first, gradients, laws, reference):
    """The :class:`Situation` of a case; ``first`` says whether the dtype is the first one."""
    return Situation(
        kind,
        case.title,
        drawing.fullest_way(subject.row, subject.calling.restrict),
        first,
        subject.dtype == "float64",
        subject.takes_weights(),
        gradients,
        laws,
        bool(subject.floats(case, ("data", "parameter"))),
        bool(drawing.masked_axes(case)) and subject.candidate.mask_form != "segments",
        bool(case.options.get(case.row.surrogate)),
        bool(case.row.norms) and "widths of 1" in case.title,
        reference,
        subject.adapter.name,
    )
