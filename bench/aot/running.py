"""Child processes that compile: each program has a time limit, and what takes down its process costs nobody else."""

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue

from bench.aot import devices

ROOT = Path(__file__).resolve().parent.parent.parent
LIMIT = 60.0
"""Seconds that a program may take to lower and compile."""

START = 120.0
"""Seconds that a process may take beside, until it answers for the first time: it imports JAX and reads the device's description."""

MARK = "\x1e"
"""What an answer starts with: other lines are what the compilers print."""


class Child:
    """A process that compiles one program after another; it is started when it is needed."""

    def __init__(self, limit=LIMIT, command=None):
        self.limit = limit
        self.command = command or [sys.executable, "-m", "bench.aot.compiling"]
        self.process, self.fresh = None, True

    def ask(self, question):
        """The answer to a question, or {"error": ...} where the process took too long or died."""
        if self.process is None:
            environment = os.environ | devices.ENVIRONMENT | {"PYTHONPATH": str(ROOT)}
            self.errors = tempfile.TemporaryFile()  # noqa: SIM115  open as long as the process
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self.errors}
            self.process = subprocess.Popen(self.command, cwd=ROOT, env=environment, **pipes)
            self.fresh, self.buffer = True, b""
        deadline = time.monotonic() + self.limit + (START if self.fresh else 0)
        try:
            self.process.stdin.write(json.dumps(question).encode() + b"\n")
            self.process.stdin.flush()
            answer = self._answer(deadline)
        except BrokenPipeError:
            answer = None
        if answer is None:
            late = time.monotonic() >= deadline
            status, said = self.stop()
            return {"error": f"not in {self.limit:g} s" if late else f"the process ended with {status}: {said}"}
        self.fresh = False
        return answer

    def _answer(self, deadline):
        """The next answer, or None."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while True:
                line, separator, rest = self.buffer.partition(b"\n")
                if separator:
                    self.buffer = rest
                    if line.decode(errors="replace").startswith(MARK):
                        return json.loads(line.decode()[len(MARK) :])
                    continue
                if not selector.select(max(0, deadline - time.monotonic())):
                    return None
                more = os.read(self.process.stdout.fileno(), 65536)
                if not more:
                    return None
                self.buffer += more

    def stop(self):
        """Ends the process; returns its status and the last line of what it wrote as errors."""
        if self.process is None:
            return None
        self.process.kill()
        status = self.process.wait()
        self.errors.seek(0)
        *_, said = ["", *filter(None, self.errors.read().decode(errors="replace").splitlines())]
        for file in (self.process.stdin, self.process.stdout, self.errors):
            file.close()
        self.process = None
        return status, said[:200]


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
        child = Child(limit, command)
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
