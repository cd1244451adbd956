"""Search for wrong results in further calls with hypothesis, which also shrinks the failing calls.

Hypothesis chooses the given arguments, sizes, batch axes, masks, options and the form of the numbers. The numbers
themselves derive from the example's name, like those of every case. A failing call is reported like any other failure.
"""

from dataclasses import replace
from random import Random

from attnpool_ref import extras
from attnpool_ref.conformance.candidates.calling import NotApplicable
from attnpool_ref.conformance.cases import SEED
from attnpool_ref.conformance.checks import AGREEMENT, CHECKS
from attnpool_ref.conformance.checks.purity import TWICE
from attnpool_ref.conformance.report import BROKEN, HELD, Failure, Unasked
from attnpool_ref.conformance.running import snippets
from attnpool_ref.conformance.running.examples import examples_of
from attnpool_ref.conformance.running.runner import Runner


def need_hypothesis():
    """Raises a ModuleNotFoundError that names the extra to install if hypothesis is missing."""
    missing = extras.missing("test")
    if missing:
        raise ModuleNotFoundError(missing.removeprefix("attnpool: "))


def search(report, subject, count, traced):
    """Judges up to ``count`` examples of a function; reports the guarantees that held, or the smallest failing example.

    If the function is already known to be wrong, there is no search, because the known failing cases are smaller.

    Args:
      report: the report of the function.
      subject: the implementation under test, in one dtype, with its own cache of the oracle's results.
      count: the number of examples.
      traced: whether gradients are judged, too, but only in about an eighth of the examples.

    Returns:
      A list with (case, situation) of the failing example; an empty list if there is none.
    """
    broken = [kept.promise for kept in report.promises.values() if kept.status == BROKEN]
    if broken:
        report.unasked.append(Unasked("more examples", f"broken already: {', '.join(broken)}"))
        return []
    import hypothesis
    from hypothesis.errors import Flaky, NoSuchExample, Unsatisfiable

    look = _Look(report, subject)
    settings = hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        verbosity=hypothesis.Verbosity.quiet,
    )
    drawn = Random(f"{subject.row.name} {subject.dtype} {SEED.get()}")
    try:
        hypothesis.find(examples_of(subject, traced), look.fails, settings=settings, random=drawn)
    except Unsatisfiable:
        report.unasked.append(Unasked("more examples", "none was drawn that it takes"))
    except (NoSuchExample, Flaky):
        pass  # an implementation with varying results was nevertheless wrong once
    return look.conclude()


class _Look:
    """Results of the examples: checks that held, and the last and smallest example that breaks a guarantee."""

    def __init__(self, report, subject):
        self.report, self.subject, self.found = report, subject, None

    def fails(self, example):
        """Returns whether an example breaks any guarantee."""
        case, situation = example
        self.subject.forget()
        runner = Runner(self.report, self.subject, case, situation)
        held = []
        for name, run in _checks(situation):
            try:
                findings = runner.look(name, run, case)
            except NotApplicable:
                continue
            for finding in findings:
                if finding.message:
                    self.found = case, situation, name, run, finding
                    return True
                held.append(finding.check)
        if self.found is None:
            self._note(held)
        return False

    def _note(self, held):
        self.report.cases += 1
        for promise in held:
            kept = self.report.promises[promise]
            kept.status, kept.cases = HELD, kept.cases + 1
            if self.subject.dtype not in kept.dtypes:
                kept.dtypes.append(self.subject.dtype)

    def conclude(self):
        """Judges the failing example once more, and reports it."""
        if self.found is None:
            return []
        case, situation, name, run, finding = self.found
        self.subject.forget()
        again = Runner(self.report, self.subject, case, situation)(name, run)
        if not any(f.message for f in again):
            self._unsteady(finding)
        return [(case, situation)]

    def _unsteady(self, finding):
        """Reports a result that was wrong once and is right when it is repeated."""
        kept, dtype = self.report.promises[TWICE], self.subject.dtype
        message = f"wrong once, right when asked again ({finding.message})"
        code = snippets.reproduce(self.subject, replace(finding, check=TWICE))
        kept.status, kept.cases = BROKEN, kept.cases + 1
        kept.failures.append(Failure(self.report.name, TWICE, dtype, message, code, finding.case.size()))


def _checks(situation):
    for weights in situation.with_weights:
        yield "agreement", lambda s, c, known, w=weights: AGREEMENT.run(s, c, known, w)
    if situation.differentiated:
        yield "gradient", CHECKS["gradient"].run
