"""What a call must leave as it was: its arguments, the generators of random numbers, and what it answers next time."""

import random
from dataclasses import dataclass, field

import numpy as np

from attnpool_ref.conformance.agreement import Finding, brief, compare_with_itself
from attnpool_ref.conformance.hazards import same_bits


@dataclass
class Watched:
    """One call, watched: what it changed, and NumPy's floating-point warnings."""

    answer: list
    changed: bool
    advanced: bool
    warned: list = field(default_factory=list)


def inputs_unchanged(subject, case, return_weights=False):
    """The caller's arrays are as they were."""
    check = "inputs unchanged"
    if _watched(subject, case, return_weights).changed:
        return Finding(check, case, np.inf, 0, "an argument was changed in place")
    return Finding(check, case)


def random_state_unchanged(subject, case, return_weights=False):
    """No generator that all the world shares was read or advanced."""
    check = "random state unchanged"
    if _watched(subject, case, return_weights).advanced and _watched(subject, case, return_weights, anew=True).advanced:
        return Finding(check, case, np.inf, 0, "the state of NumPy's or Python's random numbers was changed")
    return Finding(check, case)


def same_answer_twice(subject, case, return_weights=False):
    """The same arguments give the same bits, whatever was called between; on accelerators they agree to rounding."""
    check = "same answer twice"
    first, second = subject.outputs(case, return_weights), _watched(subject, case, return_weights).answer
    if not subject.adapter.exact_weights():
        return compare_with_itself(subject, case, check, second, first, return_weights)
    for a, b in zip(first, second, strict=True):
        if not same_bits(a, b):
            return Finding(check, case, np.inf, 0, f"the second answer is {brief(b)}, the first one {brief(a)}")
    return Finding(check, case)


def no_warnings(subject, case, return_weights=False):
    """NumPy has nothing to warn of: nothing is divided by 0, nothing is invalid, nothing overflows."""
    check = "no warnings"
    warned = _watched(subject, case, return_weights).warned
    if warned:
        return Finding(check, case, np.inf, 0, f"NumPy warns: {', '.join(dict.fromkeys(warned))}")
    return Finding(check, case)


def _watched(subject, case, return_weights, anew=False):
    """The call once more with eyes on it; what was seen of the last case is kept."""
    known = subject.kept.get("watched")
    key = (subject, case, return_weights)
    if known is not None and not anew and all(a is b for a, b in zip(known[0], key, strict=True)):
        return known[1]
    warned = []
    # Other than warnings these are the thread's own; an underflow is no mistake.
    with (
        subject.adapter.context(subject.dtype),
        np.errstate(
            divide="call", over="call", invalid="call", under="ignore", call=lambda kind, _: warned.append(kind)
        ),
    ):
        args, kwargs = subject.converted(case, return_weights)
        arrays = [a for a in (*args, *kwargs.values()) if hasattr(a, "shape")]
        before = [np.array(subject.adapter.read(a), copy=True) for a in arrays]
        state = _random_state()
        answer = subject.call(args, kwargs)
        advanced = state != _random_state()
        after = [subject.adapter.read(a) for a in arrays]
    changed = not all(same_bits(a, b) for a, b in zip(before, after, strict=True))
    watched = Watched(answer, changed, advanced, warned)
    subject.kept["watched"] = key, watched
    return watched


def _random_state():
    numpys: dict = np.random.get_state(legacy=False)
    state = numpys["state"]
    return state["pos"], state["key"].tobytes(), numpys["has_gauss"], random.getstate()
