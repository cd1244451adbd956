"""Agreement with the definition, split into guarantees: shape, dtype, weights, values; and over many tokens."""

from dataclasses import replace

import numpy as np

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.candidates.calling import NotApplicable
from attnpool_ref.conformance.checks import optional_checks, padding, tolerances
from attnpool_ref.conformance.checks.agreement import Finding, agreement, compare, in_the_right_dtype, needed
from attnpool_ref.conformance.report import guarantees

GUARANTEE_OF = {
    "shape": "shapes",
    "way": "one argument alone",
    "form": "arguments that broadcast",
    "exact": "ties and edges",
    "tied": "ties and edges",
    "extreme": "extreme scores",
    "far": "far from 0",
    "cancelling": "sums that cancel",
    "mixed": "mixed dtypes",
    "integers": guarantees.INTEGERS,
}
"""For each kind of case, the guarantee that is tested by comparison with the definition.

In cases of kinds that are not listed, the comparison tests several guarantees.
"""

OF_DTYPES = ("form", "mixed", "integers")
"""Kinds of cases whose own guarantee includes the dtype of the result; in others it is the guarantee "dtype"."""


def agreement_by_guarantee(subject, case, situation, return_weights):
    """Checks the results against the definition; returns a finding for each guarantee that the comparison tests.

    Raises:
      NotApplicable: the case has several dtypes, which the arrays of the implementation cannot have in one operation,
        or one of which is NumPy's bfloat16, and the implementation raises an error.
    """
    if situation.kind in ("mixed", "integers") and not subject.adapter.promotes:
        raise NotApplicable(f"{subject.adapter.name} arrays of several dtypes do not meet")
    if situation.kind == "mixed" and subject.adapter.name == "numpy" and "bfloat16" in case.dtypes.values():
        try:
            subject.outputs(case)
        except Exception as error:  # any error of the implementation
            raise NotApplicable(f"it refuses bfloat16 beside other dtypes ({type(error).__name__})") from error
    got = subject.outputs(case, return_weights)
    found = agreement(subject, case, return_weights, got, situation.kind == "main")
    if situation.kind in ("main", "precise", "average"):
        judged = _of_each_guarantee(subject, case, return_weights, got, found)
    else:
        judged = []
        if found.message and found.aspect == "dtype" and situation.kind not in OF_DTYPES:
            judged, got = [_named(found, guarantees.DTYPE)], _rounded(subject, case, return_weights, got)
            found = agreement(subject, case, return_weights, got) if got else None
        judged += [_named(found, GUARANTEE_OF[situation.kind])] if found else []
    return [replace(finding, with_weights=return_weights) for finding in judged]


def _of_each_guarantee(subject, case, return_weights, got, found):
    values = guarantees.MASKED if _hides(case) else guarantees.VALUES
    judged = [Finding(guarantees.ANSWER, case)]
    if found.aspect == "shape" and found.message:
        return [*judged, _named(found, guarantees.SHAPE)]
    judged.append(Finding(guarantees.SHAPE, case))
    if found.aspect == "dtype" and found.message:
        judged.append(_named(found, guarantees.DTYPE))
        got = _rounded(subject, case, return_weights, got)
        if got is None:
            return judged
        found = agreement(subject, case, return_weights, got)
    else:
        judged.append(Finding(guarantees.DTYPE, case))
    if not found.message:
        held = [Finding(guarantees.WEIGHTS, case)] if return_weights else []
        return [*judged, *held, _named(found, values)]
    if values == guarantees.MASKED and _only_where_nothing_is_real(subject, case, got, return_weights):
        return [*judged, _named(found, guarantees.EMPTY)]
    if not return_weights:
        return [*judged, _named(found, values)]
    count, want = len(subject.row.results), subject.exact(case, True)
    right = [w.astype(g.dtype) for w, g in zip(want, got, strict=True)]  # to judge results and weights separately
    weights = agreement(subject, case, True, [*right[:count], *got[count:]])
    found = agreement(subject, case, True, [*got[:count], *right[count:]])
    return [*judged, _named(weights, guarantees.WEIGHTS), _named(found, values)]


def _rounded(subject, case, return_weights, got):
    """Returns results of a wrong dtype in the right one; None if one is no number or narrower, as it has fewer digits."""
    needed = tolerances.EPSILON[subject.dtype]
    if any(tolerances.EPSILON.get(output.dtype.name, 0) > needed for output in got):
        return None
    return in_the_right_dtype(subject, subject.exact(case, return_weights), got)


def _hides(case):
    """Returns whether masks, or lengths given in place of them, hide any token."""
    lengths = [k for k in case.given("int", "lengths") if case.arguments()[k].optional]
    return bool(lengths) or any(not np.all(case.values[k]) for k in case.given("mask"))


def _named(finding, guarantee):
    return replace(finding, check=guarantee)


def _only_where_nothing_is_real(subject, case, got, return_weights):
    """Returns whether the results are right except where they must be 0 for any data, as in fully masked rows."""
    zeros = padding.always_zero(subject, case, return_weights)
    want = subject.exact(case, return_weights)
    mended = [np.where(zero, w, g).astype(g.dtype) for g, w, zero in zip(got, want, zeros, strict=True)]
    return not compare(subject, case, guarantees.EMPTY, mended, want, return_weights).message


DRIFT = 1e-5
"""Largest relative error for a million tokens in float32, as the contract sets it; not derived from rounding."""


def sums_of_many_tokens(subject):
    """Checks sums over many equal tokens, more of them in float32 than in narrow dtypes."""
    return long_sums(subject) if subject.dtype == "float32" else long_narrow_sums(subject)


def long_sums(subject):
    """Checks that sums over 70,000 tokens (in attnpool's own functions a million) neither drift nor lose their count."""
    finding, size, drift = None, drawing.LONG, DRIFT
    if not subject.whole_contract:
        size = drawing.LONG_BY_DEFAULT
        drift = tolerances.EPSILON["float32"] / 2 * size  # the bound for a sum of one token after another
    for case in _fitting(subject, (case for case, _ in drawing.long_rows(subject.row, size))):
        finding = Finding("long sums", case)
        for got, want in zip(subject.outputs(case), subject.exact(case), strict=True):
            error = np.abs(got.astype(np.float64) - want)
            wrong = ~(error <= drift * np.max(np.abs(want), initial=0))
            if got.shape != want.shape or np.any(wrong):
                message = needed("the result", got, want, wrong, int(np.argmax(error)))
                return replace(finding, error=np.inf, message=message)
    return finding


def _fitting(subject, cases):
    """Yields cases as the implementation takes them, if it has their options and they have the data that it needs."""
    for case in cases:
        names, options = subject.calling.restrict([], case.options)
        lacking = [name for name in names if subject.row.arguments[name].kind not in ("mask", "number")]
        if not lacking and all(options[key] == value for key, value in case.options.items()):
            yield subject.fit(case)


def long_narrow_sums(subject):
    """Checks sums over thousands of equal tokens, which narrow dtypes can neither count nor add up exactly.

    Raises:
      NotApplicable: the arrays are NumPy's bfloat16, and the implementation is not attnpool's own.
    """
    finding = None
    if subject.adapter.name == "numpy" and not subject.whole_contract:
        raise NotApplicable(f"NumPy adds up {subject.dtype} in {subject.dtype}")
    for case in _fitting(subject, drawing.long_narrow_rows(subject.row, overflows=subject.whole_contract)):
        finding = compare(subject, case, "long sums", subject.outputs(case), subject.exact(case), False)
        if finding.message and not subject.whole_contract:
            finding = _up_to_rounding_in_its_dtype(subject, case)
        if finding.message:
            return finding
    return finding


def _up_to_rounding_in_its_dtype(subject, case):
    """Compares results as those of others than attnpool are; a sum that loses its count is off by more than rounding."""
    subject.tolerated = frozenset({optional_checks.NARROW, optional_checks.WIDER})
    try:
        return compare(subject, case, "long sums", subject.outputs(case), subject.exact(case), False)
    finally:
        subject.tolerated = frozenset()
