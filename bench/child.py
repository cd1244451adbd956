"""Child processes that answer questions within time limits, and are started again after a time-out or crash."""

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
"""Additional seconds for the first answer: the process imports JAX and finds or describes a device."""

MARK = "\x1e"
"""First character of an answer, a line of JSON; libraries print other lines."""


class Child:
    """A process that answers one question after another; it starts with the first question.

    Attributes:
      command: the command.
      limit: seconds for an answer.
      environment: environment variables, in addition to those of this process.
      start: additional seconds for the first answer of a process.
      process: the running process, or None.
    """

    def __init__(self, command, limit, environment=None, start=None):
        self.command, self.limit = command, limit
        self.environment, self.start = environment or {}, START if start is None else start
        self.process, self.fresh = None, True

    def ask(self, question, end=math.inf):
        """Returns the answer, or {"error": ...} if the process died or took too long (``end`` is the latest time)."""
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
        """Returns the next answer, or None."""
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
        """Ends the process; returns its status and the last line of its standard error."""
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
