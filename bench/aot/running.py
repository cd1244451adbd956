"""Child processes that compile: each program has a time limit, and a crash does not affect other programs."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue

from bench.aot import devices
from bench.child import Child

LIMIT = 60.0
"""Seconds for lowering and compiling a program."""

TOO_LATE = "not in"
"""Beginning of the error of a program that exceeds the limit."""


def run(programs, known, done, workers=2, limit=LIMIT, text=None, command=None, start=None):
    """Compiles programs and calls ``done(program, result, seconds)`` for each.

    A program that exceeds the limit beside others is compiled once more, alone, after them.

    Args:
      programs: the programs to compile.
      known: results of earlier runs by key.
      done: receives each result, in the order of completion.
      workers: the number of processes that compile at once.
      limit: seconds for each program.
      text: a folder for the texts of the compiled programs, or None.
      command: a command in place of :mod:`bench.aot.compiling`.
      start: additional seconds for the first answer of a process, by default :data:`bench.child.START`.
    """
    waiting, results, late = SimpleQueue(), SimpleQueue(), []
    for program in programs:
        waiting.put(program)

    def started():
        return Child(command or [sys.executable, "-m", "bench.aot.compiling"], limit, devices.ENVIRONMENT, start)

    def ask(child, program):
        question = asdict(program) | {"known": known.get(program.key)}
        if text:
            question |= {
                "known": None,
                "text": str(Path(text).resolve() / f"{program.key.replace(' | ', '_')}.txt".replace(" ", "-")),
            }
        begun = time.monotonic()
        return program, child.ask(question), time.monotonic() - begun

    def work():
        child = started()
        try:
            while not waiting.empty():
                results.put(ask(child, waiting.get_nowait()))
        except BaseException as error:
            results.put((None, error, 0.0))
            raise
        finally:
            child.stop()

    with ThreadPoolExecutor(workers) as pool:
        for _ in range(workers):
            pool.submit(work)
        for _ in programs:
            program, result, seconds = results.get()
            if program is None:
                raise result
            if workers > 1 and result.get("error", "").startswith(TOO_LATE):
                late.append(program)
            else:
                done(program, result, seconds)
    child = started()
    try:
        for program in late:
            done(*ask(child, program))
    finally:
        child.stop()
