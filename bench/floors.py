"""Floors: computations that no implementation can avoid, measured in the same rounds."""

from functools import partial

import jax
import jax.numpy as jnp

from bench.programs import FLOOR, FORWARD, Way

BLOCK = 2**20
"""Number of products that fit into the cache together."""

PRODUCTS = {
    "code_wise_attention": ("context", "query", False),
    "mask_attention": ("context", "query", True),
    "bidaf_attention": ("context", "query", True),
}
"""Functions of all pairs of tokens: (arrays of rows and columns, whether columns are averaged for each row)."""


def floors(case, direction):
    """Returns the floor of a case: products of all pairs, writing a result much larger than x, or reading x."""
    pairs = PRODUCTS.get(case.name)
    if case.options.get("reduction") == "max":
        pairs = "x", "y", False
    if pairs is not None and (direction == FORWARD or pairs[2]):
        products = partial(_products, *pairs)
        return [Way("the products alone", FLOOR, products, partial(_step, products))]
    if case.name == "cross_attention_pooling_all_pairs":
        return [Way("writing the results", FLOOR, _written)] if direction == FORWARD else []
    names = case.data()

    def read(floats, fixed):
        return [floats[name].sum(1) for name in names]

    def copy(floats, fixed):
        return [2 * floats[name] for name in names]

    if direction == FORWARD:
        return [Way("one read", FLOOR, read)]
    return [Way("a read and a write", FLOOR, read, copy)]


def _written(floats, fixed):
    x, y = floats["x"].sum(1)[:, None], floats["y"].sum(1)[None]
    return [x + y, x - y]


def _products(own, other, averaged, floats, fixed, most=BLOCK):
    """Returns each row's largest product with a column, or sum of columns times products; a step recomputes blocks.

    A block has at most ``most`` products, and at least one row.
    """
    rows, columns = floats[own], floats[other]

    @partial(jax.checkpoint, prevent_cse=False)
    def of_block(block):
        products = jnp.einsum("bnd,bmd->bnm", block, columns)
        return jnp.einsum("bnm,bmd->bnd", products, columns) if averaged else products.max(-1)

    size = min(max(1, most // columns.shape[1]), rows.shape[1])
    whole = rows.shape[1] // size * size
    blocks = jnp.reshape(rows[:, :whole], (rows.shape[0], -1, size, rows.shape[-1]))
    results = [jax.lax.map(of_block, jnp.moveaxis(blocks, 1, 0))]
    return results if whole == rows.shape[1] else [*results, of_block(rows[:, whole:])]


def _step(products, floats, fixed):
    return jax.value_and_grad(lambda floats: sum((part * part).sum() for part in products(floats, fixed)))(floats)
