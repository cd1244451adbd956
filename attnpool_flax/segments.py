"""Packed sequences. Twin of :mod:`attnpool_ref.segments`: the algebra of the dense poolings over packed tokens."""

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from attnpool_flax.attention import from_heads
from attnpool_flax.implementation import as_array, implementation, result_dtype
from attnpool_flax.pairs import cross_attention
from attnpool_flax.pooling import attended_by_heads, attention, fold_queries, weighted_average
from attnpool_flax.reductions import Packed
from attnpool_ref.sequences import checked_packed, checked_sequences, sequence_arrays


@implementation(as_they_come=("x",))
def segment_mean_pooling(x, segment_ids, num_segments, mask=None, *, indices_are_sorted=False, implementation=None):
    """Twin of :func:`attnpool_ref.segment_mean_pooling`; numbers on a device that are out of range are padding.

    >>> segment_mean_pooling(jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0]), 2)
    Array([[2.],
           [5.]], dtype=float32)
    """
    return Packed(x, segment_ids, num_segments, mask, indices_are_sorted, implementation).mean()


@implementation(as_they_come=("x",))
def segment_max_pooling(x, segment_ids, num_segments, mask=None, *, indices_are_sorted=False, implementation=None):
    """Twin of :func:`attnpool_ref.segment_max_pooling`; numbers on a device that are out of range are padding.

    >>> segment_max_pooling(jnp.array([[1.0], [-5.0], [3.0]]), jnp.array([0, 1, 0]), 2)
    Array([[ 3.],
           [-5.]], dtype=float32)
    """
    return Packed(x, segment_ids, num_segments, mask, indices_are_sorted, implementation).largest()


@implementation(as_they_come=("x",))
def segment_first_pooling(x, segment_ids, num_segments, mask=None, *, indices_are_sorted=False):
    """Twin of :func:`attnpool_ref.segment_first_pooling`; one token of each segment is read.

    >>> segment_first_pooling(jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0]), 2)
    Array([[1.],
           [5.]], dtype=float32)
    """
    return Packed(x, segment_ids, num_segments, mask, indices_are_sorted, "einsum").first()


@implementation(as_they_come=("x",))
def segment_last_pooling(x, segment_ids, num_segments, mask=None, *, indices_are_sorted=False):
    """Twin of :func:`attnpool_ref.segment_last_pooling`; one token of each segment is read.

    >>> segment_last_pooling(jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0]), 2)
    Array([[3.],
           [5.]], dtype=float32)
    """
    return Packed(x, segment_ids, num_segments, mask, indices_are_sorted, "einsum").last()


@implementation(as_they_come=("x",))
def segment_weighted_pooling(
    x, segment_ids, num_segments, weights=None, mask=None, *, indices_are_sorted=False, implementation=None
):
    """Twin of :func:`attnpool_ref.segment_weighted_pooling`; numbers on a device that are out of range are padding.

    >>> x, weights = jnp.array([[1.0], [5.0], [4.0]]), jnp.array([2.0, 3.0, 1.0])
    >>> segment_weighted_pooling(x, jnp.array([0, 1, 0]), 2, weights)
    Array([[2.],
           [5.]], dtype=float32)
    """
    return weighted_average(Packed(x, segment_ids, num_segments, mask, indices_are_sorted, implementation), weights)


@implementation(as_they_come=("x",))
def segment_attention_pooling(
    x,
    segment_ids,
    num_segments,
    mask=None,
    query=None,
    *,
    query_kernel=None,
    key_kernel=None,
    normalize_query=False,
    query_norm_scale=None,
    query_norm_bias=None,
    epsilon=1e-6,
    scale=None,
    dropout_multiplier=None,
    indices_are_sorted=False,
    return_weights=False,
    implementation=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.segment_attention_pooling`: no [num_segments, N] matrix, no keys.

    Numbers on a device that are out of range are padding.

    >>> x, query = jnp.array([[1.0, 0.0], [9.0, 9.0], [3.0, 0.0]]), jnp.array([0.0, 1.0])
    >>> segment_attention_pooling(x, jnp.array([0, 1, 0]), 2, query=query, return_weights=True)
    (Array([[2., 0.],
           [9., 9.]], dtype=float32), Array([0.5, 1. , 0.5], dtype=float32))
    """
    parameters = query_kernel, key_kernel, (query_norm_scale, query_norm_bias, epsilon) if normalize_query else None
    tokens = Packed(x, segment_ids, num_segments, mask, indices_are_sorted, implementation, precision)
    pooled, weights = attention(tokens, query, *parameters, scale, dropout_multiplier)
    return (pooled, weights) if return_weights else pooled


@implementation(as_they_come=("x",))
def segment_multi_head_attention_pooling(
    x,
    segment_ids,
    num_segments,
    mask=None,
    *,
    query,
    query_kernel,
    key_kernel,
    value_kernel,
    out_kernel,
    query_bias=None,
    key_bias=None,
    value_bias=None,
    out_bias=None,
    dropout_multiplier=None,
    indices_are_sorted=False,
    return_weights=False,
    implementation=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.segment_multi_head_attention_pooling`: no token is ever projected.

    Numbers on a device that are out of range are padding.

    >>> kernel = jnp.eye(2).reshape(2, 2, 1)
    >>> segment_multi_head_attention_pooling(
    ...     jnp.array([[1.0, 2.0], [9.0, 9.0], [3.0, 4.0]]),
    ...     jnp.array([0, 1, 0]),
    ...     2,
    ...     query=jnp.array([[0.0, 0.0]]),
    ...     query_kernel=kernel,
    ...     key_kernel=kernel,
    ...     value_kernel=kernel,
    ...     out_kernel=kernel.reshape(2, 1, 2),
    ... )
    Array([[[2., 3.]],
    <BLANKLINE>
           [[9., 9.]]], dtype=float32)
    """
    del key_bias  # it cancels
    tokens = Packed(x, segment_ids, num_segments, mask, indices_are_sorted, implementation, precision)
    queries = fold_queries(query, query_kernel, key_kernel, query_bias, precision)
    attended, weights = attended_by_heads(tokens, queries, value_kernel, value_bias, dropout_multiplier)
    result = from_heads(attended, out_kernel, out_bias, precision)
    return (result, weights) if return_weights else result


@implementation(as_they_come=("x", "y"))
def segment_cross_attention_pooling(
    x,
    x_segment_ids,
    y,
    y_segment_ids,
    num_segments,
    x_mask=None,
    y_mask=None,
    *,
    x_kernel=None,
    y_kernel=None,
    reduction="sum",
    scale=1.0,
    indices_are_sorted=False,
    return_weights=False,
    implementation=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.segment_cross_attention_pooling`: O((N + M) d), no matrix over pairs.

    Numbers on a device that are out of range are padding.

    >>> x, y = jnp.array([[2.0, 0.0], [2.0, 4.0]]), jnp.array([[1.0, 0.0]])
    >>> segment_cross_attention_pooling(x, jnp.array([0, 0]), y, jnp.array([0]), 1)
    (Array([[2., 2.]], dtype=float32), Array([[1., 0.]], dtype=float32))
    """
    settled = indices_are_sorted, implementation, precision
    xs, ys = (
        Packed(x, x_segment_ids, num_segments, x_mask, *settled),
        Packed(y, y_segment_ids, num_segments, y_mask, *settled),
    )
    pooled, weights = cross_attention(xs, ys, x_kernel, y_kernel, reduction, scale)
    return (pooled, weights) if return_weights else pooled


def pack(sequences):
    """Twin of :func:`attnpool_ref.pack`.

    >>> pack([np.array([[1.0], [2.0]]), np.array([[3.0]])])
    (Array([[1.],
           [2.],
           [3.]], dtype=float32), Array([0, 0, 1], dtype=int32), 2)
    """
    arrays = sequence_arrays("pack", sequences, as_array)
    dtype = result_dtype(checked_sequences("pack", arrays))
    numbers = np.repeat(np.arange(len(arrays), dtype=np.int32), [len(array) for array in arrays])
    x = jnp.concatenate([jnp.asarray(array, dtype) for array in arrays])
    return x, jnp.asarray(numbers), len(arrays)


def unpack(x, segment_ids, num_segments):
    """Twin of :func:`attnpool_ref.unpack`; the numbers are read wherever they lie, so that no ``jit`` can hold it.

    >>> unpack(jnp.array([[1.0], [2.0], [3.0]]), jnp.array([0, 1, 0]), 2)
    [Array([[1.],
           [3.]], dtype=float32), Array([[2.]], dtype=float32)]
    """
    x, segment_ids = as_array("unpack", "x", x), as_array("unpack", "segment_ids", segment_ids)
    if isinstance(segment_ids, Tracer):
        raise ValueError("unpack: `segment_ids` is traced, needs numbers whose values are known, outside of `jit`")
    num_segments = checked_packed(x, np.asarray(segment_ids), num_segments)
    x, numbers = jnp.asarray(x), np.asarray(segment_ids)
    return [x[np.flatnonzero(numbers == s)] for s in range(num_segments)]
