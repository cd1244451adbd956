"""Mistakes in packed sequences."""

import numpy as np
from conformance.mutants.mistakes import Mistakes, over_the_padded_length

import attnpool_ref as ref
from attnpool_ref.primitives import mean
from attnpool_ref.table import VARIANTS


def _real(a):
    """Whether a segment has a real token."""
    return np.array([np.any(a.mask & (a.segment_ids == s)) for s in range(a.num_segments)], bool)


def _sums(a, weights):
    """Sums of the real tokens of each segment under weights."""
    pooled = np.zeros((a.num_segments, a.x.shape[1]))
    np.add.at(pooled, a.segment_ids, weights * np.where(a.mask[:, None], a.x, 0))
    return pooled


def _with_other_x(a, **changes):
    """The results of x with some arguments changed, beside those of y, which are right."""
    changed, right = a.oracle(return_weights=True, **changes), a.oracle(return_weights=True)
    return a.returns(*((wrong[0], own[1]) for wrong, own in zip(changed, right, strict=True)))


MUTANTS = Mistakes(
    segment_max_pooling={
        "packed max: never below 0": lambda a: np.maximum(a.oracle(), 0),
    },
    segment_last_pooling={
        "packed last: the first": lambda a: ref.segment_first_pooling(a.x, a.segment_ids, a.num_segments, a.mask),
    },
    segment_attention_pooling={
        "packed attention: dropout ignored": lambda a: a.oracle(dropout_multiplier=None),
    },
    segment_multi_head_attention_pooling={
        "packed heads: a softmax in place of the sigmoid": lambda a: a.oracle(normalizer="softmax"),
        "packed heads: the output's bias forgotten where nothing is real": lambda a: a.changed(
            lambda pooled: np.where(_real(a)[:, None, None], pooled, 0)
        ),
    },
    segment_cross_attention_pooling={
        "packed pairs: the sum for the mean": lambda a: a.oracle(reduction="sum"),
        "packed pairs: the other side's segments off by one": lambda a: _with_other_x(
            a, y_segment_ids=(a.y_segment_ids + 1) % max(a.num_segments, 1)
        ),
        "packed pairs: the other mask ignored": lambda a: _with_other_x(a, y_mask=None),
    },
    segment_mean_pooling={
        "packed mean: over the padded segment": lambda a: a.exchanged(mean, over_the_padded_length),
    },
)

for _row in VARIANTS:
    if "segment_ids" in _row.arguments:  # of one sequence
        if "num_segments" in _row.results[0]:  # weights stay the same under other numbers of the segments
            MUTANTS.of(_row.name, f"{_row.name}: a segment off by one")(
                lambda a: a.oracle(segment_ids=(a.segment_ids + 1) % max(a.num_segments, 1))
            )
        MUTANTS.of(_row.name, f"{_row.name}: the last segment lost")(
            lambda a: a.oracle(mask=a.mask & (a.segment_ids != a.num_segments - 1))
        )
        MUTANTS.of(_row.name, f"{_row.name}: the mask ignored")(lambda a: a.oracle(mask=None))


@MUTANTS.of("segment_max_pooling", "packed max: of nothing is -inf")
def max_of_nothing_is_minus_inf(a):
    top = np.full((a.num_segments, a.x.shape[1]), -np.inf)
    np.maximum.at(top, a.segment_ids, np.where(a.mask[:, None], a.x, -np.inf))
    return top


@MUTANTS.of("segment_attention_pooling", "packed attention: a softmax over all segments")
def softmax_over_all(a):
    pooled, weights = a.oracle(return_weights=True)
    shares = np.bincount(a.segment_ids, weights=a.mask, minlength=a.num_segments) / max(np.sum(a.mask), 1)
    return a.returns(pooled * shares[:, None], weights * shares[a.segment_ids] if len(weights) else weights)


@MUTANTS.of("segment_attention_pooling", "packed attention: a softmax without the segment's maximum")
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


@MUTANTS.of("segment_mean_pooling", "packed mean: empty segments left out")
def mean_of_empty_segments_of_their_neighbour(a):
    pooled = a.oracle()
    for s in np.flatnonzero(~_real(a)):
        pooled[s] = pooled[s - 1]
    return pooled


@MUTANTS.of("segment_first_pooling", "packed first: as if sorted")
def first_as_if_sorted(a):
    if not len(a.x):
        return a.oracle()
    starts = np.searchsorted(a.segment_ids, np.arange(a.num_segments))
    return np.where(_real(a)[:, None], a.x[np.minimum(starts, len(a.x) - 1)], 0 * a.x[0])


@MUTANTS.of("segment_weighted_pooling", "packed weighted: normalised over all segments")
def weights_normalized_over_all(a):
    weights = np.where(a.mask, 1.0 if a.weights is None else a.weights, 0)
    return _sums(a, (weights / (np.sum(weights) or 1))[:, None])
