"""What a call must leave as it was: its arguments, the generators of random numbers, and what it answers next time."""

import random

import numpy as np

from attnpool_ref.conformance.agreement import Finding, brief, compare_with_itself
from attnpool_ref.conformance.hazards import same_bits

UNCHANGED, TWICE, STATE = "inputs unchanged", "the same answer twice", "random state untouched"
SILENT = "no warnings"


def purity(subject, case, return_weights):
    """A second call with the same arguments, watched: one finding for each of the four promises."""
    first = subject.outputs(case, return_weights)
    second, changed, drawn, warned = _watched(subject, case, return_weights)
    if drawn:  # another row, in another thread, may have drawn once
        _, _, drawn, _ = _watched(subject, case, return_weights)
    said = {
        UNCHANGED: "an argument was changed in place" if changed else "",
        STATE: "the call changes the state of NumPy's or Python's global random numbers" if drawn else "",
        SILENT: _told(warned),
    }
    found = [Finding(promise, case, np.inf if text else 0, 0, text) for promise, text in said.items()]
    return [*found, _same(subject, case, first, second, return_weights)]


def silence(subject, case, return_weights):
    """What NumPy warns of, alone; None where the call raises or is not finite, which other promises tell."""
    try:
        answer, _, _, warned = _watched(subject, case, return_weights)
    except Exception:  # the candidate's own, in any words
        return None
    if not all(np.all(np.isfinite(array)) for array in answer):
        return None
    return Finding(SILENT, case, np.inf if warned else 0, 0, _told(warned))


def _told(warned):
    return f"NumPy warns: {', '.join(dict.fromkeys(warned))}" if warned else ""


def _same(subject, case, first, second, return_weights):
    """The same bits, whatever was called between; on accelerators the same to rounding."""
    if not subject.adapter.exact_weights():
        return compare_with_itself(subject, case, TWICE, second, first, return_weights)
    if len(first) != len(second):
        return Finding(TWICE, case, np.inf, 0, f"returns {len(first)} arrays, then {len(second)}")
    for a, b in zip(first, second, strict=True):
        if not same_bits(a, b):
            return Finding(TWICE, case, np.inf, 0, f"the result changes from {brief(a)} to {brief(b)}")
    return Finding(TWICE, case)


def _watched(subject, case, return_weights):
    """(answer, whether an argument was changed, whether a number was drawn, what NumPy warned of) of a call."""
    warned = []
    # Other than warnings these are the thread's own; an underflow is no mistake.
    with (
        subject.adapter.context(subject.dtype),
        np.errstate(
            divide="call", over="call", invalid="call", under="ignore", call=lambda kind, _: warned.append(kind)
        ),
    ):
        args, kwargs = subject.converted(case, return_weights)
        del warned[:]  # what is too large for the dtype is the kit's own doing
        arrays = [a for a in (*args, *kwargs.values()) if hasattr(a, "shape")]
        before = [np.array(subject.adapter.read(a), copy=True) for a in arrays]
        state = _random_state()
        result = subject.watch.call(subject.function, *args, **kwargs)
        drawn = state != _random_state()
        seen = list(warned)
        after = [subject.adapter.read(a) for a in arrays]
        changed = not all(same_bits(a, b) for a, b in zip(before, after, strict=True))
    return subject.read(case, result), changed, drawn, seen


def _random_state():
    numpys: dict = np.random.get_state(legacy=False)
    state = numpys["state"]
    return state.get("pos"), np.asarray(state["key"]).tobytes(), numpys["has_gauss"], random.getstate()
