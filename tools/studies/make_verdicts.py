"""Command that judges the implementations of ``tools/studies/verdicts`` and writes ``docs/verdicts.md``.

``--only WORD`` judges only the entries whose names contain WORD, and prints their sections instead of writing the page.
"""

import argparse
import datetime
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import verdicts
from verdicts import judging, page

PATH = Path(__file__).resolve().parent.parent.parent / "docs" / "verdicts.md"
PROCESSES = 2


def judge(name):
    """Returns the verdict on the entry of this name; runs in a child process, because some frameworks conflict."""
    return judging.judged(verdicts.BY_NAME[name])


def main():
    """Judges the entries, and prints the sections or writes the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--only",
        default="",
        metavar="WORD",
        help="judge only the entries whose names contain WORD, and print their sections; the page is not written",
    )
    word = parser.parse_args().only
    entries = [entry for entry in verdicts.ENTRIES if word in entry.name]
    if not entries:
        sys.exit(f"no implementation has {word!r} in its name: {', '.join(verdicts.BY_NAME)}")
    pairs = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, mp_context=context) as pool:
        for entry, verdict in zip(entries, pool.map(judge, [entry.name for entry in entries]), strict=True):
            print(f"{verdict.seconds:6.1f} s  {entry.name}", file=sys.stderr)
            stale = judging.needless(entry, verdict)
            if stale:
                sys.exit(f"{entry.name} keeps what its entry calls another definition: {', '.join(stale)}")
            pairs.append((entry, verdict))
    if word:
        print(page.table(pairs), *(page.section(entry, verdict) for entry, verdict in pairs), sep="\n\n")
        return
    PATH.write_text(page.page(pairs, datetime.date.today().isoformat()))


if __name__ == "__main__":
    main()
