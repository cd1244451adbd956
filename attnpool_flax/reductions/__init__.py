"""How tokens become one vector: the only place where tokens are walked.

A pooling says which score and which reduction, :class:`Dense` which tokens belong together, an implementation how they
are walked. Each reduction is a commutative monoid with a state, so that parts can be walked apart and merged.
"""

from attnpool_flax.reductions.channels import DenseChannels, PackedChannels, exponentials
from attnpool_flax.reductions.dense import Dense
from attnpool_flax.reductions.implementations import (
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
from attnpool_flax.reductions.mesh import names_of
from attnpool_flax.reductions.moments import moments
from attnpool_flax.reductions.packed import Packed
from attnpool_flax.reductions.together import softmax_together, summed_together

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
