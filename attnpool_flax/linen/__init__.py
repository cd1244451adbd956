"""The modules of :mod:`attnpool_flax.modules` for Flax Linen models: same parameters, same names, same layouts.

Sizes of the data are read from the first call, as usual in Linen; all other arguments are the same.
"""

from attnpool_flax.linen.additive import AdditiveAttentionPool
from attnpool_flax.linen.attention import AdditiveAttention, LocationAttention, MultiHeadAttention, TanhSumAttention
from attnpool_flax.linen.formats import load, save
from attnpool_flax.linen.heads import AttentionalPooler, AttentionPool2d, MAPHead
from attnpool_flax.linen.means import LogSumExpPool, PowerMeanPool, SoftmaxPool
from attnpool_flax.linen.pairs import BiDAFAttention, CodeWiseAttention, CrossAttentionPool, MaskAttention
from attnpool_flax.linen.pooling import AttentionPool, MultiHeadAttentionPool, WeightedPool
from attnpool_flax.linen.probes import PMA, AttentiveProbe
from attnpool_flax.linen.readouts import LatentAttentionPool, Set2SetPool, VLADPool
from attnpool_flax.linen.relations import FieldAttentionPool, LabelAttention, RelationVector
from attnpool_flax.linen.scores import (
    AdditiveScore,
    BilinearScore,
    ConcatScore,
    LocationScore,
    TanhSumScore,
    TrilinearScore,
)
from attnpool_flax.linen.statistics import AttentiveStatisticsPool

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
    "load",
    "save",
]
