"""What a type checker makes of attnpool_ref: read by `make lint`, never run."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import attnpool_ref as ap

x = np.ones((2, 3, 4), np.float32)
y = np.ones((2, 5, 4), np.float32)
asked: bool = bool(x.sum())

assert_type(ap.lengths_to_mask([1, 2], 3), NDArray[np.bool_])
assert_type(ap.mean_pooling(x), NDArray[Any])
assert_type(ap.mean_pooling([[1.0]], [True]), NDArray[Any])
assert_type(ap.attention_pooling(x), NDArray[Any])
assert_type(ap.attention_pooling(x, return_weights=False), NDArray[Any])
assert_type(ap.attention_pooling(x, return_weights=True), tuple[NDArray[Any], NDArray[Any]])
assert_type(ap.attention_pooling(x, return_weights=asked), NDArray[Any] | tuple[NDArray[Any], NDArray[Any]])
assert_type(ap.cross_attention_pooling(x, y), tuple[NDArray[Any], NDArray[Any]])
assert_type(
    ap.cross_attention_pooling(x, y, return_weights=True),
    tuple[tuple[NDArray[Any], NDArray[Any]], tuple[NDArray[Any], NDArray[Any]]],
)
assert_type(ap.__version__, str)

ap.cross_attention_pooling(x, y, reduction="median")  # pyright: ignore[reportArgumentType]
ap.mean_pooling(x, maks=None)  # pyright: ignore[reportCallIssue]
ap.lengths_to_mask([1], 2.0)  # pyright: ignore[reportArgumentType]
