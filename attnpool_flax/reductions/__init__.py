"""Reductions over tokens: the only package that loops over tokens.

A pooling chooses the score and the reduction, :class:`Dense` or :class:`Packed` the layout of the tokens, and an
implementation the loop over them. Each reduction is a commutative monoid: the states of parts can be merged.
"""

from attnpool_flax.reductions.channels import DenseChannels, PackedChannels, exp_scores
from attnpool_flax.reductions.collectives import all_reduced_softmax, all_reduced_sums, axis_names
from attnpool_flax.reductions.dense import Dense
from attnpool_flax.reductions.dispatch import (
    IMPLEMENTATIONS,
    cast_varying,
    default_implementation,
    in_forward_mode,
    log_dispatch,
    logged_dispatches,
    resolve,
    resolve_for_units,
    unify_varying,
    varying_axes,
)
from attnpool_flax.reductions.moments import moments
from attnpool_flax.reductions.packed import Packed

__all__ = [
    "Dense",
    "DenseChannels",
    "IMPLEMENTATIONS",
    "Packed",
    "PackedChannels",
    "all_reduced_softmax",
    "all_reduced_sums",
    "axis_names",
    "cast_varying",
    "default_implementation",
    "exp_scores",
    "in_forward_mode",
    "log_dispatch",
    "logged_dispatches",
    "moments",
    "resolve",
    "resolve_for_units",
    "unify_varying",
    "varying_axes",
]
