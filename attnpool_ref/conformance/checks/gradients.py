"""Checks of gradients, against finite differences of the oracle or the implementation's own gradients in float64.

If gradients are judged in float64, the implementation's gradients in float64 are the reference for those in other
dtypes in three cases: the mixed batches (examples with different masks) with the fewest and with the most arguments,
and sums that cancel. All other gradients are compared with finite differences of the oracle, in every dtype.
"""

from dataclasses import dataclass

import numpy as np

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.checks import tolerances
from attnpool_ref.conformance.checks.agreement import Finding, failed, shown, worse, worst
from attnpool_ref.conformance.checks.optional_checks import CONTRACT
from attnpool_ref.conformance.checks.subject import cached, oracle_outputs


@dataclass
class Derivatives:
    """Reference derivatives of one case: of the sum of the oracle's outputs times :func:`cotangents_of`.

    Attributes:
      directions: for each floating-point argument a random direction, an array of its shape.
      along: for each such argument (derivative, uncertainty) along its direction.
      moved: the sensitivity: the change of the derivative along all directions together, per relative change of the
        inputs.
      total: the magnitude of the terms that may cancel in the derivative.
    """

    directions: dict
    along: dict
    moved: float
    total: float


@cached
def derivatives(subject, case, return_weights):
    """Returns the :class:`Derivatives` of a case, computed once for float32 and float64, and once for narrow dtypes."""
    rng, exact = case.rng(" directions"), subject.exact(case, return_weights)
    cotangents = cotangents_of(subject, case, return_weights)
    values, floats = subject.values(case), subject.floats(case, held=subject.held)

    def objective(arrays):
        outputs = oracle_outputs(subject, values | arrays, case, return_weights)
        return float(sum(np.sum(c * _finite(o)) for c, o in zip(cotangents, outputs, strict=True)))

    # Terms that cancel in a derivative are about as large as those of the objective.
    total = float(sum(np.sum(np.abs(c * _finite(w))) for c, w in zip(cotangents, exact, strict=True))) + sum(
        float(np.max(moves, initial=0)) * float(np.sum(np.abs(c)))
        for moves, c in zip(subject.sensitivities(case, return_weights), cotangents, strict=True)
    )
    directions = {key: rng.standard_normal(value.shape) for key, value in floats.items()}
    moved = tolerances.sensitivity(
        lambda arrays: [np.asarray(tolerances.slope(objective, arrays, directions))],
        floats,
        rng,
    )[0].item()
    base = objective(floats)
    along = {
        key: tolerances.directional_derivative(objective, base, floats, {key: direction}, total, not case.exact)
        for key, direction in directions.items()
    }
    return Derivatives(directions, along, moved, total)


def gradient(subject, case, return_weights=False, reference=None):
    """Checks the implementation's gradients; at padding they must be exactly 0.

    In float64, or if ``reference`` is None, they are compared with finite differences of the oracle along a random
    direction. In other dtypes each element is compared with that of ``reference``, the implementation in float64.

    Returns:
      A finding; None if an output is not of floats, or if an element of the gradient of ``reference`` is too large for
      float16, the judged dtype.
    """
    check = "gradient"
    if any(w.dtype.kind != "f" for w in subject.exact(case, return_weights)):
        return None
    if reference is not None and _overflows(subject, case, return_weights, reference):
        return None
    cotangents = cotangents_of(subject, case, return_weights)
    found = subject.gradients(case, cotangents, return_weights)
    for key, value in found.items():
        g = value.astype(np.float64)
        if not np.all(np.isfinite(g)):
            return failed(check, case, f"the gradient of `{key}` is {shown(g, ~np.isfinite(g))}")
        pad = drawing.padding(case, key)
        if pad is not None and np.any(g[pad] != 0):
            text = shown(g, pad & (g != 0))
            return failed(check, case, f"the gradient of `{key}` is {text}, not 0 at padding")
    if reference is None or subject.dtype == "float64":
        return _along_directions(subject, case, return_weights, found)
    return _element_by_element(subject, case, return_weights, reference, found)


def _overflows(subject, case, return_weights, reference):
    """Returns whether an element of the gradient is too large for float16, as can happen if weights nearly cancel.

    ``reference`` is that of :func:`gradient`.
    """
    if subject.dtype != "float16":
        return False
    exact, _ = _in_float64(subject, case, return_weights, reference)
    return any(np.any(np.abs(g) > np.finfo(np.float16).max) for g in exact.values())


def _along_directions(subject, case, return_weights, found):
    exact = derivatives(subject, case, return_weights)
    finding = Finding("gradient", case)
    reduced = subject.reduced_products()
    for key, direction in exact.directions.items():
        if key not in found:
            continue  # a number that the framework cannot differentiate
        product = found[key].astype(np.float64) * direction
        want, doubt = exact.along[key]
        got = float(np.sum(product))
        size = 2 * (float(np.sum(np.abs(product))) + abs(want))  # each element of the gradient is rounded
        allowed = doubt + tolerances.allowed_error(
            size, exact.moved + exact.total, subject.terms(case), subject.dtype, reduced
        )
        unit = tolerances.EPSILON[subject.dtype] * (size or 1)
        finding = worse(
            finding,
            abs(got - want) / unit,
            allowed / unit,
            lambda key=key, got=got, want=want: (
                f"the gradient of `{key}` along a direction is {got:.9g}, needs {want:.9g}"
            ),
        )
    return finding


def _element_by_element(subject, case, return_weights, reference, found):
    """Compares the gradients ``found`` with those of ``reference``, in float64; returns a finding."""
    finding = Finding("gradient", case)
    exact, sensitive = _in_float64(subject, case, return_weights, reference)
    reduced, dtype = subject.reduced_products(), subject.dtype
    overall = max((float(np.max(np.abs(g), initial=0)) for g in exact.values()), default=0.0)
    nothing = tolerances.allowed_error(0.0, overall, subject.terms(case), "float64")
    for key, g in found.items():
        if key not in exact:
            continue  # a number that the framework cannot differentiate in float64
        want = exact[key]
        size, g = np.abs(want), g.astype(np.float64)
        largest = float(np.max(size, initial=0))
        if largest <= nothing:
            largest = overall  # the gradient is only rounding error, like that of a bias that cancels in a softmax
        # An argument that is used twice has two terms in its gradient. Both may be as large as the gradient's largest
        # element, and they may cancel; in a narrow dtype each is rounded.
        moved = sensitive[key] + largest
        allowed = tolerances.LEAST[dtype] + tolerances.allowed_error(size, moved, subject.terms(case), dtype, reduced)
        if subject.is_narrow:
            allowed = allowed + tolerances.EPSILON[dtype] * largest
        unit = tolerances.EPSILON[dtype] * (largest or 1)
        finding = worst(finding, np.abs(g - want), allowed, unit, f"the gradient of `{key}`", g, want)
    return finding


@cached
def _in_float64(subject, case, return_weights, reference):
    """Returns (gradients, sensitivities) of ``reference``, the implementation in float64, by argument.

    The inputs have the same numbers, rounded to the dtype of ``subject``.
    """
    cotangents, rng = cotangents_of(subject, case, return_weights), case.rng(" gradients")
    floats = subject.floats(case)
    base = reference.gradients(case.with_values("", **floats), cotangents, return_weights)
    sensitive = {name: np.zeros(value.shape) for name, value in base.items()}
    for _ in range(tolerances.TRIALS):
        moved = {
            name: v if name in case.exact else v * (1 + tolerances.PROBE * rng.standard_normal(v.shape))
            for name, v in floats.items()
        }
        turned = [c * (1 + tolerances.PROBE * rng.standard_normal(c.shape)) for c in cotangents]
        found = reference.gradients(case.with_values("", **moved), turned, return_weights)
        for name, value in found.items():
            sensitive[name] = np.maximum(sensitive[name], np.abs(value - base[name]) / tolerances.PROBE)
    return base, sensitive


def _finite(output):
    """Returns an output with 0 where it is not finite: derivatives are those of the other elements."""
    return np.where(np.isfinite(output), output, 0)


def cotangents_of(subject, case, return_weights, ones=False):
    """Returns a cotangent for each output: of 1, or of random numbers that are exact in every dtype.

    Where a result is not finite, they are 0 unless the option ``contract`` requires that they are ignored there.
    """
    rng, exact = case.rng(" cotangents"), subject.exact(case, return_weights)
    drawn = [np.ones(w.shape) if ones else drawing.narrow({0: rng.standard_normal(w.shape)})[0] for w in exact]
    if CONTRACT in subject.demands:
        return drawn
    return [np.where(np.isfinite(w), c, 0) for c, w in zip(drawn, exact, strict=True)]


def gradients(subject, case, situation):
    """Checks the gradients of a call, in some cases also those of the call with weights.

    These are the mixed batch with the most arguments in the first dtype and in float64.
    """
    compared = situation.kind in ("main", "cancelling") and (situation.is_fullest or situation.title == "smallest")
    both = situation.is_main and situation.gradients_with_weights
    reference = situation.reference if compared else None
    asked = (False, True) if both else (False,)
    # a wrong number of results is a finding of the comparison with the oracle
    right = [w for w in asked if len(subject.outputs(case, w)) == len(subject.exact(case, w))]
    return [gradient(subject, case, weights, reference) for weights in right]


def finite_gradients(subject, case, situation):
    """Checks that no gradient is NaN or infinite in cases with extreme scores or numbers, ties, zeros and edges."""
    return_weights = situation.gradients_with_weights
    cotangents = cotangents_of(subject, case, return_weights, ones=True)
    for key, g in subject.gradients(case, cotangents, return_weights).items():
        odd = ~np.isfinite(g.astype(np.float64))
        if np.any(odd):
            return failed("finite gradients", case, f"the gradient of `{key}` is {shown(g, odd)}")
    return Finding("finite gradients", case)
