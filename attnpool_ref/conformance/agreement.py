"""Results and gradients against the oracle.

Each check of the kit works on one :class:`~attnpool_ref.conformance.subject.Subject` (a candidate for one row, in one
dtype) and one case, and returns None or a :class:`Finding`.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance import tolerances
from attnpool_ref.conformance.subject import oracle_outputs


@dataclass
class Finding:
    """What one check measured: in units of epsilon where it is an error, and a message where it failed.

    ``aspect`` says what of a comparison failed: "values", "weights", "shape" or "dtype".
    """

    check: str
    case: Any
    error: float = 0.0
    allowed: float = 0.0
    message: str = ""
    aspect: str = "values"


def agreement(subject, case, return_weights=False, got=None):
    """The candidate's results, their shape and dtype, against the oracle's on the same arguments."""
    got = subject.outputs(case, return_weights) if got is None else got
    want = subject.exact(case, return_weights)
    return compare(subject, case, "agreement with the oracle", got, want, return_weights)


def compare(subject, case, check, got, want, return_weights):
    """Results against exact ones under the allowed error; the worst output as a finding."""
    dtype = subject.dtype
    if len(got) != len(want):
        return Finding(check, case, np.inf, 0, f"returns {len(got)} arrays, needs {len(want)}", "shape")
    sensitive = subject.sensitivities(case, return_weights)
    finding = Finding(check, case)
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        name = f"output {i + 1} of {len(got)}" if len(got) > 1 else "the result"
        aspect = "weights" if i >= len(subject.row.results) else "values"
        if g.shape != w.shape:
            return Finding(check, case, np.inf, 0, f"{name} has shape {g.shape}, needs {w.shape}", "shape")
        if w.dtype == bool:
            if g.dtype != bool or np.any(g != w):
                return Finding(check, case, np.inf, 0, f"{name} is {g.tolist()}, needs {w.tolist()}")
            continue
        if g.dtype.name != dtype:
            return Finding(check, case, np.inf, 0, f"{name} has dtype {g.dtype}, needs {dtype}", "dtype")
        g = g.astype(np.float64)
        limit = np.finfo(np.float32).max if dtype == "bfloat16" else np.finfo(dtype).max
        if dtype != "float64":
            w = np.where(np.abs(w) > limit, np.copysign(np.inf, w), w)  # what the dtype makes of it
        odd = ~np.isfinite(w)
        if np.any(np.isnan(g) != np.isnan(w)) or np.any(g[odd & ~np.isnan(w)] != w[odd & ~np.isnan(w)]):
            return Finding(check, case, np.inf, 0, f"{name} is {brief(g)}, needs {brief(w)}", aspect)
        size = float(np.max(np.abs(w[~odd]), initial=0))
        error = float(np.max(np.abs(g[~odd] - w[~odd]), initial=0))
        allowed = tolerances.allowed_error(size, sensitive[i], case.terms(), dtype, subject.adapter.reduced_products())
        unit = tolerances.EPSILON[dtype] * (size or 1)
        message = f"{name} is {brief(g)}, needs {brief(w)}" if not error <= allowed else ""
        finding = worse(finding, error / unit, allowed / unit, message, aspect)
    return finding


def worse(finding, error, allowed, message, aspect="values"):
    """The finding that is nearer to its limit, or beyond it."""
    ratio = error / allowed if allowed else (np.inf if error else 0)
    before = finding.error / finding.allowed if finding.allowed else (np.inf if finding.error else -1)
    if ratio <= before:
        return finding
    return replace(finding, error=error, allowed=allowed, message=message, aspect=aspect)


def brief(array):
    """An array as a message shows it."""
    text = np.array2string(np.asarray(array), precision=6, threshold=12, edgeitems=3, separator=", ")
    return text if len(text) < 400 else text[:400] + " ..."


@dataclass
class Derivatives:
    """What the oracle says of the derivatives of one case: of the sum of its outputs times ``cotangents``.

    Attributes:
      cotangents: one array for each output, exact in every dtype.
      directions: for each floating argument a direction.
      along: for each of them (derivative, doubt) along its direction.
      moved: how far the derivative moves under relative changes of the inputs.
      total: the magnitude of the terms that may cancel in it.
    """

    cotangents: list
    directions: dict
    along: dict
    moved: float
    total: float


def derivatives(subject, case, return_weights):
    """The :class:`Derivatives` of a case; dtypes that hold the same numbers share them."""
    key = (case.title, return_weights, "derivatives")
    if key not in subject.kept:
        subject.kept[key] = _differences(subject, case, return_weights)
    return subject.kept[key]


def _differences(subject, case, return_weights):
    rng, exact = case.rng(" cotangents"), subject.exact(case, return_weights)
    cotangents = [drawing.narrow({0: rng.standard_normal(w.shape)})[0] for w in exact]
    values, floats = subject.values(case), subject.floats(case)

    def objective(arrays):
        outputs = oracle_outputs(subject, values | arrays, case, return_weights)
        return float(sum(np.sum(c * o) for c, o in zip(cotangents, outputs, strict=True)))

    # What cancels in a derivative does so among terms as large as the objective's own.
    total = float(sum(np.sum(np.abs(c * w)) for c, w in zip(cotangents, exact, strict=True))) + sum(
        moves * float(np.sum(np.abs(c)))
        for moves, c in zip(subject.sensitivities(case, return_weights), cotangents, strict=True)
    )
    directions = {key: rng.standard_normal(value.shape) for key, value in floats.items()}
    moved = tolerances.sensitivity(
        lambda arrays: [np.asarray(tolerances.directional_derivative(objective, arrays, directions, total)[0])],
        floats,
        rng,
    )[0]
    along = {
        key: tolerances.directional_derivative(objective, floats, {key: direction}, total)
        for key, direction in directions.items()
    }
    return Derivatives(cotangents, directions, along, moved, total)


def gradient(subject, case, return_weights=False):
    """The candidate's gradients against central differences of the oracle, and exactly 0 at padding."""
    check = "gradient"
    if any(w.dtype == bool for w in subject.exact(case, return_weights)):
        return None
    exact = derivatives(subject, case, return_weights)
    found = subject.gradients(case, exact.cotangents, return_weights)
    finding = Finding(check, case)
    for key, direction in exact.directions.items():
        if key not in found:
            continue
        g = found[key].astype(np.float64)
        if not np.all(np.isfinite(g)):
            return Finding(check, case, np.inf, 0, f"the gradient of `{key}` is {brief(g)}")
        pad = drawing.padding(case, key)
        if pad is not None and np.any(g[pad] != 0):
            return Finding(check, case, np.inf, 0, f"the gradient of `{key}` is {brief(g)}, not 0 at padding")
        want, doubt = exact.along[key]
        got = float(np.sum(g * direction))
        size = float(np.sum(np.abs(g * direction))) + abs(want)
        allowed = doubt + tolerances.allowed_error(
            size, exact.moved + exact.total, case.terms(), subject.dtype, subject.adapter.reduced_products()
        )
        unit = tolerances.EPSILON[subject.dtype] * (size or 1)
        wrong = not abs(got - want) <= allowed
        message = f"the gradient of `{key}` along a direction is {got:.9g}, needs {want:.9g}" if wrong else ""
        finding = worse(finding, abs(got - want) / unit, allowed / unit, message)
    return finding


def finite_gradients(subject, case, return_weights):
    """No NaN and no inf in a gradient where scores are extreme, vectors are 0 or sizes far from 1."""
    cotangents = [np.ones(w.shape) for w in subject.exact(case, return_weights)]
    for key, g in subject.gradients(case, cotangents, return_weights).items():
        if not np.all(np.isfinite(g.astype(np.float64))):
            return Finding("finite gradients", case, np.inf, 0, f"the gradient of `{key}` is {brief(g)}")
    return Finding("finite gradients", case)
