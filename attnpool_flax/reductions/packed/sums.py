"""Sums and maxima of packed tokens by segment: by whole arrays, or one tile in the CPU's cache at a time.

By tiles, no row of x is copied for a head or gathered for a segment outside of a tile: other arrays of the size of x,
except ``dx``, exist only for one tile at a time. N are the tokens, h heads, d features, count segments, size the tokens
of a tile.
``segments`` is always a :class:`~attnpool_flax.reductions.packed.segments.Segments`.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.sizes import known
from attnpool_flax.numerics.sums import computing_dtype
from attnpool_flax.reductions.dispatch import by_platform
from attnpool_flax.reductions.loops import tiling as tiles
from attnpool_flax.reductions.loops.blocks import Blocks
from attnpool_flax.reductions.max import signed
from attnpool_flax.reductions.packed.segments import at
from attnpool_flax.reductions.rules import reverse_rule

TOKENS, FEWEST = 2048, 64
"""Largest and smallest number of tokens of a tile."""

TILE = 2**21
"""The number of bytes of a tile's products of tokens and weights, if FEWEST tokens have no more."""

UNROLLED = 16
"""The largest number of heads whose sums are unrolled; more heads are computed in a loop."""


def tiling_of(x, heads=1):
    """Returns the tiling of tokens [N, d] under ``heads`` heads, :class:`Blocks`.

    It is None if the tokens are too few for a loop, or if N or d is a symbol of ``jax.export``.
    """
    length, width = x.shape
    if not known(length, width) or length * width * x.dtype.itemsize <= tiles.WHOLE:
        return None
    size = TILE // (width * x.dtype.itemsize * heads)
    return Blocks(length, min(length, TOKENS, max(size, FEWEST)))


def zero_padded_tile(x, segments, tiling, step):
    """Returns the tile [size, d] of a step from an array [N, d], 0 at padding."""
    return jnp.where(tiling.slice(segments.real, step)[:, None], tiling.slice(x, step), 0)


def zeros(shape, dtype, x):
    """Returns an array of 0 with the varying manual axes of the tokens x."""
    return jnp.zeros(shape, dtype) + jnp.zeros_like(x[0, 0], dtype)


# --------------------------------------------------------------------------------------------------------------
# Sums without weights


def plain_total(x, segments, factor):
    """Sums the real tokens of each segment, multiplied by ``factor``: [count, d], in the computing dtype.

    ``factor`` is None, or [count] powers of two. Tokens are selected, then multiplied, in their own dtype: XLA's TPU
    compiler fuses this into the scatter, and writes them to memory otherwise. JAX differentiates it in both modes.
    """
    tokens = _multiplied_by(jnp.where(segments.real[:, None], x, 0), segments.ids, factor)
    return segments.sum(tokens.astype(computing_dtype(x.dtype)))


def _multiplied_by(x, ids, factor):
    """Multiplies tokens [size, d] by the powers of two of their segments; float16 has too few exponents for that."""
    if factor is None:
        return x
    x = x.astype(factor.dtype) if x.dtype == jnp.float16 else x
    return x * at(factor, ids).astype(x.dtype)[:, None]


def _total_by_tiles(x, segments, factor, *, tiling):
    def tile_step(sums, step):
        keep = tiling.outside_overlap(step) & tiling.slice(segments.real, step)
        tokens = _multiplied_by(tiling.slice(x, step), tiling.slice(segments.ids, step), factor)
        return _add_to_slots(sums, segments, tiling, step, jnp.where(keep[:, None], tokens, 0).astype(sums.dtype)), None

    start = zeros((segments.sizes[0], x.shape[1]), computing_dtype(x.dtype), x)
    return segments.sum_slots(lax.scan(tile_step, start, jnp.arange(tiling.steps))[0])


def _total(x, segments, factor):
    return by_platform(_total_by_tiles, plain_total, tiling_of(x), x, segments, factor)


def _total_fwd(x, segments, factor):
    return _total(x, segments, factor), (x, segments, factor)


def _total_bwd(residuals, dtotal):
    x, segments, factor = residuals
    dtotal = dtotal if factor is None else dtotal * factor[:, None]
    dx = jnp.where(segments.real[:, None], segments.expand_to_tokens(dtotal.astype(x.dtype)), 0)
    return dx, None, None


tiled_total = reverse_rule(_total, _total_fwd, _total_bwd)
"""Computes :func:`plain_total`, on CPUs by tiles; the gradient of the tokens does not read them."""


# --------------------------------------------------------------------------------------------------------------
# Weighted sums


def plain_sums(x, segments, weights):
    """Sums tokens [N, d] by segment under weights [N, h]: [count, h, d], in the weights' dtype.

    JAX differentiates it in forward and reverse mode.
    """
    x = jnp.where(segments.real[:, None], x.astype(weights.dtype), 0)
    weights = jnp.where(segments.real[:, None], weights, 0)
    if weights.shape[1] <= UNROLLED:
        return jnp.stack([segments.sum(weights[:, i, None] * x) for i in range(weights.shape[1])], 1)
    by_head = lax.map(lambda weights: segments.sum(weights[:, None] * x), weights.T)
    return jnp.swapaxes(by_head, 0, 1)


def sums_by_tiles(x, segments, weights, *, tiling):
    """Computes :func:`plain_sums` by tiles; :func:`tiled_sums` has its gradient rule."""

    def tile_step(sums, step):
        keep = tiling.outside_overlap(step) & tiling.slice(segments.real, step)
        tokens, own = tiling.slice(x, step), tiling.slice(weights, step)
        return add_tile(sums, segments, tiling, step, tokens, own, keep), None

    shape = (segments.sizes[0], weights.shape[1], x.shape[1])
    sums, _ = lax.scan(tile_step, zeros(shape, weights.dtype, x), jnp.arange(tiling.steps))
    return segments.sum_slots(sums)


def add_tile(sums, segments, tiling, step, tokens, weights, keep):
    """Adds tokens [size, d] of a tile under weights [size, h] to the sums [slots, h, d], where ``keep`` [size] is True.

    The slots are those of ``segments.chain[0]``.
    """
    weights, tokens = (jnp.where(keep[:, None], array, 0) for array in (weights, tokens.astype(weights.dtype)))
    return _add_to_slots(sums, segments, tiling, step, weights[:, :, None] * tokens[:, None])


def _add_to_slots(sums, segments, tiling, step, terms):
    """Adds the terms [size, ...] of a tile to the sums [slots, ...] of the first slots."""
    index = tiling.slice(segments.chain[0], step)
    return sums.at[index].add(terms, indices_are_sorted=segments.ordered, mode="promise_in_bounds")


def _sums(x, segments, weights):
    return by_platform(sums_by_tiles, plain_sums, tiling_of(x, weights.shape[1]), x, segments, weights)


def _sums_fwd(x, segments, weights):
    return _sums(x, segments, weights), (x, segments, weights)


def _sums_bwd(residuals, dsums):
    x, segments, weights = residuals
    dx = outer(x, segments, ((jnp.where(segments.real[:, None], weights, 0), dsums),))
    return dx, None, by_platform(products_by_tiles, plain_products, tiling_of(x), x, segments, dsums)


tiled_sums = reverse_rule(_sums, _sums_fwd, _sums_bwd)
"""Computes :func:`plain_sums`, on CPUs by tiles."""


# --------------------------------------------------------------------------------------------------------------
# Products of tokens with rows of their segments


def plain_products(x, segments, rows):
    """Multiplies each token with the rows [count, h, d] of its segment: [N, h]; 0 at padding."""
    x = jnp.where(segments.real[:, None], x.astype(rows.dtype), 0)
    return jnp.stack([jnp.sum(x * segments.expand_to_tokens(rows[:, i]), 1) for i in range(rows.shape[1])], 1)


def products_by_tiles(x, segments, rows, *, tiling):
    """Computes :func:`plain_products` by tiles, in a loop that reads each token once."""

    def tile_step(step):
        tokens = zero_padded_tile(x, segments, tiling, step)
        return products_of_rows(tokens, at(rows, tiling.slice(segments.ids, step)))

    return tiling.concatenate(lax.map(tile_step, jnp.arange(tiling.steps)))


def products_of_rows(tokens, rows):
    """Multiplies each token [size, d] with its own h rows [size, h, d]: [size, h].

    It is a product with ones, because XLA's sums of a gathered row are slow on CPUs.
    """
    terms = tokens[:, None].astype(rows.dtype) * rows
    return jnp.dot(terms, jnp.ones(terms.shape[2], terms.dtype), precision=lax.Precision.HIGHEST)


def outer(x, segments, terms):
    """Computes ``dx`` [N, d], in the dtype of x, in one write: the sum over ``terms`` and heads of weights times rows.

    Each term is (weights [N, h], 0 at padding; rows [count, h, d] of the segments, or [1, h, d] of all).
    """
    heads = terms[0][0].shape[1]

    def dtokens(slice_, ids):
        total: Any = 0
        for weights, rows in terms:
            weights = slice_(weights)
            for i in range(heads):
                row = rows[:, i] if rows.shape[0] == 1 else at(rows[:, i], ids)
                total = total + weights[:, i, None] * row
        return total.astype(x.dtype)

    if heads <= UNROLLED or (tiling := tiling_of(x, heads)) is None:
        return dtokens(lambda weights: weights, segments.ids)

    def tile_step(dx, step):
        tile = dtokens(lambda weights: tiling.slice(weights, step), tiling.slice(segments.ids, step))
        return tiling.update(dx, tile, step), None

    return lax.scan(tile_step, zeros(x.shape, x.dtype, x), jnp.arange(tiling.steps))[0]


# --------------------------------------------------------------------------------------------------------------
# Max over tokens


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def plain_max(x, segments, least):
    """Computes the maximum of the real tokens [N, d] of each segment: [count, d]; -inf if fully masked.

    With ``least`` it is the maximum of -x. Tokens that equal the maximum share its gradient evenly.
    """
    return segments.max(jnp.where(segments.real[:, None], signed(x, least), -jnp.inf))


@plain_max.defjvp
def _plain_max_jvp(least, primals, tangents):
    x, segments = primals
    extreme = plain_max(x, segments, least)
    tied = (signed(x, least) == segments.expand_to_tokens(extreme)) & segments.real[:, None]
    count = jnp.maximum(segments.sum(tied.astype(jnp.int32)), 1).astype(computing_dtype(x.dtype))
    dx = jnp.where(tied, signed(tangents[0].astype(count.dtype), least), 0)
    return extreme, (segments.sum(dx) / count).astype(extreme.dtype)


def _max(x, segments, least):
    tiled, plain = functools.partial(_max_by_tiles, least=least), functools.partial(plain_max, least=least)
    return by_platform(tiled, plain, tiling_of(x), x, segments)


def _max_by_tiles(x, segments, *, tiling, least):
    def tile_step(extreme, step):
        real = tiling.slice(segments.real, step)[:, None]
        tokens = jnp.where(real, signed(tiling.slice(x, step), least), -jnp.inf)
        index = tiling.slice(segments.ids, step)
        return extreme.at[index].max(tokens, indices_are_sorted=segments.ordered, mode="promise_in_bounds"), None

    lowest = zeros((segments.count, x.shape[1]), x.dtype, x) - jnp.inf
    return lax.scan(tile_step, lowest, jnp.arange(tiling.steps))[0]


def _max_fwd(x, segments, least):
    extreme = _max(x, segments, least)
    return extreme, (x, segments, extreme)


def _max_bwd(least, residuals, dextreme):
    x, segments, extreme = residuals
    extreme = signed(extreme, least)  # with the sign of x
    count = by_platform(_count_by_tiles, _count_plain, tiling_of(x), x, segments, extreme)
    share = dextreme.astype(computing_dtype(x.dtype)) / jnp.maximum(count, 1).astype(computing_dtype(x.dtype))
    tied = (x == segments.expand_to_tokens(extreme)) & segments.real[:, None]
    return jnp.where(tied, segments.expand_to_tokens(signed(share, least)), 0).astype(x.dtype), None


def _count_plain(x, segments, extreme):
    """Counts the real tokens that equal ``extreme`` [count, d], the maximum or minimum of their segment: [count, d]."""
    return segments.sum(((x == segments.expand_to_tokens(extreme)) & segments.real[:, None]).astype(jnp.int32))


def _count_by_tiles(x, segments, extreme, *, tiling):
    def tile_step(count, step):
        index = tiling.slice(segments.ids, step)
        keep = tiling.slice(segments.real, step) & tiling.outside_overlap(step)
        tied = ((tiling.slice(x, step) == at(extreme, index)) & keep[:, None]).astype(jnp.int32)
        return count.at[index].add(tied, indices_are_sorted=segments.ordered, mode="promise_in_bounds"), None

    start = zeros(extreme.shape, jnp.int32, x[:1, :1].astype(bool))
    return lax.scan(tile_step, start, jnp.arange(tiling.steps))[0]


tiled_max = reverse_rule(_max, _max_fwd, _max_bwd, nondiff_argnums=(2,))
"""Computes :func:`plain_max`, on CPUs one tile in the cache at a time, with its own gradient rule."""
