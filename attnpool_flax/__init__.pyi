# Written by tools/generate/make_stubs.py from the table and the signatures (`make docs`), not by hand.

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, Protocol, TypeVar, overload

import jax.typing
from flax.typing import Dtype
from jax import Array
from jax.lax import PrecisionLike
from numpy.typing import DTypeLike

from attnpool_flax import linen as linen
from attnpool_flax.modules import PMA as PMA
from attnpool_flax.modules import AdditiveAttention as AdditiveAttention
from attnpool_flax.modules import AdditiveAttentionPool as AdditiveAttentionPool
from attnpool_flax.modules import AdditiveScore as AdditiveScore
from attnpool_flax.modules import AttentionalPooler as AttentionalPooler
from attnpool_flax.modules import AttentionPool as AttentionPool
from attnpool_flax.modules import AttentionPool2d as AttentionPool2d
from attnpool_flax.modules import AttentiveProbe as AttentiveProbe
from attnpool_flax.modules import AttentiveStatisticsPool as AttentiveStatisticsPool
from attnpool_flax.modules import BiDAFAttention as BiDAFAttention
from attnpool_flax.modules import BilinearScore as BilinearScore
from attnpool_flax.modules import CodeWiseAttention as CodeWiseAttention
from attnpool_flax.modules import ConcatScore as ConcatScore
from attnpool_flax.modules import CrossAttentionPool as CrossAttentionPool
from attnpool_flax.modules import FieldAttentionPool as FieldAttentionPool
from attnpool_flax.modules import GatedSumPool as GatedSumPool
from attnpool_flax.modules import LabelAttention as LabelAttention
from attnpool_flax.modules import LatentAttentionPool as LatentAttentionPool
from attnpool_flax.modules import LocationAttention as LocationAttention
from attnpool_flax.modules import LocationScore as LocationScore
from attnpool_flax.modules import LogSumExpPool as LogSumExpPool
from attnpool_flax.modules import MAPHead as MAPHead
from attnpool_flax.modules import MaskAttention as MaskAttention
from attnpool_flax.modules import MultiHeadAttention as MultiHeadAttention
from attnpool_flax.modules import MultiHeadAttentionPool as MultiHeadAttentionPool
from attnpool_flax.modules import PowerMeanPool as PowerMeanPool
from attnpool_flax.modules import RelationVector as RelationVector
from attnpool_flax.modules import Set2SetPool as Set2SetPool
from attnpool_flax.modules import SoftmaxPool as SoftmaxPool
from attnpool_flax.modules import TanhSumAttention as TanhSumAttention
from attnpool_flax.modules import TanhSumScore as TanhSumScore
from attnpool_flax.modules import TrilinearScore as TrilinearScore
from attnpool_flax.modules import VLADPool as VLADPool
from attnpool_flax.modules import WeightedPool as WeightedPool
from attnpool_flax.modules.formats import save as save
from attnpool_flax.modules.sentences import SentencePool
from attnpool_flax.streaming.means import LogsumexpState as LogsumexpState
from attnpool_flax.streaming.means import MinState as MinState
from attnpool_flax.streaming.means import NoisyOrState as NoisyOrState
from attnpool_flax.streaming.means import PowerMeanState as PowerMeanState
from attnpool_flax.streaming.means import SoftmaxState as SoftmaxState
from attnpool_flax.streaming.means import SumState as SumState
from attnpool_flax.streaming.readouts import GatedSumState as GatedSumState
from attnpool_flax.streaming.readouts import LatentAttentionState as LatentAttentionState
from attnpool_flax.streaming.readouts import VladState as VladState
from attnpool_flax.streaming.states import AdditiveAttentionState as AdditiveAttentionState
from attnpool_flax.streaming.states import FirstState as FirstState
from attnpool_flax.streaming.states import LastState as LastState
from attnpool_flax.streaming.states import MeanMaxState as MeanMaxState
from attnpool_flax.streaming.states import MeanState as MeanState
from attnpool_flax.streaming.states import MultiHeadAttentionState as MultiHeadAttentionState
from attnpool_flax.streaming.states import WeightedState as WeightedState
from attnpool_flax.streaming.statistics import AttentiveStatisticsState as AttentiveStatisticsState
from attnpool_flax.streaming.statistics import StatisticsState as StatisticsState
from attnpool_flax.tokens.moments import StdState as StdState
from attnpool_flax.tokens.states import AttentionState as AttentionState
from attnpool_flax.tokens.states import MaxState as MaxState

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

class HoldsArray(Protocol):  # what a module's parameter is
    def __jax_array__(self) -> Array: ...

ArrayLike = jax.typing.ArrayLike | HoldsArray

__version__: Final[str]
__all__ = [
    "__version__",
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
    "MAPHead",
    "AttentionalPooler",
    "AttentionPool2d",
    "PMA",
    "AttentiveProbe",
    "PowerMeanPool",
    "LogSumExpPool",
    "SoftmaxPool",
    "AttentiveStatisticsPool",
    "AdditiveAttentionPool",
    "LatentAttentionPool",
    "Set2SetPool",
    "VLADPool",
    "GatedSumPool",
    "CrossAttentionPool",
    "CodeWiseAttention",
    "MaskAttention",
    "BiDAFAttention",
    "RelationVector",
    "FieldAttentionPool",
    "LabelAttention",
    "linen",
    "load",
    "save",
    "pad",
    "pack",
    "unpack",
]

def lengths_to_mask(lengths: ArrayLike, max_length: int, *, side: Literal["right", "left"] = "right") -> Array: ...
def spans_to_mask(spans: ArrayLike, max_length: int, span_mask: ArrayLike | None = None) -> Array: ...
def token_positions(mask: ArrayLike) -> Array: ...
def masked_softmax(
    scores: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    sink: ArrayLike | None = None,
    axis: int = -1,
) -> Array: ...
def masked_log_softmax(
    scores: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None, axis: int = -1
) -> Array: ...
def segment_softmax(
    scores: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    indices_are_sorted: bool = False,
) -> Array: ...
def segment_log_softmax(
    scores: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    indices_are_sorted: bool = False,
) -> Array: ...
def sparsemax(scores: ArrayLike, mask: ArrayLike | None = None, *, axis: int = -1) -> Array: ...
def entmax15(scores: ArrayLike, mask: ArrayLike | None = None, *, axis: int = -1) -> Array: ...
def entmax(scores: ArrayLike, mask: ArrayLike | None = None, *, alpha: ArrayLike = 1.5, axis: int = -1) -> Array: ...
def top_k_softmax(scores: ArrayLike, mask: ArrayLike | None = None, *, k: int, axis: int = -1) -> Array: ...
def gumbel_softmax(
    scores: ArrayLike,
    mask: ArrayLike | None = None,
    noise: ArrayLike | None = None,
    *,
    temperature: ArrayLike = 1.0,
    hard: bool = False,
    axis: int = -1,
) -> Array: ...
def masked_sigmoid(
    scores: ArrayLike, mask: ArrayLike | None = None, *, normalize: bool = False, axis: int = -1
) -> Array: ...
def hardmax(scores: ArrayLike, mask: ArrayLike | None = None, *, axis: int = -1) -> Array: ...
def l2_normalize(x: ArrayLike, *, axis: int = -1) -> Array: ...
def dot_score(
    query: ArrayLike, key: ArrayLike, *, result_dtype: DTypeLike | None = None, precision: PrecisionLike = None
) -> Array: ...
def scaled_dot_score(
    query: ArrayLike,
    key: ArrayLike,
    *,
    scale: ArrayLike | None = None,
    result_dtype: DTypeLike | None = None,
    precision: PrecisionLike = None,
) -> Array: ...
def bilinear_score(
    query: ArrayLike,
    key: ArrayLike,
    kernel: ArrayLike,
    *,
    result_dtype: DTypeLike | None = None,
    precision: PrecisionLike = None,
) -> Array: ...
def cosine_score(
    query: ArrayLike, key: ArrayLike, *, result_dtype: DTypeLike | None = None, precision: PrecisionLike = None
) -> Array: ...
def additive_score(
    query: ArrayLike,
    key: ArrayLike,
    query_kernel: ArrayLike,
    key_kernel: ArrayLike,
    out_kernel: ArrayLike,
    *,
    bias: ArrayLike | None = None,
    precision: PrecisionLike = None,
) -> Array: ...
def concat_score(
    query: ArrayLike,
    key: ArrayLike,
    kernel: ArrayLike,
    out_kernel: ArrayLike,
    *,
    bias: ArrayLike | None = None,
    precision: PrecisionLike = None,
) -> Array: ...
def tanh_sum_score(
    query: ArrayLike,
    key: ArrayLike,
    kernel: ArrayLike,
    *,
    bias: ArrayLike | None = None,
    precision: PrecisionLike = None,
) -> Array: ...
def location_score(
    query: ArrayLike,
    state: ArrayLike,
    kernel: ArrayLike,
    *,
    bias: ArrayLike | None = None,
    precision: PrecisionLike = None,
) -> Array: ...
def trilinear_score(
    query: ArrayLike,
    key: ArrayLike,
    kernel: ArrayLike,
    *,
    result_dtype: DTypeLike | None = None,
    precision: PrecisionLike = None,
) -> Array: ...
def gaussian_score(query: ArrayLike, key: ArrayLike, *, bandwidth: ArrayLike = 1.0) -> Array: ...
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
    precision: PrecisionLike = None,
) -> Array: ...
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
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array | tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array: ...
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
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array | tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array: ...
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
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array | tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array: ...
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
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array | tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array: ...
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
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array | tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array: ...
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
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array | tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array: ...
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
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array | tuple[Array, Array]: ...
def mean_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    axis_name: str | tuple[str, ...] | None = None,
) -> Array: ...
def max_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    axis_name: str | tuple[str, ...] | None = None,
) -> Array: ...
def first_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    axis_name: str | tuple[str, ...] | None = None,
) -> Array: ...
def last_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    axis_name: str | tuple[str, ...] | None = None,
) -> Array: ...
def weighted_pooling(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    axis_name: str | tuple[str, ...] | None = None,
    precision: PrecisionLike = None,
) -> Array: ...
def mean_max_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    axis_name: str | tuple[str, ...] | None = None,
) -> Array: ...
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
    axis_name: str | tuple[str, ...] | None = None,
    precision: PrecisionLike = None,
) -> Array: ...
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
    axis_name: str | tuple[str, ...] | None = None,
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
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
    axis_name: str | tuple[str, ...] | None = None,
    precision: PrecisionLike = None,
) -> Array | tuple[Array, Array]: ...
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
    axis_name: str | tuple[str, ...] | None = None,
    precision: PrecisionLike = None,
) -> Array: ...
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
    axis_name: str | tuple[str, ...] | None = None,
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
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
    axis_name: str | tuple[str, ...] | None = None,
    precision: PrecisionLike = None,
) -> Array | tuple[Array, Array]: ...
def sum_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    axis_name: str | tuple[str, ...] | None = None,
) -> Array: ...
def min_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    axis_name: str | tuple[str, ...] | None = None,
) -> Array: ...
def quantile_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    q: ArrayLike = 0.5,
    *,
    lengths: ArrayLike | None = None,
    method: Literal["linear", "lower", "higher", "nearest", "midpoint"] = "linear",
) -> Array: ...
def top_k_pooling(
    x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None, k: int
) -> Array: ...
def noisy_or_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    axis_name: str | tuple[str, ...] | None = None,
) -> Array: ...
def power_mean_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    p: ArrayLike = 3.0,
    *,
    lengths: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-06,
    axis_name: str | tuple[str, ...] | None = None,
) -> Array: ...
def logsumexp_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    scale: ArrayLike = 1.0,
    *,
    lengths: ArrayLike | None = None,
    mean: bool = True,
    axis_name: str | tuple[str, ...] | None = None,
) -> Array: ...
@overload
def softmax_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    scale: ArrayLike = 1.0,
    *,
    lengths: ArrayLike | None = None,
    return_weights: Literal[False] = False,
    axis_name: str | tuple[str, ...] | None = None,
) -> Array: ...
@overload
def softmax_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    scale: ArrayLike = 1.0,
    *,
    lengths: ArrayLike | None = None,
    return_weights: Literal[True],
    axis_name: str | tuple[str, ...] | None = None,
) -> tuple[Array, Array]: ...
@overload
def softmax_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    scale: ArrayLike = 1.0,
    *,
    lengths: ArrayLike | None = None,
    return_weights: bool,
    axis_name: str | tuple[str, ...] | None = None,
) -> Array | tuple[Array, Array]: ...
def std_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    ddof: ArrayLike = 0,
    epsilon: ArrayLike = 0.0,
    axis_name: str | tuple[str, ...] | None = None,
) -> Array: ...
def statistics_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    ddof: ArrayLike = 0,
    epsilon: ArrayLike = 0.0,
    axis_name: str | tuple[str, ...] | None = None,
) -> Array: ...
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
    axis_name: str | tuple[str, ...] | None = None,
    precision: PrecisionLike = None,
) -> Array: ...
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
    axis_name: str | tuple[str, ...] | None = None,
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
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
    axis_name: str | tuple[str, ...] | None = None,
    precision: PrecisionLike = None,
) -> Array | tuple[Array, Array]: ...
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
    axis_name: str | tuple[str, ...] | None = None,
    precision: PrecisionLike = None,
) -> Array: ...
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
    axis_name: str | tuple[str, ...] | None = None,
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
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
    axis_name: str | tuple[str, ...] | None = None,
    precision: PrecisionLike = None,
) -> Array | tuple[Array, Array]: ...
def attention_penalty(weights: ArrayLike, *, precision: PrecisionLike = None) -> Array: ...
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
    axis_name: str | tuple[str, ...] | None = None,
    precision: PrecisionLike = None,
) -> Array: ...
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
    axis_name: str | tuple[str, ...] | None = None,
    precision: PrecisionLike = None,
) -> Array: ...
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
    axis_name: str | tuple[str, ...] | None = None,
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
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
    axis_name: str | tuple[str, ...] | None = None,
    precision: PrecisionLike = None,
) -> Array | tuple[Array, Array]: ...
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
    axis_name: str | tuple[str, ...] | None = None,
    precision: PrecisionLike = None,
) -> Array: ...
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
    axis_name: str | tuple[str, ...] | None = None,
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
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
    axis_name: str | tuple[str, ...] | None = None,
    precision: PrecisionLike = None,
) -> Array | tuple[Array, Array]: ...
def gated_sum_pooling(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    gate_kernel: ArrayLike,
    value_kernel: ArrayLike,
    gate_bias: ArrayLike | None = None,
    value_bias: ArrayLike | None = None,
    axis_name: str | tuple[str, ...] | None = None,
    precision: PrecisionLike = None,
) -> Array: ...
def layer_norm(
    x: ArrayLike, scale: ArrayLike | None = None, bias: ArrayLike | None = None, *, epsilon: ArrayLike = 1e-06
) -> Array: ...
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
    precision: PrecisionLike = None,
) -> Array: ...
def segment_mean_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    indices_are_sorted: bool = False,
) -> Array: ...
def segment_max_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    indices_are_sorted: bool = False,
) -> Array: ...
def segment_first_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    indices_are_sorted: bool = False,
) -> Array: ...
def segment_last_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    indices_are_sorted: bool = False,
) -> Array: ...
def segment_weighted_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    weights: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    indices_are_sorted: bool = False,
) -> Array: ...
def segment_mean_max_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    indices_are_sorted: bool = False,
) -> Array: ...
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
    precision: PrecisionLike = None,
) -> Array: ...
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
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array | tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array: ...
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
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array | tuple[Array, Array]: ...
def segment_sum_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    indices_are_sorted: bool = False,
) -> Array: ...
def segment_min_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    indices_are_sorted: bool = False,
) -> Array: ...
def segment_noisy_or_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    indices_are_sorted: bool = False,
) -> Array: ...
def segment_power_mean_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    p: ArrayLike = 3.0,
    *,
    epsilon: ArrayLike = 1e-06,
    indices_are_sorted: bool = False,
) -> Array: ...
def segment_logsumexp_pooling(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    scale: ArrayLike = 1.0,
    *,
    mean: bool = True,
    indices_are_sorted: bool = False,
) -> Array: ...
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
) -> Array: ...
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
) -> tuple[Array, Array]: ...
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
) -> Array | tuple[Array, Array]: ...
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
) -> Array: ...
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
) -> Array: ...
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
    precision: PrecisionLike = None,
) -> Array: ...
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
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array | tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array: ...
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
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array | tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array: ...
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
    precision: PrecisionLike = None,
) -> Array: ...
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
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array | tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array: ...
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
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array | tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array: ...
def segment_muvera_query_encoding(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    planes: ArrayLike,
    projection: ArrayLike | None = None,
    indices_are_sorted: bool = False,
    precision: PrecisionLike = None,
) -> Array: ...
def segment_muvera_document_encoding(
    x: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int,
    mask: ArrayLike | None = None,
    *,
    planes: ArrayLike,
    projection: ArrayLike | None = None,
    indices_are_sorted: bool = False,
    precision: PrecisionLike = None,
) -> Array: ...
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
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> tuple[tuple[Array, Array], tuple[Array, Array]]: ...
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
    precision: PrecisionLike = None,
) -> tuple[Array, Array] | tuple[tuple[Array, Array], tuple[Array, Array]]: ...
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
    axis_name: str | tuple[str, ...] | None = None,
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
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
    axis_name: str | tuple[str, ...] | None = None,
    precision: PrecisionLike = None,
) -> tuple[tuple[Array, Array], tuple[Array, Array]]: ...
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
    axis_name: str | tuple[str, ...] | None = None,
    precision: PrecisionLike = None,
) -> tuple[Array, Array] | tuple[tuple[Array, Array], tuple[Array, Array]]: ...
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
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> tuple[tuple[Array, Array], tuple[Array, Array]]: ...
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
    precision: PrecisionLike = None,
) -> tuple[Array, Array] | tuple[tuple[Array, Array], tuple[Array, Array]]: ...
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
    precision: PrecisionLike = None,
) -> Array: ...
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
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array | tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array: ...
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
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array | tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array: ...
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
    precision: PrecisionLike = None,
) -> tuple[Array, tuple[Array, Array]]: ...
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
    precision: PrecisionLike = None,
) -> Array | tuple[Array, tuple[Array, Array]]: ...
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
    precision: PrecisionLike = None,
) -> Array: ...
def muvera_query_encoding(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    planes: ArrayLike,
    projection: ArrayLike | None = None,
    precision: PrecisionLike = None,
) -> Array: ...
def muvera_document_encoding(
    x: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    planes: ArrayLike,
    projection: ArrayLike | None = None,
    precision: PrecisionLike = None,
) -> Array: ...
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
    precision: PrecisionLike = None,
) -> Array: ...
def orthogonal_decomposition(
    x: ArrayLike, reference: ArrayLike, *, precision: PrecisionLike = None
) -> tuple[Array, Array]: ...
def linear_decomposition(
    x: ArrayLike, reference: ArrayLike, *, precision: PrecisionLike = None
) -> tuple[Array, Array]: ...
def rigid_decomposition(x: ArrayLike, reference: ArrayLike, *, atol: ArrayLike = 0.0) -> tuple[Array, Array]: ...
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
    precision: PrecisionLike = None,
) -> Array: ...
def graph_decomposition(
    labels: ArrayLike, adjacency: ArrayLike, *, num_layers: int = 2, precision: PrecisionLike = None
) -> Array: ...
def attention_triplet_loss(
    anchor: ArrayLike,
    positive: ArrayLike,
    negative: ArrayLike,
    *,
    margin: ArrayLike = 0.2,
    precision: PrecisionLike = None,
) -> Array: ...
def differential_context(
    attention: ArrayLike,
    supporting: ArrayLike,
    opposing: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    mode: Literal["add", "mul"] = "add",
    weight: ArrayLike = 1.0,
    precision: PrecisionLike = None,
) -> Array: ...
def relation_vector(
    x: ArrayLike,
    y: ArrayLike,
    x_kernel: ArrayLike,
    y_kernel: ArrayLike,
    out_kernel: ArrayLike,
    bias: ArrayLike,
    *,
    precision: PrecisionLike = None,
) -> Array: ...
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
    precision: PrecisionLike = None,
) -> Array: ...
@overload
def field_attention_pooling(
    target: ArrayLike,
    fields: ArrayLike,
    kernel: ArrayLike,
    bias: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    return_weights: Literal[False] = False,
    precision: PrecisionLike = None,
) -> Array: ...
@overload
def field_attention_pooling(
    target: ArrayLike,
    fields: ArrayLike,
    kernel: ArrayLike,
    bias: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    return_weights: Literal[True],
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
@overload
def field_attention_pooling(
    target: ArrayLike,
    fields: ArrayLike,
    kernel: ArrayLike,
    bias: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    return_weights: bool,
    precision: PrecisionLike = None,
) -> Array | tuple[Array, Array]: ...
@overload
def label_attention(
    labels: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    query_kernel: ArrayLike,
    key_kernel: ArrayLike,
    value_kernel: ArrayLike,
    return_weights: Literal[False] = False,
    precision: PrecisionLike = None,
) -> Array: ...
@overload
def label_attention(
    labels: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    query_kernel: ArrayLike,
    key_kernel: ArrayLike,
    value_kernel: ArrayLike,
    return_weights: Literal[True],
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
@overload
def label_attention(
    labels: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    query_kernel: ArrayLike,
    key_kernel: ArrayLike,
    value_kernel: ArrayLike,
    return_weights: bool,
    precision: PrecisionLike = None,
) -> Array | tuple[Array, Array]: ...
def mean_state(x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None) -> MeanState: ...
def max_state(x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None) -> MaxState: ...
def first_state(
    x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None, start: ArrayLike
) -> FirstState: ...
def last_state(
    x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None, start: ArrayLike
) -> LastState: ...
def weighted_state(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    precision: PrecisionLike = None,
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
    precision: PrecisionLike = None,
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
    precision: PrecisionLike = None,
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
    precision: PrecisionLike = None,
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
    precision: PrecisionLike = None,
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
    precision: PrecisionLike = None,
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
    precision: PrecisionLike = None,
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
    precision: PrecisionLike = None,
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
    precision: PrecisionLike = None,
) -> Array: ...
def pad(
    sequences: Iterable[ArrayLike], *, length: int | None = None, side: Literal["right", "left"] = "right"
) -> tuple[Array, Array]: ...
def pack(
    sequences: Iterable[ArrayLike], *, length: int | None = None, num_segments: int | None = None
) -> tuple[Array, Array, int]: ...
def unpack(x: ArrayLike, segment_ids: ArrayLike, num_segments: int) -> list[Array]: ...
@overload
def load(
    source: Any,
    format: Literal["siglip", "siglip_bv", "timm_latent", "perception_encoder"],
    *,
    prefix: str | None = None,
    num_heads: int | None = None,
    epsilon: float | None = None,
    activation: str | None = None,
    add_zero_attn: bool | None = None,
    dtype: Dtype | None = None,
    param_dtype: Dtype | None = None,
) -> MAPHead: ...
@overload
def load(
    source: Any,
    format: Literal["clip", "timm_pool2d"],
    *,
    prefix: str | None = None,
    num_heads: int | None = None,
    epsilon: float | None = None,
    activation: str | None = None,
    add_zero_attn: bool | None = None,
    dtype: Dtype | None = None,
    param_dtype: Dtype | None = None,
) -> AttentionPool2d: ...
@overload
def load(
    source: Any,
    format: Literal["coca"],
    *,
    prefix: str | None = None,
    num_heads: int | None = None,
    epsilon: float | None = None,
    activation: str | None = None,
    add_zero_attn: bool | None = None,
    dtype: Dtype | None = None,
    param_dtype: Dtype | None = None,
) -> AttentionalPooler: ...
@overload
def load(
    source: Any,
    format: Literal["vjepa", "vjepa2_hf", "aim"],
    *,
    prefix: str | None = None,
    num_heads: int | None = None,
    epsilon: float | None = None,
    activation: str | None = None,
    add_zero_attn: bool | None = None,
    dtype: Dtype | None = None,
    param_dtype: Dtype | None = None,
) -> AttentiveProbe: ...
@overload
def load(
    source: Any,
    format: Literal["torch_mha", "flax_mha", "keras_mha", "equinox_mha", "haiku_mha"],
    *,
    prefix: str | None = None,
    num_heads: int | None = None,
    epsilon: float | None = None,
    activation: str | None = None,
    add_zero_attn: bool | None = None,
    dtype: Dtype | None = None,
    param_dtype: Dtype | None = None,
) -> MultiHeadAttention: ...
@overload
def load(
    source: Any,
    format: Literal["sentence_transformers"],
    *,
    prefix: str | None = None,
    num_heads: int | None = None,
    epsilon: float | None = None,
    activation: str | None = None,
    add_zero_attn: bool | None = None,
    dtype: Dtype | None = None,
    param_dtype: Dtype | None = None,
) -> SentencePool: ...
@overload
def load(
    source: Any,
    format: Literal["clam", "abmil"],
    *,
    prefix: str | None = None,
    num_heads: int | None = None,
    epsilon: float | None = None,
    activation: str | None = None,
    add_zero_attn: bool | None = None,
    dtype: Dtype | None = None,
    param_dtype: Dtype | None = None,
) -> AdditiveAttentionPool: ...
@overload
def load(
    source: Any,
    format: Literal["speechbrain_asp", "wespeaker_astp"],
    *,
    prefix: str | None = None,
    num_heads: int | None = None,
    epsilon: float | None = None,
    activation: str | None = None,
    add_zero_attn: bool | None = None,
    dtype: Dtype | None = None,
    param_dtype: Dtype | None = None,
) -> AttentiveStatisticsPool: ...
@overload
def load(
    source: Any,
    format: str,
    *,
    prefix: str | None = None,
    num_heads: int | None = None,
    epsilon: float | None = None,
    activation: str | None = None,
    add_zero_attn: bool | None = None,
    dtype: Dtype | None = None,
    param_dtype: Dtype | None = None,
) -> Any: ...
