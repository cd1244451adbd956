"""Judges every kind of mistake on every row that it fits: ``python -m tests.conformance.foreign [most rows of a kind]``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from conformance.foreign.by_default import BY_DEFAULT
from conformance.foreign.judging import failures_of
from conformance.foreign.sizes import KINDS


def main(most=None):
    """Prints a line for each kind, and the rows in which it survives; returns whether there are any."""
    judged = survivors = 0
    for name, kind in (KINDS | BY_DEFAULT).items():
        rows, contract = kind.rows()[:most], name not in BY_DEFAULT
        alive = [row for row in rows if all(f.message.startswith("raises ") for f in failures_of(kind, row, contract))]
        judged, survivors = judged + len(rows), survivors + len(alive)
        print(f"{len(rows) - len(alive)}/{len(rows)} {name}: {', '.join(alive)}".rstrip(": "), flush=True)
    print(f"{judged - survivors} of {judged} rejected")
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
