"""Checks of second derivatives: Hessian-vector products, against finite differences of the implementation's gradients.

The Hessian is that of the sum of c (o + o² / 2) over the outputs o with random cotangents c. The square gives linear
functions a nonzero Hessian. All is computed in float64.
"""

import functools
from dataclasses import replace

import numpy as np

from attnpool_ref.conformance.candidates import has_parameter
from attnpool_ref.conformance.candidates.calling import NotApplicable
from attnpool_ref.conformance.checks import hazards, tolerances
from attnpool_ref.conformance.checks.agreement import Finding, changed, failed, shown, worst
from attnpool_ref.conformance.checks.gradients import cotangents_of
from attnpool_ref.conformance.checks.subject import Subject, cached

REVERSE, FORWARD = "second derivatives", "forward over reverse"
"""Names of the two guarantees, which are also the names of their checks."""

INSTEAD = 'implementation="einsum"'
"""Text that an error of forward mode must contain, for a function that takes ``implementation``."""


def reverse_over_reverse(subject, case, situation):
    """Checks the gradient of the gradient along a direction (reverse over reverse), also with NaN in the padding.

    Raises:
      NotApplicable: the array family or the implementation cannot be differentiated twice.
    """
    if subject.adapter.second is None:
        raise NotApplicable(f"{subject.adapter.name} arrays are not differentiated twice here")
    products = _or_not_asked(_products(subject, False), "it cannot be differentiated twice")
    return _held(REVERSE, subject, case, situation.gradients_with_weights, products)


def forward_over_reverse(subject, case, situation):
    """Checks forward mode of the gradient (forward over reverse) in a direct call, also with NaN in the padding.

    A function that takes ``implementation`` must have it, also with "einsum", and with "einsum" forward mode of the
    jitted function itself. If the latter raises an error without "einsum", this must be a TypeError that names
    ``implementation="einsum"``.

    Raises:
      NotApplicable: forward mode of the array family is not judged, or a function without ``implementation`` has none.
    """
    if subject.adapter.refusal is None:
        raise NotApplicable(f"forward mode of {subject.adapter.name} arrays is not judged")
    if not has_parameter(subject.function, "implementation"):
        products = _or_not_asked(_products(subject, True), "its gradient has no forward mode")
        return _held(FORWARD, subject, case, situation.gradients_with_weights, products)
    candidate = replace(subject.candidate, target=functools.partial(subject.function, implementation="einsum"))
    einsum = Subject(subject.row, candidate, subject.adapter, subject.dtype, watch=subject.watch)
    einsum.cache, einsum.skipped = subject.cache, subject.skipped
    return_weights = situation.gradients_with_weights
    found = [_held(FORWARD, subject, case, return_weights, _products(subject, True))]
    if found[0] is not None:
        found.append(_held(FORWARD, einsum, case, return_weights, _products(einsum, True), f"with {INSTEAD} "))
    refusal, message = subject.forward_refusal(case, return_weights), "forward mode of a jit around it"
    if not (refusal is None or (isinstance(refusal, TypeError) and INSTEAD in str(refusal))):
        message = f"{message} raises {_words(refusal)}, needs a TypeError that names {INSTEAD}"
        found.append(failed(FORWARD, case, message))
    refusal, message = einsum.forward_refusal(case, return_weights), f"forward mode of a jit around it with {INSTEAD}"
    if refusal is not None:
        found.append(failed(FORWARD, case, f"{message} raises {_words(refusal)}"))
    return found


def _products(subject, forward):
    return functools.partial(subject.second_derivatives, forward=forward)


def _or_not_asked(products, words):
    """Returns the function ``products``, but any error becomes a :class:`NotApplicable` that begins with ``words``."""

    def asked(*args, **kwargs):
        try:
            return products(*args, **kwargs)
        except Exception as error:
            raise NotApplicable(f"{words} ({_words(error)})") from error

    return asked


def _words(error):
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0][:120]}"


def _held(check, subject, case, return_weights, products, name=""):
    """Compares Hessian-vector products, the results of ``products``, with finite differences of gradients.

    They are also compared, bit for bit, with those for NaN in the padding. ``name`` is a clause for messages.
    """
    known = _differences(subject, case, return_weights)
    if known is None:
        return None  # the gradient is not finite, which another check reports
    want, doubt, directions = known
    cotangents = cotangents_of(subject, case, return_weights)
    found = products(case, cotangents, return_weights, directions)
    finding = Finding(check, case)
    largest = max((float(np.max(np.abs(w), initial=0)) for w in want.values()), default=0.0)
    for key, product in found.items():
        if key not in want:
            continue  # a number that the framework cannot differentiate
        words = f"the second derivative {name}by `{key}`"
        if not np.all(np.isfinite(product)):
            return failed(check, case, f"{words} is {shown(product, ~np.isfinite(product))}")
        allowed = doubt[key] + tolerances.allowed_error(np.abs(want[key]), largest, case.terms(), "float64")
        unit = tolerances.EPSILON["float64"] * (largest or 1)
        finding = worst(finding, np.abs(product - want[key]), allowed, unit, words, product, want[key])
    bad = hazards.poisoned(case, np.nan)
    if finding.message or bad is None:
        return finding
    for key, product in products(bad, cotangents, return_weights, directions).items():
        if not hazards.same_bits(product, found[key]):
            message = changed(f"the second derivative {name}by `{key}`", found[key], product)
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
