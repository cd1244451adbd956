"""Reductions of large arrays by blocks, because a float64 copy of a whole array would take much memory."""

import numpy as np

SIZE = 2**14
"""Largest number of elements in a block: it fits into a CPU cache, and malloc reuses its memory."""


def over_tokens(reduce, of_block, x, *others):
    """Computes ``reduce(of_block(x, *others), -2)``; halves ``x`` down to ``SIZE`` elements or one token.

    Args:
      reduce: a reduction of an axis, such as np.sum, that gives the same when it is applied to the results of blocks.
      of_block: maps a block of x in float64, and the same part of each other array, to an array [..., L, d] of the
        block.
      x: [..., L, d] tokens of any dtype.
      *others: arrays [..., L] or [..., L, d], whose axes have the sizes of those of ``x`` or size 1.
    """
    axis = next((axis for axis, size in enumerate(x.shape[:-1]) if size > 1), None)
    if x.size <= SIZE or axis is None:
        return reduce(of_block(x.astype(np.float64), *others), -2)
    half = x.shape[axis] // 2
    parts = []
    for part in (slice(half), slice(half, None)):
        part = (slice(None),) * axis + (part,)
        own = (other if other.shape[axis] == 1 else other[part] for other in others)
        parts.append(over_tokens(reduce, of_block, x[part], *own))
    return reduce(np.stack(parts, -2), -2) if axis == x.ndim - 2 else np.concatenate(parts, axis)
