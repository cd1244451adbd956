"""Suggestions about an implementation that fails: how the judge called it, and which option changes the call."""

import itertools
from dataclasses import dataclass, replace

import numpy as np

from attnpool_ref import table
from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.candidates.capture import said
from attnpool_ref.conformance.checks.agreement import agreement
from attnpool_ref.conformance.checks.optional_checks import of_integers


@dataclass(frozen=True)
class Proposal:
    """Options with which the plainest call is right.

    Attributes:
      words: what the implementation takes, and the options, as a cause.
      flags: the options of the command.
      ends: whether the judge stops, because no other call can be judged without the options.
    """

    words: str
    flags: str
    ends: bool = True


def suggestion(error, subject, case):
    """Returns the first suggestion that fits the error of a call, as a clause that begins with "; "; or ""."""
    text, mistyped = said(error), isinstance(error, (AttributeError, TypeError))
    tensors = mistyped and ("ndarray' object has no attribute" in text or "Tensor" in text)
    if tensors and subject.adapter.name == "numpy":
        return "; it was called with NumPy arrays: if it takes tensors, say so (arrays='torch', --arrays torch)"
    proposal, exchanged = of_signature(subject)
    if proposal or exchanged:
        return exchanged
    if "None" in text:
        optional = {key for key, argument in case.row.arguments.items() if argument.optional}
        absent = [key for key in subject.calling.declared & optional if case.values.get(key) is None]
        if absent:
            named = " and ".join(f"`{subject.calling.names[key]}`" for key in sorted(absent))
            return f"; it was called without {named}, as its signature allows: without a default it is always given"
    return of_integers(subject, case, lambda other: subject.outputs(other) is not None)


def of_signature(subject):
    """Returns (a :class:`Proposal` or None, a clause), also as ``subject.suggested``; (None, "") if the call is right.

    The call is the plainest one, with the required arguments and the masks. Without a proposal, the clause is that of
    :func:`_by_place` if the call raises an error, or its result has a wrong shape.
    """
    if subject.suggested is None:
        subject.suggested = None, ""  # for findings of the calls that follow
        shapes, right = plainest(subject)
        found = (
            None if right else next(itertools.chain(_of_masks(subject), () if shapes else _proposals(subject)), None)
        )
        subject.suggested = found, "" if found or shapes else _by_place(subject)
    return subject.suggested


def proposed(subject):
    """Returns the :class:`Proposal` of :func:`of_signature` if it is known, else None."""
    return subject.suggested[0] if subject.suggested else None


FORMS = {"integer": "0 and 1", "additive": "0 and -inf", "lengths": "lengths"}
"""Forms of masks that are tried, in words."""


def _of_masks(subject):
    """Yields a proposal for the form of masks with which the plainest call is right, if it is wrong with booleans."""
    candidate, row = subject.candidate, table.get(subject.row.name)
    masks = any(a.kind == "mask" and subject.calling.takes(key) for key, a in row.arguments.items())
    if candidate.mask_form is not None or candidate.padding_true or not masks:
        return

    def is_right(**options):
        try:
            return plainest(_changed(subject, row, some_real=True, **options))[1]
        except ValueError:  # such as a side of padding together with lengths
            return False

    if is_right() or is_right(padding_true=True):  # the mistake of a meaning, which has a cause
        return
    has_shape = plainest(subject)[0]
    for form, said_as in FORMS.items():
        if form == "lengths" and has_shape:
            continue  # it reads masks of all tokens, or none: with lengths a token at position 0 is right either way
        if is_right(mask_form=form):
            yield Proposal(
                f"your function takes masks as {said_as}: run again with `--mask-form {form}` (mask_form={form!r})",
                f"--mask-form {form}",
                False,
            )


def _proposals(subject):
    """Yields a proposal for each further value of ``shared`` or ``without`` with which this call succeeds."""
    row, candidate = table.get(subject.row.name), subject.candidate
    arguments = subject.row.arguments
    data = [k for k, a in arguments.items() if a.kind == "data" and a.batched and a.own and subject.calling.takes(k)]
    for names in dict.fromkeys((*((key,) for key in data), tuple(data[1:]))) if len(data) > 1 else ():
        if plainest(_changed(subject, row, shared=(*candidate.shared, *names)))[0]:
            named = " and one ".join(f"`{name}` [{', '.join(arguments[name].own)}]" for name in names)
            flags = " ".join(f"--shared {name}" for name in names)
            yield Proposal(
                f"your function takes one {named} for all examples: run again with `{flags}` (shared={names!r})", flags
            )
    for axis in dict.fromkeys(a.lacks for k, a in arguments.items() if a.lacks and subject.calling.takes(k)):
        if plainest(_changed(subject, row, without=(*candidate.without, axis)))[0]:
            words = f"lacks the optional axis {axis}: run again with `--without {axis}` (without=({axis!r},))"
            yield Proposal(f"your function {words}", f"--without {axis}")


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


def plainest(subject, padded=True):
    """Returns whether the call with the required arguments and the masks has results of the right shapes, and is right.

    Without ``padded`` the masks are all True.
    """
    case, _ = next(drawing.cases_of(subject.row, subject.calling.restrict, (), False))
    try:
        if not padded:
            case = case.with_values("no padding", **{key: np.ones_like(case.values[key]) for key in case.given("mask")})
        case = subject.fit(case)
        want, got = subject.exact(case), subject.outputs(case)
        shapes = [array.shape for array in got] == [array.shape for array in want]
        return shapes, shapes and not agreement(subject, case, False, got).message
    except Exception:  # any error of the implementation, or a case that it does not take
        return False, False
