"""Actual and expected results of a failing case, as plain data."""

import numpy as np

from attnpool_ref.conformance.checks.agreement import agreement
from attnpool_ref.conformance.report import Compared
from attnpool_ref.conformance.report.promises import GRADIENT

LARGEST = 512
"""Largest number of elements of an array that is stored."""


def answer_to(subject, finding):
    """Returns the implementation's results for the case of a finding, with weights if possible; None if it raises."""
    try:
        return subject.outputs(finding.case, subject.takes_weights())
    except Exception:  # the message of the finding has the error
        return None


def arrays_of(subject, finding, got):
    """Returns a :class:`Compared` for each array of a wrong result with at most :data:`LARGEST` elements.

    The list is empty if the result ``got``, from :func:`answer_to`, is right, if the call raised an error, or if the
    finding is about gradients.
    """
    if finding.check in (GRADIENT, "finite gradients") or got is None:
        return []
    weights = subject.takes_weights()
    want = subject.exact(finding.case, weights)
    try:
        wrong = len(want) != len(got) or agreement(subject, finding.case, weights, got).message
    except Exception:  # the results cannot be compared
        wrong = True
    if not wrong:
        return []
    names = _names(subject.row, weights)
    pairs = zip(names, want, got, strict=False)
    return [Compared(name, _plain(w), _plain(g)) for name, w, g in pairs if max(w.size, g.size) <= LARGEST]


def _names(row, weights):
    """Returns a title for each array of the result."""
    groups = [("result", row.results), ("weights", row.weight_results if weights else ())]
    return [
        f"{name} {i + 1} of {len(axes)}" if len(axes) > 1 else f"the {name}"
        for name, axes in groups
        for i in range(len(axes))
    ]


def _plain(array):
    """Returns an array as nested lists of numbers and booleans."""
    return array.tolist() if array.dtype.kind in "biu" else array.astype(np.float64).tolist()
