"""Loop over tiles of dense tokens [B, L, d]: on CPUs a reduction reads one tile at a time into the cache.

XLA's CPU backend calls a library for products and sums, and cannot fuse the ``where`` of a mask into the call: the mask
would cost a copy of x. Inside of a loop's step the ``where`` costs nothing, because the tile is copied into the cache
anyway. Tiles behind the last real token of an example are not visited. Without a mask the library reads float32 tokens
in place, and whole products take less time than the loop. On accelerators
:func:`~attnpool_flax.reductions.dispatch.by_platform` calls a kernel of whole products: by the estimates of a TPU's
compiler, loops are slower there.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap

from attnpool_flax.numerics.platforms import cast_varying, varying_axes
from attnpool_flax.numerics.products import is_narrow
from attnpool_flax.numerics.sizes import known
from attnpool_flax.reductions.loops.blocks import inside_loop

WHOLE = 2**20
"""Bytes of x up to which a loop does not pay."""

ROW = 3 * 2**12
"""The number of elements of one sequence below which a tile has several whole sequences."""

TILE = 2**16
"""The largest number of elements of a tile that is a part of one sequence: 64 tokens of 768 features."""

TOKENS = 512
"""The largest number of tokens of such a tile: float32 sums of more tokens drift."""

CHAIN = 32
"""The largest number of tiles in a chain, which are added one after another: longer float32 sums drift."""


class Tiling(NamedTuple):
    """Division of [B, L, d] into tiles: ``rows`` examples with all their tokens, or ``size`` tokens of one example.

    Attributes:
      batch: B, an integer, or a symbol of ``jax.export``.
      length: L.
      rows: the number of examples of a tile.
      size: the number of tokens of a tile.
    """

    batch: Any
    length: int
    rows: int
    size: int

    @property
    def tiles(self):
        """The number of tiles of an example."""
        return -(-self.length // self.size)

    @property
    def chains(self):
        """The number of chains of an example: at most CHAIN tiles whose states are merged one after another."""
        return -(-self.tiles // CHAIN)

    def over_tiles(self, body, x, mask, state, arrays=()):
        """Computes ``state, arrays = body(tile, tokens, state, arrays)`` for one tile after another.

        Args:
          body: from a :class:`Tile`, its tokens [rows, size, d], 0 at padding, the state before it and the arrays so
            far to the state after it and the next arrays (:meth:`Tile.update`).
          x: [B or 1, L, d] tokens; examples may share them.
          mask: bool [B, L], or None.
          state: a tree of arrays [rows, ...], the state before the first tile of a chain.
          arrays: a tree of arrays [B, L, ...].

        Returns:
          (a tree of the states [B, chains, ...] after each chain, the last arrays).
        """
        tiles = jnp.int32(self.tiles)
        last = None if mask is None or self.tiles == 1 else _last(mask)

        def step(carry):
            index, before, states, arrays = carry
            order = lax.rem(index, tiles)  # of the tile in its example
            tile = Tile(self, lax.div(index, tiles) * self.rows, order * self.size, None)
            tile = tile if mask is None else tile._replace(real=tile.slice(mask))
            if self.tiles == 1:
                before = state
            else:
                starts = lax.rem(order, jnp.int32(CHAIN)) == 0
                before = jax.tree.map(lambda a, b: jnp.where(starts, a, b), state, before)
            after, arrays = body(tile, tile.tokens(x), before, arrays)
            states = jax.tree.map(tile.update_chain, states, after)
            following = index + 1
            if last is not None:
                done = tile.first + self.size > _at(last, (tile.row,), (1,))[0]
                following = jnp.where(done, index - order + tiles, following)
            return following, after, states, arrays

        def stacked(array):
            return jnp.broadcast_to(array[:1, None], (self.batch, self.chains, *array.shape[1:]))

        def unfinished(carry):
            return carry[0] < -(-self.batch // self.rows) * self.tiles

        start = jnp.zeros((), jnp.int32), state, jax.tree.map(stacked, state), arrays
        axes = varying_axes(x)
        start = jax.tree.map(lambda array: cast_varying(array, axes - varying_axes(array)), start)
        return lax.while_loop(unfinished, step, start)[2:]


class Tile(NamedTuple):
    """One tile: the examples from ``row`` on and the tokens from ``first`` on.

    The last tile of an example, or of the batch, starts earlier where it would not be full.

    Attributes:
      tiling: the :class:`Tiling`.
      row: the first example that no earlier tile has.
      first: the first token that no earlier tile of the example has.
      real: bool [rows, size], True at real tokens; None if all are.
    """

    tiling: Tiling
    row: Any
    first: Any
    real: Any

    def tokens(self, x):
        """Slices the tile's tokens [rows, size, d], 0 at padding."""
        tokens = self.masked(self.slice(x), 0)
        return jnp.broadcast_to(tokens, (self.tiling.rows, *tokens.shape[1:]))  # examples may share them

    def slice(self, array):
        """Slices the tile [rows or 1, size, ...] of an array [B or 1, L, ...] in its own dtype."""
        row, first = self._start()
        array, first = inside_loop(array, first)
        shared = array.shape[0] == 1
        return _at(array, (0 if shared else row, first), (1 if shared else self.tiling.rows, self.tiling.size))

    def slice_examples(self, array):
        """Slices the examples [rows or 1, ...] of the tile from an array [B or 1, ...] without a token axis."""
        return array if array.shape[0] == 1 else _at(array, self._start()[:1], (self.tiling.rows,))

    def update(self, array, values):
        """Replaces the tile of an array [B, L, ...] by [rows, size, ...]: of tokens of an earlier tile by the same."""
        return _replaced(array, values, self._start())

    def update_chain(self, array, values):
        """Replaces the tile's examples and chain of an array [B, chains, ...] by [rows, ...]."""
        chain = 0 if self.tiling.chains == 1 else lax.div(self.first, jnp.int32(CHAIN * self.tiling.size))
        return _replaced(array, values[:, None], (self._start()[0], chain))

    def masked(self, values, fill):
        """Replaces [rows, size, ...] by ``fill`` at padding."""
        return values if self.real is None else _where(self.real, values, fill)

    def counted(self, values, fill):
        """Replaces [rows, size, ...] by ``fill`` for tokens that an earlier tile of the example has.

        It is for what is summed, or compared with a maximum. :meth:`update` writes these tokens once more, and gets the
        values from before.
        """
        if not self.tiling.length % self.tiling.size:
            return values
        return _where((self._start()[1] + lax.iota(jnp.int32, self.tiling.size) >= self.first)[None], values, fill)

    def _start(self):
        """Returns (first example, first token) of the tile."""
        batch, length, rows, size = self.tiling
        row = jnp.minimum(self.row, batch - rows) if rows > 1 and batch % rows else self.row
        return row, jnp.minimum(self.first, length - size) if length % size else self.first


def _where(condition, values, fill):
    return jnp.where(jnp.reshape(condition, (*condition.shape, *(1,) * (values.ndim - 2))), values, fill)


def _last(mask):
    """Returns the last real token [B] of each example; 0 for a fully masked row."""
    # the largest index is its own position, and XLA compiles an argmax to fewer kernels than a maximum
    return lax.argmax(jnp.where(mask, lax.iota(jnp.int32, mask.shape[1]), 0), 1, jnp.int32)


def _at(array, start, sizes):
    """Slices an array by the first elements and sizes of its first axes; the other axes are whole."""
    start, sizes = _indices(array, start), (*sizes, *array.shape[len(sizes) :])
    return lax.dynamic_slice(array, start, sizes, allow_negative_indices=False)


def _replaced(array, values, start):
    return lax.dynamic_update_slice(array, values, _indices(array, start), allow_negative_indices=False)


def _indices(array, start):
    return [jnp.asarray(i, jnp.int32) for i in (*start, *(0,) * (array.ndim - len(start)))]


def make_tiling(batch, length, width):
    """Returns the :class:`Tiling` of tokens [batch, length, width], none of which is 0."""
    if length * width < ROW and known(batch):
        return Tiling(batch, length, max(1, min(batch, WHOLE // 4 // (length * width))), length)
    size = max(1, TILE // width)
    size = min(length, TOKENS, 2 ** (size.bit_length() - 1))
    tiles = -(-length // size)
    return Tiling(batch, length, 1, -(-length // tiles))  # tiles of even sizes overlap less


def tiling_of(x, *others):
    """Returns the :class:`Tiling` of tokens [B or 1, L, d].

    It is None if the tokens have at most WHOLE bytes, or if L or d is a symbol of ``jax.export``. If the tokens are
    shared, B comes from the other arrays [B or 1, ...], which may be None.
    """
    batch = next((array.shape[0] for array in (x, *others) if array is not None and array.shape[0] != 1), 1)
    _, length, width = x.shape
    if not known(length, width) or not length * width:
        return None
    if known(batch) and batch * length * width * x.dtype.itemsize <= WHOLE:
        return None
    return make_tiling(batch, length, width)


def flatten_batch(x):
    """Reshapes tokens [..., L, d] to [B, L, d].

    Reductions call this inside of their gradient rules, so that the residual is x in the caller's shape. A residual of
    another shape would be another array, which a scan over chunks would copy.
    """
    return jnp.reshape(x, (math.prod(x.shape[:-2]), *x.shape[-2:]))


def with_rules(tiled, plain, unmasked=None):
    """Returns a kernel that loops over tiles, with rules by which JAX differentiates and maps it.

    Its derivative is that of ``plain``, because a loop with an unknown number of steps has no reverse mode. Reductions
    have gradient rules that call the kernel, and need its derivative only for second derivatives. Under ``vmap`` the
    mapped axis becomes a part of the batch, because a mapped loop would compute each step for all its examples.

    Args:
      tiled: from arrays [B or 1, ...] (or None) and ``tiling`` to a tree of arrays [B, ...]. The first two arrays are
        the tokens and their mask.
      plain: from the same arrays to the same results, without a loop.
      unmasked: like ``plain``. It replaces the loop if no token is masked or narrower than float32, because XLA's
        library then reads the tokens in place; None loops over them too.
    """

    def kernel(*arrays, tiling):
        x, mask = arrays[:2]
        if unmasked is not None and mask is None and not is_narrow(x):
            return unmasked(*arrays)
        loop = jax.custom_jvp(_mappable(tiled, tiling))
        loop.defjvp(lambda primals, tangents: (loop(*primals), jax.jvp(plain, primals, tangents)[1]))
        return loop(*arrays)

    return kernel


def _mappable(tiled, tiling):
    @custom_vmap
    def loop(*arrays):
        return tiled(*arrays, tiling=tiling)

    @loop.def_vmap
    def _(count, are_mapped, *arrays):
        x, is_mapped = arrays[0], are_mapped[0]
        copied = tiling.batch != 1 and (x.shape[1] == 1 if is_mapped else x.shape[0] != 1)
        if copied or (known(count) and not count):  # folding would copy the tokens, or there are none
            result = _mapped(loop, are_mapped, arrays)
        else:
            result = _folded(tiled, tiling, count, are_mapped, arrays)
        return result, jax.tree.map(lambda _: True, result)

    return loop


def _mapped(loop, are_mapped, arrays):
    """Computes a loop for one element of the mapped axis after another."""

    def one(own):
        own = iter(own)
        return loop(*(next(own) if is_mapped else array for array, is_mapped in zip(arrays, are_mapped, strict=True)))

    return lax.map(one, [array for array, is_mapped in zip(arrays, are_mapped, strict=True) if is_mapped])


def _folded(tiled, tiling, count, are_mapped, arrays):
    """Computes one loop, in which the mapped axis, of ``count`` elements, is a part of the batch."""
    folded = tiling._replace(batch=count * tiling.batch)

    def fold(array, is_mapped):
        if not is_mapped and array.shape[0] == 1:  # shared by all examples
            return array
        own = array.shape[1 + is_mapped :]
        array = jnp.broadcast_to(array if is_mapped else array[None], (count, tiling.batch, *own))
        return jnp.reshape(array, (folded.batch, *own))

    result = _mappable(tiled, folded)(*jax.tree.map(fold, arrays, tuple(are_mapped)))
    return jax.tree.map(lambda array: jnp.reshape(array, (count, tiling.batch, *array.shape[1:])), result)
