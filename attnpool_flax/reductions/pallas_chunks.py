"""Chunks of sorted packed tokens and groups of segments, as the Pallas kernels for TPUs visit them.

A step of the grid takes a chunk of tokens and a group of consecutive segments. Most chunks meet one group; where groups meet
in a chunk, it has a step for each of them. With J chunks and G groups these are at most J + G - 1 steps, sorted by chunk and by
group: the chunk of consecutive steps is copied once, and the sums of a group stay in on-chip memory from its first step to its
last. The chunk and the group of each step are prefetched numbers. A group has one row for each segment and query.

N are the tokens, S segments, h queries, d features.
"""

import functools
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl

from attnpool_flax.reductions.pallas_products import LANES, SUBLANES, ZERO, rounded_up
from attnpool_flax.reductions.pallas_tpu import BLOCK
from attnpool_flax.reductions.segment_sums import at

ROWS = 32
"""The largest number of rows of a group, where one segment has not more."""

FACTORS = 2**20
"""Bytes of the rows of a group above which it has fewer segments."""

TOKENS = 2048
"""The largest number of tokens of a chunk."""


class Chunks(NamedTuple):
    """Chunks of tokens and groups of segments of a call.

    Attributes:
      length: N.
      width: d.
      heads: h.
      count: S.
      each: the number of rows of a segment: 1, or h rounded up to whole registers.
      group: the number of segments of a group.
      size: the number of tokens of a chunk.
      shared: whether all segments have the same queries.
    """

    length: int
    width: int
    heads: int
    count: int
    each: int
    group: int
    size: int
    shared: bool

    @property
    def rows(self):
        """The number of rows of a group."""
        return self.group * self.each

    @property
    def chunks(self):
        """The number of chunks."""
        return pl.cdiv(self.length, self.size)

    @property
    def groups(self):
        """The number of groups."""
        return pl.cdiv(self.count, self.group)

    @property
    def steps(self):
        """The number of steps of the grid, of which some may repeat the last one."""
        return self.chunks + self.groups - 1

    def tokens(self):
        """Returns the ``pl.BlockSpec`` of an array [N, d]: a step of the grid gets the tokens of its chunk."""
        return pl.BlockSpec((self.size, self.width), lambda step, chunk, group: (chunk[step], ZERO))

    def numbers(self, rows):
        """Returns the ``pl.BlockSpec`` of an array [rows, N]: a step gets all rows of the tokens of its chunk."""
        return pl.BlockSpec((rows, self.size), lambda step, chunk, group: (ZERO, chunk[step]))

    def vectors(self, shape):
        """Returns the ``pl.BlockSpec`` of an array [groups or 1, rows, columns]: a step gets the rows of its group.

        An array [1, rows, columns] is shared by all groups.
        """
        if shape[0] == 1:
            return pl.BlockSpec((None, *shape[1:]), lambda step, chunk, group: (ZERO, ZERO, ZERO))
        return pl.BlockSpec((None, *shape[1:]), lambda step, chunk, group: (group[step], ZERO, ZERO))

    def to_rows(self, values):
        """Puts values [S, h, columns] of segments into the rows of their groups: [groups, rows, columns]."""
        missing = self.groups * self.group - self.count, self.each - self.heads
        values = jnp.pad(values, ((0, missing[0]), (0, missing[1]), (0, 0)))
        return jnp.reshape(values, (self.groups, self.rows, -1))

    def from_rows(self, rows):
        """Takes values [S, h, columns] of segments from the rows [groups, rows, columns]."""
        return jnp.reshape(rows, (-1, self.each, rows.shape[2]))[: self.count, : self.heads]

    def repeated(self, values):
        """Repeats values [each or more, tokens] for each segment of the group: [rows, tokens].

        If ``each`` is 1, it returns [1, tokens], which broadcasts.
        """
        values = values[: self.each]
        return values if self.each == 1 else jnp.concatenate([values] * self.group, 0)

    def summed(self, values):
        """Sums values [rows, columns] over the segments of the group: [each, columns].

        If ``each`` is 1, the sum is repeated to the 8 rows of a register.
        """
        if self.each == 1:
            return jnp.broadcast_to(jnp.sum(values, 0, keepdims=True), (SUBLANES, values.shape[1]))
        parts = [values[row : row + self.each] for row in range(0, self.rows, self.each)]
        return functools.reduce(jnp.add, parts)


def chunks_of(x, queries, count):
    """Returns the :class:`Chunks` of tokens [N, d] in ``count`` segments under queries [1 or S, h, d]."""
    (length, width), heads = x.shape, queries.shape[1]
    each = 1 if heads == 1 else rounded_up(heads, SUBLANES)
    group = min(ROWS, FACTORS // (4 * width)) // each
    group = max(1, min(group, rounded_up(count, SUBLANES) if each == 1 else count))
    if each == 1:
        group = max(SUBLANES, group // SUBLANES * SUBLANES)
    most = BLOCK // (rounded_up(width, LANES) * x.dtype.itemsize) // LANES * LANES
    steps = pl.cdiv(length, max(LANES, min(most, TOKENS)))
    size = rounded_up(pl.cdiv(length, steps), LANES)
    return Chunks(length, width, heads, count, each, group, size, queries.shape[0] == 1)


def steps_of(ids, chunks):
    """Returns the chunk and the group of each step, int32 [steps] each, from ascending ids [N].

    Every group has a step, with or without tokens. Steps that are not needed repeat the last one.
    """
    first = lax.iota(jnp.int32, chunks.chunks) * chunks.size
    end = jnp.minimum(first + chunks.size, chunks.length)
    most = jnp.where(end == chunks.length, chunks.groups - 1, at(ids, end - 1) // chunks.group)
    before = jnp.concatenate([jnp.full_like(most[:1], -1), most[:-1]])
    least = jnp.minimum(at(ids, first) // chunks.group, before + 1)
    number = most - least + 1
    chunk = jnp.repeat(lax.iota(jnp.int32, chunks.chunks), number, total_repeat_length=chunks.steps)
    index = lax.iota(jnp.int32, chunks.steps) - at(jnp.cumsum(number) - number, chunk)
    return chunk, jnp.clip(at(least, chunk) + index, 0, chunks.groups - 1)
