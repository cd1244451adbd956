"""Pallas kernels of the softmax of sorted packed tokens for TPUs: each reads x once; the backward one writes dx once.

A step of the grid takes a chunk of tokens and a group of segments (:mod:`attnpool_flax.reductions.pallas_chunks`). All
tokens of the chunk are multiplied with all rows of the group, or with the queries that all segments share; scores of
tokens of other segments are -inf. One more row is 0: its product with a token that is not finite is NaN. Such a token
makes its segment NaN, and is replaced before tokens of several segments are summed.

N are the tokens, S segments, h queries, d features. References (``refs``) are what Pallas passes to a kernel in place
of arrays: each is the part of an array that a step of the grid reads or writes.
"""

import functools
import math
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from attnpool_flax.reductions.pallas_chunks import chunks_of, steps_of
from attnpool_flax.reductions.pallas_products import (
    SUBLANES,
    block_products,
    block_sums,
    outer_sums,
    rounded_up,
    zeroed,
)
from attnpool_flax.reductions.pallas_tpu import MEMORY, result_shapes
from attnpool_flax.reductions.softmax import exponential

# --------------------------------------------------------------------------------------------------------------
# Calls


def forward(x, ids, real, queries, multiplier, bias, *, count, precision, interpret=False):
    """Computes the fields of the :class:`~attnpool_flax.reductions.softmax.OnlineSoftmax` of each segment.

    Args:
      x: [N, d] tokens, in float32, bfloat16 or float16.
      ids: int32 [N], ascending, from 0 to S - 1, padding included.
      real: bool [N].
      queries: float32 [1 or S, h, d].
      multiplier: float32 [h, N] of the unnormalized weights in the numerator, or None.
      bias: float32 [h, N], added to the scores, or None.
      count: S.
      precision: of products of tokens that are not bfloat16.
      interpret: as in ``pl.pallas_call``: True runs the kernel on a CPU, slowly.

    Returns:
      (max_score [S, h], denominator [S, h], numerator [S, h, d]), float32.
    """
    chunks = chunks_of(x, queries, count)
    given = {"x": x, "queries": _factors(queries, chunks), "multiplier": multiplier, "bias": bias}
    column = (chunks.groups, chunks.rows, 1)
    outputs = {"max_score": column, "denominator": column, "numerator": (*column[:2], chunks.width)}
    kernel = functools.partial(_forward_kernel, chunks=chunks, precision=precision)
    max_score, denominator, numerator = map(
        chunks.from_rows, _call(kernel, ids, real, given, outputs, chunks, interpret)
    )
    return max_score[..., 0], denominator[..., 0], numerator


def scores(x, ids, real, queries, bias, *, count, precision, interpret=False):
    """Computes the scores [h, N], arbitrary at padding; the arguments are those of :func:`forward`."""
    chunks = chunks_of(x, queries, count)
    given = {"x": x, "queries": _factors(queries, chunks), "bias": bias}
    outputs = {"scores": (chunks.heads, chunks.length)}
    kernel = functools.partial(_scores_kernel, chunks=chunks, precision=precision)
    return _call(kernel, ids, real, given, outputs, chunks, interpret)[0]


def backward(
    x,
    ids,
    real,
    queries,
    multiplier,
    bias,
    max_score,
    dscores,
    ddenominator,
    dnumerator,
    *,
    count,
    precision,
    interpret=False,
):
    """Computes the gradients of :func:`forward` and :func:`scores`; the scores are computed again.

    The arguments are those of :func:`forward`, the ``max_score`` [S, h] that it computed, and the cotangents of the scores,
    [h, N] or None for 0, of the denominator [S, h] and of the numerator [S, h, d].

    Returns:
      (dx [N, d] in the dtype of x, dqueries [1 or S, h, d], dbias [h, N] or None, dmultiplier [h, N] or None).
    """
    chunks = chunks_of(x, queries, count)
    given = {"x": x, "queries": _factors(queries, chunks), "multiplier": multiplier, "bias": bias, "dscores": dscores}
    limits = {"max_score": max_score[..., None], "ddenominator": ddenominator[..., None], "dnumerator": dnumerator}
    given |= {key: chunks.to_rows(values) for key, values in limits.items()}
    rows = (1, rounded_up(chunks.heads, SUBLANES)) if chunks.shared else (chunks.groups, chunks.rows)
    outputs = {"dx": x.shape, "dqueries": (*rows, chunks.width)}
    outputs |= {} if bias is None else {"dbias": (chunks.heads, chunks.length)}
    outputs |= {} if multiplier is None else {"dmultiplier": (chunks.heads, chunks.length)}
    kernel = functools.partial(_backward_kernel, chunks=chunks, precision=precision)
    found = dict(zip(outputs, _call(kernel, ids, real, given, outputs, chunks, interpret), strict=True))
    dqueries = found["dqueries"][:, : chunks.heads] if chunks.shared else chunks.from_rows(found["dqueries"])
    return found["dx"], dqueries, found.get("dbias"), found.get("dmultiplier")


def _factors(queries, chunks):
    """Returns queries [1 or S, h, d] as rows of groups, [1 or groups, rows, d]; the last rows are 0."""
    if not chunks.shared:
        return jnp.pad(chunks.to_rows(queries), ((0, 0), (0, SUBLANES), (0, 0)))
    rows = rounded_up(chunks.heads + 1, SUBLANES)
    return jnp.pad(queries, ((0, 0), (0, rows - chunks.heads), (0, 0)))


def _call(kernel, ids, real, given, outputs, chunks, interpret):
    """Calls a kernel with references by name; arrays that are None take no memory.

    Args:
      kernel: from a dictionary of references by name and the :class:`Step`.
      ids: int32 [N].
      real: bool [N].
      given: arrays by name.
      outputs: shapes by name.
      chunks: the :class:`Chunks`.
      interpret: as in ``pl.pallas_call``.
    """
    x = given["x"]
    own = jnp.pad(jnp.where(real, ids, -1), (0, chunks.chunks * chunks.size - chunks.length), constant_values=-1)
    given = {key: _in_rows(key, array, chunks) for key, array in given.items() if array is not None}
    given["ids"] = own[None]

    def body(chunk, group, *references):
        index = pl.program_id(0)
        before = jnp.maximum(index - 1, 0)
        first = index == 0
        new_chunk, new_group = (first | (own[index] != own[before]) for own in (chunk, group))
        step = Step(first, new_chunk, new_group, group[index] * chunks.group)
        refs = dict(zip((*given, *outputs), references, strict=True))
        pl.when(new_chunk | new_group)(lambda: kernel(refs, step))

    products = 5 if "dx" in outputs else 2
    grid = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=2,
        grid=(chunks.steps,),
        in_specs=[_spec(key, array.shape, chunks) for key, array in given.items()],
        out_specs=[_spec(key, shape, chunks) for key, shape in outputs.items()],
    )
    return pl.pallas_call(
        body,
        grid_spec=grid,
        out_shape=result_shapes(outputs, given),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary",), vmem_limit_bytes=MEMORY),
        cost_estimate=pl.CostEstimate(
            flops=2 * products * math.prod(x.shape) * chunks.rows,
            transcendentals=chunks.length * chunks.rows,
            bytes_accessed=x.size * x.dtype.itemsize * (2 if "dx" in outputs else 1),
        ),
        interpret=interpret,
    )(*steps_of(ids, chunks), *given.values())


def _in_rows(key, array, chunks):
    """Pads multiplier, bias or dscores [h, N] to the rows of a segment, [each, N]; other arrays are unchanged."""
    if key not in ("multiplier", "bias", "dscores"):
        return array
    return jnp.pad(array, ((0, chunks.each - chunks.heads), (0, 0)))


def _spec(key, shape, chunks):
    if key in ("x", "dx"):
        return chunks.tokens()
    if len(shape) == 2:
        return chunks.numbers(shape[0])
    return chunks.vectors(shape)


# --------------------------------------------------------------------------------------------------------------
# Kernels


class Step(NamedTuple):
    """A step of the grid, as the kernels see it; all four are scalars of the kernel.

    Attributes:
      first: whether it is the first of all.
      new_chunk: whether it is the first of its chunk.
      new_group: whether it is the first of its group.
      segment: the first segment of the group.
    """

    first: Any
    new_chunk: Any
    new_group: Any
    segment: Any


def _forward_kernel(refs, step, chunks, precision):
    @pl.when(step.new_group)
    def _():
        refs["max_score"][...] = jnp.full(refs["max_score"].shape, -jnp.inf, jnp.float32)
        for key in ("denominator", "numerator"):
            refs[key][...] = jnp.zeros(refs[key].shape, jnp.float32)

    x, own = refs["x"][...], _own(refs, step.segment, chunks)
    found, finite = _scores(block_products(refs["queries"][...], x, precision), refs, own, chunks)
    before = refs["max_score"][...]
    largest = jnp.maximum(before, jnp.max(found, 1, keepdims=True))
    exp_scores, scale = exponential(found, largest), exponential(before, largest)
    applied = exp_scores
    if "multiplier" in refs:
        applied = exp_scores * jnp.where(own, chunks.repeated(refs["multiplier"][...]), 0)
    refs["max_score"][...] = largest
    refs["denominator"][...] = refs["denominator"][...] * scale + jnp.sum(exp_scores, 1, keepdims=True)
    refs["numerator"][...] = refs["numerator"][...] * scale + block_sums(applied, _cleaned(x, refs, finite), precision)


def _scores_kernel(refs, step, chunks, precision):
    own = _own(refs, step.segment, chunks)
    found, _ = _scores(block_products(refs["queries"][...], refs["x"][...], precision), refs, own, chunks)
    _write(refs["scores"], chunks.summed(jnp.where(own, found, 0)), step.new_chunk)


def _backward_kernel(refs, step, chunks, precision):
    rows, queries, dnumerator = chunks.rows, refs["queries"][...], refs["dnumerator"][...]

    @pl.when(step.first if chunks.shared else step.new_group)
    def _():
        refs["dqueries"][...] = jnp.zeros(refs["dqueries"].shape, jnp.float32)

    x, own = refs["x"][...], _own(refs, step.segment, chunks)
    both = block_products(jnp.concatenate([queries, dnumerator], 0), x, precision)
    found, finite = _scores(both[:-rows], refs, own, chunks)
    dapplied = jnp.where(own, both[-rows:], 0)
    exp_scores = jnp.where(own, exponential(found, refs["max_score"][...]), 0)
    multiplier = jnp.where(own, chunks.repeated(refs["multiplier"][...]), 0) if "multiplier" in refs else None
    applied, dexp = exp_scores, dapplied
    if multiplier is not None:
        applied, dexp = exp_scores * multiplier, dapplied * multiplier
    dscores = exp_scores * (dexp + refs["ddenominator"][...])
    if "dscores" in refs:
        dscores = dscores + chunks.repeated(refs["dscores"][...])
    dscores = jnp.where(own, dscores, 0)
    total = chunks.summed(dscores)
    if "dbias" in refs:
        _write(refs["dbias"], total, step.new_chunk)
    if "dmultiplier" in refs:
        _write(refs["dmultiplier"], chunks.summed(exp_scores * dapplied), step.new_chunk)
    dqueries = block_sums(dscores, _cleaned(x, refs, finite), precision)
    if chunks.shared:
        refs["dqueries"][...] += chunks.summed(dqueries)
        weights, factors = total, queries[: total.shape[0]]
    else:
        refs["dqueries"][...] += dqueries
        weights, factors = dscores, _finite(queries[:rows])
    weights = jnp.concatenate([weights, applied], 0)
    factors = jnp.concatenate([factors, _finite(dnumerator)], 0)
    _write(refs["dx"], outer_sums(weights, factors, x.dtype), step.new_chunk)


def _own(refs, segment, chunks):
    """Returns bool [rows, tokens]: whether a row belongs to the segment of a token; False at padding."""
    rows = lax.broadcasted_iota(jnp.int32, (chunks.rows, chunks.size), 0)
    return jnp.right_shift(rows, chunks.each.bit_length() - 1) + segment == refs["ids"][...]


def _scores(products, refs, own, chunks):
    """Returns (the scores [rows, tokens], -inf where not ``own``, NaN of tokens that are not finite; bool [1, tokens]: finite)."""
    finite = products[-1:] == 0
    rows = chunks.repeated(products) if chunks.shared else products[: chunks.rows]
    found = jnp.where(finite, rows, jnp.nan)
    if "bias" in refs:
        found = found + chunks.repeated(refs["bias"][...])
    return jnp.where(own, found, -jnp.inf), finite


def _cleaned(x, refs, finite):
    """Returns the tokens [tokens, d], 0 at padding and where they are not finite."""
    return zeroed(x, finite & (refs["ids"][...] >= 0))


def _finite(rows):
    """Returns rows of segments, 0 where they are not finite: there they would reach tokens of other segments."""
    return jnp.where(jnp.abs(rows) < jnp.inf, rows, 0)


def _write(ref, part, new_chunk):
    """Adds ``part``, which is 0 outside of the group, to the reference of a chunk; rows that pad ``part`` are left out.

    In the first step of a chunk, ``new_chunk``, it overwrites the reference instead.
    """
    part = part[: ref.shape[0]]

    @pl.when(new_chunk)
    def _():
        ref[...] = part.astype(ref.dtype)

    @pl.when(jnp.logical_not(new_chunk))
    def _():
        ref[...] = (ref[...].astype(jnp.float32) + part).astype(ref.dtype)
