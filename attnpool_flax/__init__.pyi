# Written by tools/make_stubs.py from the table and the signatures (`make docs`), not by hand.

from typing import Final, Literal, Protocol, overload

import jax.typing
from jax import Array
from jax.lax import PrecisionLike

from attnpool_flax import linen as linen
from attnpool_flax.modules import AttentionPool as AttentionPool
from attnpool_flax.modules import CrossAttentionPool as CrossAttentionPool
from attnpool_flax.modules import WeightedPool as WeightedPool

class HoldsArray(Protocol):  # what a module's parameter is
    def __jax_array__(self) -> Array: ...

ArrayLike = jax.typing.ArrayLike | HoldsArray

__version__: Final[str]
__all__ = [
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
    "AttentionPool",
    "CrossAttentionPool",
    "WeightedPool",
    "linen",
]

def lengths_to_mask(lengths: ArrayLike, max_length: int) -> Array: ...
def masked_softmax(
    scores: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None, axis: int = -1
) -> Array: ...
def l2_normalize(x: ArrayLike, *, axis: int = -1) -> Array: ...
def dot_score(query: ArrayLike, key: ArrayLike, *, precision: PrecisionLike = None) -> Array: ...
def scaled_dot_score(
    query: ArrayLike, key: ArrayLike, *, scale: ArrayLike | None = None, precision: PrecisionLike = None
) -> Array: ...
@overload
def attend(
    scores: ArrayLike,
    value: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    normalizer: Literal["softmax"] = "softmax",
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
    normalizer: Literal["softmax"] = "softmax",
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
    normalizer: Literal["softmax"] = "softmax",
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
    bias: ArrayLike | None = None,
    scale: ArrayLike | None = None,
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
    bias: ArrayLike | None = None,
    scale: ArrayLike | None = None,
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
    bias: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    return_weights: bool,
    precision: PrecisionLike = None,
) -> Array | tuple[Array, Array]: ...
def mean_pooling(x: ArrayLike, mask: ArrayLike | None = None) -> Array: ...
def max_pooling(x: ArrayLike, mask: ArrayLike | None = None) -> Array: ...
def first_pooling(x: ArrayLike, mask: ArrayLike | None = None) -> Array: ...
def last_pooling(x: ArrayLike, mask: ArrayLike | None = None) -> Array: ...
def weighted_pooling(
    x: ArrayLike, weights: ArrayLike | None = None, mask: ArrayLike | None = None, *, precision: PrecisionLike = None
) -> Array: ...
@overload
def attention_pooling(
    x: ArrayLike,
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
    dropout_multiplier: ArrayLike | None = None,
    return_weights: Literal[False] = False,
    precision: PrecisionLike = None,
) -> Array: ...
@overload
def attention_pooling(
    x: ArrayLike,
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
    dropout_multiplier: ArrayLike | None = None,
    return_weights: Literal[True],
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
@overload
def attention_pooling(
    x: ArrayLike,
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
    dropout_multiplier: ArrayLike | None = None,
    return_weights: bool,
    precision: PrecisionLike = None,
) -> Array | tuple[Array, Array]: ...
@overload
def cross_attention_pooling(
    x: ArrayLike,
    y: ArrayLike,
    x_mask: ArrayLike | None = None,
    y_mask: ArrayLike | None = None,
    *,
    x_kernel: ArrayLike | None = None,
    y_kernel: ArrayLike | None = None,
    reduction: Literal["sum", "mean", "max"] = "sum",
    scale: ArrayLike = 1.0,
    return_weights: Literal[False] = False,
    precision: PrecisionLike = None,
) -> tuple[Array, Array]: ...
@overload
def cross_attention_pooling(
    x: ArrayLike,
    y: ArrayLike,
    x_mask: ArrayLike | None = None,
    y_mask: ArrayLike | None = None,
    *,
    x_kernel: ArrayLike | None = None,
    y_kernel: ArrayLike | None = None,
    reduction: Literal["sum", "mean", "max"] = "sum",
    scale: ArrayLike = 1.0,
    return_weights: Literal[True],
    precision: PrecisionLike = None,
) -> tuple[tuple[Array, Array], tuple[Array, Array]]: ...
@overload
def cross_attention_pooling(
    x: ArrayLike,
    y: ArrayLike,
    x_mask: ArrayLike | None = None,
    y_mask: ArrayLike | None = None,
    *,
    x_kernel: ArrayLike | None = None,
    y_kernel: ArrayLike | None = None,
    reduction: Literal["sum", "mean", "max"] = "sum",
    scale: ArrayLike = 1.0,
    return_weights: bool,
    precision: PrecisionLike = None,
) -> tuple[Array, Array] | tuple[tuple[Array, Array], tuple[Array, Array]]: ...
