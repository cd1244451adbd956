"""Execution of a check on a case; the report gets one failing case, made small, for each guarantee and dtype."""

import textwrap

from attnpool_ref.conformance.candidates.adapters import Untraceable
from attnpool_ref.conformance.candidates.calling import NotApplicable
from attnpool_ref.conformance.candidates.capture import said
from attnpool_ref.conformance.checks import optional_checks
from attnpool_ref.conformance.checks.agreement import failed
from attnpool_ref.conformance.checks.definition import PROMISE_OF
from attnpool_ref.conformance.report import BROKEN, HELD, Failure
from attnpool_ref.conformance.report.promises import ANSWER, BY_NAME, PROMISES, explained_by
from attnpool_ref.conformance.running import failing_arrays, shrinking, snippets
from attnpool_ref.conformance.running.suggestions import of_signature, suggestion

NOTES = 3
"""Largest number of notes that are stored for a guarantee."""

LINE = 280
"""Largest length of a note, in characters."""


def shortened(text):
    """Returns a text in one line, cut between two words if it is long."""
    return textwrap.shorten(text, LINE, placeholder=" ...")


class Runner:
    """Runner of checks on one case in one dtype; adds their findings to the report.

    In its methods, ``name`` and ``run`` are the name and the function of a check.
    """

    def __init__(self, report, subject, case, situation):
        self.report, self.subject, self.case, self.situation = report, subject, case, situation

    def __call__(self, name, run):
        """Runs the check ``name``, whose function is ``run``; adds its findings to the report, and returns them.

        Raises:
          Untraceable: the check needs a gradient that the framework cannot take.
        """
        try:
            findings = self.look(name, run, self.case)
        except NotApplicable as error:
            kept = self.report.promises[self._promise_of(name)]
            kept.why = kept.why or str(error)
            return []
        for finding in findings:
            self._note(name, run, finding)
        return findings

    def _note(self, name, run, finding):
        kept, dtype = self.report.promises[finding.check], self.subject.dtype
        kept.cases += 1
        if dtype not in kept.dtypes:
            kept.dtypes.append(dtype)
        if finding.note and len(kept.notes) < NOTES and not self._is_noted(kept, finding.note):
            kept.notes.append(shortened(f"{finding.case.title} ({dtype}): {finding.note}"))
        if finding.excused:
            return
        if not finding.message:
            kept.status = kept.status if kept.status == BROKEN else HELD
            return
        kept.status = BROKEN
        if dtype not in [failure.dtype for failure in kept.failures]:
            kept.failures.append(self._smallest(name, run, finding))

    def _is_noted(self, kept, note):
        """Returns whether the same note exists, for this guarantee or, if it is checked by default, for another one."""
        others = [kept] if BY_NAME[kept.promise].asked else self.report.promises.values()
        return any(known.endswith(shortened(f": {note}")) for other in others for known in other.notes)

    def _smallest(self, name, run, finding):
        small, found = self.case, finding
        if not self._is_explained(finding.check):
            small = shrinking.shrink(self.case, lambda case: self._alike(name, run, case, finding) is not None)
            found = self._alike(name, run, small, finding) or finding
        got = failing_arrays.answer_to(self.subject, found)
        return Failure(
            self.report.name,
            found.check,
            self.subject.dtype,
            found.message,
            snippets.reproduce(self.subject, found, got),
            small.size(),
            failing_arrays.arrays_of(self.subject, found, got),
        )

    def _is_explained(self, promise):
        """Returns whether another guarantee broken in this dtype explains this one: no smallest case is then needed."""
        here = {self.subject.dtype}
        broken = {k: here for k, kept in self.report.promises.items() if here & {f.dtype for f in kept.failures}}
        return bool(explained_by(promise, broken | {promise: here}))

    def _alike(self, name, run, case, finding):
        """Returns a finding in which a smaller, legal case breaks the same guarantee in the same way, or None.

        The way is the same if both calls raise an error, or neither does.
        """
        try:
            self.subject.exact(case)
            findings = self.look(name, run, case)
        except (ValueError, NotApplicable, Untraceable):
            return None  # a rule excludes an axis of this size, or the implementation does not take the case
        raises = finding.message.startswith("raises ")
        alike = (f for f in findings if f.check == finding.check and f.message)
        return next((f for f in alike if f.message.startswith("raises ") == raises), None)

    def look(self, name, run, case):
        """Runs a check on any case of the same kind, and returns its findings, which are not added to the report.

        Raises:
          NotApplicable: the implementation cannot be called with this case.
          Untraceable: the check needs a gradient that the framework cannot take.
        """
        found = self._look(name, run, case)
        found = optional_checks.apply(self.subject, case, self.situation, found, lambda: self._look(name, run, case))
        for finding in found:
            if finding.message:
                finding.message, finding.hint = finding.message + finding.hint, ""
        return found

    def _look(self, name, run, case):
        """Returns the findings before deviations from optional guarantees become notes."""
        self.subject.watch.title = case.title
        try:
            found = run(self.subject, case, self.situation)
        except (NotApplicable, Untraceable):
            raise
        except Exception as error:  # any error of the implementation is the finding
            found = failed(self._promise_of(name), case, f"raises {said(error)}")
            found.hint = suggestion(error, self.subject, case)
        found = found if isinstance(found, list) else [found]
        found = [finding for finding in found if finding is not None]
        for finding in found:
            finding.check = promise_of(name, finding.check)
            if finding.message and finding.aspect == "shape":
                of_signature(self.subject)  # if it finds a cause, the judge stops there, and reports it
        return found

    def _promise_of(self, name):
        """Returns the guarantee that is broken if a check raises an error."""
        if name == "agreement":
            return PROMISE_OF.get(self.situation.kind, ANSWER)
        return promise_of(name)


def promise_of(check, named=""):
    """Returns the guarantee that a finding of a check is about: ``named`` if it is one, else the first of the check."""
    return named if named in BY_NAME else next(promise.name for promise in PROMISES if promise.judged_by == check)
