"""Properties of a case that decide which checks apply to it.

Most cases are a mixed batch: five examples with different masks.
"""

from dataclasses import dataclass
from typing import Any

from attnpool_ref.conformance import cases as drawing

GRADIENT_SHAPES = ("length 0", "shared", "no batch", "batch (2, 1, 3)", "batch of 101")
"""Shapes besides the mixed batch in which gradients are checked: no tokens, sums over examples, other ranks, many."""

SIMPLE = ("smallest", "fullest")
"""Titles of the mixed batches with the fewest arguments (the required ones and the masks) and with the most."""


@dataclass(frozen=True)
class Situation:
    """Properties of a case that are known before any check runs.

    Attributes:
      kind: one of :data:`~attnpool_ref.conformance.cases.KINDS`.
      title: the case's title.
      most: the title of the configuration with the most arguments that the implementation takes.
      first: whether the dtype is the first one of the scope; many checks run only in this one.
      measure: whether the dtype is float64, in which gradients are always compared with finite differences, and second
        derivatives are checked.
      weights: whether the implementation can return the weights.
      gradients: whether gradients are checked.
      laws: whether results are compared with other results of the implementation, as in checks of invariances.
      floating: whether the case has floating-point data.
      masked: whether the case has a mask, and the implementation is called with padding, not with packed tokens.
      surrogate: whether the gradient is by design not the derivative of the values.
      degenerate: whether the function normalizes vectors and they have width 1: normalized they are ±1, without a
        gradient.
      reference: the implementation in float64, if its gradients are judged in float64; else None.
      family: the name of the array family of the implementation.
    """

    kind: str
    title: str
    most: str
    first: bool
    measure: bool
    weights: bool
    gradients: bool
    laws: bool
    floating: bool
    masked: bool
    surrogate: bool
    degenerate: bool
    reference: Any
    family: str

    @property
    def with_weights(self):
        """The values of ``return_weights`` with which the case is called."""
        if self.kind in ("way", "mixed", "integers"):
            return (False,)
        if self.kind in ("form", "precise"):
            return (self.weights,)
        return (False, True) if self.weights else (False,)

    @property
    def is_main(self):
        """Whether the case is a mixed batch of ordinary numbers."""
        return self.kind == "main"

    @property
    def is_shape(self):
        """Whether the case has another shape than the mixed batch."""
        return self.kind == "shape"

    @property
    def is_simple(self):
        """Whether the case passes the fewest or the most arguments."""
        return self.title in SIMPLE

    @property
    def is_plain(self):
        """Whether the case is a mixed batch with the fewest arguments, with the most, or with the most but masks."""
        return self.is_main and self.title in (*SIMPLE, "everything but masks")

    @property
    def is_repeated(self):
        """Whether the call is repeated with the same arguments, or, at length 0, made once more to see its warnings."""
        return (self.laws and self.kind in ("main", "way", "form")) or (
            self.is_shape and self.title.endswith("length 0")
        )

    @property
    def is_fullest(self):
        """Whether the case passes the most arguments that the implementation takes."""
        return self.title.split(", ")[0] == self.most

    @property
    def differentiable(self):
        """Whether gradients are computed.

        To compile less, they are computed for all calls only in the first dtype. In other dtypes they are computed for
        the call with the most arguments, and in float64 also for the one with the fewest.
        """
        configurations = self.first or self.is_fullest or (self.measure and self.title.startswith("smallest"))
        return self.gradients and self.floating and configurations

    @property
    def differentiated(self):
        """Whether the gradients of the case are compared."""
        if not self.differentiable or self.surrogate:
            return False
        if self.is_shape:
            whole = self.is_fullest or self.title.endswith("length 0")
            return whole and self.title.endswith(GRADIENT_SHAPES) and not self.degenerate
        if self.is_main:
            more = self.most == "fullest"  # the call with all arguments is also drawn without masks
            less = self.title == "without numbers" or (more and self.title == "without masks")
            return not less and (self.laws or self.title != "everything but masks")
        return self.kind in ("cancelling", "tied")

    @property
    def differentiated_twice(self):
        """Whether second derivatives are checked: only for the call with the most arguments, in float64."""
        return self.measure and self.differentiated and self.is_main and self.is_fullest

    @property
    def gradients_with_weights(self):
        """Whether the call that returns the weights is differentiated."""
        return self.weights and self.is_fullest and (self.first or self.measure)


def situation_of(subject, case, kind, first, gradients, laws, reference):
    """Returns the :class:`Situation` of a case; the arguments from ``kind`` on are fields of it."""
    return Situation(
        kind,
        case.title,
        drawing.fullest_way(subject.row, subject.calling.restrict),
        first,
        subject.dtype == "float64",
        subject.takes_weights(),
        gradients,
        laws,
        bool(subject.floats(case, ("data", "parameter"))),
        bool(drawing.masked_axes(case)) and subject.candidate.mask_form != "segments",
        bool(case.options.get(case.row.surrogate)),
        bool(case.row.norms) and "widths of 1" in case.title,
        reference,
        subject.adapter.name,
    )
