"""Judging of one function: draws its cases in each dtype, runs the checks on each of them, and completes the report.

The report then says which guarantees explain others, and which arguments and checks were not judged, and why.
"""

import functools
import itertools
import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance import causes
from attnpool_ref.conformance.candidates import adapters, held_parameters
from attnpool_ref.conformance.candidates.adapters import Untraceable
from attnpool_ref.conformance.candidates.calling import NotApplicable
from attnpool_ref.conformance.candidates.capture import Watch, said
from attnpool_ref.conformance.checks import CHECKS, Situation, definition, gradients, optional_checks
from attnpool_ref.conformance.checks.padding import POISONS
from attnpool_ref.conformance.checks.subject import Subject
from attnpool_ref.conformance.report import (
    BROKEN,
    HELD,
    NOT_APPLICABLE,
    Cell,
    Failure,
    Measure,
    RowReport,
    Unasked,
    promises,
)
from attnpool_ref.conformance.report.promises import ANSWER, DTYPE, GRADIENT, SHAPE
from attnpool_ref.conformance.running.runner import Runner
from attnpool_ref.conformance.running.suggestions import proposed
from attnpool_ref.conformance.scope import Scope
from attnpool_ref.contract.text import listed

TELLING = ("main", "shape", "way", "exact", "extreme", "far")
"""Kinds of cases whose wrong results are compared with known mistakes."""

LONG_SUMS = "long sums"
"""Guarantee whose check draws its own cases, in each dtype but float64."""

BATCH = 8
"""Number of functions after which adapters clear their compiled programs."""

STOPPED = "stopped by Ctrl-C"

ONLY_BATCHED = "right for data with one batch axis only, such as [B, L, d]: add --batched, batched=True"
"""Cause in words if all results with one batch axis are right, and no other results are."""


class InternalError(RuntimeError):
    """Error of the judge itself, not of the implementation or of the arguments."""


@dataclass
class Evidence:
    """Cases in one dtype from which :mod:`~attnpool_ref.conformance.causes` finds causes.

    Attributes:
      subject: the implementation in this dtype.
      cases: (case, return_weights) of wrong results.
      right: (case, return_weights) of right results.
      poisoned: mixed batches (examples with different masks) in which NaN in padding changes a result or a gradient.
    """

    subject: Subject
    cases: list = field(default_factory=list)
    right: list = field(default_factory=list)
    poisoned: list = field(default_factory=list)


class RowJudge:
    """Judge of one function; ``report`` has the results so far at any time, and all of them after :meth:`run`.

    ``lost`` has cases that ended other processes, as (dtype, title), each with how: they fail without a call.
    """

    def __init__(self, row, candidate, scope: Scope, step):
        """``step`` is called with the names of function and dtype when a dtype is done."""
        self.row, self.candidate, self.scope, self.step = row, candidate, scope, step
        self.report, self.watch = RowReport(row.name), Watch()
        self.lost: dict[tuple[str, str], str] = {}
        self.adapter: Any = None
        self.subject: Any = None
        self._exact, self._evidence = {}, []
        # the arguments and options that were given, the masks that had padding in them, and why there is no gradient
        self._given, self._masks, self._untraceable = set(), set(), ""
        self._right_of_rank = {}
        self._began, self.done, self._reference, self._proposal = 0.0, False, None, ""

    def run(self):
        """Judges the function in all dtypes, and completes the report."""
        before = drawing.SEED.set(self.scope.seed)
        try:
            with np.errstate(all="ignore"):  # warnings about the judge's own arithmetic are not of interest
                self._run()
        finally:
            drawing.SEED.reset(before)
        self.done = True

    def _run(self):
        self._began = time.perf_counter()
        try:
            self.adapter = self._find_adapter()
        except NotApplicable as error:
            self.report.unasked.append(Unasked("the row", str(error)))
            return
        own = self._own_dtypes(self.subject)
        first = sorted(self.scope.dtypes, key=lambda dtype: dtype not in own)  # most checks run in the first dtype only
        self.scope = replace(self.scope, dtypes=tuple(first))
        try:
            self._judge()
        except Exception as error:
            raise InternalError(
                f"internal error of attnpool, please report it: {type(error).__name__}: {error} "
                f"({self.row.name}, {self.watch.title})"
            ) from error

    def _judge(self):
        self.report.adapter, self._reference = self.adapter.name, self._find_reference()
        for dtype in self.scope.dtypes[:-1]:
            self._judge_dtype(dtype)
            self.step(f"{self.row.name} {dtype}")
        self._judge_dtype(self.scope.dtypes[-1])
        self.finish()
        only_batched = self._is_right_only_batched()
        for evidence in self._evidence if only_batched else ():
            evidence.cases.clear()
        found = [causes.Cause(self._proposal)] if self._proposal else []
        found = found or causes.diagnose(self._evidence, self.report.promises)
        self.report.causes = [ONLY_BATCHED] * only_batched + [cause.words for cause in found]
        self.report.explained = {cause.words: cause.evidence for cause in found}
        self.step(f"{self.row.name} {self.scope.dtypes[-1]}")

    def finish(self, ended=""):
        """Completes the report from all results so far; ``ended`` is the reason why the judging ended early, or ""."""
        if self.subject is None:
            self.report.partial += [ended] if ended else []
            return
        self.report.seconds = time.perf_counter() - self._began
        self.report.notes = [f"prints: {line}" for line in self.watch.printed]
        self.report.notes += [f"warns: {line}" for line in self.watch.warned]
        self.report.notes += [f"{k}: {note}" for k, kept in self.report.promises.items() for note in kept.notes]
        self.report.ended = ended
        broken = {kept.promise: {failure.dtype for failure in kept.failures} for kept in self.report.broken}
        for name, kept in self.report.promises.items():
            if kept.status == BROKEN:
                kept.follows_from = promises.explained_by(name, broken)
            elif kept.notes and promises.BY_NAME[name].asked not in ("", *self.scope.demands):
                kept.status, kept.why = NOT_APPLICABLE, kept.notes[0]
            elif kept.status == NOT_APPLICABLE and not kept.why:
                kept.why = kept.notes[0] if kept.notes else _why(name, self.report, self.subject, self.scope, broken)
        calling = self.subject.calling
        for key in calling.not_taken():
            why = "it has no such argument"
            self.report.unasked.append(Unasked(f"`{key}`" + _default(calling.default(key)), why))
        self.report.partial = list(self._partial())
        self.report.set_status()

    def _partial(self):
        """Yields the reasons why a function that broke no guarantee has not passed."""
        subject, calling = self.subject, self.subject.calling
        for key in calling.unjudged:
            yield (
                f"its argument `{key}` was never given: say what it is (arguments={{{key!r}: NAME}}, --arg {key}=NAME), "
                f"or that it may stay as it is (leave=({key!r},), --leave {key})"
            )
        for key, argument in subject.row.arguments.items():
            if key in subject.parameters:
                continue
            hides = calling.takes(key) or calling.takes(argument.lengths) or key in calling.candidate.leave
            if argument.kind == "mask" and not hides:
                yield (
                    f"it takes no `{key}`, so its padding was never judged: if it is meant to have none, say so "
                    f"(leave=({key!r},), --leave {key})"
                )
            if key not in calling.declared:
                continue
            if argument.kind == "mask" and key not in self._masks:
                yield f"its mask `{calling.names.get(key, key)}` was never given with padding in it"
            elif self.scope.partial and argument.kind != "mask" and key not in self._given:
                yield f"its argument `{calling.names[key]}` was never given"
        if self._untraceable:
            yield f"its gradient was never judged: {self._untraceable}"
        if self.report.ended:
            yield self.report.ended

    # The implementation

    def _find_adapter(self):
        """Returns the adapter that ``Candidate.arrays`` names, or the detected one; also sets ``subject``.

        Raises:
          NotApplicable: the function cannot be judged with this calling convention.
        """
        asked = self.candidate.arrays
        if asked is not None:
            adapter = adapters.family(asked) if isinstance(asked, str) else asked
        else:
            adapter = adapters.find(self.candidate.target, self._first_result)
        self.subject = self._subject(adapter, self.scope.dtypes[0])
        why, undescribed = self.subject.calling.why_not(), self._undescribed()
        if why:
            raise NotApplicable("; ".join(filter(None, (why, undescribed))))
        if undescribed:
            self.report.unasked.append(Unasked("its parameters", undescribed))
        self.report.by_place = self.subject.calling.by_place
        return adapter

    def _undescribed(self):
        """Returns a sentence about parameters that the implementation holds and ``parameters`` does not name, or ""."""
        given = self.candidate.parameters
        names = [] if callable(given) else held_parameters.as_kernels(self.candidate.target)
        if given and not callable(given):
            names = [n for n in names if not any(f"{p}.".startswith((f"{n}.", f"{n}[")) for p in given.values())]
            return f"it holds {listed(names)}, which no --parameter names" if names else ""
        if not names:
            return ""
        return (
            f"it holds {listed(names)}: say which argument of the row each is, by its attribute (--parameter "
            f"ARGUMENT={names[0]}, parameters={{ARGUMENT: {names[0]!r}}})"
        )

    def _subject(self, adapter, dtype):
        return Subject(self.row, self.candidate, adapter, dtype, self._exact, self.watch, self.scope.demands)

    def _first_result(self, adapter):
        """Returns the first array of the implementation's result for a small case in float32.

        Raises:
          NotApplicable: the implementation takes no case of the function.
        """
        subject = Subject(self.row, self.candidate, adapter, "float32", {}, self.watch)
        case = next((case for case, _ in self._cases(subject, (), False)), None)
        if case is None:
            raise NotApplicable("it takes no case of this function")
        self.watch.title = case.title
        result = subject.raw(case)
        while isinstance(result, (tuple, list)) and result:
            result = result[0]
        return result

    def _cases(self, subject, shapes, partial, refused=None, of_dtype=False):
        """Yields (case, kind) for each case that the implementation takes.

        ``refused``, a dict from reasons to titles, gets the others. ``shapes`` and ``partial`` are those of
        ``cases.cases_of``; with ``of_dtype`` there are also the cases of ``cases.cases_in``.
        """
        seen, restrict = set(), subject.calling.restrict
        drawn = drawing.cases_of(subject.row, restrict, shapes, partial, optional_checks.CONTRACT in subject.demands)
        of_this_dtype = drawing.cases_in(subject.row, subject.dtype, restrict, self.scope.integers) if of_dtype else ()
        for case, kind in itertools.chain(drawn, of_this_dtype):
            if not all(dtype.startswith("int") or self.adapter.supports(dtype) for dtype in case.dtypes.values()):
                continue
            key = _structure(case, kind)
            if key in seen:
                continue
            seen.add(key)
            try:
                fitted = subject.fit(case)
                subject.passed(fitted)
                subject.exact(fitted)
            except (NotApplicable, ValueError) as error:  # or a rule needs an argument that it does not take
                if refused is not None:
                    refused.setdefault(str(error), []).append(case.title)
                continue
            yield fitted, kind

    # One dtype

    def _judge_dtype(self, dtype):
        report, scope = self.report, self.scope
        if self._proposal:
            return
        # the subject in float64 is also the reference for gradients in other dtypes
        subject = self._reference if dtype == "float64" and self._reference else self._subject(self.adapter, dtype)
        self.subject = subject
        cell = report.cells[dtype] = Cell()
        why = self._lacks(subject)
        if why:
            report.unasked.append(Unasked(dtype, why))
            return
        first = dtype == scope.dtypes[0]
        evidence, refused = Evidence(subject), {}
        self._evidence.append(evidence)
        shapes = scope.shapes if first else ()
        for case, kind in self._cases(subject, shapes, scope.partial and first, refused, True):
            if kind == "extreme" and dtype == "float16":
                continue  # 1e10 is inf there
            if not first and not scope.judges_whole(case):
                continue
            if kind == "far" and subject.is_narrow:
                continue  # near 1000 the numbers of narrow dtypes are at least 0.5 apart
            self._judge_case(subject, case, kind, cell, evidence)
            self._proposal = proposed(subject)
            if self._proposal:
                return
        for why, titles in refused.items():
            self._skipped("; ".join(titles), why)
        for key, why in subject.skipped.items():
            self._skipped(f"the gradient of `{key}`", why)
        if not report.cases:
            return
        if scope.long and dtype != "float64":
            self._judge_long_sums(subject)

    def _find_reference(self):
        """Returns the subject in float64, the reference for other gradients; None if its gradients are not judged."""
        scope = self.scope
        if "float64" not in scope.dtypes or not scope.differentiates("float64") or self.adapter.gradient is None:
            return None
        wide = self._subject(self.adapter, "float64")
        return None if self._lacks(wide) else wide

    def _judge_case(self, subject, case, kind, cell, evidence):
        report, scope = self.report, self.scope
        if how := self.lost.get((subject.dtype, case.title)):
            _unreturned(report, ANSWER, subject.dtype, f"{case.title}: {how}")
            return
        first, possible = subject.dtype == scope.dtypes[0], self.adapter.gradient is not None
        gradients = possible and scope.differentiates(subject.dtype) and scope.judges_whole(case)
        gradients = gradients and not self._untraceable
        situation = Situation(subject, case, kind, first, gradients, scope.laws and first, self._reference)
        run, wrong = Runner(report, subject, case, situation), []
        for weights in situation.with_weights:
            found = run("agreement", functools.partial(definition.agreement_by_guarantee, return_weights=weights))
            if any(finding.message and finding.check != DTYPE for finding in found):
                wrong.append(weights)
            if not any(finding.excused for finding in found):
                self._right_of_rank.setdefault(len(case.batch), set()).add(not wrong)
            for finding in found if kind == "main" else ():
                if finding.check != DTYPE and (finding.message or finding.check not in (ANSWER, SHAPE)):
                    cell.forward = _worst(cell.forward, finding)
        report.cases += 1
        if proposed(subject):
            return
        self._given |= {k for k, v in case.values.items() if v is not None} | set(case.options)
        self._masks |= {k for k in case.given("mask") if not np.all(case.values[k])}
        if kind in TELLING:
            (evidence.cases if wrong else evidence.right).append((case, wrong[-1] if wrong else situation.weights))
        for name, check in CHECKS.items():
            if not check.applies(situation):
                continue
            try:
                found = run(name, check.run)
            except Untraceable as error:
                report.promises[GRADIENT].why = self._untraceable = str(error)
                situation = replace(situation, gradients=False)
                run = Runner(report, subject, case, situation)
                found = run(name, check.run) if check.applies(situation) else []
            if name == "NaN in padding" and kind == "main" and any(finding.message for finding in found):
                evidence.poisoned.append(case)
            if name == "gradient":
                for finding in found:
                    cell.gradient = _worst(cell.gradient, finding)

    def _is_right_only_batched(self):
        """Returns whether results with one batch axis are right, and those without it and with several are wrong."""
        others = [right for rank, right in self._right_of_rank.items() if rank != 1]
        return self._right_of_rank.get(1) == {True} and bool(others) and all(right == {False} for right in others)

    def _skipped(self, what, why):
        if (what, why) not in [(u.what, u.why) for u in self.report.unasked]:
            self.report.unasked.append(Unasked(what, why))

    def _judge_long_sums(self, subject):
        """Runs the check of :data:`LONG_SUMS`; a failing case is reported without being shrunk."""
        kept, message, found = self.report.promises[LONG_SUMS], "", None
        self.watch.title = LONG_SUMS
        if how := self.lost.get((subject.dtype, LONG_SUMS)):
            _unreturned(self.report, LONG_SUMS, subject.dtype, how)
            return
        try:
            found = definition.sums_of_many_tokens(subject)
            message = "" if found is None else found.message
        except NotApplicable as error:
            kept.why = kept.why or str(error)
        except Exception as error:  # any error of the implementation is the finding
            message = f"raises {said(error)}"
        if found is None and not message:
            return
        kept.cases += 1
        kept.dtypes.append(subject.dtype)
        if not message:
            kept.status = kept.status if kept.status == BROKEN else HELD
            return
        kept.status = BROKEN
        title, size = (LONG_SUMS, drawing.LONG) if found is None else (found.case.title, found.case.size())
        snippet = f"# {title}: an input too long to print"
        kept.failures.append(Failure(self.row.name, LONG_SUMS, subject.dtype, message, snippet, size))

    def _own_dtypes(self, subject):
        """Returns the names of the dtypes in which the implementation computes, or which its parameters have."""
        held = {value.dtype.name for value in subject.parameters.values()}
        return self.adapter.computes_in(self.candidate.target) or held

    def _lacks(self, subject):
        """Returns the reason why the implementation cannot be judged in this dtype, or ""."""
        dtype = subject.dtype
        if not self.adapter.supports(dtype):
            return f"{self.adapter.name} arrays have no {dtype} here"
        own = self._own_dtypes(subject)
        if own and own != {dtype}:
            whose = "it computes in" if self.adapter.computes_in(self.candidate.target) else "its parameters are"
            return f"{whose} {', '.join(sorted(own))}"
        if dtype == "float32":
            return ""
        case = next((case for case, _ in self._cases(subject, (), False)), None)
        if case is None:
            return ""
        self.watch.title = case.title
        try:
            subject.outputs(case)
        except Exception as error:  # any error of the implementation
            text = said(error)
            if isinstance(error, TypeError) or optional_checks.refuses(text):
                return f"it refuses {dtype} ({text.partition(chr(10))[0][:140]})"
        return ""


def judge_each(rows, done):
    """Judges functions in this thread, one after another, without a time limit; returns whether Ctrl-C has stopped it.

    ``rows`` yields a :class:`RowJudge` for each function; ``done`` is called with each that is judged or was stopped.
    """
    judged = None
    try:
        for count, judged in enumerate(rows, 1):
            judged.run()
            done(judged)
            if count % BATCH == 0 and judged.adapter is not None:
                judged.adapter.forget()
    except KeyboardInterrupt:
        if judged is not None and not judged.done:
            judged.finish(STOPPED)
            done(judged)
        return True
    return False


def _structure(case, kind):
    """Returns a key that is the same for equal cases that were drawn for different configurations."""
    given = tuple((k, v.shape, v.dtype.kind) for k, v in case.values.items() if v is not None)
    kind = "main" if kind == "way" else kind
    dtypes = tuple(sorted(case.dtypes.items()))
    return kind, given, tuple(sorted(case.options.items())), case.title.partition(", ")[2], dtypes


def _worst(measure, finding):
    """Returns ``measure`` or that of ``finding``, whichever error is larger relative to what is allowed.

    Of errors of 0 it is the one for which more is allowed: integers, and what was not compared, are allowed none.
    """
    new = Measure(finding.error, finding.allowed, finding.case.title)
    if measure is None:
        return new

    def ratio(m):
        return m.error / m.allowed if m.allowed else (np.inf if m.error else 0.0), m.allowed

    return new if ratio(new) > ratio(measure) else measure


# Completion of a report


def _unreturned(report, promise, dtype, message):
    """Adds the failure of a call that has ended its process, or has taken too long."""
    kept = report.promises[promise]
    kept.status, kept.why, kept.cases = BROKEN, "", kept.cases + 1
    kept.dtypes += [dtype] if dtype and dtype not in kept.dtypes else []
    kept.failures.append(Failure(report.name, promise, dtype, message, "", 10**9))


def unanswered(report, dtype, title, how):
    """Completes the report of a function whose judging ended without results, such as by the end of the process.

    ``dtype`` and ``title`` are those of the last call, or ""; ``how`` is the way in which the judging ended, as text.
    """
    for kept in report.promises.values():
        kept.why = "its process ended before it could report"
    _unreturned(report, ANSWER, dtype, f"{title}: {how}" if title else how)
    report.ended = how
    report.partial.append(how)
    report.set_status()


def _default(value):
    return "" if value is None or callable(value) or isinstance(value, bool) else f" (default {value!r})"


def _why(name, report, subject, scope, broken):
    """Returns the reason why the guarantee ``name`` was not judged; ``broken`` has the broken guarantees."""
    row, calling = subject.row, subject.calling
    masks = [k for k, a in row.arguments.items() if a.kind == "mask"]
    if not report.cases:
        return "nothing was judged"
    if name == promises.WEIGHTS or name == "return_weights":
        if not row.weights:
            return "the row has no weights"
        if not calling.takes("return_weights"):
            return "it takes no `return_weights`"
    if name in _OF_MASKS:
        if not masks:
            return "the row has no mask"
        if not any(calling.takes(k) for k in masks):
            return "it takes no mask"
        if subject.candidate.mask_form == "segments":
            return "packed tokens hold no padding"
    if name in ("jit and vmap", "one program") and subject.adapter.name != "jax":
        return f"{subject.adapter.name} arrays know neither jit nor vmap"
    if name == promises.INTEGERS and not scope.integers:
        return "skipped without integers=True, --integers"
    if name in ("mixed dtypes", promises.INTEGERS) and "float64" not in scope.dtypes:
        return "judged only if float64 is"
    if name in (promises.GRADIENT, "finite gradients", gradients.REVERSE, gradients.FORWARD):
        if subject.adapter.gradient is None:
            return f"{subject.adapter.name} arrays have no gradients"
        if not scope.gradients:
            return "skipped with gradients=False"
        if name in (gradients.REVERSE, gradients.FORWARD) and not (
            "float64" in scope.dtypes and scope.differentiates("float64")
        ):
            return "judged only in float64, if gradients are"
    if name == "long sums" and not scope.long:
        return "skipped with long=False, --quick"
    if name in _OF_LAWS and not scope.laws:
        return "skipped with laws=False, --quick"
    if (name in _OF_SHAPES and not scope.shapes) or (name in _OF_PARTIAL_CALLS and not scope.partial):
        return "skipped with shapes=(), partial=False, --quick"
    if broken:
        return "its check was not reached"
    return "no case of this function applies"


_OF_MASKS = {promises.MASKED, promises.EMPTY, "padding amount", "padding side", "deleting is masking"}
_OF_MASKS |= {f"{name} in padding" for name in POISONS}
_OF_SHAPES = {"shapes", "arguments that broadcast", "padding side", "deleting is masking", "poison in shared arrays"}
_OF_PARTIAL_CALLS = {promises.VALUES, "ties and edges"}
_OF_LAWS = {"padding amount", "padding side", "deleting is masking", "permuting", "shifting the scores", "batch mates"}
_OF_LAWS |= {"NaN at a real token", "poison in shared arrays", "jit and vmap", "one program", "split over devices"}
