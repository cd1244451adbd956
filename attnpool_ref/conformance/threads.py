"""Judges rows in threads of this process, so that a call that takes too long can be left alone."""

import contextvars
import copy
import os
import threading

from attnpool_ref.conformance import cases as drawing

TOGETHER = 8
"""Rows after which an adapter forgets what it has compiled."""

ROW_THREAD = "attnpool judges"
"""What the names of the threads begin with in which candidates are called."""


class Threads:
    """Judges rows, each in a thread of its own, a few at a time; waits for none that takes too long."""

    def __init__(self, rows, limit, seed, look=None):
        """``look`` is called now and then; it may raise a KeyboardInterrupt."""
        self.waiting, self.limit, self.running, self.failed = list(rows), limit, [], []
        self.look = look
        self.context = contextvars.copy_context()
        self.context.run(drawing.SEED.set, seed)

    def run(self):
        """Judges all rows; whether somebody has interrupted it.

        Raises:
          Exception: what is no fault of the candidate's, such as an argument that no row has.
        """
        # Compiling leaves Python's lock: two rows at a time take little more than half of the time. But hypothesis
        # sets the global random states anew for each example, which another row would be accused of.
        workers = 1 if any(judged.scope.examples for judged in self.waiting) else min(os.cpu_count() or 1, 4)
        begun = []
        try:
            while (self.waiting or self.running) and not self.failed:
                while self.waiting and len(self.running) < workers and len(begun) < TOGETHER:
                    begun.append(self.waiting.pop(0))
                    self._start(begun[-1])
                self._look()
                if len(begun) == TOGETHER and not self.running:
                    for adapter in {
                        type(judged.adapter): judged.adapter for judged in begun if judged.adapter
                    }.values():
                        adapter.forget()
                    begun.clear()
        except KeyboardInterrupt:
            for judged, _ in self.running:
                if not judged.done:
                    _abandon(judged, lambda judged: judged.finish("stopped by Ctrl-C"))
            for judged in self.waiting:
                judged.report.partial.append("stopped by Ctrl-C before it began")
            return True
        if self.failed:
            for judged, _ in self.running:
                judged.watch.abandoned = True
            raise self.failed[0]
        return False

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
        """Waits a moment, and leaves those behind that are done or take too long."""
        self.running[0][1].join(0.02)
        if self.look is not None:
            self.look()
        for judged, thread in list(self.running):
            if not thread.is_alive():
                self.running.remove((judged, thread))
            elif judged.watch.overran(self.limit):
                _abandon(judged, lambda judged: judged.overrun(self.limit))
                self.running.remove((judged, thread))


def _abandon(judged, conclude):
    """Leaves a row to itself: what was found until now is its report, whatever its thread does yet."""
    judged.watch.abandoned = True
    judged.report = copy.deepcopy(judged.report)
    conclude(judged)
