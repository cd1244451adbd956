"""Judges an entry, dtype by dtype, and sorts the results by guarantee."""

import importlib.metadata as metadata
import time
from dataclasses import dataclass, field, replace

import verdicts
from attnpool_ref import conformance
from attnpool_ref.conformance.report import BROKEN, HELD, Failure, RowReport, promises

KEPT, BROKE, FOLLOWS, DIFFERS, UNASKED = "kept", "broken", "follows", "differs", "not asked"

GROUPS = {
    "values": (
        promises.ANSWER,
        promises.SHAPE,
        promises.DTYPE,
        promises.VALUES,
        "shapes",
        "one argument alone",
        "ties and edges",
    ),
    "masks": (promises.MASKED, "arguments that broadcast", "padding amount", "padding side", "deleting is masking"),
    "weights": (promises.WEIGHTS, "return_weights"),
    "padding content": (
        "NaN in padding",
        "inf in padding",
        "-inf in padding",
        "1e30 in padding",
        "poison in shared arrays",
    ),
    "fully masked rows": (promises.EMPTY,),
    "gradients": (
        promises.GRADIENT,
        "finite gradients",
        "second derivatives",
        "forward over reverse",
    ),
    "numbers": ("extreme scores", "far from 0", "sums that cancel", "mixed dtypes", "long sums"),
    "order and batch": ("permuting", "shifting the scores", "batch mates", "NaN at a real token"),
    "purity": (
        "inputs unchanged",
        "the same answer twice",
        "random state untouched",
        "no warnings",
        "jit and vmap",
        "one program",
    ),
}
"""Guarantees in the groups in which the page counts them."""

VALUES = (promises.ANSWER, promises.SHAPE, promises.DTYPE, promises.VALUES, promises.MASKED, "one argument alone")


@dataclass
class Verdict:
    """Result of judging an entry.

    Attributes:
      entry: the entry's name.
      reports: for each dtype the row's report.
      elsewhere: the failure for fully masked rows if the entry defines these differently, None if the result is 0.
      own: the names of the parameters that the implementation holds itself.
      versions: the versions of its packages.
      seconds: the duration of the judging.
    """

    entry: str
    reports: dict[str, RowReport]
    elsewhere: Failure | None = None
    own: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def judged(entry):
    """Returns the :class:`Verdict` of an entry.

    Only the first dtype has other shapes, gradients, invariances, ties, and calls that omit some of the arguments.
    """
    began, reports, elsewhere = time.perf_counter(), {}, None
    for dtype in entry.dtypes:
        candidate = replace(entry.make(dtype), some_real=bool(entry.nothing_real))
        first = dtype == entry.dtypes[0]
        rest = {} if first else {"shapes": (), "laws": False, "partial": False, "gradients": False}
        reports[dtype] = _row(candidate, entry, dtype, long=entry.long and first, **rest)
        if first and entry.nothing_real:
            elsewhere = _elsewhere(replace(candidate, some_real=False), entry, dtype)
    versions = {package: metadata.version(package) for package in entry.packages}
    own = tuple(verdicts.parameters_of(entry.name)) if entry.name in verdicts.BY_NAME else ()
    return Verdict(entry.name, reports, elsewhere, own, versions, time.perf_counter() - began)


def _elsewhere(candidate, entry, dtype):
    """Returns the failure for fully masked rows if their result is not 0, with weights or without them, else None."""
    few = {"shapes": (), "partial": False, "gradients": False, "long": False}
    for promise, laws in ((promises.EMPTY, False), ("return_weights", True)):
        found = _row(candidate, entry, dtype, laws=laws, **few).promises[promise].failures
        if found:
            return found[0]
    return None


def _row(candidate, entry, dtype, **scope):
    (row,) = conformance.judge(candidate, only=(entry.row,), dtypes=(dtype,), whole_contract=True, **scope).rows
    return row


def own_failures(verdict, promise):
    """Returns the failures of a promise that no other promise explains, one for each dtype."""
    kept = (report.promises[promise] for report in verdict.reports.values())
    return [failure for each in kept if each.status == BROKEN and not each.follows_from for failure in each.failures]


def state(entry, verdict, promise):
    """Returns the state of a promise in all dtypes together.

    It is broken, or differs (another definition), if it fails in any dtype by itself; else it follows, if another broken
    promise explains a failure; else it is kept, or not asked in any dtype. The promise on empty rows always differs if
    the entry has ``nothing_real``.
    """
    statuses = [report.promises[promise].status for report in verdict.reports.values()]
    if promise == promises.EMPTY and entry.nothing_real:
        return DIFFERS
    if own_failures(verdict, promise):
        return DIFFERS if promise in entry.differs else BROKE
    if BROKEN in statuses:
        return FOLLOWS
    return KEPT if HELD in statuses else UNASKED


def states(entry, verdict):
    """Returns the state of every promise, in the order of the contract's table."""
    return {promise.name: state(entry, verdict, promise.name) for promise in promises.PROMISES}


def needless(entry, verdict):
    """Returns the differences that the entry names and that the judging did not find."""
    found = [promise for promise in entry.differs if not own_failures(verdict, promise)]
    return found + ([promises.EMPTY] if entry.nothing_real and verdict.elsewhere is None else [])


def right_dtypes(verdict):
    """Returns (dtypes in which no promise of VALUES is broken, dtypes that were judged)."""
    judged_in = {dtype: report for dtype, report in verdict.reports.items() if report.cases}
    right = [d for d, report in judged_in.items() if all(report.promises[p].status != BROKEN for p in VALUES)]
    return right, list(judged_in)
