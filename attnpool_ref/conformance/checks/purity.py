"""Checks of purity: a call changes no argument and no global random state, and repeated calls agree."""

import contextlib
import random
import re
from dataclasses import dataclass, replace

import numpy as np

from attnpool_ref.conformance.candidates.adapters import Untraceable
from attnpool_ref.conformance.candidates.capture import said
from attnpool_ref.conformance.checks.agreement import Finding, brief, compare_with_itself, failed
from attnpool_ref.conformance.checks.gradients import gradient
from attnpool_ref.conformance.checks.padding import same_bits
from attnpool_ref.conformance.report.guarantees import STATE, UNCHANGED

TWICE = "the same answer twice"
SILENT = "no warnings"


def repeated_calls(subject, case, situation):
    """Checks that a call has no side effects and can be repeated.

    For cases with another shape than the mixed batch, it only checks that NumPy gives no warning.
    """
    if situation.kind == "shape":
        return silence(subject, case, situation.weights)
    if not situation.is_plain and not answers(subject, case, situation.with_weights):
        return None  # the comparison with the oracle reports the error
    reuse = situation.is_plain and situation.laws
    found = [finding for weights in situation.with_weights for finding in purity(subject, case, weights, reuse)]
    return [*found, *(_not_contiguous(subject, case, situation) if reuse and situation.is_fullest else [])]


def purity(subject, case, return_weights, reuse=True):
    """Checks a second call with the same arguments; returns a finding for each of four guarantees.

    With ``reuse`` the implementation is also called with the same array objects, unchanged and with other content.
    """
    first = subject.outputs(case, return_weights)
    seen = _watched(subject, case, return_weights)
    # a single change of the state may come from another thread
    drawn = seen.drawn and _watched(subject, case, return_weights).drawn
    unchanged = "an argument was changed in place" if seen.changed else ""
    if seen.shared:
        unchanged = "the result is a view of an argument: writing to it changes the caller's array"
    texts = {
        UNCHANGED: unchanged,
        STATE: "the call changes the state of NumPy's or Python's global random numbers" if drawn else "",
        SILENT: _told(seen.warned),
    }
    found = [Finding(guarantee, case, np.inf if text else 0, 0, text) for guarantee, text in texts.items()]
    twice = _same(subject, case, first, seen.answer, return_weights)
    if reuse and not twice.message and not seen.changed:
        twice = _reused(subject, case, return_weights, seen)
    return [*(found if subject.adapter.in_process else []), twice]


def _not_contiguous(subject, case, situation):
    """Checks that a call and its gradients are the same with arrays that are not contiguous in memory.

    Returns a list of findings; it is empty if the family has no such arrays, or if the call is wrong with others.
    """
    if subject.adapter.strided(np.zeros(2), subject.dtype) is None:
        return []
    weights, want = situation.weights, subject.outputs(case, situation.weights)

    def look(got):
        found = compare_with_itself(subject, case, TWICE, got, want, weights)
        if situation.differentiated and not found.message:
            found = gradient(subject, case, weights) or found
        return found

    try:
        if look(want).message:
            return []
        subject.contiguous = False
        found = look(subject.read(case, subject.raw(case, weights)))
    except Untraceable:
        return []
    except Exception as error:  # any error of the implementation
        if subject.contiguous:
            return []
        found = failed(TWICE, case, f"raises {said(error)}")
    finally:
        subject.contiguous = True
    message = found.message and f"{found.message}, where the arrays are not contiguous in memory"
    return [replace(found, check=TWICE, message=message, with_weights=weights)]


def answers(subject, case, with_weights):
    """Returns whether the implementation returns arrays without an error, for each value of ``return_weights``."""
    try:
        return all(subject.outputs(case, return_weights) is not None for return_weights in with_weights)
    except Exception:  # any error of the implementation
        return False


def silence(subject, case, return_weights):
    """Checks only that NumPy gives no warning; returns None if the call raises an error or a result is not finite."""
    if not subject.adapter.in_process:
        return None
    try:
        seen = _watched(subject, case, return_weights)
    except Exception:  # any error of the implementation
        return None
    if not all(np.all(np.isfinite(array)) for array in seen.answer):
        return None
    return Finding(SILENT, case, np.inf if seen.warned else 0, 0, _told(seen.warned))


def _told(warned):
    return f"NumPy warns: {', '.join(dict.fromkeys(warned))}" if warned else ""


def _same(subject, case, first, second, return_weights):
    """Compares two results bit for bit, on accelerators up to rounding; returns a finding."""
    if not subject.adapter.is_reproducible():
        return compare_with_itself(subject, case, TWICE, second, first, return_weights)
    if len(first) != len(second):
        return failed(TWICE, case, f"returns {len(first)} arrays, then {len(second)}")
    for a, b in zip(first, second, strict=True):
        if not same_bits(a, b):
            return failed(TWICE, case, f"the result changes from {brief(a)} to {brief(b)}")
    return Finding(TWICE, case)


def _reused(subject, case, return_weights, seen):
    """Checks calls with the arrays of an earlier call ``seen``, unchanged and with other content written in place.

    In the first of these calls NumPy's arrays are read-only.
    """
    other, adapter = _of_other_content(subject, case), subject.adapter
    args, kwargs = seen.arguments
    try:
        with adapter.context(subject.dtype), np.errstate(all="ignore"), _read_only(_arrays(args, kwargs)):
            again = subject.read(case, subject.watch.call(subject.function, *args, **kwargs))
    except ValueError as error:
        if not _WRITES.search(str(error)):
            raise
        return failed(UNCHANGED, case, f"an argument was written to: with read-only arrays it raises {said(error)}")
    found = _same(subject, case, seen.answer, again, return_weights)
    if found.message or other is None:
        return replace(found, message=found.message and f"{found.message}, with the same arrays again")
    before = [np.copy(output) for output in seen.answer]
    want = [np.copy(output) for output in subject.read(other, subject.raw(other, return_weights))]
    if not all(same_bits(a, b) for a, b in zip(before, seen.answer, strict=True)):
        return failed(TWICE, case, "the result is changed by the next call, which writes into the same memory")
    passed = sum(isinstance(value, np.ndarray) for value in subject.passed(other, return_weights).values())
    with adapter.context(subject.dtype), np.errstate(all="ignore"):
        arrays, others = _arrays(args, kwargs), _arrays(*subject.converted(other, return_weights))
        if len(arrays) < passed or not _overwritten(adapter, arrays, others):
            return found
        got = subject.read(other, subject.watch.call(subject.function, *args, **kwargs))
    found = _same(subject, other, want, got, return_weights)
    message = found.message and f"{found.message}, where the same arrays have other content"
    return replace(found, case=other, message=message)


_WRITES = re.compile(r"(destination|array|iterator) is (read-only|not writeable)")
"""Pattern of NumPy's errors for a write to a read-only array; an error about a source may come from a conversion."""


@contextlib.contextmanager
def _read_only(arrays):
    """Context in which NumPy's arrays are read-only."""
    arrays = [array for array in arrays if isinstance(array, np.ndarray) and array.flags.writeable]
    for array in arrays:
        array.flags.writeable = False
    try:
        yield
    finally:
        for array in arrays:
            array.flags.writeable = True


def _of_other_content(subject, case):
    """Returns the case with shuffled data and parameters, and reversed masks; None if it has neither."""
    rng, values = case.rng(" other content"), {}
    for key in case.given("data", "parameter"):
        if key not in subject.parameters and case.values[key].dtype.kind == "f":
            values[key] = rng.permutation(case.values[key].reshape(-1)).reshape(case.values[key].shape)
    if subject.candidate.mask_form not in ("lengths", "segments"):
        values |= {key: case.values[key][..., ::-1].copy() for key in case.given("mask") if case.values[key].ndim}
    return case.with_values("other content", **values) if values else None


def _overwritten(adapter, arrays, others):
    """Copies ``others`` into ``arrays``; returns whether that worked, because some frameworks' arrays are immutable."""
    for array, other in zip(arrays, others, strict=True):
        view = adapter.read(array)
        if not view.flags.writeable:
            return False
        np.copyto(view, adapter.read(other))
    return all(same_bits(adapter.read(a), adapter.read(b)) for a, b in zip(arrays, others, strict=True))


def _arrays(args, kwargs):
    return [a for a in (*args, *kwargs.values()) if hasattr(a, "shape")]


@dataclass
class _Seen:
    """Observations of one call.

    Attributes:
      arguments: (args, kwargs), as the implementation's arrays.
      answer: its results.
      changed: whether an argument was changed.
      shared: whether a result shares memory with an argument; always False for arrays of other libraries than NumPy.
      drawn: whether the call changed a global random state of NumPy or Python.
      warned: the kinds of floating-point errors that NumPy warned of.
    """

    arguments: tuple
    answer: list
    changed: bool
    shared: bool
    drawn: bool
    warned: list


def _watched(subject, case, return_weights):
    warned = []
    # errstate belongs to this thread, unlike the filters of warnings. Underflow is not a mistake.
    with (
        subject.adapter.context(subject.dtype),
        np.errstate(
            divide="call", over="call", invalid="call", under="ignore", call=lambda kind, _: warned.append(kind)
        ),
    ):
        args, kwargs = subject.converted(case, return_weights)
        del warned[:]  # overflow in the conversion to the dtype is not the implementation's
        arrays = _arrays(args, kwargs)
        before = [np.array(subject.adapter.read(a), copy=True) for a in arrays]
        state, versions = _random_state(), _versions(arrays)
        result = subject.watch.call(subject.function, *args, **kwargs)
        drawn = state != _random_state()
        seen = list(warned)
        after = [subject.adapter.read(a) for a in arrays]
        changed = not all(same_bits(a, b) for a, b in zip(before, after, strict=True))
        changed = changed or versions != _versions(arrays)
        shared = subject.adapter.name == "numpy" and any(
            np.may_share_memory(part, array) for part in subject.adapter.parts(result) for array in after
        )
    return _Seen((args, kwargs), subject.read(case, result), changed, shared, drawn, seen)


def _versions(arrays):
    """Returns how often each of PyTorch's tensors was written to; 0 for other arrays."""
    return [getattr(array, "_version", 0) for array in arrays]


def _random_state():
    numpys: dict = np.random.get_state(legacy=False)
    state = numpys["state"]
    return state.get("pos"), np.asarray(state["key"]).tobytes(), numpys["has_gauss"], random.getstate()
