"""Chunks. Twin of :mod:`attnpool_ref.streaming`, a file for each family of poolings."""

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
from attnpool_flax.streaming.readouts import latent_attention_state, vlad_state

__all__ = [
    "finalize_state",
    "merge_states",
    "_token_state",
    "attention_state",
    "first_state",
    "last_state",
    "max_state",
    "mean_state",
    "multi_head_attention_state",
    "latent_attention_state",
    "vlad_state",
    "weighted_state",
]
