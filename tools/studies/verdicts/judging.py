"""Judges an entry, dtype by dtype, and sorts the results by guarantee."""

import importlib.metadata as metadata
import time
from dataclasses import dataclass, field, replace

import verdicts
from attnpool_ref import conformance
from attnpool_ref.conformance.report import BROKEN, HELD, Failure, Kept, RowReport, guarantees

KEPT, BROKE, FOLLOWS, DIFFERS, UNASKED = "kept", "broken", "follows", "differs", "not asked"

GROUPS = {
    "values": (
        guarantees.ANSWER,
        guarantees.SHAPE,
        guarantees.DTYPE,
        guarantees.VALUES,
        "shapes",
        "one argument alone",
        "ties and edges",
    ),
    "masks": (guarantees.MASKED, "arguments that broadcast", "padding amount", "padding side", "deleting is masking"),
    "weights": (guarantees.WEIGHTS, "return_weights"),
    "padding content": (
        "NaN in padding",
        "inf in padding",
        "-inf in padding",
        "1e30 in padding",
        "poison in shared arrays",
    ),
    "fully masked rows": (guarantees.EMPTY,),
    "gradients": (
        guarantees.GRADIENT,
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

VALUES = (
    guarantees.ANSWER,
    guarantees.SHAPE,
    guarantees.DTYPE,
    guarantees.VALUES,
    guarantees.MASKED,
    "one argument alone",
)


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
    for guarantee, laws in ((guarantees.EMPTY, False), ("return_weights", True)):
        found = _row(candidate, entry, dtype, laws=laws, **few).guarantees[guarantee].failures
        if found:
            return found[0]
    return None


def _row(candidate, entry, dtype, **scope):
    (row,) = conformance.judge(candidate, only=(entry.row,), dtypes=(dtype,), whole_contract=True, **scope).rows
    row.guarantees[guarantees.INTEGERS] = Kept(guarantees.INTEGERS)  # which no entry offers
    row.set_status()
    return row


def own_failures(verdict, guarantee):
    """Returns the failures of a guarantee that no other guarantee explains, one for each dtype."""
    kept = (report.guarantees[guarantee] for report in verdict.reports.values())
    return [failure for each in kept if each.status == BROKEN and not each.follows_from for failure in each.failures]


def state(entry, verdict, guarantee):
    """Returns the state of a guarantee in all dtypes together.

    It is broken, or differs (another definition), if it fails in any dtype by itself; else it follows, if another broken
    guarantee explains a failure; else it is kept, or not asked in any dtype. The guarantee on empty rows always differs if
    the entry has ``nothing_real``.
    """
    statuses = [report.guarantees[guarantee].status for report in verdict.reports.values()]
    if guarantee == guarantees.EMPTY and entry.nothing_real:
        return DIFFERS
    if own_failures(verdict, guarantee):
        return DIFFERS if guarantee in entry.differs else BROKE
    if BROKEN in statuses:
        return FOLLOWS
    return KEPT if HELD in statuses else UNASKED


def states(entry, verdict):
    """Returns the state of every guarantee, in the order of the contract's table."""
    return {guarantee.name: state(entry, verdict, guarantee.name) for guarantee in guarantees.GUARANTEES}


def needless(entry, verdict):
    """Returns the differences that the entry names and that the judging did not find."""
    found = [guarantee for guarantee in entry.differs if not own_failures(verdict, guarantee)]
    return found + ([guarantees.EMPTY] if entry.nothing_real and verdict.elsewhere is None else [])


def right_dtypes(verdict):
    """Returns (dtypes in which no guarantee of VALUES is broken, dtypes that were judged)."""
    judged_in = {dtype: report for dtype, report in verdict.reports.items() if report.cases}
    right = [d for d, report in judged_in.items() if all(report.guarantees[p].status != BROKEN for p in VALUES)]
    return right, list(judged_in)
