"""Command ``python -m bench.aot``: compiles every function and its plain formula, and holds their costs against the rule.

It prints the programs that exceed their formula the most, and those that break the rule of :mod:`bench.aot.rule`. The exit
status is 1 if there is one, and 2 if nothing can be compiled here. ``build/aot.json`` keeps the results: a program that
did not change is not compiled again.
"""

import argparse
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from bench.aot import devices, rule
from bench.aot.compiling import DEFAULT, DTYPES, measure, programs
from bench.page import ROOT
from bench.programs import DIRECTIONS
from bench.worker import Worker


def arguments(given=None):
    """Returns the command's arguments."""
    parser = argparse.ArgumentParser(prog="python -m bench.aot", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="one function, or one call such as 'attention_pooling, dense'")
    parser.add_argument("--device", choices=devices.DEVICES)
    parser.add_argument("--direction", choices=DIRECTIONS)
    parser.add_argument("--dtype", choices=DTYPES)
    parser.add_argument("--workers", type=int, default=2, help="processes that compile at once")
    parser.add_argument("--limit", type=float, default=300, help="seconds for each program")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "aot.json", help="the JSON to read and write")
    parser.add_argument("--text", type=Path, help="a folder for the texts of the compiled programs")
    return parser.parse_args(given)


def main(given=None):
    """Compiles, writes and prints; returns the exit status."""
    asked = arguments(given)
    if reason := devices.missing():
        print(reason)
        return 2
    known = json.loads(asked.output.read_text(encoding="utf-8")) if asked.output.exists() else {}
    kinds = [(asked.direction or direction, asked.dtype or dtype) for direction, dtype in DEFAULT]
    found = programs(asked.only, [asked.device] if asked.device else devices.DEVICES, list(dict.fromkeys(kinds)))
    for folder in (asked.output.parent, asked.text):
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    for count, (program, result) in enumerate(compiled(found, known, asked), 1):
        known[program.key] = result
        lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(known[key])}" for key in sorted(known))
        asked.output.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
        print(f"{count}/{len(found)} {program.key}: {summary(result)} ({time.monotonic() - begun:.0f} s)", flush=True)
    text, broken = rule.report(found, known)
    print(text)
    return int(broken)


def compiled(found, known, asked):
    """Yields (program, result) in the order of completion; each worker has a process of its own."""
    waiting, results = SimpleQueue(), SimpleQueue()
    for program in found:
        waiting.put(program)

    def work():
        worker = Worker(measure, asked.limit, devices.ENVIRONMENT)
        while not waiting.empty():
            program = waiting.get()
            old = None if asked.text else known.get(program.key)
            results.put((program, worker.ask(program, old, asked.text)))
        worker.stop()

    count = max(1, min(asked.workers, len(found)))
    with ThreadPoolExecutor(count) as pool:
        running = [pool.submit(work) for _ in range(count)]
        for _ in found:
            yield results.get()
        for each in running:
            each.result()


def summary(result):
    """Returns one line of text about a result."""
    if "bytes" not in result:
        return result.get("error") or result["no"]
    parts = [f"{result['bytes'] / 1e6:.1f} MB", f"temporaries {result['temporaries'] / 1e6:.1f} MB"]
    parts += [f"{result['cycles'] / 1e6:.1f} M cycles"] if result["cycles"] else []
    parts += [f"{(result['elements'] + result['products']) / 1e9:.2f} G operations"]
    return ", ".join([*parts, *(f"{count} {name}" for name, count in result["counts"].items())])


if __name__ == "__main__":
    sys.exit(main())
