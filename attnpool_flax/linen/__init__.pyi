# Written by tools/generate/make_stubs.py from the table and the signatures (`make docs`), not by hand.

from typing import Any, Literal, overload

from flax import linen as nn
from flax.typing import Dtype, Initializer, PrecisionLike
from jax import Array

from attnpool_flax import ArrayLike
from attnpool_flax.linen.formats import load as load
from attnpool_flax.linen.formats import save as save
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
    "load",
    "save",
]

class BilinearScore(nn.Module):
    """Bilinear attention score with a learned kernel (Luong's "general").

    Calls :func:`attnpool_flax.bilinear_score`. Parameters: ``kernel`` [d, e].

    ``init`` reads these sizes from the data: d, the width of the queries; e, the width of the keys.

    Attributes:
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      kernel_init: initializer of the kernels."""

    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
    ) -> None: ...
    def __call__(self, query: ArrayLike, key: ArrayLike) -> Array: ...

class AdditiveScore(nn.Module):
    """Additive attention score: an MLP with one hidden layer (Bahdanau).

    Calls :func:`attnpool_flax.additive_score`. Parameters: ``query_kernel`` [d, h], ``key_kernel`` [e, h],
    ``out_kernel`` [h]; with ``use_bias`` also ``bias`` [h].

    ``init`` reads these sizes from the data: d, the width of the queries; e, the width of the keys.

    Attributes:
      hidden_features: h, the width of the hidden layer.
      use_bias: whether there is a bias.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      kernel_init: initializer of the kernels.
      out_kernel_init: initializer of ``out_kernel``, whose axes have another order; None is ``kernel_init``.
      bias_init: initializer of the biases."""

    hidden_features: int
    use_bias: bool
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel_init: Initializer
    out_kernel_init: Initializer | None
    bias_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        hidden_features: int,
        use_bias: bool = False,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        out_kernel_init: Initializer | None = None,
        bias_init: Initializer = ...,
    ) -> None: ...
    def __call__(self, query: ArrayLike, key: ArrayLike) -> Array: ...

class ConcatScore(nn.Module):
    """Attention score by an MLP over the concatenated query and key (Luong's "concat").

    Calls :func:`attnpool_flax.concat_score`. Parameters: ``kernel`` [d+e, h] and ``out_kernel`` [h]; with ``use_bias``
    also ``bias`` [h].

    ``init`` reads these sizes from the data: d, the width of the queries; e, the width of the keys.

    Attributes:
      hidden_features: h, the width of the hidden layer.
      use_bias: whether there is a bias.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      kernel_init: initializer of the kernels.
      out_kernel_init: initializer of ``out_kernel``, whose axes have another order; None is ``kernel_init``.
      bias_init: initializer of the biases."""

    hidden_features: int
    use_bias: bool
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel_init: Initializer
    out_kernel_init: Initializer | None
    bias_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        hidden_features: int,
        use_bias: bool = False,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        out_kernel_init: Initializer | None = None,
        bias_init: Initializer = ...,
    ) -> None: ...
    def __call__(self, query: ArrayLike, key: ArrayLike) -> Array: ...

class TanhSumScore(nn.Module):
    """Attention score that sums a tanh layer over the concatenated query and key.

    Calls :func:`attnpool_flax.tanh_sum_score`. Parameters: ``kernel`` [d+e, h] and, unless ``use_bias`` is False,
    ``bias`` [h].

    ``init`` reads these sizes from the data: d, the width of the queries; e, the width of the keys.

    Attributes:
      hidden_features: h, the width of the hidden layer.
      use_bias: whether there is a bias.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      kernel_init: initializer of the kernels.
      bias_init: initializer of the biases."""

    hidden_features: int
    use_bias: bool
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel_init: Initializer
    bias_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        hidden_features: int,
        use_bias: bool = True,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        bias_init: Initializer = ...,
    ) -> None: ...
    def __call__(self, query: ArrayLike, key: ArrayLike) -> Array: ...

class LocationScore(nn.Module):
    """Attention score of numbered slots from query and state (Luong's "location").

    Calls :func:`attnpool_flax.location_score`. Parameters: ``kernel`` [d+e, m] and, unless ``use_bias`` is False,
    ``bias`` [m].

    ``init`` reads these sizes from the data: d, the width of the queries; e, the width of the states.

    Attributes:
      num_slots: m, the number of slots.
      use_bias: whether there is a bias.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      kernel_init: initializer of the kernels.
      bias_init: initializer of the biases."""

    num_slots: int
    use_bias: bool
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel_init: Initializer
    bias_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        num_slots: int,
        use_bias: bool = True,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        bias_init: Initializer = ...,
    ) -> None: ...
    def __call__(self, query: ArrayLike, state: ArrayLike) -> Array: ...

class TrilinearScore(nn.Module):
    """Trilinear attention score of query, key and their elementwise product (BiDAF).

    Calls :func:`attnpool_flax.trilinear_score`. Parameters: ``kernel`` [3d], which multiplies the concatenated query,
    key and their product.

    ``init`` reads these sizes from the data: d, the width of queries and keys.

    Attributes:
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      kernel_init: initializer of the kernels."""

    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
    ) -> None: ...
    def __call__(self, query: ArrayLike, key: ArrayLike) -> Array: ...

class AdditiveAttention(nn.Module):
    """Additive attention (Bahdanau).

    Calls :func:`attnpool_flax.additive_attention`. Parameters: ``query_kernel`` [d, h], ``key_kernel`` [e, h],
    ``out_kernel`` [h]; with ``use_bias`` also ``bias`` [h].

    ``init`` reads these sizes from the data: d, the width of the queries; e, the width of the keys.

    Attributes:
      hidden_features: h, the width of the hidden layer.
      use_bias: whether there is a bias.
      dropout_rate: the dropout rate of the attention weights, in [0, 1].
      deterministic: True drops no weights, False draws with the key "dropout"; here or in the call, not in both.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      kernel_init: initializer of the kernels.
      out_kernel_init: initializer of ``out_kernel``, whose axes have another order; None is ``kernel_init``.
      bias_init: initializer of the biases."""

    hidden_features: int
    use_bias: bool
    dropout_rate: float
    deterministic: bool | None
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel_init: Initializer
    out_kernel_init: Initializer | None
    bias_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        hidden_features: int,
        use_bias: bool = False,
        dropout_rate: float = 0.0,
        deterministic: bool | None = None,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        out_kernel_init: Initializer | None = None,
        bias_init: Initializer = ...,
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
        return_weights: bool,
    ) -> Array | tuple[Array, Array]: ...

class TanhSumAttention(nn.Module):
    """Attention whose scores sum a tanh layer over the concatenated query and key.

    Calls :func:`attnpool_flax.tanh_sum_attention`. Parameters: ``kernel`` [d+e, h] and, unless ``use_bias`` is False,
    ``bias`` [h]. Scores are sums without learned weights, which grow with h: for h = 64 a fresh module gives most of the
    weight of unit normal tokens to one of them. :class:`AdditiveAttention` has learned weights.

    ``init`` reads these sizes from the data: d, the width of the queries; e, the width of the keys.

    Attributes:
      hidden_features: h, the width of the hidden layer.
      use_bias: whether there is a bias.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      kernel_init: initializer of the kernels.
      bias_init: initializer of the biases."""

    hidden_features: int
    use_bias: bool
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel_init: Initializer
    bias_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        hidden_features: int,
        use_bias: bool = True,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        bias_init: Initializer = ...,
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

class LocationAttention(nn.Module):
    """Attention over numbered slots with an output projection (Luong's "location").

    Calls :func:`attnpool_flax.location_attention`. Parameters: ``kernel`` [d+e, m], ``out_kernel`` [d+v, o] and, unless
    ``use_bias`` is False, ``bias`` [m] and ``out_bias`` [o].

    ``init`` reads these sizes from the data: d, the width of the queries; e, the width of the states; v, the width of the
    values; m, the number of slots.

    Attributes:
      out_features: o, the width of the result.
      use_bias: whether there are biases; if not, zeros take their place.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      kernel_init: initializer of the kernels.
      out_kernel_init: initializer of ``out_kernel``, whose axes have another order; None is ``kernel_init``.
      bias_init: initializer of the biases."""

    out_features: int
    use_bias: bool
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel_init: Initializer
    out_kernel_init: Initializer | None
    bias_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        out_features: int,
        use_bias: bool = True,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        out_kernel_init: Initializer | None = None,
        bias_init: Initializer = ...,
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

class MultiHeadAttention(nn.Module):
    """Multi-head scaled dot-product attention (Transformer).

    Calls :func:`attnpool_flax.multi_head_attention`. Parameters: ``query_kernel`` [d, H, c], ``key_kernel`` [e, H, c],
    ``value_kernel`` [v, H, c], ``out_kernel`` [H, c, o] and, depending on ``use_bias``, ``query_bias`` [H, c],
    ``key_bias`` [H, c], ``value_bias`` [H, c], ``out_bias`` [o]. These are the layouts of ``nnx.MultiHeadAttention``.

    ``init`` reads these sizes from the data: d, the width of the queries; e, the width of the keys; v, the width of the
    values.

    Attributes:
      num_heads: H, the number of heads.
      qkv_features: H·c, the width of all heads together; None is the queries' width.
      out_features: o, the width of the result; None is the queries' width.
      use_bias: whether there are biases; or a tuple of the names of the biases to have.
      sink: the score of an attention sink: None, a number that stays fixed, such as 0, or "learned" for a parameter
        ``sink`` [H], which starts at 0.
      dropout_rate: the dropout rate of the attention weights, in [0, 1].
      deterministic: True drops no weights, False draws with the key "dropout"; here or in the call, not in both.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      kernel_init: initializer of the kernels.
      out_kernel_init: initializer of ``out_kernel``, whose axes have another order; None is ``kernel_init``.
      bias_init: initializer of the biases."""

    num_heads: int
    qkv_features: int | None
    out_features: int | None
    use_bias: bool | tuple[str, ...]
    sink: float | str | None
    dropout_rate: float
    deterministic: bool | None
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel_init: Initializer
    out_kernel_init: Initializer | None
    bias_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        num_heads: int,
        qkv_features: int | None = None,
        out_features: int | None = None,
        use_bias: bool | tuple[str, ...] = True,
        sink: float | str | None = None,
        dropout_rate: float = 0.0,
        deterministic: bool | None = None,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        out_kernel_init: Initializer | None = None,
        bias_init: Initializer = ...,
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
        return_weights: bool,
    ) -> Array | tuple[Array, Array]: ...

class WeightedPool(nn.Module):
    """Weighted mean of the tokens with one learned weight for each position.

    Calls :func:`attnpool_flax.weighted_pooling`. Parameters: ``weights`` [L], one for each position, which start at 1.

    ``init`` reads these sizes from the data: L, the length of every sequence, padding included.

    Attributes:
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the weights.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set."""

    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
    ) -> None: ...
    def __call__(self, x: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None) -> Array: ...

class AttentionPool(nn.Module):
    """Attention pooling with one learned query.

    Calls :func:`attnpool_flax.attention_pooling`. Parameters: ``query`` [d]; with ``qk_features`` also ``query_kernel``
    [d, c] and ``key_kernel`` [d, c]; with ``normalize_query`` also ``query_norm_scale`` [d] and ``query_norm_bias``
    [d], which start at ones and zeros.

    ``init`` reads these sizes from the data: d, the width of the tokens and of the query.

    Attributes:
      qk_features: c, the width to which query and tokens are projected; None compares them unprojected.
      normalize_query: apply layer normalization to the query, before its kernel.
      epsilon: the epsilon of the layer normalization.
      scale: a number in place of 1/sqrt(c); without kernels c = d.
      normalizer: "softmax", "sparsemax", "entmax15", "sigmoid", "hardmax", or a function (scores, mask) -> weights, as in
        :func:`attnpool_flax.attention_pooling`; packed tokens and ``axis_name`` take only "softmax" or "sigmoid".
      sink: the score of an attention sink: None, a number that stays fixed, such as 0, or "learned" for a parameter
        ``sink`` [], which starts at 0.
      dropout_rate: the dropout rate of the attention weights, in [0, 1].
      deterministic: True drops no weights, False draws with the key "dropout"; here or in the call, not in both.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      axis_name: the mesh axis, or a tuple of axes, over which ``jax.shard_map`` splits sequences; None if unsplit; not used
        by ``init``.
      kernel_init: initializer of the kernels.
      query_init: initializer of the query, called with the shape [d, 1]."""

    qk_features: int | None
    normalize_query: bool
    epsilon: float
    scale: float | None
    normalizer: Normalizer
    sink: float | str | None
    dropout_rate: float
    deterministic: bool | None
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    axis_name: str | tuple[str, ...] | None
    kernel_init: Initializer
    query_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        qk_features: int | None = None,
        normalize_query: bool = False,
        epsilon: float = 1e-06,
        scale: float | None = None,
        normalizer: Normalizer = "softmax",
        sink: float | str | None = None,
        dropout_rate: float = 0.0,
        deterministic: bool | None = None,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        axis_name: str | tuple[str, ...] | None = None,
        kernel_init: Initializer = ...,
        query_init: Initializer = ...,
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
        return_weights: bool,
    ) -> Array | tuple[Array, Array]: ...

class MultiHeadAttentionPool(nn.Module):
    """Multi-head attention pooling with learned queries (MAP).

    Calls :func:`attnpool_flax.multi_head_attention_pooling`. Parameters: ``query`` [n, d], ``query_kernel`` [d, H, c],
    ``key_kernel`` [d, H, c], ``value_kernel`` [d, H, c], ``out_kernel`` [H, c, o] and, depending on ``use_bias``,
    ``query_bias`` [H, c], ``key_bias`` [H, c], ``value_bias`` [H, c], ``out_bias`` [o].

    ``init`` reads these sizes from the data: d, the width of the tokens and of the queries.

    Attributes:
      num_heads: H, the number of heads.
      num_queries: n, the number of learned queries; None makes one and drops its axis: [..., o].
      qkv_features: H·c, the width of all heads together; None is the tokens' width.
      out_features: o, the width of the result; None is the tokens' width.
      use_bias: whether there are biases; or a tuple of the names of the biases to have.
      scale: a number in place of 1/sqrt(c).
      normalizer: "softmax", "sparsemax", "entmax15", "sigmoid", "hardmax", or a function (scores, mask) -> weights, as in
        :func:`attnpool_flax.attend`; packed tokens and ``axis_name`` take only "softmax" or "sigmoid".
      sink: the score of an attention sink: None, a number that stays fixed, such as 0, or "learned" for a parameter
        ``sink`` [H], which starts at 0.
      dropout_rate: the dropout rate of the attention weights, in [0, 1].
      deterministic: True drops no weights, False draws with the key "dropout"; here or in the call, not in both.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      axis_name: the mesh axis, or a tuple of axes, over which ``jax.shard_map`` splits sequences; None if unsplit; not used
        by ``init``.
      kernel_init: initializer of the kernels.
      out_kernel_init: initializer of ``out_kernel``, whose axes have another order; None is ``kernel_init``.
      bias_init: initializer of the biases.
      query_init: initializer of the queries, called with the shape [d, n]."""

    num_heads: int
    num_queries: int | None
    qkv_features: int | None
    out_features: int | None
    use_bias: bool | tuple[str, ...]
    scale: float | None
    normalizer: Normalizer
    sink: float | str | None
    dropout_rate: float
    deterministic: bool | None
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    axis_name: str | tuple[str, ...] | None
    kernel_init: Initializer
    out_kernel_init: Initializer | None
    bias_init: Initializer
    query_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        num_heads: int,
        num_queries: int | None = 1,
        qkv_features: int | None = None,
        out_features: int | None = None,
        use_bias: bool | tuple[str, ...] = True,
        scale: float | None = None,
        normalizer: Normalizer = "softmax",
        sink: float | str | None = None,
        dropout_rate: float = 0.0,
        deterministic: bool | None = None,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        axis_name: str | tuple[str, ...] | None = None,
        kernel_init: Initializer = ...,
        out_kernel_init: Initializer | None = None,
        bias_init: Initializer = ...,
        query_init: Initializer = ...,
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
        return_weights: bool,
    ) -> Array | tuple[Array, Array]: ...

class MAPHead(nn.Module):
    """MAP head of big_vision and SigLIP: attention pooling with one learned query, then a residual MLP.

    Parameters, where c = d / H is the width of a head: ``query`` [1, d], ``query_kernel`` [d, H, c], ``key_kernel``
    [d, H, c], ``value_kernel`` [d, H, c], ``out_kernel`` [H, c, d], depending on ``use_bias`` also ``query_bias``
    [H, c], ``key_bias`` [H, c], ``value_bias`` [H, c] and ``out_bias`` [d]; ``norm_scale`` [d], ``norm_bias`` [d],
    ``mlp_kernel`` [d, f], ``mlp_bias`` [f], ``mlp_out_kernel`` [f, d] and ``mlp_out_bias`` [d].

    ``init`` reads these sizes from the data: d, the width of the tokens and of the result.

    Attributes:
      num_heads: H, the number of heads.
      hidden_features: f, the width of the hidden layer.
      epsilon: the epsilon of the layer normalization.
      activation: "gelu_tanh", "gelu" (with erf, as in timm's generic head) or "relu".
      use_bias: whether the heads have biases; or a tuple of the names of the biases to have.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      kernel_init: initializer of the kernels.
      out_kernel_init: initializer of ``out_kernel``, whose axes have another order; None is ``kernel_init``.
      bias_init: initializer of the biases.
      query_init: initializer of the query, called with the shape [d, 1]."""

    num_heads: int
    hidden_features: int
    epsilon: float
    activation: str
    use_bias: bool | tuple[str, ...]
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel_init: Initializer
    out_kernel_init: Initializer | None
    bias_init: Initializer
    query_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
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

class AttentionalPooler(nn.Module):
    """Attentional pooler of CoCa and CONCH: learned queries attend to normalized tokens, without an MLP.

    Parameters: ``query`` [n, q], ``query_kernel`` [q, H, c], ``key_kernel`` [d, H, c], ``value_kernel`` [d, H, c],
    ``out_kernel`` [H, c, o], depending on ``use_bias`` also ``query_bias`` [H, c], ``key_bias`` [H, c], ``value_bias``
    [H, c] and ``out_bias`` [o]; ``norm_scale`` [d], ``norm_bias`` [d], ``query_norm_scale`` [q] and ``query_norm_bias``
    [q].

    ``init`` reads these sizes from the data: d, the width of the tokens.

    Attributes:
      num_heads: H, the number of heads.
      num_queries: n, the number of learned queries; None makes one and drops its axis: [..., o].
      query_features: q, the width of the queries; None is the tokens' width.
      qkv_features: H·c, the width of all heads together; None is the queries' width.
      out_features: o, the width of the result; None is the queries' width.
      epsilon: the epsilon of the layer normalizations.
      use_bias: whether the heads have biases; or a tuple of the names of the biases to have.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      kernel_init: initializer of the kernels.
      out_kernel_init: initializer of ``out_kernel``, whose axes have another order; None is ``kernel_init``.
      bias_init: initializer of the biases.
      query_init: initializer of the queries, called with the shape [q, n]."""

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
    kernel_init: Initializer
    out_kernel_init: Initializer | None
    bias_init: Initializer
    query_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
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

class AttentionPool2d(nn.Module):
    """Attention pooling of CLIP's ResNets: the query is the mean of the real tokens, or a class token.

    Parameters: ``position`` [num_slots + 1, d], added to the mean (or class token) and the tokens, ``query_kernel``
    [d, H, c], ``key_kernel`` [d, H, c], ``value_kernel`` [d, H, c], ``out_kernel`` [H, c, o]; depending on
    ``use_bias``, ``query_bias`` [H, c], ``key_bias`` [H, c], ``value_bias`` [H, c] and ``out_bias`` [o]; and with
    ``use_class_token`` ``class_token`` [d].

    ``init`` reads these sizes from the data: d, the width of the tokens.

    Attributes:
      num_heads: H, the number of heads.
      num_slots: the length of every sequence, padding included.
      qkv_features: H·c, the width of all heads together; None is the tokens' width.
      out_features: o, the width of the result; None is the tokens' width.
      use_class_token: whether a learned token replaces the mean, an option of timm.
      use_bias: whether the heads have biases; or a tuple of the names of the biases to have.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      kernel_init: initializer of the kernels.
      out_kernel_init: initializer of ``out_kernel``, whose axes have another order; None is ``kernel_init``.
      bias_init: initializer of the biases.
      query_init: initializer of the positions, called with the shape [d, num_slots + 1], and of the class token."""

    num_heads: int
    num_slots: int
    qkv_features: int | None
    out_features: int | None
    use_class_token: bool
    use_bias: bool | tuple[str, ...]
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel_init: Initializer
    out_kernel_init: Initializer | None
    bias_init: Initializer
    query_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
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

class PMA(nn.Module):
    """Pooling by multi-head attention of the Set Transformer (PMA), as in the authors' code or in PyG.

    Parameters, where c = d / H is the width of a head: ``query`` [n, d], ``query_kernel`` [d, H, c], ``key_kernel``
    [d, H, c], ``value_kernel`` [d, H, c], depending on ``use_bias`` also ``query_bias`` [H, c], ``key_bias`` [H, c] and
    ``value_bias`` [H, c]; ``mlp_kernel`` [d, d] and ``mlp_bias`` [d]; with ``normalize`` ``norm_scale`` [d],
    ``norm_bias`` [d], ``mlp_norm_scale`` [d] and ``mlp_norm_bias`` [d]. With variant "pyg" also ``out_kernel``
    [H, c, d], ``input_kernel`` [d, d], ``input_bias`` [d] and, depending on ``use_bias``, ``out_bias`` [d].

    ``init`` reads these sizes from the data: d, the width of the tokens and of the result.

    Attributes:
      num_heads: H, the number of heads.
      num_queries: n, the number of learned queries; None makes one and drops its axis: [..., d].
      variant: "author" adds the attention output to the projected query, and divides scores by the root of the width of all
        heads together. "pyg" first applies a linear layer and a relu to the tokens, adds the projected attention output to
        the raw query, and divides scores by the root of one head's width.
      normalize: apply layer normalization after each residual sum; None is False for "author" and True for "pyg".
      use_bias: whether the heads have biases; or a tuple of the names of the biases to have.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      kernel_init: initializer of the kernels.
      out_kernel_init: initializer of ``out_kernel``, whose axes have another order; None is ``kernel_init``.
      bias_init: initializer of the biases.
      query_init: initializer of the queries, called with the shape [d, n]."""

    num_heads: int
    num_queries: int | None
    variant: str
    normalize: bool | None
    use_bias: bool | tuple[str, ...]
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel_init: Initializer
    out_kernel_init: Initializer | None
    bias_init: Initializer
    query_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
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

class AttentiveProbe(nn.Module):
    """Attentive probe of a frozen encoder (V-JEPA, AIM), without an output projection.

    Parameters, where c = d / H is the width of a head: ``query`` [n, d], ``query_kernel`` [d, H, c], ``key_kernel``
    [d, H, c], ``value_kernel`` [d, H, c], depending on ``use_bias`` also ``query_bias`` [H, c], ``key_bias`` [H, c] and
    ``value_bias`` [H, c]; ``norm_scale`` [d], ``norm_bias`` [d], ``mlp_norm_scale`` [d], ``mlp_norm_bias`` [d],
    ``mlp_kernel`` [d, f], ``mlp_bias`` [f], ``mlp_out_kernel`` [f, d] and ``mlp_out_bias`` [d].

    With variant "aim" the parameters are only ``query`` [n, H, c], ``key_kernel``, ``value_kernel``, and the batch
    statistics ``mean`` [d] and ``variance`` [d]. These are 0 and 1 in a new module, and no call updates them: load or
    assign them.

    ``init`` reads these sizes from the data: d, the width of the tokens and of the result.

    Attributes:
      num_heads: H, the number of heads.
      num_queries: n, the number of learned queries; None makes one and drops its axis: [..., d].
      hidden_features: f, the width of the hidden layer; required for "vjepa", not used by "aim".
      variant: "vjepa" applies layer normalization to the tokens, and adds the attention output to the query, followed by a
        residual MLP. "aim" normalizes the tokens by batch statistics, and averages the attention output over the queries.
      epsilon: the epsilon of the layer normalizations of "vjepa"; the batch normalization of "aim" has 1e-6.
      use_bias: whether the heads of "vjepa" have biases; or a tuple of the names of the biases to have. Those of "aim" have
        none.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      kernel_init: initializer of the kernels.
      bias_init: initializer of the biases.
      query_init: initializer of the queries, called with the shape [d, n], or [c, n·H] for "aim"."""

    num_heads: int
    num_queries: int | None
    hidden_features: int | None
    variant: str
    epsilon: float
    use_bias: bool | tuple[str, ...]
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel_init: Initializer
    bias_init: Initializer
    query_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
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

class PowerMeanPool(nn.Module):
    """Generalized-mean pooling with a learned exponent (GeM).

    Calls :func:`attnpool_flax.power_mean_pooling`. Parameters: ``p``, a number [], which does not affect the
    result's dtype; with ``num_features`` ``p`` [d], one for each feature, whose dtype takes part in promotion.

    Attributes:
      p: initial value of p; 1 is the mean, and a large value approaches the maximum.
      num_features: d, the width of the tokens, to learn a value for each feature; None learns one for all features.
      epsilon: lower bound of the tokens: smaller values are raised to it.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      axis_name: the mesh axis, or a tuple of axes, over which ``jax.shard_map`` splits sequences; None if unsplit; not used
        by ``init``."""

    p: float
    num_features: int | None
    epsilon: float
    dtype: Dtype | None
    param_dtype: Dtype
    axis_name: str | tuple[str, ...] | None
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        p: float = 3.0,
        num_features: int | None = None,
        epsilon: float = 1e-06,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        axis_name: str | tuple[str, ...] | None = None,
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

class LogSumExpPool(nn.Module):
    """Log-sum-exp pooling with a learned scale (LSE).

    Calls :func:`attnpool_flax.logsumexp_pooling`. Parameters: ``scale``, a number [], which does not affect
    the result's dtype; with ``num_features`` ``scale`` [d], one for each feature, whose dtype takes part in promotion.

    Attributes:
      scale: initial value of the scale; 0 is the mean (with ``mean=False`` an error), and a large value approaches the
        maximum.
      num_features: d, the width of the tokens, to learn a value for each feature; None learns one for all features.
      mean: whether to divide the sum by the number of real tokens.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      axis_name: the mesh axis, or a tuple of axes, over which ``jax.shard_map`` splits sequences; None if unsplit; not used
        by ``init``."""

    scale: float
    num_features: int | None
    mean: bool
    dtype: Dtype | None
    param_dtype: Dtype
    axis_name: str | tuple[str, ...] | None
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        scale: float = 10.0,
        num_features: int | None = None,
        mean: bool = True,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        axis_name: str | tuple[str, ...] | None = None,
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

class SoftmaxPool(nn.Module):
    """Softmax average of each channel under its own values, with a learned scale (AutoPool).

    Calls :func:`attnpool_flax.softmax_pooling`. Parameters: ``scale``, a number [], which does not affect
    the result's dtype; with ``num_features`` ``scale`` [d], one for each feature, whose dtype takes part in promotion.

    Attributes:
      scale: initial value of the scale; 0 is the mean, AutoPool's initial value.
      num_features: d, the width of the tokens, to learn a value for each feature; None learns one for all features.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      axis_name: the mesh axis, or a tuple of axes, over which ``jax.shard_map`` splits sequences; None if unsplit; not used
        by ``init``."""

    scale: float
    num_features: int | None
    dtype: Dtype | None
    param_dtype: Dtype
    axis_name: str | tuple[str, ...] | None
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        scale: float = 1.0,
        num_features: int | None = None,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        axis_name: str | tuple[str, ...] | None = None,
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

class AttentiveStatisticsPool(nn.Module):
    """Attentive statistics pooling: weighted mean and standard deviation (ASP, ECAPA-TDNN).

    Calls :func:`attnpool_flax.attentive_statistics_pooling`. Parameters: ``kernel`` [d, h], or [3d, h] with
    ``global_context``; ``out_kernel`` [h, d], or [h] without ``per_channel``; ``bias`` [h]; with ``use_norm`` also
    ``norm_scale`` [h] and ``norm_bias`` [h], which start at ones and zeros: the factor and offset to which a trained
    batch normalization reduces.

    ``init`` reads these sizes from the data: d, the width of the tokens.

    Attributes:
      hidden_features: h, the width of the hidden layer.
      per_channel: one weight for each feature of a token, instead of one for the token.
      global_context: concatenate the mean and the deviation of all tokens to each token that is scored.
      use_norm: apply a relu, ``norm_scale`` and ``norm_bias`` to the hidden layer, before the tanh.
      activation: "tanh", "relu", "gelu" or "identity"; must be "tanh" with ``use_norm``.
      context_ddof: a number, subtracted from the number of tokens in the denominator of the context's variance.
      epsilon: the minimum of the variances of the result and of the context.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      axis_name: the mesh axis, or a tuple of axes, over which ``jax.shard_map`` splits sequences; None if unsplit; not used
        by ``init``.
      kernel_init: initializer of the kernels.
      out_kernel_init: initializer of ``out_kernel``, whose axes have another order; None is ``kernel_init``.
      bias_init: initializer of the bias."""

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
    kernel_init: Initializer
    out_kernel_init: Initializer | None
    bias_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
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

class AdditiveAttentionPool(nn.Module):
    """Attention over a bag, gated or not (ABMIL).

    Calls :func:`attnpool_flax.additive_attention_pooling`. Parameters: ``kernel`` [d, h] and ``out_kernel`` [h], or
    with ``num_queries`` [h, n]; ``bias`` [h]; with ``gated`` also ``gate_kernel`` [d, h] and ``gate_bias`` [h]. Without
    ``use_bias`` there is neither bias. The scores have no bias, because it would cancel in the softmax.

    ``init`` reads these sizes from the data: d, the width of the tokens.

    Attributes:
      hidden_features: h, the width of the hidden layer.
      num_queries: n, the number of averages (hops, classes); None computes one, without an axis for it.
      gated: whether to multiply the hidden layer by a second one with a sigmoid (gated attention).
      use_bias: whether the hidden layers have biases.
      activation: "tanh", "relu", "gelu" (exact) or "identity".
      sink: the score of an attention sink: None, a number that stays fixed, such as 0, or "learned" for a parameter
        ``sink`` [], or with ``num_queries`` [n], which starts at 0.
      dropout_rate: the dropout rate of the attention weights, in [0, 1].
      deterministic: True drops no weights, False draws with the key "dropout"; here or in the call, not in both.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      axis_name: the mesh axis, or a tuple of axes, over which ``jax.shard_map`` splits sequences; None if unsplit; not used
        by ``init``.
      kernel_init: initializer of the kernels.
      out_kernel_init: initializer of ``out_kernel``, whose axes have another order; None is ``kernel_init``.
      bias_init: initializer of the biases."""

    hidden_features: int
    num_queries: int | None
    gated: bool
    use_bias: bool
    activation: str
    sink: float | str | None
    dropout_rate: float
    deterministic: bool | None
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    axis_name: str | tuple[str, ...] | None
    kernel_init: Initializer
    out_kernel_init: Initializer | None
    bias_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        hidden_features: int,
        num_queries: int | None = None,
        gated: bool = False,
        use_bias: bool = True,
        activation: str = "tanh",
        sink: float | str | None = None,
        dropout_rate: float = 0.0,
        deterministic: bool | None = None,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        axis_name: str | tuple[str, ...] | None = None,
        kernel_init: Initializer = ...,
        out_kernel_init: Initializer | None = None,
        bias_init: Initializer = ...,
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
        return_weights: bool,
    ) -> Array | tuple[Array, Array]: ...

class LatentAttentionPool(nn.Module):
    """Latent attention pooling: tokens attend to learned latents, then are averaged (NV-Embed).

    Calls :func:`attnpool_flax.latent_attention_pooling`. Parameters: ``latents`` [r, d], ``query_kernel`` [d, H, c],
    ``key_kernel`` [d, H, c], ``value_kernel`` [d, H, c], ``out_kernel`` [H, c, d], ``mlp_kernel`` [d, 2f],
    ``mlp_out_kernel`` [f, d], ``mlp_bias`` [2f], ``mlp_out_bias`` [d]; ``norm_scale`` [d], ``norm_bias`` [d],
    ``latent_norm_scale`` [d], ``latent_norm_bias`` [d], ``mlp_norm_scale`` [d] and ``mlp_norm_bias`` [d], which start
    at ones and zeros.

    ``init`` reads these sizes from the data: d, the width of the tokens and of the latents.

    Attributes:
      num_latents: r, the number of latents.
      num_heads: H, the number of heads.
      qkv_features: H·c, the width of all heads together; None is the tokens' width.
      hidden_features: f, the width of the hidden layer; None is 4 times that of the tokens.
      epsilon: the epsilon of the layer normalizations.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      axis_name: the mesh axis, or a tuple of axes, over which ``jax.shard_map`` splits sequences; None if unsplit; not used
        by ``init``.
      kernel_init: initializer of the kernels.
      out_kernel_init: initializer of ``out_kernel``, whose axes have another order; None is ``kernel_init``.
      bias_init: initializer of the biases of the MLP.
      latents_init: initializer of the latents, called with the shape [d, r]."""

    num_latents: int
    num_heads: int
    qkv_features: int | None
    hidden_features: int | None
    epsilon: float
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    axis_name: str | tuple[str, ...] | None
    kernel_init: Initializer
    out_kernel_init: Initializer | None
    bias_init: Initializer
    latents_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
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

class Set2SetPool(nn.Module):
    """Set2Set readout: an LSTM attends to the set in several steps.

    Calls :func:`attnpool_flax.set2set_pooling`. Parameters: ``input_kernel`` [2d, 4d], ``recurrent_kernel`` [d, 4d] and
    ``bias`` [4d] of an LSTM, with the gates in the order input, forget, cell, output.

    ``init`` reads these sizes from the data: d, the width of the tokens.

    Attributes:
      num_steps: the number of LSTM steps.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      axis_name: the mesh axis, or a tuple of axes, over which ``jax.shard_map`` splits sequences; None if unsplit; not used
        by ``init``.
      kernel_init: initializer of the kernels.
      bias_init: initializer of the bias."""

    num_steps: int
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    axis_name: str | tuple[str, ...] | None
    kernel_init: Initializer
    bias_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        num_steps: int,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        axis_name: str | tuple[str, ...] | None = None,
        kernel_init: Initializer = ...,
        bias_init: Initializer = ...,
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

class VLADPool(nn.Module):
    """VLAD pooling with learned cluster centers (NetVLAD, GhostVLAD).

    Calls :func:`attnpool_flax.vlad_pooling`. Parameters: ``assign_kernel`` [d, K+G], ``assign_bias`` [K+G] and
    ``centers`` [K, d].

    ``init`` reads these sizes from the data: d, the width of the tokens.

    Attributes:
      num_clusters: K, the number of clusters.
      num_ghosts: G, the number of clusters without a center: they take part in the softmax, but have no result.
      normalize: divide each cluster's vector by its norm, then all of them by their common norm.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      axis_name: the mesh axis, or a tuple of axes, over which ``jax.shard_map`` splits sequences; None if unsplit; not used
        by ``init``.
      kernel_init: initializer of the kernel.
      bias_init: initializer of the bias.
      centers_init: initializer of the centers, called with the shape [d, K]."""

    num_clusters: int
    num_ghosts: int
    normalize: bool
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    axis_name: str | tuple[str, ...] | None
    kernel_init: Initializer
    bias_init: Initializer
    centers_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        num_clusters: int,
        num_ghosts: int = 0,
        normalize: bool = True,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        axis_name: str | tuple[str, ...] | None = None,
        kernel_init: Initializer = ...,
        bias_init: Initializer = ...,
        centers_init: Initializer = ...,
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

class GatedSumPool(nn.Module):
    """Gated sum of projected tokens (the readout of gated graph networks, GGNN).

    Calls :func:`attnpool_flax.gated_sum_pooling`. Parameters: ``gate_kernel`` [d, o], ``value_kernel`` [d, o]
    and, unless ``use_bias`` is False, ``gate_bias`` [o] and ``value_bias`` [o].

    ``init`` reads these sizes from the data: d, the width of the tokens.

    Attributes:
      out_features: o, the width of the result.
      use_bias: whether there are biases.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      axis_name: the mesh axis, or a tuple of axes, over which ``jax.shard_map`` splits sequences; None if unsplit; not used
        by ``init``.
      kernel_init: initializer of the kernels.
      bias_init: initializer of the biases."""

    out_features: int
    use_bias: bool
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    axis_name: str | tuple[str, ...] | None
    kernel_init: Initializer
    bias_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        out_features: int,
        use_bias: bool = True,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        axis_name: str | tuple[str, ...] | None = None,
        kernel_init: Initializer = ...,
        bias_init: Initializer = ...,
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

class CrossAttentionPool(nn.Module):
    """Pooling of two sequences, each under its scores against the other.

    Calls :func:`attnpool_flax.cross_attention_pooling`. Parameters: with ``qk_features`` ``x_kernel``
    [d, c], ``y_kernel`` [e, c], or only that of the side that is projected; else none.

    Attributes:
      x_features: d; needed only to project x and not y: give it without ``y_features``.
      y_features: e; needed only to project y and not x: give it without ``x_features``.
      qk_features: c, the width to which x, y or both are projected; if only one is projected, the width of the other. None
        without a projection.
      reduction: "sum", "mean" or "max" of a token's scores over the other sequence; packed tokens and ``axis_name`` exclude
        "max". None is "mean" with kernels, else "sum", as in the notebook. "max" finds the tokens that match.
      scale: a number that multiplies the products before the reduction. None is 1/sqrt(c) with kernels, else 1, as in the
        notebook: sums of unit normal tokens give almost all weight to one token (over 0.9 with 40 tokens of width 64), and
        a layer before the pooling then gets almost no gradient.
      dropout_rate: the dropout rate of the attention weights, in [0, 1].
      deterministic: True drops no weights, False draws with the key "dropout"; here or in the call, not in both.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the kernels.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      axis_name: the mesh axis, or a tuple of axes, over which ``jax.shard_map`` splits sequences; None if unsplit; not used
        by ``init``.
      kernel_init: initializer of the kernels."""

    x_features: int | None
    y_features: int | None
    qk_features: int | None
    reduction: str | None
    scale: float | None
    dropout_rate: float
    deterministic: bool | None
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    axis_name: str | tuple[str, ...] | None
    kernel_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        x_features: int | None = None,
        y_features: int | None = None,
        qk_features: int | None = None,
        reduction: str | None = None,
        scale: float | None = None,
        dropout_rate: float = 0.0,
        deterministic: bool | None = None,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        axis_name: str | tuple[str, ...] | None = None,
        kernel_init: Initializer = ...,
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
        return_weights: bool,
    ) -> tuple[Array, Array] | tuple[tuple[Array, Array], tuple[Array, Array]]: ...

class CodeWiseAttention(nn.Module):
    """Code-wise attention: pooling of a context under its best-matching labels (Yue et al. 2021).

    Calls :func:`attnpool_flax.code_wise_attention`. No parameters, only configuration.

    Attributes:
      scale: a number that multiplies the products. 1.0 is that of the source, with which one token has most of the weight
        of unit normal tokens; None is 1/sqrt(d), which gives it less than half.
      dtype: the dtype to which the data are cast first; None uses their promoted dtype.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set."""

    scale: float | None
    dtype: Dtype | None
    precision: PrecisionLike
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        scale: float | None = 1.0,
        dtype: Dtype | None = None,
        precision: PrecisionLike = None,
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

class MaskAttention(nn.Module):
    """Mask attention from each context token to the query's tokens (Yue et al. 2021).

    Calls :func:`attnpool_flax.mask_attention`. No parameters, only configuration.

    Attributes:
      scale: a number that multiplies the products. 1.0 is that of the source, with which one token has most of the weight
        of unit normal tokens; None is 1/sqrt(d), which gives it less than half.
      dtype: the dtype to which the data are cast first; None uses their promoted dtype.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set."""

    scale: float | None
    dtype: Dtype | None
    precision: PrecisionLike
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        scale: float | None = 1.0,
        dtype: Dtype | None = None,
        precision: PrecisionLike = None,
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

class BiDAFAttention(nn.Module):
    """Bidirectional attention flow between context and query (BiDAF).

    Calls :func:`attnpool_flax.bidaf_attention`. Parameters: ``kernel`` [3d], which multiplies the concatenated context,
    query and their product.

    ``init`` reads these sizes from the data: d, the width of context and query.

    Attributes:
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      kernel_init: initializer of the kernels."""

    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
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

class RelationVector(nn.Module):
    """Relation vector of two examples: an MLP with one hidden layer (CTM).

    Calls :func:`attnpool_flax.relation_vector`. Parameters: ``x_kernel`` [f, h], ``y_kernel`` [f, h], ``out_kernel``
    [h, o] and, unless ``use_bias`` is False, ``bias`` [h]. :func:`attnpool_flax.relation_triplet_loss` takes the same
    parameters.

    ``init`` reads these sizes from the data: f, the width of both examples.

    Attributes:
      hidden_features: h, the width of the hidden layer.
      out_features: o, the width of the result; None is the examples' width.
      use_bias: whether there is a bias; if not, zeros take its place.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      kernel_init: initializer of the kernels.
      out_kernel_init: initializer of ``out_kernel``, whose axes have another order; None is ``kernel_init``.
      bias_init: initializer of the biases."""

    hidden_features: int
    out_features: int | None
    use_bias: bool
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel_init: Initializer
    out_kernel_init: Initializer | None
    bias_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        hidden_features: int,
        out_features: int | None = None,
        use_bias: bool = True,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        out_kernel_init: Initializer | None = None,
        bias_init: Initializer = ...,
    ) -> None: ...
    def __call__(self, x: ArrayLike, y: ArrayLike) -> Array: ...

class FieldAttentionPool(nn.Module):
    """Attention pooling of an example's fields, each concatenated with the target (MIAN).

    Calls :func:`attnpool_flax.field_attention_pooling`. Parameters: ``kernel`` [J, d+e] and, unless ``use_bias`` is
    False, ``bias`` [J], with a row for each field; without ``num_fields`` one row for all fields: ``kernel`` [d+e],
    ``bias`` [].

    ``init`` reads these sizes from the data: d, the width of the target; e, the width of the fields.

    Attributes:
      num_fields: J, the number of fields, to learn one kernel for each; None shares one kernel.
      use_bias: whether there is a bias; if not, zeros take its place.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      kernel_init: initializer of the kernels.
      bias_init: initializer of the biases."""

    num_fields: int | None
    use_bias: bool
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel_init: Initializer
    bias_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        num_fields: int | None = None,
        use_bias: bool = True,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
        bias_init: Initializer = ...,
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

class LabelAttention(nn.Module):
    """Single-head self-attention among label vectors.

    Calls :func:`attnpool_flax.label_attention`. Parameters: ``query_kernel`` [d, c], ``key_kernel`` [d, c] and
    ``value_kernel`` [d, v].

    ``init`` reads these sizes from the data: d, the width of the labels.

    Attributes:
      qk_features: c, the width of queries and keys; None is the labels' width.
      out_features: v, the width of the result; None is the labels' width.
      dtype: the dtype to which data and parameters are cast first; None uses their promoted dtype.
      param_dtype: the dtype of the parameters.
      precision: the precision of matrix products; None is full float32 (one pass for bfloat16 and float16) unless
        ``jax_default_matmul_precision`` is set.
      kernel_init: initializer of the kernels."""

    qk_features: int | None
    out_features: int | None
    dtype: Dtype | None
    param_dtype: Dtype
    precision: PrecisionLike
    kernel_init: Initializer
    def __init__(
        self,
        *,
        parent: Any = ...,
        name: str | None = None,
        qk_features: int | None = None,
        out_features: int | None = None,
        dtype: Dtype | None = None,
        param_dtype: Dtype = ...,
        precision: PrecisionLike = None,
        kernel_init: Initializer = ...,
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
