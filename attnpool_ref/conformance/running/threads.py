"""Judging in this process: in threads, so that the judge can leave a call that takes too long, or for a debugger."""

import contextvars
import copy
import os
import threading

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.candidates.capture import Debugged

TOGETHER = 8
"""Rows after which an adapter forgets what it has compiled."""

ROW_THREAD = "attnpool judges"
"""Prefix of the names of the threads in which implementations are called."""

STOPPED = "stopped by Ctrl-C"


def at_once(scope):
    """Number of rows that threads judge at the same time.

    Compiling leaves Python's lock: two rows at a time take little more than half of the time. But hypothesis sets the
    global random states anew for each example, which another row would be accused of.
    """
    return 1 if scope.examples else min(os.cpu_count() or 1, 4)


class Threads:
    """Judges rows, each in a thread of its own, a few at a time; waits for none that takes too long.

    Attributes:
      waiting: the rows that no thread has begun; more may be added while they are judged.
    """

    def __init__(self, limit, seed, rows=(), *, look=None, done=None):
        """``look`` is called now and then and may raise a KeyboardInterrupt; ``done`` is called with each judged row."""
        self.waiting, self.limit, self.running, self.failed = list(rows), limit, [], []
        self.look, self.done = look or (lambda: None), done or (lambda judged: None)
        self.context = contextvars.copy_context()
        self.context.run(drawing.SEED.set, seed)
        self._begun = []  # since an adapter has last forgotten

    def run(self):
        """Judges all rows; returns whether somebody has interrupted it.

        Raises:
          Exception: an error that is not the implementation's, such as an argument that no row has.
        """
        try:
            while (self.waiting or self.running) and not self.failed:
                while self.waiting and self._has_room():
                    self._begun.append(self.waiting.pop(0))
                    self._start(self._begun[-1])
                self._look()
                if len(self._begun) == TOGETHER and not self.running:
                    self._forget()
        except KeyboardInterrupt:
            for judged, _ in self.running:
                if not judged.done:
                    _abandon(judged, lambda judged: judged.finish(STOPPED))
                self.done(judged)
            for judged in self.waiting:
                judged.report.partial.append(f"{STOPPED} before it began")
                self.done(judged)
            return True
        if self.failed:
            for judged, _ in self.running:
                judged.watch.abandoned = True
            raise self.failed[0]
        return False

    def _has_room(self):
        return len(self._begun) < TOGETHER and len(self.running) < at_once(self.waiting[0].scope)

    def _forget(self):
        adapters = {type(judged.adapter): judged.adapter for judged in self._begun if judged.adapter}
        for adapter in adapters.values():
            adapter.forget()
        self._begun.clear()

    def _start(self, judged):
        thread = threading.Thread(
            target=self.context.copy().run,
            args=(self._judge, judged),
            name=f"{ROW_THREAD} {judged.row.name}",
            daemon=True,
        )
        self.running.append((judged, thread))
        thread.start()

    def _judge(self, judged):
        try:
            judged.run()
        except Exception as error:
            self.failed.append(error)
        except BaseException:  # abandoned: nobody waits for it
            return

    def _look(self):
        """Waits a moment, and leaves the rows that are done or take too long."""
        self.running[0][1].join(0.02)
        self.look()
        for judged, thread in list(self.running):
            alive = thread.is_alive()
            if alive and not judged.watch.overran(self.limit):
                continue
            if alive:
                _abandon(judged, lambda judged: judged.overrun(self.limit))
            self.running.remove((judged, thread))
            if not self.failed:
                self.done(judged)


def _abandon(judged, conclude):
    """Leaves a row to itself: what was found until now is its report, whatever its thread does yet."""
    judged.watch.abandoned = True
    judged.report = copy.deepcopy(judged.report)
    conclude(judged)


def debugged(rows, seed):
    """Judges rows in this thread, one after another and without a time limit; returns whether somebody has stopped it."""
    context, rows = contextvars.copy_context(), list(rows)
    context.run(drawing.SEED.set, seed)
    try:
        while rows:
            rows[0].watch = Debugged()
            context.run(rows[0].run)
            rows.pop(0)
    except KeyboardInterrupt:
        rows[0].finish(STOPPED)
        for judged in rows[1:]:
            judged.report.partial.append(f"{STOPPED} before it began")
        return True
    return False
