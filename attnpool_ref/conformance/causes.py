"""The cause in words: the known mistake whose answer the candidate's is, on all cases where it is wrong."""

import numpy as np

from attnpool_ref.conformance import hazards, tolerances
from attnpool_ref.conformance.agreement import compare
from attnpool_ref.conformance.checks import in_the_right_dtype
from attnpool_ref.conformance.mistakes import Asked, mistakes_of
from attnpool_ref.conformance.report import BROKEN, HELD

TRIED = 8
"""How many wrong cases of a dtype are held against the mistakes."""

NAMED = 2
"""How many causes are named where several fit."""


def of(evidence, promises):
    """What explains the wrong answers, in words, the most specific first; nothing where nothing does.

    Args:
      evidence: for each dtype the subject, and (case, return_weights) of the cases whose answers are wrong.
      promises: what became of the promises.
    """
    wrong = [(each.subject, _answers(each)) for each in evidence if each.cases]
    wrong = [(subject, answers) for subject, answers in wrong if answers]
    if not wrong:
        return [] if any(each.cases for each in evidence) else _of_padding(promises)
    subject = wrong[0][0]
    fitting = [mistake for mistake in mistakes_of(subject.row, subject.oracle)]
    for subject, answers in wrong:
        for asked, got in answers:
            fitting = [mistake for mistake in fitting if _equals(subject, asked, got, mistake)]
    numbers = {}
    for mistake in fitting:
        numbers.setdefault(mistake.words, {})[mistake.number] = None
    found = [words.replace("{}", _range(list(fits))) for words, fits in numbers.items()]
    return found[:NAMED] or _own_dtype(wrong, evidence)


def _range(numbers):
    """One number, two, or the first and the last of many."""
    return " or ".join(numbers) if len(numbers) < 3 else f"{numbers[0]} to {numbers[-1]}"


def _answers(evidence):
    """(Asked, the candidate's answer) of the wrong cases, those with most to tell first."""
    found = []
    for case, weights in evidence.cases[:TRIED]:
        asked = Asked(evidence.subject, case, weights)
        try:
            got = evidence.subject.outputs(case, weights)
        except Exception:  # no answer is nobody's
            return []
        found.append((asked, in_the_right_dtype(evidence.subject, asked.exact, got)))
    return found if all(got is not None for _, got in found) else []


def _equals(subject, asked, got, mistake):
    """Whether the mistake's answer is the candidate's, up to rounding."""
    try:
        want = mistake.answer(asked)
    except ValueError:  # it is no legal call
        return False
    if want is None or len(want) != len(got) or any(w.shape != g.shape for w, g in zip(want, got, strict=True)):
        return False
    # What is right may be 0 where this is not, and does not move there.
    moved = [np.max(moves, initial=0) for moves in subject.sensitivities(asked.case, asked.return_weights)]
    return not compare(subject, asked.case, "cause", got, want, asked.return_weights, moved).message


def _own_dtype(wrong, evidence):
    """Wrong in a narrow dtype alone, and no further than computing in it explains."""
    if any(not subject.is_narrow for subject, _ in wrong) or not any(not each.subject.is_narrow for each in evidence):
        return []
    for subject, answers in wrong:
        for asked, got in answers:
            sensitive = subject.sensitivities(asked.case, asked.return_weights)
            for g, w, moves in zip(got, asked.exact, sensitive, strict=True):
                size = float(np.max(np.abs(w), initial=0))
                allowed = tolerances.allowed_error(size, moves, asked.case.terms(), subject.dtype, True)
                if g.shape != w.shape or not np.all(np.abs(g.astype(np.float64) - w) <= allowed):
                    return []
    return [f"sums in the input's own dtype: right to the rounding of {wrong[0][0].dtype}, not of float32"]


def _of_padding(promises):
    """Right answers that the content of padding changes."""
    poisons = {name: promises[f"{name} in padding"] for name in hazards.POISONS}
    if not any(kept.status == BROKEN and not kept.follows_from for kept in poisons.values()):
        return []  # such as where every call raises
    statuses = {name: kept.status for name, kept in poisons.items()}
    if statuses["NaN"] == BROKEN and statuses["1e30"] == HELD:
        return ["multiplies padding by 0, and 0 times NaN is NaN: select it before any product"]
    if BROKEN in statuses.values():
        return ["reads what stands in padding: select it before any product or sum"]
    return []
