"""Command ``python -m bench.aot``: compiles, writes bench/aot.json and both pages, and prints missed goals."""

import argparse
import json
import sys
from pathlib import Path

from bench.aot import calls, devices, goals, page
from bench.aot.running import LIMIT
from bench.child import ROOT

RESULTS, DOCUMENT = ROOT / "bench" / "aot.json", ROOT / "docs" / "performance.md"


def arguments(given=None):
    """Returns the command's arguments."""
    parser = argparse.ArgumentParser(prog="python -m bench.aot", description=__doc__.split("\n")[0])
    parser.add_argument("--all", action="store_true", help="every device, direction and dtype")
    parser.add_argument("--only", default="", help="one function, or one call such as 'attention_pooling, dense'")
    parser.add_argument("--device", default="", choices=["", *devices.DEVICES])
    parser.add_argument("--direction", default="", choices=["", calls.FORWARD, calls.STEP])
    parser.add_argument("--dtype", default="", choices=["", *calls.DTYPES])
    parser.add_argument("--alone", action="store_true", help="without plain JAX beside")
    parser.add_argument("--workers", type=int, default=2, help="processes that compile at once")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for each program")
    parser.add_argument(
        "--output", type=Path, help="a JSON to read and write instead of bench/aot.json; no page is written"
    )
    parser.add_argument(
        "--text", type=Path, help="a folder for the texts of the compiled programs; known results are not used"
    )
    parser.add_argument("--page", action="store_true", help="only write the page again")
    return parser.parse_args(given)


def main(given=None):
    """Compiles, writes and compares with goals; returns the exit status: 1 for a missed goal, 2 if it cannot compile."""
    asked = arguments(given)
    file = asked.output or RESULTS
    known = json.loads(file.read_text())["programs"] if file.exists() else {}
    names = list(known)
    if not asked.page:
        if reason := devices.missing():
            print(reason)
            return 2
        names = compile_all(asked, file, known)
    if asked.output is None:
        page.write(json.loads(file.read_text()) if file.exists() else None, DOCUMENT)
        print(f"wrote {DOCUMENT}")
    short = goals.missed({key: known[key] for key in names}, known)
    print("\n".join(["Misses its goal:", *short]) if short else "No goal is missed.")
    return int(bool(short))


def compile_all(asked, file, known):
    """Compiles the requested programs, writing the JSON file after each; returns their keys."""
    from bench.aot import programs, running

    if asked.text:
        asked.text.mkdir(parents=True, exist_ok=True)
    kinds = {key: getattr(asked, key) for key in ("only", "device", "direction", "dtype")}
    found = programs.programs(asked.all, **kinds, beside=not asked.alone)
    count = 0

    def done(program, result, seconds):
        nonlocal count
        count += 1
        known[program.key] = result
        write(file, known)
        print(f"{count}/{len(found)} {program.key}: {page.summary(result)} ({seconds:.1f} s)", flush=True)

    running.run(found, dict(known), done, asked.workers, asked.limit, asked.text)
    return [program.key for program in found]


def write(file, known):
    """Writes the JSON file, sorted, so that it changes only if a program does."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{json.dumps(key)}: {json.dumps(known[key], sort_keys=True)}" for key in sorted(known)]
    text = ",\n".join(lines)
    file.write_text(f'{{"versions": {json.dumps(devices.PINNED, sort_keys=True)},\n"programs": {{\n{text}\n}}}}\n')


if __name__ == "__main__":
    sys.exit(main())
