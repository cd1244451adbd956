"""Flax NNX modules: parameters and configuration, no arithmetic.

Each module calls one function of this package and stands in the file of its family. What it owns stands in
:mod:`attnpool_flax.parameters`; the same modules for Linen models are in :mod:`attnpool_flax.linen`.
"""

from attnpool_flax.modules.attention import AdditiveAttention, LocationAttention, MultiHeadAttention, TanhSumAttention
from attnpool_flax.modules.pairs import BiDAFAttention, CodeWiseAttention, CrossAttentionPool, MaskAttention
from attnpool_flax.modules.pooling import AttentionPool, MultiHeadAttentionPool, WeightedPool
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
