"""Table of the notebooks' mistakes: each with its smallest input, the wrong number and the right one.

``docs/bugs.md`` is written from it, and ``tests/docs/test_bugs.py`` runs every row. ``table.py`` says what a row is.
"""

from bugs import lexical, masks, neurjudge, seed_000, seed_001, seed_002, seed_003

SECTIONS = (
    masks.MASKS,
    seed_000.CROSS,
    seed_000.SIMKGC,
    seed_001.POOLING,
    seed_002.RULES,
    seed_003.D2L,
    neurjudge.NEURJUDGE,
    neurjudge.BIDAF,
    lexical.LEXICAL,
    lexical.CTM,
    lexical.MIAN,
)
"""Sections, in the order of the page."""

BUGS = tuple(bug for section in SECTIONS for bug in section.rows)
