"""Blocks of an axis: their size, for the memory of each platform, and loops that compute one block at a time.

The last block of :class:`Blocks` may overlap the previous one. Sums over tokens of a function of each token
(:func:`sum_of_map`) hold its values for one block of tokens at a time: the backward pass recomputes each full block.
Only tokens that fit one block, or sizes that are symbols, are computed at once. JAX differentiates the loop, so forward
mode and ``shard_map`` work.
"""

import functools
import math
import os
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics import platforms
from attnpool_flax.numerics.platforms import cast_varying, on_several_devices, unify_varying, varying_axes
from attnpool_flax.numerics.remat import remat
from attnpool_flax.numerics.sizes import known
from attnpool_flax.numerics.sums import computing_dtype

LARGEST = 2**20
"""The largest number of elements of a block on CPUs, which fits their caches."""

WHOLE_BLOCKS = 2
"""The number of blocks up to which CPUs compute all queries at once: that is faster, and compiles in half the time."""


def _budget(environment):
    """Returns the bytes of a block on TPUs and on GPUs: 1/16 of the memory of a v5e (16 GB) and of a GPU of 80 GB.

    ``ATTNPOOL_BLOCK_BYTES`` in ``environment`` replaces both; it is a ValueError if this is not a number.
    """
    budget = {"tpu": 2**30, "default": 5 * 2**30}
    requested = environment.get("ATTNPOOL_BLOCK_BYTES")
    if requested is None:
        return budget
    if not requested.isdecimal():
        raise ValueError(f"attnpool_flax: ATTNPOOL_BLOCK_BYTES is {requested!r}, needs a number of bytes")
    return dict.fromkeys(budget, int(requested))


BUDGET = _budget(os.environ)
"""Bytes of a block on accelerators; the environment variable ``ATTNPOOL_BLOCK_BYTES`` replaces them at import."""

ON_CHIP = 2**24
"""The number of float32 elements of a block that XLA leaves in a TPU's on-chip memory: 64 MiB of 128 MiB on v5e and v6e."""

FEW = 64
"""The number of queries of a block if their number of elements, ``keys``, is a symbol of ``jax.export``."""


class Blocks(NamedTuple):
    """Division of an axis of ``length`` elements into blocks of ``size``; a loop visits one block in each step.

    Steps are counted from 0, and may be traced.

    Attributes:
      length: the number of elements, an integer or a symbol of ``jax.export``.
      size: the number of elements of a block, at most the length.
    """

    length: Any
    size: int

    @property
    def steps(self):
        """The number of blocks, one for each step of a loop."""
        return -(-self.length // self.size)

    def start(self, step):
        """Returns the index of the first element of the block of a step."""
        return jnp.minimum(step * self.size, self.length - self.size)

    def outside_overlap(self, step):
        """Returns bool [size]: True for the elements of the block that are in no earlier block."""
        return self.start(step) + jnp.arange(self.size) >= step * self.size

    def slice(self, array, step, axis=0):
        """Returns the block of a step, ``size`` elements of an array along ``axis``, in the array's dtype."""
        array, step = inside_loop(array, step)
        return lax.dynamic_slice_in_dim(array, self.start(step), self.size, axis)

    def update(self, array, block, step, axis=0):
        """Returns the array with the block of a step replaced along ``axis``."""
        return lax.dynamic_update_slice_in_dim(array, block, self.start(step), axis)

    def concatenate(self, blocks, axis=0):
        """Joins the blocks of all steps without their overlap.

        Blocks [..., steps, size, ...], with the steps at ``axis``, become [..., length, ...].
        """
        if self.size == 1:
            return lax.squeeze(blocks, (axis + 1,))
        done = (self.steps - 1) * self.size
        earlier = lax.slice_in_dim(blocks, 0, -1, axis=axis)
        earlier = jnp.reshape(earlier, (*blocks.shape[:axis], done, *blocks.shape[axis + 2 :]))
        last = lax.index_in_dim(blocks, -1, axis, keepdims=False)
        return jnp.concatenate(
            [earlier, lax.slice_in_dim(last, self.size - (self.length - done), None, axis=axis)], axis
        )


def over_blocks(function, own, rows, axis=0, apart=False):
    """Computes ``function(own)`` for ``rows`` elements along an axis at a time, then for the rest.

    The backward pass recomputes each full block, except its saveable arrays.

    Args:
      function: from a tree of arrays with some elements along the axis to another such tree.
      own: a tree of arrays of one length along the axis.
      rows: the number of elements of a block.
      axis: the axis, not negative.
      apart: whether one of n blocks has every n-th element, so that each device of a split axis has a part of it; else its
        elements follow one another, and are not copied.
    """
    count = jax.tree.leaves(own)[0].shape[axis]
    if rows >= count:
        return function(own)
    steps, at = count // rows, axis + apart
    whole, parts = rows * steps, (rows, steps) if apart else (steps, rows)

    def split(array):
        array = lax.slice_in_dim(array, 0, whole, axis=axis)
        return jnp.moveaxis(jnp.reshape(array, (*array.shape[:axis], *parts, *array.shape[axis + 1 :])), at, 0)

    def joined(blocks):
        array = jnp.moveaxis(blocks, 0, at)
        return jnp.reshape(array, (*array.shape[:axis], whole, *array.shape[axis + 2 :]))

    results = jax.tree.map(joined, lax.map(remat(function), jax.tree.map(split, own)))
    if whole == count:
        return results
    rest = function(jax.tree.map(lambda array: lax.slice_in_dim(array, whole, None, axis=axis), own))
    return jax.tree.map(lambda a, b: jnp.concatenate([a, b], axis), results, rest)


def inside_loop(array, step):
    """Returns the array and the step of a loop, after a barrier if the array is bfloat16 or float16.

    XLA's CPU backend in JAX 0.10 cannot slice these dtypes by an index. It widens the whole array to float32 instead,
    and moves this conversion out of the loop, because it does not depend on the step: a copy of twice the array's
    bytes. Behind the barrier the array depends on the step, and only the slice is widened.
    """
    narrow = jnp.issubdtype(array.dtype, jnp.floating) and array.dtype.itemsize < 4
    return lax.optimization_barrier((array, step)) if narrow else (array, step)


# --------------------------------------------------------------------------------------------------------------
# Sizes of blocks


def by_budget(compute, cost, *arrays, on_gpus=None, on_tpus=None, count=None):
    """Calls ``compute(size, *arrays)`` with the block size for the platform that the program is lowered for.

    Args:
      compute: from the size of a block and the arrays to arrays. Only its memory depends on the size.
      cost: the number of array elements that are held for one item of a block, such as a query.
      *arrays: pytrees of arrays.
      on_gpus: ``compute`` for GPUs; by default the same.
      on_tpus: ``compute`` for TPUs; by default the same.
      count: the number of items, from which accelerators choose the block size (:func:`items_on`); None takes as many
        items as fit.
    """
    computes = {"cpu": compute, "tpu": on_tpus or compute, "default": on_gpus or compute}
    kernels = {name: functools.partial(own, items_on(name, cost, count)) for name, own in computes.items()}
    return platforms.choose(*arrays, **kernels)


def elements_on(name):
    """Returns the largest number of array elements of a block on a platform: "cpu", "tpu", or any other for GPUs."""
    return LARGEST if name == "cpu" else BUDGET.get(name, BUDGET["default"]) // 4


def items_on(name, cost, count=None):
    """Returns the number of items, of ``cost`` elements each, in a block on a platform.

    Without ``count``, and on CPUs, it is as many as fit. ``count`` is the number of all items: on accelerators the
    result is then all of them if they fit, else by :func:`even_rows`, on TPUs at most as many as stay on the chip,
    unless one does not.
    """
    most = rows_of(cost, elements_on(name))
    if count is None or name == "cpu":
        return most
    return count if most >= count else even_rows(min(most, ON_CHIP // cost or most) if name == "tpu" else most, count)


def exceeds_a_block(count, keys, name="cpu"):
    """Returns whether ``count`` queries, with ``keys`` elements each, are computed in blocks on a platform.

    On CPUs they are if they exceed WHOLE_BLOCKS of them, elsewhere if they exceed one. A symbolic count always does.
    """
    largest = WHOLE_BLOCKS * LARGEST if name == "cpu" else elements_on(name)
    return not (known(count) and rows_of(keys, largest) >= count)


def rows_of(keys, largest=None):
    """Returns the number of queries in a block of ``largest`` elements, with ``keys`` elements each, at least 1.

    The default of ``largest`` is the limit on CPUs. If ``keys`` is a symbol, the number is FEW.
    """
    return max(1, (LARGEST if largest is None else largest) // max(1, keys)) if known(keys) else FEW


def even_rows(most, count):
    """Returns the largest size up to ``most``, above half of it, that divides ``count``; ``most`` if there is none."""
    return next((rows for rows in range(most, most // 2, -1) if count % rows == 0), most)


def split_rows(part, whole, rows):
    """Reshapes the first ``whole`` rows of [..., n, d] to [whole // rows, ..., rows, d]; None stays None."""
    if part is None:
        return None
    blocks = jnp.reshape(part[..., :whole, :], (*part.shape[:-2], whole // rows, rows, part.shape[-1]))
    return jnp.moveaxis(blocks, -3, 0)


def over_first(function, parts, cost):
    """Maps a function over the first axis of arrays, one block of elements at a time, like :func:`jax.lax.map`.

    Args:
      function: from one element of each array to arrays.
      parts: arrays (or None) of one length along the first axis; those of length 1 are shared.
      cost: the number of array elements that ``function`` holds for one element of the axis.
    """
    lengths = [part.shape[0] for part in parts if part is not None]
    count = next((length for length in lengths if not (known(length) and length == 1)), 1)
    single = known(count) and count == 1
    shared = [not single and part is not None and known(part.shape[0]) and part.shape[0] == 1 for part in parts]
    whole = [part[0] if is_shared else None for is_shared, part in zip(shared, parts, strict=True)]

    def element(own):
        return function(*(a if is_shared else b for is_shared, a, b in zip(shared, whole, own, strict=True)))

    own = [None if is_shared else part for is_shared, part in zip(shared, parts, strict=True)]
    if not known(count, cost):
        return lax.map(remat(element), own)

    def by_blocks(at_once, own):
        if count <= at_once:
            return jax.vmap(element, axis_size=count)(own)
        if at_once == 1:
            return lax.map(remat(element), own)
        return lax.map(remat(element), own, batch_size=at_once)

    if count <= rows_of(cost):
        return by_blocks(count, own)
    small = not on_several_devices(jax.tree.leaves(own))  # which may hold different parts of the axis
    return by_budget(by_blocks, cost, own, count=count if small else None)


# --------------------------------------------------------------------------------------------------------------
# Sums over tokens of a function of each token


def sum_of_map(function, x, real, mask, width):
    """Sums ``function(tokens)`` over the real tokens of each example: [..., o].

    Args:
      function: from tokens [..., rows, d] in float32 (or float64, as x), 0 at padding, to [..., rows, o].
      x: [..., L, d] tokens, in any floating dtype.
      real: bool of x's shape without d: tokens that are real in any example that shares them; None if all are real.
      mask: bool [..., L] of all examples, or None.
      width: the number of array elements that the function holds for one token.
    """

    def block(x, real, mask):
        values = function(_zero_padded(x, real))
        return jnp.sum(values if mask is None else jnp.where(mask, values, 0), -2)

    real, mask = (array if array is None else array[..., None] for array in (real, mask))
    parts = unify_varying(x, real, mask)
    return _sum_of_blocks(block, jnp.add, parts, jax.eval_shape(block, *parts), math.prod(x.shape[:-2]) * width)


def packed_sum_of_map(function, x, segments, width):
    """Sums ``function(tokens)`` over the real tokens of each segment: [S, o].

    Args:
      function: from tokens [rows, d] in float32 (or float64, as x), 0 at padding, to [rows, o].
      x: [N, d] tokens, in any floating dtype.
      segments: the S :class:`~attnpool_flax.reductions.packed.segments.Segments`, at least one.
      width: the number of array elements that the function holds for one token.
    """

    def block(x, real, slots):
        return slots[:, 0], jnp.where(real, function(_zero_padded(x, real)), 0)

    def add(sums, mapped):
        slots, values = mapped
        return sums.at[slots].add(values, mode="promise_in_bounds", indices_are_sorted=segments.ordered)

    parts = x, segments.real[:, None], segments.chain[0][:, None]
    _, values = jax.eval_shape(block, *parts)
    sums = jax.ShapeDtypeStruct((segments.sizes[0], values.shape[1]), values.dtype)
    return segments.sum_slots(_sum_of_blocks(block, add, parts, sums, width))


def _zero_padded(x, real):
    x = x if real is None else jnp.where(real, x, 0)
    return x.astype(computing_dtype(x.dtype))


def _sum_of_blocks(block, add, parts, sums, cost):
    """Adds up the results of ``block`` for blocks of ``parts``, arrays [..., tokens, features] or None.

    ``add`` is a function of the sum so far and the result of a block. ``sums`` has the sum's shape and dtype; the sum
    starts at 0. ``cost`` is the number of array elements that ``block`` holds for one token.
    """
    start = cast_varying(jnp.zeros(sums.shape, sums.dtype), varying_axes(parts[0]))
    count = parts[0].shape[-2]
    if not known(count, cost) or rows_of(cost) >= count:
        return add(start, block(*parts))
    return by_budget(functools.partial(_sum_over_blocks, block, add), cost, start, parts)


def _sum_over_blocks(block, add, rows, start, parts):
    count = parts[0].shape[-2]
    if rows >= count:
        return add(start, block(*parts))
    whole = count // rows * rows
    rematerialized = remat(block)

    def block_step(sums, own):
        return add(sums, rematerialized(*own)), None

    sums, _ = lax.scan(block_step, start, tuple(split_rows(part, whole, rows) for part in parts))
    if whole == count:
        return sums
    return add(sums, block(*(part if part is None else part[..., whole:, :] for part in parts)))
