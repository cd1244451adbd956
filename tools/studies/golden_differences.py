"""Command that prints how far the oracle is from the original of each golden file, as a Markdown table.

Both compute in float64. The difference is relative to the original's largest output. WeSpeaker with its context is
compared with the oracle's formula in which the standard deviation is WeSpeaker's. The difference from the oracle itself
follows in the same cell, in parentheses.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tests"))

from formats.goldens import GOLDENS, computed, difference


def rows():
    """Yields rows of the table: format, file, source, difference for all tokens and under the mask, way of masking.

    If the oracle itself differs by another number, it follows in parentheses.
    """
    for golden in GOLDENS:
        head = golden.head(np.float64)
        found = [f"{difference(golden, mask, output):.1e}" for mask, output in golden.pairs()]
        plain = [
            f"{np.max(np.abs(computed(head, golden.wide(), mask) - output)) / np.max(np.abs(output)):.1e}"
            for mask, output in golden.pairs()
        ]
        shown = [one if one == other else f"{one} ({other})" for one, other in zip(found, plain, strict=True)]
        masked = shown[1:] or ["-"]
        yield golden.format.name, golden.name, golden.about["source"], shown[0], *masked, golden.about["masked"] or "-"


def main():
    """Prints the table."""
    print("| format | file | original | whole | masked | masked by |", "|---|---|---|---|---|---|", sep="\n")
    for row in rows():
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
