"""Execution of a check on a case; the report gets one failing case, made small, for each guarantee and dtype."""

import functools
import textwrap
from dataclasses import replace

import numpy as np

from attnpool_ref import contract
from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.candidates.adapters import Untraceable
from attnpool_ref.conformance.candidates.calling import NotApplicable
from attnpool_ref.conformance.candidates.capture import said
from attnpool_ref.conformance.checks import optional_checks
from attnpool_ref.conformance.checks.agreement import agreement, failed
from attnpool_ref.conformance.checks.definition import GUARANTEE_OF
from attnpool_ref.conformance.report import BROKEN, HELD, Compared, Failure
from attnpool_ref.conformance.report.guarantees import ANSWER, BY_NAME, GRADIENT, explained_by
from attnpool_ref.conformance.running import snippets
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

    def __init__(self, report, subject, case, situation, smallest):
        """``smallest`` is a dict, shared by the runners of a function, of the smallest failing cases by their kinds."""
        self.report, self.subject, self.case, self.situation = report, subject, case, situation
        self.smallest = smallest

    def __call__(self, name, run):
        """Runs the check ``name``, whose function is ``run``; adds its findings to the report, and returns them.

        Raises:
          Untraceable: the check needs a gradient that the framework cannot take.
        """
        self.subject.watch.title = self.case.title
        try:
            findings = self.look(name, run, self.case)
        except NotApplicable as error:
            kept = self.report.guarantees[self._guarantee_of(name)]
            kept.why = kept.why or str(error)
            return []
        for finding in findings:
            self._note(name, run, finding)
        return findings

    def _note(self, name, run, finding):
        kept, dtype = self.report.guarantees[finding.check], self.subject.dtype
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
        others = [kept] if BY_NAME[kept.guarantee].is_note else self.report.guarantees.values()
        return any(known.endswith(shortened(f": {note}")) for other in others for known in other.notes)

    def _smallest(self, name, run, finding):
        small, found = self.case, finding
        if not self._is_explained(finding.check):
            key = finding.check, self.situation.kind, self.case.title
            small = self.smallest.get(key)
            if small is None or self._alike(name, run, small, finding) is None:  # that of another dtype may do
                small = shrink(self.case, lambda case: self._alike(name, run, case, finding) is not None)
                small = self.smallest[key] = self._by_seed(name, run, small, finding)
            found = self._alike(name, run, small, finding) or finding
        got = answer_to(self.subject, found)
        return Failure(
            self.report.name,
            found.check,
            self.subject.dtype,
            found.message,
            snippets.reproduce(self.subject, found, got),
            small.size(),
            arrays_of(self.subject, found, got),
            found.hint,
            self.subject.adapter.prompt,
        )

    def _by_seed(self, name, run, case, finding):
        """Returns the case with its large arrays drawn by a seed, which is short code, if it fails in the same way."""
        values = {
            key: snippets.drawn(case.values[key].shape, snippets.seed_of(case.row, key))
            for key in case.given("data", "parameter", "stretch")
            if key not in self.subject.parameters
            and case.values[key].dtype.kind == "f"
            and case.values[key].size > snippets.DIGITS
        }
        other = case.with_values("drawn by a seed", **values)
        return other if values and self._alike(name, run, other, finding) is not None else case

    def _is_explained(self, guarantee):
        """Returns whether another guarantee broken in this dtype explains this one: no smallest case is then needed."""
        here = {self.subject.dtype}
        broken = {k: here for k, kept in self.report.guarantees.items() if here & {f.dtype for f in kept.failures}}
        return bool(explained_by(guarantee, broken | {guarantee: here}))

    def _alike(self, name, run, case, finding):
        """Returns a finding in which a smaller, legal case breaks the same guarantee in the same way, or None.

        The way is the same if both calls raise an error, or neither does, and if both results are finite, or neither
        is: at width 1, a division by N - 1 is NaN, which hides what it does at other widths.
        """
        try:
            self.subject.exact(case)
            findings = self.look(name, run, case)
        except (ValueError, NotApplicable, Untraceable):
            return None  # a rule excludes an axis of this size, or the implementation does not take the case
        raises = finding.message.startswith("raises ")
        alike = (f for f in findings if f.check == finding.check and f.message)
        alike = (f for f in alike if np.isfinite(f.error) or not np.isfinite(finding.error))
        return next((f for f in alike if f.message.startswith("raises ") == raises), None)

    def look(self, name, run, case):
        """Runs a check on any case of the same kind, and returns its findings, which are not added to the report.

        Raises:
          NotApplicable: the implementation cannot be called with this case.
          Untraceable: the check needs a gradient that the framework cannot take.
        """
        found = self._look(name, run, case)
        return optional_checks.apply(self.subject, case, self.situation, found, lambda: self._look(name, run, case))

    def _look(self, name, run, case):
        """Returns the findings before deviations from optional guarantees become notes."""
        try:
            found = run(self.subject, case, self.situation)
        except (NotApplicable, Untraceable):
            raise
        except Exception as error:  # any error of the implementation is the finding
            found = failed(self._guarantee_of(name), case, f"raises {said(error)}")
            found.hint = suggestion(error, self.subject, case)
        found = found if isinstance(found, list) else [found]
        found = [finding for finding in found if finding is not None]
        for finding in found:
            if finding.message and (finding.aspect == "shape" or self.situation.kind == "main"):
                of_signature(self.subject)  # if it finds another signature, the judge stops there, and reports it
        return found

    def _guarantee_of(self, name):
        """Returns the guarantee that is broken if a check raises an error."""
        return GUARANTEE_OF.get(self.situation.kind, ANSWER) if name == "agreement" else name


LARGEST_SHOWN = 512
"""Largest number of elements of an array that is stored."""


def answer_to(subject, finding):
    """Returns the implementation's results for the case of a finding, with weights if possible; None if it raises."""
    try:
        return subject.outputs(finding.case, subject.takes_weights())
    except Exception:  # the message of the finding has the error
        return None


def arrays_of(subject, finding, got):
    """Returns a :class:`Compared` for each array of a wrong result with at most :data:`LARGEST_SHOWN` elements.

    The list is empty if the result ``got``, from :func:`answer_to`, is right, if the call raised an error, or if the
    finding is about gradients.
    """
    if finding.check in (GRADIENT, "finite gradients") or got is None:
        return []
    weights = subject.takes_weights()
    want = subject.exact(finding.case, weights)
    try:
        wrong = len(want) != len(got) or agreement(subject, finding.case, weights, got).message
    except Exception:  # the results cannot be compared
        wrong = True
    if not wrong:
        return []
    names = _titles_of_arrays(subject.row, weights)
    pairs = zip(names, want, got, strict=False)
    return [Compared(name, _plain(w), _plain(g)) for name, w, g in pairs if max(w.size, g.size) <= LARGEST_SHOWN]


def _titles_of_arrays(row, weights):
    """Returns a title for each array of the result."""
    groups = [("result", row.results), ("weights", row.weight_results if weights else ())]
    return [
        f"{name} {i + 1} of {len(axes)}" if len(axes) > 1 else f"the {name}"
        for name, axes in groups
        for i in range(len(axes))
    ]


def _plain(array):
    """Returns an array as nested lists of numbers and booleans."""
    return array.tolist() if array.dtype.kind in "biu" else array.astype(np.float64).tolist()


LONG_AXIS = 64
"""Size from which on an axis is cut at its ends alone, because JAX compiles each size that is tried."""


def shrink(case, fails):
    """Returns a failing case with fewer examples and shorter axes, as far as ``fails`` returns that it still fails."""
    if case.row.batched and case.batch:
        singles = [drawing.example_of(case, index) for index in np.ndindex(*case.batch)]
        singles += [_examples(case, [i]) for i in range(case.batch[0]) if case.batch[0] > 1 == len(case.batch)]
        case = next(filter(fails, singles), case)
    if len(case.batch) == 1 and case.batch[0] > LONG_AXIS and case.row.batched:
        case = _cut(case, case.batch[0], _examples, fails)
    same, groups = contract.equal_axes(case.row, case.values | case.options), {}
    for axis in sorted(case.sizes):
        groups.setdefault(same.get(axis, axis), []).append(axis)
    for axes in groups.values():
        if any(axis in a and axis != a for axis in axes for names in case.axes.values() for a in names):
            continue  # its size is part of the size of another axis, such as d + e
        if not case.row.sizes.keys().isdisjoint(axes):
            continue  # the implementation fixes its size
        if case.sizes[axes[0]] > LONG_AXIS:
            case = _cut(case, case.sizes[axes[0]], functools.partial(_positions_along, axes), fails)
        if case.sizes[axes[0]] > LONG_AXIS:
            continue
        for position in reversed(range(case.sizes[axes[0]])):
            if case.sizes[axes[0]] == 1:
                break
            others = [i for i in range(case.sizes[axes[0]]) if i != position]
            smaller = _positions_along(axes, case, others, f"without {position}")
            if fails(smaller):
                case = smaller
    return case


def _cut(case, size, taken, fails):
    """Returns the case with as few of ``size`` positions, from the first on and then to the last, as bisection finds.

    ``taken(case, positions)`` returns the case with some positions.
    """
    for first in (True, False):
        few, many = 0, size  # the case with `many` positions fails
        while many - few > 1:
            count = (few + many) // 2
            if fails(taken(case, [*range(size)][:count] if first else [*range(size)][-count:])):
                many = count
            else:
                few = count
        if many < size:
            case, size = taken(case, [*range(size)][:many] if first else [*range(size)][-many:]), many
    return case


def _positions_along(axes, case, positions, title=""):
    """Returns the case with some positions of axes that have one size."""
    for axis in axes:
        case = drawing.take(case, f"{axis} {title or f'from {positions[0]} to {positions[-1]}'}", axis, positions)
    return case


def _examples(case, positions):
    """Returns some examples of a batch as a batch."""
    values = {k: case.values[k][positions] for k, axes in case.axes.items() if "..." in axes}
    which = (
        f"examples from {positions[0]} to {positions[-1]}" if len(positions) > 1 else f"example {positions[0]} alone"
    )
    return replace(case, title=f"{case.title}, {which}", values=case.values | values, batch=(len(positions),))
