"""Shrinking of a failing case to a smaller one that still fails."""

import functools
from dataclasses import replace

import numpy as np

from attnpool_ref import contract
from attnpool_ref.conformance import cases as drawing

LONG = 64
"""Size from which on an axis is cut at its ends alone, because JAX compiles each size that is tried."""


def shrink(case, fails):
    """Returns a failing case with fewer examples and shorter axes, as far as ``fails`` returns that it still fails."""
    if case.row.batched and case.batch:
        singles = [drawing.example_of(case, index) for index in np.ndindex(*case.batch)]
        singles += [_examples(case, [i]) for i in range(case.batch[0]) if case.batch[0] > 1 == len(case.batch)]
        case = next(filter(fails, singles), case)
    if len(case.batch) == 1 and case.batch[0] > LONG and case.row.batched:
        case = _cut(case, case.batch[0], _examples, fails)
    same, groups = contract.equal_axes(case.row, case.values | case.options), {}
    for axis in sorted(case.sizes):
        groups.setdefault(same.get(axis, axis), []).append(axis)
    for axes in groups.values():
        if any(axis in a and axis != a for axis in axes for own in case.axes.values() for a in own):
            continue  # its size is part of the size of another axis, such as d + e
        if not case.row.sizes.keys().isdisjoint(axes):
            continue  # the implementation fixes its size
        if case.sizes[axes[0]] > LONG:
            case = _cut(case, case.sizes[axes[0]], functools.partial(_along, axes), fails)
        if case.sizes[axes[0]] > LONG:
            continue
        for position in reversed(range(case.sizes[axes[0]])):
            if case.sizes[axes[0]] == 1:
                break
            others = [i for i in range(case.sizes[axes[0]]) if i != position]
            smaller = _along(axes, case, others, f"without {position}")
            if fails(smaller):
                case = smaller
    return case


def _cut(case, size, taken, fails):
    """Returns the case with as few of ``size`` positions, from the first on and then to the last, as bisection finds.

    ``taken(case, positions)`` returns the case with some positions.
    """
    for first in (True, False):
        few, many = 0, size  # the case with `many` positions fails
        while many - few > 1:
            count = (few + many) // 2
            if fails(taken(case, [*range(size)][:count] if first else [*range(size)][-count:])):
                many = count
            else:
                few = count
        if many < size:
            case, size = taken(case, [*range(size)][:many] if first else [*range(size)][-many:]), many
    return case


def _along(axes, case, positions, title=""):
    """Returns the case with some positions of axes that have one size."""
    for axis in axes:
        case = drawing.take(case, f"{axis} {title or f'from {positions[0]} to {positions[-1]}'}", axis, positions)
    return case


def _examples(case, positions):
    """Returns some examples of a batch as a batch."""
    values = {k: case.values[k][positions] for k, own in case.axes.items() if "..." in own}
    which = (
        f"examples from {positions[0]} to {positions[-1]}" if len(positions) > 1 else f"example {positions[0]} alone"
    )
    return replace(case, title=f"{case.title}, {which}", values=case.values | values, batch=(len(positions),))
