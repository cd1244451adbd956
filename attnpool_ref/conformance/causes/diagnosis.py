"""Diagnosis: known mistakes whose results equal the wrong results, dtype by dtype.

A wrong function usually has more than one mistake, so the parts of its results are explained separately: real tokens,
fully masked rows, precision, and values in padding. A mistake at real tokens is named if it explains half of the wrong
cases or more, and more cases than contradict it, and no mixed batch contradicts it. A mistake in fully masked rows, or low
precision, is named if it explains most of the wrong cases. Otherwise no cause of that part is named.
"""

import contextlib
import functools
from dataclasses import dataclass, field, replace

import numpy as np

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.cases import SEQUENCES
from attnpool_ref.conformance.causes import mistakes
from attnpool_ref.conformance.causes.wrong_answers import CONTRADICTED, EXPLAINED, Call, WrongAnswer
from attnpool_ref.conformance.checks import agreement, padding
from attnpool_ref.conformance.report import BROKEN, HELD
from attnpool_ref.conformance.report.guarantees import BY_NAME, DTYPE, GRADIENT
from attnpool_ref.primitives import maximum, mean, minimum, softmax

TRIED = 12
"""Largest number of wrong cases, and of right cases, of a dtype that are compared with the mistakes."""

FINITE = 1e10
"""A number in padding that is large compared with -1e9, and whose square every dtype except float16 can hold."""

PRODUCT = "multiplies padding by 0, but 0 times NaN is NaN: use where(mask, x, 0) before the product"
IN_MAXIMUM = "NaN in padding reaches the maximum: no sum or product removes it; use where(mask, x, -inf) before it"
IN_SCORES = "NaN in padding reaches the softmax: no sum or product removes it; use where(mask, scores, -inf)"
READS = "reads padding: use where(mask, x, 0) before any product or sum"
OWN_DTYPE = "only as accurate as the input's dtype: accumulate scores and sums in float32 or wider"
NAN_AT_LENGTH_0 = "NaN at length 0"
SORTED = "takes the segment ids as sorted: sort the tokens by their ids first, or add each token to the row of its id"
NARROW = "computes in {} for wider inputs, too: accumulate scores and sums in float32 or wider"
FLOAT32 = "computes in float32: float64 inputs get only float32 accuracy"
IN_PLACE = "writes into its argument: copy it first, as torch.where, masked_fill without `_`, and np.where do"
NAN_GRADIENT = (
    "a gradient that is NaN for right values: a root at 0, as of one token or of equal ones, or a `where` behind a division "
    "by 0; replace what is not used before the root or the division"
)
HIDDEN = "hides NaN of real tokens, as nanmean, nan_to_num, fmax and comparisons do: it must reach the result"
DETACHED = (
    "right values with a wrong gradient: `detach` or `stop_gradient` cuts a part off, or a maximum gives the gradient of a "
    "tie to one token"
)
EXCHANGED = "the last two axes of the result are exchanged"
WITH_SINK = "keeps the column of the sink in the weights: they are those of the tokens alone"
SQUEEZED = "removes all axes of size 1, as squeeze() does: name the axis to remove, as in squeeze(-2)"


@dataclass
class Cause:
    """One cause, with the numbers of cases that it explains.

    Attributes:
      words: the mistake in words, which do not depend on the options of the judge.
      numbers: the numbers in the mistake, as text, such as "-1e9".
      counts: for each dtype (the wrong cases that it explains, all wrong cases).
    """

    words: str
    numbers: list[str] = field(default_factory=list)
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def evidence(self):
        """The numbers, the counts and the dtypes, in one line of text."""
        counts = {}
        for dtype, (explained, wrong) in self.counts.items():
            counts.setdefault("" if explained == wrong else f"{explained} of {wrong} wrong cases in ", []).append(dtype)
        parts = [count + ", ".join(dtypes) for count, dtypes in counts.items()]
        if self.numbers:
            parts.insert(0, _range(self.numbers))
        return "; ".join(parts)


def _range(numbers):
    """Returns numbers as one text: both of two, the smallest and the largest of more, by their magnitude."""
    numbers = sorted(numbers, key=_magnitude) if len(numbers) > 2 else numbers
    return " or ".join(numbers) if len(numbers) < 3 else f"{numbers[0]} to {numbers[-1]}"


def _magnitude(number):
    """Returns the magnitude of a number in words such as "-1e9 added"; infinity for "the dtype's least number"."""
    try:
        return abs(float(number.split()[0]))
    except ValueError:
        return np.inf


def diagnose(evidence, guarantees):
    """Returns the known causes of the wrong results, a list of :class:`Cause`, the one that explains values first.

    ``evidence`` has an ``Evidence`` of :mod:`~attnpool_ref.conformance.running.rows` for each dtype, and ``guarantees``
    the results of all guarantees.
    """
    chance = _of_chance(evidence) if guarantees["the same answer twice"].status == BROKEN else []
    if chance:
        return chance  # with numbers that no mistake explains
    written = _of_guarantee(guarantees, "inputs unchanged", "in place", IN_PLACE)
    if written:
        return written  # a second call, with what the first has left, explains nothing
    merged = {}
    for cause in (*_of_results(evidence, guarantees), *_of_dtypes(evidence, guarantees)):
        same = merged.setdefault(cause.words, cause)
        same.numbers = [n for n in same.numbers if n in cause.numbers] or same.numbers or cause.numbers
        same.counts = cause.counts | same.counts
    return list(merged.values()) or _of_others(guarantees)


def _of_guarantee(guarantees, name, part, words):
    """Returns a list with the cause ``words`` if a guarantee is broken by itself and a message has ``part``."""
    kept = guarantees[name]
    if kept.status != BROKEN or kept.follows_from:
        return []
    dtypes = {failure.dtype: (1, 1) for failure in kept.failures if part in failure.message}
    return [Cause(words, counts=dtypes)] if dtypes else []


def _of_others(guarantees):
    """Returns the cause of wrong gradients of right values, or of NaN that is lost."""
    of_values = [name for name, each in BY_NAME.items() if each.judged_by == "agreement" and name != DTYPE]
    if any(guarantees[name].status == BROKEN for name in of_values):
        return []
    return (
        _of_guarantee(guarantees, "NaN at a real token", "NaN in", HIDDEN)
        or _of_guarantee(guarantees, "finite gradients", "nan", NAN_GRADIENT)
        or _of_guarantee(guarantees, GRADIENT, "nan", NAN_GRADIENT)
        or _of_guarantee(guarantees, GRADIENT, "needs", DETACHED)
    )


def _of_results(evidence, guarantees):
    """Returns the causes of :func:`diagnose` but those of dtypes; two of them may have the same words."""
    if not any(each.cases or each.poisoned for each in evidence):
        return _of_padding(guarantees, ("inf", "-inf", "1e30"))
    judged = sorted((_InOneDtype(each) for each in evidence), key=lambda each: each.width)
    sizes = _of_sizes(judged)
    if not any(each.cases for each in evidence):
        return _of_products(judged) or _of_padding(guarantees, padding.POISONS)
    values, precision = _of_values(judged)
    known = [each for each in judged if not each.hides_its_cause]
    empty, at_length_0 = {}, {}
    for each in known:
        each.explain_empty(empty)
    for each in known:
        each.explain_length_0(empty, at_length_0)
    products = _of_products(known)
    wide = {each.dtype for each in judged if not each.subject.is_narrow}
    first = [cause for cause in empty.values() if not products or cause.counts.keys() & wide]
    later = [cause for cause in empty.values() if cause not in first]
    return [*values.values(), *sizes, *first, *products, *later, *at_length_0.values(), *precision.values()]


def _of_values(judged):
    """Returns (causes of wrong values, causes of low precision), each by their words.

    In float16 and bfloat16, the mistakes that were found in float32 and float64 are tried first.
    """
    values, precision = {}, {}
    wide = [each for each in judged if not each.subject.is_narrow]
    for each in wide:
        each.explain(values)
    named = [mistake for each in wide for mistake in each.mistakes[:1]]
    for each in wide:
        if each.dtype == "float64" and not any(other.is_unknown for other in wide if other is not each):
            each.explain_coarsely(values, precision, named, FLOAT32)
    for each in wide:
        each.explain_narrowly(precision)
    is_known = bool(wide) and not any(each.is_unknown for each in wide)
    for each in (each for each in judged if each.subject.is_narrow):
        each.explain(values, only=[mistake.words for mistake in named])
        if is_known:
            each.explain_coarsely(values, precision, named, OWN_DTYPE)
        if each.is_unknown:
            each.explain(values)
        each.named = named
    return values, precision


class _InOneDtype:
    """Wrong results in one dtype, and their causes.

    Attributes:
      of_real: the results that are wrong outside of fully masked rows.
      of_empty: the results that are wrong in fully masked rows.
      mistakes: the known mistakes, all in the same words, that explain ``of_real``.
      named: if this dtype is narrow, the mistakes that were found in float32 and float64.
      is_unknown: whether values are wrong and no known mistake explains them.
    """

    def __init__(self, evidence):
        subject = self.subject = evidence.subject
        self.poisoned, self.dtype = evidence.poisoned, subject.dtype
        self.width = ("float64", "float32").index(self.dtype) if not subject.is_narrow else 2
        wrong = [WrongAnswer.of(subject, case, weights) for case, weights in _spread(evidence.cases)]
        self.wrong = [answer for answer in wrong if answer is not None]
        self.cases = evidence.cases
        self.of_real = [answer for answer in self.wrong if answer.wrong_where_real]
        self.of_empty = [answer for answer in self.wrong if answer.wrong_where_empty]
        self.right = [WrongAnswer(subject, case, weights) for case, weights in _spread(evidence.right)]
        self.main = [answer for answer in (*self.wrong, *self.right) if answer.is_main]
        self.mistakes, self.named, self.is_unknown = [], [], False

    @property
    def hides_its_cause(self):
        """Whether a mixed batch (examples with different masks) is wrong for an unknown reason.

        Other deviations may then have the same reason.
        """
        return self.is_unknown and any(answer.is_main for answer in self.of_real)

    def explain(self, found, only=None):
        """Adds to ``found`` the mistakes that explain the values outside of fully masked rows.

        ``found`` has causes by their words. ``only`` has the words of the mistakes that are tried; None tries all,
        those in ``found`` first.
        """
        if only is None and self.is_right_if_sorted():
            found.setdefault(SORTED, Cause(SORTED)).counts[self.dtype] = len(self.of_real), len(self.of_real)
            return
        called = set().union(*(answer.call.primitives for answer in self.of_real))
        known = [m for m in self._known if m.primitive is None or m.primitive in called] if self.of_real else []
        named = [mistake for mistake in known if mistake.words in (found if only is None else only)]
        self.mistakes = self._best(named) or (self._best(known) if only is None else [])
        if self.mistakes:
            best = [m for m in self.mistakes if all(answer.is_where_empty(m) for answer in self.of_empty)]
            self.mistakes = best or self.mistakes  # fully masked rows show the number
            explained = [a for a in self.of_real if a.speaks_for(self.mistakes[0]) == EXPLAINED]
            self._add(found, self.mistakes, len(explained), len(self.of_real))
        self.is_unknown = bool(self.of_real) and not self.mistakes

    def is_right_if_sorted(self):
        """Returns whether unsorted segment ids give wrong results, which are right if the tokens are sorted by them."""
        found = [_with_sorted_segments(answer.call.case) for answer in self.of_real]
        if not found or None in found:
            return False
        calls = zip(found[:3], (answer.call.return_weights for answer in self.of_real), strict=False)
        right = [WrongAnswer.of(self.subject, case, weights) for case, weights in calls]
        return not any(answer is None or answer.wrong_where_real for answer in right)

    @functools.cached_property
    def _known(self):
        return list(mistakes.mistakes_of(self.subject.row, self.subject.oracle))

    def _best(self, known):
        """Returns those of the mistakes ``known``, all in the same words, that explain most, and at least half, of the wrong values."""
        best, most = [], 0
        for mistake in known:
            if most == len(self.of_real) > 0 and mistake.words != best[0].words:
                continue  # none explains more
            gain = self._gain(mistake, most)
            if gain > most:
                best, most = [mistake], gain
            elif best and gain == most and mistake.words == best[0].words:
                best.append(mistake)
        return best

    def _gain(self, mistake, least):
        """Returns the number of cases that a mistake explains minus the number that contradict it; at least 0.

        It is 0 if it would be less than ``least``, and unless the mistake explains half of the wrong values. It is also
        0 if a mixed batch contradicts it, or any case contradicts a ``whole`` mistake.
        """
        if any(answer.speaks_for(mistake) == CONTRADICTED for answer in self.main):
            return 0
        needed = max(least, (len(self.of_real) + 1) // 2)
        explained = _count(self.of_real, lambda answer: answer.speaks_for(mistake) == EXPLAINED, needed)
        if explained < needed:
            return 0
        against = sum(answer.speaks_for(mistake) == CONTRADICTED for answer in (*self.wrong, *self.right))
        return 0 if against and mistake.whole else max(explained - against, 0)

    def explain_coarsely(self, found, precision, named, words):
        """Explains wrong results by rounding in a narrower dtype.

        Results that equal those of a mistake in ``named`` up to such rounding count for this mistake in ``found``. If
        these and the results that are right up to such rounding are most of those that :attr:`mistakes` do not explain,
        they add the cause ``words`` to ``precision``, unless such rounding is allowed.
        """
        known = [a for a in self.of_real if any(a.speaks_for(mistake) == EXPLAINED for mistake in self.mistakes)]
        left = [answer for answer in self.of_real if answer not in known]
        right = []
        for mistake in named:
            others = [a for a in left if a not in right and a.speaks_for(mistake, loose=True) == EXPLAINED]
            if others:
                same = known if mistake.words in [m.words for m in self.mistakes] else []
                found[mistake.words].counts[self.dtype] = len(same) + len(others), len(self.of_real)
            exact = [a for a in others if a.speaks_for(mistake) == EXPLAINED]
            left, right = [a for a in left if a not in exact], [*right, *(a for a in others if a not in exact)]
        self.is_unknown = self.is_unknown and bool(left)
        rounded = [a for a in left if a not in right and a.equals(a.call.exact, a.real, loose=True)]
        if 2 * len([*right, *rounded]) > len(left):
            self.is_unknown = False
            if self.subject.whole_contract or not self.subject.is_narrow:  # else such rounding is allowed
                precision.setdefault(words, Cause(words)).counts[self.dtype] = len(right) + len(rounded), len(left)

    def explain_narrowly(self, precision):
        """Explains results that are as accurate as a narrower dtype, which holds each of their numbers, by it."""
        if not self.is_unknown:
            return
        for narrow in ("bfloat16", "float16"):
            found = sum(answer.equals(answer.call.exact, answer.real, loose=narrow) for answer in self.of_real)
            if 2 * found > len(self.of_real):
                words = NARROW.format(narrow)
                precision.setdefault(words, Cause(words)).counts[self.dtype] = found, len(self.of_real)
                self.is_unknown = False
                return

    def explain_empty(self, found):
        """Adds to ``found`` the mistake in fully masked rows, unless one that explains the values explains them."""
        left, right = self._left_empty(False)
        best, explained = self._best_of_empty(left, right, found)
        if best:
            self._add(found, best, explained, len(left))

    def explain_length_0(self, known, found):
        """Adds to ``found`` that the result is NaN at length 0, unless NaN is ``known`` for all fully masked rows."""
        left, right = self._left_empty(True)
        best, explained = self._best_of_empty(left, right, known)
        if best and best[0].words == mistakes.NAN and mistakes.NAN not in known:
            self._add(found, [replace(best[0], words=NAN_AT_LENGTH_0)], explained, len(left))

    def _best_of_empty(self, left, right, found):
        """Returns the mistakes, all in the same words, that explain most of the results ``left``, and how many.

        There are none if no mistake explains more than half, or if more of those in ``right``, or a mixed batch, contradict
        it. Mistakes with words in ``found`` are tried first.
        """
        best, most = [], len(left) // 2
        known = mistakes.of_empty_rows(self.subject.row) if left else ()
        for mistake in sorted(known, key=lambda mistake: mistake.words not in found):
            explained = _count(left, lambda answer, mistake=mistake: answer.is_where_empty(mistake), most)
            asked = [a for a in right if explained > most and a.answer_of(mistake) is not None]
            against = [a for a in asked if not a.is_where_empty(mistake)]
            if most < explained >= len(against) and not any(answer.is_main for answer in against):
                best, most = [mistake], explained
            elif best and explained == most and mistake.words == best[0].words:
                best.append(mistake)
        return best, most

    def _left_empty(self, of_length_0):
        """Returns the results that are wrong in fully masked rows and not explained, and those that are right there."""
        by_values = [*self.mistakes, *self.named]
        left = [answer for answer in self.of_empty if answer.is_of_length_0 == of_length_0]
        right = [a for a in (*self.wrong, *self.right) if a.is_of_length_0 == of_length_0 and not a.wrong_where_empty]
        return [
            a for a in left if not any(a.is_where_empty(mistake, self.subject.is_narrow) for mistake in by_values)
        ], [a for a in right if any(map(np.any, a.empty))]

    def _add(self, found, fitting, explained, wrong):
        cause = found.setdefault(fitting[0].words, Cause(fitting[0].words))
        numbers = list(dict.fromkeys(mistake.number for mistake in fitting))
        numbers = numbers if all(numbers) else []  # a mistake without a number explains the same results
        cause.numbers = [number for number in cause.numbers if number in numbers] or cause.numbers or numbers
        cause.counts[self.dtype] = explained, wrong

    def product(self):
        """Returns :data:`PRODUCT`, :data:`IN_MAXIMUM` or :data:`IN_SCORES` if NaN in padding reaches real tokens' results.

        Returns "" if it does not, or if a finite number in padding does, too.
        """
        return next(filter(None, map(self._product, self.poisoned[:2])), "")

    def _product(self, case):
        clean = WrongAnswer.of(self.subject, case, False)
        if clean is None:
            return ""
        finite = 64.0 if self.dtype == "float16" else FINITE
        try:
            spoiled, same = (self.subject.outputs(drawing.poisoned(case, number), False) for number in (np.nan, finite))
            one = self._in_one_feature(case)
        except Exception:  # the guarantee about padding reports the error
            return ""
        reached = False
        for real, before, after, with_number in zip(clean.real, clean.got, spoiled, same, strict=True):
            reached = reached or bool(np.any(np.isnan(after[real]) & ~np.isnan(before[real])))
            if not np.array_equal(before[real], with_number[real].astype(before.dtype), equal_nan=True):
                return ""
        if not reached:
            return ""
        called = Call(self.subject, case, False).primitives
        if called & {maximum, minimum} and mean not in called:
            return IN_MAXIMUM
        return IN_SCORES if one is not None and np.any(np.isnan(one[0][..., 1:])[clean.real[0][..., 1:]]) else PRODUCT

    def _in_one_feature(self, case):
        """Returns the results if padding is NaN in its first feature alone; None if features are mixed after the weights.

        A product with a weight of 0 then reaches the first feature of a result alone.
        """
        poisoned, values = drawing.poisoned(case, np.nan), {}
        mixes = "value_kernel" in case.row.arguments
        if poisoned is None or mixes or softmax not in Call(self.subject, case, False).primitives:
            return None
        for key in case.given("data"):
            has_features = case.row.arguments[key].own[-1] not in SEQUENCES
            first = has_features & (np.arange(case.values[key].shape[-1]) == 0)
            values[key] = np.where(first, poisoned.values[key], case.values[key])
        return self.subject.outputs(case.with_values("", **values), False)


def _count(answers, is_explained, least):
    """Returns the number of answers that are explained; 0 as soon as it is known that these are fewer than ``least``."""
    explained = 0
    for tried, answer in enumerate(answers, 1):
        explained += is_explained(answer)
        if explained + len(answers) - tried < least:
            return 0
    return explained


def _with_sorted_segments(case):
    """Returns the case with its packed tokens sorted by their segments; None if they are sorted, or if there are none."""
    orders = {case.axes[key][-1]: np.argsort(case.values[key], kind="stable") for key in case.given("segments")}
    if all(np.array_equal(order, np.arange(order.size)) for order in orders.values()):
        return None
    for axis, order in orders.items():
        case = drawing.take(case, "sorted", axis, order)
    return case


def _spread(cases):
    """Returns at most :data:`TRIED` cases, evenly spaced among all."""
    count = min(len(cases), TRIED)
    return [cases[i * len(cases) // count] for i in range(count)]


def _of_chance(evidence):
    """Returns a list with the cause that equal calls have different results; an empty one if no dtype proves it."""
    counts = {}
    for each in evidence:
        for case, weights in [*each.cases, *each.right][:TRIED]:
            with contextlib.suppress(Exception):  # the guarantee "an answer" reports the error
                one, other = (each.subject.read(case, each.subject.raw(case, weights)) for _ in range(2))
                if not all(map(agreement.same_bits, one, other)):
                    counts[each.subject.dtype] = 1, 1
    return [Cause(mistakes.CHANCE, counts=counts)] if counts else []


def _of_sizes(judged):
    """Returns the causes of wrong shapes: too few segments, missing axes of size 1, or two axes exchanged."""
    known = {mistakes.SIZE: mistakes.size_of} if "segment_ids" in judged[0].subject.row.arguments else {}
    known |= {WITH_SINK: _with_sink} if "sink" in judged[0].subject.row.arguments else {}
    others = {SQUEEZED: _squeezed, EXCHANGED: _exchanged}
    causes = {words: Cause(words) for words in known | others}
    for words, answer in (known | others).items():
        place = -1 if words == WITH_SINK else 0
        for each in judged:
            found, against = 0, 0
            for case, weights in each.cases:
                call, shape = Call(each.subject, case, weights), None
                with contextlib.suppress(Exception):  # the guarantee "an answer" reports the error
                    shape = each.subject.outputs(case, weights)[place].shape
                wrong = answer(call)
                found += wrong is not None and shape == wrong[place].shape
                against += (wrong is None or shape != wrong[place].shape) and shape != call.exact[place].shape
            if found and (words in known or not against):
                causes[words].counts[each.dtype] = found, found
    return [cause for cause in causes.values() if cause.counts]


def _with_sink(call):
    """Returns the right results, the weights with one more column; None without a sink, or if weights are not returned."""
    if call.values.get("sink") is None or not (call.return_weights or "scores" in call.values):
        return None
    *others, weights = call.exact
    column = [(0, 0)] * weights.ndim
    column[call.case.options.get("axis", -1)] = (0, 1)
    return [*others, np.pad(weights, column)]


def _exchanged(call):
    """Returns the right result with its last two axes exchanged; None if that has the same shape."""
    axes = call.exact[0].shape[-2:]
    return [np.swapaxes(call.exact[0], -1, -2)] if len({*axes}) == 2 else None


def _squeezed(call):
    """Returns the right results without axes of size 1; None if the first one has none."""
    return [np.squeeze(output) for output in call.exact] if 1 in call.exact[0].shape else None


def _of_dtypes(evidence, guarantees):
    """Returns a cause for each wrong dtype of results."""
    causes = {}
    for failure in guarantees[DTYPE].failures if guarantees[DTYPE].status == BROKEN else ():
        subject = next(each.subject for each in evidence if each.subject.dtype == failure.dtype)
        got = failure.message.partition(" has dtype ")[2].partition(",")[0]
        data = next((k for k, a in subject.row.arguments.items() if a.kind == "data" and subject.calling.takes(k)), "x")
        name = subject.calling.names.get(data, data)
        words = f"the result is {got}: convert it to the dtype of `{name}`"
        if subject.adapter.name == "numpy" and got == "float64":
            words = f"the result is float64: an integer count, an integer mask or np.sqrt(d) widens it; write `.astype({name}.dtype)`"
        causes.setdefault(words, Cause(words)).counts[failure.dtype] = 1, 1
    return list(causes.values())


def _of_products(judged):
    """Returns a list with the cause that padding is multiplied by 0; an empty one if no dtype proves it."""
    found = {each.dtype: each.product() for each in judged}
    if {dtype for dtype, words in found.items() if words} == {"float16"} and any(
        each.poisoned for each in judged if each.dtype != "float16"
    ):
        return []  # in float16 the number in padding is only 64, which does not exclude other causes
    causes = {words: Cause(words) for words in found.values() if words}
    for dtype, words in found.items():
        if words:
            causes[words].counts[dtype] = 1, 1
    return list(causes.values())


def _of_padding(guarantees, poisons):
    """Returns a list with the cause of right results or gradients that change with values in padding; or an empty one.

    Only guarantees about the values in padding named in ``poisons`` are considered, such as "inf".
    """
    kept = [guarantees[f"{name} in padding"] for name in poisons]
    if not any(each.status == BROKEN and not each.follows_from for each in kept):
        return []  # nothing is broken, or another guarantee explains it, as when every call raises an error
    dtypes = {failure.dtype: (1, 1) for each in kept for failure in each.failures}
    by_nan, by_number = (guarantees[f"{name} in padding"].status for name in ("NaN", "1e30"))
    return [Cause(PRODUCT if by_nan == BROKEN and by_number == HELD else READS, counts=dtypes)]
