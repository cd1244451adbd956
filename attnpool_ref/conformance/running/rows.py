"""Judging of one function: draws its cases in each dtype, runs the checks on each of them, and completes the report.

The report then says which guarantees explain others, and which arguments and checks were not judged, and why.
"""

import functools
import itertools
import shlex
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
from attnpool_ref.conformance.cases.case import ONE
from attnpool_ref.conformance.checks import CHECKS, Situation, definition, optional_checks
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
    guarantees,
)
from attnpool_ref.conformance.report.guarantees import ANSWER, DTYPE, GRADIENT, SHAPE
from attnpool_ref.conformance.running import snippets
from attnpool_ref.conformance.running.runner import Runner
from attnpool_ref.conformance.running.suggestions import Proposal, plainest, proposed
from attnpool_ref.conformance.running.unjudged import why_not
from attnpool_ref.conformance.scope import Scope
from attnpool_ref.contract.text import listed

TELLING = ("main", "shape", "way", "exact", "extreme", "far")
"""Kinds of cases whose wrong results are compared with known mistakes."""

LONG_SUMS = "long sums"
"""Guarantee whose check draws its own cases, in each dtype but float64."""

BATCH = 8
"""Number of functions after which adapters clear their compiled programs."""

WAYS = 24
"""Largest number of ways to name the parameters of a module that are tried in a call."""

STOPPED = "stopped by Ctrl-C"

ONLY_BATCHED = Proposal(
    "your function takes only data with one batch axis, such as [B, L, d]: run again with `--batched` (batched=True)",
    "--batched",
    False,
)


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
        self._right_of_rank, self._smallest = {}, {}
        self._began, self.done, self._reference, self._proposal, self._unnamed = 0.0, False, None, None, None
        # of the guarantees that are waived for this function no cause is looked for
        self._waived = {
            name.rpartition("/")[2] for name in scope.waive or {} if name.partition("/")[0] in (name, row.name)
        }

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
            self.report.unasked.append(Unasked("the function", str(error)))
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
        first = self._proposal or (self._unnamed if self.report.accused else None) or self._of_rank()
        self.report.proposed = first.flags if first else ""
        ends = first is not None and first.ends
        found = [] if ends else causes.diagnose(self._evidence, self._not_waived())
        self.report.causes = ([first.words] if first else []) + [cause.words for cause in found]
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
        self.report.notes += [f"{k}: {note}" for k, kept in self.report.guarantees.items() for note in kept.notes]
        self.report.ended = ended
        broken = {kept.guarantee: {failure.dtype for failure in kept.failures} for kept in self.report.broken}
        for name, kept in self.report.guarantees.items():
            if kept.status == BROKEN:
                kept.follows_from = guarantees.explained_by(name, broken)
            elif kept.notes and guarantees.BY_NAME[name].is_note and not self.scope.whole_contract:
                kept.status, kept.why = NOT_APPLICABLE, kept.notes[0]
            elif kept.status == NOT_APPLICABLE and not kept.why:
                kept.why = kept.notes[0] if kept.notes else why_not(name, self.report, self.subject, self.scope, broken)
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
            hides = calling.is_drawn(key) or calling.takes(argument.lengths) or key in calling.candidate.leave
            if argument.kind == "mask" and not hides:
                yield (
                    f"it takes no `{key}`, so its padding was never judged: if it is meant to have none, say so "
                    f"(leave=({key!r},), --leave {key}); if all padding is on one side, say which (--padding left)"
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
        why, self._unnamed = self.subject.calling.why_not(), self._undescribed()
        if why:
            if self._unnamed:
                why = f"{why}; {self._unnamed.words}"
                self.report.causes, self.report.proposed = [why], self._unnamed.flags
            raise NotApplicable(why)
        if self._unnamed:
            self.report.unasked.append(Unasked("its parameters", self._unnamed.words))
        side = self.candidate.padding
        if side is not None:
            self.report.unasked.append(Unasked(f"padding elsewhere than on the {side}", f"its padding is {side}"))
        self.report.by_place = self.subject.calling.by_place
        return adapter

    def _undescribed(self):
        """Returns a proposal for parameters that the implementation holds and ``parameters`` does not name, or None."""
        given, target = self.candidate.parameters, self.candidate.target
        names = [] if callable(given) else held_parameters.as_kernels(target)
        if given and not callable(given):
            names = [n for n in names if not any(f"{p}.".startswith((f"{n}.", f"{n}[")) for p in given.values())]
            return Proposal(f"it holds {listed(names)}, which no --parameter names", "") if names else None
        if not names:
            return None
        ways = held_parameters.assignments(self.row, target, self.subject.calling.names)
        if not ways:
            one = f"--parameter ARGUMENT={names[0]}, parameters={{ARGUMENT: {names[0]!r}}}"
            return Proposal(f"it holds {listed(names)}: say which argument of the function each is ({one})", "")
        right = next((way for way in ways[:WAYS] if self._is_right_with(way)), None)
        best, ways = right or ways[0], [right] if right else ways
        parts = []
        for key, path in best.items():
            others = dict.fromkeys(k for way in ways for k, other in way.items() if other == path)
            shape = list(held_parameters.at(target, path).shape)
            parts.append(f"`{path}` {shape}, which could be {' or '.join(f'`{k}`' for k in {key: None} | others)}")
        flags = shlex.join(word for key, path in best.items() for word in ("--parameter", f"{key}={path}"))
        return Proposal(f"it holds {'; '.join(parts)}: run again with `{flags}` (parameters={best!r})", flags)

    def _is_right_with(self, parameters):
        """Returns whether the plainest call is right if the implementation holds these parameters."""
        try:
            candidate = replace(self.candidate, parameters=parameters)
            subject = Subject(self.row, candidate, self.subject.adapter, self.subject.dtype, {}, self.watch)
            return any(plainest(subject, padded)[1] for padded in (True, False))
        except ValueError:  # two parameters disagree on a size
            return False

    def _subject(self, adapter, dtype):
        return Subject(self.row, self.candidate, adapter, dtype, self._exact, self.watch, self.scope.whole_contract)

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
        whole = self.scope.whole_contract
        drawn = drawing.cases_of(subject.row, restrict, shapes, partial, whole)
        of_this_dtype = drawing.cases_in(subject.row, subject.dtype, restrict, whole) if of_dtype else ()
        for case, kind in itertools.chain(drawn, of_this_dtype):
            if kind == "form" and not whole and any(case.axes[key][-1:] == (ONE,) for key in case.given("mask")):
                continue  # such a mask stands for all tokens, where most implementations count its elements
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
        if self._proposal and self._proposal.ends:
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
            self._proposal = self._proposal or proposed(subject)
            if self._proposal and self._proposal.ends:
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
        run, wrong, refused = Runner(report, subject, case, situation, self._smallest), [], False
        for weights in situation.with_weights:
            found = run("agreement", functools.partial(definition.agreement_by_guarantee, return_weights=weights))
            if any(finding.message and finding.check not in (DTYPE, *self._waived) for finding in found):
                wrong.append(weights)
            refused = refused or (kind == "form" and any(finding.message or finding.excused for finding in found))
            if not any(finding.excused for finding in found):
                raises = any(finding.message.startswith("raises ") for finding in found)
                self._right_of_rank.setdefault(len(case.batch), set()).add("raises" if raises else not wrong)
            for finding in found if kind == "main" else ():
                if finding.check != DTYPE and (finding.message or finding.check not in (ANSWER, SHAPE)):
                    cell.forward = _worst(cell.forward, finding)
        report.cases += 1
        if self._is_stopped(subject):
            return
        self._given |= {k for k, v in case.values.items() if v is not None} | set(case.options)
        self._masks |= {k for k in case.given("mask") if not np.all(case.values[k])}
        if kind in TELLING:
            (evidence.cases if wrong else evidence.right).append((case, wrong[-1] if wrong else situation.weights))
        for name, check in CHECKS.items():
            if refused or not check.applies(situation):
                continue
            try:
                found = run(name, check.run)
            except Untraceable as error:
                report.guarantees[GRADIENT].why = self._untraceable = str(error)
                situation = replace(situation, gradients=False)
                run = Runner(report, subject, case, situation, self._smallest)
                found = run(name, check.run) if check.applies(situation) else []
            if (
                name == "NaN in padding"
                and kind == "main"
                and name not in self._waived
                and any(finding.message for finding in found)
            ):
                evidence.poisoned.append(case)
            if name == "gradient":
                for finding in found:
                    cell.gradient = _worst(cell.gradient, finding)

    def _is_stopped(self, subject):
        """Returns whether no other call can be judged, because the implementation needs another option."""
        found = proposed(subject)
        return found is not None and found.ends

    def _of_rank(self):
        """Returns the proposal of ``batched`` for an implementation that takes only one batch axis; else None.

        It does if with one batch axis all results are right and without it all are wrong; or if with one batch axis no
        call raises an error and without it each does. Cases without it are then no evidence of a mistake.
        """
        one = self._right_of_rank.get(1, {"raises"})
        others = set().union(*(right for rank, right in self._right_of_rank.items() if rank != 1))
        if not others or "raises" in one or (others != {"raises"} and (one != {True} or True in others)):
            return None
        for each in self._evidence:
            each.cases[:] = [(case, weights) for case, weights in each.cases if len(case.batch) == 1]
        return ONLY_BATCHED

    def _not_waived(self):
        """Returns the results of all guarantees, in which those that are waived held."""
        found = self.report.guarantees
        return {k: replace(v, status=HELD) if k in self._waived else v for k, v in found.items()}

    def _skipped(self, what, why):
        if (what, why) not in [(u.what, u.why) for u in self.report.unasked]:
            self.report.unasked.append(Unasked(what, why))

    def _judge_long_sums(self, subject):
        """Runs the check of :data:`LONG_SUMS`; a failing case is reported without being shrunk."""
        kept, message, found = self.report.guarantees[LONG_SUMS], "", None
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
        snippet = "" if found is None else snippets.reproduce(subject, found)
        size = drawing.LONG if found is None else found.case.size()
        prompt = subject.adapter.prompt
        kept.failures.append(Failure(self.row.name, LONG_SUMS, subject.dtype, message, snippet, size, prompt=prompt))

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
    return kind, given, tuple(sorted(case.options.items())), case.title.removeprefix(case.way), dtypes


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


def _unreturned(report, guarantee, dtype, message):
    """Adds the failure of a call that has ended its process, or has taken too long."""
    kept = report.guarantees[guarantee]
    kept.status, kept.why, kept.cases = BROKEN, "", kept.cases + 1
    kept.dtypes += [dtype] if dtype and dtype not in kept.dtypes else []
    kept.failures.append(Failure(report.name, guarantee, dtype, message, "", 10**9))


def unanswered(report, dtype, title, how):
    """Completes the report of a function whose judging ended without results, such as by the end of the process.

    ``dtype`` and ``title`` are those of the last call, or ""; ``how`` is the way in which the judging ended, as text.
    """
    for kept in report.guarantees.values():
        kept.why = "its process ended before it could report"
    _unreturned(report, ANSWER, dtype, f"{title}: {how}" if title else how)
    report.ended = how
    report.partial.append(how)
    report.set_status()


def _default(value):
    return "" if value is None or callable(value) or isinstance(value, bool) else f" (default {value!r})"
