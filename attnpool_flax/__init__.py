"""attnpool_flax: every attention pooling in JAX, jit-compiled, and Flax modules over them."""

from attnpool_flax import linen
from attnpool_flax.attention import attend, dot_product_attention
from attnpool_flax.masks import lengths_to_mask
from attnpool_flax.modules import AttentionPool, CrossAttentionPool, WeightedPool
from attnpool_flax.normalizers import l2_normalize, masked_softmax
from attnpool_flax.pairs import cross_attention_pooling
from attnpool_flax.pooling import (
    attention_pooling,
    first_pooling,
    last_pooling,
    max_pooling,
    mean_pooling,
    weighted_pooling,
)
from attnpool_flax.scores import dot_score, scaled_dot_score
from attnpool_ref import __version__

__all__ = [  # in the order of the table
    "__version__",
    "lengths_to_mask",
    "masked_softmax",
    "l2_normalize",
    "dot_score",
    "scaled_dot_score",
    "attend",
    "dot_product_attention",
    "mean_pooling",
    "max_pooling",
    "first_pooling",
    "last_pooling",
    "weighted_pooling",
    "attention_pooling",
    "cross_attention_pooling",
    "AttentionPool",  # the modules, NNX; Linen's are attnpool_flax.linen
    "CrossAttentionPool",
    "WeightedPool",
    "linen",
]
