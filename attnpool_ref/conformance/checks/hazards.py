"""Checks of hazards: padding, fully masked rows, batch mates, NaN at real tokens, many tokens, ``return_weights``.

Most of them change the data of a case but not its shapes, so that JAX does not compile again.
"""

from dataclasses import replace

import numpy as np

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.candidates.calling import NotApplicable
from attnpool_ref.conformance.checks import optional_checks, tolerances
from attnpool_ref.conformance.checks.agreement import (
    Finding,
    apart,
    changed,
    compare,
    compare_with_itself,
    failed,
    needed,
    shown,
)
from attnpool_ref.conformance.checks.gradients import cotangents_of
from attnpool_ref.conformance.checks.subject import cached, oracle_outputs

POISONS = {"NaN": np.nan, "inf": np.inf, "-inf": -np.inf, "1e30": 1e30}


def empty_rows(subject, case, situation):
    """Checks that results are exactly 0 where the oracle is for any data: fully masked rows, weights of padding.

    Logarithms of weights must be -inf there.
    """
    if not case.given("mask", "lengths", "int", "bool", "segments") and 0 not in case.sizes.values():
        return None  # no row can be fully masked
    zeros = always_zero(subject, case, situation.weights)
    if not any(np.any(z) for z in zeros):
        return None
    outputs, exact = subject.outputs(case, situation.weights), subject.exact(case, situation.weights)
    if len(outputs) != len(exact):
        return None  # the comparison with the oracle reports it
    for got, want, zero in zip(outputs, exact, zeros, strict=True):
        if got.shape != zero.shape:
            return failed("shape", case, f"the result has shape {got.shape}, needs {zero.shape}")
        wrong = zero & (got != want)
        if np.any(wrong):
            needs = "0" if np.any(want[zero] == 0) else "-inf"
            return failed("empty rows", case, f"the result is {shown(got, wrong)}, not {needs} for a fully masked row")
    return Finding("empty rows", case)


@cached
def always_zero(subject, case, return_weights):
    """Returns boolean arrays that mark elements of the result that are 0 for any data, as in fully masked rows.

    These are the elements that are 0 (or -inf, the logarithm of a weight of 0) in the oracle's results for the data of
    the case, and for the same data with each number times a random factor and an `epsilon` of 1: the deviation of a
    single token is 0 for any data, but is that of a token.
    """
    values, rng = subject.values(case), case.rng(" other data")
    moved = {k: v * rng.uniform(0.5, 1.5, v.shape) for k, v in subject.floats(case, ("data",)).items()}
    moved |= {"epsilon": np.float64(1)} if "epsilon" in values else {}
    other = oracle_outputs(subject, values | moved, case, return_weights)
    exact = subject.exact(case, return_weights)
    return [(a == b) & ((a == 0) | (a == -np.inf)) for a, b in zip(exact, other, strict=True)]


def poisoned(case, poison):
    """Returns the case with ``poison`` at every padded position of its arrays; None if there is no such position."""
    values = {}
    for key in case.given("data", "parameter", "stretch"):
        pad = drawing.padding(case, key)
        if pad is not None and np.any(pad) and case.values[key].dtype.kind == "f":
            values[key] = np.where(pad, poison, case.values[key])
    return case.with_values("poison in padding", **values) if values else None


def in_padding(name, subject, case, situation):
    """Checks :func:`poison_in_padding` with and without weights and gradients, as the situation says."""
    gradients = situation.gradients_with_weights if situation.is_main and situation.differentiated else None
    return poison_in_padding(subject, case, name, situation.weights, gradients)


def poison_in_padding(subject, case, name, return_weights, gradients=None):
    """Checks that one of :data:`POISONS` at padded positions never affects results or gradients, bit for bit.

    ``name`` is a key of :data:`POISONS`. ``gradients`` says whether the differentiated call returns the weights; None
    checks no gradients.
    """
    bad = poisoned(case, POISONS[name])
    check = f"{name} in padding"
    if bad is None:
        return None
    clean, dirty = subject.outputs(case, return_weights), subject.outputs(bad, return_weights)
    for a, b in zip(clean, dirty, strict=True):
        if not same_bits(a, b) and optional_checks.BITS not in subject.tolerated:
            return failed(check, bad, changed("the result", a, b))
    if optional_checks.BITS in subject.tolerated:
        found = compare_with_itself(subject, case, check, dirty, clean, return_weights)
        if found.message:
            return replace(found, case=bad)
    if gradients is not None:
        cotangents = cotangents_of(subject, case, gradients, ones=True)
        before = subject.gradients(case, cotangents, gradients)
        after = subject.gradients(bad, cotangents, gradients)
        for key in before:
            if not same_bits(before[key], after[key]):
                return failed(check, bad, changed(f"the gradient of `{key}`", before[key], after[key]))
    return Finding(check, bad)


def same_bits(a, b):
    """Returns whether two arrays are equal, bit for bit; all NaNs count as equal, whatever their bits."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    both = np.isnan(a) & np.isnan(b)
    a, b = (np.ascontiguousarray(np.where(both, a.dtype.type(0), array)) for array in (a, b))
    return a.tobytes() == b.tobytes()


def weights_change_nothing(subject, case, _situation=None):
    """Checks that ``return_weights`` changes no bit of the pooled result; on accelerators nothing beyond rounding."""
    check = "return_weights"
    alone, both = subject.outputs(case), subject.outputs(case, return_weights=True)
    if not subject.exact_weights():
        return compare_with_itself(subject, case, check, both[: len(alone)], alone, False)
    for a, b in zip(alone, both, strict=False):
        if not same_bits(a, b):
            return failed(check, case, changed("the pooled result", a, b))
    return Finding(check, case)


def not_finite_stays_in_its_example(subject, case, _situation=None):
    """Checks that NaN at real tokens, and NaN or inf in one element, reach the result of their example and no other."""
    check = "NaN at a real token"
    if case.given("segments"):
        return _nan_stays_in_its_segment(subject, case, check)
    if not case.batch or len(case.batch) != 1 or case.batch[0] < 2:
        return None
    clean = subject.outputs(case)
    for key in case.given("data"):
        if "..." not in case.axes[key] or case.values[key].dtype.kind != "f":
            continue
        for bad, example in _spoiled(case, key, clean):
            dirty, exact = subject.outputs(bad), subject.exact(bad)
            for a, b, w in zip(clean, dirty, exact, strict=True):
                if a.shape[:1] == case.batch and a.shape == b.shape:
                    odd, finite = ~np.isfinite(w[example]), np.isfinite(b[example])
                    odd &= a[example] != 0  # a padded query may stay 0
                    # inf - inf is NaN, but with another order of summation it may be inf
                    patched = np.any(odd) and np.all(finite) if "inf in" in bad.title else np.any(odd & finite)
                    if patched:
                        return _patched(check, bad, b[example], w[example], odd & finite)
            # an implementation that branches on NaN may round the other examples differently
            others = [
                _without(b, a, example) if a.shape[:1] == case.batch else a for a, b in zip(clean, dirty, strict=True)
            ]
            found = compare_with_itself(subject, case, check, others, clean, False)
            if found.message:
                return failed(check, bad, f"what is not finite in example {example} reaches others: {found.message}")
    return Finding(check, case)


def _nan_stays_in_its_segment(subject, case, check):
    """Checks that NaN in one element of packed tokens reaches the same results as in the oracle, and no others."""
    clean, right = subject.outputs(case), subject.exact(case)
    for key in case.given("data"):
        value, pad = case.values[key], drawing.padding(case, key)
        if pad is None or value.dtype.kind != "f":
            continue
        for place in np.argwhere(~pad)[[0, -1]]:
            single = value.copy()
            single[tuple(place)] = np.nan
            bad = case.with_values(f"NaN in element {place.tolist()} of `{key}`", **{key: single})
            got, exact = subject.outputs(bad), subject.exact(bad)
            for b, w in zip(got, exact, strict=True):
                if b.shape == w.shape and np.any(np.isnan(w) & np.isfinite(b)):
                    return _patched(check, bad, b, w, np.isnan(w) & np.isfinite(b))
            others = [
                np.where(w == r, b, a) if a.shape == b.shape == w.shape else b
                for a, b, w, r in zip(clean, got, exact, right, strict=True)
            ]
            found = compare_with_itself(subject, case, check, others, clean, False)
            if found.message:
                return replace(found, case=bad, message=f"NaN in one segment reaches others: {found.message}")
    return Finding(check, case)


def _patched(check, bad, got, want, wrong):
    title = bad.title.split(", ")[-1]
    return failed(check, bad, "{} was patched away: {}, needs {}".format(title, *apart(got, want, wrong)))


def _spoiled(case, key, clean):
    """Yields (case, example): NaN in all real tokens of one example, and NaN or inf in one element of another, if any.

    Both the first and the last element are used, because some functions read only the first token, or only the last.
    Examples whose ``clean`` results are all 0 are used only if there are no others: a hinge may ignore their data.
    """
    value, pad = case.values[key], drawing.padding(case, key)
    real = np.ones(value.shape, bool) if pad is None else ~pad
    examples = [i for i in range(case.batch[0]) if np.any(real[i])]
    results = [a for a in clean if a.shape[:1] == case.batch]
    examples = [i for i in examples if any(np.any(a[i] != 0) for a in results)] or examples
    for example in examples[:1]:
        whole = value.copy()
        whole[example] = np.where(real[example], np.nan, value[example])
        yield case.with_values(f"NaN in `{key}`", **{key: whole}), example
    for example in examples[-1:]:
        places = [tuple(place) for place in np.argwhere(real[example])]
        for which, place in {"one": places[-1], "the first": places[0]}.items():
            # With kernels inf is not used: their products may be computed in another order, in which inf becomes NaN.
            for name in ("NaN",) if case.given("parameter") else ("NaN", "inf"):
                single = value.copy()
                single[(example, *place)] = POISONS[name]
                yield case.with_values(f"{name} in {which} element of `{key}`", **{key: single}), example


def _without(changed, original, example):
    """Returns the changed results, with those of one example replaced by the original ones."""
    mended = changed.copy()
    mended[example] = original[example]
    return mended


def batch_mates(subject, case, _situation=None):
    """Checks that other data in the other examples of a batch change an example's result by no more than rounding."""
    check = "batch mates"
    if len(case.batch) != 1 or case.batch[0] < 2 or not case.row.batched:
        return None
    rng, values = case.rng(" mates"), {}
    for key in case.given("data"):
        if "..." in case.axes[key] and case.values[key].dtype.kind == "f":
            value = 3 * rng.standard_normal(case.values[key].shape).astype(np.float32).astype(np.float64)
            value[0] = case.values[key][0]
            values[key] = value
    if not values:
        return None
    other = case.with_values("other batch mates", **values)
    got, want = subject.outputs(other), subject.outputs(case)
    got, want = ([a[:1] for a in answer] for answer in (got, want))
    finding = compare_with_itself(subject, case, check, got, want, False, lambda _, array: array[:1])
    return replace(finding, case=other)


DRIFT = 1e-5
"""Largest relative error for a million tokens in float32, as the contract sets it; not derived from rounding."""


def _allowed_drift(subject):
    """Returns the allowed relative error of a long sum.

    With the option ``contract`` it is :data:`DRIFT`, else the bound for a float32 sum of one token after another.
    """
    if optional_checks.CONTRACT in subject.demands:
        return DRIFT
    return tolerances.EPSILON["float32"] / 2 * drawing.LONG_BY_DEFAULT


def sums_of_many_tokens(subject):
    """Checks sums over many equal tokens, more of them in float32 than in narrow dtypes."""
    return long_sums(subject) if subject.dtype == "float32" else long_narrow_sums(subject)


def long_sums(subject):
    """Checks that sums over 70,000 tokens (with ``contract`` a million) neither drift nor lose their count."""
    finding, size = None, drawing.LONG if optional_checks.CONTRACT in subject.demands else drawing.LONG_BY_DEFAULT
    for case, _ in drawing.long_rows(subject.row, size):
        case = _fitting(subject, case)
        if case is None:
            continue
        finding = Finding("long sums", case)
        for got, want in zip(subject.outputs(case), subject.exact(case), strict=True):
            error = np.abs(got.astype(np.float64) - want)
            wrong = ~(error <= _allowed_drift(subject) * np.max(np.abs(want), initial=0))
            if got.shape != want.shape or np.any(wrong):
                message = needed("the result", got, want, wrong, int(np.argmax(error)))
                return replace(finding, error=np.inf, message=message)
    return finding


def _fitting(subject, case):
    """Returns the case as the implementation takes it; None if it lacks an option or needs data that the case lacks."""
    names, options = subject.calling.restrict([], case.options)
    lacking = [name for name in names if subject.row.arguments[name].kind not in ("mask", "number")]
    return None if lacking or any(options[key] != own for key, own in case.options.items()) else subject.fit(case)


def long_narrow_sums(subject):
    """Checks sums over thousands of equal tokens, which narrow dtypes can neither count nor add up exactly.

    Raises:
      NotApplicable: the arrays are NumPy's bfloat16, and the option ``contract`` is off.
    """
    finding = None
    if optional_checks.of_foreign_dtype(subject) and optional_checks.CONTRACT not in subject.demands:
        raise NotApplicable("NumPy adds up bfloat16 in bfloat16; checked with contract=True, --contract")
    for case in drawing.long_narrow_rows(subject.row):
        case = _fitting(subject, case)
        if case is None:
            continue
        finding = compare(subject, case, "long sums", subject.outputs(case), subject.exact(case), False)
        if finding.message and optional_checks.CONTRACT not in subject.demands:
            finding = _in_its_own_dtype(subject, case)
        if finding.message:
            return finding
    return finding


def _in_its_own_dtype(subject, case):
    """Compares results with the oracle's up to rounding in the narrow dtype itself, as without the option ``contract``.

    A sum that loses its count is off by more than this rounding.
    """
    subject.tolerated = frozenset({optional_checks.NARROW, optional_checks.WIDER})
    try:
        return compare(subject, case, "long sums", subject.outputs(case), subject.exact(case), False)
    finally:
        subject.tolerated = frozenset()


def poison_in_shared_arrays(subject, case, _situation=None):
    """Checks that NaN in a shared array never affects the examples whose mask hides it.

    The array has NaN at real tokens of other examples. Because an implementation may branch on NaN, the results are
    compared up to rounding.
    """
    check, found = "poison in shared arrays", None
    for key in drawing.shared_arrays(case):
        clean = subject.outputs(case)
        for example in range(case.batch[0] if len(case.batch) == 1 else 0)[-5:]:  # all but of large batches
            pad = drawing.padding(case, key, example)
            if pad is None or not np.any(pad):
                continue
            poisoned = np.where(pad, np.nan, case.values[key])
            bad = case.with_values(f"NaN where example {example} sees padding in `{key}`", **{key: poisoned})
            got, want = ([a[example] for a in answer] for answer in (subject.outputs(bad), clean))
            found = compare_with_itself(subject, case, check, got, want, False, lambda _, a, i=example: a[i])
            found = replace(found, case=bad)
            if found.message:
                return replace(found, message=f"example {example}, which sees padding there: {found.message}")
    return found
