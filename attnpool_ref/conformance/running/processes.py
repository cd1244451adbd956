"""Pool of child processes, which import an implementation and judge its functions, with a time limit for each call."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
import types
from concurrent import futures
from dataclasses import replace
from typing import Any

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.running import verdict
from attnpool_ref.conformance.running.worker import Properties, work

MAX_AGE = 300.0
"""Seconds after which a process is replaced: frameworks never free the memory of all compiled functions."""

IMPORT_LIMIT = 60.0
"""Seconds for the import of an implementation, unless the time limit of a call is longer."""

SILENCE_LIMIT = 600.0
"""Seconds between two calls, in which the judge computes, after which a process counts as stuck."""

GRACE = 2.0
"""Seconds that a process has to report after Ctrl-C, and to end after it has closed its connection."""

POLL = 0.5
"""Seconds between two checks that a process still runs: a process that it forked may keep its connection open."""

_STARTING = threading.Lock()


class ProcessPool:
    """An implementation in child processes; in the parent process it takes the place of a :class:`Candidate`.

    For each function, a thread of the parent waits for the messages of a process. If the process dies, or a call takes
    too long, the function fails, and another process judges the next one.
    """

    def __init__(self, setup, name="", time_limit=0.0):
        """Prepares the pool; the first process starts when ``properties`` is read or a function is judged.

        ``setup`` is the :class:`~attnpool_ref.conformance.running.setup.Setup` of each process, and ``name`` that of
        the implementation in messages and reports. ``time_limit`` is that of a call in seconds, which also limits the
        import if it exceeds :data:`IMPORT_LIMIT`.
        """
        self.setup, self.name, self._import_limit = setup, name, max(IMPORT_LIMIT, time_limit)
        self._properties: Properties | None = None
        self._children, self._idle, self._stopped = set(), [], False

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Kills all processes; the threads that wait for their messages then end, too."""
        self._stopped = True
        self._idle.clear()
        for child in list(self._children):  # a copy, because threads remove processes
            child.kill()
        self._children.clear()

    @property
    def properties(self) -> Any:
        """The :class:`Properties` of the implementation; the first process starts and imports it.

        Raises:
          Exception: that of the import, or a ValueError if the import ends the process or takes too long.
        """
        if self._properties is None:
            self._idle.append(self._child())
        return self._properties

    def found(self, names):
        """Returns for each name of a function this pool if the implementation has the function, else None."""
        return {name: self if name in self.properties.has else None for name in names}

    def title(self):
        """Returns the name of the implementation."""
        return self.name

    def says(self):
        """Returns the calling convention of the implementation."""
        return self.properties.calls

    def judge(self, rows, scope, steps):
        """Judges functions in up to ``scope.jobs`` processes; returns whether Ctrl-C has stopped the judging.

        ``rows`` has a ``RowJudge`` for each function, which gets the report; ``steps`` counts the progress.

        Raises:
          Exception: an error that is not the implementation's, such as the name of an argument that the function does
            not have.
        """
        if scope.jobs > 1:  # functions with the most configurations first, so that none of these runs alone at the end
            rows = sorted(rows, key=lambda judged: -len(list(drawing.configurations(judged.row))))
        self._stopped = False
        with futures.ThreadPoolExecutor(scope.jobs) as threads, contextlib.ExitStack() as unless_done:
            unless_done.callback(self.close)
            unless_done.callback(threads.shutdown, wait=False, cancel_futures=True)
            judging = [threads.submit(self._judge, judged, scope, steps) for judged in rows]
            try:
                for ended in futures.as_completed(judging):
                    ended.result()
                unless_done.pop_all()  # the processes stay for the next call
            except KeyboardInterrupt:
                self._stopped = True
                threads.shutdown(wait=False, cancel_futures=True)
                for child in list(self._children):
                    child.interrupt()
                futures.wait([each for each in judging if not each.cancelled()], GRACE)
        return self._stopped

    def _judge(self, judged, scope, steps):
        child = self._child()
        child.judge(judged, scope, steps)
        if not self._stopped:
            if child.ended:
                verdict.unanswered(judged.report, *child.case, how=child.ended)
            steps.finish(judged.row.name)
        if child.ended or self._stopped or time.monotonic() - child.began > MAX_AGE:
            self._children.discard(child)
            child.kill()
        else:
            self._idle.append(child)

    def _child(self):
        """Returns an idle process, or a new one after its import.

        Raises:
          Exception: that of the first import, or a ValueError if the import ends the process or takes too long.
        """
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        first = self._properties is None
        child = _Child(replace(self.setup, first=self.setup.first and first))
        self._children.add(child)
        if self._stopped:  # `close` may already have killed the other processes
            child.kill()
        match child.receive(self._import_limit):
            case "ready", properties:
                self._properties = properties
            case "failed", error if first:
                raise error
            case "failed", _:
                child.ended = "another process cannot import the candidate; judge it with jobs=1"
        if first and child.ended and not self._stopped:
            raise ValueError(f"{self.name} cannot be imported: {child.ended}")
        return child


class _Child:
    """A process that runs :func:`~attnpool_ref.conformance.running.worker.work`.

    Attributes:
      began: the time at which the process was started.
      case: the dtype and the title of the case of the last call.
      ended: the reason why no more messages come, or "".
    """

    def __init__(self, setup):
        spawn = multiprocessing.get_context("spawn")  # a fork of a process with threads, as JAX has, may hang
        self._connection, theirs = spawn.Pipe()
        self._process: Any = spawn.Process(target=work, args=(theirs, setup), name="attnpool judges")
        self.began, self.ended = time.monotonic(), ""
        self.case: Any = ("", "")
        with _STARTING, _without_ctrl_c(), _without_main():
            self._process.start()
        theirs.close()

    def judge(self, judged, scope, steps):
        """Lets the process judge a function, given by its ``RowJudge``, which gets the report; or sets ``ended``.

        Raises:
          Exception: an error that is not the implementation's.
        """
        with contextlib.suppress(OSError):  # `receive` notices a dead process
            self._connection.send((judged.row.name, scope))
        self.case, limit = ("", ""), SILENCE_LIMIT
        while not self.ended:
            match self.receive(limit):
                case "call", *case:
                    self.case, limit = case, scope.time_limit
                case ("returned",):
                    limit = SILENCE_LIMIT
                case "step", label:
                    steps.take(label)
                case "failed", error:
                    raise error
                case "row", report, device, versions:
                    judged.report, judged.done = report, True
                    if device is not None:  # a stand-in for the adapter of the process
                        judged.adapter = types.SimpleNamespace(device=lambda: device, versions=lambda: versions)
                    return

    def receive(self, seconds):
        """Returns the next message, or sets ``ended`` if none comes within ``seconds`` or the process has ended."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            alive = self._process.is_alive()  # before reading, because its last messages may not have been read yet
            try:
                if self._connection.poll(min(POLL, left)):
                    return self._connection.recv()
            except Exception:  # the process has closed its connection, or written invalid data to it
                self._process.join(GRACE)
                alive = False
            if not alive:
                self.ended = _cause(self._process.exitcode)
                return None
        self.ended = f"no answer within {seconds:g} s"
        return None

    def interrupt(self):
        """Requests the report of the function that the process judges."""
        with contextlib.suppress(OSError):
            os.kill(self._process.pid, signal.SIGINT)

    def kill(self):
        """Kills the process and, except on Windows, those that it has started; may be called from any thread."""
        self._process.kill()
        self._process.join()
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):  # no process of its session is left
                os.killpg(self._process.pid, signal.SIGKILL)


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
        return "the process closed its connection to the judge"
    return f"the process {f'ended with status {code}' if code >= 0 else f'was killed by signal {-code}'}"
