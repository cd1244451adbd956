"""Known mistakes, each with a function that computes its result: the definition with changed arguments or options.

They are derived from a function's row in the table, for each function in which they are possible. Mistakes about
weights change a part of the normalization: scores, mask, weights, or averaged values.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from attnpool_ref import contract
from attnpool_ref.conformance.causes import mistakes_of_tokens as of_tokens
from attnpool_ref.conformance.causes import mistakes_of_weights as of_weights
from attnpool_ref.conformance.causes.mistakes_of_weights import Normalization
from attnpool_ref.table.language import Needs


@dataclass(frozen=True)
class Mistake:
    """A known mistake: its description, and its result for a call.

    Attributes:
      words: the description. Mistakes with the same words are one cause in a report.
      answer: a function from a :class:`~attnpool_ref.conformance.causes.wrong_answers.Call` to the wrong result, a list of
        arrays; to None if the mistake is not possible in the call.
      number: the number in the mistake as text, such as "-1e9", or "".
      whole: whether a single case that contradicts the mistake excludes it. This holds for mistakes about one argument,
        because another mistake may give the same results in some of the cases.
    """

    words: str
    answer: Callable[[Any], Any]
    number: str = ""
    whole: bool = False


def _mistake(words, answer, text="", whole=False, **settings):
    """Returns the :class:`Mistake` with the result ``answer(call, **settings)`` and the number ``text``."""
    return Mistake(words, partial(answer, **settings), text, whole)


def _by_weights(words, weights_of, text="", **settings):
    """Returns the mistake with the weights ``weights_of(normalization, **settings)`` and the number ``text``."""
    return _mistake(words, of_weights.with_weights, text, weights_of=weights_of, **settings)


# --------------------------------------------------------------------------------------------------------------
# Masks


def _masks(call, change, name=None, silent=False):
    """Returns the result if ``change`` changes all masks, or the one called ``name``.

    ``silent`` excludes calls without masks.
    """
    keys = [key for key in call.masks if name in (None, key)]
    if not keys:
        return None if silent or call.case.given("int", "lengths") else call.exact
    return call.oracle(**{key: change(call.real(key)) for key in keys})


# --------------------------------------------------------------------------------------------------------------
# Other arguments


def _without(call, key):
    if call.values[key] is None:
        return call.exact
    needing = [rule.argument for rule in call.row.relations if isinstance(rule, Needs) and rule.option == key]
    return call.oracle(**dict.fromkeys([key, *needing]))


def _number(call, key, value):
    return call.oracle(**{key: np.float64(value)}) if call.values[key] is not None else call.exact


def _option(call, key, value):
    return call.oracle(options={key: value}) if call.case.options.get(key) != value else call.exact


def _swapped(call, first, second):
    a, b = call.values[first], call.values[second]
    if a is None or b is None or a.shape != b.shape:
        return None
    return call.oracle(**{first: b, second: a})


def _results_swapped(call):
    count = len(call.row.results)
    if count != 2:
        return None
    return [call.exact[1], call.exact[0], *call.exact[2:]]


def _scaled(call, power):
    """Returns the result if scores of width d are multiplied by ``d**power`` in place of 1/sqrt(d)."""
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


def _norms(call, norm):
    """Returns the result if vectors are divided by ``norm(n)`` in place of their norm n."""

    def unit(x, axis=-1):
        with np.errstate(all="ignore"):
            return x / norm(np.sqrt(np.sum(x * x, axis, keepdims=True)))

    if call.row.name == "l2_normalize":
        return [unit(call.values["x"], call.case.options.get("axis", -1))]
    if call.row.name == "cosine_score":
        return [unit(call.values["query"]) @ np.swapaxes(unit(call.values["key"]), -1, -2)]
    return None


def _of_narrow_squares(norm):
    """Returns the norm computed from its square in float32, which may overflow or vanish; a square of 0 gives 1."""
    square = np.float32(norm * norm)
    return np.where(square == 0, 1, np.sqrt(square))


def _gate_exchanged(call):
    """Returns the result if the activation gets the gate's parameters, and the sigmoid those of the hidden units."""
    pairs = {"kernel": "gate_kernel", "bias": "gate_bias"}
    if call.values["gate_kernel"] is None:
        return call.exact
    return call.oracle(**{a: call.values[b] for a, b in (*pairs.items(), *((b, a) for a, b in pairs.items()))})


INVERTED = "equals the definition with `~mask`: its masks mean the opposite"
PADDED_LENGTH = "takes the mean over the padded length: divides by all tokens, not the real ones"
COUNTED = "counts the masked tokens: divides by all tokens, not the real ones"
FILLED = "replaces padding by a finite number before the maximum or minimum"
STARTED = "the maximum or minimum starts at a finite number: start at -inf or inf"
BY_COUNT = "takes the token at index (number of real tokens - 1): wrong unless all padding is on the right"
STAND_IN = "a finite number in place of -inf for padding"
MOMENTS = "subtracts the squared mean from the mean of squares, which cancels far from 0"
NOT_AGAIN = "applies the mask after the normalizer, without normalizing again"
AGAIN = (
    "normalizes over padding too, then masks and normalizes again: the weights of real tokens vanish beside a larger score "
    "of padding; set the scores of padding to -inf before the softmax"
)
SCORE_0 = (
    "padding gets the score 0, by scores times the mask or tokens set to 0, and counts in the normalizer: use -inf"
)
CHANCE = "random: equal calls have different results; call .eval() on a module with dropout before it is judged"
SIZE = "takes the number of segments from the largest id: empty segments behind it are missing"
AS_0 = "sets padding to 0, but treats it as real tokens: padding must not count, nor get a weight"
LONE = "NaN for a single token: `ddof` leaves no token to divide by (n - ddof = 0)"
ADDED = "adds an epsilon to the variance: take the larger one of the variance and `epsilon`"
FLOOR = "a floor under the variance"
SORTED = "takes the segment ids as sorted: sort the tokens by their ids first, or add each token to the row of its id"
NEXT = "an empty segment takes the token of the next one, as `reduceat` does"
ALL_SEGMENTS = "normalizes over the tokens of all segments, not of each segment"
WHOLE_MAXIMUM = "takes the maximum of the whole array, not of each example"
WHOLE_TOP = "subtracts the maximum of the whole array, not of each row, before exp: other rows underflow"
UNSHIFTED = "exp overflows or underflows: subtract the largest real score of each row first"
EPSILON_UNSHIFTED = (
    "an epsilon in the denominator, after an exp that overflows: subtract the largest real score of each row first, and "
    "add nothing"
)
OVER_BATCH = "normalizes over the batch, not over the tokens"
OVER_ALL = "normalizes over the whole array, not over the tokens of each row"
GATE = "tanh and sigmoid are exchanged: the activation belongs to `kernel`, the sigmoid to `gate_kernel`"
MAXSIM_0 = "the product of padding is 0, which is larger than negative products: replace it by -inf before the maximum"
MAXSIM_COUNTS = "adds the largest products of padded query tokens: ignores `x_mask`"
NAN = "NaN for a fully masked row"
INFINITE = "an infinite number for a fully masked row"
AVERAGED = "averages the padding of a fully masked row, as a finite number in place of -inf does"
READ = "reads the padding of a fully masked row"

FILLS = {
    -100.0: "-100",
    **{number: f"{number:.0e}".replace("e+0", "e").replace("e+", "e") for number in (-1e4, -1e6, -1e9, -9e15, -1e30)},
    None: "the dtype's least number",
}
"""Numbers used in place of -inf at padding, in scores and before a maximum."""


def _power_of_ten(number):
    return f"{number:.0e}".replace("e-0", "e-")


def mistakes_of(row, oracle) -> Iterator[Mistake]:
    """Yields the mistakes that are possible in a function, whose definition is ``oracle``, the most specific first."""
    arguments, parameters = row.arguments, contract.signature_of(oracle).parameters
    masks = [key for key, argument in arguments.items() if argument.kind == "mask"]
    if masks:
        for silent in (False, True):  # a function may also invert its default mask of ones
            yield _mistake(INVERTED, _masks, change=np.logical_not, silent=silent)
        yield _mistake("ignores the mask" if len(masks) == 1 else "ignores all masks", _masks, change=np.ones_like)
        if len(masks) > 1:
            for key in masks:
                yield _mistake(f"equals the definition with `~{key}`", _masks, name=key, change=np.logical_not)
                counts = row.name in of_tokens.MAXSIM and key == masks[0]
                yield _mistake(MAXSIM_COUNTS if counts else f"ignores `{key}`", _masks, name=key, change=np.ones_like)
            yield _mistake(f"`{masks[0]}` and `{masks[1]}` are swapped", _swapped, first=masks[0], second=masks[1])
        yield _mistake(PADDED_LENGTH, of_tokens.over_the_padded_length)
        yield _mistake(COUNTED, of_tokens.counting_the_masked)
        for number, text in (FILLS | {0.0: "0"}).items():
            yield _mistake(FILLED, of_tokens.filled_maximum, text, number=number)
        for number, text in (FILLS | {0.0: "0"}).items():
            yield _mistake(STARTED, of_tokens.filled_maximum, text, number=number, start=True)
        yield _mistake(BY_COUNT, of_tokens.last_by_count)
        for zeroed in (False, True):
            for number, text in FILLS.items():
                yield _by_weights(STAND_IN, of_weights.filled, text, number=number, zeroed=zeroed)
        for number, text in list(FILLS.items())[:-1]:
            yield _by_weights(STAND_IN, of_weights.added, f"{text} added", number=number)
        multiplied = "multiplies scores by the mask: padding gets the score 0"
        yield _mistake(multiplied, of_weights.multiplied)
        yield _mistake(NOT_AGAIN, of_weights.not_normalized_again)
        yield _mistake(multiplied if "scores" in arguments else SCORE_0, of_weights.multiplied, only_real=True)
        yield _mistake("normalizes over the wrong axis", of_weights.over_the_other_axis)
        yield _mistake(OVER_BATCH, of_weights.over_all, axes=0)
        yield _mistake(OVER_ALL, of_weights.over_all, axes=None)
        yield _mistake(AGAIN, of_weights.below_another_row, padded=True)
        for number in (1e-13, 1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5):
            yield _by_weights(AGAIN, of_weights.again, _power_of_ten(number), number=number)
        yield _mistake(WHOLE_TOP, of_weights.below_another_row)
        yield _mistake(UNSHIFTED, of_weights.below_another_row, shifted=False)
        if not row.state:
            yield _mistake(MAXSIM_0 if row.name in of_tokens.MAXSIM else AS_0, of_tokens.padding_as_0)
    for number in (1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4):
        text = _power_of_ten(number)
        yield _by_weights("an epsilon in the denominator", Normalization.of_real, text, epsilon=number)
        yield _by_weights(EPSILON_UNSHIFTED, Normalization.of_real, text, epsilon=number, shifted=False)
        yield _mistake("an epsilon in the denominator", of_tokens.epsilon_beside_the_count, text, number=number)
        if row.norms:
            yield _mistake("an epsilon added to the norm", _norms, text, norm=lambda n, e=number: n + e)
            yield _mistake("a floor under the norm", _norms, text, norm=lambda n, e=number: np.maximum(n, e))
            yield _mistake("an epsilon under the root", _norms, text, norm=lambda n, e=number: np.sqrt(n * n + e))
    if row.norms:
        yield _mistake("the zero vector is NaN", _norms, norm=lambda n: n)
        yield _mistake(
            "squares overflow or vanish: scale by the largest component first", _norms, norm=_of_narrow_squares
        )
    if row.name in of_tokens.SPREADS | of_tokens.ATTENTIVE_SPREADS:
        yield _mistake(MOMENTS, of_tokens.of_variance, moments=True)
    if row.name in of_tokens.SPREADS:
        yield _mistake(LONE, of_tokens.nan_without_freedom)
        yield _mistake("divides by N - 1: `ddof` is always 1", of_tokens.nan_without_freedom, ddof=1.0)
    if row.name in of_tokens.SPREADS | of_tokens.ATTENTIVE_SPREADS:
        yield from _of_changed_variances()
    for features in (False, True):
        yield _mistake(WHOLE_MAXIMUM, of_tokens.maximum_of_all, features=features)
    if of_tokens.is_packed(row):
        yield _mistake(SORTED, of_tokens.sorted_by_counts)
        yield _mistake(SORTED, of_tokens.sorted_by_bounds)
        for which in (0, -1):
            yield _mistake(SORTED, of_tokens.one_run, which=which)
        for clamped in (False, True):
            yield _mistake(NEXT, of_tokens.by_reduceat, clamped=clamped, ordered=True)
        yield _mistake(ALL_SEGMENTS, of_tokens.softmax_over_all)
    if {"kernel", "bias", "gate_kernel"} <= arguments.keys():
        yield _mistake(GATE, _gate_exchanged)
    yield _mistake("no 1/sqrt(d)", _scaled, power=0)
    yield _mistake("1/d in place of 1/sqrt(d)", _scaled, power=-1)
    for key, argument in arguments.items():
        default = parameters[key].default
        if argument.optional and argument.kind != "mask":
            yield _mistake(f"ignores `{key}`", _without, key=key, whole=True)
        elif argument.kind == "number":
            if isinstance(default, (int, float)):
                yield _mistake(
                    f"ignores `{key}`: it is always {default:g}", _number, key=key, value=default, whole=True
                )
            if key == "ddof":
                yield _mistake("divides by N - 1: `ddof` is always 1", _number, key=key, value=1.0)
            elif default != 1:
                yield _mistake(f"`{key}` is always 1", _number, key=key, value=1.0, whole=True)
    for key, allowed in row.options.items():
        values = allowed if isinstance(allowed, tuple) else {"flag": (False, True), "axis": (-1,)}.get(allowed, ())
        for value in values:
            yield _mistake(f"`{key}` is always {value!r}", _option, key=key, value=value, whole=True)
    data = [key for key, argument in arguments.items() if argument.kind == "data"]
    for i, first in enumerate(data):
        for second in data[i + 1 :]:
            yield _mistake(f"`{first}` and `{second}` are swapped", _swapped, first=first, second=second, whole=True)
    if len(row.results) == 2:
        yield _mistake("the two results are swapped", _results_swapped, whole=True)


def _of_changed_variances():
    """Yields the mistakes of a standard deviation with an epsilon or a floor, without and with the difference of moments."""
    changes: list[tuple] = [("`epsilon`", np.add, None)]
    for number in (1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2):
        text = _power_of_ten(number)
        changes.append((text, lambda v, _, e=number: v + e, lambda v, _, e=number: np.maximum(v, e)))
    for text, added, floor in changes:
        yield _mistake(ADDED, of_tokens.of_variance, text, change=added)
        if floor is not None:
            yield _mistake(FLOOR, of_tokens.of_variance, text, change=floor)
    for _, *wrong in changes:
        for change in filter(None, wrong):
            yield _mistake(MOMENTS, of_tokens.of_variance, change=change, moments=True)


def of_empty_rows(row) -> Iterator[Mistake]:
    """Yields the mistakes that are tried for wrong results in fully masked rows."""
    masks = [key for key, argument in row.arguments.items() if argument.kind == "mask"]
    yield _mistake(NAN, of_tokens.where_empty, value=np.nan)
    for value in (-np.inf, np.inf):
        yield _mistake(INFINITE, of_tokens.where_empty, value=value)
    if masks:
        for uniform in (True, False):
            yield _by_weights(AVERAGED, of_weights.averaged_where_empty, uniform=uniform)
        for number, text in list(FILLS.items())[:-1]:
            yield _by_weights(AVERAGED, of_weights.added, f"{text} added", number=number)
        for number, text in FILLS.items():
            yield _mistake(FILLED, of_tokens.filled_maximum, text, number=number)
        yield _mistake(READ, of_tokens.reading_all_where_empty)
    if of_tokens.is_packed(row):
        for clamped in (False, True):
            for ordered in (True, False):
                yield _mistake(NEXT, of_tokens.by_reduceat, clamped=clamped, ordered=ordered)
