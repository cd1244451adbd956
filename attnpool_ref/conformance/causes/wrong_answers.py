"""A call with a wrong result, compared with the right one and with those of mistakes.

The parts of a result are compared separately: real tokens, fully masked rows, precision.
"""

import itertools
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

import attnpool_ref
from attnpool_ref import contract
from attnpool_ref.conformance.cases import SEQUENCES
from attnpool_ref.conformance.cases.case import narrow
from attnpool_ref.conformance.causes.mistake import LIKE, wide_dtype
from attnpool_ref.conformance.checks import tolerances
from attnpool_ref.conformance.checks.agreement import compare, in_the_right_dtype
from attnpool_ref.conformance.checks.subject import oracle_outputs
from attnpool_ref.primitives import recorded, softmax

BATCH = ("...", "B", "C")
"""Axes of results that count examples."""


class Call:
    """One call: its arguments in float64, and the oracle's results if some of them are changed.

    Attributes:
      values: the arguments, with the defaults of omitted numbers.
      return_weights: whether the call returns the weights.
      got: the implementation's result as a list of arrays, or None.
      masks: names of the masks that are given.
    """

    def __init__(self, subject, case, weights):
        self.subject, self.case, self.row = subject, case, case.row
        self.return_weights, self.values = weights, _with_defaults(case.row, subject.values(case))
        self.got = None
        self.masks = case.given("mask")

    def oracle(self, options=None, return_weights=None, **changes):
        """Returns the oracle's results, as a list, for this call with other options and ``changes`` of arguments."""
        case = replace(self.case, options=self.case.options | (options or {}))
        return_weights = self.return_weights if return_weights is None else return_weights
        return oracle_outputs(self.subject, self.values | changes, case, return_weights)

    @cached_property
    def exact(self):
        """The oracle's result for the unchanged call."""
        return self.oracle()

    def real(self, key):
        """Returns the mask called ``key`` as booleans."""
        return np.asarray(self.values[key]).astype(bool)

    @cached_property
    def primitives(self):
        """The primitives that the definition calls; a softmax also where it is inside of another one."""
        with recorded() as called:
            self.oracle()
        return called | ({softmax} if called & {*LIKE} else set())

    @cached_property
    def is_nan_where_real(self):
        """Whether the result is NaN outside of fully masked rows, where the right one is not."""
        if self.got is None:
            return False
        empty = self.empty or [np.zeros(e.shape, bool) for e in self.exact]
        results = zip(self.got, self.exact, empty, strict=True)
        return any(np.any(np.isnan(g.astype(np.float64)) & ~np.isnan(e) & ~nothing) for g, e, nothing in results)

    def nearest(self, answers):
        """Returns the first of several answers, changed to this result wherever that lies between them."""
        results, found = self.exact if self.got is None else self.got, []
        if any(g.shape != a.shape for g, a in zip(results, answers[0], strict=True)):
            return answers[0]
        rounding = 8 * np.finfo(wide_dtype(self)).eps
        for got, *ends in zip(results, *answers, strict=True):
            ends, got = np.stack(ends), got.astype(np.float64)
            with np.errstate(invalid="ignore"):
                lost = np.isnan(ends)
                low, high = np.min(np.where(lost, np.inf, ends), 0), np.max(np.where(lost, -np.inf, ends), 0)
                between = ((got >= low - rounding * np.abs(low)) & (got <= high + rounding * np.abs(high))) | (
                    np.isnan(got) & np.any(lost, 0)
                )
            found.append(np.where(between, got, ends[0]))
        return found

    @cached_property
    def other(self):
        """The same call with other data."""
        rng, case = self.case.rng(" other data"), self.case
        data = {key: rng.standard_normal(self.values[key].shape) for key in case.given("data")}
        if "epsilon" in self.values:  # with which the deviation of a single token is not 0
            data["epsilon"] = np.float64(1)
        return Call(self.subject, case.with_values("", **data), self.return_weights)

    @cached_property
    def empty(self):
        """For each output a boolean array that marks zeros due to fully masked rows or empty sequences.

        It is None if no row can be fully masked, or if the results of fully masked rows are not 0. The logarithm of a
        weight of 0, -inf, counts as a zero.
        """
        arguments = self.row.arguments
        lengths = [key for key in self.case.given("int", "lengths") if arguments[key].optional]
        if self.masks or lengths:
            nothing = self.oracle(**{key: np.zeros_like(self.values[key]) for key in (*self.masks, *lengths)})
            if not all(np.all(_is_zero(output)) for output in nothing if output.dtype != bool):
                return None
        elif not self.case.given("segments") and not any(self.case.sizes.get(axis) == 0 for axis in SEQUENCES):
            return None
        return self.zeros(self.exact, self.other.exact)

    def zeros(self, answer, other):
        """Returns boolean arrays that mark the vectors that are 0 in the results for two sets of data.

        A result of one number for each example, such as a score, has no vectors: its numbers are marked.
        """
        inner_axes = [
            [axis for axis in axes if axis not in BATCH] for axes in (*self.row.results, *self.row.weight_results)
        ]
        axis, any_rank = self.case.options.get("axis", -1), "axis" in self.row.options
        return [
            _all_zero(a, axis if axes or any_rank else ()) & _all_zero(b, axis if axes or any_rank else ())
            for a, b, axes in zip(answer, other, inner_axes[: len(answer)], strict=True)
        ]


def _with_defaults(row, values):
    """Returns the arguments, with the default of each numeric argument that the call omits."""
    parameters = contract.signature_of(getattr(attnpool_ref, row.name)).parameters
    numbers = {key for key, argument in row.arguments.items() if argument.kind == "number" and not argument.optional}
    left = [key for key, value in values.items() if value is None and key in numbers]
    return values | {key: np.float64(parameters[key].default) for key in left}


def _all_zero(output, axis):
    """Returns a boolean array that marks the vectors along ``axis`` that are 0."""
    zero = _is_zero(output)
    return np.broadcast_to(np.all(zero, axis, keepdims=True), output.shape) if output.ndim else zero


def _is_zero(output):
    return (output == 0) | (output == -np.inf)


def _same(answer, other):
    """Returns whether two results, lists of arrays, are equal; NaN equals NaN."""
    return len(answer) == len(other) and all(map(np.array_equal, answer, other, itertools.repeat(True)))


def _rounded(values, dtype):
    """Returns float64 values rounded to a dtype's precision."""
    if dtype == "bfloat16":  # NumPy does not know it
        return narrow({"": values})[""]
    with np.errstate(over="ignore"):
        return values.astype(dtype).astype(np.float64)


SILENT, EXPLAINED, CONTRADICTED = "silent", "explained", "contradicted"
"""The relations of a known mistake to a case: it says nothing, explains the wrong result, or is contradicted."""

_LARGEST = {"float16": 65504.0, "float32": float(np.finfo(np.float32).max)}
"""The largest finite numbers of float16 and float32; larger results of a mistake are infinite there."""


class WrongAnswer:
    """Result for one case, and its comparisons with known mistakes.

    Attributes:
      call: the :class:`Call` of the case.
      got: the result as a list of arrays of the right dtype; None if it is right.
    """

    def __init__(self, subject, case, weights, got: Any = None):
        self.subject, self.call = subject, Call(subject, case, weights)
        self.call.got = self.got = got
        self._answers, self._equal = {}, {}

    @classmethod
    def of(cls, subject, case, weights):
        """Returns the object for the implementation's result in a case; None if the result cannot be compared.

        ``weights`` says whether the call returns the weights.
        """
        try:
            got = subject.outputs(case, weights)
        except Exception:  # the guarantee "an answer" reports the error
            return None
        exact = subject.exact(case, weights)
        if len(got) != len(exact) or any(g.shape != e.shape for g, e in zip(got, exact, strict=True)):
            return None  # the guarantee "shape" reports it
        got = in_the_right_dtype(subject, exact, got)
        return None if got is None else cls(subject, case, weights, got)

    # Parts of a result, as boolean arrays

    @cached_property
    def empty(self):
        """Boolean arrays that mark zeros due to fully masked rows."""
        empty = self.call.empty
        return [np.zeros(output.shape, bool) for output in self.call.exact] if empty is None else empty

    @cached_property
    def real(self):
        """Boolean arrays that mark the elements that are not ``empty``."""
        return [~place for place in self.empty]

    @cached_property
    def wrong_where_real(self):
        """Whether the result is wrong outside of fully masked rows."""
        return self.got is not None and not self.equals(self.call.exact, self.real)

    @cached_property
    def wrong_where_empty(self):
        """Whether the result is not exactly right (0, or -inf for logarithms) in fully masked rows."""
        if self.got is None:
            return False
        answers = zip(self.got, self.call.exact, self.empty, strict=True)
        return any(np.any(got[empty] != exact[empty]) for got, exact, empty in answers)

    @property
    def is_main(self):
        """Whether the case has ordinary numbers and shapes; other cases may show further mistakes."""
        return self.call.case.title == self.call.case.way

    @property
    def is_of_length_0(self):
        """Whether the case has a token axis of size 0."""
        return any(self.call.case.sizes.get(axis) == 0 for axis in SEQUENCES)

    # Comparisons

    def equals(self, answer, places, loose: bool | str = False):
        """Returns whether ``answer`` equals this result at ``places``, up to rounding.

        With ``loose`` the rounding may be that of all operations in a narrow dtype, or of float32 in float64; or in the
        dtype that ``loose`` names.
        """
        if len(answer) != len(places) or any(a.shape != p.shape for a, p in zip(answer, places, strict=True)):
            return False
        got = self.call.exact if self.got is None else self.got
        want = [np.where(p, a, np.zeros((), a.dtype)) for a, p in zip(answer, places, strict=True)]
        got = [np.where(p, g, np.zeros((), g.dtype)) for g, p in zip(got, places, strict=True)]
        if self.got is None:
            got = in_the_right_dtype(self.subject, self.call.exact, got)
        sensitive = self.subject.sensitivities(self.call.case, self.call.return_weights)
        # Sensitivities are those of the right result, which may be 0 where this one is not: the largest is used.
        moved = [np.max(moves, initial=0) for moves in sensitive]
        if loose:
            return self._coarsely(got, want, moved, loose)
        if self._is_far(got, want, moved):
            return False
        return not compare(self.subject, self.call.case, "cause", got, want, self.call.return_weights, moved).message

    def _is_far(self, got, want, moved):
        """Returns whether an element of ``got`` is off by more than the largest allowed error; saves a full comparison.

        ``moved`` has a sensitivity for each output.
        """
        largest = [float(np.max(np.abs(w), where=np.isfinite(w), initial=0)) for w in want]
        case, overall = self.call.case, 2 * max(largest, default=0.0)
        for g, w, size, moves in zip(got, want, largest, moved, strict=True):
            if w.dtype.kind == "f" and np.all(np.isfinite(w)) and size < _LARGEST.get(self.subject.dtype, np.inf):
                allowed = tolerances.allowed_error(size, moves + overall, case.terms(), self.subject.dtype, True)
                with np.errstate(invalid="ignore"):
                    off = np.max(np.abs(g.astype(np.float64) - w), initial=0)
                if not off <= tolerances.LEAST[self.subject.dtype] + allowed:
                    return True
        return False

    def _coarsely(self, got, want, moved, loose):
        is_narrow = self.subject.is_narrow or isinstance(loose, str)
        dtype = loose if isinstance(loose, str) else self.subject.dtype if is_narrow else "float32"
        for g, w, moves in zip(got, want, moved, strict=True):
            if w.dtype.kind in "bi":
                return False
            g = g.astype(np.float64)
            if not self.subject.is_narrow and not np.array_equal(g, _rounded(g, dtype), equal_nan=True):
                return False  # it was not computed in that dtype
            size = float(np.max(np.abs(w), where=np.isfinite(w), initial=0))
            allowed = tolerances.allowed_error(size, moves, self.call.case.terms(), dtype, is_narrow)
            with np.errstate(invalid="ignore"):
                if not np.all((np.abs(g - w) <= allowed) | (np.isnan(g) & np.isnan(w))):
                    return False
        return True

    # Known mistakes

    def answer_of(self, mistake, other=False):
        """Returns a mistake's result for the call, or with ``other`` for other data; None if it is not possible."""
        key, call = (id(mistake), other), self.call.other if other else self.call
        if key not in self._answers:
            try:
                self._answers[key] = mistake, mistake.answer(call)  # with the mistake, to reserve its id
            except ValueError:  # the changed call is not legal
                self._answers[key] = mistake, None
        return self._answers[key][1]

    def speaks_for(self, mistake, loose=False):
        """Returns :data:`EXPLAINED`, :data:`SILENT` or :data:`CONTRADICTED`, judged outside of fully masked rows.

        A mistake explains a wrong result that equals the result of the mistake, and is contradicted by any result that
        differs from it; otherwise it is silent. Where the mistake masks all tokens, it agrees with any result, NaN
        included. ``loose`` is that of :meth:`equals`.
        """
        answer = self.answer_of(mistake)
        if answer is None:
            return SILENT
        if not loose and not self.wrong_where_real and _same(answer, self.call.exact):
            return SILENT  # the mistake changes nothing
        places = self.real
        if not self._equals_like(answer, False, loose):
            places = self._where_it_has_something(mistake, answer)
            if places is None or not self.equals(answer, places, loose):
                return CONTRADICTED
        if self.wrong_where_real and not self.equals(self.call.exact, places):
            return EXPLAINED
        return SILENT

    def _where_it_has_something(self, mistake, answer):
        """Returns where a mistake's result is not 0 due to tokens that the mistake masks; None if that is everywhere."""
        if any(a.shape != p.shape for a, p in zip(answer, self.real, strict=True)):
            return None
        if not any(np.any(n & p) for n, p in zip(self.call.zeros(answer, answer), self.real, strict=True)):
            return None
        other = self.answer_of(mistake, other=True)
        if other is None or any(a.shape != o.shape for a, o in zip(answer, other, strict=True)):
            return None
        nothing = self.call.zeros(answer, other)
        return [p & ~n for p, n in zip(self.real, nothing, strict=True)]

    def is_where_empty(self, mistake, loose=False):
        """Returns whether a mistake's result equals this one in fully masked rows; ``loose`` as in :meth:`equals`."""
        answer = self.answer_of(mistake)
        return answer is not None and (
            self._equals_like(answer, True) or (loose and self._equals_like(answer, True, True))
        )

    def _equals_like(self, answer, empty, loose=False):
        """Returns :meth:`equals` in fully masked rows or outside of them, once for all mistakes with the same result."""
        key = empty, loose, *((a.shape, a.tobytes()) for a in answer)
        if key not in self._equal:
            self._equal[key] = self.equals(answer, self.empty if empty else self.real, loose)
        return self._equal[key]
