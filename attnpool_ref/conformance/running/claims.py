"""Tests of single guarantees, for pytest and unittest: a function is judged once, when its first test runs."""

import functools
import unittest
from typing import Any

from attnpool_ref import table
from attnpool_ref.conformance.candidates import Candidate, as_candidate, single
from attnpool_ref.conformance.report import FAIL, HELD, NOT_APPLICABLE, PASS
from attnpool_ref.conformance.report.guarantees import BY_NAME
from attnpool_ref.conformance.running.judge import judge
from attnpool_ref.conformance.scope import Scope
from attnpool_ref.table import did_you_mean

WHOLE = "nothing left out"
"""Name of the test that every mask and argument of the implementation was judged, so that "pass" is not "partial"."""

NONE = "the implementation has none of attnpool's functions; name the one that it is"


def each_guarantee(candidate, *rows, **asked: Any):
    """Returns a :class:`Claim` for each guarantee of each function, for ``pytest.mark.parametrize`` or ``subTest``.

    One more claim for each function, "nothing left out", is that every mask and argument of the implementation was
    judged.

    The implementation is called in this process, which a crash would end; ``pytest --attnpool`` uses a child process.

    Args:
      candidate: as in :func:`~attnpool_ref.conformance.judge`, with ``rows`` in place of ``only``.
      *rows: names of functions; without any, all functions that the implementation has.
      **asked: arguments of :func:`~attnpool_ref.conformance.judge` but ``only``, such as dtypes and the calling
        convention.

    Returns:
      A list. Nothing is judged yet: a function is judged when ``check`` of one of its claims is first called, which
      then also raises the errors of :func:`~attnpool_ref.conformance.judge` about wrong values of options.

    Raises:
      TypeError: the judge has no such argument, or ``candidate`` is a Candidate and ``asked`` has a calling convention.
      ValueError: no attnpool function or form of masks has such a name, or ``rows`` is empty and the implementation
        has no function.
    """
    known = {"name", "progress", *Scope.__dataclass_fields__, *Candidate.__dataclass_fields__} - {"only", "target"}
    for key in asked:
        if key not in known:
            raise TypeError(f"the judge has no argument {key!r}{did_you_mean(key, known)}")
    calls = {key: asked.pop(key) for key in Candidate.__dataclass_fields__ if key in asked}
    whole = as_candidate(candidate, calls)
    names = [table.get(name).name for name in rows] or whole.rows()
    if not names:
        raise ValueError(f"{NONE}: each_guarantee(candidate, NAME)")

    def judge_row(name):
        found = single(whole, name)
        # a mapping, so that a single function is judged like one of several
        return judge(whole if found is None else {name: found}, only=(name,), **asked)

    return claims_of(names, judge_row)


def claims_of(names, judge_row):
    """Returns a :class:`Claim` for each guarantee of each function, and one more for each function, :data:`WHOLE`.

    ``judge_row`` takes a function's name and returns the judge's report with this function only. It is called when the
    first claim of the function is checked.
    """

    @functools.cache
    def report_of(name):
        report = judge_row(name)
        if report.interrupted:
            raise KeyboardInterrupt
        return report.rows[0]

    judgements = [(name, report_of, len(names) == 1) for name in names]
    return [Claim(judgement, guarantee) for judgement in judgements for guarantee in (*BY_NAME, WHOLE)]


class Claim:
    """One guarantee of one function; its name is the test's id in pytest.

    Attributes:
      row: the function's name.
      guarantee: the guarantee's name, or :data:`WHOLE`.
    """

    def __init__(self, judgement, guarantee):
        """``judgement``: the function's name, a function from it to its report, and whether it is the only one."""
        self.row, self._report_of, self._alone = judgement
        self.guarantee = guarantee
        self.__name__ = guarantee if self._alone else f"{self.row}: {guarantee}"

    def __repr__(self):
        return f"<{self.row}: {self.guarantee}>"

    def check(self):
        """Returns without an error if the guarantee holds; for :data:`WHOLE`, if the verdict is "pass".

        Raises:
          AssertionError: the guarantee is broken; with the cause if it is known, and the smallest failing case as code.
            For :data:`WHOLE`: the verdict is "partial", or "n/a" and no other function is tested.
          KeyboardInterrupt: the user has stopped the judging.
          unittest.SkipTest: the guarantee was not judged, or is broken but waived or explained by another one; with the
            reason. For :data:`WHOLE`: the verdict is "fail", or "n/a" and other functions are tested.
        """
        __tracebackhide__ = True
        report = self._report_of(self.row)
        if self.guarantee == WHOLE:
            return _check_whole(report, self._alone)
        kept = report.guarantees[self.guarantee]
        if kept.status == HELD:
            return None
        if kept.status == NOT_APPLICABLE:
            raise unittest.SkipTest(kept.why or _why_nothing(report))
        if kept.waived:
            raise unittest.SkipTest(f"waived: {kept.waived}")
        if kept.follows_from:
            raise unittest.SkipTest(f"broken, which follows from: {kept.follows_from}")
        raise AssertionError(report.told(kept.smallest))


def _check_whole(report, alone):
    __tracebackhide__ = True
    if report.status == PASS:
        return
    if report.status == FAIL:
        raise unittest.SkipTest(f"broken: {', '.join(kept.guarantee for kept in report.accused)}")
    if report.status == NOT_APPLICABLE and not alone:
        raise unittest.SkipTest(_why_nothing(report))
    if report.status == NOT_APPLICABLE:
        raise AssertionError(f"{report.name}: nothing was judged: {_why_nothing(report)}")
    raise AssertionError(f"{report.name} is {report.status}: {'; '.join(report.partial)}")


def _why_nothing(report):
    return "; ".join(unasked.why for unasked in report.unasked) or "nothing was judged"
