"""Blocks: walks over an axis so that only a part of what would span it exists at once."""

import jax
import jax.numpy as jnp
from jax import lax

LARGEST = 2**20
"""Elements of a block: what is smaller is computed whole, without a loop."""


def in_blocks(function, parts, cost):
    """Maps over the first axis of the arrays in ``parts``, as many at a time as keep a block within its size.

    The backward pass computes each block anew instead of keeping it; no gradient is written by hand, so that forward
    mode and shard_map work.

    Args:
      function: from one element of each array to arrays.
      parts: a tuple of arrays of one length (or None) along the first axis.
      cost: how many elements ``function`` holds for one of them.
    """
    size = max(1, LARGEST // max(1, cost))
    if size >= jax.tree.leaves(parts)[0].shape[0]:
        return jax.vmap(lambda part: function(*part))(parts)
    again = jax.checkpoint(lambda part: function(*part), prevent_cse=False)  # inside a loop there is none
    return lax.map(again, parts, batch_size=size)


def by_rows(function, rows, cost):
    """``in_blocks`` over the tokens of [..., n, d]; what ``function`` makes of a token [..., d] gets the axis back.

    Args:
      function: from one token [..., d] to a tuple of vectors [..., v].
      rows: [..., n, d].
      cost: how many elements ``function`` holds for one token of every example.
    """
    results = in_blocks(function, (jnp.moveaxis(rows, -2, 0),), cost)
    return tuple(jnp.moveaxis(result, 0, -2) for result in results)
