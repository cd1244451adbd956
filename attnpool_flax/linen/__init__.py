"""The modules of :mod:`attnpool_flax.modules` for Flax Linen models: same parameters, same names, same layouts.

Sizes that stand in the data are read off those of the first call, as Linen does; all other arguments are the same.
"""

from attnpool_flax.linen.attention import AdditiveAttention, LocationAttention, MultiHeadAttention, TanhSumAttention
from attnpool_flax.linen.pairs import BiDAFAttention, CodeWiseAttention, CrossAttentionPool, MaskAttention
from attnpool_flax.linen.pooling import AttentionPool, MultiHeadAttentionPool, WeightedPool
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
