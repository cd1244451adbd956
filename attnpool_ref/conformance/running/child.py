"""Control of one child process, which imports an implementation and judges functions until it is killed."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
import types
from dataclasses import dataclass
from typing import Any

from attnpool_ref.conformance.running import verdict
from attnpool_ref.conformance.running.worker import work

SILENCE_LIMIT = 10.0
"""Seconds without a message, beyond the time limit of a call, after which a process counts as stuck."""

GRACE = 0.7
"""Seconds that a child process has to report after Ctrl-C, and to end after it has closed its connection."""

POLL = 0.5
"""Seconds between two checks that a child process still runs: a process that it forked may keep its connection open."""

_STARTING = threading.Lock()


@dataclass(frozen=True)
class Properties:
    """Properties of an implementation that its process reports after the import.

    Attributes:
      rows: names of the functions to judge; empty for all of them.
      has: names of the functions that the implementation has.
      calls: the calling convention, from ``Candidate.says``.
      on_accelerator: whether JAX computes on an accelerator, which only one process can use. False if the implementation
        has one function, which one process judges anyway: the accelerator is then not started here.
    """

    rows: tuple[str, ...]
    has: tuple[str, ...]
    calls: dict[str, Any]
    on_accelerator: bool


class Child:
    """A process that runs :func:`~attnpool_ref.conformance.running.worker.work`.

    Attributes:
      properties: the :class:`Properties` of the implementation, after its import.
      began: the time at which the process was started.
      spent: whether a call that takes too long may still run in the process.
      ended: the end of the process as a verb phrase, such as "ended with status 0", or "".
      calls: for each function the dtype and the title of the case of the last call that began.
    """

    def __init__(self, setup):
        spawn = multiprocessing.get_context("spawn")  # a fork of a process with threads, as JAX has, may hang
        self._connection, theirs = spawn.Pipe()
        self._process: Any = spawn.Process(target=work, args=(theirs, setup), name="attnpool judges")
        self._sending = threading.Lock()
        self.properties: Properties | None = None
        self.began, self.spent, self.ended, self.calls = time.monotonic(), False, "", {}
        with _STARTING, _without_ctrl_c(), _without_main():
            self._process.start()
        theirs.close()

    def wait_for_import(self, limit):
        """Waits up to ``limit`` seconds for the import, and sets ``properties`` or ``ended``.

        Returns the import's exception, or None.
        """
        match self._receive(limit, f"took longer than {limit:g} s for the import"):
            case "ready", *properties:
                self.properties = Properties(*properties)
            case "failed", error:
                self.ended = "cannot import the candidate once more"
                return error
        return None

    def judge(self, rows, scope, steps):
        """Lets the process judge functions; returns those without a verdict, because the process ended or is ``spent``.

        ``rows`` are a ``RowJudge`` for each function, which get the reports; ``steps`` counts the progress.

        Raises:
          Exception: an error that is not the implementation's, such as the name of an argument that the function does
            not have.
        """
        running = {judged.row.name: judged for judged in rows}
        self.send((tuple(running), scope))
        while not self.ended:
            match self._receive(scope.time_limit + SILENCE_LIMIT, f"gave no answer within {scope.time_limit:g} s"):
                case ("over",):
                    break
                case "failed", error:
                    raise error
                case "call", name, dtype, title:
                    self.calls[name] = dtype, title
                case "step", label:
                    steps.take(label)
                case "row", name, report, device, versions:
                    judged = running.pop(name)
                    judged.report, judged.adapter = report, _adapter(device, versions)
                    self.spent |= bool(report.ended)
                    steps.finish(name)
        return list(running.values())

    def blame(self, judged):
        """Reports the end of the process as the failure of a function, given by its ``RowJudge``."""
        name, (dtype, title) = judged.row.name, self.calls.get(judged.row.name, ("", ""))
        code = f"# attnpool check ... --only {name} --jobs 1 dies as well"
        verdict.unanswered(judged.report, dtype, title, f"the process {self.ended}", code)

    def send(self, message):
        """Sends a message, from any thread."""
        with self._sending, contextlib.suppress(OSError):  # a dead process is noticed by _receive
            self._connection.send(message)

    def _receive(self, seconds, late):
        """Returns the next message, or sets ``ended``; to ``late`` if no message comes within ``seconds``."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            alive = self._process.is_alive()  # before reading, because its last messages may not have been read yet
            try:
                if self._connection.poll(POLL):
                    return self._connection.recv()
            except Exception:  # the process has closed its connection, or written invalid data to it
                self._process.join(GRACE)
                alive = False
            if not alive:
                late = _cause(self._process.exitcode)
                break
        self.ended = late
        return None

    def kill(self):
        """Kills the process and, except on Windows, those that it has started; may be called from any thread."""
        self._process.kill()
        self._process.join()
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):  # no process of its session is left
                os.killpg(self._process.pid, signal.SIGKILL)


def _adapter(device, versions):
    """Returns a stand-in for the adapter of another process, with the methods that a report needs; or None."""
    return None if device is None else types.SimpleNamespace(device=lambda: device, versions=lambda: versions)


@contextlib.contextmanager
def _without_ctrl_c():
    """Context that blocks SIGINT, which a terminal sends to all processes, in a process that is started meanwhile."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _without_main():
    """Context without ``__main__``: a process that is started meanwhile would otherwise run the script again."""
    main, sys.modules["__main__"] = sys.modules["__main__"], types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _cause(code):
    """Describes the end of a process, from its exit status."""
    if code is None:
        return "closed its connection to the judge"
    if code >= 0:
        return f"ended with status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed by {name}" + (", as where memory is short" if name == "SIGKILL" else "")
