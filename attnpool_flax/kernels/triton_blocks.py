"""Division of tokens into parts, blocks and pieces, and loads of blocks, for the Pallas kernels of NVIDIA GPUs.

A part is some consecutive blocks of tokens, which one program of the kernel visits; a piece is some of the features.
``refs`` are the references that Pallas passes to a kernel in place of arrays, by the names of the arrays.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt

from attnpool_flax.kernels.tpu import PADDING


class Parts(NamedTuple):
    """Division of one call's tokens into parts, blocks and pieces of features.

    Attributes:
      length: L, the number of tokens of an example.
      size: the number of tokens in a block.
      steps: the number of blocks in a part.
      count: P, the number of parts of an example.
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
    """Tokens of one program of the grid: a part of an example.

    Attributes:
      example: the index of the example.
      part: the index of the part.
      first: the place of the part's first token.
      rest: the number of tokens from ``first`` to the end of the example; not positive if the part is empty.
    """

    example: Any
    part: Any
    first: Any
    rest: Any


def program_of(parts):
    """Returns the :class:`Program` that runs."""
    example, part = pl.program_id(0), pl.program_id(1)
    first = part * parts.steps * parts.size
    return Program(example, part, first, parts.length - first)


def load_block(refs, program, step, parts):
    """Returns (indices of a block's tokens, whether each is in the example, whether real, their codes or None).

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
