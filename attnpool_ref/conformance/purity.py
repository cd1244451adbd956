"""What a second call shows: the same answer, and the global random state where it was."""

import numpy as np

from attnpool_ref.conformance.agreement import Finding, brief, compare
from attnpool_ref.conformance.hazards import same_bits

TWICE, STATE = "the same answer twice", "random state untouched"


def repeated(subject, case, return_weights):
    """Two calls with the same arguments: the same bits (to rounding on accelerators), and no number drawn."""
    first = subject.outputs(case, return_weights)
    for _ in range(2):  # another row, in another thread, may have drawn once
        before = _state()
        second = subject.outputs(case, return_weights)
        drawn = before != _state()
        if not drawn:
            break
    state = Finding(STATE, case)
    if drawn:
        state = Finding(STATE, case, np.inf, 0, "the call draws from NumPy's global random state")
    return [_same(subject, case, first, second, return_weights), state]


def _same(subject, case, first, second, return_weights):
    if not subject.adapter.exact_weights():
        wide = [a.astype(np.float64) if a.dtype != bool else a for a in first]
        return compare(subject, case, TWICE, second, wide, return_weights)
    for a, b in zip(first, second, strict=True):
        if not same_bits(a, b):
            return Finding(TWICE, case, np.inf, 0, f"the result changes from {brief(a)} to {brief(b)}")
    return Finding(TWICE, case)


def _state():
    return [np.asarray(part).tobytes() for part in np.random.get_state()]
