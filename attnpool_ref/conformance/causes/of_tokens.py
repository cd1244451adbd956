"""Mistakes about tokens: means, maxima, positions, moments, and tokens of segments."""

from dataclasses import replace

import numpy as np

from attnpool_ref.conformance.causes.mistake import ALWAYS, BOTH, mistake, powers_of_ten
from attnpool_ref.conformance.causes.of_weights import EPSILON, EPSILONS, FILLS
from attnpool_ref.primitives import (
    between,
    first_position,
    last_position,
    maximum,
    mean,
    mean_of_exponentials,
    members,
    minimum,
    moments,
    reduced,
    sums_of_residuals,
)

PADDED_LENGTH = "takes the mean over the padded length: divides by all tokens, not the real ones"
COUNTED = "counts the masked tokens: divides by all tokens, not the real ones"
FILLED = "replaces padding by a finite number before the maximum or minimum"
STARTED = "the maximum or minimum starts at a finite number: start at -inf or inf"
INCLUDES_SELF = "counts the initial 0 as a token, as `scatter_reduce` with include_self=True does"
WHOLE_MAXIMUM = "takes the maximum of the whole array, not of each example"
MAXSIM_0 = "the product of padding is 0, which is larger than negative products: replace it by -inf before the maximum"
BY_COUNT = "takes the token at index (number of real tokens - 1): wrong unless all padding is on the right"
MOMENTS = "subtracts the squared mean from the mean of squares, which cancels far from 0"
LONE = "NaN for a single token: `ddof` leaves no token to divide by (n - ddof = 0)"
ADDED = "adds an epsilon to the variance: take the larger one of the variance and `epsilon`"
FLOOR = "a floor under the variance"
ALWAYS_1 = "divides by N - 1: `ddof` is always 1"
CONTEXT = "the statistics of the context count padding: give them the mask too"
OVERWRITTEN = "keeps one token of each segment: `out[ids] += x` adds the last one alone"
NEXT = "an empty segment takes the token of the next one, as `reduceat` does"

STARTS = {0.0: "0"} | FILLS
LARGE = {0.0: "0"} | powers_of_ten(1e4, 1e9, 1e6, 1e30) | {65504.0: "65504", 9999.0: "9999"}
SMALL = powers_of_ten(1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)


# Means


@mistake(lambda row: COUNTED if row.packed else PADDED_LENGTH, mean)
def over_the_padded_length(a, x, mask):
    """The sum of the real tokens is divided by the number of all."""
    return _sum(x, mask) / mask.shape[-1]


def _sum(x, mask):
    return np.sum(np.where(mask[..., None], x, 0), -2)


def _count(mask):
    return np.sum(mask, -1)[..., None]


@mistake(EPSILON, mean, numbers=EPSILONS)
def mean_with_an_epsilon(a, x, mask):
    """A number is added to the count."""
    return _sum(x, mask) / (_count(mask) + a.number)


@mistake("does not divide by the number of tokens: the sum, not the mean", mean)
def sum_of_tokens(a, x, mask):
    """Nothing is divided."""
    return _sum(x, mask)


@mistake(INCLUDES_SELF, mean, when=lambda row: row.packed)
@mistake("divides by one token more than there are", mean, when=lambda row: not row.packed)
def one_more(a, x, mask):
    """The count is N + 1."""
    return _sum(x, mask) / (_count(mask) + 1)


@mistake("divides by one token less than there are", mean)
def one_less(a, x, mask):
    """The count is N - 1."""
    return _sum(x, mask) / np.maximum(_count(mask) - 1, 1)


@mistake("divides by the root of the number of tokens", mean)
def over_the_root(a, x, mask):
    """The sum is divided by the root of N, as one of sentence-transformers' modes does."""
    return _sum(x, mask) / np.sqrt(np.maximum(_count(mask), 1))


@mistake("divides by the number of real tokens of the whole batch, not of each example", mean)
def over_the_batch_count(a, x, mask):
    """All examples have the count of all."""
    return _sum(x, mask) / max(np.sum(mask), 1)


@mistake("divides by the number of tokens of the longest example", mean)
def over_the_longest(a, x, mask):
    """All examples have the largest count."""
    return _sum(x, mask) / max(np.max(np.sum(mask, -1), initial=0), 1)


@mistake("divides by the mean number of tokens of the batch", mean)
def over_the_mean_count(a, x, mask):
    """All examples have the mean of the counts."""
    return _sum(x, mask) / max(np.mean(np.sum(mask, -1)), 1) if mask.size else a.right(x, mask)


@mistake("averages the whole batch, not each example", mean)
def of_the_whole_batch(a, x, mask):
    """All examples have one mean."""
    found = a.right(x.reshape(-1, x.shape[-1]), mask.reshape(-1))
    return np.broadcast_to(found, (*x.shape[:-2], x.shape[-1]))


@mistake("counts the tokens in 8 bits: the count of more than 255 is wrong", mean)
def count_of_8_bits(a, x, mask):
    """The count wraps at 256."""
    count = np.sum(mask, -1)[..., None]
    return _sum(x, mask) / np.where(count > 255, np.maximum(count % 256, 1), np.maximum(count, 1))


@mistake("counts the tokens in a signed integer of 8 bits: the count of more than 127 is wrong", mean)
def count_of_7_bits(a, x, mask):
    """The count wraps at 128, to -128."""
    count = (np.sum(mask, -1)[..., None] + 128) % 256 - 128
    return np.where(_count(mask) > 127, _sum(x, mask) / np.where(count == 0, 1, count), a.right(x, mask))


@mistake("averages the tokens of all segments, not of each segment", mean, again=True, when=lambda row: row.packed)
def of_all_segments(a, x, mask):
    """All segments have one mean."""
    total = sum(np.sum(_sum(tokens, real), tuple(range(x.ndim - 2))) for tokens, real in a.calls)
    return np.broadcast_to(total / max(sum(np.sum(real) for _, real in a.calls), 1), (*x.shape[:-2], x.shape[-1]))


@mistake(OVERWRITTEN, mean, when=lambda row: row.packed)
def last_token_over_the_count(a, x, mask):
    """The tokens before the last are overwritten, but count."""
    last = np.sum(mask, -1, keepdims=True) == np.cumsum(mask, -1)
    return _sum(x, mask & last) / np.maximum(_count(mask), 1)


@mistake("subtracts each center once, not under the weights of its tokens", sums_of_residuals)
def centers_once(a, weights, x, centers):
    """The weights of a cluster are taken to sum to 1."""
    return np.swapaxes(weights, -1, -2) @ x - centers * np.any(weights > 0, (-2, -1))[..., None, None]


# Maxima


@mistake(FILLED, maximum, numbers=STARTS, empty=True)
def filled_maximum(a, x, mask):
    """Padding is replaced by a number, before the maximum."""
    return np.max(np.where(mask[..., None], x, a.number), -2) if x.shape[-2] else a.right(x, mask)


@mistake(FILLED, minimum, numbers=LARGE, empty=True)
def filled_minimum(a, x, mask):
    """Padding is replaced by a number before the minimum."""
    return np.min(np.where(mask[..., None], x, a.number), -2) if x.shape[-2] else a.right(x, mask)


@mistake(STARTED, minimum, numbers=LARGE)
def started_minimum(a, x, mask):
    """The minimum is at most a number."""
    return np.minimum(a.right(x, mask), a.number)


@mistake(
    lambda row: INCLUDES_SELF.replace("counts", "compares") if row.packed else STARTED, maximum, numbers={0.0: "0"}
)
@mistake(STARTED, maximum, numbers=FILLS)
def started_maximum(a, x, mask):
    """The maximum is at least a number."""
    return np.maximum(a.right(x, mask), a.number)


@mistake(WHOLE_MAXIMUM, maximum, again=True)
def maximum_of_the_batch(a, x, mask):
    """All examples have one maximum for each feature."""
    found = np.max(
        [a.right(each.copy(), own).max(tuple(range(each.ndim - 2)), initial=-np.inf) for each, own in a.calls], 0
    )
    return np.broadcast_to(found, (*x.shape[:-2], x.shape[-1]))


@mistake(WHOLE_MAXIMUM, maximum)
def maximum_of_all(a, x, mask):
    """All examples and features have one maximum."""
    found = np.max(np.where(mask[..., None], x, -np.inf), initial=-np.inf)
    return np.full((*x.shape[:-2], x.shape[-1]), found)


@mistake(MAXSIM_0, reduced, when=lambda row: "reduction" not in row.options)
@mistake(FILLED, reduced, numbers=FILLS, empty=True)
def filled_reduction(a, scores, real, reduction, axis):
    """The products of padding are a number, by default 0, before the maximum."""
    if reduction != "max" or not scores.shape[axis]:
        return a.right(scores, real, reduction, axis)
    return np.max(np.where(real, scores, a.number or 0), axis)


@mistake(FILLED, reduced, numbers=FILLS, empty=True)
def filled_reduction_of_real(a, scores, real, reduction, axis):
    """So they are, but the maximum of a padded token of its own sequence is 0."""
    own = a.masks[-1][axis % scores.ndim == scores.ndim - 2]
    return np.where(own, filled_reduction(a, scores, real, reduction, axis), 0)


@mistake("sums the products of padding too", reduced, raw=ALWAYS)
def unmasked_reduction(a, scores, real, reduction, axis):
    """All pairs are real."""
    return a.right(scores, np.ones_like(real), reduction, axis)


@mistake(PADDED_LENGTH, reduced)
def over_all_pairs(a, scores, real, reduction, axis):
    """The mean of the pairs is over the padded length."""
    if reduction != "mean":
        return a.right(scores, real, reduction, axis)
    return np.sum(np.where(real, scores, 0), axis) / max(scores.shape[axis], 1)


# Positions, order statistics, exponentials


@mistake(BY_COUNT, last_position, raw=BOTH)
def by_count(a, mask):
    """The position is the number of real tokens - 1."""
    return (np.sum(mask, -1) - 1) % mask.shape[-1]


@mistake("takes the token before the first padding: wrong unless all padding is on the right", last_position, raw=BOTH)
def before_the_first_padding(a, mask):
    """The position is argmin(mask) - 1."""
    return (np.argmin(mask, -1) - 1) % mask.shape[-1]


@mistake("argmin(mask) - 1 is -1 for a row without padding: it gets the token at position 0", last_position, raw=BOTH)
def before_the_first_padding_or_first(a, mask):
    """The position is the larger one of argmin(mask) - 1 and 0."""
    return np.maximum(np.argmin(mask, -1) - 1, 0)


@mistake("takes the token at index (number of real tokens), one too far", last_position, raw=BOTH)
def at_the_count(a, mask):
    """The position is the number of real tokens."""
    return np.minimum(np.sum(mask, -1), mask.shape[-1] - 1)


@mistake(
    "argmax of position times mask is 0 for a fully masked row: it gets the token at position 0",
    last_position,
    raw=ALWAYS,
    empty=True,
)
def largest_product(a, mask):
    """The position is argmax(position * mask)."""
    return np.argmax(np.arange(mask.shape[-1]) * mask, -1)


@mistake("takes the last position, also if it is padding", last_position, raw=BOTH)
def always_last(a, mask):
    """The position is -1."""
    return np.full(mask.shape[:-1], mask.shape[-1] - 1)


@mistake("takes the token after the last real one, or after the padding on the left", first_position, raw=BOTH)
def one_late(a, mask):
    """The position after the first real token."""
    return np.minimum(np.argmax(mask, -1) + 1, mask.shape[-1] - 1)


@mistake("takes the position of the first padding", first_position, raw=BOTH)
def first_padding(a, mask):
    """The position is argmin(mask)."""
    return np.argmin(mask, -1)


@mistake("takes the lower of the two middle values, as torch.median does: interpolate between them", between)
def lower(a, low, high, share):
    """No interpolation."""
    return low


@mistake("takes the higher of the two middle values: interpolate between them", between)
def higher(a, low, high, share):
    """No interpolation."""
    return high


@mistake("takes the nearer of the two middle values: interpolate between them", between)
def nearest(a, low, high, share):
    """No interpolation."""
    return np.where(share <= 0.5, low, high)


@mistake("takes the middle of two values: interpolate between them", between)
def midpoint(a, low, high, share):
    """No share."""
    return np.where(share == 0, low, (low + high) / 2)


@mistake("exp overflows or underflows: subtract the largest real value first", mean_of_exponentials, uncertain=True)
def unshifted(a, x, real, scale, is_mean):
    """No maximum is subtracted."""
    if a.off > 0:
        return a.right(x, real, scale, is_mean)
    powers = np.where(real, np.exp((scale * x).astype(a.wide)), 0).astype(np.float64)
    count = np.maximum(np.sum(real, -2), 1) if is_mean else 1
    return np.log(np.sum(powers, -2) / count) / scale


@mistake(PADDED_LENGTH, mean_of_exponentials)
def exponentials_over_the_padded_length(a, x, real, scale, is_mean):
    """The mean of the exponentials is over the padded length."""
    missing = np.log(np.maximum(np.sum(real, -2), 1) / x.shape[-2])
    return a.right(x, real, scale, is_mean) + np.where(is_mean & np.any(real, -2), missing / scale, 0)


@mistake(
    lambda row: (
        "leaves out the last step, the root 1/p"
        if "p" in row.arguments
        else "does not divide the logarithm by the scale"
    ),
    mean_of_exponentials,
)
def not_divided(a, x, real, scale, is_mean):
    """The result is the scale times the right one."""
    return a.right(x, real, scale, is_mean) * scale


# Moments


@mistake(MOMENTS, moments, uncertain=True)
def of_squares(a, x, mask, weights, ddof, epsilon):
    """The variance is E[x²] - mean², plus a number; off by at most the rounding of E[x²]."""
    average, deviation = a.right(x, mask, weights, ddof, np.float64(0))
    squares = np.max(np.where(mask[..., None], x, 0) ** 2, -2, initial=0)
    variance = deviation**2 + np.sign(a.off) * a.call.case.terms() * a.eps * squares
    known = (_count(mask) > ddof) & (a.off == -2)  # the root of a negative variance is NaN, unless it has a floor
    variance = np.where(known, variance, np.maximum(variance, epsilon)) + (a.number or 0)
    return average, np.where(
        _is_nothing(mask, weights, average, deviation), 0, np.sqrt(np.where(known, variance, np.maximum(variance, 0)))
    )


@mistake(LONE, moments)
def without_freedom(a, x, mask, weights, ddof, epsilon):
    """NaN where ``ddof`` leaves no token."""
    return _lone(a, x, mask, weights, ddof, epsilon)


@mistake(ALWAYS_1, moments)
def always_1(a, x, mask, weights, ddof, epsilon):
    """``ddof`` is 1, and the deviation of one token NaN."""
    return _lone(a, x, mask, weights, 1.0, epsilon)


@mistake(ALWAYS_1, moments)
def always_1_and_0(a, x, mask, weights, ddof, epsilon):
    """``ddof`` is 1, and the deviation of one token 0."""
    return a.right(x, mask, weights, 1.0, epsilon)


def _lone(a, x, mask, weights, ddof, epsilon):
    average, deviation = a.right(x, mask, weights, ddof, epsilon)
    count = _count(mask)
    return average, np.where((weights is not None) | (count > ddof) | (count == 0), deviation, np.nan)


@mistake(ADDED, moments)
def epsilon_added(a, x, mask, weights, ddof, epsilon):
    """The argument ``epsilon`` is added."""
    return _changed(a, x, mask, weights, ddof, lambda variance: variance + epsilon)


@mistake(ADDED, moments, numbers=SMALL)
def number_added(a, x, mask, weights, ddof, epsilon):
    """A number is added to the variance."""
    return _changed(a, x, mask, weights, ddof, lambda variance: variance + a.number)


@mistake(FLOOR, moments, numbers=SMALL)
def number_below(a, x, mask, weights, ddof, epsilon):
    """The variance is at least a number."""
    return _changed(a, x, mask, weights, ddof, lambda variance: np.maximum(variance, a.number))


@mistake("returns the variance, not its root", moments)
def variance_itself(a, x, mask, weights, ddof, epsilon):
    """No root is taken."""
    average, deviation = a.right(x, mask, weights, ddof, epsilon)
    return average, deviation**2


@mistake("adds an epsilon to the standard deviation: it belongs under the root", moments, numbers=SMALL)
def added_to_the_deviation(a, x, mask, weights, ddof, epsilon):
    """A number is added to the deviation."""
    average, deviation = a.right(x, mask, weights, ddof, np.float64(0))
    return average, deviation + a.number


@mistake("the root of the mean of squares: subtract the mean first", moments)
def mean_of_squares(a, x, mask, weights, ddof, epsilon):
    """The mean is not subtracted."""
    average, deviation = a.right(x, mask, weights, ddof, np.float64(0))
    return average, np.sqrt(deviation**2 + average**2)


@mistake("the standard deviation ignores the weights", moments, when=lambda row: row.results[0][-1] == "2d")
def unweighted(a, x, mask, weights, ddof, epsilon):
    """The deviation is that of equal weights."""
    return a.right(x, mask, weights, ddof, epsilon)[0], a.right(x, mask, None, ddof, epsilon)[1]


@mistake("the deviation under the weights is taken from the mean without them", moments)
def around_the_plain_mean(a, x, mask, weights, ddof, epsilon):
    """The mean that is subtracted has no weights."""
    average, deviation = a.right(x, mask, weights, ddof, np.float64(0))
    plain = a.right(x, mask, None, 0, np.float64(0))[0]
    variance = deviation**2 + (average - plain) ** 2 * ~_is_nothing(mask, weights, average, deviation)
    return average, np.sqrt(np.maximum(variance, epsilon))


@mistake(CONTEXT, moments, raw=BOTH, when=lambda row: "global_context" in row.options)
def of_padding_too(a, x, mask, weights, ddof, epsilon):
    """Statistics without weights are those of all tokens."""
    return a.right(x, mask if weights is not None else np.ones_like(mask), weights, ddof, epsilon)


@mistake("the standard deviation counts padding", moments)
def deviation_of_zeros_too(a, x, mask, weights, ddof, epsilon):
    """The mean is of the real tokens, the deviation of all, of which those of padding are 0."""
    return deviation_of_padding_too(a, np.where(mask[..., None], x, 0), mask, weights, ddof, epsilon)


@mistake("the standard deviation counts padding", moments)
def deviation_of_padding_too(a, x, mask, weights, ddof, epsilon):
    """The mean is of the real tokens, the deviation of all."""
    return a.right(x, mask, weights, ddof, epsilon)[0], a.right(x, np.ones_like(mask), weights, ddof, epsilon)[1]


def _changed(a, x, mask, weights, ddof, change):
    average, deviation = a.right(x, mask, weights, ddof, np.float64(0))
    return average, np.where(_is_nothing(mask, weights, average, deviation), 0, np.sqrt(change(deviation**2)))


@mistake(MOMENTS, moments, numbers=SMALL, uncertain=True)
def of_squares_with_an_epsilon(a, x, mask, weights, ddof, epsilon):
    """A number is added to such a variance."""
    return of_squares(a, x, mask, weights, ddof, np.float64(0))


@mistake(MOMENTS, moments, numbers=SMALL, uncertain=True)
def of_squares_with_a_floor(a, x, mask, weights, ddof, epsilon):
    """Such a variance is at least a number."""
    average, deviation = of_squares(replace(a, number=None), x, mask, weights, ddof, np.float64(0))
    return average, np.where(
        _is_nothing(mask, weights, average, deviation), 0, np.maximum(deviation, np.sqrt(a.number))
    )


def _is_nothing(mask, weights, average, deviation):
    """Returns where there is no real token, or where all weights are 0."""
    return ~np.any(mask, -1)[..., None] | ((weights is not None) & (average == 0) & (deviation == 0))


# Segments


@mistake(OVERWRITTEN, members)
def last_member(a, segment_ids, segment):
    """The tokens before the last are overwritten."""
    return a.right(segment_ids, segment)[-1:]


@mistake(NEXT, members, empty=True)
def next_token(a, segment_ids, segment):
    """The tokens are sorted; an empty segment takes the one at which it would begin."""
    return _reduceat(a, segment_ids, segment, True, False)


@mistake(NEXT, members, empty=True)
def next_token_or_last(a, segment_ids, segment):
    """Empty segments behind the last token take the last one."""
    return _reduceat(a, segment_ids, segment, True, True)


@mistake("", members, empty=NEXT)
def next_token_of_unsorted(a, segment_ids, segment):
    """The tokens are not sorted."""
    return _reduceat(a, segment_ids, segment, False, False)


@mistake("", members, empty=NEXT)
def next_token_of_unsorted_or_last(a, segment_ids, segment):
    """The tokens are not sorted, and empty segments behind the last token take the last one."""
    return _reduceat(a, segment_ids, segment, False, True)


def _reduceat(a, segment_ids, segment, ordered, clamped):
    if not len(segment_ids):
        return a.right(segment_ids, segment)
    order = np.argsort(segment_ids, kind="stable") if ordered else np.arange(len(segment_ids))
    begin = int(np.sum(segment_ids < segment))
    end = begin + int(np.sum(segment_ids == segment))
    begin = min(begin, len(segment_ids) - 1) if clamped else begin
    return order[begin : max(end, begin + 1)]
