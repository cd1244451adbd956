"""Blocks of one size along an axis: the last one starts early to be whole, and overlaps the one before."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax


class Blocks(NamedTuple):
    """An axis of ``length`` elements in blocks of ``size``; a loop visits one block at each step.

    Attributes:
      length: the number of elements, an integer or a symbol.
      size: the number of elements of a block, at most the length.
    """

    length: Any
    size: int

    @property
    def steps(self):
        """The number of blocks, one for each step of a loop."""
        return -(-self.length // self.size)

    def start(self, step):
        """Returns the first element of a block."""
        return jnp.minimum(step * self.size, self.length - self.size)

    def outside_overlap(self, step):
        """Returns [size]: elements of the block that no earlier block holds."""
        return self.start(step) + jnp.arange(self.size) >= step * self.size

    def slice(self, array, step, axis=0):
        """Slices a block of an array in its own dtype."""
        array, step = inside_loop(array, step)
        return lax.dynamic_slice_in_dim(array, self.start(step), self.size, axis)

    def update(self, array, block, step, axis=0):
        """Writes a block into an array."""
        return lax.dynamic_update_slice_in_dim(array, block, self.start(step), axis)

    def concatenate(self, blocks, axis=0):
        """Drops the overlap: [..., steps, size, ...] with the blocks along ``axis`` becomes [..., length, ...]."""
        if self.size == 1:
            return lax.squeeze(blocks, (axis + 1,))
        done = (self.steps - 1) * self.size
        earlier = lax.slice_in_dim(blocks, 0, -1, axis=axis)
        earlier = jnp.reshape(earlier, (*blocks.shape[:axis], done, *blocks.shape[axis + 2 :]))
        last = lax.index_in_dim(blocks, -1, axis, keepdims=False)
        return jnp.concatenate(
            [earlier, lax.slice_in_dim(last, self.size - (self.length - done), None, axis=axis)], axis
        )


def inside_loop(array, step):
    """Returns the array for this step of a loop, and the step.

    XLA's CPU backend in JAX 0.10 slices no narrow float by index. It widens the whole array instead, and hoists that out of
    the loop because it does not depend on the step: a copy of twice the array's bytes. The barrier makes the array depend on
    the step, and only the slice is widened.
    """
    narrow = jnp.issubdtype(array.dtype, jnp.floating) and array.dtype.itemsize < 4
    return lax.optimization_barrier((array, step)) if narrow else (array, step)
