"""``attnpool check``: judges an implementation, prints the report, and returns the exit status."""

import contextlib
import os
import pickle
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from attnpool_ref import conformance
from attnpool_ref.cli.candidate import Named
from attnpool_ref.cli.command import Command
from attnpool_ref.cli.exits import INTERNAL, INTERRUPTED, Refused, need_folder
from attnpool_ref.conformance.candidates.capture import on_screen
from attnpool_ref.conformance.report import EXIT
from attnpool_ref.conformance.running.processes import TIME_LIMIT, ProcessPool, Setup
from attnpool_ref.conformance.running.rows import InternalError

STANDARD_OUTPUT = "-"

ROWS_EACH, MOST_JOBS = 2, 4
"""Smallest number of functions for which one more process saves time, and largest number of processes.

Each process imports the framework, and may need 1-2 GB of memory.
"""


def question(candidate, *, only=(), row=None, dtypes=(), quick=False, calls=None, is_command=False, **options):
    """Returns the :class:`Named` implementation and the arguments of the judge, from the arguments of the command.

    ``calls`` is the calling convention (:class:`~attnpool_ref.conformance.Calls`); ``options`` are arguments of the
    judge. With ``is_command``, the candidate is a :class:`Command` that starts a program. The others are arguments of
    the command ``attnpool check``.
    """
    asked: dict[str, Any] = conformance.QUICK | options if quick else dict(options)
    if dtypes or not quick:
        asked["dtypes"] = dtypes or conformance.DTYPES
    return (Command if is_command else Named)(candidate, row, tuple(only), calls), asked


def process_pool(named, quick, time_limit):
    """Returns a pool of processes for the :class:`Named` implementation.

    ``quick`` makes JAX compile without most optimizations. ``time_limit`` is that of a call in seconds.
    """
    environment = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"} if quick else {}  # most of the time is compilation
    return ProcessPool(Setup(pickle.dumps(named), environment=environment, first=True), named.words, time_limit)


def run(candidate, *, files=None, everything=False, quick=False, jobs=None, time_limit=TIME_LIMIT, command="", **words):
    """Judges ``candidate``, prints the report, and returns the exit status.

    ``files`` has the files to which the report is also written, by format; existing files are replaced. If one of them
    is standard output, the report in words goes to standard error. With ``everything`` it also lists what held and what
    was not judged. ``command`` is the command line, to be printed with proposed options. ``words`` are further arguments of :func:`question`.
    ``jobs`` is the number of processes, by default that of :func:`_jobs`; with 0 the implementation is imported and
    judged in this process, without ``time_limit``. The exit status is that of the verdict (0, 1 or 3), 70 after an error of the judge itself, or
    130 after Ctrl-C.

    Raises:
      Refused: the folder of a file is missing, two files are standard output, the implementation cannot be imported,
        a name is unknown, or a package is missing.
    """
    files = {kind: name for kind, name in (files or {}).items() if name}
    for name in files.values():
        need_folder(name)
    piped = [f"--{kind}" for kind, name in files.items() if name == STANDARD_OUTPUT]
    if len(piped) > 1:
        raise Refused(f"standard output holds one report, not those of {' and '.join(piped)}")
    named, asked = question(candidate, quick=quick, **words)
    asked["name"] = candidate
    asked["strict"] = candidate == "attnpool_flax"
    try:
        if jobs == 0:
            target, rows = named()
            if quick and "jax" in sys.modules:  # most of the time is compilation
                sys.modules["jax"].config.update("jax_disable_most_optimizations", True)
            with on_screen():
                report = conformance.judge(target, only=rows, progress=_line, **asked)
        else:
            with process_pool(named, quick, time_limit) as pool, shown_progress() as shown:
                pool.jobs = jobs or (1 if isinstance(named, Command) else _jobs(pool.properties))
                report = conformance.judge(pool, only=pool.properties.rows, progress=shown, **asked)
    except (ValueError, ModuleNotFoundError) as error:  # an unknown name
        raise Refused(str(error)) from None
    except InternalError as error:
        print(f"Error: {error}", file=sys.stderr)
        return INTERNAL
    _show(report, files, everything, sys.stderr if piped else sys.stdout, command)
    return INTERRUPTED if report.interrupted else EXIT[report.verdict]


def _show(report, files, everything, out, command):
    from attnpool_ref.cli import verdicts  # imported only now, so that the child process starts earlier
    from attnpool_ref.cli.finding import console
    from attnpool_ref.conformance import formats

    for kind, name in files.items():
        text = formats.FORMATS[kind](report)
        if name == STANDARD_OUTPUT:
            print(text)
        else:
            Path(name).write_text(text, encoding="utf-8")
    verdicts.render(report, console(out), everything, command)


def _jobs(properties):
    """Returns the default number of processes: 1 on an accelerator, else the largest number within three limits.

    The limits are the number of cores, :data:`MOST_JOBS`, and one process for every :data:`ROWS_EACH` functions.
    """
    if properties.on_accelerator:
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, MOST_JOBS, len(properties.has) // ROWS_EACH))


def shown_progress():
    """Returns a progress bar, or lines if there is no terminal, on stderr: stdout has only the report."""
    return _Bar() if sys.stderr.isatty() else contextlib.nullcontext(_line)


class _Bar(Progress):
    """Progress bar, called as ``progress(done, total, label)``; it is removed at the end."""

    def __init__(self):
        columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn()
        times = TimeElapsedColumn(), TextColumn("left:"), TimeRemainingColumn()
        super().__init__(*columns, *times, console=Console(file=sys.stderr), transient=True)
        self._task = self.add_task("starting", total=None)

    def __call__(self, done, total, label):
        self.update(self._task, completed=done, total=total, description=label)


def _line(done, total, label):
    print(f"[{done}/{total}] {label}", file=sys.stderr, flush=True)
