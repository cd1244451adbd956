"""Former path of the accumulator states, for old pickles. The classes are in :mod:`attnpool_flax.reductions.state`."""

from attnpool_flax.reductions.state import (
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
