"""Division of tokens into parts, blocks and pieces, and loads of blocks, for the Pallas kernels of NVIDIA GPUs.

A part is some consecutive blocks of tokens, which one program of the kernel visits; a piece is some of the features.
``refs`` are the references that Pallas passes to a kernel in place of arrays, by the names of the arrays.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt

from attnpool_flax.reductions.pallas_tpu import PADDING


class Parts(NamedTuple):
    """Division of one call's tokens into parts, blocks and pieces of features.

    Attributes:
      length: L, the number of tokens of an example, or the average of a segment, rounded up.
      size: the number of tokens in a block.
      steps: the number of blocks in a part; of a segment its tokens decide it.
      count: P, the number of parts of an example or segment.
      pieces: for each piece of the features (its first feature, its size, whether it extends past the last feature).
      warps: the number of warps that run one program.
      stages: the number of blocks that are loaded at once.
    """

    length: int
    size: int
    steps: int
    count: int
    pieces: tuple
    warps: int
    stages: int = 1


class Program(NamedTuple):
    """Tokens of one program of the grid: a part of an example or of a segment.

    Attributes:
      row: the index of the example or segment.
      part: the index of the part.
      example: the index in arrays of tokens: of the example, or 0, because segments follow each other.
      first: the place of the part's first token.
      rest: the number of tokens from ``first`` to the end of the example or segment; not positive if the part is empty.
      steps: the number of blocks.
    """

    row: Any
    part: Any
    example: Any
    first: Any
    rest: Any
    steps: Any


def program_of(refs, parts):
    """Returns the :class:`Program` that runs: of a segment if there are ``offsets`` [S + 1], else of an example."""
    row, part = pl.program_id(0), pl.program_id(1)
    if "offsets" not in refs:
        first = part * parts.steps * parts.size
        return Program(row, part, row, first, parts.length - first, parts.steps)
    start, end = refs["offsets"][row], refs["offsets"][row + 1]
    steps = jnp.maximum(1, _steps(end - start, parts.count * parts.size))  # a loop that may not run spills registers
    first = start + part * steps * parts.size
    return Program(row, part, 0, first, end - first, steps)


def load_block(refs, program, step, parts):
    """Returns (indices of a block's tokens, whether each is in the example or segment, whether real, their codes or None).

    ``step`` counts the blocks of the program; codes are those of pallas_tpu.
    """
    token, before = jnp.arange(parts.size, dtype=jnp.int32), step * parts.size
    place, inside = program.first + before + token, token < program.rest - before
    if "codes" not in refs:
        return place, inside, inside, None
    codes = plt.load(refs["codes"].at[program.example, 0, place], mask=inside, other=PADDING)
    return place, inside, codes != PADDING, codes


def load_tokens(ref, program, place, real, parts):
    """Loads the pieces [tokens, features] of a block in their own dtype, 0 at padding."""
    found = []
    for first, size, ends in parts.pieces:
        index, mask = features_of(first, size, ends, ref.shape[2])
        mask = jnp.broadcast_to(real[:, None] if mask is None else real[:, None] & mask[None], (len(place), size))
        found.append(plt.load(ref.at[program.example, place[:, None], index[None]], mask=mask, other=0))
    return found


def store_piece(ref, example, place, inside, piece, values):
    """Stores a piece [tokens, features] of values, in the dtype of the array, where ``inside``."""
    first, size, ends = piece
    index, mask = features_of(first, size, ends, ref.shape[2])
    mask = jnp.broadcast_to(inside[:, None] if mask is None else inside[:, None] & mask[None], (len(place), size))
    plt.store(ref.at[example, place[:, None], index[None]], values.astype(ref.dtype), mask=mask)


def features_of(first, size, ends, width):
    """Returns (indices of the features of a piece, whether each index is a feature; None if all are)."""
    index = first + jnp.arange(size, dtype=jnp.int32)
    return index, index < width if ends else None


def clear_padding(refs, program, parts):
    """Writes dx = 0 for this program's share of the tokens before the first segment and after the last one."""
    if "offsets" not in refs:
        return
    dx, offsets = refs["dx"], refs["offsets"]
    rows = offsets.shape[0] - 1
    first, end = offsets[0], offsets[rows]
    padding = dx.shape[1] - (end - first)
    steps = _steps(padding, rows * parts.count * parts.size)
    start = (program.row * parts.count + program.part) * steps

    def block(step, _):
        index = (start + step) * parts.size + jnp.arange(parts.size, dtype=jnp.int32)
        place = jnp.where(index < first, index, index + (end - first))
        for piece in parts.pieces:
            store_piece(dx, 0, place, index < padding, piece, jnp.zeros((parts.size, piece[1]), dx.dtype))

    lax.fori_loop(0, steps, block, None)


def _steps(tokens, size):
    """Divides an int32 number of tokens by a constant, rounded up."""
    return lax.div(tokens + (size - 1), jnp.int32(size))
