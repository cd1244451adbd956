"""Table of all checks: the name of each, its function, and the properties of the cases to which it applies.

A check of a case is called with a :class:`~attnpool_ref.conformance.checks.subject.Subject` (an implementation in one
dtype), a case and its :class:`~attnpool_ref.conformance.checks.Situation`, and returns a
:class:`~attnpool_ref.conformance.checks.agreement.Finding`, a list of them, or None if it does not apply to the case.
Each finding names its guarantee. The name of a check is that of the guarantee that is broken if the check raises an
error. :data:`~attnpool_ref.conformance.report.guarantees.GUARANTEES` describes each guarantee, the check that judges it, and
which other guarantees explain its failure.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.checks import gradients, invariances, padding, purity, transformations

GRADIENT_SHAPES = (drawing.WITHOUT_TOKENS, "shared", "no batch", drawing.MANY_TOKENS)
"""Shapes besides the mixed batch in which gradients are checked: no tokens, sums over examples, one example, many."""

SIMPLE = ("smallest", "fullest")
"""The ways with the fewest arguments (the required ones and the masks) and with the most."""


@dataclass(frozen=True)
class Situation:
    """Properties of a case that are known before any check runs.

    Attributes:
      subject: the :class:`~attnpool_ref.conformance.checks.subject.Subject`.
      case: the case.
      kind: one of :data:`~attnpool_ref.conformance.cases.KINDS`.
      first: whether the dtype is the first one of the scope; many checks run only in this one.
      gradients: whether gradients are checked.
      laws: whether results are compared with other results of the implementation, as in checks of invariances.
      reference: the implementation in float64, if its gradients are judged in float64; else None.
    """

    subject: Any
    case: Any
    kind: str
    first: bool
    gradients: bool
    laws: bool
    reference: Any

    @cached_property
    def most(self):
        """The way with the most arguments that the implementation takes."""
        return drawing.fullest_way(self.subject.row, self.subject.calling.restrict)

    @property
    def in_float64(self):
        """Whether gradients are compared with finite differences in any case, and second derivatives are checked."""
        return self.subject.dtype == "float64"

    @cached_property
    def weights(self):
        """Whether the implementation can return the weights."""
        return self.subject.takes_weights()

    @cached_property
    def masked(self):
        """Whether the case has a mask, and the implementation is called with padding, not with packed tokens."""
        return bool(drawing.masked_axes(self.case)) and self.subject.candidate.mask_form != "segments"

    @property
    def with_weights(self):
        """The values of ``return_weights`` with which the case is called."""
        if self.kind in ("way", "mixed", "integers"):
            return (False,)
        if self.kind in ("form", "precise") or (self.kind == "shape" and self.case.shape != drawing.WITHOUT_TOKENS):
            return (self.weights,)
        return (False, True) if self.weights else (False,)

    @property
    def is_simple(self):
        """Whether the case passes the fewest or the most arguments."""
        return self.case.way in SIMPLE

    @property
    def is_plain(self):
        """Whether the case is a mixed batch with the fewest arguments, with the most, or with the most but masks."""
        return self.kind == "main" and self.case.way in (*SIMPLE, "everything but masks")

    @property
    def is_repeated(self):
        """Whether the call is repeated with the same arguments, or, at length 0, made once more to see its warnings."""
        return (self.laws and self.kind in ("main", "way", "form")) or self.case.shape == drawing.WITHOUT_TOKENS

    @property
    def is_fullest(self):
        """Whether the case passes the most arguments that the implementation takes."""
        return self.case.way == self.most

    @property
    def differentiable(self):
        """Whether gradients are computed.

        To compile less, they are computed for all calls only in the first dtype. In other dtypes they are computed for
        the call with the most arguments, and in float64 also for the one with the fewest.
        """
        configurations = self.first or self.is_fullest or (self.in_float64 and self.case.way == "smallest")
        return self.gradients and configurations and bool(self.subject.floats(self.case, ("data", "parameter")))

    @property
    def differentiated(self):
        """Whether the gradients of the case are compared."""
        row = self.case.row
        if not self.differentiable or self.case.options.get(row.surrogate):
            return False  # by design the gradient is not the derivative of the values
        if self.kind == "shape":
            return self.case.shape == drawing.WITHOUT_TOKENS or (self.is_fullest and self.case.shape in GRADIENT_SHAPES)
        if self.kind == "main":
            more = self.most == "fullest"  # the call with all arguments is also drawn without masks
            less = self.case.way == "without numbers" or (more and self.case.way == "without masks")
            return not less and (self.laws or self.case.way != "everything but masks")
        return self.kind in ("cancelling", "tied")

    @property
    def differentiated_twice(self):
        """Whether second derivatives are checked: only for the call with the most arguments, in float64."""
        return self.in_float64 and self.differentiated and self.kind == "main" and self.is_fullest

    @property
    def gradients_with_weights(self):
        """Whether the call that returns the weights is differentiated."""
        return self.weights and self.is_fullest and (self.first or self.in_float64)


__all__ = ["CHECKS", "Check", "Situation"]


@dataclass(frozen=True)
class Check:
    """A check: ``run`` is its function; ``applies``, which takes the Situation, returns whether it is called."""

    run: Callable[..., Any]
    applies: Callable[..., bool]


# fmt: off
CHECKS = {
    "empty rows":              Check(padding.empty_rows, lambda s: s.kind in ("main", "shape")),
    "gradient":                Check(gradients.gradients, lambda s: s.differentiated),
    "finite gradients":        Check(gradients.finite_gradients, lambda s: s.kind in ("extreme", "exact") and s.differentiable),
    "NaN in padding":          Check(partial(padding.in_padding, "NaN"), lambda s: s.masked and (s.kind in ("main", "form") or (s.laws and s.kind == "shape"))),
    "inf in padding":          Check(partial(padding.in_padding, "inf"), lambda s: s.masked and s.kind == "main"),
    "-inf in padding":         Check(partial(padding.in_padding, "-inf"), lambda s: s.masked and s.kind == "main"),
    "1e30 in padding":         Check(partial(padding.in_padding, "1e30"), lambda s: s.masked and s.kind == "main"),
    "second derivatives":      Check(gradients.reverse_over_reverse, lambda s: s.differentiated_twice),
    "forward over reverse":    Check(gradients.forward_over_reverse, lambda s: s.differentiated_twice),
    "poison in shared arrays": Check(padding.poison_in_shared_arrays, lambda s: s.laws and s.kind == "shape"),
    "padding amount":          Check(invariances.appending, lambda s: s.laws and s.kind == "main" and s.masked and s.is_simple),
    "padding side":            Check(invariances.siding, lambda s: s.laws and s.kind == "shape"),
    "deleting is masking":     Check(invariances.deleting, lambda s: s.laws and s.kind == "shape"),
    "permuting":               Check(invariances.permuting, lambda s: s.laws and s.kind == "main"),
    "shifting the scores":     Check(invariances.shifting, lambda s: s.laws and s.kind == "main"),
    "batch mates":             Check(invariances.batch_mates, lambda s: s.laws and s.kind == "main"),
    "NaN at a real token":     Check(invariances.not_finite_stays_in_its_example, lambda s: s.laws and s.kind == "main"),
    "return_weights":          Check(invariances.weights_change_nothing, lambda s: s.kind in ("main", "shape") and s.with_weights == (False, True)),
    "inputs unchanged":        Check(purity.repeated_calls, lambda s: s.is_plain or s.is_repeated),
    "jit and vmap":            Check(transformations.traced, lambda s: s.laws and s.kind == "main" and s.is_fullest and s.subject.adapter.name == "jax"),
    "one program":             Check(transformations.compiles_once, lambda s: s.laws and s.kind == "main" and s.is_simple and s.subject.adapter.name == "jax"),
}
# fmt: on
"""Checks of each case, in the order in which they run, after the comparison with the definition.

Long sums have cases of their own.
"""
