"""A large array of tokens is read a block at a time: a copy of it in float64 would be larger than itself."""

import numpy as np

SIZE = 2**14
"""Numbers of a block: in float64 they stay in a cache, and malloc does not go to the system for them each time."""


def over_tokens(reduce, of_block, x, *others):
    """``reduce(of_block(x, *others), -2)``, of a large ``x`` of halves, until they are small.

    Args:
      reduce: np.sum or its like; of what it gives for blocks of tokens it gives what it gives for all of them.
      of_block: from a block of tokens in float64 and the same part of each other array to [..., tokens, d].
      x: [..., L, d] tokens of any dtype.
      *others: arrays [..., L, ...], or with an axis of 1 in the place of an axis of ``x``.
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
