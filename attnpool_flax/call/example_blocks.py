"""Blocks of examples: attention of many queries is computed for some examples at a time.

That saves memory on accelerators, and on CPUs the scores stay in the cache. A loop over blocks of queries reads all keys
and values in each step, and its backward pass adds up their gradients. A loop over blocks of examples reads and writes
each array once, whatever the size of a block.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from attnpool_flax.numerics import platforms
from attnpool_flax.numerics.platforms import on_platform, on_several_devices
from attnpool_flax.numerics.sizes import known
from attnpool_flax.reductions.loops.blocks import (
    elements_on,
    even_rows,
    exceeds_a_block,
    items_on,
    over_blocks,
    rows_of,
)


def over_examples(body, choose, call, given, dtype, values):
    """Runs a function's body, in blocks of examples if :func:`exceeds_a_block` says so of all scores.

    A block has at most ``blocks.elements_on`` elements, or on CPUs one example. The backward pass recomputes each full
    block, except its saveable arrays. The examples are split along the largest batch axis, unless on an accelerator a
    single element of this axis exceeds a block, or the arrays are on a mesh of several devices, over which the axis
    may be split.

    Args:
      body: from arguments by name to a tree of arrays with the batch axes of the call.
      choose: the function's :class:`~attnpool_flax.queries.blocks.ForQueries`.
      call: the resolved signature (:class:`attnpool_ref.contract.Call`).
      given: the call's arrays by name. A loop reads them, and writes their gradients, in their dtypes.
      dtype: the dtype of the result.
      values: the body's arguments by name.
    """
    scores = choose.scores(values, call)
    if not call.batch or not known(scores, *call.batch) or not scores:
        return body(**values)
    names = [key for key, argument in call.arguments.items() if argument.batched and values[key] is not None]
    axis = max(range(len(call.batch)), key=call.batch.__getitem__)
    count, arrays = call.batch[axis], [values[key] for key in names]
    sizes = {name: _rows_on(name, count, scores) for name in ("cpu", "tpu", "default")}
    if all(rows == count for rows in sizes.values()) or on_several_devices(arrays):
        return body(**values)
    others, wide = {key: values[key] for key in values if key not in names}, [array.dtype for array in arrays]
    narrow = [_narrower(given.get(key, values[key]).dtype, values[key].dtype) for key in names]

    def of_examples(platform, *arrays):
        widened = (array.astype(wider) for array, wider in zip(arrays, wide, strict=True))
        with on_platform(platform):  # the body has no branches for others
            result = body(**others, **dict(zip(names, widened, strict=True)))
        size = max(array.shape[axis] for array in arrays)

        def of_each(part):  # weights of shared scores have one example
            return jnp.broadcast_to(part, (*part.shape[:axis], size, *part.shape[axis + 1 :])).astype(dtype)

        return jax.tree.map(of_each, result)

    by_platform: dict[str, Any] = {}
    for name, rows in sizes.items():
        compute = functools.partial(of_examples, "cuda" if name == "default" else name)
        apart = name != "cpu" or jax.device_count() > 1  # over which the axis may be split, unknown to attnpool
        by_platform[name] = functools.partial(_in_blocks, compute, axis, count, rows, apart)
    arrays = [array.astype(narrower) for array, narrower in zip(arrays, narrow, strict=True)]
    return platforms.choose(*arrays, **by_platform)


def _rows_on(name, count, scores):
    """Returns the number of examples in a block on a platform: all, ``count``, if all fit.

    ``scores`` is the number of scores of all examples. A single example that does not fit is split by queries, after the
    others on CPUs, with them elsewhere.
    """
    most, of_one = elements_on(name), scores // count
    if not exceeds_a_block(count, of_one, name):
        return count
    if name == "cpu":
        return even_rows(rows_of(of_one), count)
    if of_one > most:
        return count
    return items_on(name, 2 * of_one, count)  # the backward pass also holds the gradient of the scores


def _narrower(given, computing):
    """Returns the dtype of a floating array that was widened to the computing dtype, and the computing dtype of others."""
    return given if jnp.issubdtype(given, jnp.floating) and given.itemsize < computing.itemsize else computing


def _in_blocks(function, axis, count, rows, apart, *arrays):
    """Computes a function of arrays with ``count`` examples along ``axis``, ``rows`` examples at a time.

    Arrays with another size along the axis are passed whole to each call.
    """
    split = [array.shape[axis] == count for array in arrays]

    def of_block(blocks):
        remaining = iter(blocks)
        return function(
            *(next(remaining) if is_split else array for is_split, array in zip(split, arrays, strict=True))
        )

    parts = [array for is_split, array in zip(split, arrays, strict=True) if is_split]
    return over_blocks(of_block, parts, rows, axis, apart)
