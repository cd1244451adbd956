"""Known mistakes of poolings without scores: means, maxima, last tokens, variances, and fully masked rows.

A mistake is a function from a :class:`~attnpool_ref.conformance.causes.call.Call` to its result, a list of arrays, or
to None if it is not possible in the call. Functions with a number as their argument return such a mistake.
"""

import numpy as np

MEANS = frozenset({"mean_pooling", "weighted_pooling"})
PACKED_MEANS = frozenset({"segment_mean_pooling"})
MAXIMA = {"max_pooling": 1, "min_pooling": -1, "segment_max_pooling": 1, "segment_min_pooling": -1}
ENDS = frozenset({"last_pooling"})
SPREADS = frozenset({"std_pooling", "statistics_pooling"})


def where_empty(value):
    """Returns the mistake whose result is right, except for ``value`` in fully masked rows."""

    def answer(call):
        if call.empty is None or any(output.dtype == bool for output in call.exact):
            return None
        return [np.where(e, value, o) for e, o in zip(call.empty, call.exact, strict=True)]

    return answer


def reading_all_where_empty(call):
    """Returns the right result, except in fully masked rows: there it is that of the definition without a mask."""
    if not call.masks or call.empty is None:
        return None
    bare = call.oracle(**{key: np.ones_like(call.real(key)) for key in call.masks})
    return [np.where(e, a, o) for e, a, o in zip(call.empty, bare, call.exact, strict=True)]


def _weights_of_means(call):
    """Returns the weights of a mean's tokens before the mask, [..., L] for L tokens, or None for other functions."""
    if call.row.name not in MEANS or len(call.masks) != 1:
        return None
    weights = call.values.get("weights")
    return np.ones(call.case.sizes["L"]) if weights is None else weights


def over_the_padded_length(call):
    """Returns the sum of the real tokens, divided by the number (or the weights) of all tokens."""
    weights = _weights_of_means(call)
    if weights is None:
        return None
    kept = _sum_of_real(call, weights)
    with np.errstate(all="ignore"):
        return [call.exact[0] * _like(kept / np.sum(weights, -1), call.exact[0])]


def _sum_of_real(call, weights):
    return np.sum(np.where(call.real(call.masks[0]), weights, 0), -1)


def _like(factor, output):
    """Returns a factor of each example, [...] or (), in a shape that multiplies the vectors of ``output``."""
    return np.broadcast_to(factor, output.shape[:-1])[..., None]


def counting_the_masked(call):
    """Returns the sum of the real tokens of each segment, divided by the number of all its tokens."""
    if call.row.name not in PACKED_MEANS or not call.masks:
        return None
    numbers, size = call.values["segment_ids"], call.case.options["num_segments"]
    kept = np.bincount(numbers, np.broadcast_to(call.real("mask"), numbers.shape), size)
    return [call.exact[0] * (kept / np.maximum(np.bincount(numbers, minlength=size), 1))[:, None]]


def epsilon_beside_the_count(number):
    """Returns the mistake of a mean that adds ``number`` to its divisor, the number or the weights of real tokens."""

    def answer(call):
        weights = _weights_of_means(call)
        if weights is None:
            return None
        kept = _sum_of_real(call, weights)
        with np.errstate(all="ignore"):
            factor = np.where(kept == 0, 1, kept / (kept + number))
        return [call.exact[0] * _like(factor, call.exact[0])]

    return answer


def filled_maximum(number):
    """Returns the mistake of a maximum (or minimum) in which padding is replaced by ``number``.

    None stands for the most negative number of float64 in float64, else of float32; for a minimum the sign is reversed.
    """

    def answer(call):
        sign = MAXIMA.get(call.row.name)
        if sign is None or not call.masks:
            return None
        least = np.finfo(np.float64 if call.subject.dtype == "float64" else np.float32).min
        fill = sign * (least if number is None else number)
        real = call.real("mask")
        return call.oracle(x=np.where(real[..., None], call.values["x"], fill), mask=np.ones_like(real))

    return answer


def last_by_count(call):
    """Returns the token at index (number of real tokens - 1); in a fully masked row that is the last token."""
    if call.row.name not in ENDS or not call.masks or not call.case.sizes["L"]:
        return None
    real = call.real("mask")
    length = real.shape[-1]
    if length != call.case.sizes["L"]:
        return None
    place = (np.sum(real, -1, keepdims=True) - 1) % length
    return call.oracle(mask=np.arange(length) == place)


def by_moments(call):
    """Returns the wrong result if a variance computed as E[x²] - mean² explains it, else the right one.

    The variance is then off by at most the rounding error of E[x²], and the root of a negative variance is NaN.
    """
    exact = call.exact
    if call.got is None or call.subject.is_narrow or call.got[0].shape != exact[0].shape:
        return exact
    x, width = call.values["x"], call.values["x"].shape[-1]
    real = np.ones(x.shape[:-1], bool)
    for key in call.masks:
        real = real & call.real(key)
    with np.errstate(all="ignore"):
        squares = np.max(np.where(real[..., None], x, 0) ** 2, -2, initial=0)
        off = call.case.terms() * np.finfo(call.subject.dtype).eps * squares
        got, spread = call.got[0].astype(np.float64)[..., -width:], exact[0][..., -width:]
        near = np.isnan(got) & (spread**2 <= off) | (np.abs(got**2 - spread**2) <= off)
        near &= np.any(real, -1)[..., None]
    return [np.concatenate([exact[0][..., :-width], np.where(near, got, spread)], -1)]
