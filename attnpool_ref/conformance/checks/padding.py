"""Checks that padding cannot matter: its values affect no result and no gradient, and fully masked rows are 0."""

from dataclasses import replace

import numpy as np

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.checks import optional_checks
from attnpool_ref.conformance.checks.agreement import (
    Finding,
    changed,
    compare_with_itself,
    failed,
    same_bits,
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


def in_padding(name, subject, case, situation):
    """Checks :func:`poison_in_padding` with and without weights and gradients, as the situation says."""
    gradients = situation.gradients_with_weights if situation.kind == "main" and situation.differentiated else None
    return poison_in_padding(subject, case, name, situation.weights, gradients)


def poison_in_padding(subject, case, name, return_weights, gradients=None):
    """Checks that one of :data:`POISONS` at padded positions never affects results or gradients, bit for bit.

    ``name`` is a key of :data:`POISONS`. ``gradients`` says whether the differentiated call returns the weights; None
    checks no gradients.
    """
    bad = drawing.poisoned(case, POISONS[name])
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


def poison_in_shared_arrays(subject, case, situation):
    """Checks that NaN in a shared array never affects the examples whose mask hides it.

    The array has NaN at real tokens of other examples. Because an implementation may branch on NaN, the results are
    compared up to rounding.
    """
    check, found = "poison in shared arrays", None
    for key in drawing.shared_arrays(case):
        weights, count = situation.with_weights[0], len(case.row.results)
        clean = subject.outputs(case, weights)
        for example in range(case.batch[0] if len(case.batch) == 1 else 0)[-5:]:  # all but of large batches
            pad = drawing.padding(case, key, example)
            if pad is None or not np.any(pad):
                continue
            poisoned = np.where(pad, np.nan, case.values[key])
            bad = case.with_values(f"NaN where example {example} sees padding in `{key}`", **{key: poisoned})
            got, want = ([a[example] for a in answer[:count]] for answer in (subject.outputs(bad, weights), clean))
            found = compare_with_itself(subject, case, check, got, want, False, lambda _, a, i=example: a[i])
            found = replace(found, case=bad)
            if found.message:
                return replace(found, message=f"example {example}, which sees padding there: {found.message}")
    return found
