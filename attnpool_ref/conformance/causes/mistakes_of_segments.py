"""Known mistakes of packed functions: ids taken as sorted, ``reduceat``, weights and maxima of all segments.

A mistake is a function from a :class:`~attnpool_ref.conformance.causes.call.Call`, and from what it depends on, to its
result: a list of arrays, or None if the mistake is not possible in the call.
"""

import numpy as np

import attnpool_ref


def is_packed(row):
    """Returns whether a function applies a dense one to each segment of one packed sequence."""
    return row.family == "segments" and "segment_ids" in row.arguments


def of_tokens(call, places_of, weights_of=None):
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
    return of_tokens(call, lambda s: np.arange(bounds[s], bounds[s + 1]))


def one_run(call, which):
    """Returns the result of only the first (0) or the last (-1) run of equal ids of each segment."""
    ids = call.values["segment_ids"]
    runs = np.cumsum(np.diff(ids, prepend=ids[:1]) != 0)

    def places(s):
        own = runs[ids == s]
        return np.flatnonzero((ids == s) & (runs == own[which])) if len(own) else own

    return of_tokens(call, places)


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

    return of_tokens(call, places) if len(ids) else None


def _scores(call):
    """Returns for each segment (scores, mask), as its normalizer gets them; None without a softmax."""
    if "normalizer" not in call.row.options or call.case.options.get("normalizer", "softmax") != "softmax":
        return None
    found = {}

    def weights(scores, mask, s):
        found[s] = np.where(mask, scores, -np.inf)
        return np.zeros(scores.shape)

    return found if of_tokens(call, _places(call), weights) is not None and found else None


def softmax_over_all(call):
    """Returns the result if weights are normalized over the tokens of all segments."""
    found = _scores(call)
    if found is None:
        return None
    every = np.concatenate(list(found.values()), -1)
    with np.errstate(all="ignore"):
        top = np.max(every, -1, initial=-np.inf, keepdims=True)
        total = np.sum(np.exp(every - top), -1, keepdims=True)
        return of_tokens(call, _places(call), lambda scores, mask, s: np.exp(found[s] - top) / total)


def size_of(call):
    """Returns the result for as many segments as the largest id plus 1, which may be fewer than ``num_segments``."""
    ids = call.values["segment_ids"]
    size = int(np.max(ids, initial=-1)) + 1
    if size >= call.case.options["num_segments"] or any("num_segments" in axes for axes in call.case.axes.values()):
        return None
    return call.oracle(options={"num_segments": size})
