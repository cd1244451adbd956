"""One call of a function, and the oracle's results for changed arguments."""

from dataclasses import replace
from functools import cached_property

import numpy as np

import attnpool_ref
from attnpool_ref import contract
from attnpool_ref.conformance.cases import SEQUENCES
from attnpool_ref.conformance.causes.normalization import Normalization
from attnpool_ref.conformance.checks.subject import oracle_outputs

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
        self.got, self._normalization = None, None
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

    def normalization(self, softmax=True):
        """Returns the :class:`Normalization` of the call, or None if it does not normalize weights.

        With ``softmax`` it is also None if the call normalizes weights other than by a softmax, or if it gives lengths
        in place of a mask (arguments of the kind "lengths").
        """
        if not Normalization.is_of(self, softmax):
            return None
        if self._normalization is None:
            self._normalization = Normalization(self)
        return self._normalization

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
        own = [[axis for axis in axes if axis not in BATCH] for axes in (*self.row.results, *self.row.weight_results)]
        axis, any_rank = self.case.options.get("axis", -1), "axis" in self.row.options
        return [
            _all_zero(a, axis if axes or any_rank else ()) & _all_zero(b, axis if axes or any_rank else ())
            for a, b, axes in zip(answer, other, own[: len(answer)], strict=True)
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
