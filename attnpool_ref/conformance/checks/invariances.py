"""Checks of invariances: results do not change with more or less padding, the order of tokens, or shifted scores."""

from dataclasses import replace
from functools import partial

import numpy as np

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.checks.agreement import compare_with_itself
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
    """Returns whether a condition of the table, "always" or "option=value", holds in a case."""
    key, _, value = when.partition("=")
    return when == "always" or case.options.get(key) == value


def _shuffle(case, axis):
    order = case.rng(f" order {axis}").permutation(case.sizes[axis])
    own = [key for key in case.given("segments") if axis in case.axes[key]]
    for key in own if case.options.get("indices_are_sorted") else ():
        order = order[np.argsort(case.values[key][order], kind="stable")]
    return _reorder(case, axis, order, f"permuted along {axis}")


def _reorder(case, axis, order, title):
    return drawing.take(case, title, axis, order), np.argsort(order), None


def _real_along(case, axis):
    """Returns a boolean array that marks the positions of an axis that are real in any mask of a single example."""
    real = np.zeros(case.sizes[axis], bool)
    for name in case.given("mask"):
        own = case.axes[name]
        if axis in own:
            mask, places = case.values[name], drawing.places_of(axis, own, case.values[name].ndim)
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
    own = {axis for key in subject.parameters for axis in case.axes[key]}  # a parameter has a number for each token
    for axis in (axis for axis in drawing.masked_axes(case) if axis not in own):
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
