"""Former module of the accumulator states, kept for old pickles; now :mod:`attnpool_ref.streaming.states`."""

from attnpool_ref.streaming.states import (
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
