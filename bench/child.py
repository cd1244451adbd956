"""Child processes that answer questions within time limits; one that takes too long or dies is replaced by the next question."""

import json
import math
import os
import selectors
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

START = 120.0
"""Seconds that a process may take beside, until it answers for the first time: it imports JAX and finds or describes a device."""

MARK = "\x1e"
"""The first character of an answer, a line of JSON: other lines are what libraries print."""


class Child:
    """A process that answers one question after another; it is started when it is needed.

    Attributes:
      command: what is run.
      limit: seconds that an answer may take.
      environment: variables beside those of this process.
      start: seconds that the first answer of a process may take beside.
      process: the running process, or None.
    """

    def __init__(self, command, limit, environment=None, start=None):
        self.command, self.limit = command, limit
        self.environment, self.start = environment or {}, START if start is None else start
        self.process, self.fresh = None, True

    def ask(self, question, end=math.inf):
        """The answer to a question, or {"error": ...} where the process took too long, until ``end`` at most, or died."""
        if self.process is None:
            path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
            environment = os.environ | self.environment | {"PYTHONPATH": path}
            self.errors = tempfile.TemporaryFile()  # noqa: SIM115  open as long as the process
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self.errors}
            self.process = subprocess.Popen(self.command, cwd=ROOT, env=environment, **pipes)
            self.fresh, self.buffer = True, b""
        begun = time.monotonic()
        deadline = min(end, begun + self.limit + (self.start if self.fresh else 0))
        try:
            self.process.stdin.write(json.dumps(question).encode() + b"\n")
            self.process.stdin.flush()
            answer = self._answer(deadline)
        except BrokenPipeError:
            answer = None
        if answer is None:
            late = time.monotonic() >= deadline
            status, said = self.stop()
            limit = min(self.limit, deadline - begun)
            return {"error": f"not in {limit:.3g} s" if late else f"the process ended with {status}: {said}"}
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
