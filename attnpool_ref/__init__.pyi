# Written by tools/make_stubs.py from the table and the signatures (`make docs`), not by hand.

from typing import Any, Final, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

__version__: Final[str]
__all__ = [
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
]

def lengths_to_mask(lengths: ArrayLike, max_length: int) -> NDArray[np.bool_]: ...
def masked_softmax(
    scores: ArrayLike, mask: ArrayLike | None = None, *, lengths: ArrayLike | None = None, axis: int = -1
) -> NDArray[Any]: ...
def l2_normalize(x: ArrayLike, *, axis: int = -1) -> NDArray[Any]: ...
def dot_score(query: ArrayLike, key: ArrayLike) -> NDArray[Any]: ...
def scaled_dot_score(query: ArrayLike, key: ArrayLike, *, scale: ArrayLike | None = None) -> NDArray[Any]: ...
@overload
def attend(
    scores: ArrayLike,
    value: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    normalizer: Literal["softmax"] = "softmax",
    dropout_multiplier: ArrayLike | None = None,
    return_weights: Literal[False] = False,
) -> NDArray[Any]: ...
@overload
def attend(
    scores: ArrayLike,
    value: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    normalizer: Literal["softmax"] = "softmax",
    dropout_multiplier: ArrayLike | None = None,
    return_weights: Literal[True],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def attend(
    scores: ArrayLike,
    value: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    normalizer: Literal["softmax"] = "softmax",
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
    bias: ArrayLike | None = None,
    scale: ArrayLike | None = None,
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
    bias: ArrayLike | None = None,
    scale: ArrayLike | None = None,
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
    bias: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    dropout_multiplier: ArrayLike | None = None,
    return_weights: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
def mean_pooling(x: ArrayLike, mask: ArrayLike | None = None) -> NDArray[Any]: ...
def max_pooling(x: ArrayLike, mask: ArrayLike | None = None) -> NDArray[Any]: ...
def first_pooling(x: ArrayLike, mask: ArrayLike | None = None) -> NDArray[Any]: ...
def last_pooling(x: ArrayLike, mask: ArrayLike | None = None) -> NDArray[Any]: ...
def weighted_pooling(x: ArrayLike, weights: ArrayLike | None = None, mask: ArrayLike | None = None) -> NDArray[Any]: ...
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
) -> NDArray[Any]: ...
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
) -> tuple[NDArray[Any], NDArray[Any]]: ...
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
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
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
) -> tuple[NDArray[Any], NDArray[Any]]: ...
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
) -> tuple[tuple[NDArray[Any], NDArray[Any]], tuple[NDArray[Any], NDArray[Any]]]: ...
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
) -> (
    tuple[NDArray[Any], NDArray[Any]] | tuple[tuple[NDArray[Any], NDArray[Any]], tuple[NDArray[Any], NDArray[Any]]]
): ...
