"""Pallas kernels of softmax pooling with 2 to 16 queries on NVIDIA GPUs (Triton): tensor cores, one read of x.

This file also has what the kernels with one query (:mod:`attnpool_flax.kernels.triton`) share with them: the division
of tokens into parts, blocks and pieces, and the loads and stores of blocks. A part is some consecutive blocks of tokens,
over which one program of the kernel loops; a piece is some of the features. ``refs`` are the references that Pallas
passes to a kernel in place of arrays, by the names of the arrays.

Tensor cores multiply narrow
numbers exactly and accumulate in float32, so each float32 factor becomes the sum of a high and a low number. The
queries, and in the backward pass the cotangents of the numerator, are matrices of 32 rows: after each vector's high
numbers its low ones. These matrices stay in shared memory for all blocks, and the sums stay in registers, so x is read
once.

bfloat16 tokens are multiplied as they are, by factors of two bfloat16 numbers with 16 significant bits in all. float16
tokens are multiplied as they are, by factors of two float16 numbers with 22 bits. float32 tokens are split in the same
way: a product of two numbers with 22 bits is about as exact as the float32 sum to which it is added. The range of
float16 is small, so numbers are first divided by powers of two: each float32 token and each vector by its own, and the
weights by one for each query in a sum of tokens, or by one for each token in dx.

The features are divided into pieces of equal size. B is the number of examples, L of tokens, P of parts of an example,
h of queries, d of features, t of tokens in a block, n of pieces, p of features in a piece.
"""

import functools
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt

from attnpool_flax.kernels.tpu import PADDING, WITHOUT_QUERY
from attnpool_flax.numerics.softmax import exponential

ROWS = 16
"""The number of rows of a product, the fewest that Triton takes. Queries beyond h are 0."""

TOKENS = 16
"""The number of tokens in a block. With more of them tensor cores need another layout, and a copy of the vectors in it."""

WARPS = 8
"""The number of warps that run one program: each thread can have 255 registers."""

PIECE = 128
"""The largest number of features in a piece."""

UNIT = 2.0**13
"""The power of two near which the largest number is scaled before it is split into float16 numbers."""

SMALLEST, LARGEST = 2.0**-112, 2.0**126
"""Powers of two by which numbers can be scaled: they, their inverses and their quotients by UNIT are normal numbers."""


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


# --------------------------------------------------------------------------------------------------------------
# Kernels


def pieces_of(x, backward):
    """Returns the pieces of the features of x as in ``Parts.pieces``, for the forward or the backward kernel."""
    most = PIECE // 2 if backward and x.dtype != jnp.bfloat16 else PIECE  # scales need registers, too
    width = x.shape[2]
    size = min(most, max(ROWS, pl.next_power_of_2(width)))
    return tuple((first, size, first + size > width) for first in range(0, width, size))


def stages(x, backward):
    """Returns how many blocks are in memory at once: two, one of them loaded early, if shared memory has the space."""
    return 1 if x.dtype == jnp.float32 and backward else 2


def joined(sums, count, width):
    """Returns sums [B, P, h, d] from the pieces [B, P, n, 16, p] that a kernel writes."""
    sums = jnp.swapaxes(sums, 2, 3)
    return jnp.reshape(sums, (*sums.shape[:3], -1))[:, :, :count, :width]


def forward_kernel(refs, parts):
    """Computes max_score, denominator and numerator of a part of an example."""
    program = program_of(parts)
    vectors = [_vectors(refs["queries"], program.example, parts, refs["x"].dtype)]

    def block(step, carry):
        largest, mass, sums = carry
        place, _, real, codes = load_block(refs, program, step, parts)
        tokens, token_scale = _narrow(load_tokens(refs["x"], program, place, real, parts))
        (found,) = _products(vectors, tokens, token_scale)
        found = _scores(found, refs, program, place, real, codes)
        above = jnp.maximum(largest, jnp.max(found, 1))
        exp_scores, change = exponential(found, above[:, None]), exponential(largest, above)
        applied = exp_scores
        if "multiplier" in refs:
            applied = exp_scores * _numbers(refs, "multiplier", program, place, real)
        sums = [own * change[:, None] for own in sums]
        return above, mass * change + jnp.sum(exp_scores, 1), _added(sums, applied, tokens, token_scale)

    start = jnp.full(ROWS, -jnp.inf, jnp.float32), jnp.zeros(ROWS, jnp.float32), _no_sums(parts)
    largest, mass, sums = lax.fori_loop(0, parts.steps, block, start)
    row = jnp.arange(ROWS, dtype=jnp.int32)
    for name, values in (("max_score", largest), ("denominator", mass)):
        plt.store(refs[name].at[program.example, program.part, row], values, mask=row < refs[name].shape[2])
    _write(refs["numerator"], program, sums)


def backward_kernel(refs, parts):
    """Computes dx, and the other gradients of a part of an example."""
    program = program_of(parts)
    vectors = [_vectors(refs[name], program.example, parts, refs["x"].dtype) for name in ("queries", "dnumerator")]
    row = jnp.arange(ROWS, dtype=jnp.int32)
    count = refs["max_score"].shape[1]
    largest, ddenominator = (
        plt.load(refs[name].at[program.example, row], mask=row < count, other=0)[:, None]
        for name in ("max_score", "ddenominator")
    )
    has_query = (row < count)[:, None]

    def block(step, dqueries):
        place, inside, real, codes = load_block(refs, program, step, parts)
        tokens, token_scale = _narrow(load_tokens(refs["x"], program, place, real, parts))
        found, dapplied = _products(vectors, tokens, token_scale)
        exp_scores = exponential(_scores(found, refs, program, place, real, codes), largest)
        applied, dexp = exp_scores, dapplied
        if "multiplier" in refs:
            multiplier = _numbers(refs, "multiplier", program, place, real)
            applied, dexp = exp_scores * multiplier, dapplied * multiplier
        dscores = exp_scores * (dexp + ddenominator)
        if "dscores" in refs:
            dscores = dscores + _numbers(refs, "dscores", program, place, real)
        dscores = jnp.where(real[None] & has_query, dscores, 0)
        written = jnp.broadcast_to(inside[None] & has_query, dscores.shape)
        for name, values in (("dbias", dscores), ("dmultiplier", exp_scores * dapplied)):
            if name in refs:
                plt.store(refs[name].at[program.example, row[:, None], place[None]], values, mask=written)
        if codes is not None:
            dscores = jnp.where((codes == WITHOUT_QUERY)[None], 0, dscores)
        dqueries = _added(dqueries, dscores, tokens, token_scale)
        applied = jnp.where(has_query, applied, 0)
        _write_dx(refs["dx"], program, place, inside, real, vectors, (dscores, applied), parts)
        return dqueries

    _write(refs["dqueries"], program, lax.fori_loop(0, parts.steps, block, _no_sums(parts)))


# --------------------------------------------------------------------------------------------------------------
# Loads and stores


def _numbers(refs, name, program, place, real):
    """Loads numbers [16, t], 0 at padding and in rows without a query."""
    row = jnp.arange(ROWS, dtype=jnp.int32)
    mask = (row < refs[name].shape[1])[:, None] & real[None]
    return plt.load(refs[name].at[program.example, row[:, None], place[None]], mask=mask, other=0)


def _write(ref, program, sums):
    """Stores the pieces [16, p] of sums, one after another: other addresses than the loads need no register in the loop."""
    row, index = (jnp.arange(size, dtype=jnp.int32) for size in sums[0].shape)
    for piece, own in enumerate(sums):
        plt.store(ref.at[program.example, program.part, piece, row[:, None], index[None]], own)


def _write_dx(ref, program, place, inside, real, vectors, weights, parts):
    """Stores dx of a block: the sum of the vectors of two lists under their weights [16, t]."""
    weights = [own if scale is None else own * scale[:, None] for own, (_, scale) in zip(weights, vectors, strict=True)]
    narrow = vectors[0][0][0].dtype
    columns = [jnp.transpose(own) for own in weights]
    scale = _scale(_largest(columns), narrow)
    (one, _), (two, _) = vectors
    left, right = (_opaque(_repeated(_stacked(*_split(own, scale, narrow)))) for own in columns)
    if scale is not None:  # 0 at padding, so that one register has both
        scale = jnp.where(real, scale, 0)
        real = scale > 0
    for index, piece in enumerate(parts.pieces):
        dx = _sum_of_rows(_dot(left, one[index], 1, 0) + _dot(right, two[index], 1, 0))
        dx = dx if scale is None else dx * scale[:, None]
        store_piece(ref, program.example, place, inside, piece, jnp.where(real[:, None], dx, 0))


# --------------------------------------------------------------------------------------------------------------
# Products


def _vectors(ref, row, parts, dtype):
    """Returns (for each piece a matrix [32, p] of a row's queries or cotangents; their scale [16] or None)."""
    narrow = jnp.bfloat16 if dtype == jnp.bfloat16 else jnp.float16
    row = row if ref.shape[0] != 1 else 0
    vector = jnp.arange(ROWS, dtype=jnp.int32)
    filled, pieces = (vector < ref.shape[1])[:, None], []
    for first, size, ends in parts.pieces:
        index, mask = features_of(first, size, ends, ref.shape[2])
        mask = jnp.broadcast_to(filled if mask is None else filled & mask[None], (ROWS, size))
        pieces.append(plt.load(ref.at[row, vector[:, None], index[None]], mask=mask, other=0))
    scale = _scale(_largest(pieces), narrow)
    return [_stacked(*_split(piece, scale, narrow)) for piece in pieces], scale


def _narrow(pieces):
    """Returns (narrow pieces of the tokens, their scale [t] or None); float32 tokens become [2 t, p], high and low."""
    if pieces[0].dtype != jnp.float32:
        return pieces, None
    scale = _scale(_largest(pieces), jnp.float16)
    found = []
    for piece in pieces:
        found.append(_opaque(_stacked(*_split(piece, scale, jnp.float16))))
    return found, scale


def _products(vectors, tokens, token_scale):
    """Returns for each list of vectors their products [16, t] with the tokens."""
    found = [jnp.float32(0)] * len(vectors)
    for index, piece in enumerate(tokens):  # all products of a piece follow each other, so its registers become free
        found = [own + _dot(matrices[index], piece, 1, 1) for own, (matrices, _) in zip(found, vectors, strict=True)]
    found = [_sum_of_rows(own) for own in found]
    if token_scale is not None:
        found = [_sum_of_columns(own) * token_scale[None] for own in found]
    return [own if scale is None else own * scale[:, None] for own, (_, scale) in zip(found, vectors, strict=True)]


def _added(sums, weights, tokens, token_scale):
    """Adds the tokens' sums under weights [16, t] to the pieces [16, p] of sums."""
    if token_scale is not None:  # relative to the largest, because weights times scales near 1e-38 would be 0
        most = jnp.max(token_scale)
        weights = weights * (token_scale * (1 / most))[None]
    scale = _scale(_largest([weights]), tokens[0].dtype)
    rows = _split(weights, scale, tokens[0].dtype)
    rows = rows if token_scale is None else [_repeated(own) for own in rows]
    found = []
    for own, piece in zip(sums, tokens, strict=True):
        high, low = (_dot(factors, piece, 1, 0) for factors in rows)
        if scale is None:
            found.append(own + high + low)
        else:
            added = (high + low) * scale[:, None]
            found.append(own + (added if token_scale is None else added * most))
    return found


def _no_sums(parts):
    return [jnp.zeros((ROWS, size), jnp.float32) for _, size, _ in parts.pieces]


def _scores(found, refs, program, place, real, codes):
    """Returns scores [16, t] from products: 0 for tokens without a query, plus the bias, -inf at padding."""
    if codes is not None:
        found = jnp.where((codes == WITHOUT_QUERY)[None], 0, found)
    if "bias" in refs:
        found = found + _numbers(refs, "bias", program, place, real)
    return jnp.where(real[None], found, -jnp.inf)


def _dot(a, b, left, right):
    """Multiplies two narrow matrices along the axis ``left`` of a and ``right`` of b; the result is float32."""
    return lax.dot_general(a, b, (((left,), (right,)), ((), ())), preferred_element_type=jnp.float32)


# --------------------------------------------------------------------------------------------------------------
# High and low numbers


def _split(values, scale, narrow):
    """Returns (high, low) in the dtype ``narrow``; their sum times the scale of each row is the values, rounded."""
    if scale is not None:
        values = values * (1 / scale)[:, None]
    high = values.astype(narrow)
    rounded = high.astype(jnp.float32)
    return high, jnp.where(jnp.abs(rounded) < jnp.inf, values - rounded, 0).astype(narrow)  # inf - inf


def _largest(pieces):
    """Returns the largest absolute value of each row."""
    return functools.reduce(jnp.maximum, [jnp.max(jnp.abs(piece), 1) for piece in pieces])


def _scale(largest, narrow):
    """Returns the power of two that scales rows before they are split; None for bfloat16, whose range is large enough."""
    if narrow == jnp.bfloat16:
        return None
    exponent = lax.bitcast_convert_type(largest, jnp.int32) & 0x7F800000
    return jnp.clip(lax.bitcast_convert_type(exponent, jnp.float32), SMALLEST, LARGEST) / UNIT


def _opaque(values):
    """Returns the values behind a maximum of one element, above which XLA moves no transposition.

    Without it XLA transposes what the values are computed from, and each product has a copy of them in shared memory.
    """
    return jnp.max(values[None], 0)


def _stacked(high, low):
    """Returns [2 m, n] of two matrices [m, n]: after each high row its low one."""
    both = jnp.stack([high, low], 2)
    return jnp.reshape(jnp.transpose(both, (0, 2, 1)), (2 * high.shape[0], high.shape[1]))


def _repeated(columns):
    """Returns [m, 2 n] of a matrix [m, n]: each column twice."""
    m, n = columns.shape
    return jnp.reshape(jnp.broadcast_to(columns[:, :, None], (m, n, 2)), (m, 2 * n))


def _sum_of_rows(both):
    """Returns [m, n] of a matrix [2 m, n]: the sum of each high row and its low one."""
    return jnp.sum(jnp.reshape(both, (both.shape[0] // 2, 2, both.shape[1])), 1)


def _sum_of_columns(both):
    """Returns [m, n] of a matrix [m, 2 n]: the sum of each pair of columns, 2 j and 2 j + 1."""
    return jnp.sum(jnp.reshape(both, (both.shape[0], both.shape[1] // 2, 2)), 2)
