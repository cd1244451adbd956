"""Table of the functions: one row for each function, in the order of the documentation.

A row is data: the argument checks, the tests, the command line, the type stubs and the judge (``attnpool check``) read
it. They find a function in a package, or in a module under test, by the name of its row. Each family of functions has
a file in ``rows/``; :mod:`attnpool_ref.table.language` describes the syntax of ``shapes`` and ``rules``.
"""

import textwrap
from importlib import import_module

from attnpool_ref.table.row import Variant, did_you_mean
from attnpool_ref.table.rows import heads, streaming
from attnpool_ref.table.sources import SOURCES

__all__ = [
    "BY_NAME",
    "HEADS",
    "SOURCES",
    "STATES",
    "VARIANTS",
    "Variant",
    "did_you_mean",
    "get",
    "in_all_layouts",
    "overview",
]

_FAMILIES = (
    "masks normalizers scores attention pooling means statistics additive readouts layers segments pairs decomposition "
    "relations"
)
VARIANTS: tuple[Variant, ...] = sum(
    (import_module(f"attnpool_ref.table.rows.{family}").ROWS for family in _FAMILIES.split()), ()
)
"""Rows of all functions but those in ``STATES`` and ``HEADS``, in the order of the documentation."""

STATES: tuple[Variant, ...] = streaming.ROWS
"""Rows of the functions that return the state of one chunk, for :func:`merge_states` and :func:`finalize_state`."""

HEADS: tuple[Variant, ...] = heads.ROWS
"""Rows of functions that only modules call, and that are in no public namespace."""

BY_NAME = {row.name: row for row in (*VARIANTS, *STATES)}
_OF_HEADS = {row.name: row for row in HEADS}


def get(name):
    """Returns the row called ``name``.

    Raises:
      ValueError: there is no such row; the message lists similar names.
    """
    if name in BY_NAME or name in _OF_HEADS:
        return BY_NAME.get(name) or _OF_HEADS[name]
    raise ValueError(f"no function is called {name!r}{did_you_mean(name, BY_NAME) or f'; see `attnpool find {name}`'}")


def in_all_layouts(*names):
    """Returns the names of dense functions, and those of their packed forms and of their chunk states, if any."""
    packed = [f"segment_{name}" for name in names if f"segment_{name}" in BY_NAME]
    return *names, *packed, *(row.name for row in STATES if row.state in names)


def overview(**others):
    """Returns the overview in ``help`` of a package: for each family the name of its file, and its functions.

    ``others`` are the names of functions without a row, by family.
    """
    families = {}
    for row in BY_NAME.values():
        families.setdefault(row.family, []).append(row.name)
    for family, names in others.items():
        families.setdefault(family, []).extend(names)
    first = max(map(len, families)) + 2
    return "\n".join(
        textwrap.fill(", ".join(names), 100, initial_indent=family.ljust(first), subsequent_indent=" " * first)
        for family, names in families.items()
    )
