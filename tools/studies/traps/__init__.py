"""The table of traps: what public code of poolings gets wrong, on which smallest input, and both numbers.

``docs/traps.md`` is written from it, and ``tests/docs/test_traps.py`` runs every row; ``bugs/table.py`` says what a row is. Where
the library can be installed, ``tests/peers/test_traps_of_libraries.py`` has its number from the library itself.
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
"""In the order of the page."""

TRAPS = tuple(trap for section in SECTIONS for trap in section.rows)
"""What a row of the table of traps is, and how the page gets its text: see ``bugs/table.py``."""
