"""Known mistakes of dense and packed tokens: means, maxima, last tokens, variances, fully masked rows, segment ids.

A mistake is a function from a :class:`~attnpool_ref.conformance.causes.wrong_answers.Call`, and from what it depends on,
to its result: a list of arrays, or None if the mistake is not possible in the call.
"""

import numpy as np

import attnpool_ref

MEANS = frozenset({"mean_pooling", "weighted_pooling"})
PACKED_MEANS = frozenset({"segment_mean_pooling"})
KINDS = {"max": 1, "min": -1, "mean_max": 1}
MAXIMA = {f"{layout}{kind}_pooling": sign for layout in ("", "segment_") for kind, sign in KINDS.items()}
MAXIMA["top_k_pooling"] = 1
"""Functions whose result ends with a maximum, or a mean of the largest (1), or with a minimum (-1)."""

ENDS = frozenset({"last_pooling"})
SPREADS = frozenset({"std_pooling", "statistics_pooling", "segment_std_pooling", "segment_statistics_pooling"})
ATTENTIVE_SPREADS = frozenset({"attentive_statistics_pooling", "segment_attentive_statistics_pooling"})
MAXSIM = frozenset({"maxsim_score", "maxsim_score_all_pairs"})


def where_empty(call, value):
    """Returns the right result, except for ``value`` in fully masked rows."""
    if call.empty is None or any(output.dtype == bool for output in call.exact):
        return None
    return [np.where(e, value, o) for e, o in zip(call.empty, call.exact, strict=True)]


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


def epsilon_beside_the_count(call, number):
    """Returns a mean with ``number`` added to its divisor, the number or the weights of real tokens."""
    weights = _weights_of_means(call)
    if weights is None:
        return None
    kept = _sum_of_real(call, weights)
    with np.errstate(all="ignore"):
        factor = np.where(kept == 0, 1, kept / (kept + number))
    return [call.exact[0] * _like(factor, call.exact[0])]


def filled_maximum(call, number, start=False):
    """Returns the result if padding is replaced by ``number`` before a maximum (or minimum).

    None stands for the most negative number of float64 in float64, else of float32; for a minimum the sign is reversed.
    With ``start`` each maximum is at least ``number``, also where no token is padding.
    """
    sign = MAXIMA.get(call.row.name)
    if sign is None or not (start or call.masks):
        return None
    least = np.finfo(np.float64 if call.subject.dtype == "float64" else np.float32).min
    fill = sign * (least if number is None else number)
    if start:
        return _with_maximum(call, sign * np.maximum(sign * call.exact[0], sign * fill))
    real = call.real("mask")
    found = call.oracle(x=np.where(real[..., None], call.values["x"], fill), mask=np.ones_like(real))
    return _with_maximum(call, found[0])


def _with_maximum(call, found):
    """Returns the right result, in which the maximum is that of ``found``; a mean before it stays as it is."""
    width = call.values["x"].shape[-1]
    return [np.concatenate([call.exact[0][..., :-width], found[..., -width:]], -1)]


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


def maximum_of_all(call, features):
    """Returns the result if a maximum runs over the whole batch, and with ``features`` over the features too."""
    sign = MAXIMA.get(call.row.name)
    x = call.values.get("x")
    if sign is None or not x.size:
        return None
    real = np.broadcast_to(call.real("mask") if call.masks else True, x.shape[:-1])[..., None]
    axes = tuple(range(x.ndim if features else x.ndim - 1))
    found = sign * np.max(np.where(real, sign * x, -np.inf), axes)
    return _with_maximum(call, np.broadcast_to(found, (*call.exact[0].shape[:-1], x.shape[-1])))


def nan_without_freedom(call, ddof=None):
    """Returns a deviation that is NaN where ``ddof``, or that of the call if it is None, leaves none.

    So is that of a single token with ``ddof=1``: n - ddof is 0.
    """
    changes = {} if ddof is None else {"ddof": np.float64(ddof)}
    used = call.values["ddof"] if ddof is None else ddof
    if call.values.get("weights") is not None:
        return None
    count = _counts(call)
    found = call.oracle(**changes)
    width = call.values["x"].shape[-1]
    left = np.broadcast_to((count > used) | (count == 0), found[0].shape[:-1])[..., None]
    return [np.concatenate([found[0][..., :-width], np.where(left, found[0][..., -width:], np.nan)], -1)]


def _counts(call):
    """Returns the number of real tokens of each row, or of each segment."""
    x, real = call.values["x"], np.ones(call.values["x"].shape[:-1])
    if call.masks:
        real = real * call.real(call.masks[0])
    elif call.case.given("lengths"):
        real = real * (np.arange(x.shape[-2]) < np.asarray(call.values["lengths"])[..., None])
    if "segment_ids" in call.values:
        return np.bincount(call.values["segment_ids"], real, call.case.options["num_segments"])
    return np.sum(real, -1)


def of_variance(call, change=None, moments=False):
    """Returns a deviation that is the root of ``change(variance, epsilon)``; None takes the larger one.

    With ``moments`` the variance is E[x²] - mean², which is off by at most the rounding error of E[x²]: a result within
    that error is the wrong one, and the root of a negative variance is NaN.
    """
    x, width, epsilon = call.values["x"], call.values["x"].shape[-1], float(call.values["epsilon"])
    exact = call.oracle(epsilon=np.float64(0))
    variance = exact[0][..., -width:] ** 2
    with np.errstate(all="ignore"):
        spread = call.exact[0][..., -width:] if change is None else np.sqrt(change(variance, epsilon))
    result = [np.concatenate([exact[0][..., :-width], spread], -1), *call.exact[1:]]
    if (
        not moments
        or call.got is None
        or call.subject.is_narrow
        or call.got[0].shape != (*spread.shape[:-1], exact[0].shape[-1])
    ):
        return result
    count, eps = _counts(call), np.finfo(call.subject.dtype).eps
    real = np.broadcast_to(call.real(call.masks[0]) if call.masks else True, x.shape[:-1])[..., None]
    with np.errstate(all="ignore"):
        squares = np.max(np.where(real, x, 0) ** 2, -2, initial=0)
        off = call.case.terms() * eps * squares
        got = call.got[0].astype(np.float64)[..., -width:]
        least, most = ((change or np.maximum)(variance + e, epsilon) for e in (-off, off))
        near = (got**2 >= least * (1 - 4 * eps)) & (got**2 <= most * (1 + 4 * eps))
        near |= np.isnan(got) & (least <= 0) & (count > call.values.get("ddof", 0))[..., None]
    near &= np.broadcast_to(count > 0, spread.shape[:-1])[..., None]
    near &= (epsilon == 0) | (call.exact[0][..., -width:] != 0)  # weights do not sum to 0
    return [np.concatenate([exact[0][..., :-width], np.where(near, got, spread)], -1), *call.exact[1:]]


def is_packed(row):
    """Returns whether a function applies a dense one to each segment of one packed sequence."""
    return row.family == "segments" and "segment_ids" in row.arguments


def from_each_segment(call, places_of, weights_of=None):
    """Returns the results, as a list, if segment s has the tokens at ``places_of(s)``; None if the call returns weights.

    ``weights_of`` replaces the normalizer: a function from (scores, mask, s) to weights.
    """
    if call.return_weights:
        return None
    dense = getattr(attnpool_ref, call.row.name.removeprefix("segment_"))
    options = {k: v for k, v in call.case.options.items() if k not in ("num_segments", "indices_are_sorted")}
    parts = []
    for s in range(call.case.options["num_segments"]):
        values = {}
        for key, value in call.values.items():
            axes = call.case.axes.get(key, ())
            if value is None or key == "segment_ids":
                continue
            if "N" in axes:
                value = np.take(np.broadcast_to(value, _full(call, key, axes)), places_of(s), axes.index("N"))
            elif "num_segments" in axes:
                value = value[s]
            values[key] = value
        if weights_of is not None:
            values["normalizer"] = lambda scores, mask, s=s: weights_of(scores, mask, s)
        parts.append(dense(**(options | values)))
    return [np.stack(parts)] if parts else None


def _full(call, key, axes):
    """Returns the shape of an argument in which the axis of tokens, which may be 1, has its full size."""
    shape = list(np.shape(call.values[key]))
    shape[axes.index("N")] = len(call.values["segment_ids"])
    return shape


def _places(call):
    ids = call.values["segment_ids"]
    return lambda s: np.flatnonzero(ids == s)


def sorted_by_counts(call):
    """Returns the result if each segment takes as many tokens as it has, in the order of the tokens."""
    return call.oracle(segment_ids=np.sort(call.values["segment_ids"]))


def sorted_by_bounds(call):
    """Returns the result if the first token of each segment is found by a binary search."""
    ids, size = call.values["segment_ids"], call.case.options["num_segments"]
    bounds = np.searchsorted(ids, np.arange(size + 1))
    return from_each_segment(call, lambda s: np.arange(bounds[s], bounds[s + 1]))


def one_run(call, which):
    """Returns the result of only the first (0) or the last (-1) run of equal ids of each segment."""
    ids = call.values["segment_ids"]
    runs = np.cumsum(np.diff(ids, prepend=ids[:1]) != 0)

    def places(s):
        runs_of_s = runs[ids == s]
        return np.flatnonzero((ids == s) & (runs == runs_of_s[which])) if len(runs_of_s) else runs_of_s

    return from_each_segment(call, places)


def by_reduceat(call, clamped, ordered):
    """Returns the result of ``reduceat``: an empty segment takes the token at which it would begin.

    Segments behind the last token are empty, or with ``clamped`` begin at the last token. ``ordered`` sorts the tokens.
    """
    ids, size = call.values["segment_ids"], call.case.options["num_segments"]
    order = np.argsort(ids, kind="stable") if ordered else np.arange(len(ids))
    ends = np.cumsum(np.bincount(ids, minlength=size))
    begin = np.concatenate([[0], ends])
    begin[:-1] = np.minimum(begin[:-1], len(ids) - 1) if clamped else begin[:-1]

    def places(s):
        return order[begin[s] : max(begin[s + 1], begin[s] + 1)]

    return from_each_segment(call, places) if len(ids) else None


def _scores(call):
    """Returns for each segment (scores, mask), as its normalizer gets them; None without a softmax."""
    if "normalizer" not in call.row.options or call.case.options.get("normalizer", "softmax") != "softmax":
        return None
    found = {}

    def weights(scores, mask, s):
        found[s] = np.where(mask, scores, -np.inf)
        return np.zeros(scores.shape)

    return found if from_each_segment(call, _places(call), weights) is not None and found else None


def softmax_over_all(call):
    """Returns the result if weights are normalized over the tokens of all segments."""
    found = _scores(call)
    if found is None:
        return None
    every = np.concatenate(list(found.values()), -1)
    with np.errstate(all="ignore"):
        top = np.max(every, -1, initial=-np.inf, keepdims=True)
        total = np.sum(np.exp(every - top), -1, keepdims=True)
        return from_each_segment(call, _places(call), lambda scores, mask, s: np.exp(found[s] - top) / total)


def size_of(call):
    """Returns the result for as many segments as the largest id plus 1, which may be fewer than ``num_segments``."""
    ids = call.values["segment_ids"]
    size = int(np.max(ids, initial=-1)) + 1
    if size >= call.case.options["num_segments"] or any("num_segments" in axes for axes in call.case.axes.values()):
        return None
    return call.oracle(options={"num_segments": size})
