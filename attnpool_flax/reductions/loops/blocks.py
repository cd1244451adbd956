"""Blocks of equal size along an axis. The last one starts early enough to be full, and may overlap the previous one."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.remat import remat


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
      apart: whether a block has each so many-th element, so that each device of a split axis has a part of it; else its
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
