"""Loops over blocks of queries, each with all keys, and over blocks of sequences.

Arrays of queries times keys exist for one block at a time. Sequences are compared with shared queries, or with
themselves, and the results of their blocks are written in place.
"""

import functools
import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics import platforms
from attnpool_flax.numerics.platforms import cast_varying, platform, varying_axes
from attnpool_flax.numerics.remat import remat
from attnpool_flax.numerics.sizes import known, resized, smaller
from attnpool_flax.reductions.dispatch import IMPLEMENTATIONS, log_dispatch
from attnpool_flax.reductions.loops.blocks import (
    Blocks,
    by_budget,
    even_rows,
    exceeds_a_block,
    over_blocks,
    rows_of,
    split_rows,
)


def over_queries(function, parts, masks=(), *, keys, implementation=None, on_gpus=None, on_tpus=None):
    """Applies a function to n queries in blocks, each with all m keys; returns arrays [..., n, v].

    The backward pass recomputes each full block, except its saveable arrays. JAX differentiates the loop, so forward
    mode and ``shard_map`` work.

    Args:
      function: from the block's ``parts`` and ``masks`` to arrays [..., rows, v].
      parts: arrays [..., n, d], or None; the first one is not None.
      masks: boolean arrays [..., n or 1, m], or None, without gradient.
      keys: the number of elements that the function holds for one query, over all examples.
      implementation: "einsum" computes all queries at once; "tiles" and None loop over blocks if the arrays exceed a few
        (:func:`exceeds_a_block`). Without this loop, or if n is a symbol, all platforms use ``function``.
      on_gpus: a function for GPUs that computes the same in another way; None is ``function``.
      on_tpus: a function for TPUs, whose gradient must be that of ``function``; None is ``function``.
    """
    count = parts[0].shape[-2]
    blocked = implementation != "einsum" and exceeds_a_block(count, keys)
    log_dispatch(implementation if implementation in IMPLEMENTATIONS else "tiles" if blocked else "einsum")
    if not blocked:
        return function(*parts, *masks)
    if not known(count):
        return _over_unknown(function, parts, masks, count, rows_of(keys))
    # rematerialized: for other platforms nothing is saved, and in a whole step XLA computes it once
    on_gpus = function if on_gpus is None else remat(on_gpus)
    functions = function, on_gpus, function if on_tpus is None else on_tpus
    compute, on_gpus, on_tpus = (functools.partial(_over_blocks, own) for own in functions)
    return by_budget(compute, keys, parts, tuple(masks), on_gpus=on_gpus, on_tpus=on_tpus)


def _over_blocks(function, rows, parts, masks):
    count = parts[0].shape[-2]
    if rows >= count:
        return function(*parts, *masks)
    rows = even_rows(rows, count)  # a rest would be compiled by itself
    whole = count // rows * rows
    rematerialized = remat(function)

    def block_step(_, block):
        start, *own = block
        return None, rematerialized(*own, *(_rows_of_mask(mask, start, rows) for mask in masks))

    starts = jnp.arange(0, whole, rows)
    _, results = lax.scan(block_step, None, (starts, *(split_rows(part, whole, rows) for part in parts)))
    results = jax.tree.map(lambda result: _from_blocks(result, whole), results)
    if whole == count:
        return results
    remaining = [part if part is None else part[..., whole:, :] for part in parts]
    last = function(*remaining, *(_rows_of_mask(mask, whole, count - whole) for mask in masks))
    return jax.tree.map(lambda a, b: jnp.concatenate([a, b], -2), results, last)


def _over_unknown(function, parts, masks, count, most):
    """Computes :func:`over_queries` for a symbolic number of queries, padded to whole blocks of ``most`` queries."""
    number, rows = -(-count // most), smaller(most, count)  # one block of all queries where these are fewer

    def in_padded_blocks(array):
        if array is None or array.shape[-2] == 1:
            return None
        filled = resized(array, -2, number * rows)
        blocks = jnp.reshape(filled, (*array.shape[:-2], number, rows, array.shape[-1]))
        return jnp.moveaxis(blocks, -3, 0)

    def block_step(_, own):
        return None, rematerialized(*(a if b is None else b for a, b in zip(shared, own, strict=True)))

    arrays, rematerialized = (*parts, *masks), remat(function)
    own = [in_padded_blocks(array) for array in arrays]
    shared = [array if blocks is None else None for array, blocks in zip(arrays, own, strict=True)]
    _, results = lax.scan(block_step, None, own)
    return jax.tree.map(lambda result: resized(_from_blocks(result, number * rows), -2, count), results)


@dataclass(frozen=True)
class ForQueries:
    """Choice of an implementation for a function that loops over queries: the requested one, or the default.

    The default is "tiles" if the scores exceed a block, else "einsum".

    Attributes:
      queries: the name of the argument [..., n, d] whose tokens are split into blocks.
      keys: the name of the argument [..., m, d] whose tokens each query is compared with, or averages.
      heads: the letter of the axis of heads, or "".
    """

    queries: str
    keys: str
    heads: str = ""

    def __call__(self, values, call):
        """Returns "einsum" or "tiles", or another implementation if the call requests it.

        Args:
          values: every argument by name; arrays, or objects with a shape and a dtype.
          call: the resolved signature (:class:`attnpool_ref.contract.Call`).
        """
        if values["implementation"]:
            return values["implementation"]
        masks = [values[key] for key, own in call.arguments.items() if own.kind in ("mask", "lengths")]
        arrays = [values[self.queries], values[self.keys], *(mask for mask in masks if mask is not None)]
        shared = all(array.ndim <= 2 for array in arrays)
        held = self._keys(values, call) * (1 if shared else math.prod(call.batch))
        return "tiles" if exceeds_a_block(values[self.queries].shape[-2], held, platform()) else "einsum"

    def scores(self, values, call):
        """Returns the number of scores of all examples, or 0 if "einsum" is requested, which computes all at once."""
        if values["implementation"] == "einsum":
            return 0
        return math.prod(call.batch) * values[self.queries].shape[-2] * self._keys(values, call)

    def _keys(self, values, call):
        """Returns the number of scores of one query in one example."""
        return (call.sizes[self.heads] if self.heads else 1) * values[self.keys].shape[-2]


def _rows_of_mask(mask, start, rows):
    if mask is None or mask.shape[-2] == 1:
        return mask
    return lax.dynamic_slice_in_dim(mask, start, rows, -2)


def _from_blocks(blocks, whole):
    """Reshapes [k, ..., rows, v] to [..., k rows, v]."""
    blocks = jnp.moveaxis(blocks, 0, -3)
    return jnp.reshape(blocks, (*blocks.shape[:-3], whole, blocks.shape[-1]))


def size_of(*arrays_and_axes):
    """Returns the number of examples: the product of the batch axes to which those of the arrays broadcast.

    Args:
      *arrays_and_axes: each array, followed by the number of its last axes that are not batch axes.
    """
    pairs = zip(arrays_and_axes[::2], arrays_and_axes[1::2], strict=True)
    return math.prod(jnp.broadcast_shapes(*(array.shape[: array.ndim - own] for array, own in pairs)))


# --------------------------------------------------------------------------------------------------------------
# Blocks of sequences


def over_sequences(tiled, function, axis, own, shared):
    """Computes ``function(own, shared)`` of all sequences, on CPUs in blocks of sequences if ``tiled``.

    Args:
      tiled: whether to use blocks, if there is more than one and no size is a symbol.
      function: from the arrays of some sequences, and the shared arrays, to a tuple of arrays.
      axis: the axis of the sequences in the results.
      own: arrays [n, ...] of the sequences: tokens [n, L, d], mask [n, L] or None, scores [n, m, L] if given.
      shared: arrays that all sequences share: queries [m, d] first; may be empty.
    """
    count, length, width = own[0].shape
    partners = own[2].shape[1] if len(own) > 2 else shared[0].shape[0] if shared else 1
    cost = (length + partners) * width
    if tiled and known(count, cost) and rows_of(cost) < count:
        return written_in_blocks(function, even_rows(rows_of(cost), count), axis, own, shared)
    return placed(function, axis, own, shared)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2))
def written_in_blocks(function, rows, axis, own, shared):
    """Computes ``function(own, shared)``, on CPUs in blocks of elements that are written into the results in place.

    A ``lax.scan`` would stack the results of its steps along a first axis, which only a copy moves elsewhere.

    Args:
      function: from (arrays with some elements along the first axis, the shared arrays) to arrays with these elements
        along the first axis.
      rows: the number of elements of a block, at most that of all.
      axis: the axis of the elements in the results.
      own: arrays of one length along the first axis, or None, varying over the same mesh axes as the shared ones.
      shared: arrays, or None.
    """
    by_blocks = functools.partial(_written, function, rows, axis)
    return platforms.choose(own, shared, cpu=by_blocks, default=functools.partial(placed, function, axis))


def placed(function, axis, own, shared):
    """Computes ``function(own, shared)``, and swaps the first axis of each result with ``axis``."""
    return jax.tree.map(lambda result: jnp.swapaxes(result, 0, axis), function(own, shared))


def _written(function, rows, axis, own, shared):
    first, *_ = jax.tree.leaves(own)
    blocks = Blocks(first.shape[0], rows)

    def block_step(step, results):
        block = jax.tree.map(lambda array: blocks.slice(array, step), own)
        computed = placed(function, axis, block, shared)
        return jax.tree.map(lambda result, new: blocks.update(result, new, step, axis), results, computed)

    def place(result):
        # the axis as fill value, because XLA would merge equal arrays of several calls, and copy them for each loop
        return cast_varying(jnp.full(result.shape, axis, result.dtype), varying_axes(first))

    results = jax.eval_shape(functools.partial(placed, function, axis), own, shared)
    return lax.fori_loop(0, blocks.steps, block_step, jax.tree.map(place, results))


def _in_blocks(function, rows, axis, own, shared):
    """Computes :func:`written_in_blocks` by a loop that JAX differentiates."""
    results = over_blocks(lambda own: function(own, shared), own, rows)
    return jax.tree.map(lambda result: jnp.swapaxes(result, 0, axis), results)


@written_in_blocks.defjvp
def _written_jvp(function, rows, axis, primals, tangents):
    def tangent(compute):
        return lambda primals, tangents: jax.jvp(compute, primals, tangents)[1]

    by_blocks = tangent(functools.partial(_in_blocks, function, rows, axis))
    at_once = tangent(remat(functools.partial(placed, function, axis)))
    result = written_in_blocks(function, rows, axis, *primals)
    return result, platforms.choose(primals, tangents, cpu=by_blocks, tpu=by_blocks, default=at_once)
