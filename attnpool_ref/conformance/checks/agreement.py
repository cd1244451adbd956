"""Comparison of results with the oracle, and :class:`Finding`, the result of a check.

``subject`` is always a :class:`~attnpool_ref.conformance.checks.subject.Subject`: an implementation of one function, in
one dtype.
"""

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attnpool_ref.conformance.candidates.adapters import numpy_dtype
from attnpool_ref.conformance.checks import tolerances


@dataclass
class Finding:
    """Result of one check: the worst error, the allowed error, and a message if the check failed.

    Errors are in units of the dtype's epsilon times the magnitude of the result; inf if the failure is no error of a
    number, such as a wrong shape.

    Attributes:
      check: the check's name or the name of the guarantee that it tests.
      case: the case.
      error: the error of the element that is worst compared with its allowed error.
      allowed: the allowed error of this element.
      message: the actual and the needed result if the check failed, else "".
      aspect: the part of a comparison that failed: "values", "weights", "shape" or "dtype".
      with_weights: whether the call returned weights.
      note: a remark about a deviation that breaks no guarantee.
      excused: whether the finding neither confirms nor breaks its guarantee.
      hint: a clause for the end of the message.
    """

    check: str
    case: Any
    error: float = 0.0
    allowed: float = 0.0
    message: str = ""
    aspect: str = "values"
    with_weights: bool = False
    note: str = ""
    excused: bool = False
    hint: str = ""


def failed(check, case, message, aspect="values"):
    """Returns a finding of a failure that is no error of a number."""
    return Finding(check, case, np.inf, 0, message, aspect)


def agreement(subject, case, return_weights=False, got=None, measured=False):
    """Compares the implementation's results, their shape and dtype, with the oracle's; returns a :class:`Finding`.

    ``got`` has the implementation's results; if it is None, the implementation is called. ``measured`` is that of
    :func:`compare`.
    """
    got = subject.outputs(case, return_weights) if got is None else got
    want = subject.exact(case, return_weights)
    return compare(subject, case, "agreement with the oracle", got, want, return_weights, measured=measured)


def in_the_right_dtype(subject, exact, got):
    """Returns the results ``got``, rounded to the right dtype if they have another one; None if one is not numeric."""
    kept = []
    for output, want in zip(got, exact, strict=True):
        if want.dtype.kind == "f" and output.dtype.name != subject.dtype:
            if output.dtype.kind not in "fiuV":
                return None
            with np.errstate(all="ignore"):
                output = output.astype(numpy_dtype(subject.dtype))
        kept.append(output)
    return kept


def compare_with_itself(subject, case, check, got, want, return_weights, view=lambda i, array: array):
    """Compares two results of the implementation, with twice the allowed error, because both are rounded.

    The dtype of the results does not matter: it is a finding of the comparison with the oracle. ``want`` has the
    results for ``case``, and ``got`` those for changed arguments, which should be the same. ``view`` selects the
    compared part of an output, from its index and its array.
    """
    exact = [view(i, array).shape for i, array in enumerate(subject.exact(case, return_weights))]
    if [w.shape for w in want] != exact:
        return Finding(check, case)  # wrong shapes are a finding of the comparison with the oracle
    want = [w if w.dtype.kind in "bi" else w.astype(np.float64) for w in want]
    got = got if len(got) != len(want) else in_the_right_dtype(subject, want, got)
    if got is None:
        return Finding(check, case)  # so are results that are no numbers
    return compare(subject, case, check, got, want, return_weights, None, 2, view)


def compare(
    subject,
    case,
    check,
    got,
    want,
    return_weights,
    sensitive=None,
    times=1,
    view=lambda i, array: array,
    measured=False,
):
    """Compares results ``got`` with exact ones ``want``, element by element; returns the worst element as a finding.

    Elements whose exact value is 0 (they may lie on a threshold) are allowed the error of the largest element. So are
    all elements of functions that divide by a norm, of sums of bounded terms, and of cases with exact arguments. Cases
    with ``terms_of_sum`` have the tighter bound of :func:`~attnpool_ref.conformance.checks.tolerances.average_error`,
    unless the subject tolerates deviations. ``sensitive`` has the sensitivities of the outputs. If it is None, they are
    measured by calls of the oracle: with ``measured`` in any case, else only if the error is larger than allowed without
    them. ``times`` multiplies the allowed error. ``view`` selects the compared part of an output, from its index and its
    array.
    """
    dtype = case.result or subject.dtype
    if len(got) != len(want):
        return failed(check, case, f"returns {counted(len(got), len(want))}", "shape")
    if sensitive is None and not measured:
        found = _compared(subject, case, check, got, want, [np.zeros(w.shape) for w in want], dtype, times)
        if not found.message or found.error == np.inf:
            return found
    if sensitive is None:
        sensitive = [view(i, moved) for i, moved in enumerate(subject.sensitivities(case, return_weights))]
    return _compared(subject, case, check, got, want, sensitive, dtype, times)


def _compared(subject, case, check, got, want, sensitive, dtype, times):
    finding = Finding(check, case)
    overall = max((float(np.max(np.abs(w), where=np.isfinite(w), initial=0)) for w in want), default=0.0)
    if case.row.family == "decomposition" and not subject.whole_contract:
        overall = max(overall, case.largest())  # a residual is a difference, with the rounding error of the vector
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        name = f"output {i + 1} of {len(got)}" if len(got) > 1 else "the result"
        aspect = "weights" if i >= len(subject.row.results) else "values"
        if g.shape != w.shape:
            return failed(check, case, f"{name} has shape {g.shape}, needs {w.shape}", "shape")
        if w.dtype.kind in "bi":
            if (g.dtype.kind == "b") != (w.dtype.kind == "b") or g.dtype.kind not in "biu" or np.any(g != w):
                return failed(check, case, needed(name, g, w))
            continue
        rounding = subject.rounding_of(g.dtype.name, case)
        if not rounding:
            return failed(check, case, f"{name} has dtype {g.dtype}, needs {dtype}", "dtype")
        g = g.astype(np.float64)
        most = np.finfo(np.float32).max if rounding == "bfloat16" else np.finfo(rounding).max
        if rounding != "float64":
            w = np.where(np.abs(w) > most, np.copysign(np.inf, w), w)  # too large for the dtype
        odd = ~np.isfinite(w)
        wrong = (np.isnan(g) != np.isnan(w)) | (odd & ~np.isnan(w) & (g != w))
        if np.any(wrong):
            return failed(check, case, needed(name, g, w, wrong), aspect)
        size = np.where(odd, 0, np.abs(w))
        largest = float(np.max(size, initial=0))
        allowed = times * allowed_errors(subject, case, size, sensitive[i], overall, rounding)
        error = np.where(odd, 0, np.abs(np.where(odd, 0, g) - np.where(odd, 0, w)))
        finding = worst(finding, error, allowed, tolerances.EPSILON[rounding] * (largest or 1), name, g, w, aspect)
    return finding


def allowed_errors(subject, case, size, sensitive, overall, dtype):
    """Returns the largest allowed absolute error of each element of a result, as :func:`compare` describes it.

    ``size`` and ``sensitive`` are the magnitudes and sensitivities of its elements, ``overall`` is the largest magnitude
    of all results, and ``dtype`` that of the result.
    """
    moved = np.where(size == 0, np.max(size, initial=0) + np.max(sensitive, initial=0), sensitive)
    if case.row.norms or case.exact or "bounded terms" in case.row.facts:
        moved = moved + overall
    moved = moved + size * subject.logarithms(case)
    reduced = subject.reduced_products()
    limit = tolerances.allowed_error(size, moved, subject.terms(case), dtype, reduced)
    if case.terms_of_sum and not subject.tolerated:
        limit = tolerances.average_error(size, case.terms_of_sum, dtype, reduced)
    return tolerances.LEAST[dtype] + limit


def counted(count, needed=1):
    """Returns the words about a number of results, and what to write instead if there are too many."""
    words = f"{count} result{'s' * (count != 1)}, needs {needed}"
    if count < needed:
        return words
    return f"{words}; judge one of them (--result 0), or give the name of the option that returns the weights (--arg need_weights=return_weights)"


def worst(finding, error, allowed, unit, name, got, want, aspect="values"):
    """Returns ``finding``, or a worse one: about the element of ``error`` that is largest relative to ``allowed``.

    Both are arrays of absolute errors, which the finding has in units of ``unit``. ``name``, ``got`` and ``want`` are
    for the message; ``aspect`` is that of the finding.
    """
    if not error.size:
        return finding
    ratio = np.divide(error, allowed, out=np.where(error > 0, np.inf, 0.0), where=allowed > 0)
    place = int(np.argmax(ratio))
    element, limit = float(error.flat[place]), float(allowed.flat[place])
    message = functools.partial(needed, name, got, want, ~(error <= allowed), place)
    return worse(finding, element / unit, limit / unit, message, aspect)


def worse(finding, error, allowed, message, aspect="values"):
    """Returns ``finding``, or one with this error and aspect if it is larger relative to the allowed error.

    ``message`` is a function, which is called only if the error is not allowed.
    """
    ratio = error / allowed if allowed else (np.inf if error else 0)
    before = finding.error / finding.allowed if finding.allowed else (np.inf if finding.error else -1)
    if ratio <= before:
        return finding
    return replace(
        finding, error=error, allowed=allowed, message=message() if not error <= allowed else "", aspect=aspect
    )


def needed(name, got, want, wrong=None, place=None):
    """Returns the message about a wrong result; the arguments are as in :func:`apart`."""
    return "{} is {}, needs {}".format(name, *apart(got, want, wrong, place))


def changed(name, before, after):
    """Returns the message about a result that has other bits after a change that must have no effect."""
    return "{} changes from {} to {}".format(name, *apart(before, after))


def shown(array, wrong):
    """Returns the text of an array that is wrong whatever is needed: whole if small, else its first marked element."""
    return apart(array, array, wrong)[0]


def apart(got, want, wrong=None, place=None):
    """Returns texts of two arrays that differ: of small ones whole, else of one element, with its index and a count.

    The texts have the digits that tell them apart. ``wrong`` marks the elements to count; None marks those that differ.
    ``place`` is the element to show, as an index into the flat arrays; None takes the first one that is marked.
    """
    if np.shape(got) != np.shape(want) or np.size(got) <= SMALL:
        return _first_apart(brief, got, want, (6, 9, 17))
    got, want = (array.astype(np.float64) if array.dtype.kind not in "biu" else array for array in (got, want))
    if wrong is None:
        wrong = (got != want) & ~(np.isnan(got) & np.isnan(want))
    place = int(np.argmax(wrong)) if place is None else place
    one, other = _first_apart(_number, got.flat[place], want.flat[place], (6, 9, 17))
    count = int(np.sum(wrong))
    counted = f" ({count} of {got.size} elements differ)" if count else ""
    return f"{one} at {[int(i) for i in np.unravel_index(place, got.shape)]}", f"{other} there{counted}"


def _first_apart(text, got, want, digits):
    """Returns ``text(value, number)`` of two values, with the first number of digits for which the texts differ."""
    texts = [(text(got, number), text(want, number)) for number in digits]
    return next((pair for pair in texts if pair[0] != pair[1]), texts[0])


def _number(value, digits):
    return f"{value:.{digits}g}" if isinstance(value, np.floating) else str(value)


SMALL = 4
"""Largest number of elements of an array that a message shows whole."""


def brief(array, digits=6):
    """Returns an array as text for a message, with the middle of long axes left out."""
    edge = 2 if np.ndim(array) < 2 else 1
    text = np.array2string(np.asarray(array), precision=digits, threshold=SMALL, edgeitems=edge, separator=", ")
    return " ".join(text.split())


def same_bits(a, b):
    """Returns whether two arrays are equal, bit for bit; all NaNs count as equal, whatever their bits."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    both = np.isnan(a) & np.isnan(b)
    a, b = (np.ascontiguousarray(np.where(both, a.dtype.type(0), array)) for array in (a, b))
    return a.tobytes() == b.tobytes()
