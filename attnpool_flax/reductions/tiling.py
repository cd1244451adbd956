"""Tiling of dense tokens [B, L, d]: loops that read each token once, one tile in the CPU's cache at a time.

XLA's CPU backend calls a library for products and sums, and fuses no select into it: a mask would cost a copy of x. Inside
a loop's step the select is free, because the tile is copied into the cache anyway. On accelerators loops are slower, and
:func:`by_platform` takes whole products there.
"""

import functools
import math
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.sizes import known
from attnpool_flax.reductions.blocks import Blocks, inside_loop

WHOLE = 2**20
"""Bytes of x that are not worth a loop."""

ROW = 3 * 2**14
"""Bytes of a sequence below which a tile has several sequences."""

TILE = 2**21
"""Bytes of a tile, where the end of the sequence does not limit it."""

TOKENS = 512
"""Largest number of tokens of a tile: float32 drifts over more."""

PREFIXES = (4, 2)
"""Fractions 1/4 and 1/2: a tile whose real tokens all lie in such a prefix is read no further."""

LEAST = 32
"""Smallest number of tokens of a prefix that is worth a branch."""


class Tiling(NamedTuple):
    """Tiling of [B, L, d] by ``rows`` examples with all their tokens, or by ``size`` tokens of one example.

    Attributes:
      batch: B, an integer or a symbol.
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
        """The number of tiles: all blocks of tokens of an example, then those of the next."""
        return self.examples.steps * self.tokens.steps

    def start(self, step):
        """Returns (first example, first token) of a tile."""
        return self.examples.start(step // self.tokens.steps), self.tokens.start(step % self.tokens.steps)

    def slice(self, array, step):
        """Slices the tile [rows, read, ...] of an array [B or 1, L, ...] in its own dtype."""
        array, step = inside_loop(array, step)
        row, first = self.start(step)
        rows = min(self.rows, array.shape[0]) if known(array.shape[0]) else self.rows
        row = row if rows == self.rows and self._has_examples(array) else 0
        start = (row, first, *(0,) * (array.ndim - 2))
        return lax.dynamic_slice(array, start, (rows, self.read, *array.shape[2:]))

    def slice_examples(self, array, step):
        """Slices the examples [rows, ...] of a tile from an array [B, ...] without tokens; shared arrays [1, ...] stay."""
        if not self._has_examples(array):
            return array
        row, _ = self.start(step)
        return lax.dynamic_slice(array, (row, *(0,) * (array.ndim - 1)), (self.rows, *array.shape[1:]))

    def _has_examples(self, array):
        return array.shape[0] == self.batch

    def masked_tile(self, x, mask, step, dtype):
        """Returns (tokens [rows, read, d], keep [rows, read]): padding and overlap are 0, and not kept."""
        tokens = self.slice(x, step)
        keep = self.keep(mask, step)
        if mask is not None or self.length % self.size:
            tokens = jnp.where(keep[..., None], tokens, 0)
        return tokens.astype(dtype), keep

    def keep(self, mask, step):
        """Returns bool [rows, read]: real tokens that no earlier tile holds."""
        keep = jnp.broadcast_to(self._tokens_outside_overlap(step), (self.rows, self.read))
        return keep if mask is None else keep & self.slice(mask, step)

    def _tokens_outside_overlap(self, step):
        _, first = self.start(step)
        return first + jnp.arange(self.read) >= step % self.tokens.steps * self.size

    def examples_outside_overlap(self, step):
        """Returns bool [rows]: examples of the tile that no earlier tile holds."""
        return self.examples.outside_overlap(step // self.tokens.steps)

    def concatenate(self, tiles):
        """Puts tiles [steps, rows, size, ...] of a small array together: [B, L, ...]."""
        if self.tokens.steps == 1:
            return self.examples.concatenate(jnp.reshape(tiles, (-1, self.rows, *tiles.shape[2:])))
        return self.tokens.concatenate(jnp.reshape(tiles, (self.batch, self.tokens.steps, *tiles.shape[2:])), 1)

    def stack(self, partial):
        """Reshapes the partial results [steps, rows, ...] of tiles to [B, tiles of an example, ...]."""
        if self.tokens.steps == 1:
            return self.examples.concatenate(partial)[:, None]
        return jnp.reshape(partial, (self.batch, self.tokens.steps, *partial.shape[2:]))

    def shortest_prefix(self, compute, mask, step, fills=()):
        """Computes ``compute(tiling)`` for the shortest prefix of a tile, of a few, that holds all its real tokens.

        Padding at the end then costs nothing. Under ``vmap`` all branches would run; a single example takes the whole tile.

        Args:
          compute: from a tiling to (arrays [rows, read, ...], a tree of other arrays).
          mask: bool [B, L], or None.
          step: the step of the loop.
          fills: for each of the arrays the value behind the prefix.

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
    """Returns the tiling of [batch, length, width]; None for too few tokens, or a symbolic size of one example."""
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
    """Returns the tiling of tokens [B or 1, L, d]; B may come from others, [B or 1, ...] or None."""
    batch = next((a.shape[0] for a in (x, *others) if a is not None and a.shape[0] != 1), 1)
    return make_tiling(batch, x.shape[1], x.shape[2], x.dtype.itemsize)


def flatten_batch(x):
    """Reshapes tokens [..., L, d] to [B, L, d].

    Reductions flatten inside of their gradient rules, whose residuals keep x in its own shape: a scan over chunks would
    copy a residual that is another array than the chunk.
    """
    return jnp.reshape(x, (math.prod(x.shape[:-2]), *x.shape[-2:]))


def by_platform(tiled, plain, tiling, *arrays, whole=None):
    """Calls the kernel for the platform that the program is lowered for.

    Args:
      tiled: for CPUs, with ``tiling=tiling``.
      plain: for all platforms without a tiling, and for accelerators unless ``whole`` is given.
      tiling: of the tokens, or None.
      *arrays: the arguments of the kernel.
      whole: for accelerators, with ``multiply=True`` for GPUs and False for TPUs, or None.
    """
    if tiling is None:
        return plain(*arrays)
    kernels = {"default": plain}
    if whole is not None:
        kernels = {"tpu": functools.partial(whole, multiply=False), "default": functools.partial(whole, multiply=True)}
    return lax.platform_dependent(*arrays, cpu=functools.partial(tiled, tiling=tiling), **kernels)
