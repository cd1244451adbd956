"""Flax NNX modules: parameters and configuration, no arithmetic.

Each module calls one function of this package; :mod:`attnpool_flax.modules.specs` lists its parameters. The same modules for
Linen are in :mod:`attnpool_flax.linen`.
"""

from attnpool_flax.modules.additive import AdditiveAttentionPool
from attnpool_flax.modules.attention import AdditiveAttention, LocationAttention, MultiHeadAttention, TanhSumAttention
from attnpool_flax.modules.heads import AttentionalPooler, AttentionPool2d, MAPHead
from attnpool_flax.modules.means import LogSumExpPool, PowerMeanPool, SoftmaxPool
from attnpool_flax.modules.pairs import BiDAFAttention, CodeWiseAttention, CrossAttentionPool, MaskAttention
from attnpool_flax.modules.pooling import AttentionPool, MultiHeadAttentionPool, WeightedPool
from attnpool_flax.modules.probes import PMA, AttentiveProbe
from attnpool_flax.modules.readouts import LatentAttentionPool, Set2SetPool, VLADPool
from attnpool_flax.modules.relations import FieldAttentionPool, LabelAttention, RelationVector
from attnpool_flax.modules.scores import (
    AdditiveScore,
    BilinearScore,
    ConcatScore,
    LocationScore,
    TanhSumScore,
    TrilinearScore,
)
from attnpool_flax.modules.statistics import AttentiveStatisticsPool

__all__ = [  # in the order of the table
    "BilinearScore",
    "AdditiveScore",
    "ConcatScore",
    "TanhSumScore",
    "LocationScore",
    "TrilinearScore",
    "AdditiveAttention",
    "TanhSumAttention",
    "LocationAttention",
    "MultiHeadAttention",
    "WeightedPool",
    "AttentionPool",
    "MultiHeadAttentionPool",
    "PowerMeanPool",
    "LogSumExpPool",
    "SoftmaxPool",
    "AttentiveStatisticsPool",
    "MAPHead",
    "AttentionalPooler",
    "AttentionPool2d",
    "PMA",
    "AttentiveProbe",
    "AdditiveAttentionPool",
    "LatentAttentionPool",
    "Set2SetPool",
    "VLADPool",
    "CrossAttentionPool",
    "CodeWiseAttention",
    "MaskAttention",
    "BiDAFAttention",
    "RelationVector",
    "FieldAttentionPool",
    "LabelAttention",
]
