"""attnpool_flax: every attention pooling in JAX, jit-compiled, and Flax modules over them."""

from attnpool_flax import linen
from attnpool_flax.attention import (
    additive_attention,
    attend,
    dot_product_attention,
    kernel_regression,
    location_attention,
    multi_head_attention,
    tanh_sum_attention,
)
from attnpool_flax.decomposition import (
    graph_decomposition,
    linear_decomposition,
    orthogonal_decomposition,
    rigid_decomposition,
    semantic_match,
)
from attnpool_flax.masks import lengths_to_mask
from attnpool_flax.modules import AttentionPool, CrossAttentionPool, WeightedPool
from attnpool_flax.normalizers import entmax15, l2_normalize, masked_softmax, sparsemax
from attnpool_flax.pairs import (
    bidaf_attention,
    code_wise_attention,
    cross_attention_pooling,
    cross_attention_pooling_all_pairs,
    mask_attention,
)
from attnpool_flax.pooling import (
    attention_pooling,
    first_pooling,
    last_pooling,
    max_pooling,
    mean_pooling,
    multi_head_attention_pooling,
    weighted_pooling,
)
from attnpool_flax.relations import (
    attention_triplet_loss,
    differential_context,
    field_attention_pooling,
    label_attention,
    relation_triplet_loss,
    relation_vector,
)
from attnpool_flax.scores import (
    additive_score,
    bilinear_score,
    concat_score,
    cosine_score,
    dot_score,
    gaussian_score,
    location_score,
    scaled_dot_score,
    tanh_sum_score,
    trilinear_score,
)
from attnpool_ref import __version__

__all__ = [  # in the order of the table
    "__version__",
    "lengths_to_mask",
    "masked_softmax",
    "sparsemax",
    "entmax15",
    "l2_normalize",
    "dot_score",
    "scaled_dot_score",
    "bilinear_score",
    "cosine_score",
    "additive_score",
    "concat_score",
    "tanh_sum_score",
    "location_score",
    "trilinear_score",
    "gaussian_score",
    "attend",
    "dot_product_attention",
    "additive_attention",
    "tanh_sum_attention",
    "location_attention",
    "multi_head_attention",
    "kernel_regression",
    "mean_pooling",
    "max_pooling",
    "first_pooling",
    "last_pooling",
    "weighted_pooling",
    "attention_pooling",
    "multi_head_attention_pooling",
    "cross_attention_pooling",
    "cross_attention_pooling_all_pairs",
    "code_wise_attention",
    "mask_attention",
    "bidaf_attention",
    "orthogonal_decomposition",
    "linear_decomposition",
    "rigid_decomposition",
    "semantic_match",
    "graph_decomposition",
    "attention_triplet_loss",
    "differential_context",
    "relation_vector",
    "relation_triplet_loss",
    "field_attention_pooling",
    "label_attention",
    "AttentionPool",  # the modules, NNX; Linen's are attnpool_flax.linen
    "CrossAttentionPool",
    "WeightedPool",
    "linen",
]
