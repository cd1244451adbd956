"""Formulas by the rows that they compute."""

from attnpool_ref import table
from bench.aot import plain, plain_packed


def _own(module, prefix, rows):
    names = ((row.name, row.name.removeprefix(prefix)) for row in rows)
    return {(plain.PLAIN, name): getattr(module, own) for name, own in names if hasattr(module, own)}


FORMULAS = (
    _own(plain, "", [row for row in table.VARIANTS if not row.packed])
    | _own(plain_packed, "segment_", [row for row in table.VARIANTS if row.packed])
    | {
        (plain.JAX_NN, "dot_product_attention"): plain.jax_nn_attention,
        (plain.JAX_NN, "multi_head_attention"): plain.jax_nn_multi_head,
    }
)
"""Formulas, by way and name of the row."""
