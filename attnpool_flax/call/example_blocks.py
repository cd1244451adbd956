"""Blocks of examples: attention of many queries is computed for some examples at a time, so that scores stay in the cache.

A loop over blocks of queries reads all keys and values in each step, and its backward pass adds up their gradients. A
loop over blocks of examples reads and writes each array once.
"""

import jax
import jax.numpy as jnp

from attnpool_flax.numerics import platforms
from attnpool_flax.numerics.sizes import known
from attnpool_flax.tokens.queries import over_examples


def in_blocks_of_examples(body, queries, call, given, dtype, values):
    """Runs a function's body, in blocks of examples along the largest batch axis if all scores exceed a block.

    Args:
      body: from arguments by name to a tree of arrays with the batch axes of the call.
      queries: the function's :class:`~attnpool_flax.tokens.queries.ForQueries`.
      call: the resolved signature (:class:`attnpool_ref.contract.Call`).
      given: the call's arrays by name. A loop reads them, and writes their gradients, in their dtypes.
      dtype: the dtype of the result.
      values: the body's arguments by name.
    """
    scores = queries.scores(values, call)
    if not call.batch or not known(scores, *call.batch) or not scores:
        return body(**values)
    names = [key for key, argument in call.arguments.items() if argument.batched and values[key] is not None]
    axis = max(range(len(call.batch)), key=call.batch.__getitem__)
    count, arrays = call.batch[axis], [values[key] for key in names]
    if any(map(platforms.may_be_split, arrays)):
        return body(**values)
    others, wide = {key: values[key] for key in values if key not in names}, [array.dtype for array in arrays]
    narrow = [_narrower(given.get(key, values[key]).dtype, values[key].dtype) for key in names]
    split = [array.shape[axis] == count for array in arrays]

    def at_once(*arrays):
        widened = (array.astype(wider) for array, wider in zip(arrays, wide, strict=True))
        result = body(**others, **dict(zip(names, widened, strict=True)))
        size = max(array.shape[axis] for array in arrays)

        def of_each(part):  # weights of shared scores have one example
            return jnp.broadcast_to(part, (*part.shape[:axis], size, *part.shape[axis + 1 :])).astype(dtype)

        return jax.tree.map(of_each, result)

    def in_blocks(rows, *arrays):
        def of_block(blocks):
            own = iter(blocks)
            return at_once(*(next(own) if is_split else a for is_split, a in zip(split, arrays, strict=True)))

        return over_examples(of_block, [a for is_split, a in zip(split, arrays, strict=True) if is_split], rows, axis)

    arrays = [array.astype(narrower) for array, narrower in zip(arrays, narrow, strict=True)]
    return platforms.in_blocks(in_blocks, count, scores // count, *arrays, apart=True)


def _narrower(given, computing):
    """Returns the dtype of a floating array that was widened to the computing dtype, and the computing dtype of others."""
    return given if jnp.issubdtype(given, jnp.floating) and given.itemsize < computing.itemsize else computing
