"""Checks of invariances: results do not change with the amount of padding, the order of tokens, other examples, ``return_weights``."""

import itertools
from dataclasses import replace
from functools import partial

import numpy as np

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.checks.agreement import Finding, apart, compare_with_itself, failed
from attnpool_ref.conformance.checks.padding import POISONS
from attnpool_ref.conformance.checks.subject import output_axes


def _along(axis, positions, output, axes):
    """Returns an output, whose axes have the names ``axes``, at some positions of an axis; None for all positions."""
    if positions is None:
        return output
    for place in drawing.places_of(axis, axes, output.ndim):
        output = np.take(output, positions, place)
    return output


def _append(case, axis):
    return drawing.append(case, axis, 2), range(case.sizes[axis]), None


def _delete(case, axis):
    keep = np.flatnonzero(_real_along(case, axis))
    return drawing.take(case, f"padding along {axis} deleted", axis, keep), None, keep


def _side(case, axis):
    order = np.argsort(_real_along(case, axis), kind="stable")
    return _reorder(case, axis, order, f"padding along {axis} on the left")


def permuting(subject, case, situation):
    """Checks that the order of the tokens does not matter, except where the table says that it does."""
    if case.row.ordered and _holds(case.row.ordered, case):
        return None
    return _each_axis("permuting", _shuffle, subject, case, situation)


def _is_absolute(case):
    """Returns whether a constant added to every score may change the result."""
    return any(_holds(when, case) for when in case.row.absolute) or any(map(callable, case.options.values()))


def _holds(when, case):
    """Returns whether a condition of the table holds in a case: "always", "option=value", or an argument that is given."""
    key, _, value = when.partition("=")
    return when == "always" or (case.options.get(key) == value if value else case.values.get(key) is not None)


def _shuffle(case, axis):
    order = case.rng(f" order {axis}").permutation(case.sizes[axis])
    ids = [key for key in case.given("segments") if axis in case.axes[key]]
    for key in ids if case.options.get("indices_are_sorted") else ():
        order = order[np.argsort(case.values[key][order], kind="stable")]
    return _reorder(case, axis, order, f"permuted along {axis}")


def _reorder(case, axis, order, title):
    return drawing.take(case, title, axis, order), np.argsort(order), None


def _real_along(case, axis):
    """Returns a boolean array that marks the positions of an axis that are real in any mask of a single example."""
    real = np.zeros(case.sizes[axis], bool)
    for name in case.given("mask"):
        axes = case.axes[name]
        if axis in axes:
            mask, places = case.values[name], drawing.places_of(axis, axes, case.values[name].ndim)
            real |= np.any(mask, tuple(i for i in range(mask.ndim) if i not in places))
    return real


def _each_axis(check, change, subject, case, situation, single=False):
    """Checks that results for a case are those for the case changed along an axis, for each masked axis in turn.

    Axes of the implementation's own parameters are left out. ``change(case, axis)`` returns the changed case, and the
    positions along the axis at which its results, and those of the case, are compared; None for all positions. With
    ``single`` only cases without batch axes are compared. Returns the first failed finding, else the last one; None if
    nothing was compared.
    """
    if single and (not case.row.batched or case.batch != ()):
        return None  # each example has other padded positions
    return_weights = situation.weights
    finding, axes = None, output_axes(case, return_weights)
    original = subject.outputs(case, return_weights)
    if return_weights and "|" in case.row.weights:
        axes[-1] = case.row.weights_of_rank(original[-1].ndim - len(case.batch))
    held = {axis for key in subject.parameters for axis in case.axes[key]}  # a parameter has a number for each token
    held |= {*subject.candidate.sizes, *(size for size in subject.candidate.sizes.values() if isinstance(size, str))}
    for axis in (axis for axis in drawing.masked_axes(case) if axis not in held):
        changed, of_changed, of_original = change(case, axis)
        got = subject.outputs(changed, return_weights)
        if len(got) != len(axes) or len(original) != len(axes):
            return None  # the comparison with the oracle reports it

        def view(i, array, axis=axis, positions=of_original):
            return _along(axis, positions, array, axes[i])

        want = [view(i, w) for i, w in enumerate(original)]
        got = [view(i, g, positions=of_changed) for i, g in enumerate(got)]
        found = compare_with_itself(subject, case, check, got, want, return_weights, view)
        found = replace(found, case=changed)
        if found.message:
            return found
        finding = found
    return finding


appending = partial(_each_axis, "padding amount", _append)
"""Checks that more padding changes nothing beyond rounding."""

deleting = partial(_each_axis, "deleting is masking", _delete, single=True)
"""Checks that deleting padded tokens gives the same results as masking them."""

siding = partial(_each_axis, "padding side", _side, single=True)
"""Checks that padding on the left gives the same results as padding elsewhere."""


def shifting(subject, case, situation):
    """Checks that a constant added to every score changes nothing beyond rounding."""
    check, amount = "shifting the scores", 4.0
    if subject.is_narrow or _is_absolute(case):
        return None  # in a narrow dtype, shifted scores are rounded to other scores
    if "scores" in case.values:
        changed = {"scores": case.values["scores"] + amount}
    elif case.values.get("bias") is not None and case.arguments()["bias"].kind == "stretch":
        changed = {"bias": case.values["bias"] + amount}
    else:
        return None
    if not np.all(np.isfinite(next(iter(changed.values())))):
        return None
    other = case.with_values("scores shifted", **changed)
    want, got = subject.outputs(case, situation.weights), subject.outputs(other, situation.weights)
    finding = compare_with_itself(subject, other, check, got, want, situation.weights)
    return replace(finding, case=other)


def weights_change_nothing(subject, case, _situation=None):
    """Checks that ``return_weights`` changes nothing in the pooled result beyond rounding."""
    alone, both = subject.outputs(case), subject.outputs(case, return_weights=True)
    return compare_with_itself(subject, case, "return_weights", both[: len(alone)], alone, False)


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
                    odd = ~np.isfinite(w[example]) & (a[example] != 0)  # a padded query may stay 0
                    wrong = odd & _is_patched(b[example], w[example], subject.dtype)
                    # inf - inf is NaN, but with another order of summation it may be inf
                    if not subject.whole_contract and np.any(odd & ~np.isfinite(b[example])):
                        continue  # part of the result says it, as the mean beside a deviation does
                    if np.any(wrong) and (not bad.is_infinite() or np.all(np.isfinite(b[example]))):
                        return _patched(check, bad, b[example], w[example], wrong)
            # an implementation that branches on NaN may round the other examples differently
            others = [
                _without(b, a, example) if a.shape[:1] == case.batch else a for a, b in zip(clean, dirty, strict=True)
            ]
            found = compare_with_itself(subject, case, check, others, clean, False)
            if found.message:
                return failed(check, bad, f"what is not finite in example {example} reaches others: {found.message}")
    return Finding(check, case)


def _nan_stays_in_its_segment(subject, case, check):
    """Checks that what is not finite in packed tokens reaches the same results as in the oracle, and no others.

    It is NaN in one element, or an infinity in all real tokens of the first one's segment.
    """
    clean, right = subject.outputs(case), subject.exact(case)
    for key in case.given("data"):
        value, pad = case.values[key], drawing.padding(case, key)
        if pad is None or value.dtype.kind != "f":
            continue
        marked = np.zeros(value.shape, bool)
        places = [tuple(place) for place in np.argwhere(~pad)[[0, -1]]]
        spoiled = [("NaN", f"element {list(map(int, place))} of ", place) for place in places]
        numbers = next(case.values[ids] for ids in case.given("segments") if case.axes[ids][0] in case.axes[key])
        whole = (numbers == numbers[places[0][0]]).reshape(-1, *(1,) * (value.ndim - 1)) & ~pad
        spoiled += [] if case.given("parameter") else [(name, "", whole) for name in ("inf", "-inf")]
        for name, which, place in spoiled:
            marked[...] = False
            marked[place] = True
            changed = np.where(marked, POISONS[name], value)
            bad = case.with_values(f"{name} in {which}`{key}`", **{key: changed})
            got, exact = subject.outputs(bad), subject.exact(bad)
            for b, w in zip(got, exact, strict=True):
                wrong = b.shape == w.shape and _is_patched(b, w, subject.dtype)
                if np.any(wrong):
                    return _patched(check, bad, b, w, wrong)
            others = [
                np.where(w == r, b, a) if a.shape == b.shape == w.shape else b
                for a, b, w, r in zip(clean, got, exact, right, strict=True)
            ]
            found = compare_with_itself(subject, case, check, others, clean, False)
            if found.message:
                return replace(found, case=bad, message=f"{name} in one segment reaches others: {found.message}")
    return Finding(check, case)


LARGEST = {"float16": 65504.0, "bfloat16": 3.38e38, "float32": 3.4e38, "float64": 1.79e308}
"""The largest number of each dtype, rounded down."""


def _is_patched(got, want, dtype):
    """Returns where the result is finite and the right one is not, but for an infinity that is the largest number.

    A maximum over tokens of -inf that is filled with the least number of the dtype is that number.
    """
    stands_in = np.isinf(want) & (np.abs(got.astype(np.float64)) >= LARGEST[dtype])
    return ~np.isfinite(want) & np.isfinite(got) & ~stands_in


def _patched(check, bad, got, want, wrong):
    title = bad.title.split(", ")[-1]
    return failed(check, bad, "{} was patched away: {}, needs {}".format(title, *apart(got, want, wrong)))


def _spoiled(case, key, clean):
    """Yields (case, example): NaN, inf or -inf in all real tokens of one example, NaN or inf in one element of another.

    Both the first and the last element are used, because some functions read only the first token, or only the last.
    Examples whose ``clean`` results are all 0 are used only if there are no others: a hinge may ignore their data.
    """
    value, pad = case.values[key], drawing.padding(case, key)
    real = np.ones(value.shape, bool) if pad is None else ~pad
    examples = [i for i in range(case.batch[0]) if np.any(real[i])]
    results = [a for a in clean if a.shape[:1] == case.batch]
    examples = [i for i in examples if any(np.any(a[i] != 0) for a in results)] or examples
    # With kernels inf is not used: their products may be computed in another order, in which inf becomes NaN.
    names = ("NaN",) if case.given("parameter") else ("NaN", "inf", "-inf")
    for example, name in itertools.product(examples[:1], names):
        whole = value.copy()
        whole[example] = np.where(real[example], POISONS[name], value[example])
        yield case.with_values(f"{name} in `{key}`", **{key: whole}), example
    for example in examples[-1:]:
        places = [tuple(place) for place in np.argwhere(real[example])]
        for which, place in {"one": places[-1], "the first": places[0]}.items():
            for name in names[:2]:
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
