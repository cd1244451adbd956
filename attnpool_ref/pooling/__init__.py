"""Pooling functions: from one sequence of vectors and its mask to one vector, or to one for each query."""

from attnpool_ref.pooling.attention import attention_pooling
from attnpool_ref.pooling.multi_head import multi_head_attention_pooling
from attnpool_ref.pooling.plain import (
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
