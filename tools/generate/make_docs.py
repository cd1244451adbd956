"""Generator of the pages ``bugs``, ``traps`` and ``heads`` from tables."""

from pathlib import Path

import bugs
import traps
from bugs.table import ERROR, NOTE, WRONG
from introductions import BUGS_INTRODUCTION, HEADS_INTRODUCTION, TRAPS_INTRODUCTION

from attnpool_ref import formats
from attnpool_ref.cli.heads import given, load_of

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
BUGS_PATH, TRAPS_PATH, HEADS_PATH = DOCS / "bugs.md", DOCS / "traps.md", DOCS / "heads.md"


def bugs_page():
    """Returns the text of the page of mistakes."""
    return _page_of_bugs(BUGS_INTRODUCTION, bugs.SECTIONS)


def traps_page():
    """Returns the text of the page of traps."""
    return _page_of_bugs(TRAPS_INTRODUCTION, traps.SECTIONS)


def _page_of_bugs(introduction, sections):
    kinds = [bug.kind for section in sections for bug in section.rows]
    counts = {"number": kinds.count(WRONG), "error": kinds.count(ERROR), "note": kinds.count(NOTE)}
    parts = [introduction.format(**counts)]
    for section in sections:
        notes = [
            f"* {': '.join(filter(None, (bug.name, bug.place)))}: {bug.what} {bug.reason}"
            for bug in section.rows
            if bug.kind == NOTE
        ]
        parts += [f"## {section.title}", section.origin, *(_bug(bug) for bug in section.rows if bug.kind != NOTE)]
        if notes:
            parts += ["Further remarks, without code:", "\n".join(notes)]
    return "\n\n".join(parts) + "\n"


def heads_page():
    """Returns the text of the page of trained heads."""
    parts = [HEADS_INTRODUCTION]
    for row in formats.FORMATS.values():
        facts = [
            f"* Required arguments of `load`, besides file and format: {given(row).replace('nothing', 'none').replace('; by default', '. Default:')}.",
            *([f"* Usual prefix in a file: `{row.usual}`"] if row.usual else []),
            f"* Module: `{row.module}`",
            f"* Largest difference from the original's results, relative to the largest of them: {row.verified}.",
            *([f"* {row.notes}"] if row.notes else []),
            f"* Source: {row.source}",
        ]
        parts += [
            f"## {row.name}\n\nLoads {row.title}.",
            f"```text\n{load_of(row)}\n```",
            "\n".join(facts),
        ]
    return "\n\n".join(parts) + "\n"


def _bug(bug):
    """Returns the text for a mistake: a sentence, the smallest input with attnpool's call, both results."""
    was = bug.was if bug.kind == ERROR else _flat(bug.was)
    now = "an error" if bug.refuses else _flat(bug.now)
    code = "\n".join([*bug.given, bug.call])
    heading = ": ".join(filter(None, (bug.name, bug.place)))
    return f"### {heading}\n\n{bug.what}\n\n```python\n{code}\n```\n\n* Theirs: {was}\n* Right: {now}"


def _flat(printed):
    """Returns printed numbers as a vector; a single number stays as it is."""
    numbers = printed.split()
    return numbers[0] if len(numbers) == 1 else f"({', '.join(numbers)})"


if __name__ == "__main__":
    BUGS_PATH.write_text(bugs_page())
    TRAPS_PATH.write_text(traps_page())
    HEADS_PATH.write_text(heads_page())
