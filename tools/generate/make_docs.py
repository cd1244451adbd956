"""Generator of the page ``heads`` from the table of formats."""

from pathlib import Path

from introductions import HEADS_INTRODUCTION

from attnpool_ref import formats
from attnpool_ref.cli.heads import given, load_of

HEADS_PATH = Path(__file__).resolve().parent.parent.parent / "docs" / "heads.md"


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


if __name__ == "__main__":
    HEADS_PATH.write_text(heads_page())
