"""Suggestions about an implementation that fails: how the judge called it, and which option changes the call."""

from dataclasses import replace

import numpy as np

from attnpool_ref import table
from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.candidates.capture import said


def suggestion(error, subject, case):
    """Returns the first suggestion that fits the error of a call, as a clause that begins with "; "; or ""."""
    text, mistyped = said(error), isinstance(error, (AttributeError, TypeError))
    tensors = mistyped and ("ndarray' object has no attribute" in text or "Tensor" in text)
    if tensors and subject.adapter.name == "numpy":
        return "; it was called with NumPy arrays: if it takes tensors, say so (arrays='torch', --arrays torch)"
    cause, exchanged = of_signature(subject)
    if cause or exchanged:
        return exchanged
    if "None" in text:
        optional = {key for key, argument in case.row.arguments.items() if argument.optional}
        absent = [key for key in subject.calling.declared & optional if case.values.get(key) is None]
        if absent:
            named = " and ".join(f"`{subject.calling.names[key]}`" for key in sorted(absent))
            return f"; it was called without {named}, as its signature allows: without a default it is always given"
    if _takes_booleans_only(subject, case):
        return (
            "; its mask was of integers: if it takes booleans only, say so (mask_form='boolean', --mask-form boolean)"
        )
    return ""


def of_signature(subject):
    """Returns (a cause, a clause), also as ``subject.suggested``; both are "" if the smallest call succeeds.

    The cause is that the implementation needs ``shared`` or ``without``, the option with which the call with the fewest
    arguments returns a result of the right shape. Without a cause, the clause is that of :func:`_by_place`.
    """
    if subject.suggested is None:
        fails = not _returns_right_shapes(subject)
        cause = next(_proposals(subject), "") if fails else ""
        subject.suggested = cause, _by_place(subject) if fails and not cause else ""
    return subject.suggested


def proposed(subject):
    """Returns the cause of :func:`of_signature` if it is known, else ""."""
    return subject.suggested[0] if subject.suggested else ""


def _proposals(subject):
    """Yields a cause for each further value of ``shared`` or ``without`` with which this call succeeds."""
    row, candidate = table.get(subject.row.name), subject.candidate
    arguments = subject.row.arguments
    data = [k for k, a in arguments.items() if a.kind == "data" and a.batched and a.own and subject.calling.takes(k)]
    for names in dict.fromkeys((*((key,) for key in data), tuple(data[1:]))) if len(data) > 1 else ():
        if _returns_right_shapes(_changed(subject, row, shared=(*candidate.shared, *names))):
            named = " and one ".join(f"`{name}` [{', '.join(arguments[name].own)}]" for name in names)
            flags = " ".join(f"--shared {name}" for name in names)
            yield f"your function takes one {named} for all examples: run again with `{flags}` (shared={names!r})"
    for axis in dict.fromkeys(a.lacks for k, a in arguments.items() if a.lacks and subject.calling.takes(k)):
        if _returns_right_shapes(_changed(subject, row, without=(*candidate.without, axis))):
            yield f"your function lacks the optional axis {axis}: run again with `--without {axis}` (without=({axis!r},))"


def _by_place(subject):
    """Returns a clause about two arguments that were matched by place, with their names exchanged; "" without them."""
    taken = {theirs: ours for ours, theirs in subject.calling.by_place.items() if theirs != ours}
    if len(taken) != 2:
        return ""
    passed = " and ".join(f"`{ours}` was passed as `{theirs}`" for theirs, ours in taken.items())
    flags = " ".join(f"--arg {a}={b}" for a, b in zip(taken, reversed(taken.values()), strict=True))
    return f"; {passed}, by place: if that is wrong, say so ({flags})"


def _changed(subject, row, **options):
    candidate = replace(subject.candidate, **options)
    return type(subject)(row, candidate, subject.adapter, subject.dtype, {}, subject.watch)


def _returns_right_shapes(subject):
    """Returns whether the call with the required arguments and the masks returns arrays of the right shapes."""
    case, _ = next(drawing.cases_of(subject.row, subject.calling.restrict, (), False))
    try:
        case = subject.fit(case)
        want = subject.exact(case)
        return [array.shape for array in subject.outputs(case)] == [array.shape for array in want]
    except Exception:  # any error of the implementation, or a case that it does not take
        return False


def _takes_booleans_only(subject, case):
    """Returns whether the case has masks of integers, and the same call with booleans raises no error."""
    masks = {key: np.asarray(case.values[key]) for key in case.given("mask")}
    if subject.candidate.mask_form is not None or not any(mask.dtype.kind in "iu" for mask in masks.values()):
        return False
    try:
        subject.outputs(case.with_values("", **{key: mask.astype(bool) for key, mask in masks.items()}))
    except Exception:  # any error of the implementation
        return False
    return True
