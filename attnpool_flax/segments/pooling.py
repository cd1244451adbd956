"""Packed sequences, each by itself: the algebra of the dense poolings over packed tokens."""

from attnpool_flax.attention import from_heads
from attnpool_flax.call.compiled import compiled
from attnpool_flax.pooling.attention import attend_with_query
from attnpool_flax.pooling.multi_head import attended_folded, queries_of_heads
from attnpool_flax.pooling.plain import channel_average, weighted_average
from attnpool_flax.reductions import Packed, PackedChannels


@compiled(as_they_come=("x",))
def segment_mean_pooling(x, segment_ids, num_segments, mask=None, *, indices_are_sorted=False, implementation=None):
    """Twin of :func:`attnpool_ref.segment_mean_pooling`; numbers on a device that are out of range are padding.

    >>> segment_mean_pooling(jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0]), 2)
    Array([[2.],
           [5.]], dtype=float32)
    """
    return Packed(x, segment_ids, num_segments, mask, indices_are_sorted, implementation).mean()


@compiled(as_they_come=("x",))
def segment_max_pooling(x, segment_ids, num_segments, mask=None, *, indices_are_sorted=False, implementation=None):
    """Twin of :func:`attnpool_ref.segment_max_pooling`; numbers on a device that are out of range are padding.

    >>> segment_max_pooling(jnp.array([[1.0], [-5.0], [3.0]]), jnp.array([0, 1, 0]), 2)
    Array([[ 3.],
           [-5.]], dtype=float32)
    """
    return Packed(x, segment_ids, num_segments, mask, indices_are_sorted, implementation).max()


@compiled(as_they_come=("x",))
def segment_first_pooling(x, segment_ids, num_segments, mask=None, *, indices_are_sorted=False):
    """Twin of :func:`attnpool_ref.segment_first_pooling`; one token of each segment is read.

    >>> segment_first_pooling(jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0]), 2)
    Array([[1.],
           [5.]], dtype=float32)
    """
    return Packed(x, segment_ids, num_segments, mask, indices_are_sorted, "einsum").first()


@compiled(as_they_come=("x",))
def segment_last_pooling(x, segment_ids, num_segments, mask=None, *, indices_are_sorted=False):
    """Twin of :func:`attnpool_ref.segment_last_pooling`; one token of each segment is read.

    >>> segment_last_pooling(jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0]), 2)
    Array([[3.],
           [5.]], dtype=float32)
    """
    return Packed(x, segment_ids, num_segments, mask, indices_are_sorted, "einsum").last()


@compiled(as_they_come=("x",))
def segment_weighted_pooling(
    x, segment_ids, num_segments, weights=None, mask=None, *, indices_are_sorted=False, implementation=None
):
    """Twin of :func:`attnpool_ref.segment_weighted_pooling`; numbers on a device that are out of range are padding.

    >>> x, weights = jnp.array([[1.0], [5.0], [4.0]]), jnp.array([2.0, 3.0, 1.0])
    >>> segment_weighted_pooling(x, jnp.array([0, 1, 0]), 2, weights)
    Array([[2.],
           [5.]], dtype=float32)
    """
    if weights is not None and weights.ndim == x.ndim:
        return channel_average(PackedChannels(x, segment_ids, num_segments, mask, indices_are_sorted), weights)
    tokens = Packed(x, segment_ids, num_segments, mask, indices_are_sorted, implementation)
    return weighted_average(tokens, weights)


@compiled(as_they_come=("x",))
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
    bias=None,
    normalizer="softmax",
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
    pooled, weights = attend_with_query(tokens, query, *parameters, scale, dropout_multiplier, bias, normalizer)
    return (pooled, weights) if return_weights else pooled


@compiled(as_they_come=("x",))
def segment_multi_head_attention_pooling(
    x,
    segment_ids,
    num_segments,
    mask=None,
    *,
    query,
    query_kernel=None,
    key_kernel,
    value_kernel,
    out_kernel=None,
    query_bias=None,
    key_bias=None,
    value_bias=None,
    out_bias=None,
    scale=None,
    bias=None,
    normalizer="softmax",
    dropout_multiplier=None,
    indices_are_sorted=False,
    return_weights=False,
    implementation=None,
    precision=None,
):
    """Twin of :func:`attnpool_ref.segment_multi_head_attention_pooling`: no token is ever projected.

    Numbers on a device that are out of range are padding. With sigmoid weights, products are whole ones.

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
    tokens = Packed(x, segment_ids, num_segments, mask, indices_are_sorted, implementation, precision)
    queries = queries_of_heads(query, query_kernel, query_bias, scale, precision)
    kernels, biases = (key_kernel, value_kernel), (key_bias, value_bias)
    found, weights = attended_folded(tokens, queries, *kernels, *biases, dropout_multiplier, bias, normalizer)
    result = from_heads(found, out_kernel, out_bias, precision)
    return (result, weights) if return_weights else result
