"""Shrinking of a failing case to a smaller one that still fails."""

from dataclasses import replace

import numpy as np

from attnpool_ref import contract
from attnpool_ref.conformance import cases as drawing


def shrink(case, fails):
    """Returns the case with fewer examples and shorter axes, as far as it still fails.

    Args:
      case: a failing case.
      fails: a function that returns whether a case fails.
    """
    if case.row.batched and case.batch:
        singles = [drawing.example_of(case, index) for index in np.ndindex(*case.batch)]
        singles += [_kept_as_batch(case, i) for i in range(case.batch[0]) if case.batch[0] > 1 == len(case.batch)]
        case = next(filter(fails, singles), case)
    same, groups = contract.equal_axes(case.row, case.values | case.options), {}
    for axis in sorted(case.sizes):
        groups.setdefault(same.get(axis, axis), []).append(axis)
    for axes in groups.values():
        if any(axis in a and axis != a for axis in axes for own in case.axes.values() for a in own):
            continue  # its size is part of the size of another axis, such as d + e
        if not case.row.sizes.keys().isdisjoint(axes):
            continue  # the implementation fixes its size
        for position in reversed(range(case.sizes[axes[0]])):
            if case.sizes[axes[0]] == 1:
                break
            others, smaller = [i for i in range(case.sizes[axes[0]]) if i != position], case
            for axis in axes:
                smaller = drawing.take(smaller, f"{axis} without {position}", axis, others)
            if fails(smaller):
                case = smaller
    return case


def _kept_as_batch(case, index):
    """Returns one example of a batch as a batch of one."""
    values = {k: case.values[k][index : index + 1] for k, own in case.axes.items() if "..." in own}
    return replace(case, title=f"{case.title}, example {index} alone", values=case.values | values, batch=(1,))
