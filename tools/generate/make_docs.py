"""Generator of the pages ``bugs`` and ``traps`` from tables."""

from pathlib import Path

import bugs
import traps
from bugs.table import ERROR, NOTE, WRONG
from introductions import BUGS_INTRODUCTION, TRAPS_INTRODUCTION

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
BUGS_PATH, TRAPS_PATH = DOCS / "bugs.md", DOCS / "traps.md"


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
