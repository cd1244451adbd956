"""Reductions over tokens: the only package that loops over tokens.

A pooling chooses the score and the reduction, :class:`Dense` or :class:`Packed` the layout of the tokens, and an
implementation the loop over them. Each reduction is a commutative monoid: the states of parts can be merged.
"""

from attnpool_flax.reductions.channels import DenseChannels, PackedChannels, exponentials
from attnpool_flax.reductions.collectives import names_of, softmax_together, summed_together
from attnpool_flax.reductions.dense import Dense
from attnpool_flax.reductions.dispatch import (
    IMPLEMENTATIONS,
    alike,
    chosen,
    chosen_for_units,
    in_forward_mode,
    listening,
    record,
    suited,
    varies,
    varying,
)
from attnpool_flax.reductions.moments import moments
from attnpool_flax.reductions.packed import Packed

__all__ = [
    "IMPLEMENTATIONS",
    "Dense",
    "DenseChannels",
    "Packed",
    "PackedChannels",
    "alike",
    "chosen",
    "chosen_for_units",
    "exponentials",
    "in_forward_mode",
    "listening",
    "moments",
    "names_of",
    "record",
    "softmax_together",
    "suited",
    "summed_together",
    "varies",
    "varying",
]
