"""Division of tokens into parts, blocks and pieces, and loads of blocks, for the Pallas kernels of NVIDIA GPUs.

A part is some consecutive blocks of tokens, which one program of the kernel visits; a piece is some of the features.
``refs`` are the references that Pallas passes to a kernel in place of arrays, by the names of the arrays.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.experimental.pallas import triton as plt

from attnpool_flax.reductions.pallas_tpu import PADDING


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


def load_block(refs, example, step, parts):
    """Returns (indices of a block's tokens, whether each token is real, their codes of pallas_tpu or None).

    ``step`` counts the blocks of the example.
    """
    place = step * parts.size + jnp.arange(parts.size, dtype=jnp.int32)
    real, codes = place < parts.length, None
    if "codes" in refs:
        codes = plt.load(refs["codes"].at[example, 0, place], mask=real, other=PADDING)
        real = codes != PADDING
    return place, real, codes


def load_tokens(ref, example, place, real, parts):
    """Loads the pieces [tokens, features] of a block in their own dtype, 0 at padding."""
    found = []
    for first, size, ends in parts.pieces:
        index, mask = features_of(first, size, ends, ref.shape[2])
        mask = jnp.broadcast_to(real[:, None] if mask is None else real[:, None] & mask[None], (len(place), size))
        found.append(plt.load(ref.at[example, place[:, None], index[None]], mask=mask, other=0))
    return found


def features_of(first, size, ends, width):
    """Returns (indices of the features of a piece, whether each index is a feature; None if all are)."""
    index = first + jnp.arange(size, dtype=jnp.int32)
    return index, index < width if ends else None
