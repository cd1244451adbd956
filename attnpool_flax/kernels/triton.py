"""Pallas kernels of softmax pooling on NVIDIA GPUs (Triton): each reads x once, and the backward kernel writes dx.

This file has the calls, and the kernels with one query; those with several queries are in
:mod:`attnpool_flax.kernels.triton_heads`.

The tokens of an example are divided into parts of consecutive blocks. The grid is (examples, parts): a program loops
over the blocks of its part with its sums in registers, and the sums of all parts are merged outside of the kernel.
Padding is not loaded. Sizes of Triton's arrays are powers of two, so under one query the features are split into at
most two pieces of such sizes; the second piece is masked if it is larger than the rest.

B is the number of examples, L of tokens, P of parts of an example, h of queries, d of features.
"""

import functools

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt

from attnpool_flax.kernels import triton_heads as heads
from attnpool_flax.kernels.tpu import PADDING, WITHOUT_QUERY, result_shapes
from attnpool_flax.kernels.triton_heads import (
    Parts,
    features_of,
    load_block,
    load_tokens,
    program_of,
    store_piece,
)
from attnpool_flax.numerics.products import token_products
from attnpool_flax.numerics.softmax import exponential
from attnpool_flax.reductions.softmax import OnlineSoftmax

ELEMENTS = 4096
"""Target number of elements in a block of tokens: 32 for each thread of 4 warps."""

STEPS = 128
"""The largest number of blocks of a part: over more, rounding errors of float32 sums grow."""

MULTIPROCESSORS = 132
"""The number of multiprocessors of a large GPU. Each runs one program with several queries at once."""

PROGRAMS = 4 * MULTIPROCESSORS
"""The number of programs with one query that fills a large GPU."""


def parts_of(x, count, backward):
    """Returns the :class:`Parts` of tokens [B, L, d] under ``count`` queries, of the forward or the backward kernel."""
    batch, length, width = x.shape
    if count > 1:
        blocks = pl.cdiv(length, heads.TOKENS)
        parts = max(pl.cdiv(blocks, STEPS), min(pl.cdiv(blocks, 4), pl.cdiv(MULTIPROCESSORS, batch)))
        pieces, stages = heads.pieces_of(x, backward), heads.stages(x, backward)
        return Parts(length, heads.TOKENS, pl.cdiv(blocks, parts), parts, pieces, heads.WARPS, stages)
    first = 1 << (width.bit_length() - 1)
    rest = width - first
    second = 1 << (rest - 1).bit_length() if rest else 0
    pieces = ((0, first, False),) + (((first, second, second != rest),) if rest else ())
    size = max(2, min(64, ELEMENTS // pl.next_power_of_2(width)))
    blocks = pl.cdiv(length, size)
    count = max(pl.cdiv(blocks, STEPS), min(pl.cdiv(blocks, 4), pl.cdiv(PROGRAMS, batch)))
    return Parts(length, size, pl.cdiv(blocks, count), count, pieces, 4 if width <= 1024 else 8)


# --------------------------------------------------------------------------------------------------------------
# Calls


def forward(x, codes, queries, multiplier, bias, *, precision=None, interpret=False):
    """Computes :func:`attnpool_flax.kernels.tpu.forward`, except that ``precision`` is ignored.

    Products are float32 with one query, and as in :mod:`attnpool_flax.kernels.triton_heads` with several.
    """
    del precision
    (batch, _, width), count = x.shape, queries.shape[1]
    parts = parts_of(x, count, backward=False)
    given = {"x": x, "queries": queries, "codes": codes, "multiplier": multiplier, "bias": bias}
    outputs = {"max_score": (batch, parts.count, count), "denominator": (batch, parts.count, count)}
    outputs |= {"numerator": _sums_shape(batch, count, width, parts)}
    kernel = functools.partial(heads.forward_kernel if count > 1 else _forward_kernel, parts=parts)
    max_score, denominator, numerator = _call(kernel, given, outputs, batch, parts, interpret)
    states = OnlineSoftmax(max_score, denominator, _rows(numerator, count, width))
    largest = jnp.max(max_score, 1)
    denominator, numerator = states.rescaled(largest[:, None])
    return largest, jnp.sum(denominator, 1), jnp.sum(numerator, 1)


def _sums_shape(batch, count, width, parts):
    """Returns the shape of the sums over tokens that a kernel writes: (B, P, 1, d), with several queries in pieces."""
    if count == 1:
        return batch, parts.count, 1, width
    return batch, parts.count, len(parts.pieces), heads.ROWS, parts.pieces[0][1]


def _rows(sums, count, width):
    """Returns sums [B, P, h, d] from those that a kernel writes."""
    return sums if count == 1 else heads.joined(sums, count, width)


def scores(x, codes, queries, bias, *, precision=None, interpret=False):
    """Computes the scores [B, h, L], -inf at padding, by XLA; for one query by one multiplication and sum.

    ``precision`` is ignored, as in :func:`forward`.
    """
    del interpret, precision
    found = jnp.swapaxes(token_products(x, queries, lax.Precision.HIGHEST, multiply=True), 1, 2)
    return _selected(found, codes, bias)


def backward(
    x,
    codes,
    queries,
    multiplier,
    bias,
    max_score,
    dscores,
    ddenominator,
    dnumerator,
    *,
    precision=None,
    interpret=False,
):
    """Computes :func:`attnpool_flax.kernels.tpu.backward`; ``precision`` is ignored."""
    del precision
    (batch, length, width), count = x.shape, queries.shape[1]
    parts = parts_of(x, count, backward=True)
    given = {"x": x, "queries": queries, "codes": codes, "multiplier": multiplier, "bias": bias}
    given |= {"dscores": dscores, "dnumerator": dnumerator, "max_score": max_score, "ddenominator": ddenominator}
    outputs = {"dx": x.shape, "dqueries": _sums_shape(batch, count, width, parts)}
    outputs |= {} if bias is None else {"dbias": (batch, count, length)}
    outputs |= {} if multiplier is None else {"dmultiplier": (batch, count, length)}
    kernel = functools.partial(heads.backward_kernel if count > 1 else _backward_kernel, parts=parts)
    found = dict(zip(outputs, _call(kernel, given, outputs, batch, parts, interpret), strict=True))
    dqueries = jnp.sum(_rows(found["dqueries"], count, width), 1)
    if queries.shape[0] == 1:
        dqueries = jnp.sum(dqueries, 0, keepdims=True)
    return found["dx"], dqueries, found.get("dbias"), found.get("dmultiplier")


def _call(kernel, given, outputs, batch, parts, interpret):
    given = {key: array for key, array in given.items() if array is not None}

    def body(*references):
        kernel(dict(zip((*given, *outputs), references, strict=True)))

    return pl.pallas_call(
        body,
        grid=(batch, parts.count),
        out_shape=result_shapes(outputs, given),
        compiler_params=plt.CompilerParams(num_warps=parts.warps, num_stages=parts.stages),
        interpret=interpret,
    )(*given.values())


# --------------------------------------------------------------------------------------------------------------
# Kernels


def _forward_kernel(refs, parts):
    program = program_of(parts)
    query = _vectors(refs["queries"], program.example, parts)

    def block(step, carry):
        largest, mass, sums = carry
        place, _, real, codes = load_block(refs, program, step, parts)
        x = [piece.astype(jnp.float32) for piece in load_tokens(refs["x"], program, place, real, parts)]
        found = _scores(x, query, refs, program, place, real, codes)
        above = jnp.maximum(largest, jnp.max(found))
        exp_scores, scale = exponential(found, above), exponential(largest, above)
        applied = exp_scores
        if "multiplier" in refs:
            applied = exp_scores * _numbers(refs["multiplier"], program, place, real)
        sums = [own * scale + jnp.sum(applied[:, None] * piece, 0) for own, piece in zip(sums, x, strict=True)]
        return above, mass * scale + jnp.sum(exp_scores), sums

    start = jnp.float32(-jnp.inf), jnp.float32(0), [jnp.zeros(size, jnp.float32) for _, size, _ in parts.pieces]
    largest, mass, sums = lax.fori_loop(0, parts.steps, block, start)
    refs["max_score"][program.example, program.part, 0], refs["denominator"][program.example, program.part, 0] = (
        largest,
        mass,
    )
    _write(refs["numerator"], program, sums, parts)


def _backward_kernel(refs, parts):
    program = program_of(parts)
    query, dnumerator = (_vectors(refs[key], program.example, parts) for key in ("queries", "dnumerator"))
    largest, ddenominator = refs["max_score"][program.example, 0], refs["ddenominator"][program.example, 0]

    def block(step, dqueries):
        place, inside, real, codes = load_block(refs, program, step, parts)
        x = [piece.astype(jnp.float32) for piece in load_tokens(refs["x"], program, place, real, parts)]
        exp_scores = exponential(_scores(x, query, refs, program, place, real, codes), largest)
        dapplied = _products(x, dnumerator)
        applied, dexp = exp_scores, dapplied
        if "multiplier" in refs:
            multiplier = _numbers(refs["multiplier"], program, place, real)
            applied, dexp = exp_scores * multiplier, dapplied * multiplier
        dscores = exp_scores * (dexp + ddenominator)
        if "dscores" in refs:
            dscores = dscores + _numbers(refs["dscores"], program, place, real)
        dscores = jnp.where(real, dscores, 0)
        if "dbias" in refs:
            plt.store(refs["dbias"].at[program.example, 0, place], dscores, mask=inside)
        if "dmultiplier" in refs:
            plt.store(refs["dmultiplier"].at[program.example, 0, place], exp_scores * dapplied, mask=inside)
        if codes is not None:
            dscores = jnp.where(codes == WITHOUT_QUERY, 0, dscores)
        for piece, own, factor in zip(parts.pieces, dnumerator, query, strict=True):
            dx = jnp.where(real[:, None], applied[:, None] * own[None] + dscores[:, None] * factor[None], 0)
            store_piece(refs["dx"], program.example, place, inside, piece, dx)
        return [own + jnp.sum(dscores[:, None] * piece, 0) for own, piece in zip(dqueries, x, strict=True)]

    start = [jnp.zeros(size, jnp.float32) for _, size, _ in parts.pieces]
    _write(refs["dqueries"], program, lax.fori_loop(0, parts.steps, block, start), parts)


def _numbers(ref, program, place, real):
    return plt.load(ref.at[program.example, 0, place], mask=real, other=0)


def _vectors(ref, row, parts):
    """Loads the query or cotangent of the numerator [d] of an example, as a list of its pieces."""
    row = row if ref.shape[0] != 1 else 0
    found = []
    for first, size, ends in parts.pieces:
        index, mask = features_of(first, size, ends, ref.shape[2])
        found.append(ref[row, 0, index] if mask is None else plt.load(ref.at[row, 0, index], mask=mask, other=0))
    return found


def _write(ref, program, vectors, parts):
    for (first, size, ends), own in zip(parts.pieces, vectors, strict=True):
        index, mask = features_of(first, size, ends, ref.shape[3])
        plt.store(ref.at[program.example, program.part, 0, index], own, mask=mask)


def _scores(x, query, refs, program, place, real, codes):
    bias = _numbers(refs["bias"], program, place, real) if "bias" in refs else None
    found = _selected(_products(x, query), codes, bias)
    return jnp.where(real, found, -jnp.inf)


def _products(x, vectors):
    found = [jnp.sum(piece * own[None], 1) for piece, own in zip(x, vectors, strict=True)]
    return functools.reduce(jnp.add, found)


def _selected(found, codes, bias):
    """Returns scores from products: 0 for tokens without a query, plus the bias, -inf at padding."""
    if codes is not None:
        found = jnp.where(codes == WITHOUT_QUERY, 0, found)
    if bias is not None:
        found = found + bias
    return found if codes is None else jnp.where(codes == PADDING, -jnp.inf, found)
