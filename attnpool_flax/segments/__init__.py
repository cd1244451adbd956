"""Packed sequences. Twin of :mod:`attnpool_ref.segments`, a file for each family of poolings."""

from attnpool_flax.segments.additive import segment_additive_attention_pooling
from attnpool_flax.segments.means import (
    segment_logsumexp_pooling,
    segment_min_pooling,
    segment_noisy_or_pooling,
    segment_power_mean_pooling,
    segment_softmax_pooling,
    segment_sum_pooling,
)
from attnpool_flax.segments.packing import pack, unpack
from attnpool_flax.segments.pairs import segment_cross_attention_pooling
from attnpool_flax.segments.pooling import (
    segment_attention_pooling,
    segment_first_pooling,
    segment_last_pooling,
    segment_max_pooling,
    segment_mean_pooling,
    segment_multi_head_attention_pooling,
    segment_weighted_pooling,
)
from attnpool_flax.segments.readouts import (
    segment_latent_attention_pooling,
    segment_set2set_pooling,
    segment_vlad_pooling,
)
from attnpool_flax.segments.statistics import (
    segment_attentive_statistics_pooling,
    segment_statistics_pooling,
    segment_std_pooling,
)

__all__ = [
    "pack",
    "segment_additive_attention_pooling",
    "segment_attention_pooling",
    "segment_attentive_statistics_pooling",
    "segment_cross_attention_pooling",
    "segment_first_pooling",
    "segment_last_pooling",
    "segment_latent_attention_pooling",
    "segment_logsumexp_pooling",
    "segment_max_pooling",
    "segment_mean_pooling",
    "segment_min_pooling",
    "segment_multi_head_attention_pooling",
    "segment_noisy_or_pooling",
    "segment_power_mean_pooling",
    "segment_set2set_pooling",
    "segment_softmax_pooling",
    "segment_statistics_pooling",
    "segment_std_pooling",
    "segment_sum_pooling",
    "segment_vlad_pooling",
    "segment_weighted_pooling",
    "unpack",
]
