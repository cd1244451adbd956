"""Max products of the tokens of two sequences, for each token of both, in blocks that compute each product once."""

import functools
import math
from typing import Any

import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.products import einsum, wide_gradients
from attnpool_flax.numerics.remat import saveable
from attnpool_flax.numerics.rounding import largest_product, norm, tied
from attnpool_flax.numerics.sizes import known, resized
from attnpool_flax.reductions.loops.blocks import Blocks, by_budget, rows_of
from attnpool_flax.reductions.rules import reverse_rule


def of_all(x, y, x_mask, y_mask, precision):
    """Computes for each token its max product with a real token of the other sequence; -inf where there is none.

    Products that differ only by rounding count as tied, and share the gradient evenly.

    Args:
      x: [..., n, e] tokens, 0 at padding.
      y: [..., m, e] tokens, 0 at padding.
      x_mask: bool [..., n], or None.
      y_mask: bool [..., m], or None.
      precision: of the products.

    Returns:
      ([..., n], [..., m]), for the tokens of x and of y.
    """
    scores = _products(x, y, precision)
    x_bound, y_bound = _bounds(x, y)
    return (
        largest_product(scores, _expand(y_mask, -2), x_bound, x.shape[-1], -1),
        largest_product(scores, _expand(x_mask, -1), y_bound, x.shape[-1], -2),
    )


def best_with(y, y_mask, precision, scale=None):
    """Returns a function from rows [..., n, d] to their largest products with real tokens of y [..., m, d]: [..., n, 1].

    Products that differ only by rounding share the gradient evenly; it needs padding of y to be 0. ``scale`` multiplies
    the rows; None is 1.
    """
    longest = jnp.max(norm(y), -2, initial=0)

    def best(rows):
        scores = _products(rows if scale is None else scale * rows, y, wide_gradients(precision))
        size = norm(rows)[..., 0] if scale is None else jnp.abs(scale) * norm(rows)[..., 0]
        return largest_product(scores, _expand(y_mask, -2), size * longest, rows.shape[-1])[..., None]

    return best


def in_blocks(x, y, x_mask, y_mask, precision):
    """Computes :func:`of_all` for one block of rows of the products [..., n, m] at a time; all at once if they fit."""
    batch = jnp.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    keys = math.prod(batch) * y.shape[-2]
    length, rows = x.shape[-2], rows_of(keys)
    if known(length):
        if rows >= length:
            return of_all(x, y, x_mask, y_mask, precision)
        compute = functools.partial(_in_blocks_of, batch, precision)
        return by_budget(compute, keys, x, y, x_mask, y_mask)
    x, y, x_mask, y_mask = _with_batch(batch, x, y, x_mask, y_mask)
    filled = -(-length // rows) * rows
    x_mask = jnp.ones(x.shape[:-1], bool) if x_mask is None else x_mask
    x, x_mask = resized(x, -2, filled), resized(x_mask, -1, filled)
    best: Any = _of_blocks(x, y, x_mask, y_mask, rows, precision)
    x_best, y_best = best
    return resized(x_best, -1, length), y_best


def _in_blocks_of(batch, precision, rows, x, y, x_mask, y_mask):
    if rows >= x.shape[-2]:
        return of_all(x, y, x_mask, y_mask, precision)
    return _of_blocks(*_with_batch(batch, x, y, x_mask, y_mask), rows, precision)


def _with_batch(batch, x, y, x_mask, y_mask):
    """Broadcasts tokens and masks to all batch axes."""
    x, y = (jnp.broadcast_to(array, (*batch, *array.shape[-2:])) for array in (x, y))
    masks = (m if m is None else jnp.broadcast_to(m, (*batch, m.shape[-1])) for m in (x_mask, y_mask))
    return x, y, *masks


def _products(x, y, precision):
    return einsum("...nd,...md->...nm", x, y, precision)


def _bounds(x, y):
    """Returns for each token a bound of its products: its norm times the largest norm of the other sequence."""
    x_size, y_size = norm(x)[..., 0], norm(y)[..., 0]
    most = functools.partial(jnp.max, axis=-1, keepdims=True, initial=0)
    return x_size * most(y_size), y_size * most(x_size)


def _expand(mask, axis):
    return None if mask is None else jnp.expand_dims(mask, axis)


def _best(x, y, x_mask, y_mask, rows, precision):
    blocks = Blocks(x.shape[-2], rows)

    def block_step(y_best, step):
        scores = _products(_slice(x, blocks, step, -2), y, precision)
        y_best = jnp.maximum(y_best, jnp.max(_masked(scores, _slice(x_mask, blocks, step), -1), -2))
        return y_best, jnp.max(_masked(scores, y_mask, -2), -1)

    y_best, x_best = lax.scan(block_step, _full(-jnp.inf, x, y).astype(x.dtype), jnp.arange(blocks.steps))
    return _concatenate(blocks, x_best, -1), y_best


def _slice(array: Any, blocks, step, axis=-1) -> Any:
    return None if array is None else blocks.slice(array, step, axis)


def _masked(scores, mask, axis):
    return scores if mask is None else jnp.where(jnp.expand_dims(mask, axis), scores, -jnp.inf)


def _full(value, x, y):
    """Returns [..., m]: a value for each token of y, with the varying manual axes of both sequences."""
    return jnp.where(jnp.isnan(y[..., 0]) & jnp.isnan(x[..., :1, 0]), value, value)


def _concatenate(blocks, arrays, axis):
    """Joins blocks along ``axis``, which a loop stacked along a new first axis."""
    return jnp.moveaxis(blocks.concatenate(jnp.moveaxis(arrays, axis, 1)), 0, axis)


def _best_fwd(x, y, x_mask, y_mask, rows, precision):
    best = tuple(map(saveable, _best(x, y, x_mask, y_mask, rows, precision)))
    return best, (x, y, x_mask, y_mask, *best)


def _best_bwd(rows, precision, residuals, cotangents):
    """Returns the cotangents of the arrays; recomputes the products twice, first to count the ties of each column.

    The ties of a column share the gradient of its maximum, so their number must be known before.
    """
    x, y, x_mask, y_mask, x_best, y_best = residuals
    x_bound, y_bound = _bounds(x, y)
    terms, blocks = x.shape[-1], Blocks(x.shape[-2], rows)
    steps = jnp.arange(blocks.steps)

    def ties(step):
        """Returns (block of x, mask of the products that are the max of their row, and of their column)."""
        block = _slice(x, blocks, step, -2)
        scores = _products(block, y, precision)
        once = jnp.reshape(blocks.outside_overlap(step), (1,) * (x.ndim - 2) + (rows, 1))
        row = _masked(scores, y_mask, -2), _slice(x_best, blocks, step), _slice(x_bound, blocks, step)
        column = _masked(scores, _slice(x_mask, blocks, step), -1), y_best, y_bound
        return block, once & tied(*row, terms, -1), once & tied(*column, terms, -2)

    def count_step(total, step):
        return total + jnp.sum(ties(step)[2], -2, dtype=jnp.int32), None

    count, _ = lax.scan(count_step, _full(0, x, y), steps)
    drows, dcolumns = cotangents
    dcolumns = dcolumns / jnp.maximum(count, 1).astype(y.dtype)

    def gradient_step(dy, step):
        block, in_row, in_column = ties(step)
        row_count = jnp.maximum(jnp.sum(in_row, -1, dtype=jnp.int32), 1).astype(x.dtype)
        drow = _slice(drows, blocks, step) / row_count
        dscores = jnp.where(in_row, drow[..., None], 0) + jnp.where(in_column, dcolumns[..., None, :], 0)
        dy = dy + einsum("...nm,...nd->...md", dscores, block, precision)
        return dy, einsum("...nm,...md->...nd", dscores, y, precision)

    dy = jnp.broadcast_to(_full(0.0, x, y)[..., None], y.shape).astype(y.dtype)
    dy, dx = lax.scan(gradient_step, dy, steps)
    return _concatenate(blocks, dx, -2), dy, None, None


_of_blocks = reverse_rule(_best, _best_fwd, _best_bwd, nondiff_argnums=(4, 5))
"""Computes :func:`of_all` for ``rows`` rows of the products at a time."""
