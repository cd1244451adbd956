"""One row of one candidate: its cases in each dtype, and the checks on each of them."""

import re
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attnpool_ref.conformance import adapters, causes, hazards, searching, verdict
from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.adapters import Untraceable
from attnpool_ref.conformance.calling import NotAsked
from attnpool_ref.conformance.checks import CHECKS, agreeing, situation_of
from attnpool_ref.conformance.promises import GRADIENT
from attnpool_ref.conformance.report import BROKEN, HELD, Cell, Failure, Measure, RowReport, Unasked
from attnpool_ref.conformance.runner import Runner
from attnpool_ref.conformance.subject import Subject
from attnpool_ref.conformance.watch import Watch


@dataclass(frozen=True)
class Scope:
    """What is judged; the arguments of :func:`attnpool_ref.conformance.judge` that say so."""

    dtypes: tuple[str, ...]
    shapes: tuple[str, ...] = drawing.SHAPES
    gradients: bool | tuple[str, ...] = True
    laws: bool = True
    partial: bool = True
    long: bool = True
    examples: int = 0

    def differentiates(self, dtype):
        """Whether gradients are judged in this dtype."""
        return self.gradients if isinstance(self.gradients, bool) else dtype in self.gradients


@dataclass
class Evidence:
    """Cases on which the answer is wrong, in one dtype, for :mod:`~attnpool_ref.conformance.causes`."""

    subject: Subject
    cases: list = field(default_factory=list)


class RowJudge:
    """Judges one row; ``report`` has what was found so far, whenever somebody looks."""

    def __init__(self, row, candidate, scope, step):
        """``step`` is called with a label when a dtype is done."""
        self.row, self.candidate, self.scope, self.step = row, candidate, scope, step
        self.report, self.watch = RowReport(row.name), Watch()
        self.adapter: Any = None
        self.subject: Any = None
        self._exact, self._evidence, self._coverage = {}, [], verdict.Coverage()
        self._began = 0.0

    def run(self):
        """Judges everything, and says what came of it."""
        self._began = time.perf_counter()
        try:
            self.adapter = self._find_adapter()
        except NotAsked as error:
            self.report.unasked.append(Unasked("the row", str(error)))
            return
        self.report.adapter = self.adapter.name
        for dtype in self.scope.dtypes:
            self._judge_dtype(dtype)
            self.step(f"{self.row.name} {dtype}")
        self.finish()
        self.report.causes = causes.of(self._evidence, self.report.promises)

    def finish(self, ended=""):
        """Draws the conclusions from what was judged until now."""
        self.report.seconds = time.perf_counter() - self._began
        self.report.notes = [f"prints: {line}" for line in self.watch.printed]
        self.report.notes += [f"warns: {line}" for line in self.watch.warned]
        verdict.conclude(self.report, self.subject, self.scope, self._coverage, ended)

    def overrun(self, limit):
        """Says of the call that runs now that it took too long."""
        finding = f"{self.watch.title}: no answer within {limit:g} s"
        kept = self.report.promises["an answer"]
        kept.status, kept.cases = BROKEN, kept.cases + 1
        kept.failures.append(Failure(self.row.name, "an answer", self.subject.dtype, finding, "", 10**9))
        self.finish(f"no answer within {limit:g} s")

    # What the candidate is

    def _find_adapter(self):
        """The adapter: asked for, or found. Also makes the first subject."""
        asked = self.candidate.arrays
        if asked is not None:
            adapter = adapters.family(asked) if isinstance(asked, str) else asked
        else:
            adapter = adapters.find(self.candidate.target, self._first_result)
        self.subject = self._subject(adapter, self.scope.dtypes[0])
        why = self.subject.calling.why_not()
        if why:
            raise NotAsked(why)
        self.report.by_place = self.subject.calling.by_place
        return adapter

    def _subject(self, adapter, dtype):
        return Subject(self.row, self.candidate, adapter, dtype, self._exact, self.watch)

    def _first_result(self, adapter):
        """What the candidate gives back for a small case in float32."""
        subject = Subject(self.row, self.candidate, adapter, "float32", {}, self.watch)
        case = next((case for case, _ in self._cases(subject, (), False)), None)
        if case is None:
            raise NotAsked("nothing can be asked")
        result = subject.raw(case)
        while isinstance(result, (tuple, list)) and result:
            result = result[0]
        return result

    def _cases(self, subject, shapes, partial, refused=None):
        """(case, kind) of what the candidate can be asked; what it cannot is noted in ``refused``."""
        seen = set()
        for case, kind in drawing.cases_of(subject.row, subject.calling.restrict, shapes, partial):
            key = _structure(case, kind)
            if key in seen:
                continue
            seen.add(key)
            try:
                fitted = subject.fit(case)
                subject.passed(fitted)
                subject.exact(fitted)
            except (NotAsked, ValueError) as error:  # a rule ties what it takes to what it does not
                if refused is not None:
                    refused.setdefault(str(error), []).append(case.title)
                continue
            yield fitted, kind

    # One dtype

    def _judge_dtype(self, dtype):
        report, scope = self.report, self.scope
        subject = self.subject = self._subject(self.adapter, dtype)
        cell = report.cells[dtype] = Cell()
        why = self._lacks(subject)
        if why:
            report.unasked.append(Unasked(dtype, why))
            return
        first = dtype == scope.dtypes[0]
        evidence, refused = Evidence(subject), {}
        self._evidence.append(evidence)
        for case, kind in self._cases(subject, scope.shapes if first else (), scope.partial and first, refused):
            if kind == "extreme" and dtype == "float16":
                continue  # 1e10 is inf there
            self._judge_case(subject, case, kind, cell, evidence)
        for why, titles in refused.items():
            self._not_asked("; ".join(titles), why)
        for key, why in subject.unasked.items():
            self._not_asked(f"the gradient of `{key}`", why)
        if scope.long and dtype == "float32" and report.cases:
            self._judge_long_sums(subject)
        if first and scope.examples and report.cases:
            self._search(dtype, evidence)

    def _search(self, dtype, evidence):
        """More calls than those that everybody is judged on."""
        subject = Subject(self.row, self.candidate, self.adapter, dtype, {}, self.watch)
        traced = (
            self.scope.differentiates(dtype) and self.adapter.gradient is not None and not self._coverage.untraceable
        )
        for case, situation in searching.search(self.report, subject, self.scope.examples, traced):
            evidence.cases.append((case, situation.weights))

    def _judge_case(self, subject, case, kind, cell, evidence):
        report, scope = self.report, self.scope
        gradients = (
            scope.differentiates(subject.dtype) and self.adapter.gradient is not None and not self._coverage.untraceable
        )
        situation = situation_of(
            subject, case, kind, gradients, scope.laws and subject.dtype == scope.dtypes[0], subject.takes_weights()
        )
        run = Runner(report, subject, case, situation)
        found = run("agreement", agreeing)
        report.cases += 1
        self._coverage.given |= {k for k, v in case.values.items() if v is not None} | set(case.options)
        self._coverage.masks |= {k for k in case.given("mask") if not np.all(case.values[k])}
        if any(finding.message for finding in found):
            evidence.cases.append((case, situation.weights))
        if kind == "main" and found:
            cell.forward = _worst(cell.forward, found[-1])
        for name, check in CHECKS.items():
            if not check.applies(situation):
                continue
            try:
                found = run(name, check.run)
            except Untraceable as error:
                report.promises[GRADIENT].why = self._coverage.untraceable = str(error)
                situation = situation_of(subject, case, kind, False, situation.laws, situation.weights)
                run = Runner(report, subject, case, situation)
                found = run(name, check.run) if check.applies(situation) else []
            if name == "gradient" and found:
                cell.gradient = _worst(cell.gradient, found[0])

    def _not_asked(self, what, why):
        if (what, why) not in [(u.what, u.why) for u in self.report.unasked]:
            self.report.unasked.append(Unasked(what, why))

    def _judge_long_sums(self, subject):
        """Sums over a million tokens, which no smaller case shows: their failure is kept as it is."""
        kept, why = self.report.promises["long sums"], ""
        self.watch.title, found = "a million equal tokens", None
        try:
            found = hazards.long_sums(subject)
        except NotAsked as error:
            kept.why = str(error)
        except Exception as error:  # the candidate's own: whatever it is, it is the finding
            why = f"raises {type(error).__name__}: {error}"
        if found is None and not why:
            return
        message = why if found is None else found.message
        kept.status, kept.cases, kept.dtypes = BROKEN if message else HELD, 1, [subject.dtype]
        if message:
            title = "a million equal tokens" if found is None else found.case.title
            snippet = f"# {title}: an input too long to print"
            kept.failures.append(Failure(self.row.name, "long sums", subject.dtype, message, snippet, 10**6))

    def _lacks(self, subject):
        """Why the candidate cannot be judged in this dtype, or "": its arrays do not have it, or it refuses it."""
        dtype = subject.dtype
        if not self.adapter.supports(dtype):
            return f"{self.adapter.name} arrays have no {dtype} here"
        own = {value.dtype.name for value in subject.parameters.values()}
        if own and own != {dtype}:
            return f"its parameters are {', '.join(sorted(own))}"
        if dtype == "float32":
            return ""
        case = next((case for case, _ in self._cases(subject, (), False)), None)
        if case is None:
            return ""
        try:
            subject.outputs(case)
        except Exception as error:  # the candidate's own, in any words
            if isinstance(error, TypeError) or _REFUSAL.search(str(error)):
                return f"it refuses {dtype} ({type(error).__name__}: {str(error).partition(chr(10))[0][:120]})"
        return ""


_REFUSAL = re.compile(r"bfloat16|float16|float64|\bhalf\b|double|d-?type|not (supported|implemented)", re.IGNORECASE)
"""What an error says that refuses a dtype."""


def _structure(case, kind):
    """What makes a case another one: not the name of the configuration that it was drawn for."""
    given = tuple((k, v.shape, v.dtype.kind) for k, v in case.values.items() if v is not None)
    return kind, given, tuple(sorted(case.options.items())), case.title.partition(", ")[2]


def _worst(measure, finding):
    """The measure that is nearer to its limit."""
    new = Measure(finding.error, finding.allowed, finding.case.title)
    if measure is None:
        return new

    def ratio(m):
        return m.error / m.allowed if m.allowed else (np.inf if m.error else 0.0)

    return new if ratio(new) > ratio(measure) else measure
