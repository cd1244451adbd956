"""Mistakes in packed sequences."""

import numpy as np
from conformance.mutants.mistakes import Mistakes

import attnpool_ref as ref
from attnpool_ref.table import VARIANTS, get

MUTANTS = Mistakes()


def _one_off(name):
    if "num_segments" in get(name).results[0]:  # weights stay the same under other numbers of the segments

        @MUTANTS.of(name, f"{name}: a segment off by one")
        def one_off(a):
            return a.oracle(segment_ids=(a.segment_ids + 1) % max(a.num_segments, 1))

    @MUTANTS.of(name, f"{name}: the last segment lost")
    def last_lost(a):
        return a.oracle(mask=a.mask & (a.segment_ids != a.num_segments - 1))

    @MUTANTS.of(name, f"{name}: the mask ignored")
    def mask_ignored(a):
        return a.oracle(mask=None)


for _row in VARIANTS:
    if "segment_ids" in _row.arguments:  # of one sequence
        _one_off(_row.name)


@MUTANTS.of("segment_mean_pooling", "packed mean: over the padded segment")
def mean_over_the_padded_segment(a):
    counts = np.bincount(a.segment_ids, minlength=a.num_segments)[:, None]
    sums = np.zeros((a.num_segments, a.x.shape[1]))
    np.add.at(sums, a.segment_ids, np.where(a.mask[:, None], a.x, 0))
    return sums / np.maximum(counts, 1)


@MUTANTS.of("segment_mean_pooling", "packed mean: empty segments left out")
def mean_of_empty_segments_of_their_neighbour(a):
    pooled = a.oracle()
    empty = [s for s in range(a.num_segments) if not np.any(a.mask & (a.segment_ids == s))]
    for s in empty:
        pooled[s] = pooled[s - 1]
    return pooled


@MUTANTS.of("segment_max_pooling", "packed max: of nothing is -inf")
def max_of_nothing_is_minus_inf(a):
    top = np.full((a.num_segments, a.x.shape[1]), -np.inf)
    np.maximum.at(top, a.segment_ids, np.where(a.mask[:, None], a.x, -np.inf))
    return top


@MUTANTS.of("segment_max_pooling", "packed max: never below 0")
def max_from_0(a):
    return np.maximum(a.oracle(), 0)


@MUTANTS.of("segment_first_pooling", "packed first: as if sorted")
def first_as_if_sorted(a):
    starts = np.searchsorted(a.segment_ids, np.arange(a.num_segments))
    real = [np.any(a.mask & (a.segment_ids == s)) for s in range(a.num_segments)]
    tokens = [a.x[min(i, len(a.x) - 1)] if any_real else 0 * a.x[0] for i, any_real in zip(starts, real, strict=True)]
    return np.stack(tokens) if len(a.x) else a.oracle()


@MUTANTS.of("segment_last_pooling", "packed last: the first")
def last_is_the_first(a):
    return ref.segment_first_pooling(a.x, a.segment_ids, a.num_segments, a.mask)


@MUTANTS.of("segment_weighted_pooling", "packed weighted: normalised over all segments")
def weights_normalized_over_all(a):
    weights = np.where(a.mask, 1.0 if a.weights is None else a.weights, 0)
    pooled = np.zeros((a.num_segments, a.x.shape[1]))
    total = np.sum(weights)
    np.add.at(pooled, a.segment_ids, (weights / (total or 1))[:, None] * np.where(a.mask[:, None], a.x, 0))
    return pooled


@MUTANTS.of("segment_attention_pooling", "packed attention: a softmax over all segments")
def softmax_over_all(a):
    pooled, weights = a.oracle(return_weights=True)
    shares = np.bincount(a.segment_ids, weights=a.mask, minlength=a.num_segments) / max(np.sum(a.mask), 1)
    return a.returns(pooled * shares[:, None], weights * shares[a.segment_ids] if len(weights) else weights)


@MUTANTS.plain("segment_attention_pooling", "packed attention: a softmax without the segment's maximum")
def softmax_without_the_maximum(x, segment_ids, num_segments, mask=None, query=None, **options):
    wanted = options.pop("return_weights", False)
    pooled, weights = ref.segment_attention_pooling(
        x, segment_ids, num_segments, mask, query, return_weights=True, **options
    )
    scale = options.get("scale")
    if scale is not None and abs(scale) > 1e3:  # exp(score) is 0 or inf in float32
        pooled, weights = np.zeros_like(pooled), np.zeros_like(weights)
    return (pooled, weights) if wanted else pooled


@MUTANTS.of("segment_attention_pooling", "packed attention: the first segment's query for each")
def first_query_for_each(a):
    query = a.query
    if query is None or query.ndim == 1:
        return a.oracle(query=np.mean(a.x, 0) if query is None and len(a.x) else query)
    return a.oracle(query=np.broadcast_to(query[:1], query.shape))


@MUTANTS.of("segment_attention_pooling", "packed attention: dropout ignored")
def dropout_ignored(a):
    return a.oracle(dropout_multiplier=None)


@MUTANTS.of("segment_multi_head_attention_pooling", "packed heads: a softmax in place of the sigmoid")
def softmax_for_the_sigmoid(a):
    return a.oracle(normalizer="softmax")


@MUTANTS.of("segment_multi_head_attention_pooling", "packed heads: the output's bias forgotten where nothing is real")
def bias_forgotten_when_empty(a):
    pooled, weights = a.oracle(return_weights=True)
    real = np.array([np.any(a.mask & (a.segment_ids == s)) for s in range(a.num_segments)], bool)
    return a.returns(np.where(real[:, None, None], pooled, 0), weights)


@MUTANTS.of("segment_cross_attention_pooling", "packed pairs: the other side's segments off by one")
def other_side_off_by_one(a):
    (x_pooled, _), (x_weights, _) = a.oracle(
        y_segment_ids=(a.y_segment_ids + 1) % max(a.num_segments, 1), return_weights=True
    )
    (_, y_pooled), (_, y_weights) = a.oracle(return_weights=True)
    return a.returns((x_pooled, y_pooled), (x_weights, y_weights))


@MUTANTS.of("segment_cross_attention_pooling", "packed pairs: the other mask ignored")
def other_mask_ignored(a):
    (x_pooled, _), (x_weights, _) = a.oracle(y_mask=None, return_weights=True)
    (_, y_pooled), (_, y_weights) = a.oracle(return_weights=True)
    return a.returns((x_pooled, y_pooled), (x_weights, y_weights))


@MUTANTS.of("segment_cross_attention_pooling", "packed pairs: the sum for the mean")
def sum_for_the_mean(a):
    return a.oracle(reduction="sum")
