"""Former path of the accumulator states, for old pickles. The classes are in :mod:`attnpool_flax.streaming.states`."""

from attnpool_flax.streaming.states import (
    AdditiveAttentionState,
    AttentionState,
    ChannelState,
    FirstState,
    LastState,
    MaxState,
    MeanState,
    MultiHeadAttentionState,
    WeightedState,
    kinds,
)

__all__ = [
    "AdditiveAttentionState",
    "AttentionState",
    "ChannelState",
    "FirstState",
    "LastState",
    "MaxState",
    "MeanState",
    "MultiHeadAttentionState",
    "WeightedState",
    "kinds",
]
