"""Chunked pooling: state functions, their merge and their finalization. Twin of :mod:`attnpool_ref.streaming`."""

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
    additive_attention_state,
    attention_state,
    first_state,
    last_state,
    max_state,
    mean_max_state,
    mean_state,
    multi_head_attention_state,
    weighted_state,
)
from attnpool_flax.streaming.readouts import gated_sum_state, latent_attention_state, vlad_state
from attnpool_flax.streaming.statistics import attentive_statistics_state, statistics_state, std_state

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
