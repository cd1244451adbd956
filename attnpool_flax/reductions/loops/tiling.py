"""Tiling of dense tokens [B, L, d]: loops that read one tile at a time into the CPU's cache.

XLA's CPU backend calls a library for products and sums, and cannot fuse the ``where`` of a mask into the call: the mask
would cost a copy of x. Inside of a loop's step the ``where`` costs nothing, because the tile is copied into the cache
anyway. On accelerators :func:`by_platform` calls a kernel of whole products: by the estimates of a TPU's compiler, loops
are slower there.
"""

import functools
import math
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics import platforms
from attnpool_flax.numerics.sizes import known
from attnpool_flax.reductions.loops.blocks import Blocks, inside_loop

WHOLE = 2**20
"""Bytes of x up to which a loop does not pay."""

ROW = 3 * 2**14
"""Bytes of one sequence below which a tile has several whole sequences."""

TILE = 2**21
"""The largest number of bytes of a tile that is a part of one sequence."""

TOKENS = 512
"""The largest number of tokens of such a tile: float32 sums of more tokens drift."""

PREFIXES = (4, 2)
"""Prefixes of 1/4 and 1/2 of a tile: if all its real tokens are in one of them, the rest is not read."""

LEAST = 32
"""Smallest number of tokens of a prefix that is worth a branch."""


class Tiling(NamedTuple):
    """Division of [B, L, d] into tiles: ``rows`` examples with all their tokens, or ``size`` tokens of one example.

    Attributes:
      batch: B, an integer, or a symbol of ``jax.export``.
      length: L.
      rows: the number of examples of a tile.
      size: the number of tokens of a tile.
      read: the number of tokens at the start of a tile that are read.
    """

    batch: Any
    length: int
    rows: int
    size: int
    read: int

    @property
    def examples(self):
        """Blocks along the batch axis."""
        return Blocks(self.batch, self.rows)

    @property
    def tokens(self):
        """Blocks along the token axis."""
        return Blocks(self.length, self.size)

    @property
    def steps(self):
        """The number of tiles. A loop visits all tiles of an example, then those of the next example."""
        return self.examples.steps * self.tokens.steps

    def start(self, step):
        """Returns (first example, first token) of a tile."""
        return self.examples.start(step // self.tokens.steps), self.tokens.start(step % self.tokens.steps)

    def slice(self, array, step):
        """Slices the tile [rows or 1, read, ...] of an array [B or 1, L, ...] in its own dtype."""
        array, step = inside_loop(array, step)
        row, first = self.start(step)
        rows = min(self.rows, array.shape[0]) if known(array.shape[0]) else self.rows
        row = row if rows == self.rows and self._has_examples(array) else 0
        start = (row, first, *(0,) * (array.ndim - 2))
        return lax.dynamic_slice(array, start, (rows, self.read, *array.shape[2:]))

    def slice_examples(self, array, step):
        """Slices the examples [rows, ...] of a tile from an array [B, ...] that has no token axis.

        An array [1, ...] that all examples share is returned unchanged.
        """
        if not self._has_examples(array):
            return array
        row, _ = self.start(step)
        return lax.dynamic_slice(array, (row, *(0,) * (array.ndim - 1)), (self.rows, *array.shape[1:]))

    def _has_examples(self, array):
        return array.shape[0] == self.batch

    def masked_tile(self, x, mask, step, dtype):
        """Returns (tokens [rows, read, d], keep [rows, read]).

        Padding, and tokens that an earlier tile has, are 0 in ``tokens`` and False in ``keep``.
        """
        tokens = self.slice(x, step)
        keep = self.keep(mask, step)
        if mask is not None or self.length % self.size:
            tokens = jnp.where(keep[..., None], tokens, 0)
        tokens = jnp.broadcast_to(tokens, (self.rows, *tokens.shape[1:]))  # examples may share them
        return tokens.astype(dtype), keep

    def keep(self, mask, step):
        """Returns bool [rows, read]: True for real tokens that no earlier tile has."""
        keep = jnp.broadcast_to(self._tokens_outside_overlap(step), (self.rows, self.read))
        return keep if mask is None else keep & self.slice(mask, step)

    def _tokens_outside_overlap(self, step):
        _, first = self.start(step)
        return first + jnp.arange(self.read) >= step % self.tokens.steps * self.size

    def examples_outside_overlap(self, step):
        """Returns bool [rows]: True for examples of the tile that no earlier tile has."""
        return self.examples.outside_overlap(step // self.tokens.steps)

    def concatenate(self, tiles):
        """Joins the tiles [steps, rows, size, ...] of an array, without their overlap, by a copy: [B, L, ...]."""
        if self.tokens.steps == 1:
            return self.examples.concatenate(jnp.reshape(tiles, (-1, self.rows, *tiles.shape[2:])))
        return self.tokens.concatenate(jnp.reshape(tiles, (self.batch, self.tokens.steps, *tiles.shape[2:])), 1)

    def stack(self, partial):
        """Reshapes the partial results [steps, rows, ...] of tiles to [B, tiles of an example, ...]."""
        if self.tokens.steps == 1:
            return self.examples.concatenate(partial)[:, None]
        return jnp.reshape(partial, (self.batch, self.tokens.steps, *partial.shape[2:]))

    def shortest_prefix(self, compute, mask, step, fills=()):
        """Calls ``compute(tiling)`` for the shortest of a few prefixes of a tile that holds all its real tokens.

        Padding behind the prefix then costs nothing. Tiles of several examples are taken whole, and so are those of
        a batch of one example: it may be mapped by ``vmap``, under which all branches would run.

        Args:
          compute: from a tiling to (arrays [rows, read, ...], a tree of other arrays).
          mask: bool [B, L], or None.
          step: the step of the loop.
          fills: for each of the arrays, the value behind the prefix.

        Returns:
          The result of ``compute``, its arrays padded to [rows, size, ...].
        """
        sizes = [self.size // fraction for fraction in PREFIXES if self.size // fraction >= LEAST]
        if mask is None or self.rows > 1 or self.batch == 1 or not sizes:
            return compute(self)

        def prefix(size):
            arrays, others = compute(self._replace(read=size))
            return tuple(map(functools.partial(_padded, size=self.size), arrays, fills)), others

        real = self.slice(mask, step)[0] & self._tokens_outside_overlap(step)
        last = jnp.max(jnp.where(real, jnp.arange(self.size), -1))
        branch = sum(last >= size for size in sizes)
        return lax.switch(branch, [functools.partial(prefix, size) for size in (*sizes, self.size)])


def _padded(array, fill, size):
    """Pads [rows, read, ...] to [rows, size, ...]."""
    missing = [(0, 0)] * array.ndim
    missing[1] = (0, size - array.shape[1])
    return jnp.pad(array, missing, constant_values=fill)


def make_tiling(batch, length, width, itemsize):
    """Returns the :class:`Tiling` of tokens [batch, length, width] of ``itemsize`` bytes for each number.

    It is None if the tokens have at most WHOLE bytes, or if the length or the width is a symbol of ``jax.export``.
    """
    if not known(length, width):
        return None
    row = max(length * width * itemsize, 1)
    if not length or (known(batch) and batch * row <= WHOLE):
        return None
    if row < ROW and known(batch):
        return Tiling(batch, length, max(1, min(batch, WHOLE // row)), length, length)
    size = max(1, min(length, TOKENS, TILE // max(width * itemsize, 1)))
    return Tiling(batch, length, 1, size, size)


def tiling_of(x, *others):
    """Returns the :class:`Tiling` of tokens [B or 1, L, d]; None if there is none (:func:`make_tiling`).

    If the tokens are shared, B comes from the other arrays [B or 1, ...], which may be None.
    """
    batch = next((a.shape[0] for a in (x, *others) if a is not None and a.shape[0] != 1), 1)
    return make_tiling(batch, x.shape[1], x.shape[2], x.dtype.itemsize)


def flatten_batch(x):
    """Reshapes tokens [..., L, d] to [B, L, d].

    Reductions call this inside of their gradient rules, so that the residual is x in the caller's shape. A residual of
    another shape would be another array, which a scan over chunks would copy.
    """
    return jnp.reshape(x, (math.prod(x.shape[:-2]), *x.shape[-2:]))


def by_platform(tiled, plain, tiling, *arrays, whole=None):
    """Calls the kernel for the platform that the program is lowered for.

    Args:
      tiled: the kernel for CPUs, called with ``tiling=tiling``.
      plain: the kernel for every platform if ``tiling`` is None, and for accelerators if ``whole`` is None.
      tiling: the tiling of the tokens, or None.
      *arrays: the arguments of the kernel.
      whole: the kernel for accelerators, called with ``multiply=True`` on GPUs and ``multiply=False`` on TPUs; or None.
    """
    if tiling is None:
        return plain(*arrays)
    kernels = {"default": plain}
    if whole is not None:
        kernels = {"tpu": functools.partial(whole, multiply=False), "default": functools.partial(whole, multiply=True)}
    return platforms.choose(*arrays, cpu=functools.partial(tiled, tiling=tiling), **kernels)
