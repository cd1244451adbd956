"""Child processes that compile: each program has a time limit, and what takes down its process costs nobody else."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue

from bench.aot import devices
from bench.child import Child

LIMIT = 60.0
"""Seconds that a program may take to lower and compile."""


def run(programs, known, done, workers=2, limit=LIMIT, text=None, command=None):
    """Compiles programs and calls ``done(program, result, seconds)`` for each.

    Args:
      programs: what is to be compiled.
      known: results of earlier runs by key.
      done: takes each result, in the order in which they come.
      workers: how many processes compile at once.
      limit: seconds for each program.
      text: a folder into which the texts of compiled programs are written, or None.
      command: what is run in the place of :mod:`bench.aot.compiling`.
    """
    waiting, results = SimpleQueue(), SimpleQueue()
    for program in programs:
        waiting.put(program)

    def work():
        child = Child(command or [sys.executable, "-m", "bench.aot.compiling"], limit, devices.ENVIRONMENT)
        try:
            while not waiting.empty():
                program = waiting.get_nowait()
                question = asdict(program) | {"known": known.get(program.key)}
                if text:
                    question |= {
                        "known": None,
                        "text": str(Path(text).resolve() / f"{program.key.replace(' | ', '_')}.txt".replace(" ", "-")),
                    }
                start = time.monotonic()
                results.put((program, child.ask(question), time.monotonic() - start))
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
            done(program, result, seconds)
