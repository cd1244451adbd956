"""Judging in this process: in threads, with a time limit for each call, or in the calling thread, for debuggers."""

import contextvars
import copy
import os
import threading

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.candidates.capture import Debugged

BATCH = 8
"""Number of functions after which adapters clear their compiled programs."""

ROW_THREAD = "attnpool judges"
"""Prefix of the names of the threads that call implementations."""

STOPPED = "stopped by Ctrl-C"


class Threads:
    """Judging of functions, each in its own thread, a few at a time; a function whose call takes too long is abandoned.

    Compilation releases Python's lock: with two functions at a time, judging takes little more than half of the time.

    Attributes:
      waiting: the functions that are not being judged yet; more may be added.
    """

    def __init__(self, limit, seed, rows=(), *, look=lambda: None, done=lambda judged: None):
        """Prepares to judge ``rows``.

        Args:
          limit: the time limit of one call in seconds.
          seed: the text that seeds the cases in addition to their names.
          rows: the functions, each a :class:`~attnpool_ref.conformance.running.rows.RowJudge`.
          look: is called about every 20 milliseconds, and may raise a KeyboardInterrupt to stop the judging.
          done: is called with each judged function.
        """
        self.waiting, self.limit, self.look, self.done = list(rows), limit, look, done
        self._running, self._batch, self._failed = [], [], []
        self._context = contextvars.copy_context()
        self._context.run(drawing.SEED.set, seed)

    def run(self):
        """Judges all functions; returns whether Ctrl-C has stopped the judging.

        Raises:
          Exception: an error that is not the implementation's, such as the name of an argument that the function does
            not have.
        """
        try:
            while (self.waiting or self._running) and not self._failed:
                while self.waiting and self._has_room():
                    self._start(self.waiting.pop(0))
                self._wait()
                if len(self._batch) == BATCH and not self._running:
                    self._clear_programs()
        except KeyboardInterrupt:
            for judged, _ in self._running:
                if not judged.done:
                    _abandon(judged, lambda judged: judged.finish(STOPPED))
                self.done(judged)
            _stop(self.waiting)
            return True
        if self._failed:
            for judged, _ in self._running:
                judged.watch.abandoned = True
            raise self._failed[0]
        return False

    def _has_room(self):
        return len(self._batch) < BATCH and len(self._running) < min(os.cpu_count() or 1, 4)

    def _start(self, judged):
        thread = threading.Thread(
            target=self._context.copy().run,
            args=(self._judge, judged),
            name=f"{ROW_THREAD} {judged.row.name}",
            daemon=True,
        )
        self._batch.append(judged)
        self._running.append((judged, thread))
        thread.start()

    def _judge(self, judged):
        try:
            judged.run()
        except Exception as error:
            self._failed.append(error)
        except BaseException:  # the function is abandoned
            return

    def _wait(self):
        """Waits a moment, and removes the functions that are done or take too long."""
        self._running[0][1].join(0.02)
        self.look()
        for judged, thread in list(self._running):
            alive = thread.is_alive()
            if alive and not judged.watch.overran(self.limit):
                continue
            if alive:
                _abandon(judged, lambda judged: judged.overrun(self.limit))
            self._running.remove((judged, thread))
            if not self._failed:
                self.done(judged)

    def _clear_programs(self):
        """Clears the compiled programs of the adapters, once for each class of adapters."""
        for adapter in {type(judged.adapter): judged.adapter for judged in self._batch if judged.adapter}.values():
            adapter.forget()
        self._batch.clear()


def _abandon(judged, conclude):
    """Completes the report of a function from its results until now, by ``conclude(judged)``.

    It gets a copy of the report, to which the abandoned thread does not write.
    """
    judged.watch.abandoned = True
    judged.report = copy.deepcopy(judged.report)
    conclude(judged)


def _stop(waiting):
    for judged in waiting:
        judged.report.partial.append(f"{STOPPED} before it began")


def debugged(rows, seed, done=lambda judged: None):
    """Judges functions in this thread, one after another, without a time limit; returns whether Ctrl-C ended this.

    ``rows``, ``seed`` and ``done`` are those of :class:`Threads`.
    """
    context, waiting = contextvars.copy_context(), list(rows)
    context.run(drawing.SEED.set, seed)
    while waiting:
        judged = waiting.pop(0)
        judged.watch = Debugged()
        try:
            context.run(judged.run)
        except KeyboardInterrupt:
            judged.finish(STOPPED)
            done(judged)
            _stop(waiting)
            return True
        done(judged)
    return False
