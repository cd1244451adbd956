"""Floors: computations that no implementation can avoid, measured in the same rounds."""

from functools import partial

import jax
import jax.numpy as jnp

from bench.calls import step_of
from bench.programs import FLOOR, FORWARD, Way

BLOCK = 2**20
"""Number of products that fit into the cache together."""


def floor(case, direction):
    """Returns the floor of a case, or None: products of all pairs, writing results much larger than x, or reading x."""
    maxima = case.call.extra.get("reduction") == "max"
    if case.call.row.name == "mask_attention" or (maxima and direction == FORWARD):
        rows, columns = ("x", "y") if maxima else ("context", "query")
        products = partial(products_alone, rows, columns, not maxima)
        return Way("the products alone", FLOOR, products, step_of(products))
    if case.call.row.name == "cross_attention_pooling_all_pairs":
        return Way("writing the results", FLOOR, _written) if direction == FORWARD else None
    names = case.call.tokens()

    def read(arrays):
        return [arrays[name].sum(1) for name in names]

    def copy(arrays):
        return [2 * arrays[name] for name in names]

    return Way("one read" if direction == FORWARD else "a read and a write", FLOOR, read, copy)


def _written(arrays):
    x, y = arrays["x"].sum(1)[:, None], arrays["y"].sum(1)[None]
    return [x + y, x - y]


def products_alone(own, other, averaged, arrays, most=BLOCK):
    """Returns each row's largest product with a column, or sum of columns times products; a step recomputes blocks.

    A block has at most ``most`` products, and at least one row.
    """
    rows, columns = arrays[own], arrays[other]

    @partial(jax.checkpoint, prevent_cse=False)
    def of_block(block):
        products = jnp.einsum("bnd,bmd->bnm", block, columns)
        return jnp.einsum("bnm,bmd->bnd", products, columns) if averaged else products.max(-1)

    size = min(max(1, most // columns.shape[1]), rows.shape[1])
    whole = rows.shape[1] // size * size
    blocks = jnp.reshape(rows[:, :whole], (rows.shape[0], -1, size, rows.shape[-1]))
    results = [jax.lax.map(of_block, jnp.moveaxis(blocks, 1, 0))]
    return results if whole == rows.shape[1] else [*results, of_block(rows[:, whole:])]
