"""Reduction of large arrays by blocks: a float64 copy of the whole would be larger than the array."""

import numpy as np

SIZE = 2**14
"""Numbers of a block: small enough for a CPU cache, and for malloc to reuse memory."""


def over_tokens(reduce, of_block, x, *others):
    """Computes ``reduce(of_block(x, *others), -2)``; halves a large ``x`` until the parts are small.

    Args:
      reduce: an associative reduction such as np.sum: applied to the results of blocks it gives that of the whole.
      of_block: maps a block of tokens in float64, and the same part of each other array, to [..., tokens, d].
      x: [..., L, d] tokens of any dtype.
      *others: arrays [..., L, ...], or with 1 for an axis of ``x``.
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
