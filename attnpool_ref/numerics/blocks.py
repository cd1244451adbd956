"""Calls of a body on blocks of examples, so that its float64 arrays stay small and fit into a CPU cache."""

import math

import numpy as np

SIZE = 2**22
"""Bytes of the copies of one block's arrays; a block has at least one example. From 2**18 to 2**23 calls are as fast."""


def call_in_blocks(body, batch, batched, shared, dtype):
    """Calls ``body`` on blocks of examples, and writes its results into arrays of the result's dtype.

    Each block is a copy in C order, which the body may write into. Which examples share a block changes no bit of a
    result, as long as the body multiplies each example by itself (:func:`~attnpool_ref.primitives.vecmat`).

    Args:
      body: a function of arguments by name. It returns an array, or a tuple of arrays or tuples; the first axes of each
        array are the batch axes.
      batch: the sizes of the batch axes.
      batched: by name, an array whose first axes are the batch axes, and the dtype in which the body receives it.
      shared: arguments by name that all blocks share. The body must not write into them.
      dtype: the dtype of the results that the body computes in float64.
    """

    def of_block(*index):
        own = {key: np.array(array[index], kind, order="C") for key, (array, kind) in batched.items()}
        return body(**shared, **own)

    size, examples = 0, math.prod(batch)
    for array, _ in batched.values():
        size += 8 * array.size
    if size <= SIZE or examples == 1:
        return cast(of_block(), dtype)
    results = None
    for index in slices(batch, max(SIZE * examples // size, 1)):
        part = of_block(*index)
        if results is None:
            results = _allocate(part, batch, dtype)
        _store(results, index, part)
    return results


def slices(batch, most):
    """Yields the indices of blocks of at most ``most`` examples: tuples of slices of the first batch axes."""
    inner = math.prod(batch[1:])
    step = max(most // inner, 1)
    for start in range(0, batch[0], step):
        index = slice(start, start + step)
        if inner <= most:
            yield (index,)
        else:
            yield from ((index, *rest) for rest in slices(batch[1:], most))


def _allocate(part, batch, dtype):
    """Returns empty arrays for the results of all examples, from those of one block."""
    if isinstance(part, tuple):
        return tuple(_allocate(each, batch, dtype) for each in part)
    return np.empty((*batch, *part.shape[len(batch) :]), dtype if part.dtype == np.float64 else part.dtype)


def _store(results, index, part):
    """Writes the results of one block into those of all examples."""
    if isinstance(part, tuple):
        for result, each in zip(results, part, strict=True):
            _store(result, index, each)
    else:
        results[index] = part


def cast(result, dtype):
    """Casts the float64 arrays of a result to a dtype; other arrays, such as masks, stay as they are."""
    if isinstance(result, tuple):
        return tuple(cast(part, dtype) for part in result)
    result = np.asarray(result)
    return result.astype(dtype) if result.dtype == np.float64 else result
