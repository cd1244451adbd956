"""Mistakes about weights: of a softmax, of its mask and its axis, of shares of a sum, and of the factor of scores."""

import math

import numpy as np

from attnpool_ref.conformance.causes.mistake import ALWAYS, BOTH, mistake, powers_of_ten
from attnpool_ref.normalizers import normalize
from attnpool_ref.primitives import (
    inverse_root,
    log_softmax,
    mask_of_heads,
    share_beside_sink,
    shares,
    sigmoid,
    softmax,
)

STAND_IN = "a finite number in place of -inf for padding"
AVERAGED = "averages the padding of a fully masked row, as a finite number in place of -inf does"
MULTIPLIED = "multiplies scores by the mask: padding gets the score 0"
SCORE_0 = (
    "padding gets the score 0, by scores times the mask or tokens set to 0, and counts in the normalizer: use -inf"
)
NOT_AGAIN = "applies the mask after the normalizer, without normalizing again"
AGAIN = (
    "the mask comes after exp: beside a far larger score of padding the weights of real tokens vanish, 0 / 0, or are NaN, "
    "inf times 0; set the scores of padding to -inf before the softmax"
)
EPSILON = "an epsilon in the denominator"
EPSILON_UNSHIFTED = (
    "an epsilon in the denominator, after an exp that overflows: subtract the largest real score of each row first, and "
    "add nothing"
)
UNSHIFTED = "exp overflows or underflows: subtract the largest real score of each row first"
WHOLE_TOP = "subtracts the maximum of the whole array, not of each row, before exp: other rows underflow"
WRONG_AXIS = "normalizes over the wrong axis"
OVER_BATCH = "normalizes over the batch, not over the tokens"
OVER_ALL = "normalizes over the whole array, not over the tokens of each row"
ALL_SEGMENTS = "normalizes over the tokens of all segments, not of each segment"
AXIS_OF_1 = "takes the softmax over an axis of size 1: each weight is 1"
ADDED_AS_1 = "adds the mask to the scores as 0 and 1: padding keeps its weight; add 0 and -inf"

FILLS = {
    **powers_of_ten(-1e4, -1e9, -1e6, -9e15, -1e15, -1e30),
    None: "the dtype's least number",
    **{float(n): str(n) for n in (-100, -1000, -10, -5, -1, -20, -50, -9999, -65504)},
}
"""Numbers used in place of -inf at padding, the most frequent first."""

EPSILONS = powers_of_ten(1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)


def _top(scores, real, axis):
    """Returns the largest real score of each row, -inf without any."""
    return np.max(np.where(real, scores, -np.inf), axis, keepdims=True, initial=-np.inf)


def _nonzero(total):
    """Returns a sum with 1 in place of 0."""
    return np.where(total == 0, 1, total)


@mistake(ADDED_AS_1, softmax, raw=BOTH)
def added_as_0_and_1(a, scores, real, axis=-1):
    """The mask is added to the scores as it is."""
    return a.right(scores + real, np.ones_like(real), axis)


@mistake(
    "the logarithm of a softmax, which underflows to 0: subtract the logarithm of the sum", log_softmax, uncertain=True
)
def logarithm_of_weights(a, scores, real, axis=-1):
    """The weights are rounded before."""
    if a.off > 0:
        return a.right(scores, real, axis)
    weights = np.exp(a.right(scores, real, axis).astype(a.wide)).astype(np.float64)
    return np.log(np.where(weights < np.finfo(a.wide).tiny / a.eps, 0, weights) if a.off < 0 else weights)


@mistake(STAND_IN, softmax, numbers=FILLS, raw=BOTH)
def filled(a, scores, real, axis=-1):
    """The scores of padding are a number."""
    return a.right(np.where(real, scores, a.number), np.ones_like(real), axis)


@mistake(STAND_IN, softmax, numbers=FILLS, raw=ALWAYS)
def filled_and_zeroed(a, scores, real, axis=-1):
    """So they are, and then the weights of padding are set to 0."""
    return np.where(real, filled(a, scores, real, axis), 0)


@mistake(
    STAND_IN,
    softmax,
    numbers={n: f"{text} added" for n, text in FILLS.items() if n not in (None, -1)},
    raw=ALWAYS,
    empty=AVERAGED,
)
def added(a, scores, real, axis=-1):
    """The number is added to the scores of padding, in the dtype of the scores."""
    scores = scores.astype(a.wide) + np.where(real, a.wide(0), a.wide(a.number))
    return a.right(scores.astype(np.float64), np.ones_like(real), axis)


@mistake(MULTIPLIED, softmax, raw=BOTH)
def multiplied(a, scores, real, axis=-1):
    """The scores of padding are 0, and count."""
    return a.right(scores * real, np.ones_like(real), axis)


@mistake(NOT_AGAIN, softmax, raw=BOTH)
@mistake(NOT_AGAIN, normalize, raw=BOTH)
def masked_afterwards(a, scores, real, how=-1, *sink):
    """The weights of padding are set to 0 after the normalizer, whose axis or name is ``how``."""
    return np.where(real, a.right(scores, np.ones_like(real), how, *sink), 0)


@mistake(lambda row: MULTIPLIED if "scores" in row.arguments else SCORE_0, softmax, raw=ALWAYS)
def multiplied_and_zeroed(a, scores, real, axis=-1):
    """The scores of padding are 0 and count, but their weights are set to 0."""
    return np.where(real, multiplied(a, scores, real, axis), 0)


@mistake(MULTIPLIED, normalize, raw=BOTH)
def multiplied_before(a, scores, real, name, *sink):
    """The scores of padding are 0 before any normalizer."""
    return np.where(real, a.right(np.where(real, scores, 0), np.ones_like(real), name, *sink), 0)


@mistake(OVER_BATCH, softmax)
def over_the_batch(a, scores, real, axis=-1):
    """The softmax runs over the first axis."""
    return a.right(scores, real, 0) if scores.ndim > 1 else a.right(scores, real, axis)


@mistake(WRONG_AXIS, softmax)
def over_the_axis_before(a, scores, real, axis=-1):
    """The softmax runs over the other of the last two axes."""
    return a.right(scores, real, -2 if axis % scores.ndim == scores.ndim - 1 else -1) if scores.ndim > 1 else scores


@mistake("normalizes over the queries or hops, not over the tokens", softmax)
def over_several_queries(a, scores, real, axis=-1):
    """So it does where the result has an axis of queries, hops or clusters."""
    several = a.rank > len(a.call.case.batch) + 1
    return over_the_axis_before(a, scores, real, axis) if several else a.right(scores, real, axis)


@mistake(WRONG_AXIS, softmax)
def over_the_third_axis(a, scores, real, axis=-1):
    """The softmax runs over the third axis from the end, such as that of heads."""
    return a.right(scores, real, -3) if scores.ndim > 2 and axis % scores.ndim != scores.ndim - 3 else scores


@mistake(WRONG_AXIS, softmax, raw=ALWAYS)
def over_the_axis_before_and_masked(a, scores, real, axis=-1):
    """So it does, over padding too, and the mask is applied afterwards."""
    return np.where(real, over_the_axis_before(a, scores, np.ones_like(real), axis), 0)


@mistake(
    "averages the weights over the heads", softmax, when=lambda row: any("H" in a.own for a in row.arguments.values())
)
def mean_over_the_heads(a, scores, real, axis=-1):
    """All heads have the mean of their weights."""
    found = a.right(scores, real, axis)
    return np.broadcast_to(np.mean(found, -3, keepdims=True), found.shape) if found.ndim > 2 else found


@mistake(OVER_ALL, softmax)
def over_the_whole_array(a, scores, real, axis=-1):
    """The softmax runs over all axes at once."""
    return a.right(scores.reshape(-1), real.reshape(-1)).reshape(scores.shape)


@mistake(ALL_SEGMENTS, softmax, again=True, when=lambda row: row.packed)
def over_all_segments(a, scores, real, axis=-1):
    """The softmax runs over the tokens of all segments."""
    if len({np.delete(s.shape, axis).tobytes() for s, *_ in a.calls}) > 1:
        return a.right(scores, real, axis)  # the softmax of a token is not over the tokens
    every = np.concatenate([np.where(mask, s, -np.inf) for s, mask, *_ in a.calls], axis)
    top = np.max(every, axis, initial=-np.inf, keepdims=True)
    total = np.sum(np.exp(every - top), axis, keepdims=True)
    return np.where(real, np.exp(scores - top) / total, 0)


@mistake(AXIS_OF_1, softmax)
def over_an_axis_of_1(a, scores, real, axis=-1):
    """Each score is normalized by itself."""
    return np.where(real & (scores > -np.inf), 1.0, 0)


@mistake(EPSILON, softmax, numbers=EPSILONS)
def with_an_epsilon(a, scores, real, axis=-1):
    """A number is added to the sum of the powers."""
    top = _top(scores, real, axis)
    powers = np.where(real, np.exp(scores - np.where(np.isfinite(top), top, 0)), 0)
    powers = np.where(real & (top == np.inf), np.nan, powers)
    return powers / (np.sum(powers, axis, keepdims=True) + a.number)


@mistake(AGAIN, softmax, raw=ALWAYS)
def powers_times_the_mask(a, scores, real, axis=-1):
    """The powers of padding, which may be infinite, are multiplied by 0."""
    top = _top(scores, real, axis)
    powers = np.exp((scores - np.where(top == -np.inf, 0, top)).astype(a.wide)).astype(np.float64) * real
    return powers / _nonzero(np.sum(powers, axis, keepdims=True))


@mistake(AGAIN, softmax, raw=ALWAYS, uncertain=True)
def below_the_padding(a, scores, real, axis=-1):
    """The maximum of all scores, padding included, is subtracted, and the powers of padding are then set to 0."""
    if a.off > 0:
        return a.right(scores, real, axis)
    most = np.max(scores, axis, keepdims=True, initial=-np.inf)
    most = np.where(np.isnan(most), np.inf, np.where(most == -np.inf, 0, most))
    return _of_powers(a, scores - most, real, axis)


@mistake(AGAIN, softmax, numbers=powers_of_ten(1e-13, 1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5), raw=ALWAYS)
def masked_and_normalized_again(a, scores, real, axis=-1):
    """The weights of all tokens are masked, and divided by their sum plus a number."""
    found = masked_afterwards(a, scores, real, axis)
    return found / (np.sum(found, axis, keepdims=True) + a.number)


@mistake(AGAIN, softmax, numbers=powers_of_ten(1e-13, 1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5))
def multiplied_masked_and_normalized_again(a, scores, real, axis=-1):
    """The scores of padding are 0 before."""
    return masked_and_normalized_again(a, scores * real, real, axis)


@mistake(EPSILON, softmax, numbers=EPSILONS, raw=BOTH)
def below_the_padding_with_an_epsilon(a, scores, real, axis=-1):
    """The maximum is that of all scores, those of padding included, and the epsilon is added to what is left."""
    powers = np.where(real, np.exp(scores - np.max(scores, axis, keepdims=True, initial=-np.inf)), 0)
    return powers / (np.sum(powers, axis, keepdims=True) + a.number)


@mistake(EPSILON, softmax, numbers=EPSILONS)
def below_0_with_an_epsilon(a, scores, real, axis=-1):
    """The maximum is that of scores times the mask."""
    return below_the_padding_with_an_epsilon(a, scores * real, real, axis)


@mistake(UNSHIFTED, softmax, uncertain=True)
def unshifted(a, scores, real, axis=-1):
    """No maximum is subtracted from the scores."""
    return a.right(scores, real, axis) if a.off > 0 else _of_powers(a, scores, real, axis)


@mistake(EPSILON_UNSHIFTED, softmax, numbers=EPSILONS, uncertain=True)
def unshifted_with_an_epsilon(a, scores, real, axis=-1):
    """No maximum is subtracted, and a number is added to the sum of the powers."""
    powers = _powers(a, scores, real)
    return powers / (np.sum(powers, axis, keepdims=True) + a.number)


def _of_powers(a, scores, real, axis):
    """Returns the powers divided by their sum; with ``off`` of -2 they are 0 where the sum is 0."""
    powers = _powers(a, scores, real)
    total = np.sum(powers, axis, keepdims=True)
    return np.where((total == 0) & (a.off == -2), 0, powers / total)


def _powers(a, scores, real):
    """Returns exp of the real scores in the dtype of the scores; with ``off`` of -1 without subnormal numbers."""
    powers = np.where(real, np.exp(scores.astype(a.wide)), 0)
    least = float(np.finfo(a.wide).tiny) / a.eps if a.off < 0 else 0
    return np.where(powers < least, 0, powers).astype(np.float64)


@mistake(WHOLE_TOP, softmax, uncertain=True, again=True)
def below_the_whole_maximum(a, scores, real, axis=-1):
    """The maximum of all rows is subtracted, and of all segments."""
    if a.off > 0:
        return a.right(scores, real, axis)
    every = [(s, mask) for s, mask, *_ in a.calls] if a.call.row.packed else [(scores, real)]
    top = max(float(np.max(np.where(mask, s, -np.inf), initial=-np.inf)) for s, mask in every)
    return _of_powers(a, scores - (top if np.isfinite(top) else 0), real, axis)


@mistake("takes scores of exactly 0 for padding", softmax)
def zeros_as_padding(a, scores, real, axis=-1):
    """The mask is found by scores that are 0."""
    return a.right(scores, real & (scores != 0), axis)


@mistake("one is added to the sum of the exponentials, as softmax-off-by-one does", softmax)
def off_by_one(a, scores, real, axis=-1):
    """The denominator has another term, exp(0)."""
    top = np.maximum(np.max(np.where(real, scores, 0), axis, keepdims=True, initial=0), 0)
    powers = np.where(real, np.exp(scores - top), 0)
    return powers / (np.sum(powers, axis, keepdims=True) + np.exp(-top))


@mistake("gives each real token the same weight: the scores have no effect", softmax)
def uniform(a, scores, real, axis=-1):
    """All scores are equal."""
    return a.right(np.zeros_like(scores), real, axis)


@mistake("takes the softmax twice: of weights, not of scores", softmax)
def twice(a, scores, real, axis=-1):
    """The weights of a softmax are the scores of another."""
    return a.right(a.right(scores, real, axis), real, axis)


@mistake("a sigmoid in place of the softmax: the weights do not sum to 1", softmax)
def sigmoids(a, scores, real, axis=-1):
    """Each weight is the sigmoid of its score."""
    return np.where(real, sigmoid(scores), 0)


@mistake("no softmax: the scores are the weights", softmax)
def scores_as_weights(a, scores, real, axis=-1):
    """Nothing normalizes the scores."""
    return np.where(real, scores, 0)


@mistake("divides the scores by their sum, without exp", softmax)
def shares_of_scores(a, scores, real, axis=-1):
    """The scores are normalized as they are."""
    kept = np.where(real, scores, 0)
    return kept / np.sum(kept, axis, keepdims=True)


@mistake("does not divide by the sum of the exponentials", softmax)
def not_divided(a, scores, real, axis=-1):
    """The powers, below the largest score, are the weights."""
    top = _top(scores, real, axis)
    return np.where(real, np.exp(scores - top), 0)


@mistake("does not divide by the sum of the exponentials", softmax)
def powers_as_weights(a, scores, real, axis=-1):
    """The powers are the weights."""
    return np.where(real, np.exp(scores), 0)


@mistake("the logarithms of a softmax are the weights: exp is missing", softmax)
def logarithms_as_weights(a, scores, real, axis=-1):
    """A log-softmax takes the place of the softmax."""
    return np.where(real, np.log(a.right(scores, real, axis)), 0)


@mistake("the signs of the scores are exchanged: the least score has the largest weight", softmax)
def of_minus_the_scores(a, scores, real, axis=-1):
    """The scores are taken with the other sign."""
    return a.right(-scores, real, axis)


@mistake("only the token with the largest score has a weight", softmax)
def hard(a, scores, real, axis=-1):
    """The largest score has weight 1."""
    return np.where(real & (scores == _top(scores, real, axis)), 1.0, 0)


@mistake("an epsilon inside of the logarithm", log_softmax, numbers=EPSILONS)
def logarithm_of_an_epsilon(a, scores, real, axis=-1):
    """A number is added to the weights."""
    return np.log(np.exp(a.right(scores, real, axis)) + a.number)


@mistake(STAND_IN, normalize, numbers=FILLS, raw=BOTH)
def filled_before(a, scores, real, name, *sink):
    """The scores of padding are a number before any normalizer."""
    return a.right(np.where(real, scores, a.number), np.ones_like(real), name, *sink)


# Fully masked rows


@mistake("", softmax, raw=BOTH, empty=AVERAGED)
def uniform_where_empty(a, scores, real, axis=-1):
    """Fully masked rows have equal weights."""
    nothing = ~np.any(real, axis, keepdims=True)
    return np.where(nothing, 1 / max(scores.shape[axis], 1), a.right(scores, real, axis))


@mistake("", softmax, raw=BOTH, empty=AVERAGED)
def unmasked_where_empty(a, scores, real, axis=-1):
    """Fully masked rows have the weights of all tokens."""
    return a.right(scores, real | ~np.any(real, axis, keepdims=True), axis)


# Sinks


@mistake(
    "the sink cancels, as if it were added to every score, or the weights were divided by their sum again without it",
    share_beside_sink,
)
def without_sink(a, scores, mask, sink, axis=-1):
    """The weights are those of the softmax without a sink."""
    return np.any(mask & (scores > -np.inf), axis, keepdims=True).astype(float)


@mistake(
    "multiplies the sink by the scale of the scores: the sink is not scaled",
    share_beside_sink,
    when=lambda row: "scores" not in row.arguments,
)
def scaled_sink(a, scores, mask, sink, axis=-1):
    """The sink is scaled as the products are."""
    scale, sizes = a.call.values.get("scale"), a.call.case.sizes
    return a.right(
        scores,
        mask,
        sink * (inverse_root.__wrapped__(sizes.get("c", sizes.get("d", 1))) if scale is None else scale),
        axis,
    )


@mistake("adds the sink to the denominator as it is: exp is missing", share_beside_sink)
def sink_without_exp(a, scores, mask, sink, axis=-1):
    """The denominator has the sink itself."""
    return a.right(scores, mask, np.log(sink), axis)


@mistake("the sink has the other sign", share_beside_sink)
def negative_sink(a, scores, mask, sink, axis=-1):
    """The denominator has exp(-sink)."""
    return a.right(scores, mask, -sink, axis)


@mistake("a sink of 0 in place of the one that is given: softmax off by one", share_beside_sink)
def sink_of_0(a, scores, mask, sink, axis=-1):
    """The denominator has 1."""
    return a.right(scores, mask, np.zeros_like(sink), axis)


@mistake(
    "rescales by sigmoid(logsumexp - sink), which is NaN for a fully masked row: its weights are 0",
    share_beside_sink,
    empty=True,
)
def nan_without_keys(a, scores, mask, sink, axis=-1):
    """The logarithm of a sum of nothing is subtracted from itself."""
    share = a.right(scores, mask, sink, axis)
    return np.where(np.any(mask & (scores > -np.inf), axis, keepdims=True), share, np.nan)


# Given weights, and the factor of scores


@mistake(EPSILON, shares, numbers=EPSILONS)
def shares_with_an_epsilon(a, values, axis=-1):
    """A number is added to the sum."""
    return values / (np.sum(values, axis, keepdims=True) + a.number)


@mistake("a floor of 1 under the sum of the weights: smaller sums are not divided by", shares)
def shares_with_a_floor_of_1(a, values, axis=-1):
    """The sum is at least 1."""
    return values / np.maximum(np.sum(values, axis, keepdims=True), 1)


@mistake("does not divide by the sum of the weights", shares)
def weights_as_they_are(a, values, axis=-1):
    """Nothing is divided."""
    return values


@mistake("divides by the number of tokens, not by the sum of their weights", shares)
def shares_of_the_count(a, values, axis=-1):
    """The sum of the weights is taken to be the number of tokens."""
    return values / values.shape[axis]


@mistake("takes the magnitudes of the weights", shares)
def shares_of_magnitudes(a, values, axis=-1):
    """Negative weights count as positive ones."""
    return a.right(np.abs(values), axis)


@mistake("no 1/sqrt(d)", inverse_root)
def not_scaled(a, width):
    """Products are not scaled."""
    return 1.0


@mistake("1/d in place of 1/sqrt(d)", inverse_root)
def over_the_width(a, width):
    """Products are divided by the width."""
    return 1 / width


@mistake("multiplies by sqrt(d) in place of dividing", inverse_root)
def times_the_root(a, width):
    """Products are multiplied by the root."""
    return np.sqrt(width)


@mistake(
    "divides by the root of the whole model's width, not of a head's",
    inverse_root,
    when=lambda row: any("H" in a.own for a in row.arguments.values()),
)
def over_the_root_of_all_heads(a, width):
    """The width of all heads together."""
    return 1 / np.sqrt(width * a.call.case.sizes["H"])


@mistake("divides by the root of the input's width, not of the projected one", inverse_root)
def over_the_root_of_the_input(a, width):
    """The width before the kernels."""
    return 1 / np.sqrt(a.call.case.sizes.get("d", width))


@mistake("divides by the root of the number of tokens, not of the width", inverse_root)
def over_the_root_of_the_tokens(a, width):
    """The size of the other axis."""
    sizes = a.call.case.sizes
    return 1 / np.sqrt(sizes.get("m", sizes.get("L", width)))


@mistake("divides by the root of the values' width, not of the keys'", inverse_root)
def over_the_root_of_the_values(a, width):
    """The width of the values."""
    return 1 / np.sqrt(a.call.case.sizes.get("v", width))


@mistake(
    "repeats the masks of the batch for the heads in another order: np.repeat where np.tile is needed, or vice versa",
    mask_of_heads,
)
def in_another_order(a, mask, number):
    """Head h of example b has the mask of another example."""
    count = math.prod(mask.shape[:-2])
    examples = mask.reshape(count, *mask.shape[-2:])
    return examples[np.arange(count * number) % max(count, 1)].reshape(*mask.shape[:-2], number, *mask.shape[-2:])
