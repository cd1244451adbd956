"""Judges a candidate row by row: who waits, how long, and what comes of it."""

import threading
from dataclasses import replace
from typing import Unpack

from attnpool_ref import table
from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.candidates import Calls, as_candidate
from attnpool_ref.conformance.candidates.adapters import NumpyArrays
from attnpool_ref.conformance.candidates.watch import noting
from attnpool_ref.conformance.checks import excuses
from attnpool_ref.conformance.report import BROKEN, FAIL, MISSING, PASS, Failure, Kept, Report, RowReport, waivers
from attnpool_ref.conformance.running import searching
from attnpool_ref.conformance.running.processes import ProcessPool
from attnpool_ref.conformance.running.rows import RowJudge, Scope
from attnpool_ref.conformance.running.setup import Task, setup_of
from attnpool_ref.conformance.running.threads import Threads, debugged

DTYPES = ("float32", "bfloat16", "float16", "float64")

TIME_LIMIT = 60.0
"""Seconds for one call of a candidate, its compilation included."""

QUICK = {"dtypes": ("float32", "bfloat16"), "gradients": ("float32",), "shapes": (), "long": False} | dict.fromkeys(
    ("options", "partial", "laws"), False
)
"""What ``attnpool check --quick`` judges."""


def judge(
    candidate,
    *,
    name="",
    only=(),
    dtypes=DTYPES,
    strict=False,
    progress=None,
    shapes=drawing.SHAPES,
    gradients=True,
    laws=True,
    options=True,
    partial=True,
    long=True,
    refusals=False,
    integers=False,
    mixed=False,
    broadcasting=False,
    contract=False,
    waive=None,
    examples=0,
    time_limit=TIME_LIMIT,
    seed="",
    jobs=1,
    **calls: Unpack[Calls],
):
    """Judges a candidate against the oracle.

    It is called in this process, which it can end or block, unless ``jobs`` is at least 2; ``attnpool check`` and
    ``pytest --attnpool`` import and call it in a child process. Ctrl-C ends the judging with a report of what was
    judged until then.

    Args:
      candidate: a module, a mapping of names, any object with functions named as in the table, one callable where
        ``only`` names its row, or a :class:`~attnpool_ref.conformance.Candidate`.
      name: what the report calls it; its own name if empty.
      only: names of rows; all rows if empty.
      dtypes: names of dtypes.
      strict: a row that the candidate lacks fails; rows in ``only`` always do.
      progress: called as ``progress(done, total, label)``.
      shapes: names of the shapes (``cases.SHAPES``) that the first dtype is judged on beside the mixed batch.
      gradients: judge gradients as well, where the candidate's arrays have them: in all dtypes, or in those named.
      laws: judge the candidate against itself as well (permuting, deleting, batch mates ...), in the first dtype.
      options: other values of options, and calls without masks, in all dtypes and with gradients; else in the first
        dtype, without.
      partial: in the first dtype also the calls that leave some arguments away, and ties and edges.
      long: sums over many tokens as well: a million in float32, thousands in narrower dtypes.
      refusals: bad input as well: it must be refused by a TypeError or a ValueError.
      integers: data of integers alone as well, beside float64: they give the default float.
      mixed: arguments of several dtypes must give the dtype that the contract says; else a refusal or an answer that is
        right to the rounding of another dtype is a note.
      broadcasting: masks of integers, and masks and biases of a lower rank or with axes of 1, must be taken; else an answer
        that is not right is a note.
      contract: everything that the contract promises beyond the default, ``mixed`` and ``broadcasting`` among it, but
        neither ``refusals`` nor ``integers``.
      waive: promises that need not hold, each with the reason: ``{"1e30 in padding": "inputs are finite"}``, or of one
        row: ``{"mean_pooling/1e30 in padding": ...}``. A waiver that waives nothing fails.
      examples: how many more calls hypothesis searches for a wrong answer, for each row, in the first dtype.
      time_limit: seconds for one call, its compilation included; what takes longer ends the judging of its row.
      seed: draws other cases; without it they derive from their names, and are the same on every machine.
      jobs: number of processes; the report is the same. 1 judges in threads of this process. With 2 or more each child
        process judges a row at a time, and imports the candidate anew or gets a copy by ``pickle``; one that cannot be
        sent so, such as a function of a notebook or a script, is judged in this process. 0 judges in this thread, row
        by row, without ``time_limit`` and without capturing output: for debuggers.
      **calls: how the candidate is called, as the fields of :class:`~attnpool_ref.conformance.Candidate` say.

    Returns:
      A :class:`~attnpool_ref.conformance.Report`.

    Raises:
      ValueError: no row, dtype, argument, promise or form of masks has such a name.
      ModuleNotFoundError: ``examples`` needs hypothesis, which is not installed.
    """
    waive = dict(waive or {})
    waivers.check_names(waive)
    if examples:
        searching.need_hypothesis()
    rows = [table.get(n) for n in only] or list(table.BY_NAME.values())
    for dtype in dtypes:
        if dtype not in DTYPES:
            raise ValueError(f"no dtype is called {dtype!r}, needs one of {', '.join(DTYPES)}")
    whole = candidate if isinstance(candidate, ProcessPool) else as_candidate(candidate, calls)
    scope = Scope(tuple(dtypes), tuple(shapes), gradients, laws, options, partial, long, refusals, integers, examples)
    scope = replace(scope, demands=excuses.demanded(mixed, broadcasting, contract))
    steps = _Steps(progress, rows, dtypes)
    reports, waiting = {}, []
    found = whole.found([row.name for row in rows])
    for row in rows:
        if found[row.name] is None:
            steps.finish(row.name)
            reports[row.name] = _missing(row, strict or bool(only))
        else:
            waiting.append(RowJudge(row, found[row.name], scope, steps.take))
    interrupted = _run(whole, waiting, Task(scope, time_limit, str(seed)), jobs, steps)
    for judged in waiting:
        reports[judged.row.name] = judged.report
    reports = [reports[row.name] for row in rows]
    idle = waivers.apply(reports, waive)
    adapter = next((judged.adapter for judged in waiting if judged.adapter is not None), NumpyArrays())
    return Report(
        name or whole.title(),
        adapter.device(),
        adapter.versions(),
        reports,
        whole.says(),
        str(seed),
        interrupted,
        waive,
        {} if interrupted else idle,
    )


def _run(whole, rows, task, jobs, steps):
    """Judges the rows where the implementation is, or in new processes; returns whether somebody has interrupted it."""
    if isinstance(whole, ProcessPool):
        return whole.judge(rows, task, jobs, steps)
    if jobs == 0:
        return debugged(rows, task.seed)
    setup = setup_of(whole) if min(jobs, len(rows)) > 1 else None
    if setup is None:
        with noting():
            return Threads(task.limit, task.seed, rows).run()
    with ProcessPool(setup, whole.title(), task.limit) as pool:
        return pool.judge(rows, task, jobs, steps)


class _Steps:
    """Progress: which dtype of which row is done, whichever thread or process did it, and each counted once."""

    def __init__(self, progress, rows, dtypes):
        self.progress, self.dtypes, self.total = progress, dtypes, len(rows) * len(dtypes)
        self.done, self.lock = set(), threading.Lock()

    def take(self, label):
        """Counts the step of this label, the names of a row and a dtype."""
        self._count({label}, label)

    def finish(self, row):
        """Counts the steps of a row that were left out."""
        self._count({f"{row} {dtype}" for dtype in self.dtypes}, row)

    def _count(self, labels, shown):
        with self.lock:
            if not labels <= self.done:
                self.done |= labels
                if self.progress is not None:
                    self.progress(len(self.done), self.total, shown)


def _missing(row, fails):
    """The report of a row that the candidate lacks."""
    report = RowReport(row.name, MISSING)
    if fails:
        report.status = FAIL
        failure = Failure(row.name, "an answer", "", f"there is no `{row.name}`", "", 0)
        report.promises["an answer"] = Kept("an answer", BROKEN, failures=[failure])
    return report


def check(
    candidate,
    name,
    *,
    dtypes=("float32", "float64"),
    shapes=drawing.SHAPES,
    gradients=True,
    laws=True,
    options=True,
    partial=True,
    long=True,
    refusals=False,
    integers=False,
    mixed=False,
    broadcasting=False,
    contract=False,
    waive=None,
    examples=0,
    time_limit=TIME_LIMIT,
    seed="",
    **calls: Unpack[Calls],
):
    """Asserts that a candidate is the row called ``name``; for your own tests.

    It is called in this process, which it can end or block.

    Args:
      candidate: a function, a module with parameters, or anything that has the row by its name.
      name: the row.
      dtypes: dtypes to judge.
      shapes: as in :func:`judge`.
      gradients: as in :func:`judge`.
      laws: as in :func:`judge`.
      options: as in :func:`judge`.
      partial: as in :func:`judge`.
      long: as in :func:`judge`.
      refusals: as in :func:`judge`.
      integers: as in :func:`judge`.
      mixed: as in :func:`judge`.
      broadcasting: as in :func:`judge`.
      contract: as in :func:`judge`.
      waive: as in :func:`judge`.
      examples: as in :func:`judge`.
      time_limit: as in :func:`judge`.
      seed: as in :func:`judge`.
      **calls: as in :func:`judge`.

    Raises:
      AssertionError: with the cause, where it is known, and the smallest failing case, as code; or with what was
        never judged.
      ValueError: no row, argument, promise or form of masks has such a name.
    """
    __tracebackhide__ = True  # pytest shows the message, and no source of the kit under it
    report = judge(
        candidate,
        only=(name,),
        dtypes=dtypes,
        shapes=shapes,
        gradients=gradients,
        laws=laws,
        options=options,
        partial=partial,
        long=long,
        refusals=refusals,
        integers=integers,
        mixed=mixed,
        broadcasting=broadcasting,
        contract=contract,
        waive=waive,
        examples=examples,
        time_limit=time_limit,
        seed=seed,
        **calls,
    )
    if report.interrupted:
        raise KeyboardInterrupt
    (row,) = report.rows
    failure = report.smallest_failure
    if failure is not None:
        raise AssertionError(row.told(failure))
    if report.idle_waivers:
        idle = "; ".join(f"{promise!r}: {why}" for promise, why in report.idle_waivers.items())
        raise AssertionError(f"{name}: a waiver waives nothing: {idle}")
    if row.status != PASS:
        why = row.partial or [unasked.why for unasked in row.unasked] or ["there is nothing to judge"]
        raise AssertionError(f"{name}: {row.status}: {'; '.join(why)}")
