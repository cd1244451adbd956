"""Checks of gradients, against finite differences of the oracle or the implementation's own gradients in float64.

If gradients are judged in float64, the implementation's gradients in float64 are the reference for those in other
dtypes in three cases: the mixed batches (examples with different masks) with the fewest and with the most arguments,
and sums that cancel. All other gradients are compared with finite differences of the oracle, in every dtype.
Second derivatives are Hessian-vector products, compared with finite differences of the implementation's gradients in
float64. The Hessian is that of the sum of c (o + o² / 2) over the outputs o with random cotangents c: the square gives
linear functions a nonzero Hessian.
"""

import numpy as np

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.candidates.calling import NotApplicable
from attnpool_ref.conformance.checks import tolerances
from attnpool_ref.conformance.checks.agreement import Finding, changed, failed, same_bits, shown, worse, worst
from attnpool_ref.conformance.checks.subject import cached, oracle_outputs


@cached
def derivatives(subject, case, return_weights):
    """Returns derivatives of the sum of the oracle's outputs times :func:`cotangents_of`, as references.

    They are computed once for float32 and float64, and once for narrow dtypes.

    Returns:
      (directions, along, total): for each floating-point argument a random direction, an array of its shape; for each
      such argument (derivative, uncertainty) along its direction; and the magnitude of the terms that may cancel in the
      derivative.
    """
    floats, objective = subject.floats(case, held=subject.held), _objective(subject, case, return_weights)
    total = objective({}, np.abs)
    directions, base = _directions(case, floats), objective(floats)
    along = {
        key: tolerances.directional_derivative(objective, base, floats, {key: direction}, total, not case.exact)
        for key, direction in directions.items()
    }
    return directions, along, total


@cached
def _sensitivity_of_derivatives(subject, case, return_weights):
    """Returns (moved, more), which the tolerance of a derivative adds to that of its rounding.

    ``moved`` is the change of the derivative along all directions together, per relative change of the inputs, and
    ``more`` what the sensitivity of the results adds to the magnitude of the terms that may cancel.
    """
    cotangents = cotangents_of(subject, case, return_weights)
    more = sum(
        float(np.max(moves, initial=0)) * float(np.sum(np.abs(c)))
        for moves, c in zip(subject.sensitivities(case, return_weights), cotangents, strict=True)
    )
    floats, objective = subject.floats(case, held=subject.held), _objective(subject, case, return_weights)
    directions = _directions(case, floats)

    def slope(arrays):
        ahead, behind = tolerances.difference(objective, arrays, directions)
        return [np.asarray((ahead - behind) / (2 * tolerances.STEP))]

    return tolerances.sensitivity(slope, floats, case.rng(" slopes"))[0].item(), more


def _directions(case, floats):
    rng = case.rng(" directions")
    return {key: rng.standard_normal(value.shape) for key, value in floats.items()}


def _objective(subject, case, return_weights):
    """Returns a function from changed arguments to the sum of the oracle's outputs times cotangents.

    Its second argument is applied to each term; without changed arguments, the outputs are those of the case.
    """
    cotangents, values = cotangents_of(subject, case, return_weights), subject.values(case)

    def objective(arrays, of_term=lambda term: term):
        if arrays:
            outputs = oracle_outputs(subject, values | arrays, case, return_weights)
        else:
            outputs = subject.exact(case, return_weights)
        return float(sum(np.sum(of_term(c * _finite(o))) for c, o in zip(cotangents, outputs, strict=True)))

    return objective


def gradient(subject, case, return_weights=False, reference=None, measured=False):
    """Checks the implementation's gradients; at padding they must be exactly 0.

    In float64, or if ``reference`` is None, they are compared with finite differences of the oracle along a random
    direction, and the sensitivity of the derivative is ``measured``, or only if the error is larger than allowed without
    it. In other dtypes each element is compared with that of ``reference``, the implementation in float64.

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
        return _along_directions(subject, case, return_weights, found, measured)
    return _element_by_element(subject, case, return_weights, reference, found)


def _overflows(subject, case, return_weights, reference):
    """Returns whether an element of the gradient is too large for float16, as can happen if weights nearly cancel.

    ``reference`` is that of :func:`gradient`.
    """
    if subject.dtype != "float16":
        return False
    exact, _ = _in_float64(subject, case, return_weights, reference)
    return any(np.any(np.abs(g) > np.finfo(np.float16).max) for g in exact.values())


def _along_directions(subject, case, return_weights, found, measured):
    directions, along, total = derivatives(subject, case, return_weights)
    moved, more = _sensitivity_of_derivatives(subject, case, return_weights) if measured else (0, 0)
    finding = Finding("gradient", case)
    reduced = subject.reduced_products()
    for key, direction in directions.items():
        if key not in found:
            continue  # a number that the framework cannot differentiate
        product = found[key].astype(np.float64) * direction
        want, doubt = along[key]
        got = float(np.sum(product))
        size = 2 * (float(np.sum(np.abs(product))) + abs(want))  # each element of the gradient is rounded
        doubt = doubt + tolerances.doubt_of_difference(more)
        allowed = doubt + tolerances.allowed_error(
            size, moved + total + more, subject.terms(case), subject.dtype, reduced
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
    if finding.message and not measured:
        return _along_directions(subject, case, return_weights, found, True)
    return finding


def _element_by_element(subject, case, return_weights, reference, found):
    """Compares the gradients ``found`` with those of ``reference``, in float64; returns a finding."""
    finding = Finding("gradient", case)
    exact, sensitive = _in_float64(subject, case, return_weights, reference)
    reduced, dtype = subject.reduced_products(), subject.dtype
    overall = max((float(np.max(np.abs(g), initial=0)) for g in exact.values()), default=0.0)
    nothing = tolerances.allowed_error(0.0, overall, subject.terms(case), "float64")
    rounded = 0.0
    if reduced:  # cotangents that are rounded in a narrow dtype cancel in the gradient of a saturated softmax
        rounded = max(float(np.max(np.abs(c), initial=0)) for c in cotangents_of(subject, case, return_weights))
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
            allowed = allowed + tolerances.EPSILON[dtype] * max(largest, rounded)
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

    Where a result is not finite, they are 0, except in attnpool's own functions, which ignore them there.
    """
    rng, exact = case.rng(" cotangents"), subject.exact(case, return_weights)
    drawn = [np.ones(w.shape) if ones else drawing.narrow({0: rng.standard_normal(w.shape)})[0] for w in exact]
    if subject.whole_contract:
        return drawn
    return [np.where(np.isfinite(w), c, 0) for c, w in zip(drawn, exact, strict=True)]


def gradients(subject, case, situation):
    """Checks the gradients of a call, in some cases also those of the call with weights.

    These are the mixed batch with the most arguments in the first dtype and in float64.
    """
    compared = situation.kind in ("main", "cancelling") and (situation.is_fullest or case.way == "smallest")
    both = situation.kind == "main" and situation.gradients_with_weights
    reference = situation.reference if compared else None
    asked = (False, True) if both else situation.with_weights[:1]
    # a wrong number of results is a finding of the comparison with the oracle
    right = [w for w in asked if len(subject.outputs(case, w)) == len(subject.exact(case, w))]
    return [gradient(subject, case, weights, reference, situation.kind == "main") for weights in right]


def finite_gradients(subject, case, situation):
    """Checks that no gradient is NaN or infinite in cases with extreme scores or numbers, ties, zeros and edges."""
    return_weights = situation.gradients_with_weights
    cotangents = cotangents_of(subject, case, return_weights, ones=True)
    for key, g in subject.gradients(case, cotangents, return_weights).items():
        odd = ~np.isfinite(g.astype(np.float64))
        if np.any(odd):
            return failed("finite gradients", case, f"the gradient of `{key}` is {shown(g, odd)}")
    return Finding("finite gradients", case)


REVERSE, FORWARD = "second derivatives", "forward over reverse"
"""Names of the two guarantees, which are also the names of their checks."""


def reverse_over_reverse(subject, case, situation):
    """Checks the gradient of the gradient along a direction (reverse over reverse), also with NaN in the padding.

    Raises:
      NotApplicable: the array family or the implementation cannot be differentiated twice.
    """
    if subject.adapter.second is None:
        raise NotApplicable(f"{subject.adapter.name} arrays are not differentiated twice here")
    return _held(REVERSE, subject, case, situation.gradients_with_weights, "it cannot be differentiated twice")


def forward_over_reverse(subject, case, situation):
    """Checks forward mode of the gradient (forward over reverse), also with NaN in the padding.

    Raises:
      NotApplicable: forward mode of the array family is not judged, or the implementation has none.
    """
    if not subject.adapter.forward_mode:
        raise NotApplicable(f"forward mode of {subject.adapter.name} arrays is not judged")
    return _held(FORWARD, subject, case, situation.gradients_with_weights, "its gradient has no forward mode")


def _held(check, subject, case, return_weights, refused):
    """Compares Hessian-vector products with finite differences of gradients, and bit for bit with NaN in the padding.

    Raises:
      NotApplicable: the implementation raises an error; the reason begins with ``refused``.
    """
    known = _differences(subject, case, return_weights)
    if known is None:
        return None  # the gradient is not finite, which another check reports
    want, doubt, directions = known
    cotangents = cotangents_of(subject, case, return_weights)

    def products(case):
        try:
            return subject.second_derivatives(case, cotangents, return_weights, directions, check == FORWARD)
        except Exception as error:  # any error of the implementation
            words = f"{type(error).__name__}: {str(error).partition(chr(10))[0][:120]}"
            raise NotApplicable(f"{refused} ({words})") from error

    found = products(case)
    finding = Finding(check, case)
    largest = max((float(np.max(np.abs(w), initial=0)) for w in want.values()), default=0.0)
    for key, product in found.items():
        if key not in want:
            continue  # a number that the framework cannot differentiate
        words = f"the second derivative by `{key}`"
        if not np.all(np.isfinite(product)):
            return failed(check, case, f"{words} is {shown(product, ~np.isfinite(product))}")
        allowed = doubt[key] + tolerances.allowed_error(np.abs(want[key]), largest, case.terms(), "float64")
        unit = tolerances.EPSILON["float64"] * (largest or 1)
        finding = worst(finding, np.abs(product - want[key]), allowed, unit, words, product, want[key])
    bad = drawing.poisoned(case, np.nan)
    if finding.message or bad is None:
        return finding
    for key, product in products(bad).items():
        if not same_bits(product, found[key]):
            message = changed(f"the second derivative by `{key}`", found[key], product)
            return failed(check, bad, f"{message} where NaN stands in the padding")
    return finding


@cached
def _differences(subject, case, return_weights):
    """Returns (differences of gradients, uncertainties, directions) by argument; None if a gradient is not finite."""
    rng, floats = case.rng(" second"), subject.floats(case)
    cotangents = cotangents_of(subject, case, return_weights)
    directions = {key: rng.standard_normal(value.shape) for key, value in floats.items()}

    def gradient(arrays):
        moved = case.with_values("", **arrays)
        outputs = subject.outputs(moved, return_weights)
        bent = [c * (1 + np.where(c == 0, 0, o)) for c, o in zip(cotangents, outputs, strict=True)]
        return {k: g for k, g in subject.gradients(moved, bent, return_weights).items() if k in floats}

    base = gradient(floats)
    names = list(base)
    floats = {name: floats[name] for name in names}  # without numbers that the framework cannot differentiate
    directions = {name: directions[name] for name in names}
    if not all(np.all(np.isfinite(g)) for g in base.values()):
        return None
    moved = tolerances.sensitivity(
        lambda arrays: list(gradient(arrays).values()), floats, rng, [base[name] for name in names]
    )
    total = max((float(np.max(np.abs(base[n]) + m, initial=0)) for n, m in zip(names, moved, strict=True)), default=0.0)
    rounding = tolerances.allowed_error(0.0, total, case.terms(), "float64")
    found = tolerances.derivative_of_arrays(gradient, floats, directions, rounding)
    return {n: value for n, (value, _) in found.items()}, {n: doubt for n, (_, doubt) in found.items()}, directions
