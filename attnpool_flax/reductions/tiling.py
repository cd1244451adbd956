"""Tiles: loops that read each token from memory once, one block that fits into the cache at a time.

XLA's CPU backend calls a library for products and sums, and fuses no select into it: a mask would cost a copy of x. Inside
of a loop's step the select is free, because the tile is copied into the cache anyway. On accelerators loops are slower.
"""

import functools
import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.sizes import known

WHOLE = 2**20
"""Bytes of x that are not worth a loop."""

ROW = 3 * 2**14
"""Bytes of a sequence below which a trip takes several of them."""

TILE = 2**21
"""Bytes of a tile, where the tokens do not end it."""

TOKENS = 512
"""Tokens of a tile at most: float32 drifts over more."""

PREFIXES = (4, 2)
"""A tile whose real tokens all stand in such a part of it, at its beginning, is read no further."""

LEAST = 32
"""Tokens of a prefix that are worth a choice."""


class Tiling(NamedTuple):
    """Tiling of [B, L, d] by ``rows`` examples with all their tokens, or by ``size`` tokens of one example.

    Attributes:
      batch: B, an integer or a symbol.
      length: L.
      rows: the number of examples of a tile.
      size: the number of tokens of a tile.
      taken: the number of tokens at its beginning that are read.
    """

    batch: int
    length: int
    rows: int
    size: int
    taken: int

    @property
    def parts(self):
        """Tiles of one example (or one block of them)."""
        return -(-self.length // self.size)

    @property
    def trips(self):
        """Tiles in all."""
        return -(-self.batch // self.rows) * self.parts


def tiling(batch, length, width, itemsize):
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


def flat(x):
    """Reshapes tokens [..., L, d] to [B, L, d].

    Walks flatten them inside of their rules for gradients, which keep x as it came: a scan over chunks would copy what it
    keeps if that were another array than the chunk.
    """
    return jnp.reshape(x, (math.prod(x.shape[:-2]), *x.shape[-2:]))


def walk(tiled, plain, plan, *arrays):
    """Calls ``tiled(*arrays, plan=plan)`` on CPUs, ``plain(*arrays)`` elsewhere or without a plan."""
    if plan is None:
        return plain(*arrays)
    return lax.platform_dependent(*arrays, cpu=functools.partial(tiled, plan=plan), default=plain)


def corner(plan, trip):
    """Returns (row, first): the example and the token at which a tile begins; the last ones begin early and overlap."""
    row = jnp.minimum(trip // plan.parts * plan.rows, plan.batch - plan.rows)
    return row, jnp.minimum(trip % plan.parts * plan.size, plan.length - plan.size)


def cut(array, plan, trip):
    """Slices the tile [rows, taken, ...] of an array [B, L, ...] in its own dtype; if B is 1, of the only example."""
    array, trip = of_trip(array, trip)
    row, first = corner(plan, trip)
    rows = min(plan.rows, array.shape[0]) if known(array.shape[0]) else plan.rows
    start = (row if rows == plan.rows and _has_rows(array, plan) else 0, first, *(0,) * (array.ndim - 2))
    return lax.dynamic_slice(array, start, (rows, plan.taken, *array.shape[2:]))


def of_trip(array, trip):
    """Returns the array for this step of a loop, and the step; blocks are sliced by index.

    XLA's CPU backend in JAX 0.10 cuts no narrow float by index. It widens all of the array, and does so before the loop as
    nothing there depends on the trip: a copy of twice its bytes. What depends on the trip stays inside, where of the
    widened array only the part is computed.
    """
    narrow = jnp.issubdtype(array.dtype, jnp.floating) and array.dtype.itemsize < 4
    return lax.optimization_barrier((array, trip)) if narrow else (array, trip)


def of_rows(array, plan, trip):
    """Slices the examples [rows, ...] of a tile from an array [B, ...] without tokens; if B is 1, the only one."""
    if not _has_rows(array, plan):
        return array
    row, _ = corner(plan, trip)
    return lax.dynamic_slice(array, (row, *(0,) * (array.ndim - 1)), (plan.rows, *array.shape[1:]))


def _has_rows(array, plan):
    return array.shape[0] == plan.batch


def new(plan, trip):
    """Returns [taken]: tokens of the tile that no tile before it held."""
    _, first = corner(plan, trip)
    return first + jnp.arange(plan.taken) >= trip % plan.parts * plan.size


def new_rows(plan, trip):
    """Returns [rows]: examples of the tile that no tile before it held."""
    row, _ = corner(plan, trip)
    return row + jnp.arange(plan.rows) >= trip // plan.parts * plan.rows


def joined(tiles, plan):
    """Tiles [trips, rows, size, ...] of a small array as [B, L, ...]."""
    if plan.parts == 1:
        return without_overlap(jnp.reshape(tiles, (-1, plan.rows, *tiles.shape[2:])), plan.batch)
    whole = jnp.reshape(tiles, (plan.batch, plan.parts, *tiles.shape[2:]))
    done = (plan.parts - 1) * plan.size
    start = jnp.reshape(whole[:, :-1], (plan.batch, done, *tiles.shape[3:]))
    return jnp.concatenate([start, whole[:, -1, plan.size - (plan.length - done) :]], 1)


def joined_rows(tiles, plan):
    """Tiles [trips, rows, ...] of what an example has once a part, as [B, parts, ...]."""
    if plan.parts == 1:
        return without_overlap(tiles, plan.batch)[:, None]
    return jnp.reshape(tiles, (plan.batch, plan.parts, *tiles.shape[2:]))


def without_overlap(blocks, batch):
    """Blocks [n, rows, ...], of which the last begins early, as [batch, ...]."""
    count, rows = blocks.shape[:2]
    if rows == 1:
        return blocks[:, 0]
    done = (count - 1) * rows
    start = jnp.reshape(blocks[:-1], (done, *blocks.shape[2:]))
    return jnp.concatenate([start, blocks[-1, rows - (batch - done) :]])


def plan_for(x, *others):
    """Returns the tiling of tokens [B or 1, L, d]; B may come from others, [B or 1, ...] or None."""
    batch = next((a.shape[0] for a in (x, *others) if a is not None and a.shape[0] != 1), 1)
    return tiling(batch, x.shape[1], x.shape[2], x.dtype.itemsize)


def tile(x, mask, plan, trip, dtype):
    """Returns (tokens [rows, taken, d], keep [rows, taken]): padding, and what the tile before held, as 0."""
    tokens = cut(x, plan, trip)
    keep = jnp.broadcast_to(new(plan, trip), (plan.rows, plan.taken))
    if mask is not None:
        keep = keep & cut(mask, plan, trip)
    if mask is not None or plan.length % plan.size:
        tokens = jnp.where(keep[..., None], tokens, 0)
    return tokens.astype(dtype), keep


def shortest(of_tile, mask, plan, trip, fills=()):
    """Computes ``of_tile(plan)`` for the shortest prefix of a tile, of a few, that holds all its real tokens.

    Padding at the end costs nothing then. Under ``vmap`` all prefixes would be computed: one example alone has no choice.

    Args:
      of_tile: from a plan to (arrays [rows, taken, ...], a tree of others).
      mask: bool [B, L], or None.
      plan: of whole tiles.
      trip: which tile.
      fills: for each of the arrays, what stands behind the prefix.

    Returns:
      What ``of_tile`` does, the arrays as [rows, size, ...].
    """
    sizes = [plan.size // part for part in PREFIXES if plan.size // part >= LEAST]
    if mask is None or plan.rows > 1 or plan.batch == 1 or not sizes:
        return of_tile(plan)

    def of_prefix(size):
        of_tokens, rest = of_tile(plan._replace(taken=size))
        return tuple(map(functools.partial(_filled, size=plan.size), of_tokens, fills)), rest

    real = cut(mask, plan, trip)[0] & new(plan, trip)
    last = jnp.max(jnp.where(real, jnp.arange(plan.size), -1))
    which = sum(last >= size for size in sizes)
    return lax.switch(which, [functools.partial(of_prefix, size) for size in (*sizes, plan.size)])


def _filled(array, fill, size):
    """Pads [rows, taken, ...] to [rows, size, ...]."""
    missing = [(0, 0)] * array.ndim
    missing[1] = (0, size - array.shape[1])
    return jnp.pad(array, missing, constant_values=fill)
