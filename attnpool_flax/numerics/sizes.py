"""Sizes of axes that may be symbols of ``jax.export``. Code that branches on a size calls :func:`known` first.

A symbol stands for any number from 1 on, and most comparisons with it cannot be decided during tracing. If the length
or the width of tokens is unknown, they are pooled by whole products, blocks of queries have a constant size, and other
values that depend on an unknown size are computed at run time.
"""

import jax.numpy as jnp
import numpy as np
from jax import core, lax


def known(*sizes):
    """Returns whether all sizes are integers, not symbols of ``jax.export``."""
    return set(map(type, sizes)) <= {int}


def smaller(size, other):
    """Returns the smaller of two sizes."""
    return min(size, other) if known(size, other) else core.min_dim(size, other)


def at_least_1(size):
    """Returns the size, or 1 if it is 0. A symbol is at least 1."""
    return max(size, 1) if known(size) else size


def as_number(size, dtype):
    """Returns the size as a number of ``dtype``: a NumPy number, or an array of shape () for a symbol."""
    dtype = np.dtype(dtype)
    return dtype.type(size) if known(size) else jnp.asarray(size).astype(dtype)


def as_limit(size, dtype):
    """Returns the size as an integer of an integer dtype, clipped to the dtype's largest number.

    It is a NumPy number, or an array of shape () for a symbol.
    """
    dtype = np.dtype(dtype)
    largest = np.iinfo(dtype).max
    if known(size):
        return dtype.type(min(size, largest))
    number = jnp.asarray(size)
    return jnp.minimum(number, min(largest, np.iinfo(number.dtype).max)).astype(dtype)


def resized(array, axis, size):
    """Resizes an axis to a size that may be a symbol: truncates its end, or pads with zeros."""
    edges = [(0, 0, 0)] * array.ndim
    edges[axis] = 0, size - array.shape[axis], 0  # a slice would need to know which size is smaller
    return lax.pad(array, jnp.zeros((), array.dtype), edges)


def common_size(sizes):
    """Returns the size to which the sizes of an axis broadcast. A symbol counts as not 1."""
    for size in sizes:
        if not known(size) or size != 1:
            return size
    return 1


def prefix(lengths, size):
    """Returns bool [..., size], True at the first ``lengths`` [...] positions; lengths are clipped to 0 and size."""
    own = lengths.dtype.type  # clip in their own dtype, which may be narrower or wider than int32
    lengths = lax.clamp(own(0), lengths, as_limit(size, own)).astype(jnp.int32)
    positions = lax.broadcasted_iota(jnp.int32, (*lengths.shape, size), lengths.ndim)
    return positions < jnp.expand_dims(lengths, -1)
