"""Table of all checks: the name of each, its function, and the cases to which it applies.

A check of a case is called with a :class:`~attnpool_ref.conformance.checks.subject.Subject` (an implementation in one
dtype), a case and its :class:`~attnpool_ref.conformance.checks.situation.Situation` (:data:`AGREEMENT` also with the
value of ``return_weights``), and returns a :class:`~attnpool_ref.conformance.checks.agreement.Finding`, a list of them,
or None if it does not apply to the case. :data:`~attnpool_ref.conformance.report.promises.PROMISES` describes each
guarantee, the check that judges it, and which other guarantees explain its failure.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from attnpool_ref.conformance.checks import (
    definition,
    gradients,
    hazards,
    invariances,
    purity,
    second_derivatives,
    transformations,
)
from attnpool_ref.conformance.checks.situation import Situation, situation_of

__all__ = ["AGREEMENT", "CHECKS", "Check", "Situation", "situation_of"]


@dataclass(frozen=True)
class Check:
    """A check: ``run`` is its function; ``applies``, which takes the Situation, returns whether it is called."""

    run: Callable[..., Any]
    applies: Callable[..., bool]


# fmt: off
AGREEMENT = Check(definition.agreement_by_guarantee, lambda s: True)  # values, weights, shape, dtype, ties, extremes …

CHECKS = {
    "empty rows":              Check(hazards.empty_rows, lambda s: s.is_main or s.is_shape),
    "gradient":                Check(gradients.gradients, lambda s: s.differentiated),
    "finite gradients":        Check(gradients.finite_gradients, lambda s: s.kind in ("extreme", "exact") and s.differentiable),
    "NaN in padding":          Check(partial(hazards.in_padding, "NaN"), lambda s: s.masked and (s.is_main or s.kind == "form" or (s.laws and s.is_shape))),
    "inf in padding":          Check(partial(hazards.in_padding, "inf"), lambda s: s.masked and s.is_main),
    "-inf in padding":         Check(partial(hazards.in_padding, "-inf"), lambda s: s.masked and s.is_main),
    "1e30 in padding":         Check(partial(hazards.in_padding, "1e30"), lambda s: s.masked and s.is_main),
    "second derivatives":      Check(second_derivatives.reverse_over_reverse, lambda s: s.differentiated_twice),
    "forward over reverse":    Check(second_derivatives.forward_over_reverse, lambda s: s.differentiated_twice),
    "poison in shared arrays": Check(hazards.poison_in_shared_arrays, lambda s: s.laws and s.is_shape),
    "padding amount":          Check(invariances.appending, lambda s: s.laws and s.is_main and s.masked and s.is_simple),
    "padding side":            Check(invariances.siding, lambda s: s.laws and s.is_shape),
    "deleting":                Check(invariances.deleting, lambda s: s.laws and s.is_shape),
    "permuting":               Check(invariances.permuting, lambda s: s.laws and s.is_main),
    "shifting":                Check(invariances.shifting, lambda s: s.laws and s.is_main),
    "batch mates":             Check(hazards.batch_mates, lambda s: s.laws and s.is_main),
    "NaN at a real token":     Check(hazards.not_finite_stays_in_its_example, lambda s: s.laws and s.is_main),
    "return_weights":          Check(hazards.weights_change_nothing, lambda s: s.weights and (s.is_main or s.is_shape)),
    "purity":                  Check(purity.repeated_calls, lambda s: s.is_plain or s.is_repeated),
    "jit and vmap":            Check(transformations.traced, lambda s: s.laws and s.is_main and s.is_fullest and s.family == "jax"),
    "split over devices":      Check(transformations.over_devices, lambda s: s.laws and s.is_main and s.is_fullest and s.family == "jax" and s.masked),
    "one program":             Check(transformations.compiles_once, lambda s: s.laws and s.is_main and s.is_simple and s.family == "jax"),
}
# fmt: on
"""Checks of each case, in the order in which they run, after :data:`AGREEMENT`; long sums have cases of their own."""
