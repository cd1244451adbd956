"""Results of a judgment, as data: for each function the causes, the results of guarantees, and the skipped checks.

``guarantees`` is the table of guarantees. A waiver names a guarantee that need not hold, ``"1e30 in padding"``, or that of
one function, ``"mean_pooling/1e30 in padding"``. It waives no other guarantee: one that is broken because of the waived
one is still a failure.
"""

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from attnpool_ref import table
from attnpool_ref.conformance.report.guarantees import BY_NAME, DTYPE, GUARANTEES, explained_by
from attnpool_ref.table import did_you_mean

SCHEMA_VERSION = 1

HELD, BROKEN, NOT_APPLICABLE = "held", "broken", "n/a"
PASS, FAIL, PARTIAL, MISSING = "pass", "fail", "partial", "missing"
EXIT = {PASS: 0, FAIL: 1, PARTIAL: 3}
"""Exit status of the command for each verdict; 2 means that the command was used wrongly, 130 that Ctrl-C ended it."""


@dataclass
class Measure:
    """Error that is largest relative to its allowed error, and the title of its case.

    Both errors are in units of the dtype's epsilon times the magnitude of the result.
    """

    error: float
    allowed: float
    case: str

    @property
    def passed(self):
        """Whether the error was allowed; NaN never is."""
        return self.error <= self.allowed


@dataclass
class Cell:
    """Worst errors of one function in one dtype; None for a result or gradient that was not judged.

    Attributes:
      forward: the worst error of the results in mixed batches (examples with different masks) of ordinary numbers.
      gradient: the worst error of the gradients.
    """

    forward: Measure | None = None
    gradient: Measure | None = None


@dataclass
class Compared:
    """One array of a result in a failing case, as nested lists of plain numbers.

    Attributes:
      name: "the result" or "the weights", or such as "result 2 of 2" and "weights 1 of 2" if there are several.
      expected: the result of the definition.
      got: the implementation's result.
    """

    name: str
    expected: Any
    got: Any


@dataclass
class Failure:
    """Failure of a guarantee, with the smallest arguments that were found.

    Attributes:
      row: the name of the function.
      check: the name of the guarantee.
      dtype: the dtype in which the guarantee failed, or "" if none was judged.
      message: the actual and the needed result.
      snippet: code that shows the failure at a prompt; a comment, or "", if there is no such code.
      size: the number of elements of all arguments; a very large number if the arguments are not known, and 0 if the
        implementation lacks the function.
      arrays: the expected and the actual result, if the result itself is wrong and small enough to show.
      hint: a clause with the option that may change the result, or "".
      prompt: the kind of prompt at which ``snippet`` runs, "Python" or "shell".
    """

    row: str
    check: str
    dtype: str
    message: str
    snippet: str
    size: int
    arrays: list[Compared] = field(default_factory=list)
    hint: str = ""
    prompt: str = "Python"


@dataclass
class Kept:
    """Result for one guarantee.

    Attributes:
      guarantee: the guarantee's name, a key of :data:`~attnpool_ref.conformance.report.BY_NAME`.
      status: "held", "broken" or "n/a".
      why: the reason for "n/a".
      follows_from: the broken guarantee that explains this one, or "".
      waived: the reason of the waiver if the guarantee is broken and waived, else "".
      cases: how often the guarantee was tested; a case counts twice if it is called with and without the weights.
      dtypes: the dtypes in which the guarantee was tested.
      failures: in each dtype the first failing case, made small.
      notes: deviations that break the guarantee only with an option.
    """

    guarantee: str
    status: str = NOT_APPLICABLE
    why: str = ""
    follows_from: str = ""
    waived: str = ""
    cases: int = 0
    dtypes: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def smallest(self):
        """The failure with the smallest arguments, or None."""
        return min(self.failures, key=lambda failure: failure.size, default=None)


@dataclass
class Unasked:
    """Case, check or argument that was skipped (``what``), and the reason (``why``)."""

    what: str
    why: str


@dataclass
class RowReport:
    """Report of one function.

    Attributes:
      name: the name of the function.
      status: "pass", "fail", "partial", "missing" or "n/a".
      causes: the known mistakes that explain wrong results, in words; those that explain values come first.
      explained: for each cause its numbers, the dtypes in which it was found, and how many of the wrong cases it
        explains.
      cells: worst errors, by dtype.
      guarantees: the result for each guarantee, by name.
      partial: the reasons why the status is "partial" and not "pass".
      unasked: the cases, checks and arguments that were skipped, each with the reason.
      notes: the implementation's output, its warnings, and deviations that break only optional guarantees.
      by_place: the arguments that were matched by position only: the implementation's name for each name of the
        function.
      adapter: the array family.
      cases: the number of cases that were judged.
      seconds: the duration of the judging.
      ended: why the judging ended early, or "".
      proposed: options of the command with which to judge again, such as "--batched", or "".
    """

    name: str
    status: str = NOT_APPLICABLE
    causes: list[str] = field(default_factory=list)
    explained: dict[str, str] = field(default_factory=dict)
    cells: dict[str, Cell] = field(default_factory=dict)
    guarantees: dict[str, Kept] = field(
        default_factory=lambda: {guarantee.name: Kept(guarantee.name) for guarantee in GUARANTEES}
    )
    partial: list[str] = field(default_factory=list)
    unasked: list[Unasked] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    by_place: dict[str, str] = field(default_factory=dict)
    adapter: str = ""
    cases: int = 0
    seconds: float = 0.0
    ended: str = ""
    proposed: str = ""

    @property
    def broken(self):
        """The broken guarantees; those that no other guarantee explains come first."""
        broken = [kept for kept in self.guarantees.values() if kept.status == BROKEN]
        return sorted(broken, key=lambda kept: bool(kept.follows_from))

    @property
    def accused(self):
        """The broken guarantees that no other one explains and that are not waived: they decide the verdict."""
        return [kept for kept in self.broken if not kept.follows_from and not kept.waived]

    def following(self, guarantee):
        """Returns the names of the broken guarantees that the guarantee ``guarantee`` explains."""
        return [kept.guarantee for kept in self.broken if kept.follows_from == guarantee]

    def set_status(self):
        """Sets ``status``, the verdict, from the results of the guarantees and from ``partial``."""
        if self.accused:
            self.status = FAIL
        elif not any(kept.status == HELD for kept in self.guarantees.values()):
            self.status = NOT_APPLICABLE
        else:
            self.status = PARTIAL if self.partial else PASS

    @property
    def failures(self):
        """All failures; those of guarantees that no other explains come first."""
        return [failure for kept in self.broken for failure in kept.failures]

    @property
    def sentences(self):
        """The causes, each with what it explains in parentheses."""
        return [f"{cause} ({self.explained[cause]})" if self.explained.get(cause) else cause for cause in self.causes]

    def told(self, failure):
        """Returns a failure as the message of a test: the cause, the actual and the expected result, and the code."""
        dtype = f" ({failure.dtype})" if failure.dtype else ""
        lines = [*self.sentences, f"{failure.check}{dtype}: {failure.message}{failure.hint}"]
        return f"{self.name}: {chr(10).join(lines)}\n\n{failure.snippet}".rstrip()


@dataclass
class Report:
    """Report of one implementation, with all functions.

    Attributes:
      candidate: the implementation's name.
      device: the name of the device.
      versions: the versions of the packages that affect the numbers.
      rows: the reports of the functions.
      calls: the implementation's calling convention, where it differs from the functions'.
      seed: the seed of the drawn cases, in addition to their names.
      interrupted: whether the judging was stopped by Ctrl-C.
      waivers: all waivers that were given, each with its reason.
      idle_waivers: the waivers that waived nothing, each with the reason why; none if the judging was interrupted.
    """

    candidate: str
    device: str
    versions: dict[str, str]
    rows: list[RowReport]
    calls: dict = field(default_factory=dict)
    seed: str = ""
    interrupted: bool = False
    waivers: dict[str, str] = field(default_factory=dict)
    idle_waivers: dict[str, str] = field(default_factory=dict)

    @property
    def verdict(self):
        """Verdict of all functions: "fail", "partial" or "pass".

        It is "fail" if a function failed or a waiver waived nothing. Otherwise it is "partial" if a function is
        "partial" or the judging was interrupted. Otherwise it is "pass" if a function passed, and "fail" if none could
        be judged.
        """
        statuses = {row.status for row in self.rows}
        if FAIL in statuses or self.idle_waivers:
            return FAIL
        if PARTIAL in statuses or self.interrupted:
            return PARTIAL
        return PASS if PASS in statuses else FAIL

    @property
    def passed(self):
        """Whether the verdict is "pass"."""
        return self.verdict == PASS

    @property
    def smallest_failure(self):
        """The failure with the smallest arguments of those that decide the verdict, or None; first those of values."""
        failures = [failure for row in self.rows for kept in row.accused for failure in kept.failures]
        return min(failures, key=lambda failure: (failure.check == DTYPE, failure.size), default=None)

    def __str__(self):
        """Returns the verdict of each function that the implementation has, with the message of its smallest failure."""
        lines = [f"{self.candidate}: {self.verdict}"]
        for row in self.rows:
            failures = [failure for kept in row.accused for failure in kept.failures]
            smallest = min(failures, key=lambda failure: failure.size, default=None)
            if row.status != MISSING:
                lines.append(row.told(smallest) if smallest else "; ".join([f"{row.name}: {row.status}", *row.partial]))
        return "\n".join(lines)

    def as_dict(self):
        """Returns the report as dicts, lists, numbers, booleans, strings and None; ``docs/embedding.md`` has the keys.

        NaN and infinities are floats; :func:`~attnpool_ref.conformance.formats.as_json` makes them strings. Maintainers
        increase :data:`SCHEMA_VERSION` when a key changes its meaning or is removed, not when
        one is added.
        """
        rows = [asdict(row) for row in self.rows]
        for row, source in zip(rows, self.rows, strict=True):
            for dtype, cell in source.cells.items():
                for kind, measure in vars(cell).items():
                    if measure is not None:
                        row["cells"][dtype][kind]["passed"] = measure.passed
        return {
            "schema_version": SCHEMA_VERSION,
            **{each.name: getattr(self, each.name) for each in fields(self) if each.name != "rows"},
            "verdict": self.verdict,
            "passed": self.passed,
            "guarantees": {name: {"says": p.says, "line": p.line} for name, p in BY_NAME.items()},
            "rows": rows,
        }


def check_waivers(waive):
    """Raises a ValueError if a waiver names an unknown guarantee or function, or has no reason."""
    for name, reason in waive.items():
        row, guarantee = _parts_of_waiver(name)
        if row:
            table.get(row)
        if guarantee not in BY_NAME:
            raise ValueError(f"no guarantee is called {guarantee!r}{did_you_mean(guarantee, BY_NAME)}")
        if not str(reason).strip():
            raise ValueError(f"the waiver of {name!r} needs a reason")


def apply_waivers(rows, waive):
    """Applies waivers to the reports of functions, and returns those that waived nothing, each with the reason why.

    ``waive`` maps names to reasons, as validated by :func:`check_waivers`.
    """
    idle = {}
    for name, reason in waive.items():
        row_name, guarantee = _parts_of_waiver(name)
        meant = [row for row in rows if not row_name or row.name == row_name]
        broken = [row for row in meant if row.guarantees[guarantee].status == BROKEN]
        for row in broken:
            row.guarantees[guarantee].waived = str(reason)
        if not meant:
            idle[name] = f"{row_name} was not judged"
        elif not broken:
            statuses = {row.guarantees[guarantee].status for row in meant}
            idle[name] = "it holds" if "held" in statuses else "it was not judged"
    for row in rows:
        _excuse(row)
    return idle


def _parts_of_waiver(name):
    """Splits the name of a waiver into (function or "", guarantee)."""
    row, _, guarantee = name.rpartition("/")
    return row, guarantee


def _excuse(row):
    """Updates which guarantees explain others, so that no waived one does, and the verdict of the function."""
    if not any(kept.waived for kept in row.guarantees.values()):
        return
    dtypes = {kept.guarantee: {failure.dtype for failure in kept.failures} for kept in row.broken}
    explaining = {name: found for name, found in dtypes.items() if not row.guarantees[name].waived}
    for kept in row.broken:
        explains = explaining | {kept.guarantee: dtypes[kept.guarantee]}
        kept.follows_from = "" if kept.waived else explained_by(kept.guarantee, explains)
    if row.status == FAIL:
        row.set_status()
