"""Judges rows in processes of their own: several at a time, whatever a candidate does to its process."""

import contextlib
import multiprocessing
import signal
import time
from dataclasses import dataclass
from multiprocessing import connection as connections
from typing import Any

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance import verdict
from attnpool_ref.conformance.worker import work

WORKS = 300.0
"""Seconds after which a process makes way for a new one: frameworks let go of no program's memory entirely."""

STOPS = 0.7
"""Seconds that processes have to say what they have found when somebody stops the judging."""


class Processes:
    """Judges rows, each in one of several processes, where a process that dies is the finding of its row."""

    def __init__(self, rows, jobs, sent, steps):
        """``sent`` is what each process is told (:class:`~attnpool_ref.conformance.worker.Sent`)."""
        # The most ways to call first, as far as anybody knows: no process is to be left alone with a long row.
        self.waiting = sorted(rows, key=_ways, reverse=True)
        self.jobs, self.sent, self.steps, self.workers = jobs, sent, steps, []

    def run(self):
        """Judges all rows; whether somebody has interrupted it.

        Raises:
          Exception: what is no fault of the candidate's, such as an argument that no row has.
        """
        try:
            while self.waiting or any(worker.judged for worker in self.workers):
                self._engage()
                self._listen()
        except KeyboardInterrupt:
            self._stop()
            return True
        finally:
            for worker in self.workers:
                worker.end()
        return False

    def _engage(self):
        """Gives each process a row that has none, and each that has worked long enough its rest."""
        for worker in [worker for worker in self.workers if worker.spent]:
            self.workers.remove(worker)
            worker.end()
        while self.waiting and len(self.workers) < self.jobs:
            self.workers.append(_Worker(*_started(self.sent)))
        for worker in self.workers:
            if self.waiting and worker.judged is None:
                worker.begin(self.waiting.pop(0))

    def _listen(self, seconds=None):
        """Waits until a process says something, or ends."""
        speaking = {source: w for w in self.workers for source in (w.connection, w.process.sentinel)}
        for worker in dict.fromkeys(speaking[source] for source in connections.wait(list(speaking), seconds)):
            alive = worker.process.is_alive()
            try:
                while worker.connection.poll():
                    self._hear(worker, *worker.connection.recv())
            except (EOFError, OSError):
                alive = False
            if not alive:
                self.workers.remove(worker)
                self._bury(worker)

    def _hear(self, worker, kind, *what):
        if kind == "failed":
            raise what[0]
        if kind == "ready":
            worker.ready = True
        elif kind == "call":
            worker.call = what
        elif kind == "step":
            worker.steps += 1
            self.steps.take(*what)
        elif kind == "row":
            report, device, versions = what
            worker.judged.report = report
            worker.judged.adapter = None if device is None else _Elsewhere(device, versions)
            worker.spent = bool(report.ended) or time.monotonic() - worker.began > WORKS  # a call may run on there
            self._done(worker)

    def _done(self, worker):
        """Leaves a row; its steps that were never taken count as done."""
        judged, worker.judged = worker.judged, None
        left = len(judged.scope.dtypes) - worker.steps
        if left > 0:
            self.steps.take(judged.row.name, left)

    def _bury(self, worker):
        """What a process's end says of the row that it judged.

        Raises:
          RuntimeError: it had not begun to judge.
        """
        worker.end()
        how = _cause(worker.process.exitcode)
        if not worker.ready:
            raise RuntimeError(
                f"a process that was to judge {how} before it began; a script that judges needs "
                "`if __name__ == '__main__':`"
            )
        if worker.judged is not None:
            row, (dtype, title) = worker.judged, worker.call
            code = f"# attnpool check ... --only {row.row.name} --jobs 1 dies as well"
            verdict.unanswered(row.report, dtype, title, f"the process {how}", code)
            self._done(worker)

    def _stop(self):
        """Asks all processes for what they have found, and waits a moment for it."""
        for worker in self.workers:
            with contextlib.suppress(OSError):
                worker.connection.send(None)
        until = time.monotonic() + STOPS
        while any(worker.judged for worker in self.workers) and (left := until - time.monotonic()) > 0:
            self._listen(left)
        for worker in self.workers:
            if worker.judged is not None:
                worker.judged.report.partial.append("stopped by Ctrl-C")
        for judged in self.waiting:
            judged.report.partial.append("stopped by Ctrl-C before it began")


def _ways(judged):
    """How many ways there are to call a row."""
    return len(list(drawing.configurations(judged.row)))


@dataclass(eq=False)
class _Worker:
    """A process, and what is known of it.

    Attributes:
      process: the process.
      connection: the end of the pipe that is held here.
      ready: whether it has the candidate.
      judged: the row that it judges, or None.
      call: (dtype, title) of the call that it has last begun.
      steps: how many dtypes of the row are done.
      began: when it got its first row.
      spent: whether it gets no other row.
    """

    process: Any
    connection: Any
    ready: bool = False
    judged: Any = None
    call: tuple[str, str] = ("", "")
    steps: int = 0
    began: float = 0.0
    spent: bool = False

    def begin(self, judged):
        """Gives it a row."""
        self.judged, self.call, self.steps = judged, ("", ""), 0
        self.began = self.began or time.monotonic()
        with contextlib.suppress(OSError):  # it is dead, which is noticed where it is listened to
            self.connection.send(judged.row.name)

    def end(self):
        """Ends the process, whatever it does."""
        self.connection.close()
        self.process.kill()
        self.process.join()


@dataclass(frozen=True)
class _Elsewhere:
    """What the adapter of another process says."""

    where: str
    found: dict[str, str]

    def device(self):
        """What computes."""
        return self.where

    def versions(self):
        """Versions that matter for the numbers."""
        return self.found


def _started(sent):
    """(process, connection): a process that never hears Ctrl-C, since a terminal sends it to all."""
    spawning = multiprocessing.get_context("spawn")  # a fork of a process with threads, as JAX has, may hang
    ours, theirs = spawning.Pipe()
    process = spawning.Process(target=work, args=(theirs, sent), name="attnpool judges")
    masking = hasattr(signal, "pthread_sigmask")  # a signal that is blocked here is so there, from its first moment on
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if masking else None
    try:
        process.start()
    finally:
        if before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    theirs.close()
    return process, ours


def _cause(code):
    """What an exit status says."""
    if code is None or code >= 0:
        return f"ended with status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed by {name}" + (", as where memory is short" if name == "SIGKILL" else "")
