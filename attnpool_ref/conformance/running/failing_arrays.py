"""Arrays of a failing case, got and expected, as plain data that a page can draw."""

import numpy as np

from attnpool_ref.conformance.checks.agreement import agreement
from attnpool_ref.conformance.report import Compared
from attnpool_ref.conformance.report.promises import GRADIENT

LARGEST = 512
"""How many numbers of an array are kept; nobody looks at more."""


def answer_to(subject, finding):
    """The candidate's results for the case of a finding, with the weights where it gives them; None if it gives none."""
    try:
        return subject.outputs(finding.case, subject.takes_weights())
    except Exception:  # the finding says what it raises
        return None


def arrays_of(subject, finding, got):
    """Expected and got of each array of a wrong answer; nothing where the answer itself is right, or is none.

    Args:
      subject: the candidate.
      finding: what failed.
      got: the answer, as :func:`answer_to` gives it.
    """
    if finding.check in (GRADIENT, "finite gradients") or got is None:
        return []
    weights = subject.takes_weights()
    want = subject.exact(finding.case, weights)
    try:
        wrong = len(want) != len(got) or agreement(subject, finding.case, weights, got).message
    except Exception:  # garbage that cannot be compared
        wrong = True
    if not wrong:
        return []
    names = _names(subject.row, weights)
    pairs = zip(names, want, got, strict=False)
    return [Compared(name, _plain(w), _plain(g)) for name, w, g in pairs if max(w.size, g.size) <= LARGEST]


def _names(row, weights):
    """Returns the title of each array of the answer."""
    groups = [("result", row.results), ("weights", row.weight_results if weights else ())]
    return [
        f"{name} {i + 1} of {len(axes)}" if len(axes) > 1 else f"the {name}"
        for name, axes in groups
        for i in range(len(axes))
    ]


def _plain(array):
    """Nested lists of numbers and booleans."""
    return array.tolist() if array.dtype.kind in "biu" else array.astype(np.float64).tolist()
