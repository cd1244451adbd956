"""How far the judge is: a bar on a terminal, plain lines elsewhere."""

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


def shown():
    """A bar or lines, on stderr, so that stdout holds the report alone."""
    return _Bar() if sys.stderr.isatty() else _Lines()


class _Bar:
    """Called as ``progress(done, total, label)``; draws a bar, which leaves nothing behind."""

    def __init__(self):
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(file=sys.stderr),
            transient=True,
        )
        self._task = self._progress.add_task("starting", total=None)

    def __enter__(self):
        self._progress.start()
        return self

    def __exit__(self, *exception):
        self._progress.stop()

    def __call__(self, done, total, label):
        self._progress.update(self._task, completed=done, total=total, description=label)


class _Lines:
    """Called as ``progress(done, total, label)``; prints each label once, with its place."""

    def __init__(self):
        self._last = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def __call__(self, done, total, label):
        if label != self._last:
            print(f"[{done}/{total}] {label}", file=sys.stderr, flush=True)
        self._last = label
