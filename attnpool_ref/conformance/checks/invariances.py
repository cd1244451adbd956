"""Checks of invariances: results do not change with more or less padding, the order of tokens, or shifted scores."""

from dataclasses import dataclass, replace

import numpy as np

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.checks.agreement import compare_with_itself
from attnpool_ref.conformance.checks.subject import output_axes


@dataclass
class Change:
    """A changed case, and functions that select the parts of outputs that must agree.

    Attributes:
      case: the changed case.
      of_changed: a function from (an output for the changed case, the names of its axes) to the compared part.
      of_original: such a function for an output for the original case.
    """

    case: object
    of_changed: object
    of_original: object


def _as_it_is(output, axes):
    del axes
    return output


def _along(axis, positions):
    """Returns a function that selects positions of an output along a named axis."""

    def view(output, axes):
        for place in drawing.places_of(axis, axes, output.ndim):
            output = np.take(output, positions, place)
        return output

    return view


def appending(subject, case, situation):
    """Checks that more padding changes nothing beyond rounding."""
    return _each_axis(subject, case, "padding amount", situation.weights, _append)


def _append(case, axis):
    return Change(drawing.append(case, axis, 2), _along(axis, range(case.sizes[axis])), _as_it_is)


def deleting(subject, case, situation):
    """Checks that deleting padded tokens gives the same results as masking them."""
    return _each_axis(subject, case, "deleting is masking", situation.weights, _delete, single=True)


def _delete(case, axis):
    keep = np.flatnonzero(_real_along(case, axis))
    shorter = drawing.take(case, f"padding along {axis} deleted", axis, keep)
    return Change(shorter, _as_it_is, _along(axis, keep))


def siding(subject, case, situation):
    """Checks that padding on the left gives the same results as padding elsewhere."""
    return _each_axis(subject, case, "padding side", situation.weights, _side, single=True)


def _side(case, axis):
    order = np.argsort(_real_along(case, axis), kind="stable")
    return _reorder(case, axis, order, f"padding along {axis} on the left")


def permuting(subject, case, situation):
    """Checks that the order of the tokens does not matter, except where the table says that it does."""
    if _is_ordered(case):
        return None
    return _each_axis(subject, case, "permuting", situation.weights, _shuffle)


def _is_ordered(case):
    return bool(case.row.ordered) and _holds(case.row.ordered, case)


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
    return Change(drawing.take(case, title, axis, order), _along(axis, np.argsort(order)), _as_it_is)


def _real_along(case, axis):
    """Returns a boolean array that marks the positions of an axis that are real in any mask of a single example."""
    real = np.zeros(case.sizes[axis], bool)
    for name in case.given("mask"):
        own = case.axes[name]
        if axis in own:
            mask, places = case.values[name], drawing.places_of(axis, own, case.values[name].ndim)
            real |= np.any(mask, tuple(i for i in range(mask.ndim) if i not in places))
    return real


def _each_axis(subject, case, check, return_weights, change, single=False):
    """Compares the results for a case with those for the case changed along an axis, for each masked axis in turn.

    ``change(case, axis)`` returns the :class:`Change`. With ``single`` only cases without batch axes are compared.
    Returns the first failed finding, else the last one; None if nothing was compared.
    """
    if single and (not case.row.batched or case.batch != ()):
        return None  # each example has other padded positions
    finding, axes = None, output_axes(case, return_weights)
    original = subject.outputs(case, return_weights)
    if return_weights and "|" in case.row.weights:
        axes[-1] = case.row.weights_of_rank(original[-1].ndim - len(case.batch))
    for axis in [
        a for a in drawing.masked_axes(case) if a not in case.row.sizes
    ]:  # others are fixed, as by a parameter
        changed = change(case, axis)
        got = subject.outputs(changed.case, return_weights)
        if len(got) != len(axes) or len(original) != len(axes):
            return None  # the comparison with the oracle reports it

        def view(i, array, of_original=changed.of_original):
            return of_original(array, axes[i])

        want = [view(i, w) for i, w in enumerate(original)]
        got = [changed.of_changed(g, a) for g, a in zip(got, axes, strict=True)]
        found = compare_with_itself(subject, case, check, got, want, return_weights, view)
        found = replace(found, case=changed.case)
        if found.message:
            return found
        finding = found
    return finding


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
