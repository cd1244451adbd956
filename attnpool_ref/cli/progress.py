"""Progress of the judge with the estimated remaining time: a bar on a terminal, plain lines elsewhere."""

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


def shown():
    """Returns a progress bar, or lines if there is no terminal, on stderr: stdout has only the report."""
    return _Bar() if sys.stderr.isatty() else Lines()


class _Rest:
    """Estimate of the remaining time: the remaining steps take as long, on average, as those that are done."""

    def __init__(self):
        self._began = time.monotonic()

    def __call__(self, done, total):
        """Returns the remaining time as text, from numbers of steps; "" at the start and at the end."""
        if not 0 < done < total:
            return ""
        seconds = (time.monotonic() - self._began) / done * (total - done)
        return f"about {seconds:.0f} s left" if seconds < 100 else f"about {seconds / 60:.0f} min left"


class _Bar:
    """Progress bar, called as ``progress(done, total, label)``; it is removed at the end."""

    def __init__(self):
        self._rest = _Rest()
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[rest]}"),
            console=Console(file=sys.stderr),
            transient=True,
        )
        self._task = self._progress.add_task("starting", total=None, rest="")

    def __enter__(self):
        self._progress.start()
        return self

    def __exit__(self, *exception):
        self._progress.stop()

    def __call__(self, done, total, label):
        rest = self._rest(done, total)
        self._progress.update(self._task, completed=done, total=total, description=label, rest=rest)


class Lines:
    """Lines of progress, called as ``progress(done, total, label)``: one for each label, with the remaining time."""

    def __init__(self):
        self._rest, self._last = _Rest(), None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def __call__(self, done, total, label):
        """Prints the label if it has changed."""
        if label != self._last:
            rest = self._rest(done, total)
            print(f"[{done}/{total}] {label}{rest and f', {rest}'}", file=sys.stderr, flush=True)
        self._last = label
