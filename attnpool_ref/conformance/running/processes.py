"""An implementation in child processes, which alone import it: judged there, whatever it does to its process."""

import contextlib
import multiprocessing
import os
import signal
import sys
import time
import types
from dataclasses import dataclass, field, replace
from multiprocessing import connection as connections
from typing import Any

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.running import verdict
from attnpool_ref.conformance.running.threads import STOPPED, at_once
from attnpool_ref.conformance.running.worker import work

WORKS = 300.0
"""Seconds after which a process makes way for a new one: frameworks let go of no program's memory entirely."""

STOPS = 0.7
"""Seconds that processes have to report when somebody stops the judging."""

IMPORTS = 60.0
"""Seconds that the import of an implementation may take."""

SILENT = 10.0
"""Seconds beyond the time limit of a call without a sign of life, as of a call that keeps Python's lock."""

LOOKS = 0.5
"""Seconds between two looks at processes that say nothing."""


@dataclass(frozen=True)
class About:
    """Properties of an implementation that its process reports after the import.

    Attributes:
      rows: names of the rows that it was said to be; empty for all of them.
      has: names of the rows that it has.
      calls: :meth:`attnpool_ref.conformance.Candidate.says`.
      on_accelerator: whether JAX computes on an accelerator, which has one owner.
    """

    rows: tuple[str, ...]
    has: tuple[str, ...]
    calls: dict[str, Any]
    on_accelerator: bool


class Elsewhere:
    """An implementation in child processes; takes the place of a :class:`Candidate` whose target is here.

    A process that dies is the finding of the row that it judged. Where it judged several at once, each of them is
    judged again by itself.
    """

    def __init__(self, sent, name=""):
        """``sent`` is what each process is sent (:class:`~attnpool_ref.conformance.running.worker.Sent`), ``name`` for messages."""
        self.sent, self.name = sent, name
        self.workers, self.waiting, self.jobs, self.at_once = [], [], 1, 1
        self.order: Any = None
        self.steps: Any = None
        self._about: About | None = None
        self._counted = {}

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Ends all processes."""
        while self.workers:
            self.workers.pop().end()

    # In the place of a Candidate

    @property
    def about(self):
        """The :class:`About` of the implementation; the first process starts and imports it.

        Raises:
          Exception: that of the import, or a ValueError where it ends the process or takes too long.
        """
        if self._about is None and not self.workers:
            self._start()
        try:
            while self._about is None:
                self._listen()
        except BaseException:
            self.close()
            raise
        return self._about

    def found(self, names):
        """For each name of a row whether the implementation has it, as something or None."""
        return {name: self if name in self.about.has else None for name in names}

    def title(self):
        """The name of the implementation."""
        return self.name

    def says(self):
        """Returns the calling convention of the implementation."""
        return self.about.calls

    # Judging

    def judge(self, rows, order, jobs, steps):
        """Judges rows, in up to ``jobs`` processes; returns whether somebody has interrupted it.

        Raises:
          Exception: an error that is not the implementation's, such as an argument that no row has.
        """
        # The most ways to call first, as far as anybody knows: no process is to be left alone with a long row.
        self.waiting = sorted(rows, key=_ways, reverse=True) if jobs > 1 else list(rows)
        self.order, self.steps, self.jobs = order, steps, min(jobs, len(rows))
        self.at_once = at_once(order.scope) if jobs == 1 else 1
        self._counted = {}
        try:
            while self.waiting or any(worker.rows for worker in self.workers):
                self._engage()
                self._listen()
        except KeyboardInterrupt:
            self._stop()
            self.close()
            return True
        except BaseException:
            self.close()
            raise
        return False

    def _start(self):
        sent = self.sent if self._about is None else replace(self.sent, first=False)
        self.workers.append(_Worker(*_started(sent)))

    def _engage(self):
        """Gives rows to each process that has room, and ends each that has worked long enough."""
        for worker in [worker for worker in self.workers if worker.spent and not worker.rows]:
            self.workers.remove(worker)
            worker.end()
        while self.waiting and len(self.workers) < self.jobs:
            self._start()
        for worker in self.workers:
            while self.waiting and not worker.spent and len(worker.rows) < self.at_once:
                worker.begin(self.waiting.pop(0), self.order)

    def _listen(self, seconds=LOOKS):
        """Waits until a process says something, ends, or has been silent for too long."""
        connections.wait([source for w in self.workers for source in (w.connection, w.process.sentinel)], seconds)
        for worker in list(self.workers):
            for message in worker.read():
                self._hear(worker, *message)
            worker.ended = worker.ended or self._overdue(worker)
            if worker.ended:
                self.workers.remove(worker)
                worker.end()
                self._bury(worker)

    def _overdue(self, worker):
        silent = time.monotonic() - worker.heard
        if not worker.ready:
            limit = max(IMPORTS, self.order.limit if self.order else 0)
            return f"took longer than {limit:g} s for the import" if silent > limit else ""
        if worker.rows and silent > self.order.limit + SILENT:
            return f"gave no answer within {self.order.limit:g} s"
        return ""

    def _hear(self, worker, kind, *data):
        if kind == "failed" and (worker.ready or self._about is None):
            raise data[0]
        if kind == "failed":
            worker.ended = "cannot import the candidate once more"
        elif kind == "ready":
            worker.ready = True
            self._about = self._about or About(*data)
        elif kind == "call":
            worker.rows[data[0]].call = data[1:]
        elif kind == "step":
            running = worker.rows[data[0]]
            running.steps += 1
            if running.steps > self._counted.get(data[0], 0):
                self._count(data[0], 1, data[1])
        elif kind == "row":
            name, report, device, versions = data
            judged = worker.rows.pop(name).judged
            judged.report = report
            judged.adapter = None if device is None else _Computed(device, versions)
            worker.spent |= bool(report.ended) or time.monotonic() - worker.began > WORKS  # a call may run on there
            self._done(judged)

    def _count(self, name, count, label):
        self._counted[name] = self._counted.get(name, 0) + count
        self.steps.take(label, count)

    def _done(self, judged):
        """Leaves a row; its steps that were never taken count as done."""
        name = judged.row.name
        left = len(judged.scope.dtypes) - self._counted.get(name, 0)
        if left > 0:
            self._count(name, left, name)

    def _bury(self, worker):
        """Draws the conclusion from the end of a process for the rows that it judged.

        Raises:
          ValueError: it is the first one, and its import is what ended it.
        """
        if self._about is None:
            raise ValueError(f"{self.name} cannot be imported: its process {worker.ended}")
        rows = list(worker.rows.values())
        if len(rows) > 1:  # one of them has ended it
            self.at_once = 1
            self.waiting[:0] = [running.judged for running in rows]
            return
        for running in rows:
            dtype, title = running.call
            code = f"# attnpool check ... --only {running.judged.row.name} --jobs 1 dies as well"
            verdict.unanswered(running.judged.report, dtype, title, f"the process {worker.ended}", code)
            self._done(running.judged)

    def _stop(self):
        """Asks all processes for what they have found, and waits a moment for it."""
        for worker in self.workers:
            with contextlib.suppress(OSError):
                worker.connection.send(None)
        until = time.monotonic() + STOPS
        while any(worker.rows for worker in self.workers) and (left := until - time.monotonic()) > 0:
            self._listen(left)
        for worker in self.workers:
            for running in worker.rows.values():
                running.judged.report.partial.append(STOPPED)
        for judged in self.waiting:
            judged.report.partial.append(f"{STOPPED} before it began")


def _ways(judged):
    """Returns the number of ways to call a row."""
    return len(list(drawing.configurations(judged.row)))


@dataclass(eq=False)
class _Running:
    """A row that a process judges, the (dtype, title) of the call that it has last begun, and the dtypes that are done."""

    judged: Any
    call: tuple[str, str] = ("", "")
    steps: int = 0


@dataclass(eq=False)
class _Worker:
    """A process, and what is known of it.

    Attributes:
      process: the process.
      connection: the end of the pipe that is held here.
      ready: whether it has imported the implementation.
      rows: the rows that it judges, by name.
      began: when it was started.
      heard: when it last said something, or was given a row.
      spent: whether it gets no other row.
      ended: how it has ended, or "".
    """

    process: Any
    connection: Any
    ready: bool = False
    rows: dict[str, _Running] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    heard: float = field(default_factory=time.monotonic)
    spent: bool = False
    ended: str = ""

    def begin(self, judged, order):
        """Gives it a row."""
        self.rows[judged.row.name] = _Running(judged)
        if self.ready:
            self.heard = time.monotonic()
        with contextlib.suppress(OSError):  # it is dead, which is noticed where it is listened to
            self.connection.send((judged.row.name, order))

    def read(self):
        """Returns the messages that have come; says in ``ended`` whether there will be no more."""
        dead, found = not self.process.is_alive(), []
        try:
            while self.connection.poll():
                found.append(self.connection.recv())
        except Exception:  # the end of what it has said, or no message
            self.process.join(STOPS)
            dead = True
        if found:
            self.heard = time.monotonic()
        if dead and not self.ended:
            self.ended = _cause(self.process.exitcode)
        return found

    def end(self):
        """Ends the process and all that it has started, whatever they do."""
        self.connection.close()
        self.process.kill()
        self.process.join()
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):  # it has started nothing that is left
                os.killpg(self.process.pid, signal.SIGKILL)


@dataclass(frozen=True)
class _Computed:
    """The adapter of another process, as far as a report needs it."""

    where: str
    found: dict[str, str]

    def device(self):
        """Returns the name of the device that computes."""
        return self.where

    def versions(self):
        """Versions that matter for the numbers."""
        return self.found


def _started(sent):
    """Starts a process; returns (process, connection). It never hears Ctrl-C, since a terminal sends it to all."""
    spawning = multiprocessing.get_context("spawn")  # a fork of a process with threads, as JAX has, may hang
    ours, theirs = spawning.Pipe()
    process = spawning.Process(target=work, args=(theirs, sent), name="attnpool judges")
    masking = hasattr(signal, "pthread_sigmask")  # a signal that is blocked here is so there, from its first moment on
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if masking else None
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")  # else the process would run the asking script once more
    try:
        process.start()
    finally:
        sys.modules["__main__"] = main
        if before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    theirs.close()
    return process, ours


def _cause(code):
    """Returns the end of a process in words, from its exit status."""
    if code is None:
        return "closed its connection to the judge"
    if code >= 0:
        return f"ended with status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed by {name}" + (", as where memory is short" if name == "SIGKILL" else "")
