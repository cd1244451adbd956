# Written by tools/generate/make_stubs.py from the table and the signatures (`make docs`), not by hand.

from typing import Literal, overload

from flax import nnx
from flax.typing import Dtype, Initializer, PrecisionLike
from jax import Array

from attnpool_flax import ArrayLike
from attnpool_flax.modules.parameters import Normalizer

__all__ = [
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
]

class BilinearScore(nnx.Module):
    query_features: int
    key_features: int
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel: nnx.Param
    def __init__(
        self,
        query_features: int,
        key_features: int,
        *,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    def __call__(self, query: ArrayLike, key: ArrayLike) -> Array: ...

class AdditiveScore(nnx.Module):
    query_features: int
    key_features: int
    hidden_features: int
    use_bias: bool
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    query_kernel: nnx.Param
    key_kernel: nnx.Param
    out_kernel: nnx.Param
    bias: nnx.Param | None
    def __init__(
        self,
        query_features: int,
        key_features: int,
        hidden_features: int,
        *,
        use_bias: bool = False,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        out_kernel_init: Initializer | None = None,
        bias_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    def __call__(self, query: ArrayLike, key: ArrayLike) -> Array: ...

class ConcatScore(nnx.Module):
    query_features: int
    key_features: int
    hidden_features: int
    use_bias: bool
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel: nnx.Param
    out_kernel: nnx.Param
    bias: nnx.Param | None
    def __init__(
        self,
        query_features: int,
        key_features: int,
        hidden_features: int,
        *,
        use_bias: bool = False,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        out_kernel_init: Initializer | None = None,
        bias_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    def __call__(self, query: ArrayLike, key: ArrayLike) -> Array: ...

class TanhSumScore(nnx.Module):
    query_features: int
    key_features: int
    hidden_features: int
    use_bias: bool
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel: nnx.Param
    bias: nnx.Param | None
    def __init__(
        self,
        query_features: int,
        key_features: int,
        hidden_features: int,
        *,
        use_bias: bool = True,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        bias_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    def __call__(self, query: ArrayLike, key: ArrayLike) -> Array: ...

class LocationScore(nnx.Module):
    query_features: int
    state_features: int
    num_slots: int
    use_bias: bool
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel: nnx.Param
    bias: nnx.Param | None
    def __init__(
        self,
        query_features: int,
        state_features: int,
        num_slots: int,
        *,
        use_bias: bool = True,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        bias_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    def __call__(self, query: ArrayLike, state: ArrayLike) -> Array: ...

class TrilinearScore(nnx.Module):
    in_features: int
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel: nnx.Param
    def __init__(
        self,
        in_features: int,
        *,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    def __call__(self, query: ArrayLike, key: ArrayLike) -> Array: ...

class AdditiveAttention(nnx.Module):
    query_features: int
    key_features: int
    hidden_features: int
    use_bias: bool
    dropout_rate: float
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    query_kernel: nnx.Param
    key_kernel: nnx.Param
    out_kernel: nnx.Param
    bias: nnx.Param | None
    dropout: nnx.Dropout | None
    def __init__(
        self,
        query_features: int,
        key_features: int,
        hidden_features: int,
        *,
        use_bias: bool = False,
        dropout_rate: float = 0.0,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        out_kernel_init: Initializer | None = None,
        bias_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    @overload
    def __call__(
        self,
        query: ArrayLike,
        key: ArrayLike,
        value: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        deterministic: bool | None = None,
        rngs: nnx.Rngs | nnx.RngStream | Array | None = None,
        return_weights: Literal[False] = False,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        query: ArrayLike,
        key: ArrayLike,
        value: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        deterministic: bool | None = None,
        rngs: nnx.Rngs | nnx.RngStream | Array | None = None,
        return_weights: Literal[True],
    ) -> tuple[Array, Array]: ...
    @overload
    def __call__(
        self,
        query: ArrayLike,
        key: ArrayLike,
        value: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        deterministic: bool | None = None,
        rngs: nnx.Rngs | nnx.RngStream | Array | None = None,
        return_weights: bool,
    ) -> Array | tuple[Array, Array]: ...

class TanhSumAttention(nnx.Module):
    query_features: int
    key_features: int
    hidden_features: int
    use_bias: bool
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel: nnx.Param
    bias: nnx.Param | None
    def __init__(
        self,
        query_features: int,
        key_features: int,
        hidden_features: int,
        *,
        use_bias: bool = True,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        bias_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    @overload
    def __call__(
        self,
        query: ArrayLike,
        key: ArrayLike,
        value: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        return_weights: Literal[False] = False,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        query: ArrayLike,
        key: ArrayLike,
        value: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        return_weights: Literal[True],
    ) -> tuple[Array, Array]: ...
    @overload
    def __call__(
        self,
        query: ArrayLike,
        key: ArrayLike,
        value: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        return_weights: bool,
    ) -> Array | tuple[Array, Array]: ...

class LocationAttention(nnx.Module):
    query_features: int
    state_features: int
    value_features: int
    num_slots: int
    out_features: int
    use_bias: bool
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel: nnx.Param
    bias: nnx.Param | None
    out_kernel: nnx.Param
    out_bias: nnx.Param | None
    def __init__(
        self,
        query_features: int,
        state_features: int,
        value_features: int,
        num_slots: int,
        out_features: int,
        *,
        use_bias: bool = True,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        out_kernel_init: Initializer | None = None,
        bias_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    @overload
    def __call__(
        self,
        query: ArrayLike,
        state: ArrayLike,
        value: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        return_weights: Literal[False] = False,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        query: ArrayLike,
        state: ArrayLike,
        value: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        return_weights: Literal[True],
    ) -> tuple[Array, Array]: ...
    @overload
    def __call__(
        self,
        query: ArrayLike,
        state: ArrayLike,
        value: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        return_weights: bool,
    ) -> Array | tuple[Array, Array]: ...

class MultiHeadAttention(nnx.Module):
    num_heads: int
    query_features: int
    key_features: int | None
    value_features: int | None
    qkv_features: int | None
    out_features: int | None
    use_bias: bool | tuple[str, ...]
    dropout_rate: float
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    query_kernel: nnx.Param
    key_kernel: nnx.Param
    value_kernel: nnx.Param
    out_kernel: nnx.Param
    query_bias: nnx.Param | None
    key_bias: nnx.Param | None
    value_bias: nnx.Param | None
    out_bias: nnx.Param | None
    sink: nnx.Param | None
    dropout: nnx.Dropout | None
    def __init__(
        self,
        *,
        num_heads: int,
        query_features: int,
        key_features: int | None = None,
        value_features: int | None = None,
        qkv_features: int | None = None,
        out_features: int | None = None,
        use_bias: bool | tuple[str, ...] = True,
        sink: float | str | None = None,
        dropout_rate: float = 0.0,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        out_kernel_init: Initializer | None = None,
        bias_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    @overload
    def __call__(
        self,
        query: ArrayLike,
        key: ArrayLike,
        value: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        deterministic: bool | None = None,
        rngs: nnx.Rngs | nnx.RngStream | Array | None = None,
        return_weights: Literal[False] = False,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        query: ArrayLike,
        key: ArrayLike,
        value: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        deterministic: bool | None = None,
        rngs: nnx.Rngs | nnx.RngStream | Array | None = None,
        return_weights: Literal[True],
    ) -> tuple[Array, Array]: ...
    @overload
    def __call__(
        self,
        query: ArrayLike,
        key: ArrayLike,
        value: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        deterministic: bool | None = None,
        rngs: nnx.Rngs | nnx.RngStream | Array | None = None,
        return_weights: bool,
    ) -> Array | tuple[Array, Array]: ...

class WeightedPool(nnx.Module):
    num_slots: int
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    weights: nnx.Param
    def __init__(
        self,
        num_slots: int,
        *,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        rngs: nnx.Rngs | None = None,
    ) -> None: ...
    def __call__(self, x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None) -> Array: ...

class AttentionPool(nnx.Module):
    in_features: int
    qk_features: int | None
    normalize_query: bool
    epsilon: float
    scale: float | None
    normalizer: Normalizer
    dropout_rate: float
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    axis_name: str | tuple[str, ...] | None
    query: nnx.Param
    query_kernel: nnx.Param | None
    key_kernel: nnx.Param | None
    query_norm_scale: nnx.Param | None
    query_norm_bias: nnx.Param | None
    sink: nnx.Param | None
    dropout: nnx.Dropout | None
    def __init__(
        self,
        in_features: int,
        *,
        qk_features: int | None = None,
        normalize_query: bool = False,
        epsilon: float = 1e-06,
        scale: float | None = None,
        normalizer: Normalizer = "softmax",
        sink: float | str | None = None,
        dropout_rate: float = 0.0,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        axis_name: str | tuple[str, ...] | None = None,
        kernel_init: Initializer = ...,
        query_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
        deterministic: bool | None = None,
        rngs: nnx.Rngs | nnx.RngStream | Array | None = None,
        return_weights: Literal[False] = False,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
        deterministic: bool | None = None,
        rngs: nnx.Rngs | nnx.RngStream | Array | None = None,
        return_weights: Literal[True],
    ) -> tuple[Array, Array]: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
        deterministic: bool | None = None,
        rngs: nnx.Rngs | nnx.RngStream | Array | None = None,
        return_weights: bool,
    ) -> Array | tuple[Array, Array]: ...

class MultiHeadAttentionPool(nnx.Module):
    num_heads: int
    in_features: int
    num_queries: int | None
    qkv_features: int | None
    out_features: int | None
    use_bias: bool | tuple[str, ...]
    scale: float | None
    normalizer: Normalizer
    dropout_rate: float
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    axis_name: str | tuple[str, ...] | None
    query: nnx.Param
    query_kernel: nnx.Param
    key_kernel: nnx.Param
    value_kernel: nnx.Param
    out_kernel: nnx.Param
    query_bias: nnx.Param | None
    key_bias: nnx.Param | None
    value_bias: nnx.Param | None
    out_bias: nnx.Param | None
    sink: nnx.Param | None
    dropout: nnx.Dropout | None
    def __init__(
        self,
        *,
        num_heads: int,
        in_features: int,
        num_queries: int | None = 1,
        qkv_features: int | None = None,
        out_features: int | None = None,
        use_bias: bool | tuple[str, ...] = True,
        scale: float | None = None,
        normalizer: Normalizer = "softmax",
        sink: float | str | None = None,
        dropout_rate: float = 0.0,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        axis_name: str | tuple[str, ...] | None = None,
        kernel_init: Initializer = ...,
        out_kernel_init: Initializer | None = None,
        bias_init: Initializer = ...,
        query_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
        deterministic: bool | None = None,
        rngs: nnx.Rngs | nnx.RngStream | Array | None = None,
        return_weights: Literal[False] = False,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
        deterministic: bool | None = None,
        rngs: nnx.Rngs | nnx.RngStream | Array | None = None,
        return_weights: Literal[True],
    ) -> tuple[Array, Array]: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
        deterministic: bool | None = None,
        rngs: nnx.Rngs | nnx.RngStream | Array | None = None,
        return_weights: bool,
    ) -> Array | tuple[Array, Array]: ...

class MAPHead(nnx.Module):
    in_features: int
    num_heads: int
    hidden_features: int
    epsilon: float
    activation: str
    use_bias: bool | tuple[str, ...]
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    query: nnx.Param
    query_kernel: nnx.Param
    key_kernel: nnx.Param
    value_kernel: nnx.Param
    out_kernel: nnx.Param
    query_bias: nnx.Param | None
    key_bias: nnx.Param | None
    value_bias: nnx.Param | None
    out_bias: nnx.Param | None
    norm_scale: nnx.Param
    norm_bias: nnx.Param
    mlp_kernel: nnx.Param
    mlp_bias: nnx.Param
    mlp_out_kernel: nnx.Param
    mlp_out_bias: nnx.Param
    def __init__(
        self,
        *,
        in_features: int,
        num_heads: int,
        hidden_features: int,
        epsilon: float = 1e-06,
        activation: str = "gelu_tanh",
        use_bias: bool | tuple[str, ...] = True,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        out_kernel_init: Initializer | None = None,
        bias_init: Initializer = ...,
        query_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        return_weights: Literal[False] = False,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        return_weights: Literal[True],
    ) -> tuple[Array, Array]: ...
    @overload
    def __call__(
        self, x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None, return_weights: bool
    ) -> Array | tuple[Array, Array]: ...

class AttentionalPooler(nnx.Module):
    in_features: int
    num_heads: int
    num_queries: int | None
    query_features: int | None
    qkv_features: int | None
    out_features: int | None
    epsilon: float
    use_bias: bool | tuple[str, ...]
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    query: nnx.Param
    query_kernel: nnx.Param
    key_kernel: nnx.Param
    value_kernel: nnx.Param
    out_kernel: nnx.Param
    query_bias: nnx.Param | None
    key_bias: nnx.Param | None
    value_bias: nnx.Param | None
    out_bias: nnx.Param | None
    norm_scale: nnx.Param
    norm_bias: nnx.Param
    query_norm_scale: nnx.Param
    query_norm_bias: nnx.Param
    def __init__(
        self,
        *,
        in_features: int,
        num_heads: int,
        num_queries: int | None,
        query_features: int | None = None,
        qkv_features: int | None = None,
        out_features: int | None = None,
        epsilon: float = 1e-05,
        use_bias: bool | tuple[str, ...] = True,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        out_kernel_init: Initializer | None = None,
        bias_init: Initializer = ...,
        query_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        return_weights: Literal[False] = False,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        return_weights: Literal[True],
    ) -> tuple[Array, Array]: ...
    @overload
    def __call__(
        self, x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None, return_weights: bool
    ) -> Array | tuple[Array, Array]: ...

class AttentionPool2d(nnx.Module):
    in_features: int
    num_heads: int
    num_slots: int
    qkv_features: int | None
    out_features: int | None
    use_class_token: bool
    use_bias: bool | tuple[str, ...]
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    position: nnx.Param
    class_token: nnx.Param | None
    query_kernel: nnx.Param
    key_kernel: nnx.Param
    value_kernel: nnx.Param
    out_kernel: nnx.Param
    query_bias: nnx.Param | None
    key_bias: nnx.Param | None
    value_bias: nnx.Param | None
    out_bias: nnx.Param | None
    def __init__(
        self,
        *,
        in_features: int,
        num_heads: int,
        num_slots: int,
        qkv_features: int | None = None,
        out_features: int | None = None,
        use_class_token: bool = False,
        use_bias: bool | tuple[str, ...] = True,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        out_kernel_init: Initializer | None = None,
        bias_init: Initializer = ...,
        query_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        return_weights: Literal[False] = False,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        return_weights: Literal[True],
    ) -> tuple[Array, Array]: ...
    @overload
    def __call__(
        self, x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None, return_weights: bool
    ) -> Array | tuple[Array, Array]: ...

class PMA(nnx.Module):
    in_features: int
    num_heads: int
    num_queries: int | None
    variant: str
    normalize: bool | None
    use_bias: bool | tuple[str, ...]
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    query: nnx.Param
    query_kernel: nnx.Param
    key_kernel: nnx.Param
    value_kernel: nnx.Param
    query_bias: nnx.Param | None
    key_bias: nnx.Param | None
    value_bias: nnx.Param | None
    out_kernel: nnx.Param | None
    out_bias: nnx.Param | None
    input_kernel: nnx.Param | None
    input_bias: nnx.Param | None
    mlp_kernel: nnx.Param
    mlp_bias: nnx.Param
    norm_scale: nnx.Param | None
    norm_bias: nnx.Param | None
    mlp_norm_scale: nnx.Param | None
    mlp_norm_bias: nnx.Param | None
    def __init__(
        self,
        *,
        in_features: int,
        num_heads: int,
        num_queries: int | None,
        variant: str = "author",
        normalize: bool | None = None,
        use_bias: bool | tuple[str, ...] = True,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        out_kernel_init: Initializer | None = None,
        bias_init: Initializer = ...,
        query_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        return_weights: Literal[False] = False,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        return_weights: Literal[True],
    ) -> tuple[Array, Array]: ...
    @overload
    def __call__(
        self, x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None, return_weights: bool
    ) -> Array | tuple[Array, Array]: ...

class AttentiveProbe(nnx.Module):
    in_features: int
    num_heads: int
    num_queries: int | None
    hidden_features: int | None
    variant: str
    epsilon: float
    use_bias: bool | tuple[str, ...]
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    query: nnx.Param
    query_kernel: nnx.Param | None
    key_kernel: nnx.Param
    value_kernel: nnx.Param
    query_bias: nnx.Param | None
    key_bias: nnx.Param | None
    value_bias: nnx.Param | None
    norm_scale: nnx.Param | None
    norm_bias: nnx.Param | None
    mlp_norm_scale: nnx.Param | None
    mlp_norm_bias: nnx.Param | None
    mlp_kernel: nnx.Param | None
    mlp_bias: nnx.Param | None
    mlp_out_kernel: nnx.Param | None
    mlp_out_bias: nnx.Param | None
    mean: nnx.BatchStat | None
    variance: nnx.BatchStat | None
    def __init__(
        self,
        *,
        in_features: int,
        num_heads: int,
        num_queries: int | None = 1,
        hidden_features: int | None = None,
        variant: str = "vjepa",
        epsilon: float = 1e-05,
        use_bias: bool | tuple[str, ...] = True,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        bias_init: Initializer = ...,
        query_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        return_weights: Literal[False] = False,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        return_weights: Literal[True],
    ) -> tuple[Array, Array]: ...
    @overload
    def __call__(
        self, x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None, return_weights: bool
    ) -> Array | tuple[Array, Array]: ...

class PowerMeanPool(nnx.Module):
    num_features: int | None
    epsilon: float
    dtype: Dtype | None
    param_dtype: Dtype
    axis_name: str | tuple[str, ...] | None
    p: nnx.Param
    def __init__(
        self,
        *,
        p: float = 3.0,
        num_features: int | None = None,
        epsilon: float = 1e-06,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        axis_name: str | tuple[str, ...] | None = None,
        rngs: nnx.Rngs | None = None,
    ) -> None: ...
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
    ) -> Array: ...

class LogSumExpPool(nnx.Module):
    num_features: int | None
    mean: bool
    dtype: Dtype | None
    param_dtype: Dtype
    axis_name: str | tuple[str, ...] | None
    scale: nnx.Param
    def __init__(
        self,
        *,
        scale: float = 10.0,
        num_features: int | None = None,
        mean: bool = True,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        axis_name: str | tuple[str, ...] | None = None,
        rngs: nnx.Rngs | None = None,
    ) -> None: ...
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
    ) -> Array: ...

class SoftmaxPool(nnx.Module):
    num_features: int | None
    dtype: Dtype | None
    param_dtype: Dtype
    axis_name: str | tuple[str, ...] | None
    scale: nnx.Param
    def __init__(
        self,
        *,
        scale: float = 1.0,
        num_features: int | None = None,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        axis_name: str | tuple[str, ...] | None = None,
        rngs: nnx.Rngs | None = None,
    ) -> None: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
        return_weights: Literal[False] = False,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
        return_weights: Literal[True],
    ) -> tuple[Array, Array]: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
        return_weights: bool,
    ) -> Array | tuple[Array, Array]: ...

class AttentiveStatisticsPool(nnx.Module):
    in_features: int
    hidden_features: int
    per_channel: bool
    global_context: bool
    use_norm: bool
    activation: str
    context_ddof: float
    epsilon: float
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    axis_name: str | tuple[str, ...] | None
    kernel: nnx.Param
    out_kernel: nnx.Param
    bias: nnx.Param
    norm_scale: nnx.Param | None
    norm_bias: nnx.Param | None
    def __init__(
        self,
        in_features: int,
        *,
        hidden_features: int = 128,
        per_channel: bool = True,
        global_context: bool = False,
        use_norm: bool = False,
        activation: str = "tanh",
        context_ddof: float = 0,
        epsilon: float = 0.0,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        axis_name: str | tuple[str, ...] | None = None,
        kernel_init: Initializer = ...,
        out_kernel_init: Initializer | None = None,
        bias_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
        return_weights: Literal[False] = False,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
        return_weights: Literal[True],
    ) -> tuple[Array, Array]: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
        return_weights: bool,
    ) -> Array | tuple[Array, Array]: ...

class AdditiveAttentionPool(nnx.Module):
    in_features: int
    hidden_features: int
    num_queries: int | None
    gated: bool
    use_bias: bool
    activation: str
    dropout_rate: float
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    axis_name: str | tuple[str, ...] | None
    kernel: nnx.Param
    bias: nnx.Param | None
    gate_kernel: nnx.Param | None
    gate_bias: nnx.Param | None
    out_kernel: nnx.Param
    sink: nnx.Param | None
    dropout: nnx.Dropout | None
    def __init__(
        self,
        in_features: int,
        hidden_features: int,
        *,
        num_queries: int | None = None,
        gated: bool = False,
        use_bias: bool = True,
        activation: str = "tanh",
        sink: float | str | None = None,
        dropout_rate: float = 0.0,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        axis_name: str | tuple[str, ...] | None = None,
        kernel_init: Initializer = ...,
        out_kernel_init: Initializer | None = None,
        bias_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        value: ArrayLike | None = None,
        segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
        deterministic: bool | None = None,
        rngs: nnx.Rngs | nnx.RngStream | Array | None = None,
        return_weights: Literal[False] = False,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        value: ArrayLike | None = None,
        segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
        deterministic: bool | None = None,
        rngs: nnx.Rngs | nnx.RngStream | Array | None = None,
        return_weights: Literal[True],
    ) -> tuple[Array, Array]: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        value: ArrayLike | None = None,
        segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
        deterministic: bool | None = None,
        rngs: nnx.Rngs | nnx.RngStream | Array | None = None,
        return_weights: bool,
    ) -> Array | tuple[Array, Array]: ...

class LatentAttentionPool(nnx.Module):
    in_features: int
    num_latents: int
    num_heads: int
    qkv_features: int | None
    hidden_features: int | None
    epsilon: float
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    axis_name: str | tuple[str, ...] | None
    latents: nnx.Param
    query_kernel: nnx.Param
    key_kernel: nnx.Param
    value_kernel: nnx.Param
    out_kernel: nnx.Param
    mlp_kernel: nnx.Param
    mlp_out_kernel: nnx.Param
    mlp_bias: nnx.Param
    mlp_out_bias: nnx.Param
    norm_scale: nnx.Param
    norm_bias: nnx.Param
    latent_norm_scale: nnx.Param
    latent_norm_bias: nnx.Param
    mlp_norm_scale: nnx.Param
    mlp_norm_bias: nnx.Param
    def __init__(
        self,
        *,
        in_features: int,
        num_latents: int,
        num_heads: int,
        qkv_features: int | None = None,
        hidden_features: int | None = None,
        epsilon: float = 1e-05,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        axis_name: str | tuple[str, ...] | None = None,
        kernel_init: Initializer = ...,
        out_kernel_init: Initializer | None = None,
        bias_init: Initializer = ...,
        latents_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
    ) -> Array: ...

class Set2SetPool(nnx.Module):
    in_features: int
    num_steps: int
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    axis_name: str | tuple[str, ...] | None
    input_kernel: nnx.Param
    recurrent_kernel: nnx.Param
    bias: nnx.Param
    def __init__(
        self,
        in_features: int,
        num_steps: int,
        *,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        axis_name: str | tuple[str, ...] | None = None,
        kernel_init: Initializer = ...,
        bias_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
        return_weights: Literal[False] = False,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
        return_weights: Literal[True],
    ) -> tuple[Array, Array]: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
        return_weights: bool,
    ) -> Array | tuple[Array, Array]: ...

class VLADPool(nnx.Module):
    in_features: int
    num_clusters: int
    num_ghosts: int
    normalize: bool
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    axis_name: str | tuple[str, ...] | None
    assign_kernel: nnx.Param
    assign_bias: nnx.Param
    centers: nnx.Param
    def __init__(
        self,
        in_features: int,
        num_clusters: int,
        *,
        num_ghosts: int = 0,
        normalize: bool = True,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        axis_name: str | tuple[str, ...] | None = None,
        kernel_init: Initializer = ...,
        bias_init: Initializer = ...,
        centers_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
        return_weights: Literal[False] = False,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
        return_weights: Literal[True],
    ) -> tuple[Array, Array]: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
        return_weights: bool,
    ) -> Array | tuple[Array, Array]: ...

class GatedSumPool(nnx.Module):
    in_features: int
    out_features: int
    use_bias: bool
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    axis_name: str | tuple[str, ...] | None
    gate_kernel: nnx.Param
    value_kernel: nnx.Param
    gate_bias: nnx.Param | None
    value_bias: nnx.Param | None
    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        use_bias: bool = True,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        axis_name: str | tuple[str, ...] | None = None,
        kernel_init: Initializer = ...,
        bias_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    def __call__(
        self,
        x: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
    ) -> Array: ...

class CrossAttentionPool(nnx.Module):
    x_features: int | None
    y_features: int | None
    qk_features: int | None
    reduction: str | None
    scale: float | None
    dropout_rate: float
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    axis_name: str | tuple[str, ...] | None
    x_kernel: nnx.Param | None
    y_kernel: nnx.Param | None
    dropout: nnx.Dropout | None
    def __init__(
        self,
        *,
        x_features: int | None = None,
        y_features: int | None = None,
        qk_features: int | None = None,
        reduction: str | None = None,
        scale: float | None = None,
        dropout_rate: float = 0.0,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        axis_name: str | tuple[str, ...] | None = None,
        kernel_init: Initializer = ...,
        rngs: nnx.Rngs | None = None,
    ) -> None: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        x_mask: ArrayLike | None = None,
        y_mask: ArrayLike | None = None,
        *,
        x_lengths: ArrayLike | None = None,
        y_lengths: ArrayLike | None = None,
        x_segment_ids: ArrayLike | None = None,
        y_segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
        deterministic: bool | None = None,
        rngs: nnx.Rngs | nnx.RngStream | Array | None = None,
        return_weights: Literal[False] = False,
    ) -> tuple[Array, Array]: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        x_mask: ArrayLike | None = None,
        y_mask: ArrayLike | None = None,
        *,
        x_lengths: ArrayLike | None = None,
        y_lengths: ArrayLike | None = None,
        x_segment_ids: ArrayLike | None = None,
        y_segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
        deterministic: bool | None = None,
        rngs: nnx.Rngs | nnx.RngStream | Array | None = None,
        return_weights: Literal[True],
    ) -> tuple[tuple[Array, Array], tuple[Array, Array]]: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        x_mask: ArrayLike | None = None,
        y_mask: ArrayLike | None = None,
        *,
        x_lengths: ArrayLike | None = None,
        y_lengths: ArrayLike | None = None,
        x_segment_ids: ArrayLike | None = None,
        y_segment_ids: ArrayLike | None = None,
        num_segments: int | None = None,
        deterministic: bool | None = None,
        rngs: nnx.Rngs | nnx.RngStream | Array | None = None,
        return_weights: bool,
    ) -> tuple[Array, Array] | tuple[tuple[Array, Array], tuple[Array, Array]]: ...

class CodeWiseAttention(nnx.Module):
    scale: float | None
    dtype: Dtype | None
    precision: PrecisionLike
    def __init__(
        self,
        *,
        scale: float | None = 1.0,
        dtype: Dtype | None = None,
        precision: PrecisionLike = None,
        rngs: nnx.Rngs | None = None,
    ) -> None: ...
    @overload
    def __call__(
        self,
        query: ArrayLike,
        context: ArrayLike,
        query_mask: ArrayLike | None = None,
        context_mask: ArrayLike | None = None,
        *,
        query_lengths: ArrayLike | None = None,
        context_lengths: ArrayLike | None = None,
        return_weights: Literal[False] = False,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        query: ArrayLike,
        context: ArrayLike,
        query_mask: ArrayLike | None = None,
        context_mask: ArrayLike | None = None,
        *,
        query_lengths: ArrayLike | None = None,
        context_lengths: ArrayLike | None = None,
        return_weights: Literal[True],
    ) -> tuple[Array, Array]: ...
    @overload
    def __call__(
        self,
        query: ArrayLike,
        context: ArrayLike,
        query_mask: ArrayLike | None = None,
        context_mask: ArrayLike | None = None,
        *,
        query_lengths: ArrayLike | None = None,
        context_lengths: ArrayLike | None = None,
        return_weights: bool,
    ) -> Array | tuple[Array, Array]: ...

class MaskAttention(nnx.Module):
    scale: float | None
    dtype: Dtype | None
    precision: PrecisionLike
    def __init__(
        self,
        *,
        scale: float | None = 1.0,
        dtype: Dtype | None = None,
        precision: PrecisionLike = None,
        rngs: nnx.Rngs | None = None,
    ) -> None: ...
    @overload
    def __call__(
        self,
        query: ArrayLike,
        context: ArrayLike,
        query_mask: ArrayLike | None = None,
        context_mask: ArrayLike | None = None,
        *,
        query_lengths: ArrayLike | None = None,
        context_lengths: ArrayLike | None = None,
        return_weights: Literal[False] = False,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        query: ArrayLike,
        context: ArrayLike,
        query_mask: ArrayLike | None = None,
        context_mask: ArrayLike | None = None,
        *,
        query_lengths: ArrayLike | None = None,
        context_lengths: ArrayLike | None = None,
        return_weights: Literal[True],
    ) -> tuple[Array, Array]: ...
    @overload
    def __call__(
        self,
        query: ArrayLike,
        context: ArrayLike,
        query_mask: ArrayLike | None = None,
        context_mask: ArrayLike | None = None,
        *,
        query_lengths: ArrayLike | None = None,
        context_lengths: ArrayLike | None = None,
        return_weights: bool,
    ) -> Array | tuple[Array, Array]: ...

class BiDAFAttention(nnx.Module):
    in_features: int
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel: nnx.Param
    def __init__(
        self,
        in_features: int,
        *,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    @overload
    def __call__(
        self,
        context: ArrayLike,
        query: ArrayLike,
        context_mask: ArrayLike | None = None,
        query_mask: ArrayLike | None = None,
        *,
        context_lengths: ArrayLike | None = None,
        query_lengths: ArrayLike | None = None,
        return_weights: Literal[False] = False,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        context: ArrayLike,
        query: ArrayLike,
        context_mask: ArrayLike | None = None,
        query_mask: ArrayLike | None = None,
        *,
        context_lengths: ArrayLike | None = None,
        query_lengths: ArrayLike | None = None,
        return_weights: Literal[True],
    ) -> tuple[Array, tuple[Array, Array]]: ...
    @overload
    def __call__(
        self,
        context: ArrayLike,
        query: ArrayLike,
        context_mask: ArrayLike | None = None,
        query_mask: ArrayLike | None = None,
        *,
        context_lengths: ArrayLike | None = None,
        query_lengths: ArrayLike | None = None,
        return_weights: bool,
    ) -> Array | tuple[Array, tuple[Array, Array]]: ...

class RelationVector(nnx.Module):
    in_features: int
    hidden_features: int
    out_features: int | None
    use_bias: bool
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    x_kernel: nnx.Param
    y_kernel: nnx.Param
    out_kernel: nnx.Param
    bias: nnx.Param | None
    def __init__(
        self,
        in_features: int,
        hidden_features: int,
        *,
        out_features: int | None = None,
        use_bias: bool = True,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        out_kernel_init: Initializer | None = None,
        bias_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    def __call__(self, x: ArrayLike, y: ArrayLike) -> Array: ...

class FieldAttentionPool(nnx.Module):
    target_features: int
    field_features: int
    num_fields: int | None
    use_bias: bool
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel: nnx.Param
    bias: nnx.Param | None
    def __init__(
        self,
        target_features: int,
        field_features: int,
        *,
        num_fields: int | None = None,
        use_bias: bool = True,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        bias_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    @overload
    def __call__(
        self,
        target: ArrayLike,
        fields: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        return_weights: Literal[False] = False,
    ) -> Array: ...
    @overload
    def __call__(
        self, target: ArrayLike, fields: ArrayLike, mask: ArrayLike | None = None, *, return_weights: Literal[True]
    ) -> tuple[Array, Array]: ...
    @overload
    def __call__(
        self, target: ArrayLike, fields: ArrayLike, mask: ArrayLike | None = None, *, return_weights: bool
    ) -> Array | tuple[Array, Array]: ...

class LabelAttention(nnx.Module):
    in_features: int
    qk_features: int | None
    out_features: int | None
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    query_kernel: nnx.Param
    key_kernel: nnx.Param
    value_kernel: nnx.Param
    def __init__(
        self,
        in_features: int,
        *,
        qk_features: int | None = None,
        out_features: int | None = None,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        rngs: nnx.Rngs,
    ) -> None: ...
    @overload
    def __call__(
        self, labels: ArrayLike, mask: ArrayLike | None = None, *, return_weights: Literal[False] = False
    ) -> Array: ...
    @overload
    def __call__(
        self, labels: ArrayLike, mask: ArrayLike | None = None, *, return_weights: Literal[True]
    ) -> tuple[Array, Array]: ...
    @overload
    def __call__(
        self, labels: ArrayLike, mask: ArrayLike | None = None, *, return_weights: bool
    ) -> Array | tuple[Array, Array]: ...
