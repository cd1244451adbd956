# Written by tools/generate/make_stubs.py from the table and the signatures (`make docs`), not by hand.

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from attnpool_ref import formats as formats
from attnpool_ref.streaming import State

class MeanState(State): ...
class MaxState(State): ...
class FirstState(State): ...
class LastState(State): ...
class WeightedState(State): ...
class MeanMaxState(State): ...
class AttentionState(State): ...
class MultiHeadAttentionState(State): ...
class AdditiveAttentionState(State): ...
class LatentAttentionState(State): ...
class VladState(State): ...
class GatedSumState(State): ...
class SumState(State): ...
class MinState(State): ...
class NoisyOrState(State): ...
class PowerMeanState(State): ...
class LogsumexpState(State): ...
class SoftmaxState(State): ...
class StdState(State): ...
class StatisticsState(State): ...
class AttentiveStatisticsState(State): ...

_State = TypeVar(
    "_State",
    MeanState,
    MaxState,
    FirstState,
    LastState,
    WeightedState,
    MeanMaxState,
    AttentionState,
    MultiHeadAttentionState,
    AdditiveAttentionState,
    LatentAttentionState,
    VladState,
    GatedSumState,
    SumState,
    MinState,
    NoisyOrState,
    PowerMeanState,
    LogsumexpState,
    SoftmaxState,
    StdState,
    StatisticsState,
    AttentiveStatisticsState,
)

__version__: Final[str]
__all__ = [
    "lengths_to_mask",
    "spans_to_mask",
    "token_positions",
    "masked_softmax",
    "masked_log_softmax",
    "segment_softmax",
    "segment_log_softmax",
    "sparsemax",
    "entmax15",
    "entmax",
    "top_k_softmax",
    "gumbel_softmax",
    "masked_sigmoid",
    "hardmax",
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
    "mean_max_pooling",
    "attention_pooling",
    "multi_head_attention_pooling",
    "sum_pooling",
    "min_pooling",
    "quantile_pooling",
    "top_k_pooling",
    "noisy_or_pooling",
    "power_mean_pooling",
    "logsumexp_pooling",
    "softmax_pooling",
    "std_pooling",
    "statistics_pooling",
    "attentive_statistics_pooling",
    "additive_attention_pooling",
    "attention_penalty",
    "latent_attention_pooling",
    "set2set_pooling",
    "vlad_pooling",
    "gated_sum_pooling",
    "layer_norm",
    "residual_feed_forward",
    "segment_mean_pooling",
    "segment_max_pooling",
    "segment_first_pooling",
    "segment_last_pooling",
    "segment_weighted_pooling",
    "segment_mean_max_pooling",
    "segment_attention_pooling",
    "segment_multi_head_attention_pooling",
    "segment_sum_pooling",
    "segment_min_pooling",
    "segment_noisy_or_pooling",
    "segment_power_mean_pooling",
    "segment_logsumexp_pooling",
    "segment_softmax_pooling",
    "segment_std_pooling",
    "segment_statistics_pooling",
    "segment_attentive_statistics_pooling",
    "segment_additive_attention_pooling",
    "segment_latent_attention_pooling",
    "segment_set2set_pooling",
    "segment_vlad_pooling",
    "segment_gated_sum_pooling",
    "segment_muvera_query_encoding",
    "segment_muvera_document_encoding",
    "segment_cross_attention_pooling",
    "cross_attention_pooling",
    "cross_attention_pooling_all_pairs",
    "code_wise_attention",
    "mask_attention",
    "bidaf_attention",
    "maxsim_score",
    "muvera_query_encoding",
    "muvera_document_encoding",
    "maxsim_score_all_pairs",
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
    "mean_state",
    "max_state",
    "first_state",
    "last_state",
    "weighted_state",
    "mean_max_state",
    "attention_state",
    "multi_head_attention_state",
    "additive_attention_state",
    "latent_attention_state",
    "vlad_state",
    "gated_sum_state",
    "sum_state",
    "min_state",
    "noisy_or_state",
    "power_mean_state",
    "logsumexp_state",
    "softmax_state",
    "std_state",
    "statistics_state",
    "attentive_statistics_state",
    "merge_states",
    "finalize_state",
    "formats",
    "pad",
    "pack",
    "unpack",
]

def lengths_to_mask(
    lengths: ArrayLike, max_length: int, *, side: Literal["right", "left"] = "right"
) -> NDArray[np.bool_]: ...
def spans_to_mask(spans: ArrayLike, max_length: int, span_mask: ArrayLike | None = None) -> NDArray[np.bool_]: ...
def token_positions(mask: ArrayLike) -> NDArray[Any]: ...
def masked_softmax(
    scores: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    sink: ArrayLike | None = None,
    axis: int = -1,
) -> NDArray[Any]: ...
def masked_log_softmax(
    scores: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None, axis: int = -1
) -> NDArray[Any]: ...
def segment_softmax(
    scores: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    indices_are_sorted: bool = False,
) -> NDArray[Any]: ...
def segment_log_softmax(
    scores: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    indices_are_sorted: bool = False,
) -> NDArray[Any]: ...
def sparsemax(scores: ArrayLike, mask: ArrayLike | None = None, *, axis: int = -1) -> NDArray[Any]: ...
def entmax15(scores: ArrayLike, mask: ArrayLike | None = None, *, axis: int = -1) -> NDArray[Any]: ...
def entmax(
    scores: ArrayLike, mask: ArrayLike | None = None, *, alpha: ArrayLike = 1.5, axis: int = -1
) -> NDArray[Any]: ...
def top_k_softmax(scores: ArrayLike, mask: ArrayLike | None = None, *, k: int, axis: int = -1) -> NDArray[Any]: ...
def gumbel_softmax(
    scores: ArrayLike,
    mask: ArrayLike | None = None,
    noise: ArrayLike | None = None,
    *,
    temperature: ArrayLike = 1.0,
    hard: bool = False,
    axis: int = -1,
) -> NDArray[Any]: ...
def masked_sigmoid(
    scores: ArrayLike, mask: ArrayLike | None = None, *, normalize: bool = False, axis: int = -1
) -> NDArray[Any]: ...
def hardmax(scores: ArrayLike, mask: ArrayLike | None = None, *, axis: int = -1) -> NDArray[Any]: ...
def l2_normalize(x: ArrayLike, *, axis: int = -1) -> NDArray[Any]: ...
def dot_score(query: ArrayLike, key: ArrayLike, *, result_dtype: DTypeLike | None = None) -> NDArray[Any]: ...
def scaled_dot_score(
    query: ArrayLike, key: ArrayLike, *, scale: ArrayLike | None = None, result_dtype: DTypeLike | None = None
) -> NDArray[Any]: ...
def bilinear_score(
    query: ArrayLike, key: ArrayLike, kernel: ArrayLike, *, result_dtype: DTypeLike | None = None
) -> NDArray[Any]: ...
def cosine_score(query: ArrayLike, key: ArrayLike, *, result_dtype: DTypeLike | None = None) -> NDArray[Any]: ...
def additive_score(
    query: ArrayLike,
    key: ArrayLike,
    query_kernel: ArrayLike,
    key_kernel: ArrayLike,
    out_kernel: ArrayLike,
    *,
    bias: ArrayLike | None = None,
) -> NDArray[Any]: ...
def concat_score(
    query: ArrayLike, key: ArrayLike, kernel: ArrayLike, out_kernel: ArrayLike, *, bias: ArrayLike | None = None
) -> NDArray[Any]: ...
def tanh_sum_score(
    query: ArrayLike, key: ArrayLike, kernel: ArrayLike, *, bias: ArrayLike | None = None
) -> NDArray[Any]: ...
def location_score(
    query: ArrayLike, state: ArrayLike, kernel: ArrayLike, *, bias: ArrayLike | None = None
) -> NDArray[Any]: ...
def trilinear_score(
    query: ArrayLike, key: ArrayLike, kernel: ArrayLike, *, result_dtype: DTypeLike | None = None
) -> NDArray[Any]: ...
def gaussian_score(query: ArrayLike, key: ArrayLike, *, bandwidth: ArrayLike = 1.0) -> NDArray[Any]: ...
@overload
def attend(
    scores: ArrayLike,
    value: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    normalizer: Literal["softmax", "sparsemax", "entmax15", "sigmoid", "hardmax"]
    | Callable[[Any, Any], Any] = "softmax",
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def attend(
    scores: ArrayLike,
    value: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    normalizer: Literal["softmax", "sparsemax", "entmax15", "sigmoid", "hardmax"]
    | Callable[[Any, Any], Any] = "softmax",
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def attend(
    scores: ArrayLike,
    value: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    normalizer: Literal["softmax", "sparsemax", "entmax15", "sigmoid", "hardmax"]
    | Callable[[Any, Any], Any] = "softmax",
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def additive_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    query_kernel: ArrayLike,
    key_kernel: ArrayLike,
    out_kernel: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def additive_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    query_kernel: ArrayLike,
    key_kernel: ArrayLike,
    out_kernel: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def additive_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    query_kernel: ArrayLike,
    key_kernel: ArrayLike,
    out_kernel: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def tanh_sum_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    kernel: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def tanh_sum_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    kernel: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def tanh_sum_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    kernel: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def location_attention(
    query: ArrayLike,
    state: ArrayLike,
    value: ArrayLike,
    kernel: ArrayLike,
    bias: ArrayLike,
    out_kernel: ArrayLike,
    out_bias: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def location_attention(
    query: ArrayLike,
    state: ArrayLike,
    value: ArrayLike,
    kernel: ArrayLike,
    bias: ArrayLike,
    out_kernel: ArrayLike,
    out_bias: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def location_attention(
    query: ArrayLike,
    state: ArrayLike,
    value: ArrayLike,
    kernel: ArrayLike,
    bias: ArrayLike,
    out_kernel: ArrayLike,
    out_bias: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def multi_head_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    query_kernel: ArrayLike,
    key_kernel: ArrayLike,
    value_kernel: ArrayLike,
    out_kernel: ArrayLike,
    query_bias: ArrayLike | None = None,
    key_bias: ArrayLike | None = None,
    value_bias: ArrayLike | None = None,
    out_bias: ArrayLike | None = None,
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def multi_head_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    query_kernel: ArrayLike,
    key_kernel: ArrayLike,
    value_kernel: ArrayLike,
    out_kernel: ArrayLike,
    query_bias: ArrayLike | None = None,
    key_bias: ArrayLike | None = None,
    value_bias: ArrayLike | None = None,
    out_bias: ArrayLike | None = None,
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def multi_head_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    query_kernel: ArrayLike,
    key_kernel: ArrayLike,
    value_kernel: ArrayLike,
    out_kernel: ArrayLike,
    query_bias: ArrayLike | None = None,
    key_bias: ArrayLike | None = None,
    value_bias: ArrayLike | None = None,
    out_bias: ArrayLike | None = None,
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def kernel_regression(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    kernel: Literal["gaussian", "boxcar", "triangular", "epanechnikov", "constant"] = "gaussian",
    bandwidth: ArrayLike = 1.0,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def kernel_regression(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    kernel: Literal["gaussian", "boxcar", "triangular", "epanechnikov", "constant"] = "gaussian",
    bandwidth: ArrayLike = 1.0,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def kernel_regression(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    kernel: Literal["gaussian", "boxcar", "triangular", "epanechnikov", "constant"] = "gaussian",
    bandwidth: ArrayLike = 1.0,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
def mean_pooling(x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None) -> NDArray[Any]: ...
def max_pooling(x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None) -> NDArray[Any]: ...
def first_pooling(x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None) -> NDArray[Any]: ...
def last_pooling(x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None) -> NDArray[Any]: ...
def weighted_pooling(
    x: ArrayLike, weights: ArrayLike | None = None, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None
) -> NDArray[Any]: ...
def mean_max_pooling(
    x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None
) -> NDArray[Any]: ...
@overload
def attention_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    query: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    query_kernel: ArrayLike | None = None,
    key_kernel: ArrayLike | None = None,
    normalize_query: bool = False,
    query_norm_scale: ArrayLike | None = None,
    query_norm_bias: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-06,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    normalizer: Literal["softmax", "sparsemax", "entmax15", "sigmoid", "hardmax"]
    | Callable[[Any, Any], Any] = "softmax",
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def attention_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    query: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    query_kernel: ArrayLike | None = None,
    key_kernel: ArrayLike | None = None,
    normalize_query: bool = False,
    query_norm_scale: ArrayLike | None = None,
    query_norm_bias: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-06,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    normalizer: Literal["softmax", "sparsemax", "entmax15", "sigmoid", "hardmax"]
    | Callable[[Any, Any], Any] = "softmax",
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def attention_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    query: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    query_kernel: ArrayLike | None = None,
    key_kernel: ArrayLike | None = None,
    normalize_query: bool = False,
    query_norm_scale: ArrayLike | None = None,
    query_norm_bias: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-06,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    normalizer: Literal["softmax", "sparsemax", "entmax15", "sigmoid", "hardmax"]
    | Callable[[Any, Any], Any] = "softmax",
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def multi_head_attention_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    query: ArrayLike,
    query_kernel: ArrayLike | None = None,
    key_kernel: ArrayLike,
    value_kernel: ArrayLike,
    out_kernel: ArrayLike | None = None,
    query_bias: ArrayLike | None = None,
    key_bias: ArrayLike | None = None,
    value_bias: ArrayLike | None = None,
    out_bias: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    normalizer: Literal["softmax", "sparsemax", "entmax15", "sigmoid", "hardmax"]
    | Callable[[Any, Any], Any] = "softmax",
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def multi_head_attention_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    query: ArrayLike,
    query_kernel: ArrayLike | None = None,
    key_kernel: ArrayLike,
    value_kernel: ArrayLike,
    out_kernel: ArrayLike | None = None,
    query_bias: ArrayLike | None = None,
    key_bias: ArrayLike | None = None,
    value_bias: ArrayLike | None = None,
    out_bias: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    normalizer: Literal["softmax", "sparsemax", "entmax15", "sigmoid", "hardmax"]
    | Callable[[Any, Any], Any] = "softmax",
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def multi_head_attention_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    query: ArrayLike,
    query_kernel: ArrayLike | None = None,
    key_kernel: ArrayLike,
    value_kernel: ArrayLike,
    out_kernel: ArrayLike | None = None,
    query_bias: ArrayLike | None = None,
    key_bias: ArrayLike | None = None,
    value_bias: ArrayLike | None = None,
    out_bias: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    normalizer: Literal["softmax", "sparsemax", "entmax15", "sigmoid", "hardmax"]
    | Callable[[Any, Any], Any] = "softmax",
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
def sum_pooling(x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None) -> NDArray[Any]: ...
def min_pooling(x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None) -> NDArray[Any]: ...
def quantile_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    q: ArrayLike = 0.5,
    *,
    lengths: ArrayLike | None = None,
    method: Literal["linear", "lower", "higher", "nearest", "midpoint"] = "linear",
) -> NDArray[Any]: ...
def top_k_pooling(
    x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None, k: int
) -> NDArray[Any]: ...
def noisy_or_pooling(
    x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None
) -> NDArray[Any]: ...
def power_mean_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    p: ArrayLike = 3.0,
    *,
    lengths: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-06,
) -> NDArray[Any]: ...
def logsumexp_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    scale: ArrayLike = 1.0,
    *,
    lengths: ArrayLike | None = None,
    mean: bool = True,
) -> NDArray[Any]: ...
@overload
def softmax_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    scale: ArrayLike = 1.0,
    *,
    lengths: ArrayLike | None = None,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def softmax_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    scale: ArrayLike = 1.0,
    *,
    lengths: ArrayLike | None = None,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def softmax_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    scale: ArrayLike = 1.0,
    *,
    lengths: ArrayLike | None = None,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
def std_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    ddof: ArrayLike = 0,
    epsilon: ArrayLike = 0.0,
) -> NDArray[Any]: ...
def statistics_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    ddof: ArrayLike = 0,
    epsilon: ArrayLike = 0.0,
) -> NDArray[Any]: ...
@overload
def attentive_statistics_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    kernel: ArrayLike,
    out_kernel: ArrayLike,
    bias: ArrayLike | None = None,
    out_bias: ArrayLike | None = None,
    norm_scale: ArrayLike | None = None,
    norm_bias: ArrayLike | None = None,
    activation: Literal["tanh", "relu", "gelu", "identity"] = "tanh",
    global_context: bool = False,
    context_ddof: ArrayLike = 0,
    epsilon: ArrayLike = 0.0,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def attentive_statistics_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    kernel: ArrayLike,
    out_kernel: ArrayLike,
    bias: ArrayLike | None = None,
    out_bias: ArrayLike | None = None,
    norm_scale: ArrayLike | None = None,
    norm_bias: ArrayLike | None = None,
    activation: Literal["tanh", "relu", "gelu", "identity"] = "tanh",
    global_context: bool = False,
    context_ddof: ArrayLike = 0,
    epsilon: ArrayLike = 0.0,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def attentive_statistics_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    kernel: ArrayLike,
    out_kernel: ArrayLike,
    bias: ArrayLike | None = None,
    out_bias: ArrayLike | None = None,
    norm_scale: ArrayLike | None = None,
    norm_bias: ArrayLike | None = None,
    activation: Literal["tanh", "relu", "gelu", "identity"] = "tanh",
    global_context: bool = False,
    context_ddof: ArrayLike = 0,
    epsilon: ArrayLike = 0.0,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def additive_attention_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    kernel: ArrayLike,
    out_kernel: ArrayLike,
    bias: ArrayLike | None = None,
    gate_kernel: ArrayLike | None = None,
    gate_bias: ArrayLike | None = None,
    out_bias: ArrayLike | None = None,
    value: ArrayLike | None = None,
    activation: Literal["tanh", "relu", "gelu", "identity"] = "tanh",
    normalizer: Literal["softmax", "sparsemax", "entmax15", "sigmoid", "hardmax"]
    | Callable[[Any, Any], Any] = "softmax",
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def additive_attention_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    kernel: ArrayLike,
    out_kernel: ArrayLike,
    bias: ArrayLike | None = None,
    gate_kernel: ArrayLike | None = None,
    gate_bias: ArrayLike | None = None,
    out_bias: ArrayLike | None = None,
    value: ArrayLike | None = None,
    activation: Literal["tanh", "relu", "gelu", "identity"] = "tanh",
    normalizer: Literal["softmax", "sparsemax", "entmax15", "sigmoid", "hardmax"]
    | Callable[[Any, Any], Any] = "softmax",
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def additive_attention_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    kernel: ArrayLike,
    out_kernel: ArrayLike,
    bias: ArrayLike | None = None,
    gate_kernel: ArrayLike | None = None,
    gate_bias: ArrayLike | None = None,
    out_bias: ArrayLike | None = None,
    value: ArrayLike | None = None,
    activation: Literal["tanh", "relu", "gelu", "identity"] = "tanh",
    normalizer: Literal["softmax", "sparsemax", "entmax15", "sigmoid", "hardmax"]
    | Callable[[Any, Any], Any] = "softmax",
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
def attention_penalty(weights: ArrayLike) -> NDArray[Any]: ...
def latent_attention_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    latents: ArrayLike,
    query_kernel: ArrayLike,
    key_kernel: ArrayLike,
    value_kernel: ArrayLike,
    out_kernel: ArrayLike,
    mlp_kernel: ArrayLike,
    mlp_out_kernel: ArrayLike,
    mlp_bias: ArrayLike | None = None,
    mlp_out_bias: ArrayLike | None = None,
    norm_scale: ArrayLike | None = None,
    norm_bias: ArrayLike | None = None,
    latent_norm_scale: ArrayLike | None = None,
    latent_norm_bias: ArrayLike | None = None,
    mlp_norm_scale: ArrayLike | None = None,
    mlp_norm_bias: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-05,
) -> NDArray[Any]: ...
@overload
def set2set_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    input_kernel: ArrayLike,
    recurrent_kernel: ArrayLike,
    bias: ArrayLike,
    num_steps: int,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def set2set_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    input_kernel: ArrayLike,
    recurrent_kernel: ArrayLike,
    bias: ArrayLike,
    num_steps: int,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def set2set_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    input_kernel: ArrayLike,
    recurrent_kernel: ArrayLike,
    bias: ArrayLike,
    num_steps: int,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def vlad_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    assign_kernel: ArrayLike,
    centers: ArrayLike,
    assign_bias: ArrayLike | None = None,
    normalize: bool = True,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def vlad_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    assign_kernel: ArrayLike,
    centers: ArrayLike,
    assign_bias: ArrayLike | None = None,
    normalize: bool = True,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def vlad_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    assign_kernel: ArrayLike,
    centers: ArrayLike,
    assign_bias: ArrayLike | None = None,
    normalize: bool = True,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
def gated_sum_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    gate_kernel: ArrayLike,
    value_kernel: ArrayLike,
    gate_bias: ArrayLike | None = None,
    value_bias: ArrayLike | None = None,
) -> NDArray[Any]: ...
def layer_norm(
    x: ArrayLike, scale: ArrayLike | None = None, bias: ArrayLike | None = None, *, epsilon: ArrayLike = 1e-06
) -> NDArray[Any]: ...
def residual_feed_forward(
    x: ArrayLike,
    kernel: ArrayLike,
    bias: ArrayLike | None = None,
    out_kernel: ArrayLike | None = None,
    out_bias: ArrayLike | None = None,
    *,
    norm_scale: ArrayLike | None = None,
    norm_bias: ArrayLike | None = None,
    normalize: bool = True,
    activation: Literal["gelu", "gelu_tanh", "relu", "geglu"] = "gelu",
    epsilon: ArrayLike = 1e-06,
) -> NDArray[Any]: ...
def segment_mean_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    indices_are_sorted: bool = False,
) -> NDArray[Any]: ...
def segment_max_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    indices_are_sorted: bool = False,
) -> NDArray[Any]: ...
def segment_first_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    indices_are_sorted: bool = False,
) -> NDArray[Any]: ...
def segment_last_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    indices_are_sorted: bool = False,
) -> NDArray[Any]: ...
def segment_weighted_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    weights: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    indices_are_sorted: bool = False,
) -> NDArray[Any]: ...
def segment_mean_max_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    indices_are_sorted: bool = False,
) -> NDArray[Any]: ...
@overload
def segment_attention_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    query: ArrayLike | None = None,
    *,
    query_kernel: ArrayLike | None = None,
    key_kernel: ArrayLike | None = None,
    normalize_query: bool = False,
    query_norm_scale: ArrayLike | None = None,
    query_norm_bias: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-06,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    normalizer: Literal["softmax", "sigmoid"] = "softmax",
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    indices_are_sorted: bool = False,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def segment_attention_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    query: ArrayLike | None = None,
    *,
    query_kernel: ArrayLike | None = None,
    key_kernel: ArrayLike | None = None,
    normalize_query: bool = False,
    query_norm_scale: ArrayLike | None = None,
    query_norm_bias: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-06,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    normalizer: Literal["softmax", "sigmoid"] = "softmax",
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    indices_are_sorted: bool = False,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def segment_attention_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    query: ArrayLike | None = None,
    *,
    query_kernel: ArrayLike | None = None,
    key_kernel: ArrayLike | None = None,
    normalize_query: bool = False,
    query_norm_scale: ArrayLike | None = None,
    query_norm_bias: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-06,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    normalizer: Literal["softmax", "sigmoid"] = "softmax",
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    indices_are_sorted: bool = False,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def segment_multi_head_attention_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    query: ArrayLike,
    query_kernel: ArrayLike | None = None,
    key_kernel: ArrayLike,
    value_kernel: ArrayLike,
    out_kernel: ArrayLike | None = None,
    query_bias: ArrayLike | None = None,
    key_bias: ArrayLike | None = None,
    value_bias: ArrayLike | None = None,
    out_bias: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    normalizer: Literal["softmax", "sigmoid"] = "softmax",
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    indices_are_sorted: bool = False,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def segment_multi_head_attention_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    query: ArrayLike,
    query_kernel: ArrayLike | None = None,
    key_kernel: ArrayLike,
    value_kernel: ArrayLike,
    out_kernel: ArrayLike | None = None,
    query_bias: ArrayLike | None = None,
    key_bias: ArrayLike | None = None,
    value_bias: ArrayLike | None = None,
    out_bias: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    normalizer: Literal["softmax", "sigmoid"] = "softmax",
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    indices_are_sorted: bool = False,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def segment_multi_head_attention_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    query: ArrayLike,
    query_kernel: ArrayLike | None = None,
    key_kernel: ArrayLike,
    value_kernel: ArrayLike,
    out_kernel: ArrayLike | None = None,
    query_bias: ArrayLike | None = None,
    key_bias: ArrayLike | None = None,
    value_bias: ArrayLike | None = None,
    out_bias: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    normalizer: Literal["softmax", "sigmoid"] = "softmax",
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    indices_are_sorted: bool = False,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
def segment_sum_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    indices_are_sorted: bool = False,
) -> NDArray[Any]: ...
def segment_min_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    indices_are_sorted: bool = False,
) -> NDArray[Any]: ...
def segment_noisy_or_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    indices_are_sorted: bool = False,
) -> NDArray[Any]: ...
def segment_power_mean_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    p: ArrayLike = 3.0,
    *,
    epsilon: ArrayLike = 1e-06,
    indices_are_sorted: bool = False,
) -> NDArray[Any]: ...
def segment_logsumexp_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    scale: ArrayLike = 1.0,
    *,
    mean: bool = True,
    indices_are_sorted: bool = False,
) -> NDArray[Any]: ...
@overload
def segment_softmax_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    scale: ArrayLike = 1.0,
    *,
    indices_are_sorted: bool = False,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def segment_softmax_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    scale: ArrayLike = 1.0,
    *,
    indices_are_sorted: bool = False,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def segment_softmax_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    scale: ArrayLike = 1.0,
    *,
    indices_are_sorted: bool = False,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
def segment_std_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    *,
    ddof: ArrayLike = 0,
    epsilon: ArrayLike = 0.0,
    indices_are_sorted: bool = False,
) -> NDArray[Any]: ...
def segment_statistics_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    *,
    ddof: ArrayLike = 0,
    epsilon: ArrayLike = 0.0,
    indices_are_sorted: bool = False,
) -> NDArray[Any]: ...
@overload
def segment_attentive_statistics_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    kernel: ArrayLike,
    out_kernel: ArrayLike,
    bias: ArrayLike | None = None,
    out_bias: ArrayLike | None = None,
    norm_scale: ArrayLike | None = None,
    norm_bias: ArrayLike | None = None,
    activation: Literal["tanh", "relu", "gelu", "identity"] = "tanh",
    global_context: bool = False,
    context_ddof: ArrayLike = 0,
    epsilon: ArrayLike = 0.0,
    indices_are_sorted: bool = False,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def segment_attentive_statistics_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    kernel: ArrayLike,
    out_kernel: ArrayLike,
    bias: ArrayLike | None = None,
    out_bias: ArrayLike | None = None,
    norm_scale: ArrayLike | None = None,
    norm_bias: ArrayLike | None = None,
    activation: Literal["tanh", "relu", "gelu", "identity"] = "tanh",
    global_context: bool = False,
    context_ddof: ArrayLike = 0,
    epsilon: ArrayLike = 0.0,
    indices_are_sorted: bool = False,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def segment_attentive_statistics_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    kernel: ArrayLike,
    out_kernel: ArrayLike,
    bias: ArrayLike | None = None,
    out_bias: ArrayLike | None = None,
    norm_scale: ArrayLike | None = None,
    norm_bias: ArrayLike | None = None,
    activation: Literal["tanh", "relu", "gelu", "identity"] = "tanh",
    global_context: bool = False,
    context_ddof: ArrayLike = 0,
    epsilon: ArrayLike = 0.0,
    indices_are_sorted: bool = False,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def segment_additive_attention_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    kernel: ArrayLike,
    out_kernel: ArrayLike,
    bias: ArrayLike | None = None,
    gate_kernel: ArrayLike | None = None,
    gate_bias: ArrayLike | None = None,
    out_bias: ArrayLike | None = None,
    value: ArrayLike | None = None,
    activation: Literal["tanh", "relu", "gelu", "identity"] = "tanh",
    normalizer: Literal["softmax", "sigmoid"] = "softmax",
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    indices_are_sorted: bool = False,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def segment_additive_attention_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    kernel: ArrayLike,
    out_kernel: ArrayLike,
    bias: ArrayLike | None = None,
    gate_kernel: ArrayLike | None = None,
    gate_bias: ArrayLike | None = None,
    out_bias: ArrayLike | None = None,
    value: ArrayLike | None = None,
    activation: Literal["tanh", "relu", "gelu", "identity"] = "tanh",
    normalizer: Literal["softmax", "sigmoid"] = "softmax",
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    indices_are_sorted: bool = False,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def segment_additive_attention_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    kernel: ArrayLike,
    out_kernel: ArrayLike,
    bias: ArrayLike | None = None,
    gate_kernel: ArrayLike | None = None,
    gate_bias: ArrayLike | None = None,
    out_bias: ArrayLike | None = None,
    value: ArrayLike | None = None,
    activation: Literal["tanh", "relu", "gelu", "identity"] = "tanh",
    normalizer: Literal["softmax", "sigmoid"] = "softmax",
    sink: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    indices_are_sorted: bool = False,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
def segment_latent_attention_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    latents: ArrayLike,
    query_kernel: ArrayLike,
    key_kernel: ArrayLike,
    value_kernel: ArrayLike,
    out_kernel: ArrayLike,
    mlp_kernel: ArrayLike,
    mlp_out_kernel: ArrayLike,
    mlp_bias: ArrayLike | None = None,
    mlp_out_bias: ArrayLike | None = None,
    norm_scale: ArrayLike | None = None,
    norm_bias: ArrayLike | None = None,
    latent_norm_scale: ArrayLike | None = None,
    latent_norm_bias: ArrayLike | None = None,
    mlp_norm_scale: ArrayLike | None = None,
    mlp_norm_bias: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-05,
    indices_are_sorted: bool = False,
) -> NDArray[Any]: ...
@overload
def segment_set2set_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    input_kernel: ArrayLike,
    recurrent_kernel: ArrayLike,
    bias: ArrayLike,
    num_steps: int,
    indices_are_sorted: bool = False,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def segment_set2set_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    input_kernel: ArrayLike,
    recurrent_kernel: ArrayLike,
    bias: ArrayLike,
    num_steps: int,
    indices_are_sorted: bool = False,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def segment_set2set_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    input_kernel: ArrayLike,
    recurrent_kernel: ArrayLike,
    bias: ArrayLike,
    num_steps: int,
    indices_are_sorted: bool = False,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def segment_vlad_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    assign_kernel: ArrayLike,
    centers: ArrayLike,
    assign_bias: ArrayLike | None = None,
    normalize: bool = True,
    indices_are_sorted: bool = False,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def segment_vlad_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    assign_kernel: ArrayLike,
    centers: ArrayLike,
    assign_bias: ArrayLike | None = None,
    normalize: bool = True,
    indices_are_sorted: bool = False,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def segment_vlad_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    assign_kernel: ArrayLike,
    centers: ArrayLike,
    assign_bias: ArrayLike | None = None,
    normalize: bool = True,
    indices_are_sorted: bool = False,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
def segment_gated_sum_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    gate_kernel: ArrayLike,
    value_kernel: ArrayLike,
    gate_bias: ArrayLike | None = None,
    value_bias: ArrayLike | None = None,
    indices_are_sorted: bool = False,
) -> NDArray[Any]: ...
def segment_muvera_query_encoding(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    planes: ArrayLike,
    projection: ArrayLike | None = None,
    indices_are_sorted: bool = False,
) -> NDArray[Any]: ...
def segment_muvera_document_encoding(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    planes: ArrayLike,
    projection: ArrayLike | None = None,
    indices_are_sorted: bool = False,
) -> NDArray[Any]: ...
@overload
def segment_cross_attention_pooling(
    x: ArrayLike,
    x_segment_ids: ArrayLike,
    y: ArrayLike,
    y_segment_ids: ArrayLike,
    num_segments: int,
    x_mask: ArrayLike | None = None,
    y_mask: ArrayLike | None = None,
    *,
    x_kernel: ArrayLike | None = None,
    y_kernel: ArrayLike | None = None,
    reduction: Literal["sum", "mean"] = "sum",
    scale: ArrayLike = 1.0,
    x_dropout_multiplier: ArrayLike | None = None,
    y_dropout_multiplier: ArrayLike | None = None,
    indices_are_sorted: bool = False,
    return_weights: Literal[False] = False,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def segment_cross_attention_pooling(
    x: ArrayLike,
    x_segment_ids: ArrayLike,
    y: ArrayLike,
    y_segment_ids: ArrayLike,
    num_segments: int,
    x_mask: ArrayLike | None = None,
    y_mask: ArrayLike | None = None,
    *,
    x_kernel: ArrayLike | None = None,
    y_kernel: ArrayLike | None = None,
    reduction: Literal["sum", "mean"] = "sum",
    scale: ArrayLike = 1.0,
    x_dropout_multiplier: ArrayLike | None = None,
    y_dropout_multiplier: ArrayLike | None = None,
    indices_are_sorted: bool = False,
    return_weights: Literal[True],
) -> tuple[tuple[NDArray[Any], NDArray[Any]], tuple[NDArray[Any], NDArray[Any]]]: ...
@overload
def segment_cross_attention_pooling(
    x: ArrayLike,
    x_segment_ids: ArrayLike,
    y: ArrayLike,
    y_segment_ids: ArrayLike,
    num_segments: int,
    x_mask: ArrayLike | None = None,
    y_mask: ArrayLike | None = None,
    *,
    x_kernel: ArrayLike | None = None,
    y_kernel: ArrayLike | None = None,
    reduction: Literal["sum", "mean"] = "sum",
    scale: ArrayLike = 1.0,
    x_dropout_multiplier: ArrayLike | None = None,
    y_dropout_multiplier: ArrayLike | None = None,
    indices_are_sorted: bool = False,
    return_weights: bool,
) -> (
    tuple[NDArray[Any], NDArray[Any]] | tuple[tuple[NDArray[Any], NDArray[Any]], tuple[NDArray[Any], NDArray[Any]]]
): ...
@overload
def cross_attention_pooling(
    x: ArrayLike,
    y: ArrayLike,
    x_mask: ArrayLike | None = None,
    y_mask: ArrayLike | None = None,
    *,
    x_lengths: ArrayLike | None = None,
    y_lengths: ArrayLike | None = None,
    x_kernel: ArrayLike | None = None,
    y_kernel: ArrayLike | None = None,
    reduction: Literal["sum", "mean", "max"] = "sum",
    scale: ArrayLike | None = 1.0,
    x_dropout_multiplier: ArrayLike | None = None,
    y_dropout_multiplier: ArrayLike | None = None,
    return_weights: Literal[False] = False,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def cross_attention_pooling(
    x: ArrayLike,
    y: ArrayLike,
    x_mask: ArrayLike | None = None,
    y_mask: ArrayLike | None = None,
    *,
    x_lengths: ArrayLike | None = None,
    y_lengths: ArrayLike | None = None,
    x_kernel: ArrayLike | None = None,
    y_kernel: ArrayLike | None = None,
    reduction: Literal["sum", "mean", "max"] = "sum",
    scale: ArrayLike | None = 1.0,
    x_dropout_multiplier: ArrayLike | None = None,
    y_dropout_multiplier: ArrayLike | None = None,
    return_weights: Literal[True],
) -> tuple[tuple[NDArray[Any], NDArray[Any]], tuple[NDArray[Any], NDArray[Any]]]: ...
@overload
def cross_attention_pooling(
    x: ArrayLike,
    y: ArrayLike,
    x_mask: ArrayLike | None = None,
    y_mask: ArrayLike | None = None,
    *,
    x_lengths: ArrayLike | None = None,
    y_lengths: ArrayLike | None = None,
    x_kernel: ArrayLike | None = None,
    y_kernel: ArrayLike | None = None,
    reduction: Literal["sum", "mean", "max"] = "sum",
    scale: ArrayLike | None = 1.0,
    x_dropout_multiplier: ArrayLike | None = None,
    y_dropout_multiplier: ArrayLike | None = None,
    return_weights: bool,
) -> (
    tuple[NDArray[Any], NDArray[Any]] | tuple[tuple[NDArray[Any], NDArray[Any]], tuple[NDArray[Any], NDArray[Any]]]
): ...
@overload
def cross_attention_pooling_all_pairs(
    x: ArrayLike,
    y: ArrayLike,
    x_mask: ArrayLike | None = None,
    y_mask: ArrayLike | None = None,
    *,
    x_lengths: ArrayLike | None = None,
    y_lengths: ArrayLike | None = None,
    x_kernel: ArrayLike | None = None,
    y_kernel: ArrayLike | None = None,
    reduction: Literal["sum", "mean", "max"] = "sum",
    scale: ArrayLike | None = 1.0,
    return_weights: Literal[False] = False,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def cross_attention_pooling_all_pairs(
    x: ArrayLike,
    y: ArrayLike,
    x_mask: ArrayLike | None = None,
    y_mask: ArrayLike | None = None,
    *,
    x_lengths: ArrayLike | None = None,
    y_lengths: ArrayLike | None = None,
    x_kernel: ArrayLike | None = None,
    y_kernel: ArrayLike | None = None,
    reduction: Literal["sum", "mean", "max"] = "sum",
    scale: ArrayLike | None = 1.0,
    return_weights: Literal[True],
) -> tuple[tuple[NDArray[Any], NDArray[Any]], tuple[NDArray[Any], NDArray[Any]]]: ...
@overload
def cross_attention_pooling_all_pairs(
    x: ArrayLike,
    y: ArrayLike,
    x_mask: ArrayLike | None = None,
    y_mask: ArrayLike | None = None,
    *,
    x_lengths: ArrayLike | None = None,
    y_lengths: ArrayLike | None = None,
    x_kernel: ArrayLike | None = None,
    y_kernel: ArrayLike | None = None,
    reduction: Literal["sum", "mean", "max"] = "sum",
    scale: ArrayLike | None = 1.0,
    return_weights: bool,
) -> (
    tuple[NDArray[Any], NDArray[Any]] | tuple[tuple[NDArray[Any], NDArray[Any]], tuple[NDArray[Any], NDArray[Any]]]
): ...
@overload
def code_wise_attention(
    query: ArrayLike,
    context: ArrayLike,
    query_mask: ArrayLike | None = None,
    context_mask: ArrayLike | None = None,
    *,
    query_lengths: ArrayLike | None = None,
    context_lengths: ArrayLike | None = None,
    scale: ArrayLike | None = 1.0,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def code_wise_attention(
    query: ArrayLike,
    context: ArrayLike,
    query_mask: ArrayLike | None = None,
    context_mask: ArrayLike | None = None,
    *,
    query_lengths: ArrayLike | None = None,
    context_lengths: ArrayLike | None = None,
    scale: ArrayLike | None = 1.0,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def code_wise_attention(
    query: ArrayLike,
    context: ArrayLike,
    query_mask: ArrayLike | None = None,
    context_mask: ArrayLike | None = None,
    *,
    query_lengths: ArrayLike | None = None,
    context_lengths: ArrayLike | None = None,
    scale: ArrayLike | None = 1.0,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def mask_attention(
    query: ArrayLike,
    context: ArrayLike,
    query_mask: ArrayLike | None = None,
    context_mask: ArrayLike | None = None,
    *,
    query_lengths: ArrayLike | None = None,
    context_lengths: ArrayLike | None = None,
    scale: ArrayLike | None = 1.0,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def mask_attention(
    query: ArrayLike,
    context: ArrayLike,
    query_mask: ArrayLike | None = None,
    context_mask: ArrayLike | None = None,
    *,
    query_lengths: ArrayLike | None = None,
    context_lengths: ArrayLike | None = None,
    scale: ArrayLike | None = 1.0,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def mask_attention(
    query: ArrayLike,
    context: ArrayLike,
    query_mask: ArrayLike | None = None,
    context_mask: ArrayLike | None = None,
    *,
    query_lengths: ArrayLike | None = None,
    context_lengths: ArrayLike | None = None,
    scale: ArrayLike | None = 1.0,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def bidaf_attention(
    context: ArrayLike,
    query: ArrayLike,
    kernel: ArrayLike,
    context_mask: ArrayLike | None = None,
    query_mask: ArrayLike | None = None,
    *,
    context_lengths: ArrayLike | None = None,
    query_lengths: ArrayLike | None = None,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def bidaf_attention(
    context: ArrayLike,
    query: ArrayLike,
    kernel: ArrayLike,
    context_mask: ArrayLike | None = None,
    query_mask: ArrayLike | None = None,
    *,
    context_lengths: ArrayLike | None = None,
    query_lengths: ArrayLike | None = None,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], tuple[NDArray[Any], NDArray[Any]]]: ...
@overload
def bidaf_attention(
    context: ArrayLike,
    query: ArrayLike,
    kernel: ArrayLike,
    context_mask: ArrayLike | None = None,
    query_mask: ArrayLike | None = None,
    *,
    context_lengths: ArrayLike | None = None,
    query_lengths: ArrayLike | None = None,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], tuple[NDArray[Any], NDArray[Any]]]: ...
def maxsim_score(
    x: ArrayLike,
    y: ArrayLike,
    x_mask: ArrayLike | None = None,
    y_mask: ArrayLike | None = None,
    *,
    x_lengths: ArrayLike | None = None,
    y_lengths: ArrayLike | None = None,
    mean: bool = False,
    result_dtype: DTypeLike | None = None,
) -> NDArray[Any]: ...
def muvera_query_encoding(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    planes: ArrayLike,
    projection: ArrayLike | None = None,
) -> NDArray[Any]: ...
def muvera_document_encoding(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    planes: ArrayLike,
    projection: ArrayLike | None = None,
) -> NDArray[Any]: ...
def maxsim_score_all_pairs(
    x: ArrayLike,
    y: ArrayLike,
    x_mask: ArrayLike | None = None,
    y_mask: ArrayLike | None = None,
    *,
    x_lengths: ArrayLike | None = None,
    y_lengths: ArrayLike | None = None,
    mean: bool = False,
    result_dtype: DTypeLike | None = None,
) -> NDArray[Any]: ...
def orthogonal_decomposition(x: ArrayLike, reference: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]: ...
def linear_decomposition(x: ArrayLike, reference: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]: ...
def rigid_decomposition(
    x: ArrayLike, reference: ArrayLike, *, atol: ArrayLike = 0.0
) -> tuple[NDArray[Any], NDArray[Any]]: ...
def semantic_match(
    x: ArrayLike,
    y: ArrayLike,
    x_mask: ArrayLike | None = None,
    y_mask: ArrayLike | None = None,
    *,
    x_lengths: ArrayLike | None = None,
    y_lengths: ArrayLike | None = None,
    method: Literal["max", "global", "local"] = "max",
    window: int = 1,
    normalize: bool = True,
) -> NDArray[Any]: ...
def graph_decomposition(labels: ArrayLike, adjacency: ArrayLike, *, num_layers: int = 2) -> NDArray[Any]: ...
def attention_triplet_loss(
    anchor: ArrayLike, positive: ArrayLike, negative: ArrayLike, *, margin: ArrayLike = 0.2
) -> NDArray[Any]: ...
def differential_context(
    attention: ArrayLike,
    supporting: ArrayLike,
    opposing: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    mode: Literal["add", "mul"] = "add",
    weight: ArrayLike = 1.0,
) -> NDArray[Any]: ...
def relation_vector(
    x: ArrayLike, y: ArrayLike, x_kernel: ArrayLike, y_kernel: ArrayLike, out_kernel: ArrayLike, bias: ArrayLike
) -> NDArray[Any]: ...
def relation_triplet_loss(
    x: ArrayLike,
    similar: ArrayLike,
    dissimilar: ArrayLike,
    x_kernel: ArrayLike,
    y_kernel: ArrayLike,
    out_kernel: ArrayLike,
    bias: ArrayLike,
    *,
    margin: ArrayLike,
) -> NDArray[Any]: ...
@overload
def field_attention_pooling(
    target: ArrayLike,
    fields: ArrayLike,
    kernel: ArrayLike,
    bias: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def field_attention_pooling(
    target: ArrayLike,
    fields: ArrayLike,
    kernel: ArrayLike,
    bias: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def field_attention_pooling(
    target: ArrayLike,
    fields: ArrayLike,
    kernel: ArrayLike,
    bias: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def label_attention(
    labels: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    query_kernel: ArrayLike,
    key_kernel: ArrayLike,
    value_kernel: ArrayLike,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def label_attention(
    labels: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    query_kernel: ArrayLike,
    key_kernel: ArrayLike,
    value_kernel: ArrayLike,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def label_attention(
    labels: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    query_kernel: ArrayLike,
    key_kernel: ArrayLike,
    value_kernel: ArrayLike,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
def mean_state(x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None) -> MeanState: ...
def max_state(x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None) -> MaxState: ...
def first_state(
    x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None, start: ArrayLike
) -> FirstState: ...
def last_state(
    x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None, start: ArrayLike
) -> LastState: ...
def weighted_state(
    x: ArrayLike, weights: ArrayLike | None = None, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None
) -> WeightedState: ...
def mean_max_state(
    x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None
) -> MeanMaxState: ...
def attention_state(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    query: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    query_kernel: ArrayLike | None = None,
    key_kernel: ArrayLike | None = None,
    normalize_query: bool = False,
    query_norm_scale: ArrayLike | None = None,
    query_norm_bias: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-06,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
) -> AttentionState: ...
def multi_head_attention_state(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    query: ArrayLike,
    query_kernel: ArrayLike | None = None,
    key_kernel: ArrayLike,
    query_bias: ArrayLike | None = None,
    key_bias: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
) -> MultiHeadAttentionState: ...
def additive_attention_state(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    kernel: ArrayLike,
    out_kernel: ArrayLike,
    bias: ArrayLike | None = None,
    gate_kernel: ArrayLike | None = None,
    gate_bias: ArrayLike | None = None,
    out_bias: ArrayLike | None = None,
    value: ArrayLike | None = None,
    activation: Literal["tanh", "relu", "gelu", "identity"] = "tanh",
) -> AdditiveAttentionState: ...
def latent_attention_state(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    latents: ArrayLike,
    query_kernel: ArrayLike,
    key_kernel: ArrayLike,
    value_kernel: ArrayLike,
    out_kernel: ArrayLike,
    mlp_kernel: ArrayLike,
    mlp_out_kernel: ArrayLike,
    mlp_bias: ArrayLike | None = None,
    mlp_out_bias: ArrayLike | None = None,
    norm_scale: ArrayLike | None = None,
    norm_bias: ArrayLike | None = None,
    latent_norm_scale: ArrayLike | None = None,
    latent_norm_bias: ArrayLike | None = None,
    mlp_norm_scale: ArrayLike | None = None,
    mlp_norm_bias: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-05,
) -> LatentAttentionState: ...
def vlad_state(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    assign_kernel: ArrayLike,
    centers: ArrayLike,
    assign_bias: ArrayLike | None = None,
    normalize: bool = True,
) -> VladState: ...
def gated_sum_state(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    gate_kernel: ArrayLike,
    value_kernel: ArrayLike,
    gate_bias: ArrayLike | None = None,
    value_bias: ArrayLike | None = None,
) -> GatedSumState: ...
def sum_state(x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None) -> SumState: ...
def min_state(x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None) -> MinState: ...
def noisy_or_state(
    x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None
) -> NoisyOrState: ...
def power_mean_state(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    p: ArrayLike = 3.0,
    *,
    lengths: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-06,
) -> PowerMeanState: ...
def logsumexp_state(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    scale: ArrayLike = 1.0,
    *,
    lengths: ArrayLike | None = None,
    mean: bool = True,
) -> LogsumexpState: ...
def softmax_state(
    x: ArrayLike, mask: ArrayLike | None = None, scale: ArrayLike = 1.0, *, lengths: ArrayLike | None = None
) -> SoftmaxState: ...
def std_state(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    ddof: ArrayLike = 0,
    epsilon: ArrayLike = 0.0,
) -> StdState: ...
def statistics_state(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    ddof: ArrayLike = 0,
    epsilon: ArrayLike = 0.0,
) -> StatisticsState: ...
def attentive_statistics_state(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    kernel: ArrayLike,
    out_kernel: ArrayLike,
    bias: ArrayLike | None = None,
    out_bias: ArrayLike | None = None,
    norm_scale: ArrayLike | None = None,
    norm_bias: ArrayLike | None = None,
    activation: Literal["tanh", "relu", "gelu", "identity"] = "tanh",
    global_context: bool = False,
    epsilon: ArrayLike = 0.0,
) -> AttentiveStatisticsState: ...
def merge_states(a: _State, b: _State) -> _State: ...
def finalize_state(
    state: MeanState
    | MaxState
    | FirstState
    | LastState
    | WeightedState
    | MeanMaxState
    | AttentionState
    | MultiHeadAttentionState
    | AdditiveAttentionState
    | LatentAttentionState
    | VladState
    | GatedSumState
    | SumState
    | MinState
    | NoisyOrState
    | PowerMeanState
    | LogsumexpState
    | SoftmaxState
    | StdState
    | StatisticsState
    | AttentiveStatisticsState,
    *,
    sink: ArrayLike | None = None,
    value_kernel: ArrayLike | None = None,
    out_kernel: ArrayLike | None = None,
    value_bias: ArrayLike | None = None,
    out_bias: ArrayLike | None = None,
) -> NDArray[Any]: ...
def pad(
    sequences: Iterable[ArrayLike], *, length: int | None = None, side: Literal["right", "left"] = "right"
) -> tuple[NDArray[Any], NDArray[np.bool_]]: ...
def pack(
    sequences: Iterable[ArrayLike], *, length: int | None = None, num_segments: int | None = None
) -> tuple[NDArray[Any], NDArray[Any], int]: ...
def unpack(x: ArrayLike, segment_ids: ArrayLike, num_segments: int) -> list[NDArray[Any]]: ...
