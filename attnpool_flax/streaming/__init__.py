"""Chunks. Twin of :mod:`attnpool_ref.streaming`, a file for each family of poolings."""

from attnpool_flax.streaming.means import (
    logsumexp_state,
    min_state,
    noisy_or_state,
    power_mean_state,
    softmax_state,
    sum_state,
)
from attnpool_flax.streaming.merging import finalize_state, merge_states
from attnpool_flax.streaming.pooling import (
    _token_state,
    attention_state,
    first_state,
    last_state,
    max_state,
    mean_state,
    multi_head_attention_state,
    weighted_state,
)
from attnpool_flax.streaming.statistics import attentive_statistics_state, statistics_state, std_state

__all__ = [
    "finalize_state",
    "merge_states",
    "_token_state",
    "attention_state",
    "attentive_statistics_state",
    "first_state",
    "last_state",
    "max_state",
    "mean_state",
    "multi_head_attention_state",
    "statistics_state",
    "std_state",
    "weighted_state",
    "logsumexp_state",
    "min_state",
    "noisy_or_state",
    "power_mean_state",
    "softmax_state",
    "sum_state",
]
