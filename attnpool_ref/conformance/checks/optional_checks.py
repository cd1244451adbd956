"""Notes: deviations from attnpool's contract that only attnpool's own functions must not have.

For all others, a deviation breaks a guarantee if an engineer who does not know attnpool would call it a mistake.
"""

import contextlib
import re
from dataclasses import replace

import numpy as np

from attnpool_ref.conformance.cases import EMPTY_SHAPES
from attnpool_ref.conformance.checks.agreement import agreement, compare
from attnpool_ref.conformance.report import guarantees

NARROW, WIDER, BITS, ANY_DTYPE, LOGARITHMS = "narrow", "wider", "bits", "any dtype", "logarithms"
"""Deviations that may be tolerated: rounding in the narrow dtype itself, a wider dtype of the result, other bits of the
same numbers, any dtype of the result, and the rounding of a log-sum-exp in exp(score - logsumexp)."""

_REFUSAL = re.compile(
    r"TypeError|bfloat16|float16|float64|\bhalf\b|double|d-?type|not (supported|implemented)", re.IGNORECASE
)
"""Pattern of error texts that say that a dtype is not supported."""

NUMBERS = frozenset({"mixed dtypes", "arguments that broadcast"})
"""Guarantees that a wrong number breaks, and of which all other deviations are notes."""


def apply(subject, case, situation, findings, again):
    """Returns a list of the findings of one check, with a note in place of the message of an optional deviation.

    ``findings`` are those of the whole contract. ``again`` is a function that runs the check once more, and tolerates
    the deviations in ``subject.tolerated``.
    """
    if subject.whole_contract or not any(finding.message for finding in findings):
        return findings
    found = [_excused(subject, case, situation, finding) for finding in findings]
    tolerated = _tolerated(subject, case, situation, [finding for finding in found if finding.message])
    if not tolerated:
        return found
    subject.tolerated = tolerated
    try:
        tolerant = [_excused(subject, case, situation, finding) for finding in again()]
    finally:
        subject.tolerated = frozenset()
    broken, right = ({f.check: f for f in tolerant if bool(f.message) == wrong} for wrong in (True, False))
    mended = [finding for finding in found if finding.message and finding.check not in broken]
    others = [finding for finding in tolerant if finding.check not in {m.check for m in mended}]
    notes = [_noted(right.get(f.check, f), _note(subject, f, tolerated), situation.kind == "mixed") for f in mended]
    return [*others, *notes]


def _note(subject, finding, tolerated):
    """Returns a note about a tolerated deviation: its message, the dtype that computed it, or the size of the error."""
    if not np.isfinite(finding.error):
        return finding.message
    if subject.is_narrow and NARROW in tolerated:
        return f"rounded in {subject.dtype} itself, where float32 is guaranteed"
    return f"{finding.error / finding.allowed:.2g} times as far off as is allowed"


def _noted(finding, note, excused=True):
    found = replace(finding, error=0.0, allowed=0.0) if finding.message else finding  # without: the tolerated error
    return replace(found, message="", note=note, excused=excused)


def _excused(subject, case, situation, finding):
    """Returns the finding, or a note if its guarantee is optional in this case."""
    if not finding.message:
        return finding
    hint = finding.hint
    if not hint and situation.kind in ("mixed", "form") and finding.check in NUMBERS:
        # x[mask] and ~mask are right for the booleans that they are written for
        hint = of_integers(
            subject, finding.case, lambda other: not agreement(subject, other, finding.with_weights).message
        )
    if hint == finding.hint and not _is_optional(subject, case, situation, finding):
        return finding
    is_told = situation.kind != "form" or finding.check == "arguments that broadcast"
    return _noted(finding, finding.message + hint if is_told else "")


def _is_optional(subject, case, situation, finding):
    """Returns whether the finding breaks no guarantee by default, as ``docs/guarantees.md`` says."""
    raised, kind = finding.message.startswith("raises "), situation.kind
    if kind in ("mixed", "form") and finding.check in NUMBERS:
        if any(name.startswith("int") for name in case.dtypes.values()):
            return (
                True  # a constant that is cast to the dtype of integers is right for the floats that it is written for
            )
        return raised or finding.aspect == "shape" or (finding.aspect == "dtype" and ANY_DTYPE in subject.tolerated)
    if raised and _has_shared_tokens(case):
        return True
    if raised and finding.check == "the same answer twice":  # of arrays that are not contiguous
        return True
    if guarantees.BY_NAME[finding.check].is_note:
        return True
    if finding.check == guarantees.STATE and subject.adapter.name == "keras":  # a layer draws seeds where it is built
        return True
    if finding.check == "jit and vmap":
        return raised or "JAX cannot trace it" in finding.message
    if raised and (
        _refuses_an_option(subject, case, finding.message) or (of_foreign_dtype(subject) and refuses(finding.message))
    ):
        return True
    if finding.check == "NaN at a real token":  # an argmax is defined for inf, so the result need not be NaN
        infinite = finding.case.is_infinite() and not any(np.any(np.isinf(w)) for w in subject.exact(finding.case))
        return infinite or "comparison" in case.row.facts
    if finding.check == guarantees.EMPTY and not case.given("mask", "lengths", "int", "segments") and case.size():
        return True  # without a mask, a 0 is a difference of values, whose rounding another check judges
    if kind in ("extreme", "far") and "underflows" in case.row.facts:
        return True
    if case.shape in EMPTY_SHAPES:
        spoiled = "gradient" in finding.check and "nan" in finding.message
        return raised or spoiled or _is_nan(subject, case, finding)
    if kind == "extreme":
        beyond = case.row.norms and not 1e-20 < case.largest() < 1e20  # the squares of vectors overflow, or are 0
        return beyond or (case.is_infinite() and _is_nan(subject, case, finding))
    return kind == "tied" and finding.check == guarantees.GRADIENT


def of_integers(subject, case, works):
    """Returns a clause if a mask of the case is of integers, and ``works`` is true of the same case with booleans; or ""."""
    masks = {key: np.asarray(case.values[key]) for key in case.given("mask")}
    if subject.candidate.mask_form is not None or not any(mask.dtype.kind in "iu" for mask in masks.values()):
        return ""
    with contextlib.suppress(Exception):  # any error of the implementation
        if works(case.with_values("", **{key: mask.astype(bool) for key, mask in masks.items()})):
            return "; its mask was of integers: if it takes booleans only, say so (mask_form='boolean', --mask-form boolean)"
    return ""


def _has_shared_tokens(case):
    """Returns whether masks have batch axes, but not all tokens: few functions stretch tokens to their masks."""
    masks = {axis for key in case.given("mask") if "..." in case.axes[key] for axis in case.axes[key]}
    tokens = [case.axes[key] for key in case.given("data") if masks.intersection(case.axes[key][:-1])]
    return bool(masks) and any("..." not in axes for axes in tokens)


def refuses(error):
    """Returns whether an error's type or text may say that a dtype is not supported.

    Libraries word it in many ways, so the pattern is generous: every TypeError counts.
    """
    return bool(_REFUSAL.search(error))


def _refuses_an_option(subject, case, message):
    """Returns whether an error may come from an option that the implementation lacks.

    This is so if an option of the case has a value other than the default, and the value is a string that the error
    contains, or a function. A function counts whatever the error says, because the error of an implementation that
    takes only names need not mention the function.
    """
    chosen = [value for key, value in case.options.items() if value != subject.calling.default(key)]
    return any(callable(value) or (isinstance(value, str) and value in message) for value in chosen)


def of_foreign_dtype(subject):
    """Returns whether the dtype is bfloat16 in NumPy (ml_dtypes), which has few operations, some with wider results."""
    return subject.adapter.name == "numpy" and subject.dtype == "bfloat16"


def _is_nan(subject, case, finding):
    """Returns whether the only error is NaN in rows of 0 (or -inf): without any score, most libraries compute 0 / 0."""
    try:
        got = subject.outputs(case, finding.with_weights)
    except Exception:  # any error of the implementation
        return False
    want = subject.exact(case, finding.with_weights)
    if [g.shape for g in got] != [w.shape for w in want] or any(w.dtype.kind != "f" for w in want):
        return False
    axis = case.options.get("axis", -1)
    rows = [
        np.isnan(g) & np.all((w == 0) | (w == -np.inf), axis, keepdims=True) if w.ndim else np.isnan(g)
        for g, w in zip(got, want, strict=True)
    ]
    if not any(np.any(row) for row in rows) and all(g.size for g in got):
        return False
    mended = [np.where(row, w, g).astype(g.dtype) for row, g, w in zip(rows, got, want, strict=True)]
    return not compare(subject, case, finding.check, mended, want, finding.with_weights).message


def _tolerated(subject, case, situation, broken):
    """Returns the deviations that a second run of the check tolerates; an empty set if that would change nothing.

    ``broken`` are the findings of the first run that failed.
    """
    if not broken or all(finding.message.startswith("raises ") for finding in broken):
        return frozenset()
    tolerated = set()
    if situation.kind in ("mixed", "form"):
        tolerated |= {ANY_DTYPE, NARROW}
    if "scores" in case.given("data"):
        tolerated.add(LOGARITHMS)
    if subject.is_narrow:
        tolerated.add(NARROW)
    if of_foreign_dtype(subject):
        tolerated.add(WIDER)
    if any(finding.check.endswith(" in padding") for finding in broken):
        tolerated.add(BITS)
    return frozenset(tolerated)
