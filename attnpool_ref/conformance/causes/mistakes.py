"""Known mistakes, each with a function that computes its result: the definition with changed arguments or options.

They are derived from a function's row in the table, for each function in which they are possible. Mistakes about
weights change a part of the normalization: scores, mask, weights, or averaged values.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnpool_ref import contract
from attnpool_ref.conformance.causes import mistakes_of_tokens as of_tokens
from attnpool_ref.conformance.causes.normalization import SCORES, Normalization
from attnpool_ref.table.language import Needs


@dataclass(frozen=True)
class Mistake:
    """A known mistake: its description, and its result for a call.

    Attributes:
      words: the description. Mistakes with the same words are one cause in a report.
      answer: a function from a :class:`~attnpool_ref.conformance.causes.call.Call` to the wrong result, a list of
        arrays; to None if the mistake is not possible in the call.
      number: the number in the mistake as text, such as "-1e9", or "".
      whole: whether a single case that contradicts the mistake excludes it. This holds for mistakes about one argument,
        because another mistake may give the same results in some of the cases.
    """

    words: str
    answer: Callable[[Any], Any]
    number: str = ""
    whole: bool = False


# --------------------------------------------------------------------------------------------------------------
# Masks


def _masks(change, silent=False):
    """Returns the ``answer`` of a :class:`Mistake` that changes all masks; ``silent`` excludes calls without masks."""

    def answer(call):
        if not call.masks:
            return None if silent or call.case.given("int", "lengths") else call.exact
        return call.oracle(**{key: change(call.real(key)) for key in call.masks})

    return answer


def _one_mask(name, change):
    def answer(call):
        if name not in call.masks:
            return None if call.case.given("int", "lengths") else call.exact
        return call.oracle(**{name: change(call.real(name))})

    return answer


def _swapped_masks(first, second):
    def answer(call):
        if not {first, second} <= set(call.masks) or call.values[first].shape != call.values[second].shape:
            return None
        return call.oracle(**{first: call.values[second], second: call.values[first]})

    return answer


# --------------------------------------------------------------------------------------------------------------
# Parts of the softmax


def _softmax(change):
    """Returns the ``answer`` of a :class:`Mistake` about a softmax, with the weights ``change(normalization)``."""

    def answer(call):
        normalization = call.normalization()
        return None if normalization is None else normalization.answer(change(normalization))

    return answer


def _filled(number):
    def weights(a):
        number_ = float(_least(a)) if number is None else number
        return a.softmax(np.where(a.real, a.scores, number_))

    return weights


def _added(number):
    def weights(a):
        wide = np.float64 if a.call.subject.dtype == "float64" else np.float32
        with np.errstate(all="ignore"):
            scores = a.scores.astype(wide) + np.where(a.real, wide(0), wide(number))
        return a.softmax(scores.astype(np.float64))

    return weights


def _least(a):
    """Returns the most negative number of float64 if a :class:`Normalization` is judged in it, else of float32."""
    return np.finfo(np.float64 if a.call.subject.dtype == "float64" else np.float32).min


def _epsilon(number):
    def weights(a):
        found = a.softmax(np.where(a.real, a.scores, -np.inf), number)
        return np.where(a.real, found, 0)

    return weights


def _not_normalized_again(call):
    normalization = call.normalization(softmax=False)
    return (
        None if normalization is None else normalization.answer(np.where(normalization.real, normalization.weights, 0))
    )


def _multiplied(only_real):
    """Returns the ``answer`` of a mistake that multiplies scores by the mask.

    With ``only_real`` the weights of padding are 0.
    """

    def answer(call):
        normalization = call.normalization(softmax=False)
        if normalization is None or call.row.name not in SCORES:
            return None
        with np.errstate(invalid="ignore"):
            scores = normalization.scores * normalization.real
        if "scores" in call.values:
            weights = call.oracle(return_weights=bool(call.row.weights), scores=scores, **normalization.absent)[-1]
        else:
            weights = normalization.softmax(scores)
        return normalization.answer(np.where(normalization.real, weights, 0) if only_real else weights)

    return answer


def _over_the_other_axis(call):
    normalization = (
        Normalization(call) if call.masks and call.normalization() else None
    )  # not the cached one, because its axis is changed below
    if (
        normalization is None
        or normalization.scores.ndim < 2
        or len((call.row.weight_results or (("...", "n", "m"),))[0]) < 3
    ):
        return None
    normalization.axis = -1 if normalization.axis == -2 else -2
    found = normalization.softmax(np.where(normalization.real, normalization.scores, -np.inf))
    return normalization.answer(np.where(normalization.real, found, 0))


def _where_nothing_is_real(weights_of):
    """Returns a function that computes the right weights, but ``weights_of`` in fully masked rows."""

    def weights(a):
        nothing = ~np.any(a.real, a.axis, keepdims=True)
        found = np.where(a.real, a.softmax(np.where(a.real, a.scores, -np.inf)), 0)
        return np.where(nothing, weights_of(a), found)

    return weights


_uniform_where_empty = _where_nothing_is_real(lambda a: 1 / max(a.scores.shape[a.axis], 1))
_of_all_where_empty = _where_nothing_is_real(lambda a: a.softmax(a.scores))


# --------------------------------------------------------------------------------------------------------------
# Other arguments


def _without(key):
    def answer(call):
        if call.values[key] is None:
            return call.exact
        needing = [rule.argument for rule in call.row.relations if isinstance(rule, Needs) and rule.option == key]
        return call.oracle(**dict.fromkeys([key, *needing]))

    return answer


def _number(key, value):
    def answer(call):
        return call.oracle(**{key: np.float64(value)}) if call.values[key] is not None else call.exact

    return answer


def _option(key, value):
    def answer(call):
        return call.oracle(options={key: value}) if call.case.options.get(key) != value else call.exact

    return answer


def _swapped(first, second):
    def answer(call):
        a, b = call.values[first], call.values[second]
        if a is None or b is None or a.shape != b.shape:
            return None
        return call.oracle(**{first: b, second: a})

    return answer


def _results_swapped(call):
    count = len(call.row.results)
    if count != 2:
        return None
    return [call.exact[1], call.exact[0], *call.exact[2:]]


def _scaled(power):
    """Returns the ``answer`` of a mistake that multiplies scores of width d by ``d**power`` in place of 1/sqrt(d)."""

    def answer(call):
        name, values = call.row.name, call.values
        if "scale" in values and call.row.arguments["scale"].optional:
            width = call.case.sizes["c" if values.get("key_kernel") is not None else "d"]
            return call.oracle(scale=np.float64(width**power)) if values["scale"] is None else None
        if name not in ("multi_head_attention", "label_attention"):
            return None
        factor = values["query_kernel"].shape[-1] ** (power + 0.5)
        bias = values.get("query_bias")
        changed = {} if bias is None else {"query_bias": factor * bias}
        return call.oracle(query_kernel=factor * values["query_kernel"], **changed)

    return answer


def _norms(norm):
    """Returns the ``answer`` of a mistake that divides vectors by ``norm(n)`` in place of their norm n."""

    def answer(call):
        def unit(x, axis=-1):
            with np.errstate(all="ignore"):
                return x / norm(np.sqrt(np.sum(x * x, axis, keepdims=True)))

        if call.row.name == "l2_normalize":
            return [unit(call.values["x"], call.case.options.get("axis", -1))]
        if call.row.name == "cosine_score":
            return [unit(call.values["query"]) @ np.swapaxes(unit(call.values["key"]), -1, -2)]
        return None

    return answer


def _of_narrow_squares(norm):
    """Returns the norm computed from its square in float32, which may overflow or vanish; a square of 0 gives 1."""
    square = np.float32(norm * norm)
    return np.where(square == 0, 1, np.sqrt(square))


INVERTED = "equals the definition with `~mask`: its masks mean the opposite"
PADDED_LENGTH = "takes the mean over the padded length: divides by all tokens, not the real ones"
COUNTED = "counts the masked tokens: divides by all tokens, not the real ones"
FILLED = "replaces padding by a finite number before the maximum or minimum"
BY_COUNT = "takes the token at index (number of real tokens - 1): wrong unless all padding is on the right"
STAND_IN = "a finite number in place of -inf for padding"
MOMENTS = "subtracts the squared mean from the mean of squares, which cancels far from 0"
NAN = "NaN for a fully masked row"
INFINITE = "an infinite number for a fully masked row"
AVERAGED = "averages the padding of a fully masked row, as a finite number in place of -inf does"
READ = "reads the padding of a fully masked row"

FILLS = {-1e4: "-1e4", -1e6: "-1e6", -1e9: "-1e9", -1e30: "-1e30", None: "the dtype's least number"}
"""Numbers used in place of -inf at padding, in scores and before a maximum."""


def mistakes_of(row, oracle) -> Iterator[Mistake]:
    """Yields the mistakes that are possible in a function, whose definition is ``oracle``, the most specific first."""
    arguments, parameters = row.arguments, contract.signature_of(oracle).parameters
    masks = [key for key, argument in arguments.items() if argument.kind == "mask"]
    if masks:
        for silent in (False, True):  # a function may also invert its default mask of ones
            yield Mistake(INVERTED, _masks(np.logical_not, silent))
        yield Mistake("ignores the mask" if len(masks) == 1 else "ignores all masks", _masks(np.ones_like))
        if len(masks) > 1:
            for key in masks:
                yield Mistake(f"equals the definition with `~{key}`", _one_mask(key, lambda m: ~m))
                yield Mistake(f"ignores `{key}`", _one_mask(key, np.ones_like))
            yield Mistake(f"`{masks[0]}` and `{masks[1]}` are swapped", _swapped_masks(*masks[:2]))
        yield Mistake(PADDED_LENGTH, of_tokens.over_the_padded_length)
        yield Mistake(COUNTED, of_tokens.counting_the_masked)
        for number, text in (FILLS | {0.0: "0"}).items():
            yield Mistake(FILLED, of_tokens.filled_maximum(number), text)
        yield Mistake(BY_COUNT, of_tokens.last_by_count)
        for number, text in FILLS.items():
            yield Mistake(STAND_IN, _softmax(_filled(number)), text)
        for number, text in list(FILLS.items())[:-1]:
            yield Mistake(STAND_IN, _softmax(_added(number)), f"{text} added")
        for only_real in (False, True):
            yield Mistake("multiplies scores by the mask: padding gets the score 0", _multiplied(only_real))
        yield Mistake("applies the mask after the normalizer, without normalizing again", _not_normalized_again)
        yield Mistake("normalizes over the wrong axis", _over_the_other_axis)
    for number in (1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4):
        text = f"{number:.0e}".replace("e-0", "e-")
        yield Mistake("an epsilon in the denominator", _softmax(_epsilon(number)), text)
        yield Mistake("an epsilon in the denominator", of_tokens.epsilon_beside_the_count(number), text)
        if row.norms:
            yield Mistake("an epsilon added to the norm", _norms(lambda n, e=number: n + e), text)
            yield Mistake("a floor under the norm", _norms(lambda n, e=number: np.maximum(n, e)), text)
            yield Mistake("an epsilon under the root", _norms(lambda n, e=number: np.sqrt(n * n + e)), text)
    if row.norms:
        yield Mistake("the zero vector is NaN", _norms(lambda n: n))
        yield Mistake("squares overflow or vanish: scale by the largest component first", _norms(_of_narrow_squares))
    if row.name in of_tokens.SPREADS:
        yield Mistake(MOMENTS, of_tokens.by_moments)
    yield Mistake("no 1/sqrt(d)", _scaled(0))
    yield Mistake("1/d in place of 1/sqrt(d)", _scaled(-1))
    for key, argument in arguments.items():
        default = parameters[key].default
        if argument.optional and argument.kind != "mask":
            yield Mistake(f"ignores `{key}`", _without(key), whole=True)
        elif argument.kind == "number":
            if isinstance(default, (int, float)):
                yield Mistake(f"ignores `{key}`: it is always {default:g}", _number(key, default), whole=True)
            if default != 1:
                words = f"`{key}` is always 1"
                yield Mistake(
                    f"divides by N - 1: {words}" if key == "ddof" else words, _number(key, 1.0), whole=key != "ddof"
                )
    for key, allowed in row.options.items():
        values = allowed if isinstance(allowed, tuple) else {"flag": (False, True), "axis": (-1,)}.get(allowed, ())
        for value in values:
            yield Mistake(f"`{key}` is always {value!r}", _option(key, value), whole=True)
    data = [key for key, argument in arguments.items() if argument.kind == "data"]
    for i, first in enumerate(data):
        for second in data[i + 1 :]:
            yield Mistake(f"`{first}` and `{second}` are swapped", _swapped(first, second), whole=True)
    if len(row.results) == 2:
        yield Mistake("the two results are swapped", _results_swapped, whole=True)


def of_empty_rows(row) -> Iterator[Mistake]:
    """Yields the mistakes that are tried for wrong results in fully masked rows."""
    masks = [key for key, argument in row.arguments.items() if argument.kind == "mask"]
    yield Mistake(NAN, of_tokens.where_empty(np.nan))
    for value in (-np.inf, np.inf):
        yield Mistake(INFINITE, of_tokens.where_empty(value))
    if masks:
        yield Mistake(AVERAGED, _softmax(_uniform_where_empty))
        yield Mistake(AVERAGED, _softmax(_of_all_where_empty))
        for number, text in list(FILLS.items())[:-1]:
            yield Mistake(AVERAGED, _softmax(_added(number)), f"{text} added")
        for number, text in FILLS.items():
            yield Mistake(FILLED, of_tokens.filled_maximum(number), text)
        yield Mistake(READ, of_tokens.reading_all_where_empty)
