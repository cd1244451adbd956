"""Table of the functions: one row each, in the order of the documentation.

A row is data. The argument checks, the tests, the command, the type stubs and the judge read it, and find the function
by its name in any namespace. Each family has a file in ``rows/``; :mod:`attnpool_ref.table.language` is the syntax of
``shapes`` and ``rules``.
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
"""The rows whose functions return the state of one chunk, for :func:`merge_states` and :func:`finalize_state`."""

HEADS: tuple[Variant, ...] = heads.ROWS
"""The rows of functions that only modules call; they are in no namespace."""

BY_NAME = {row.name: row for row in (*VARIANTS, *STATES)}
_OF_HEADS = {row.name: row for row in HEADS}


def get(name):
    """Returns the row called ``name``; a ValueError lists the nearest names."""
    if name in BY_NAME or name in _OF_HEADS:
        return BY_NAME.get(name) or _OF_HEADS[name]
    raise ValueError(f"no function is called {name!r}{did_you_mean(name, BY_NAME)}")


def in_all_layouts(name):
    """Returns the names of a dense row, of its packed function and of its chunk states."""
    states = [row.name for row in STATES if row.state == name]
    return [name, *([f"segment_{name}"] if f"segment_{name}" in BY_NAME else []), *states]
