"""The table: one row per variant, in the order of the documentation.

A row names things and computes nothing. The argument checks, the tests, the command line, the type stubs and the
conformance kit all read it, and find the function itself by its name in any namespace. Each family has a file of rows.

:mod:`attnpool_ref.table.language` says how ``shapes`` and ``rules`` are written.
"""

from attnpool_ref.table.row import Variant
from attnpool_ref.table.rows import (
    additive,
    attention,
    decomposition,
    heads,
    layers,
    masks,
    means,
    normalizers,
    pairs,
    pooling,
    readouts,
    relations,
    scores,
    segments,
    statistics,
    streaming,
)
from attnpool_ref.table.sources import SOURCES
from attnpool_ref.table.suggestions import did_you_mean

__all__ = ["BY_NAME", "HEADS", "SOURCES", "STATES", "VARIANTS", "Variant", "get"]

VARIANTS: tuple[Variant, ...] = sum(
    (
        family.ROWS
        for family in (
            masks,
            normalizers,
            scores,
            attention,
            pooling,
            means,
            statistics,
            additive,
            readouts,
            layers,
            segments,
            pairs,
            decomposition,
            relations,
        )
    ),
    (),
)
"""The rows, in the order in which the documentation shows them."""

STATES: tuple[Variant, ...] = (*streaming.ROWS, *statistics.STATES)
"""The rows whose functions give the state of one chunk; :func:`merge_states` and :func:`finalize_state` take it on."""

HEADS: tuple[Variant, ...] = heads.ROWS
"""The rows of what modules alone compute: their functions stand in no namespace."""

BY_NAME = {row.name: row for row in (*VARIANTS, *STATES)}
_OF_HEADS = {row.name: row for row in HEADS}


def get(name):
    """Returns the row called ``name``; a ValueError lists the nearest names."""
    if name in BY_NAME or name in _OF_HEADS:
        return BY_NAME.get(name) or _OF_HEADS[name]
    raise ValueError(f"no variant is called {name!r}{did_you_mean(name, BY_NAME)}")


def in_all_layouts(name):
    """The names of a dense row and of those that are the same with the tokens packed and in chunks."""
    states = [row.name for row in STATES if row.state == name]
    return [name, *([f"segment_{name}"] if f"segment_{name}" in BY_NAME else []), *states]
