"""Table of mistakes in public code of poolings: each with its smallest input, the wrong number and the right one.

``docs/traps.md`` is written from it, and ``tests/docs/test_bugs.py`` runs every row. ``bugs/table.py`` says what a row
is. If the library can be installed, ``tests/peers/test_traps_of_libraries.py`` compares the wrong number with the
library's own.
"""

from traps import attention, means, statistics, texts

SECTIONS = (
    means.PYG,
    means.POWERS,
    statistics.STATISTICS,
    texts.TEXTS,
    attention.WEIGHTS,
    attention.IMAGES,
)
"""Sections, in the order of the page."""

TRAPS = tuple(trap for section in SECTIONS for trap in section.rows)
"""All rows; ``bugs/table.py`` says what a row is."""
