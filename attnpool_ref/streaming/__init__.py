"""Chunked pooling: each chunk of a sequence has an accumulator state; merged states finalize to the pooled vector.

Chunks are parts of a sequence that do not overlap; their states can be merged in any order. Merging with the state of a
chunk without real tokens, such as one of length 0, changes no number of a state, but may widen the dtype of the result.
Each family of pooling functions has a file.
"""

from attnpool_ref.streaming.additive import additive_attention_state
from attnpool_ref.streaming.means import (
    logsumexp_state,
    min_state,
    noisy_or_state,
    power_mean_state,
    softmax_state,
    sum_state,
)
from attnpool_ref.streaming.merging import finalize_state, merge_states
from attnpool_ref.streaming.pooling import (
    attention_state,
    first_state,
    last_state,
    max_state,
    mean_max_state,
    mean_state,
    multi_head_attention_state,
    weighted_state,
)
from attnpool_ref.streaming.readouts import gated_sum_state, latent_attention_state, vlad_state
from attnpool_ref.streaming.statistics import attentive_statistics_state, statistics_state, std_state

__all__ = [
    "additive_attention_state",
    "attention_state",
    "attentive_statistics_state",
    "finalize_state",
    "first_state",
    "gated_sum_state",
    "last_state",
    "latent_attention_state",
    "logsumexp_state",
    "max_state",
    "mean_max_state",
    "mean_state",
    "merge_states",
    "min_state",
    "multi_head_attention_state",
    "noisy_or_state",
    "power_mean_state",
    "softmax_state",
    "statistics_state",
    "std_state",
    "sum_state",
    "vlad_state",
    "weighted_state",
]
