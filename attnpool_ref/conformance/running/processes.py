"""Pool of child processes: only they import the implementation under test, and judge its functions."""

import contextlib
import threading
import time
from collections import deque
from concurrent import futures
from dataclasses import replace
from typing import Any

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.running.child import GRACE, Child
from attnpool_ref.conformance.running.threads import BATCH, STOPPED

MAX_AGE = 300.0
"""Seconds after which a process is replaced: frameworks never free the memory of all compiled functions."""

IMPORT_LIMIT = 60.0
"""Seconds for the import of an implementation, unless the time limit of a call is longer."""


class ProcessPool:
    """An implementation in child processes; in the parent process it takes the place of a :class:`Candidate`.

    For each process, a thread of the parent sends it functions and reads its messages. If a process dies, the function
    that it was judging fails. If it was judging several, each of them is judged again by itself.
    """

    def __init__(self, setup, name="", time_limit=0.0):
        """Prepares the pool; the first process starts when ``properties`` is read or a function is judged.

        Args:
          setup: the data for each process, a :class:`~attnpool_ref.conformance.running.setup.Setup`.
          name: the name of the implementation in messages and reports.
          time_limit: the time limit of a call in seconds, which also limits the import if it exceeds
            :data:`IMPORT_LIMIT`.
        """
        self.setup, self.name, self._import_limit = setup, name, max(IMPORT_LIMIT, time_limit)
        self._properties: Any = None
        self._children, self._idle, self._stopped = set(), [], False
        self._lock, self._waiting, self._batch = threading.Lock(), deque(), 1
        self._scope: Any = None
        self._steps: Any = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Kills all processes; the threads that wait for their messages then end, too."""
        self._stopped = True
        self._idle.clear()
        for child in list(self._children):  # a copy, because threads remove processes that have ended
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
        jobs = scope.jobs
        if jobs > 1:  # functions with the most configurations first, so that none of these runs alone at the end
            rows = sorted(rows, key=lambda judged: -len(list(drawing.configurations(judged.row))))
        self._waiting, self._batch = deque(rows), BATCH if jobs == 1 else 1
        self._scope, self._steps, self._stopped, working = scope, steps, False, []
        with futures.ThreadPoolExecutor(jobs) as threads, contextlib.ExitStack() as unless_done:
            unless_done.callback(self.close)
            try:
                working += [threads.submit(self._judge_waiting) for _ in rows[:jobs]]
                for ended in futures.as_completed(working):
                    ended.result()
                unless_done.pop_all()  # the processes stay for the next call
            except KeyboardInterrupt:
                self._stopped = True
                for child in list(self._children):
                    child.send(None)  # requests the reports of its functions
                futures.wait(working, GRACE)
        for judged in self._waiting:
            judged.report.partial.append(STOPPED)
        return self._stopped

    def _judge_waiting(self):
        """Judges functions in one process, and in a new one after its end, until none waits; the body of a thread."""
        while rows := self._take():
            child = self._child()
            left = child.judge(rows, self._scope, self._steps)
            if child.ended and not self._stopped:
                if len(left) == 1:  # no other function can have ended the process
                    child.blame(left[0])
                    self._steps.finish(left.pop().row.name)
                self._batch = 1 if left else self._batch
            self._waiting.extendleft(left)
            if child.ended or child.spent or time.monotonic() - child.began > MAX_AGE:
                self._children.discard(child)
                child.kill()
            else:
                self._idle.append(child)

    def _take(self):
        """Returns the functions that one process judges next."""
        with self._lock:
            count = 0 if self._stopped else min(self._batch, len(self._waiting))
            return [self._waiting.popleft() for _ in range(count)]

    def _child(self):
        """Returns an idle process, or a new one after its import.

        Raises:
          Exception: that of the first import, or a ValueError if the import ends the process or takes too long.
        """
        with self._lock:
            if self._idle:
                return self._idle.pop()
        child = Child(self.setup if self._properties is None else replace(self.setup, first=False))
        self._children.add(child)
        if self._stopped:  # `close` may already have killed the other processes
            child.kill()
        error = child.wait_for_import(self._import_limit)
        self._properties = self._properties or child.properties
        if self._properties is None and not self._stopped:
            raise error or ValueError(f"{self.name} cannot be imported: its process {child.ended}")
        return child
