"""Pooling functions, which turn a sequence of vectors with a mask into one vector, or into one for each query."""

from attnpool_flax.pooling.attention import attention_pooling
from attnpool_flax.pooling.multi_head import multi_head_attention_pooling
from attnpool_flax.pooling.plain import (
    first_pooling,
    last_pooling,
    max_pooling,
    mean_max_pooling,
    mean_pooling,
    weighted_pooling,
)

__all__ = [
    "attention_pooling",
    "first_pooling",
    "last_pooling",
    "max_pooling",
    "mean_max_pooling",
    "mean_pooling",
    "multi_head_attention_pooling",
    "weighted_pooling",
]
