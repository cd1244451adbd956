"""``judge`` and ``check``, which judge an implementation function by function, in this process or in others."""

import threading
from typing import Any

from attnpool_ref import table
from attnpool_ref.conformance.candidates import as_candidate
from attnpool_ref.conformance.candidates.adapters import NumpyArrays
from attnpool_ref.conformance.candidates.capture import noting
from attnpool_ref.conformance.option import takes_options_of
from attnpool_ref.conformance.report import BROKEN, FAIL, MISSING, PASS, Failure, Kept, Report, RowReport, apply_waivers
from attnpool_ref.conformance.report.guarantees import ANSWER
from attnpool_ref.conformance.running.processes import ProcessPool
from attnpool_ref.conformance.running.rows import STOPPED, RowJudge, judge_each
from attnpool_ref.conformance.scope import Scope, split


@takes_options_of(Scope)
def judge(candidate, *, name="", progress=None, **options: Any):
    """Judges an implementation against the oracle.

    The implementation is called in this process, which a crash would end; ``attnpool check`` and ``pytest --attnpool``
    import and call it in child processes. Ctrl-C ends the judging with a report of the results until then.

    Args:
      candidate: a module, a mapping from names to functions, any object with functions named as in attnpool, one
        callable if ``only`` has a single name, that of the function that it implements, or a
        :class:`~attnpool_ref.conformance.Candidate`.
      name: the implementation's name in the report; its own name if empty.
      progress: a function that is called as ``progress(done, total, label)`` with numbers of steps, in any thread,
        after one or more steps; a step is one function in one dtype. In the last call ``done`` is ``total``, unless
        Ctrl-C has ended the judging.
      **options: the fields of a :class:`Scope`, and those of a :class:`Candidate` for the calling convention.

    Returns:
      A :class:`~attnpool_ref.conformance.Report`.

    Raises:
      TypeError: no option has such a name, or ``candidate`` is a Candidate and a calling convention is given, too.
      ValueError: no function, dtype, shape, argument, axis, attribute, array family, guarantee or form of masks has
        such a name, ``dtypes`` is empty, a waiver has no reason, or ``candidate`` is a class.
      ModuleNotFoundError: ``arrays`` names a framework that is not installed.
    """
    of_scope, calls = split(options)
    scope = Scope(**of_scope)
    rows = [table.get(each) for each in scope.only] or list(table.BY_NAME.values())
    whole = candidate if isinstance(candidate, ProcessPool) else as_candidate(candidate, calls)
    steps = _Steps(progress, rows, scope.dtypes)
    reports, waiting = {}, []
    found = whole.found([row.name for row in rows])
    for row in rows:
        if found[row.name] is None:
            steps.finish(row.name)
            reports[row.name] = _missing(row, scope.strict or bool(scope.only))
        else:
            waiting.append(RowJudge(row, found[row.name], scope, steps.take))
    if isinstance(whole, ProcessPool):
        interrupted = whole.judge(waiting, scope, steps)
    else:
        with noting():
            interrupted = judge_each(waiting, lambda judged: steps.finish(judged.row.name))  # with those left out
    for judged in waiting:
        reports[judged.row.name] = judged.report
        if interrupted and not judged.done and STOPPED not in judged.report.partial:
            judged.report.partial.append(STOPPED)
    reports = [reports[row.name] for row in rows]
    idle = apply_waivers(reports, scope.waive)
    adapter = next((judged.adapter for judged in waiting if judged.adapter is not None), NumpyArrays())
    return Report(
        name or whole.title(),
        adapter.device(),
        adapter.versions(),
        reports,
        whole.says(),
        scope.seed,
        interrupted,
        dict(scope.waive or {}),
        {} if interrupted else idle,
    )


class _Steps:
    """Progress: the dtypes of functions that are done, each counted once, in any thread or process."""

    def __init__(self, progress, rows, dtypes):
        self.progress, self.dtypes, self.total = progress, dtypes, len({row.name for row in rows}) * len(set(dtypes))
        self.done, self.lock = set(), threading.Lock()

    def take(self, label):
        """Counts the step called ``label``, the names of a function and a dtype."""
        self._count({label}, label)

    def finish(self, row):
        """Counts all steps of a function, including those that were left out."""
        self._count({f"{row} {dtype}" for dtype in self.dtypes}, row)

    def _count(self, labels, shown):
        with self.lock:
            if not labels <= self.done:
                self.done |= labels
                if self.progress is not None:
                    self.progress(len(self.done), self.total, shown)


def _missing(row, fails):
    """Returns the report of a function that the implementation lacks: "fail" with ``fails``, else "missing"."""
    report = RowReport(row.name, MISSING)
    if fails:
        report.status = FAIL
        failure = Failure(row.name, ANSWER, "", f"there is no `{row.name}`", "", 0)
        report.guarantees[ANSWER] = Kept(ANSWER, BROKEN, failures=[failure])
    return report


@takes_options_of(Scope, without=("only", "strict", "progress"), dtypes=("float32", "float64"))
def check(candidate, name, **options: Any):
    """Asserts, for your own tests, that an implementation breaks no guarantee of the function called ``name``.

    ``docs/guarantees.md`` lists the guarantees. By default they are judged in float32 and float64.
    The implementation is called in this process, which a crash would end.

    Args:
      candidate: a function, a module with parameters, any mapping or object that has a function called ``name``, or a
        :class:`~attnpool_ref.conformance.Candidate`.
      name: the function's name in attnpool, such as "mean_pooling".
      **options: the fields of a :class:`Scope`, and those of a :class:`Candidate` for the calling convention.

    Raises:
      AssertionError: a guarantee is broken; then the message has the cause, if it is known, and the smallest failing
        case as code. Or an argument, such as a mask, or the whole function was never judged, or a waiver waives
        nothing.
      TypeError, ValueError, ModuleNotFoundError: as in :func:`judge`, which takes the same options; here ``only``,
        ``strict`` and ``progress`` are a TypeError.
    """
    __tracebackhide__ = True  # pytest shows the message, and no source of the judge under it
    report = judge(candidate, only=(name,), **options)
    if report.interrupted:
        raise KeyboardInterrupt
    (row,) = report.rows
    failure = report.smallest_failure
    if failure is not None:
        raise AssertionError(row.told(failure))
    if report.idle_waivers:
        idle = "; ".join(f"{guarantee!r}: {why}" for guarantee, why in report.idle_waivers.items())
        raise AssertionError(f"{name}: a waiver waives nothing: {idle}")
    if row.status != PASS:
        why = row.partial or [unasked.why for unasked in row.unasked] or ["there is nothing to judge"]
        raise AssertionError(f"{name}: {row.status}: {'; '.join(why)}")
