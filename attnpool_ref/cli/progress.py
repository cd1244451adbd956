"""Progress of the judge: a bar with the estimated remaining time on a terminal, plain lines elsewhere."""

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


def shown():
    """Returns a progress bar, or lines if there is no terminal, on stderr: stdout has only the report."""
    return _Bar() if sys.stderr.isatty() else Lines()


class _Bar(Progress):
    """Progress bar, called as ``progress(done, total, label)``; it is removed at the end."""

    def __init__(self):
        columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn()
        times = TimeElapsedColumn(), TextColumn("left:"), TimeRemainingColumn()
        super().__init__(*columns, *times, console=Console(file=sys.stderr), transient=True)
        self._task = self.add_task("starting", total=None)

    def __call__(self, done, total, label):
        self.update(self._task, completed=done, total=total, description=label)


class Lines:
    """Lines of progress, called as ``progress(done, total, label)``: one for each label."""

    def __init__(self):
        self._last = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def __call__(self, done, total, label):
        """Prints the label if it has changed."""
        if label != self._last:
            print(f"[{done}/{total}] {label}", file=sys.stderr, flush=True)
        self._last = label
