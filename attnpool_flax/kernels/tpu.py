"""Pallas kernels of the dense softmax for TPUs. Each reads x once; the backward kernel writes dx once.

The grid is (examples, blocks of tokens). The tokens of a block lie on sublanes, their features on lanes; scores and
mask are rows of one number for each token. The sums of an example stay in on-chip memory from its first block to its
last. Queries are padded to a multiple of eight rows, the height of a register. float32 factors are multiplied with
bfloat16 tokens as two narrow rows (:mod:`attnpool_flax.numerics.products`). The last block may reach beyond
the last token: values there and at padding are replaced before they are summed, and their scores are -inf.

B are the examples, L tokens, h queries, d features. References (``refs``) are what Pallas passes to a kernel in place
of arrays: each is the part of an array that a step of the grid reads or writes.
"""

import functools
import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from attnpool_flax.numerics.platforms import varying_axes, varying_struct
from attnpool_flax.numerics.softmax import exponential

LANES, SUBLANES = 128, 8
"""Width and height of a float32 register."""

ZERO = np.int32(0)
"""The index of a block: with ``jax_enable_x64`` a plain 0 is int64, which no kernel for a TPU takes."""

BLOCK = 3 * 2**19
"""Bytes of a block of tokens, unless 128 tokens have more: so many that a copy takes longer than starting it."""

LARGEST = 2**22
"""The most bytes of 128 tokens for which a block and its float32 copies fit the on-chip memory."""

MEMORY = 32 * 2**20
"""Bytes of on-chip memory for a kernel, a quarter of that of a TPU v5e or v6e; the rest holds other results."""

PADDING, REAL, WITHOUT_QUERY = 0, 1, 2
"""Codes of tokens; the score of a real token without a query is 0, plus the bias."""


class CallSizes(NamedTuple):
    """Sizes of a call.

    Attributes:
      batch: B.
      length: L.
      width: d.
      count: h.
      rows: h, rounded up to whole registers.
      size: the number of tokens of a block.
    """

    batch: int
    length: int
    width: int
    count: int
    rows: int
    size: int

    @property
    def steps(self):
        """The number of blocks of an example."""
        return pl.cdiv(self.length, self.size)

    @property
    def has_tail(self):
        """Whether the last block reaches beyond the last token."""
        return self.length % self.size != 0

    def tokens(self):
        """Returns the ``pl.BlockSpec`` of an array [B, L, d]: a step of the grid gets one block of tokens."""
        return pl.BlockSpec((None, self.size, self.width), lambda example, block: (example, block, ZERO))

    def numbers(self, rows):
        """Returns the ``pl.BlockSpec`` of an array [B, rows, L]: a step gets all rows of one block of tokens."""
        return pl.BlockSpec((None, rows, self.size), lambda example, block: (example, ZERO, block))

    def vectors(self, shape):
        """Returns the ``pl.BlockSpec`` of an array [B or 1, rows, columns]: a step gets all rows of its example.

        An array [1, rows, columns] is shared by all examples.
        """
        if shape[0] == self.batch:
            return pl.BlockSpec((None, *shape[1:]), lambda example, block: (example, ZERO, ZERO))
        return pl.BlockSpec((None, *shape[1:]), lambda example, block: (ZERO, ZERO, ZERO))


def blocks_of(x, count):
    """Returns the :class:`CallSizes` of tokens [B, L, d] under ``count`` queries."""
    batch, length, width = x.shape
    most = max(LANES, BLOCK // max(width * x.dtype.itemsize, 1) // LANES * LANES)
    steps = pl.cdiv(length, most)
    size = rounded_up(pl.cdiv(length, steps), LANES)
    return CallSizes(batch, length, width, count, rounded_up(count, SUBLANES), size)


def fits(x):
    """Returns whether 128 tokens of x, the smallest block, fit the on-chip memory."""
    return LANES * x.shape[-1] * x.dtype.itemsize <= LARGEST


# --------------------------------------------------------------------------------------------------------------
# Calls


def forward(x, codes, queries, multiplier, bias, *, precision, interpret=False):
    """Computes the fields of the :class:`~attnpool_flax.reductions.softmax.OnlineSoftmax`.

    Args:
      x: [B, L, d] tokens, in float32, bfloat16 or float16.
      codes: int32 [B, 1, L], PADDING, REAL or WITHOUT_QUERY; None if all are REAL.
      queries: float32 [B or 1, h, d].
      multiplier: float32 [B, h, L] of the unnormalized weights in the numerator, or None.
      bias: float32 [B, h, L], added to the scores, or None.
      precision: of products of tokens that are not bfloat16.
      interpret: as in ``pl.pallas_call``: True runs the kernel on a CPU, slowly.

    Returns:
      (max_score [B, h], denominator [B, h], numerator [B, h, d]), float32.
    """
    blocks = blocks_of(x, queries.shape[1])
    batch, count, width, rows = blocks.batch, blocks.count, blocks.width, blocks.rows
    given = {"x": x, "queries": queries, "codes": codes, "multiplier": multiplier, "bias": bias}
    outputs = {"max_score": (batch, count, 1), "denominator": (batch, count, 1), "numerator": (batch, count, width)}
    scratch = {"rows": (rows, width), "largest": (rows, LANES), "mass": (rows, LANES), "sums": (rows, width)}
    kernel = functools.partial(_forward_kernel, blocks=blocks, precision=precision)
    max_score, denominator, numerator = _call(kernel, given, outputs, scratch, blocks, interpret, 2)
    return max_score[..., 0], denominator[..., 0], numerator


def scores(x, codes, queries, bias, *, precision, interpret=False):
    """Computes the scores [B, h, L], -inf at padding; the arguments are those of :func:`forward`."""
    blocks = blocks_of(x, queries.shape[1])
    given = {"x": x, "queries": queries, "codes": codes, "bias": bias}
    outputs = {"scores": (blocks.batch, blocks.count, blocks.length)}
    kernel = functools.partial(_scores_kernel, blocks=blocks, precision=precision)
    scratch = {"rows": (blocks.rows, blocks.width)}
    return _call(kernel, given, outputs, scratch, blocks, interpret, 1)[0]


def backward(
    x, codes, queries, multiplier, bias, max_score, dscores, ddenominator, dnumerator, *, precision, interpret=False
):
    """Computes the gradients of :func:`forward` and :func:`scores`; the scores are recomputed.

    The arguments are those of :func:`forward`, the ``max_score`` [B, h] that it computed, and the cotangents of the
    scores ([B, h, L], or None for 0), of the denominator ([B, h]) and of the numerator ([B, h, d]).

    Returns:
      (dx [B, L, d] in the dtype of x, dqueries [B or 1, h, d], dbias [B, h, L] or None, dmultiplier [B, h, L] or None).
    """
    blocks = blocks_of(x, queries.shape[1])
    given = {"x": x, "queries": queries, "codes": codes, "multiplier": multiplier, "bias": bias}
    given |= {"dscores": dscores, "dnumerator": dnumerator}
    given |= {"max_score": max_score[..., None], "ddenominator": ddenominator[..., None]}
    numbers = (blocks.batch, blocks.count, blocks.length)
    outputs = {"dx": x.shape, "dqueries": queries.shape}
    outputs |= {} if bias is None else {"dbias": numbers}
    outputs |= {} if multiplier is None else {"dmultiplier": numbers}
    scratch = {"rows": (2 * blocks.rows, blocks.width), "limits": (2 * blocks.rows, LANES)}
    shared = queries.shape[0] != blocks.batch
    kernel = functools.partial(_backward_kernel, blocks=blocks, precision=precision, shared=shared)
    found = dict(zip(outputs, _call(kernel, given, outputs, scratch, blocks, interpret, 5), strict=True))
    return found["dx"], found["dqueries"], found.get("dbias"), found.get("dmultiplier")


def _call(kernel, given, outputs, scratch, blocks, interpret, count):
    """Calls a kernel with references by name; arrays that are None take no memory.

    Args:
      kernel: from a dictionary of references by name.
      given: arrays by name.
      outputs: shapes by name.
      scratch: shapes by name.
      blocks: the :class:`CallSizes`.
      interpret: as in ``pl.pallas_call``.
      count: the number of multiplications for each token, query and feature, for the cost estimate.
    """
    x = given["x"]
    given = {key: _in_rows(key, array, blocks) for key, array in given.items() if array is not None}

    def body(*references):
        kernel(dict(zip((*given, *outputs, *scratch), references, strict=True)))

    operations = 2 * count * math.prod(x.shape) * blocks.count
    moved = x.size * x.dtype.itemsize * (2 if "dx" in outputs else 1)
    return pl.pallas_call(
        body,
        grid=(blocks.batch, blocks.steps),
        in_specs=[_spec(key, array.shape, blocks) for key, array in given.items()],
        out_specs=[_spec(key, shape, blocks) for key, shape in outputs.items()],
        out_shape=result_shapes(outputs, given),
        scratch_shapes=[pltpu.VMEM(shape, jnp.float32) for shape in scratch.values()],
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("arbitrary" if "dx" in outputs else "parallel", "arbitrary"), vmem_limit_bytes=MEMORY
        ),
        cost_estimate=pl.CostEstimate(
            flops=operations, transcendentals=blocks.batch * blocks.count * blocks.length, bytes_accessed=moved
        ),
        interpret=interpret,
    )(*given.values())


def result_shapes(outputs, given):
    """Describes the results of a kernel: ``dx`` in the dtype of x, others in float32, with the varying axes of the arguments.

    Args:
      outputs: shapes by name.
      given: arrays by name.
    """
    axes = frozenset().union(*(varying_axes(array) for array in given.values()))
    return [
        varying_struct(shape, given["x"].dtype if key == "dx" else jnp.float32, axes) for key, shape in outputs.items()
    ]


def _in_rows(key, array, blocks):
    """Pads multiplier, bias or dscores [B, h, L] to the rows of whole registers; other arrays are unchanged.

    A single row (h = 1) is not padded, because it broadcasts.
    """
    if key not in ("multiplier", "bias", "dscores") or blocks.count in (1, blocks.rows):
        return array
    return jnp.pad(array, ((0, 0), (0, blocks.rows - blocks.count), (0, 0)))


def _spec(key, shape, blocks):
    if key in ("x", "dx"):
        return blocks.tokens()
    if key in ("codes", "multiplier", "bias", "scores", "dscores", "dbias", "dmultiplier"):
        return blocks.numbers(shape[1])
    return blocks.vectors(shape)


# --------------------------------------------------------------------------------------------------------------
# Kernels


def _forward_kernel(refs, blocks, precision):
    block = pl.program_id(1)

    @pl.when(block == 0)
    def _():
        _place_rows(refs["rows"], refs["queries"], 0, blocks)
        refs["largest"][...] = jnp.full(refs["largest"].shape, -jnp.inf, jnp.float32)
        refs["mass"][...] = jnp.zeros(refs["mass"].shape, jnp.float32)
        refs["sums"][...] = jnp.zeros(refs["sums"].shape, jnp.float32)

    x, codes = refs["x"][...], _codes(refs, block, blocks)
    found = _selected(block_products(refs["rows"][...], x, precision), refs, codes)
    before = refs["largest"][:, :1]
    largest = jnp.maximum(before, jnp.max(found, 1, keepdims=True))
    exp_scores, scale = exponential(found, largest), exponential(before, largest)
    applied = exp_scores if "multiplier" not in refs else exp_scores * _at_real(refs["multiplier"][...], codes)
    mass = refs["mass"][:, :1] * scale + jnp.sum(exp_scores, 1, keepdims=True)
    sums = refs["sums"][...] * scale + block_sums(applied, _cleaned(x, codes), precision)
    refs["largest"][...] = jnp.broadcast_to(largest, refs["largest"].shape)
    refs["mass"][...] = jnp.broadcast_to(mass, refs["mass"].shape)
    refs["sums"][...] = sums

    @pl.when(block == blocks.steps - 1)
    def _():
        refs["max_score"][...] = largest[: blocks.count]
        refs["denominator"][...] = mass[: blocks.count]
        refs["numerator"][...] = refs["sums"][: blocks.count]


def _scores_kernel(refs, blocks, precision):
    block = pl.program_id(1)

    @pl.when(block == 0)
    def _():
        _place_rows(refs["rows"], refs["queries"], 0, blocks)

    found = block_products(refs["rows"][...], refs["x"][...], precision)
    refs["scores"][...] = _selected(found, refs, _codes(refs, block, blocks))[: blocks.count]


def _backward_kernel(refs, blocks, precision, shared):
    block, rows, count = pl.program_id(1), blocks.rows, blocks.count

    @pl.when(block == 0)
    def _():
        _place_rows(refs["rows"], refs["queries"], 0, blocks)
        _place_rows(refs["rows"], refs["dnumerator"], rows, blocks)
        _place_rows(refs["limits"], refs["max_score"], 0, blocks)
        _place_rows(refs["limits"], refs["ddenominator"], rows, blocks)

    @pl.when((block == 0) & ((pl.program_id(0) == 0) | (not shared)))
    def _():
        refs["dqueries"][...] = jnp.zeros(refs["dqueries"].shape, jnp.float32)

    x, codes = refs["x"][...], _codes(refs, block, blocks)
    factors = refs["rows"][...]
    both = block_products(factors, x, precision)
    found, dapplied = _selected(both[:rows], refs, codes), _at_real(both[rows:], codes)
    exp_scores = exponential(found, refs["limits"][:rows, :1])
    multiplier = _at_real(refs["multiplier"][...], codes) if "multiplier" in refs else None
    dexp = dapplied if multiplier is None else dapplied * multiplier
    dscores = exp_scores * (dexp + refs["limits"][rows:, :1])
    if "dscores" in refs:
        dscores = dscores + refs["dscores"][...]
    dscores = _at_real(dscores, codes)
    if "dbias" in refs:
        refs["dbias"][...] = dscores[:count]
    if "dmultiplier" in refs:
        refs["dmultiplier"][...] = (exp_scores * dapplied)[:count]
    if "codes" in refs:
        dscores = jnp.where(codes == WITHOUT_QUERY, 0, dscores)
    applied = exp_scores if multiplier is None else exp_scores * multiplier
    if count != rows:  # rows without a query
        has_query = lax.broadcasted_iota(jnp.int32, dscores.shape, 0) < count
        dscores, applied = jnp.where(has_query, dscores, 0), jnp.where(has_query, applied, 0)
    cleaned = _cleaned(x, codes)
    refs["dqueries"][...] += block_sums(dscores, cleaned, precision)[:count]
    weights = jnp.concatenate([dscores, applied], 0)
    refs["dx"][...] = outer_sums(weights, factors, x.dtype).astype(x.dtype)


def _place_rows(scratch, ref, first, blocks):
    """Writes the h rows of a reference into the scratch memory from row ``first`` on; the rest of a register is 0."""
    width = scratch.shape[1]
    if blocks.count != blocks.rows:
        scratch[first : first + blocks.rows] = jnp.zeros((blocks.rows, width), jnp.float32)
    scratch[first : first + blocks.count] = jnp.broadcast_to(ref[...], (blocks.count, width))


def _codes(refs, block, blocks):
    """Returns the codes [1, tokens] of a block, PADDING beyond the last token; None if all are REAL."""
    codes = refs["codes"][...] if "codes" in refs else None
    if not blocks.has_tail:
        return codes
    place = block * blocks.size + lax.broadcasted_iota(jnp.int32, (1, blocks.size), 1)
    return jnp.where(place < blocks.length, REAL if codes is None else codes, PADDING)


def _selected(found, refs, codes):
    """Returns the scores [rows, tokens] from products: 0 for tokens without a query, plus the bias, -inf at padding."""
    if "codes" in refs:
        found = jnp.where(codes == WITHOUT_QUERY, 0, found)
    if "bias" in refs:
        found = found + refs["bias"][...]
    return found if codes is None else jnp.where(codes == PADDING, -jnp.inf, found)


def _at_real(values, codes):
    return values if codes is None else jnp.where(codes == PADDING, 0, values)


def _cleaned(x, codes):
    """Returns the tokens [tokens, d], 0 at padding and beyond the last one."""
    return x if codes is None else zeroed(x, codes != PADDING)


def rounded_up(size, unit):
    """Rounds a size up to a multiple of a unit."""
    return -(-size // unit) * unit


def zeroed(x, keep):
    """Returns the tokens [tokens, d], 0 where ``keep`` [1, tokens] is False."""
    real = keep.astype(jnp.float32)
    column = jnp.transpose(jnp.broadcast_to(real, (SUBLANES, x.shape[0])))[:, :1]
    return jnp.where(column != 0, x.astype(jnp.float32), 0).astype(x.dtype)


def block_products(factors, x, precision):
    """Computes products of float32 factors [rows, d] and tokens [tokens, d]: float32 [rows, tokens]."""
    return _contracted(factors, x, (1, 1), precision)


def block_sums(weights, x, precision):
    """Sums tokens [tokens, d] under float32 weights [rows, tokens]: float32 [rows, d]."""
    return _contracted(weights, x, (1, 0), precision)


def _contracted(factors, x, axes, precision):
    if x.dtype != jnp.bfloat16:
        return _dot(factors, x.astype(jnp.float32), axes, precision)
    high, low = _high_and_low(factors)
    both = _dot(jnp.concatenate([high, low], 0).astype(jnp.bfloat16), x, axes, None)
    return both[: len(factors)] + both[len(factors) :]


def outer_sums(weights, factors, dtype):
    """Computes sums of float32 factors [rows, d] under float32 weights [rows, tokens]: float32 [tokens, d].

    If ``dtype``, that of the tokens, is bfloat16, both are split into high and low rows, and three products are summed:
    that of the two low ones is below the rounding of the result.
    """
    if dtype != jnp.bfloat16:
        return _dot(weights, factors, (0, 0), lax.Precision.HIGHEST)
    (weights, few), (factors, rest) = _high_and_low(weights), _high_and_low(factors)
    left, right = jnp.concatenate([weights, few, weights], 0), jnp.concatenate([factors, factors, rest], 0)
    return _dot(left.astype(jnp.bfloat16), right.astype(jnp.bfloat16), (0, 0), None)


def _high_and_low(factors):
    """Returns (the factors rounded to bfloat16, the remainder), in float32."""
    high = factors.astype(jnp.bfloat16).astype(jnp.float32)
    return high, jnp.where(jnp.abs(high) < jnp.inf, factors - high, 0)  # inf - inf


def _dot(a: Any, b: Any, axes, precision):
    contracting = ((axes[0],), (axes[1],))
    return lax.dot_general(a, b, (contracting, ((), ())), precision, preferred_element_type=jnp.float32)
