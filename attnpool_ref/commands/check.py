"""``attnpool check``: judges a candidate, shows what came of it, and says so by its exit status."""

import contextlib
import os
import sys
import threading
from pathlib import Path
from typing import Any

from attnpool_ref import conformance
from attnpool_ref.commands import progress, verdicts
from attnpool_ref.commands.candidate import find_candidate, forced
from attnpool_ref.commands.exits import INTERRUPTED, Refused, need_folder
from attnpool_ref.commands.listing import console
from attnpool_ref.conformance import formats
from attnpool_ref.conformance.report import EXIT
from attnpool_ref.conformance.threads import ROW_THREAD

STANDARD_OUTPUT = "-"


def question(candidate, *, only=(), row=None, dtypes=(), implementation=None, quick=False, calls=None, **options):
    """What the words of the command ask: the target, the names of its rows (none: all of them), arguments of the judge.

    ``calls`` says how it is called (:class:`~attnpool_ref.conformance.Calls`), ``options`` are arguments of the judge.
    """
    target, rows = find_candidate(candidate, row)
    if implementation is not None:
        target, rows = forced(target, implementation, rows)
    asked: dict[str, Any] = conformance.QUICK | options if quick else dict(options)
    asked |= calls or {}
    if dtypes or not quick:
        asked["dtypes"] = dtypes or conformance.DTYPES
    return target, tuple(dict.fromkeys(only)) or rows, asked


ROWS_EACH, MOST_JOBS = 8, 4
"""A process for fewer rows saves no time: it imports the candidate and its framework anew. Each may hold a gigabyte or two."""


def run(candidate, *, files=None, implementation=None, quick=False, jobs=None, **words):
    """Judges ``candidate``, prints the report, and returns the exit status.

    ``files`` are the files that the report is written to as well, by format; where one of them is standard output, the
    report in words goes to standard error. ``words`` are those of :func:`question`.
    """
    files = {kind: name for kind, name in (files or {}).items() if name}
    for name in files.values():
        need_folder(name)
    piped = [f"--{kind}" for kind, name in files.items() if name == STANDARD_OUTPUT]
    if len(piped) > 1:
        raise Refused(f"standard output holds one report, not those of {' and '.join(piped)}")
    target, rows, asked = question(candidate, implementation=implementation, quick=quick, **words)
    with progress.shown() as shown, _compiled_quickly() if quick else contextlib.nullcontext():
        try:
            report = conformance.judge(
                target,
                name=candidate if implementation is None else f"{candidate}, {implementation}",
                only=rows,
                strict=candidate == "attnpool_flax" and implementation is None,
                progress=shown,
                jobs=jobs or _jobs(target, rows),
                **asked,
            )
        except (ValueError, ModuleNotFoundError) as error:  # a name that nobody knows
            raise Refused(str(error)) from None
    for kind, name in files.items():
        text = formats.FORMATS[kind](report)
        if name == STANDARD_OUTPUT:
            print(text)
        else:
            Path(name).write_text(text, encoding="utf-8")
    verdicts.render(report, console(sys.stderr if piped else sys.stdout))
    return INTERRUPTED if report.interrupted else EXIT[report.verdict]


def _jobs(target, rows):
    """How many processes judge, where nobody has said: one for each core, up to a few; one on an accelerator, which has one owner."""
    jax = sys.modules.get("jax")
    if jax is not None and jax.default_backend() != "cpu":
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, MOST_JOBS, len(rows or conformance.Candidate(target).rows()) // ROWS_EACH))


@contextlib.contextmanager
def _compiled_quickly():
    """While it lasts JAX compiles without most optimisations: compiling is most of the time."""
    config = sys.modules["jax"].config if "jax" in sys.modules else None
    if config is None:
        yield
        return
    before = config.read("jax_disable_most_optimizations")
    config.update("jax_disable_most_optimizations", True)
    try:
        yield
    finally:
        config.update("jax_disable_most_optimizations", before)


def leave(status):
    """Ends the process; at once where a candidate's call still runs that nobody waits for any more."""
    if any(thread.name.startswith(ROW_THREAD) for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    raise SystemExit(status)
