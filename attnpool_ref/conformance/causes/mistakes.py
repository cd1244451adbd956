"""All known mistakes of a function: those about its arguments, by its row in the table, and those about primitives."""

import itertools
from collections.abc import Iterator
from functools import partial

import numpy as np

from attnpool_ref import contract
from attnpool_ref.conformance.cases import SEQUENCES, full_mask
from attnpool_ref.conformance.causes import of_buckets, of_tokens, of_vectors, of_weights  # noqa: F401 (their rows are in the table)
from attnpool_ref.conformance.causes.mistake import TABLE, Mistake, least_number
from attnpool_ref.contract.text import listed
from attnpool_ref.primitives import softmax, unit_vector
from attnpool_ref.table.language import Needs

__all__ = ["Mistake", "mistakes_of", "of_empty_rows"]

INVERTED = "equals the definition with `~mask`: its masks mean the opposite"
CHANCE = "random: equal calls have different results; call .eval() on a module with dropout before it is judged"
SIZE = "takes the number of segments from the largest id: empty segments behind it are missing"
AS_0 = "sets padding to 0, but treats it as real tokens: padding must not count, nor get a weight"
FROM_THE_LEFT = "counts the real tokens from the left: wrong unless all padding is on the right"
GATE = "tanh and sigmoid are exchanged: the activation belongs to `kernel`, the sigmoid to `gate_kernel`"
COUNTS_QUERIES = "adds the largest products of padded query tokens: ignores `x_mask`"
ORDER = "the results stand in the order of the lengths, not of the examples: undo the sorting"
ALL_WEIGHTS = "divides by the weights of all tokens, padding included, not by those of the real ones"
GATES = "the gates of the LSTM have another order than i, f, g, o"
CLIPPED = "clips probabilities: those of 0 and 1 change"
NAN = "NaN for a fully masked row"
INFINITE = "an infinite number for a fully masked row"
READ = "reads the padding of a fully masked row"


def _mistake(words, answer, text="", whole=False, **settings):
    """Returns the :class:`Mistake` with the result ``answer(call, **settings)`` and the number ``text``."""
    return Mistake(words, partial(answer, **settings), text, whole)


# Masks


def _masks(call, change, name=None, silent=False):
    """Returns the result if ``change`` changes all masks, or the one called ``name``.

    ``silent`` excludes calls without masks.
    """
    keys = [key for key in call.masks if name in (None, key)]
    if not keys:
        return None if silent or call.case.given("int", "lengths") else call.exact
    return call.oracle(**{key: change(call.real(key)) for key in keys})


def _from_the_left(real):
    return np.arange(real.shape[-1]) < np.sum(real, -1, keepdims=True)


def _without_the_first(real):
    return real & (np.arange(real.shape[-1]) > 0)


def _without_the_last(real):
    return real & (np.cumsum(real, -1) < np.sum(real, -1, keepdims=True))


def _one_more(real):
    return np.arange(real.shape[-1]) <= np.sum(real, -1, keepdims=True)


def _of_the_first_example(real):
    return np.broadcast_to(real[:1], real.shape) if real.ndim > 1 else real


def _by_length(real):
    if real.ndim < 2:
        return real
    return real[np.argsort(-np.sum(real.reshape(len(real), -1), -1), kind="stable")]


def _of_the_next_example(real):
    return np.roll(real, -1, 0) if real.ndim > 1 else real


MASKS = (
    (FROM_THE_LEFT, _from_the_left),
    ("leaves out the token at position 0", _without_the_first),
    ("leaves out the last real token", _without_the_last),
    ("takes one token more than is real, as `arange <= length` does", _one_more),
    ("applies the mask of the first example to all", _of_the_first_example),
    ("the masks are in another order than the examples: sorted by length", _by_length),
    ("the masks are in another order than the examples: those of the next one", _of_the_next_example),
)
"""Changes of masks, with the description of each."""


def _causal(call):
    """Returns the result if no query sees a later key."""
    changed = {}
    for key, argument in call.row.arguments.items():
        if argument.kind == "mask" and argument.own[-2:] == ("n", "m"):
            n, m = call.case.sizes["n"], call.case.sizes["m"]
            seen = np.arange(m) <= np.arange(n)[:, None]
            changed[key] = seen if call.values[key] is None else call.real(key) & seen
    return call.oracle(**changed) if changed else None


def _where_batch_is_1(call):
    """Returns the result if the mask of a batch of one example is ignored."""
    return _masks(call, np.ones_like, silent=True) if np.prod(call.case.batch) == 1 else call.exact


def padding_as_0(call):
    """Returns the result if padding is replaced by 0, and is then treated as real tokens."""
    if not call.masks and call.case.given("int", "lengths"):
        return None
    values = {}
    for key in call.masks:
        data = next((k for k, a in call.row.arguments.items() if a.kind == "data" and _is_mask_of(call, key, k)), None)
        if data is None:
            return None
        real = np.broadcast_to(call.real(key), call.values[data].shape[:-1])
        values |= {data: np.where(real[..., None], call.values[data], 0), key: np.ones_like(call.real(key))}
    return call.oracle(**values)


def _is_mask_of(call, mask, data):
    """Returns whether ``mask`` is the mask of the tokens of ``data``."""
    axes = call.row.arguments[data].own
    return call.values[data] is not None and len(axes) > 1 and axes[:-1] == call.row.arguments[mask].own


def _masked_afterwards(call):
    """Returns weights if those of padding are set to 0 after any normalizer of scores."""
    if not call.masks:
        return None
    real = np.broadcast_to(call.real("mask"), call.exact[0].shape)
    return [np.where(real, call.oracle(mask=None)[0], 0)]


def _filled_scores(call, number, zeroed):
    """Returns the result of a normalizer of scores if those of padding are a number; with ``zeroed`` padding is 0 then."""
    if not call.masks:
        return None
    number = least_number(call) if number is None else number
    real = np.broadcast_to(call.real("mask"), call.exact[0].shape)
    found = call.oracle(mask=None, scores=np.where(real, call.values["scores"], number))[0]
    return [np.where(real, found, 0) if zeroed else found]


# Other arguments


def _without(call, key):
    if call.values[key] is None:
        return call.exact
    needing = [rule.argument for rule in call.row.relations if isinstance(rule, Needs) and rule.option == key]
    return call.oracle(**dict.fromkeys([key, *needing]))


def _number(call, key, value):
    return call.oracle(**{key: np.float64(value)}) if call.values[key] is not None else call.exact


def _changed(call, key, change):
    """Returns the result if ``change`` changes an argument."""
    with np.errstate(all="ignore"):
        return call.exact if call.values[key] is None else call.oracle(**{key: change(call.values[key])})


NUMBERS = (
    ("divides by `{}` where it multiplies, or vice versa", lambda number: np.where(number == 0, 0, 1 / number)),
    ("takes the square of `{}`", np.square),
    ("takes the root of `{}`", lambda number: np.sqrt(np.abs(number))),
    ("takes `{}` with the other sign", np.negative),
)
"""Changes of numbers, with the description of each."""


def _option(call, key, value):
    return call.oracle(options={key: value}) if call.case.options.get(key) != value else call.exact


def _swapped(call, first, second):
    a, b = call.values[first], call.values[second]
    if a is None or b is None or a.shape != b.shape:
        return None
    return call.oracle(**{first: b, second: a})


def _in_its_place(call, key, other):
    """Returns the result if one argument stands in the place of another of its shape."""
    a, b = call.values[key], call.values[other]
    return None if a is None or b is None or a.shape != b.shape else call.oracle(**{key: b})


def _softmax_of(call, key):
    """Returns the result if the softmax of the given weights, over the real tokens, are the weights."""
    value, mask = call.values[key], call.values.get("mask")
    if value is None or call.case.given("lengths"):
        return None
    axis = -1 if call.case.axes[key][-1] in SEQUENCES else -2
    real = np.ones(value.shape, bool) if mask is None else mask.astype(bool)
    real = np.broadcast_to(real[..., None] if real.ndim < value.ndim else real, value.shape)
    return call.oracle(**{key: softmax(value, real, axis)})


def _one_longer(call, key):
    return None if call.values[key] is None else call.oracle(**{key: call.values[key] + 1})


def _transposed(call, key):
    value = call.values[key]
    if value is None or value.ndim < 2 or value.shape[-1] != value.shape[-2]:
        return None
    return call.oracle(**{key: np.swapaxes(value, -1, -2)})


def _all_transposed(call):
    """Returns the result if all square matrices are transposed."""
    square = [k for k in call.case.given("parameter") if call.values[k].ndim == 2 and len({*call.values[k].shape}) == 1]
    return call.oracle(**{key: call.values[key].T for key in square}) if len(square) > 1 else None


def _zero(call, key):
    return call.exact if call.values[key] is None else call.oracle(**{key: np.zeros_like(call.values[key])})


def _pooled_first(call, key, mask, summed):
    """Returns the result if the tokens of an argument are replaced by their mean, or by their sum."""
    real = call.real(mask) if call.values[mask] is not None else np.ones(call.values[key].shape[:-1], bool)
    real = np.broadcast_to(real, call.values[key].shape[:-1])
    total = np.sum(np.where(real[..., None], call.values[key], 0), -2, keepdims=True)
    average = total / (1 if summed else np.maximum(np.sum(real, -1), 1)[..., None, None])
    lengths = {call.row.arguments[mask].lengths: None}
    return call.oracle(**{key: average, mask: np.any(real, -1, keepdims=True)}, **lengths)


def _with_masks_swapped(call, first, second):
    """Returns the result if two sequences are exchanged, each with its own arguments."""
    pairs = [(k, second + k.removeprefix(first)) for k in call.values if k == first or k.startswith(f"{first}_")]
    if any(other not in call.values for _, other in pairs):
        return None
    swapped = {a: call.values[b] for pair in pairs for a, b in (pair, pair[::-1])}
    of_all_pairs = call.row.results == (("B", "C"),)
    if not of_all_pairs and call.values[first].shape[:-2] != call.values[second].shape[:-2]:
        return None
    found = call.oracle(**swapped)
    if of_all_pairs:
        found = [each.T for each in found]
    return found if all(f.shape == e.shape for f, e in zip(found, call.exact, strict=True)) else None


def _unit_vectors(call, keys):
    """Returns the result if vectors of some arguments are divided by their norms first."""
    return call.oracle(**{key: unit_vector(call.values[key]) for key in keys if call.values[key] is not None})


def _complement(call):
    """Returns the result for 1 - x."""
    return call.oracle(x=1 - call.values["x"])


def _results_by_length(call):
    """Returns the results of the examples in the order of their lengths, the longest first."""
    key = next((key for key in call.masks), None)
    lengths = call.case.given("lengths")
    if not call.case.batch or not (key or lengths):
        return None
    counts = np.sum(call.real(key), -1) if key else np.asarray(call.values[lengths[0]])
    if counts.shape != tuple(call.case.batch[:1]) or any(output.shape[:1] != counts.shape for output in call.exact):
        return None
    order = np.argsort(-counts, kind="stable")
    return [output[order] for output in call.exact]


def _with_residual(call, key):
    """Returns the result plus an argument of its shape."""
    value, pooled = call.values[key], call.exact[0]
    if value is None or value.shape[-2:] != pooled.shape[-2:] or value.ndim > pooled.ndim:
        return None
    return [pooled + value, *call.exact[1:]]


def _changed_result(call, change):
    if call.exact[0].dtype.kind != "f":
        return None
    with np.errstate(all="ignore"):
        return [change(call.exact[0]), *call.exact[1:]]


def _over_an_axis(call, axis, multiplied):
    """Returns the result divided by the size of an axis, or multiplied by it."""
    size = call.case.sizes.get(axis)
    if not size or call.exact[0].dtype.kind != "f":
        return None
    return [call.exact[0] * (size if multiplied else 1 / size), *call.exact[1:]]


def _counts(call):
    """Returns the number of real tokens of each example or segment; None if the function has no mask, or several."""
    masks = [key for key, argument in call.row.arguments.items() if argument.kind == "mask"]
    if len(masks) != 1:
        return None
    axes = call.row.arguments[masks[0]].shapes[0]
    if call.case.given_masks():
        real = full_mask(call.case, masks[0])[0]
    elif axes[-1] in call.case.sizes:
        real = np.ones(contract.full_shape(axes, call.case.batch, call.case.sizes))
    else:
        return None
    if call.case.given("segments"):
        ids = call.values[call.case.given("segments")[0]]
        return np.bincount(ids, real, call.case.options["num_segments"])
    return np.sum(real, -1) if len(axes) == 2 and axes[0] == "..." else None


def _over_the_count(call, power):
    """Returns the result divided by a power of the number of real tokens of its example or segment."""
    count = _counts(call)
    if count is None or call.exact[0].dtype.kind != "f":
        return None
    factor = 1 / np.maximum(count, 1) ** power
    if call.row.packed and "num_segments" not in call.row.results[0]:  # a result for each token
        factor = factor[call.values[call.case.given("segments")[0]]]
    return [call.exact[0] * factor.reshape(factor.shape + (1,) * (call.exact[0].ndim - factor.ndim)), *call.exact[1:]]


def _over_k(call, most):
    """Returns the result of the largest k tokens if their sum is divided by k, also where fewer are real.

    With ``most`` it is divided by k, but by no more than the number of tokens, padding included.
    """
    k, counted = call.case.options.get("k"), _over_the_count(call, 1)
    if k is None or counted is None:
        return None
    with np.errstate(all="ignore"):
        count = np.where(call.exact[0] == 0, 1, call.exact[0] / counted[0])
    by = min(k, max(call.case.sizes.get("L", k), 1)) if most else k
    return [call.exact[0] * np.minimum(np.round(count), k) / by, *call.exact[1:]]


def _over_another_sum(call, counted):
    """Returns the sum under the given weights, divided by that of all weights, or with ``counted`` by the number of tokens."""
    packed = call.case.given("segments")
    real = full_mask(call.case, "mask")[0] if call.case.given_masks() else np.ones(call.values["x"].shape[:-1], bool)
    weights = real.astype(float) if call.values["weights"] is None else call.values["weights"]
    if weights.ndim == real.ndim:
        weights = weights[..., None]
    kept = np.where(real[..., None], weights, 0)
    other = np.where(real[..., None], 1.0, 0) if counted else weights
    with np.errstate(all="ignore"):
        if not packed:
            return [call.exact[0] * np.sum(kept, -2) / np.sum(other, -2)]
        ids = call.values[packed[0]]
        owns = [ids == segment for segment in range(call.case.options["num_segments"])]
        factors = [np.sum(kept[own], 0) / np.sum(other[own], 0) for own in owns]
        return [np.where(call.exact[0] == 0, 0, call.exact[0] * np.stack(factors))]


def _place_of_the_count(call, floored):
    """Returns the quantiles at q N in place of q (N - 1), ``floored`` or interpolated."""
    count, q = _counts(call), call.values["q"]
    if count is None or not 0 <= q <= 1:
        return None
    found = call.exact[0]
    for number in np.unique(count[count > 1]):
        place = np.minimum(np.floor(q * number) if floored else q * number, number - 1)
        found = np.where((count == number)[..., None], call.oracle(q=place / (number - 1))[0], found)
    return [found]


def _without_the_last_position(call, key):
    """Returns the positions of spans without the last one of each."""
    return [call.exact[0] & (np.arange(call.exact[0].shape[-1]) != call.values[key][..., 1:])]


def _over_padded_queries(call):
    """Returns the mean over the tokens of a padded query of the results that are means over its real tokens."""
    if not call.case.options.get("mean") or call.values["x_mask"] is None:
        return None
    share = np.mean(full_mask(call.case, "x_mask")[0], -1)
    return [output * share.reshape(share.shape + (1,) * (output.ndim - share.ndim)) for output in call.exact]


def _unscaled_bias(call):
    """Returns the result if the bias of the query is multiplied by the root of a head's width."""
    bias, scale = call.values["query_bias"], call.values.get("scale")
    if bias is None:
        return call.exact
    return call.oracle(query_bias=bias * (np.sqrt(bias.shape[-1]) if scale is None else 1 / scale))


def _gates(call, order):
    """Returns the result if the gates of an LSTM, i, f, g and o, stand in another order."""
    changed = {}
    for key, argument in call.row.arguments.items():
        if argument.own[-1:] == ("4d",):
            parts = np.split(call.values[key], 4, -1)
            changed[key] = np.concatenate([parts[place] for place in order], -1)
    return call.oracle(**changed)


def _without_ghosts(call):
    """Returns the result if the columns of ghost clusters are cut off before the softmax."""
    count = call.case.sizes["K"]
    keys = [key for key in call.case.given("parameter") if call.row.arguments[key].own[-1:] == ("K+G",)]
    return call.oracle(**{key: call.values[key][..., :count] for key in keys})


def _negated(call):
    """Returns minus the result of minus the data."""
    data = {key: -call.values[key] for key in call.case.given("data") if call.values[key].dtype.kind == "f"}
    return [-output if output.dtype.kind == "f" else output for output in call.oracle(**data)]


def _normalized(result):
    return unit_vector(result) if result.ndim else result


RESULTS = (
    ("divides the result by its norm: the definition does not", _normalized),
    ("the result is twice that of the definition", lambda result: 2 * result),
    ("the result is half of that of the definition", lambda result: result / 2),
    ("returns the root of the result", lambda result: np.sqrt(np.abs(result))),
    ("returns the square of the result", np.square),
    ("returns the result with the other sign", np.negative),
    ("returns one minus the result", lambda result: 1 - result),
)
"""Changes of results, with the description of each."""


def _plus_1(call):
    """Returns positions that count from 1."""
    return [call.exact[0] + (call.exact[0] >= 0)] if call.exact[0].dtype.kind == "i" else None


def _results_swapped(call):
    count = len(call.row.results)
    if count != 2:
        return None
    return [call.exact[1], call.exact[0], *call.exact[2:]]


def _gate_exchanged(call):
    """Returns the result if the activation gets the gate's parameters, and the sigmoid those of the hidden units."""
    pairs = {"kernel": "gate_kernel", "bias": "gate_bias"}
    if call.values["gate_kernel"] is None:
        return call.exact
    return call.oracle(**{a: call.values[b] for a, b in (*pairs.items(), *((b, a) for a, b in pairs.items()))})


def size_of(call):
    """Returns the result for as many segments as the largest id plus 1, which may be fewer than ``num_segments``."""
    ids = call.values["segment_ids"]
    size = int(np.max(ids, initial=-1)) + 1
    if size >= call.case.options["num_segments"] or any("num_segments" in axes for axes in call.case.axes.values()):
        return None
    return call.oracle(options={"num_segments": size})


# Fully masked rows


def _where_empty(call, value):
    """Returns the right result, except for ``value`` in fully masked rows."""
    if call.empty is None or any(output.dtype == bool for output in call.exact):
        return None
    return [np.where(e, value, o) for e, o in zip(call.empty, call.exact, strict=True)]


def _reading_all_where_empty(call):
    """Returns the right result, except in fully masked rows: there it is that of the definition without a mask."""
    if not call.masks or call.empty is None:
        return None
    bare = call.oracle(**{key: np.ones_like(call.real(key)) for key in call.masks})
    return [np.where(e, a, o) for e, a, o in zip(call.empty, bare, call.exact, strict=True)]


def mistakes_of(row, oracle) -> Iterator[Mistake]:
    """Yields the mistakes that are possible in a function, whose definition is ``oracle``, the most specific first."""
    yield from _of_masks(row)
    for exchange in TABLE:
        if exchange.words:
            yield from exchange.mistakes(row)
    yield from _of_scores(row)
    if any(argument.kind == "mask" for argument in row.arguments.values()):
        if not row.state:
            yield _mistake(AS_0, padding_as_0)
        for words, change in MASKS:
            yield _mistake(words, _masks, change=change, silent=True, whole=True)
        yield _mistake("no query sees a later key: a causal mask is added", _causal, whole=True)
        yield _mistake("ignores the mask of a single example", _where_batch_is_1, whole=True)
    yield from _of_arguments(row, contract.signature_of(oracle).parameters)


def _of_masks(row):
    """Yields the mistakes about masks that are tried first."""
    masks = [key for key, argument in row.arguments.items() if argument.kind == "mask"]
    if not masks:
        return
    for silent in (False, True):  # a function may also invert its default mask of ones
        yield _mistake(INVERTED, _masks, change=np.logical_not, silent=silent)
    yield _mistake("ignores the mask" if len(masks) == 1 else "ignores all masks", _masks, change=np.ones_like)
    if len(masks) > 1:
        for key in masks:
            yield _mistake(f"equals the definition with `~{key}`", _masks, name=key, change=np.logical_not)
            scores = row.results == (("...",),) or row.results == (("B", "C"),)
            counts = scores and key == masks[0]
            yield _mistake(COUNTS_QUERIES if counts else f"ignores `{key}`", _masks, name=key, change=np.ones_like)
        yield _mistake(f"`{masks[0]}` and `{masks[1]}` are swapped", _swapped, first=masks[0], second=masks[1])


def _of_scores(row):
    """Yields the mistakes about masks of any normalizer of scores."""
    if next(iter(row.arguments)) == "scores" and row.results == (row.arguments["scores"].shapes[0],):
        yield _mistake(of_weights.NOT_AGAIN, _masked_afterwards)
        for number, text in of_weights.FILLS.items():
            for zeroed in (False, True):
                yield _mistake(of_weights.STAND_IN, _filled_scores, text, number=number, zeroed=zeroed)


def _of_arguments(row, parameters):
    """Yields the mistakes about single arguments other than masks, options and results."""
    arguments = row.arguments
    if {"kernel", "bias", "gate_kernel"} <= arguments.keys():
        yield _mistake(GATE, _gate_exchanged)
    for key, argument in arguments.items():
        default = parameters[key].default
        if argument.optional and argument.kind != "mask":
            yield _mistake(f"ignores `{key}`", _without, key=key, whole=True)
        elif argument.numeric:
            if isinstance(default, (int, float)):
                yield _mistake(
                    f"ignores `{key}`: it is always {default:g}", _number, key=key, value=default, whole=True
                )
            if key == "ddof":
                yield _mistake(of_tokens.ALWAYS_1, _number, key=key, value=1.0)
            elif default != 1:
                yield _mistake(f"`{key}` is always 1", _number, key=key, value=1.0, whole=True)
        elif argument.kind == "parameter":
            words = f"ignores `{key}`: as if it were 0"
            if key == "query_kernel" and argument.own[-1] == "h":
                words = "the query cancels: `query_kernel` is ignored, or the tanh is not of the sum with the key"
            yield _mistake(words, _zero, key=key, whole=True)
        if argument.numeric:
            for words, change in NUMBERS:
                yield _mistake(words.format(key), _changed, key=key, change=change, whole=True)
        if argument.kind == "parameter":
            yield _mistake(f"`{key}` is transposed", _transposed, key=key, whole=True)
    for key, allowed in row.options.items():
        values = allowed if isinstance(allowed, tuple) else {"flag": (False, True), "axis": (-1,)}.get(allowed, ())
        for value in values:
            yield _mistake(f"`{key}` is always {value!r}", _option, key=key, value=value, whole=True)
    for first, second in itertools.permutations([k for k, a in arguments.items() if a.kind == "data"], 2):
        words = f"`{first}` stands in the place of `{second}`"
        yield _mistake(words, _in_its_place, key=second, other=first, whole=True)
    if "scores" in arguments:
        words = "the scores are twice as large: those of entmax15 are halved first"
        yield _mistake(words, _changed, key="scores", change=lambda scores: 2 * scores)
    if "weights" in arguments:
        yield _mistake("takes a softmax of `weights`: they are weights already", _softmax_of, key="weights", whole=True)
    if {"x", "weights"} <= arguments.keys():
        for counted, words in (
            (False, ALL_WEIGHTS),
            (True, "divides by the number of tokens, not by the sum of their weights"),
        ):
            yield _mistake(words, _over_another_sum, counted=counted, whole=True)
    for kind in ("data", "parameter"):
        same = [key for key, argument in arguments.items() if argument.kind == kind]
        for i, first in enumerate(same):
            for second in same[i + 1 :]:
                yield _mistake(
                    f"`{first}` and `{second}` are swapped", _swapped, first=first, second=second, whole=True
                )
    for key, argument in arguments.items():
        mask = argument.name + "_mask"
        if (
            mask in arguments
            and len(argument.own) == 2
            and not {*argument.own[:1]} & {a for r in row.results for a in r}
        ):
            for summed in (False, True):
                words = f"pools `{key}` before it is compared"
                yield _mistake(words, _pooled_first, key=key, mask=mask, summed=summed, whole=True)
    yield _mistake("the kernels are transposed", _all_transposed, whole=True)
    data = [key for key, argument in arguments.items() if argument.kind == "data" and argument.own]
    for first, second in itertools.pairwise(key for key in arguments if f"{key}_mask" in arguments):
        words = f"`{first}` and `{second}` are exchanged, with their masks"
        yield _mistake(words, _with_masks_swapped, first=first, second=second, whole=True)
    if not row.state and not row.norms:
        for keys in dict.fromkeys([*((key,) for key in data), tuple(data)]):
            words = f"divides {listed(keys)} by the norm of each vector first"
            yield _mistake(words, _unit_vectors, keys=keys, whole=True)
    if row.unit:
        yield _mistake("takes 1 - x in place of x", _complement, whole=True)
    yield _mistake(ORDER, _results_by_length, whole=True)
    for key in (*data, *(key for key, argument in arguments.items() if argument.kind == "parameter")):
        yield _mistake(f"adds `{key}` to the result, a residual", _with_residual, key=key, whole=True)
    named = {axis: f"[{', '.join(a.own)}]" for a in arguments.values() for axis in a.own if a.kind != "mask"}
    for axis in (axis for axis in named if not any(axis in axes for axes in row.results)):
        for multiplied, words in ((False, "divides the result by"), (True, "multiplies the result by")):
            words = (
                f"{words} {axis}, a size of {named[axis]}: a {'sum' if multiplied else 'mean'} in place of the other"
            )
            yield _mistake(words, _over_an_axis, axis=axis, multiplied=multiplied, whole=True)
    for power, words in ((1, "the number of real tokens: a mean"), (0.5, "the root of the number of real tokens")):
        yield _mistake(f"divides the result by {words}", _over_the_count, power=power, whole=True)
    if "k" in row.options:
        for most in (False, True):
            yield _mistake("divides by k also where fewer tokens are real", _over_k, most=most, whole=True)
    if "mean" in row.options and "x_mask" in arguments:
        yield _mistake("divides by the padded length of the query", _over_padded_queries, whole=True)
    if "q" in arguments:
        for floored in (False, True):
            words = "takes the value at position q N of the sorted tokens, not at q (N - 1)"
            yield _mistake(words, _place_of_the_count, floored=floored, whole=True)
    if "p" in arguments:
        yield _mistake("takes the magnitudes of negative numbers", _changed, key="x", change=np.abs, whole=True)
    if any(argument.own[-1:] == ("4d",) for argument in arguments.values()):
        for order in ((0, 1, 3, 2), (0, 2, 1, 3), (0, 3, 1, 2), (1, 0, 2, 3)):
            yield _mistake(GATES, _gates, order=order, whole=True)
    if any(argument.own[-1:] == ("K+G",) for argument in arguments.values()):
        yield _mistake("the ghost clusters take no weight: cut them off after the softmax", _without_ghosts)
    if "query_bias" in arguments and "query_kernel" in arguments:
        words = "the query's bias is not scaled: it is added after the division by the root of the width"
        yield _mistake(words, _unscaled_bias, whole=True)
    if row.unit:
        for number, text in of_tokens.SMALL.items():
            clip = partial(np.clip, a_min=number, a_max=1 - number)
            yield _mistake(CLIPPED, _changed, text, key="x", change=clip)
    if not row.state:
        yield _mistake("takes the smallest where the largest is meant, or vice versa", _negated, whole=True)
    yield _mistake("positions count from 1", _plus_1, whole=True)
    for key in (key for key, argument in arguments.items() if argument.kind == "index"):
        yield _mistake("the last position of a span is missing: its end is in it", _without_the_last_position, key=key)
    if not any(argument.kind == "mask" for argument in arguments.values()):
        for key in (key for key, argument in arguments.items() if argument.kind in ("int", "lengths")):
            words = "takes one token more than is real, as `arange <= length` does"
            yield _mistake(words, _one_longer, key=key, whole=True)
    for words, change in RESULTS:
        yield _mistake(words, _changed_result, change=change, whole=True)
    if len(row.results) == 2:
        yield _mistake("the two results are swapped", _results_swapped, whole=True)


def of_empty_rows(row) -> Iterator[Mistake]:
    """Yields the mistakes that are tried for wrong results in fully masked rows."""
    yield _mistake(NAN, _where_empty, value=np.nan)
    for value in (-np.inf, np.inf):
        yield _mistake(INFINITE, _where_empty, value=value)
    for exchange in TABLE:
        if exchange.empty:
            yield from exchange.mistakes(row, "" if exchange.empty is True else exchange.empty)
    if any(argument.kind == "mask" for argument in row.arguments.values()):
        yield _mistake(READ, _reading_all_where_empty)
