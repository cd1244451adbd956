"""The largest products between two sequences, for the tokens of both: each product is computed once."""

import functools
import math
from typing import Any

import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.remat import saveable
from attnpool_flax.numerics.rounding import largest_product, norm, tied
from attnpool_flax.numerics.sizes import known, resized
from attnpool_flax.reductions import query_blocks, tiling
from attnpool_flax.reductions.rules import reverse_rule


def of_all(x, y, x_mask, y_mask, precision):
    """Returns the largest product of each token with a real one of the other side; -inf where there is none.

    Equal are those that rounding alone can tell apart: they share a gradient evenly.

    Args:
      x: [..., n, e] clean tokens.
      y: [..., m, e] clean tokens.
      x_mask: bool [..., n], or None.
      y_mask: bool [..., m], or None.
      precision: of the products.

    Returns:
      ([..., n], [..., m]).
    """
    scores = _products(x, y, precision)
    x_reach, y_reach = _reaches(x, y)
    return (
        largest_product(scores, _aside(y_mask, -2), x_reach, x.shape[-1], -1),
        largest_product(scores, _aside(x_mask, -1), y_reach, x.shape[-1], -2),
    )


def in_blocks(x, y, x_mask, y_mask, precision):
    """Computes :func:`of_all` from one block of rows of products at a time."""
    batch = jnp.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    keys = math.prod(batch) * y.shape[-2]
    length, rows = x.shape[-2], query_blocks.rows_of(keys)
    if known(length) and rows >= length:
        return of_all(x, y, x_mask, y_mask, precision)
    x, y = (jnp.broadcast_to(array, (*batch, *array.shape[-2:])) for array in (x, y))
    x_mask, y_mask = (
        mask if mask is None else jnp.broadcast_to(mask, (*batch, mask.shape[-1])) for mask in (x_mask, y_mask)
    )
    if known(length):
        return _of_blocks(x, y, x_mask, y_mask, rows, precision)
    filled = -(-length // rows) * rows
    x_mask = jnp.ones(x.shape[:-1], bool) if x_mask is None else x_mask
    x, x_mask = resized(x, -2, filled), resized(x_mask, -1, filled)
    found: Any = _of_blocks(x, y, x_mask, y_mask, rows, precision)
    x_best, y_best = found
    return resized(x_best, -1, length), y_best


def _products(x, y, precision):
    return jnp.einsum("...nd,...md->...nm", x, y, precision=precision)


def _reaches(x, y):
    """Bounds the products of each token: its norm times the largest norm of the other side."""
    x_size, y_size = norm(x)[..., 0], norm(y)[..., 0]
    most = functools.partial(jnp.max, axis=-1, keepdims=True, initial=0)
    return x_size * most(y_size), y_size * most(x_size)


def _aside(mask, axis):
    return None if mask is None else jnp.expand_dims(mask, axis)


def _best(x, y, x_mask, y_mask, rows, precision):
    def trip(y_best, start):
        scores = _products(_cut(x, start, rows, -2), y, precision)
        y_best = jnp.maximum(y_best, jnp.max(_only(scores, _cut(x_mask, start, rows), -1), -2))
        return y_best, jnp.max(_only(scores, y_mask, -2), -1)

    y_best, x_best = lax.scan(trip, _full(-jnp.inf, x, y).astype(x.dtype), _places(x, rows)[0])
    return _joined(x_best, x.shape[-2], -1), y_best


def _places(x, rows):
    """Returns the starts of blocks, the last one moved back to be whole, and of the part that no earlier block covers."""
    new = jnp.arange(0, x.shape[-2], rows)
    return jnp.minimum(new, x.shape[-2] - rows), new


def _cut(array: Any, start, rows, axis=-1) -> Any:
    return None if array is None else lax.dynamic_slice_in_dim(array, start, rows, axis)


def _only(scores, mask, axis):
    return scores if mask is None else jnp.where(jnp.expand_dims(mask, axis), scores, -jnp.inf)


def _full(value, x, y):
    """Returns [..., m]: a value for each token of y, which varies over a mesh as the tokens do."""
    return jnp.where(jnp.isnan(y[..., 0]) & jnp.isnan(x[..., :1, 0]), value, value)


def _joined(of_blocks, length, axis):
    """Blocks along a new first axis, of which the last overlaps the one before, as one array along ``axis``."""
    blocks_first = jnp.moveaxis(of_blocks, axis, 1)
    return jnp.moveaxis(tiling.without_overlap(blocks_first, length), 0, axis)


def _keep(x, y, x_mask, y_mask, rows, precision):
    found = tuple(map(saveable, _best(x, y, x_mask, y_mask, rows, precision)))
    return found, (x, y, x_mask, y_mask, *found)


def _backward(rows, precision, kept, cotangents):
    """Computes the products twice more: to count the ties that share the gradient of a column, and to distribute it."""
    x, y, x_mask, y_mask, x_best, y_best = kept
    x_reach, y_reach = _reaches(x, y)
    terms, places = x.shape[-1], _places(x, rows)

    def ties(start, new):
        """Returns (block of x, which products are the largest of their row, and of their column)."""
        block = _cut(x, start, rows, -2)
        scores = _products(block, y, precision)
        first = jnp.reshape(start + jnp.arange(rows) >= new, (1,) * (x.ndim - 2) + (rows, 1))
        row = _only(scores, y_mask, -2), _cut(x_best, start, rows), _cut(x_reach, start, rows)
        column = _only(scores, _cut(x_mask, start, rows), -1), y_best, y_reach
        return block, first & tied(*row, terms, -1), first & tied(*column, terms, -2)

    def count(total, place):
        return total + jnp.sum(ties(*place)[2], -2, dtype=jnp.int32), None

    sharing, _ = lax.scan(count, _full(0, x, y), places)
    of_rows, of_columns = cotangents
    of_columns = of_columns / jnp.maximum(sharing, 1).astype(y.dtype)

    def share(of_y, place):
        block, in_row, in_column = ties(*place)
        of_row = _cut(of_rows, place[0], rows) / jnp.maximum(jnp.sum(in_row, -1, dtype=jnp.int32), 1).astype(x.dtype)
        slopes = jnp.where(in_row, of_row[..., None], 0) + jnp.where(in_column, of_columns[..., None, :], 0)
        of_y = of_y + jnp.einsum("...nm,...nd->...md", slopes, block, precision=precision)
        return of_y, jnp.einsum("...nm,...md->...nd", slopes, y, precision=precision)

    of_y, of_x = lax.scan(share, jnp.broadcast_to(_full(0.0, x, y)[..., None], y.shape).astype(y.dtype), places)
    return _joined(of_x, x.shape[-2], -2), of_y, None, None


@reverse_rule(_keep, _backward, nondiff_argnums=(4, 5))
def _of_blocks(x, y, x_mask, y_mask, rows, precision):
    """Computes :func:`of_all` from some rows of products at a time."""
    return _best(x, y, x_mask, y_mask, rows, precision)
