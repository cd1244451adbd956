"""Primitives: the operations that the definitions are made of, with what guards their range.

Definitions call them on float64 arrays and masks of full shape. The judge explains a wrong result by a definition in
which one primitive is exchanged for a wrong one (:func:`exchanged`), so a mistake in a softmax is known in every
function that calls it.

==========  ====================================================================
exchange    how a primitive is exchanged
padding     values of padding; positions of the first and the last real token
weights     softmax, a sink beside it, shares of a sum, the factor of scores
averages    mean, weighted sum, maximum, reductions of pairs, residuals
buckets     tokens on the sides of hyperplanes
moments     mean and standard deviation
vectors     unit vectors, vectors of mean 0 and variance 1
exponentials  logarithms of mean exponentials
hidden      gates, concatenated vectors, sigmoid and tanh
heads       projections to heads, heads side by side
segments    the tokens of a segment
==========  ====================================================================
"""

from attnpool_ref.primitives.averages import (
    between,
    matvec,
    maximum,
    mean,
    minimum,
    reduced,
    sums_of_residuals,
    vecmat,
    weighted_sum,
)
from attnpool_ref.primitives.buckets import bucket_numbers, nearest_token, sum_of_bucket
from attnpool_ref.primitives.exchange import PRIMITIVES, exchanged, primitive, recorded
from attnpool_ref.primitives.exponentials import mean_of_exponentials, softmax_of_products
from attnpool_ref.primitives.heads import concatenate_heads, mask_of_heads, project_to_heads
from attnpool_ref.primitives.hidden import gated, joined, sigmoid, tanh
from attnpool_ref.primitives.moments import moments
from attnpool_ref.primitives.padding import (
    drop,
    fill_padding,
    first_position,
    last_position,
    only_real,
    pairs_of,
    zero_if_empty,
)
from attnpool_ref.primitives.segments import members
from attnpool_ref.primitives.vectors import cosines, standardized, unit_vector
from attnpool_ref.primitives.weights import inverse_root, log_softmax, share_beside_sink, shares, softmax

__all__ = [
    "PRIMITIVES",
    "between",
    "bucket_numbers",
    "concatenate_heads",
    "drop",
    "exchanged",
    "fill_padding",
    "first_position",
    "gated",
    "inverse_root",
    "joined",
    "last_position",
    "log_softmax",
    "mask_of_heads",
    "matvec",
    "maximum",
    "mean",
    "mean_of_exponentials",
    "nearest_token",
    "sum_of_bucket",
    "minimum",
    "softmax_of_products",
    "pairs_of",
    "cosines",
    "members",
    "moments",
    "only_real",
    "primitive",
    "project_to_heads",
    "recorded",
    "reduced",
    "share_beside_sink",
    "shares",
    "sigmoid",
    "softmax",
    "standardized",
    "sums_of_residuals",
    "tanh",
    "unit_vector",
    "vecmat",
    "weighted_sum",
    "zero_if_empty",
]
