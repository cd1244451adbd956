"""The contract's hazards: poison in padding, empty rows, batch mates, NaN at a real token, weights, inputs.

They change the data of a case and not its shapes, so that a function is compiled once.
"""

from dataclasses import replace

import numpy as np

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.agreement import Finding, brief, compare
from attnpool_ref.conformance.subject import oracle_outputs

POISONS = {"NaN": np.nan, "inf": np.inf, "-inf": -np.inf, "1e30": 1e30}


def empty_rows(subject, case, return_weights):
    """Exactly 0 wherever the definition is 0 whatever the data are: empty rows, padded rows, weights of padding."""
    zeros = always_zero(subject, case, return_weights)
    if not any(np.any(z) for z in zeros):
        return None
    for got, zero in zip(subject.outputs(case, return_weights), zeros, strict=True):
        if got.shape != zero.shape or np.any(got[zero] != 0):
            return Finding("empty rows", case, np.inf, 0, f"the result is {brief(got)}, not 0 where nothing is real")
    return Finding("empty rows", case)


def always_zero(subject, case, return_weights):
    """Where the exact results are 0 whatever the data are, as in empty rows and padded weights."""
    key = (case.title, return_weights, "zero")
    if key not in subject.kept:
        values, rng = subject.values(case), case.rng(" other data")
        moved = {k: v * rng.uniform(0.5, 1.5, v.shape) for k, v in subject.floats(case, ("data",)).items()}
        other = oracle_outputs(subject, values | moved, case, return_weights)
        exact = subject.exact(case, return_weights)
        subject.kept[key] = [(a == 0) & (b == 0) for a, b in zip(exact, other, strict=True)]
    return subject.kept[key]


def poisoned(case, poison):
    """The case with ``poison`` in every padded place of its data, its bias and its dropout multiplier."""
    values = {}
    for key in case.given("data", "parameter", "stretch"):
        pad = drawing.padding(case, key)
        if pad is not None and np.any(pad) and case.values[key].dtype.kind == "f":
            values[key] = np.where(pad, poison, case.values[key])
    return case.with_values("poison in padding", **values) if values else None


def poison_in_padding(subject, case, name, return_weights, gradients):
    """What stands in padding changes no bit of a result or of a gradient."""
    bad = poisoned(case, POISONS[name])
    check = f"{name} in padding"
    if bad is None:
        return None
    clean, dirty = subject.outputs(case, return_weights), subject.outputs(bad, return_weights)
    for a, b in zip(clean, dirty, strict=True):
        if not same_bits(a, b):
            return Finding(check, bad, np.inf, 0, f"the result changes from {brief(a)} to {brief(b)}")
    if gradients:
        cotangents = [np.ones(a.shape) for a in clean]
        before = subject.gradients(case, cotangents, return_weights)
        after = subject.gradients(bad, cotangents, return_weights)
        for key in before:
            if not same_bits(before[key], after[key]):
                message = f"the gradient of `{key}` changes from {brief(before[key])} to {brief(after[key])}"
                return Finding(check, bad, np.inf, 0, message)
    return Finding(check, bad)


def same_bits(a, b):
    """Whether two arrays are equal to the last bit."""
    return (
        a.shape == b.shape
        and a.dtype == b.dtype
        and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
    )


def weights_change_nothing(subject, case):
    """Asking for the weights changes no bit of the pooled result; on accelerators it agrees to rounding."""
    check = "return_weights"
    alone, both = subject.outputs(case), subject.outputs(case, return_weights=True)
    if not subject.adapter.exact_weights():
        want = [a.astype(np.float64) for a in alone]
        return compare(subject, case, check, both[: len(alone)], want, False)
    for a, b in zip(alone, both, strict=False):
        if not same_bits(a, b):
            return Finding(check, case, np.inf, 0, f"the pooled result changes from {brief(a)} to {brief(b)}")
    return Finding(check, case)


def nan_stays_in_its_example(subject, case):
    """NaN at real tokens reaches its own example and no other."""
    check = "NaN at a real token"
    if not case.batch or len(case.batch) != 1 or case.batch[0] < 2:
        return None
    clean = subject.outputs(case)
    for key in case.given("data"):
        if "..." not in case.axes[key] or case.values[key].dtype.kind != "f":
            continue
        value, pad = case.values[key].copy(), drawing.padding(case, key)
        real = np.ones(value.shape, bool) if pad is None else ~pad
        example = next((i for i in range(case.batch[0]) if np.any(real[i])), None)
        if example is None:
            continue
        value[example] = np.where(real[example], np.nan, value[example])
        bad = case.with_values(f"NaN in `{key}`", **{key: value})
        dirty, exact = subject.outputs(bad), subject.exact(bad)
        for a, b, w in zip(clean, dirty, exact, strict=True):
            if a.shape[:1] != case.batch:
                continue
            if np.any(np.isnan(w[example])) and not np.any(np.isnan(b[example])):
                return Finding(check, bad, np.inf, 0, f"NaN in example {example} was patched away: {brief(b)}")
        # another path where there is a NaN may round the other examples differently
        others = [
            _without(b, a, example) if a.shape[:1] == case.batch else a for a, b in zip(clean, dirty, strict=True)
        ]
        found = compare(subject, case, check, others, [a.astype(np.float64) for a in clean], False)
        if found.message:
            return Finding(check, bad, np.inf, 0, f"NaN in example {example} reaches others: {found.message}")
    return Finding(check, case)


def _without(changed, original, example):
    """The changed results but for one example, which is the original one."""
    mended = changed.copy()
    mended[example] = original[example]
    return mended


def batch_mates(subject, case):
    """What else is in the batch does not matter: other data in all other examples, up to rounding."""
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
    first = [(g[:1], w[:1].astype(np.float64)) for g, w in zip(got, want, strict=True)]
    finding = compare(subject, case, check, [g for g, _ in first], [w for _, w in first], False)
    return replace(finding, case=other)


DRIFT = 1e-5
"""How far a million equal tokens may be off in float32, relatively: a bound that the contract sets, not derived."""


def long_sums(subject):
    """A million equal tokens: sums neither drift nor lose their count."""
    finding = None
    for case, _ in drawing.long_rows(subject.row):
        names, options = subject.calling.restrict([], case.options)
        if names or options != case.options:
            continue
        case = subject.fit(case)
        finding = Finding("long sums", case)
        for got, want in zip(subject.outputs(case), subject.exact(case), strict=True):
            off = float(np.max(np.abs(got.astype(np.float64) - want), initial=0))
            if got.shape != want.shape or not off <= DRIFT * np.max(np.abs(want), initial=0):
                return replace(finding, error=np.inf, message=f"the result is {brief(got)}, needs {brief(want)}")
    return finding


def inputs_unchanged(subject, case):
    """The caller's arrays are as they were."""
    check = "inputs unchanged"
    with subject.adapter.context(subject.dtype), np.errstate(all="ignore"):
        args, kwargs = subject.converted(case)
        arrays = [a for a in (*args, *kwargs.values()) if hasattr(a, "shape")]
        before = [np.array(subject.adapter.read(a), copy=True) for a in arrays]
        subject.watch.call(subject.function, *args, **kwargs)
        after = [subject.adapter.read(a) for a in arrays]
    if not all(same_bits(a, b) for a, b in zip(before, after, strict=True)):
        return Finding(check, case, np.inf, 0, "an argument was changed in place")
    return Finding(check, case)
