"""Known mistakes of poolings without scores: counts, maxima, ends, spreads, and what is returned where nothing is real.

Each function takes an :class:`~attnpool_ref.conformance.causes.asked.Asked` and returns an answer, a list of arrays, or None.
"""

import numpy as np

MEANS = frozenset({"mean_pooling", "weighted_pooling"})
PACKED_MEANS = frozenset({"segment_mean_pooling"})
MAXIMA = {"max_pooling": 1, "min_pooling": -1, "segment_max_pooling": 1, "segment_min_pooling": -1}
ENDS = frozenset({"last_pooling"})
SPREADS = frozenset({"std_pooling", "statistics_pooling"})


def where_empty(value):
    """The right answer, and ``value`` where nothing is real."""

    def answer(asked):
        if asked.empty is None or any(output.dtype == bool for output in asked.exact):
            return None
        return [np.where(e, value, o) for e, o in zip(asked.empty, asked.exact, strict=True)]

    return answer


def reading_all_where_empty(asked):
    """The definition without a mask where nothing is real."""
    if not asked.masks or asked.empty is None:
        return None
    bare = asked.oracle(**{key: np.ones_like(asked.real(key)) for key in asked.masks})
    return [np.where(e, a, o) for e, a, o in zip(asked.empty, bare, asked.exact, strict=True)]


def _weights_of_means(asked):
    """The weights of a mean's tokens before the mask, [..., L], or None for other functions."""
    if asked.row.name not in MEANS or len(asked.masks) != 1:
        return None
    weights = asked.values.get("weights")
    return np.ones(asked.case.sizes["L"]) if weights is None else weights


def over_the_padded_length(asked):
    """The sum of the real tokens, divided by the number of all."""
    weights = _weights_of_means(asked)
    if weights is None:
        return None
    kept = _sum_of_real(asked, weights)
    with np.errstate(all="ignore"):
        return [asked.exact[0] * _like(kept / np.sum(weights, -1), asked.exact[0])]


def _sum_of_real(asked, weights):
    return np.sum(np.where(asked.real(asked.masks[0]), weights, 0), -1)


def _like(factor, output):
    """A factor of each example, [...] or (), beside vectors."""
    return np.broadcast_to(factor, output.shape[:-1])[..., None]


def counting_the_masked(asked):
    """The sum of the real tokens of each segment, divided by the number of all its tokens."""
    if asked.row.name not in PACKED_MEANS or not asked.masks:
        return None
    numbers, size = asked.values["segment_ids"], asked.case.options["num_segments"]
    kept = np.bincount(numbers, np.broadcast_to(asked.real("mask"), numbers.shape), size)
    return [asked.exact[0] * (kept / np.maximum(np.bincount(numbers, minlength=size), 1))[:, None]]


def epsilon_beside_the_count(number):
    """A mean whose divisor is larger by a number."""

    def answer(asked):
        weights = _weights_of_means(asked)
        if weights is None:
            return None
        kept = _sum_of_real(asked, weights)
        with np.errstate(all="ignore"):
            factor = np.where(kept == 0, 1, kept / (kept + number))
        return [asked.exact[0] * _like(factor, asked.exact[0])]

    return answer


def filled_maximum(number):
    """The maximum (or minimum) of all tokens, after padding was replaced by a number; None is the dtype's least."""

    def answer(asked):
        sign = MAXIMA.get(asked.row.name)
        if sign is None or not asked.masks:
            return None
        least = np.finfo(np.float64 if asked.subject.dtype == "float64" else np.float32).min
        fill = sign * (least if number is None else number)
        real = asked.real("mask")
        return asked.oracle(x=np.where(real[..., None], asked.values["x"], fill), mask=np.ones_like(real))

    return answer


def last_by_count(asked):
    """The token at the number of real tokens minus 1; Python's index -1 where there is none."""
    if asked.row.name not in ENDS or not asked.masks or not asked.case.sizes["L"]:
        return None
    real = asked.real("mask")
    length = real.shape[-1]
    if length != asked.case.sizes["L"]:
        return None
    place = (np.sum(real, -1, keepdims=True) - 1) % length
    return asked.oracle(mask=np.arange(length) == place)


def by_moments(asked):
    """The answer itself where the mean of squares minus the squared mean may come to it, else the right one.

    The mean of squares is rounded by itself: so much may the variance be off, and the root of what falls below 0 is NaN.
    """
    exact = asked.exact
    if asked.got is None or asked.subject.is_narrow or asked.got[0].shape != exact[0].shape:
        return exact
    x, width = asked.values["x"], asked.values["x"].shape[-1]
    real = np.ones(x.shape[:-1], bool)
    for key in asked.masks:
        real = real & asked.real(key)
    with np.errstate(all="ignore"):
        squares = np.max(np.where(real[..., None], x, 0) ** 2, -2, initial=0)
        off = asked.case.terms() * np.finfo(asked.subject.dtype).eps * squares
        got, spread = asked.got[0].astype(np.float64)[..., -width:], exact[0][..., -width:]
        near = np.isnan(got) & (spread**2 <= off) | (np.abs(got**2 - spread**2) <= off)
        near &= np.any(real, -1)[..., None]
    return [np.concatenate([exact[0][..., :-width], np.where(near, got, spread)], -1)]
