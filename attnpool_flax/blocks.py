"""Blocks: walks over queries so that only a part of what spans queries and keys exists at once."""

import math

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.recomputing import recomputed
from attnpool_flax.reductions import record

LARGEST = 2**20
"""Elements of a block: what is smaller is computed whole, without a loop."""

FEW = 64
"""Queries of a block where the batch is a symbol, so that nobody knows how many would fit."""


def over_queries(function, parts, masks=(), *, keys, implementation=None):
    """Applies a function to queries in blocks.

    The backward pass computes each block anew but for what is small; no gradient is written by hand, so that forward
    mode and shard_map work.

    Args:
      function: from the block's ``parts`` and ``masks`` to arrays [..., rows, v].
      parts: arrays [..., n, d], or None; the first one is there.
      masks: boolean arrays [..., n or 1, m], or None, without gradient.
      keys: how many numbers the function holds for one query of every example.
      implementation: "einsum" takes all queries at once, "tiles" and None take blocks where they are too many.
    """
    count = parts[0].shape[-2]
    rows = rows_of(keys)
    blocked = implementation != "einsum" and rows < count
    record(implementation or ("tiles" if blocked else "einsum"))
    if not blocked:
        return function(*parts, *masks)
    whole = count // rows * rows
    again = recomputed(function)

    def trip(_, block):
        start, *own = block
        return None, again(*own, *(_rows_of_mask(mask, start, rows) for mask in masks))

    starts = jnp.arange(0, whole, rows)
    _, results = lax.scan(trip, None, (starts, *(_in_blocks(part, whole, rows) for part in parts)))
    results = jax.tree.map(lambda result: _joined(result, whole), results)
    if whole == count:
        return results
    rest = [part if part is None else part[..., whole:, :] for part in parts]
    last = function(*rest, *(_rows_of_mask(mask, whole, count - whole) for mask in masks))
    return jax.tree.map(lambda a, b: jnp.concatenate([a, b], -2), results, last)


def rows_of(keys):
    """Queries of a block."""
    return max(1, LARGEST // max(1, keys)) if isinstance(keys, int) else FEW


def _rows_of_mask(mask, start, rows):
    if mask is None or mask.shape[-2] == 1:
        return mask
    return lax.dynamic_slice_in_dim(mask, start, rows, -2)


def _in_blocks(part, whole, rows):
    """[..., n, d] as [n // rows, ..., rows, d]."""
    if part is None:
        return None
    blocks = jnp.reshape(part[..., :whole, :], (*part.shape[:-2], whole // rows, rows, part.shape[-1]))
    return jnp.moveaxis(blocks, -3, 0)


def _joined(blocks, whole):
    """[k, ..., rows, v] as [..., k rows, v]."""
    blocks = jnp.moveaxis(blocks, 0, -3)
    return jnp.reshape(blocks, (*blocks.shape[:-3], whole, blocks.shape[-1]))


def size_of(*arrays_and_axes):
    """How many numbers the common batch axes of some arrays hold: pairs of an array and the number of its own axes."""
    pairs = zip(arrays_and_axes[::2], arrays_and_axes[1::2], strict=True)
    return math.prod(jnp.broadcast_shapes(*(array.shape[: array.ndim - own] for array, own in pairs)))


def over_first(function, parts, cost):
    """Maps over the first axis of arrays, as many at a time as make a block.

    Args:
      function: from one element of each array to arrays.
      parts: arrays (or None) of one length along the first axis; those of length 1 are shared.
      cost: how many numbers ``function`` holds for one of them.
    """
    lengths = [part.shape[0] for part in parts if part is not None]
    count = next((length for length in lengths if not (isinstance(length, int) and length == 1)), 1)
    alone = isinstance(count, int) and count == 1
    shared = [
        not alone and part is not None and isinstance(part.shape[0], int) and part.shape[0] == 1 for part in parts
    ]
    whole = [part[0] if is_shared else None for is_shared, part in zip(shared, parts, strict=True)]

    def element(own):
        return function(*(a if is_shared else b for is_shared, a, b in zip(shared, whole, own, strict=True)))

    own = [None if is_shared else part for is_shared, part in zip(shared, parts, strict=True)]
    together = max(1, LARGEST // max(1, cost)) if isinstance(cost, int) else 1
    if not isinstance(count, int) or together == 1:
        return lax.map(recomputed(element), own)
    if count <= together:
        return jax.vmap(element, axis_size=count)(own)
    return lax.map(recomputed(element), own, batch_size=together)
