"""Statistics of packed sequences, each by itself: the algebra of the dense poolings over packed tokens."""

import jax.numpy as jnp

from attnpool_flax.call.compiled import compiled
from attnpool_flax.reductions import PackedChannels
from attnpool_flax.statistics import attentive_statistics, statistics


@compiled(as_they_come=("x",))
def segment_std_pooling(
    x, segment_ids, num_segments, mask=None, weights=None, *, ddof=0, epsilon=0.0, indices_are_sorted=False
):
    """Twin of :func:`attnpool_ref.segment_std_pooling`; numbers on a device that are out of range are padding.

    >>> segment_std_pooling(jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0]), 2)
    Array([[1.],
           [0.]], dtype=float32)
    """
    return statistics(PackedChannels(x, segment_ids, num_segments, mask, indices_are_sorted), weights, ddof, epsilon)[1]


@compiled(as_they_come=("x",))
def segment_statistics_pooling(
    x, segment_ids, num_segments, mask=None, weights=None, *, ddof=0, epsilon=0.0, indices_are_sorted=False
):
    """Twin of :func:`attnpool_ref.segment_statistics_pooling`; numbers on a device that are out of range are padding.

    >>> segment_statistics_pooling(jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0]), 2)
    Array([[2., 1.],
           [5., 0.]], dtype=float32)
    """
    channels = PackedChannels(x, segment_ids, num_segments, mask, indices_are_sorted)
    return jnp.concatenate(statistics(channels, weights, ddof, epsilon), -1)


@compiled(as_they_come=("x",))
def segment_attentive_statistics_pooling(
    x,
    segment_ids,
    num_segments,
    mask=None,
    *,
    kernel,
    out_kernel,
    bias=None,
    out_bias=None,
    norm_scale=None,
    norm_bias=None,
    activation="tanh",
    global_context=False,
    context_ddof=0,
    epsilon=0.0,
    indices_are_sorted=False,
    return_weights=False,
    precision=None,
):
    """Twin of :func:`attnpool_ref.segment_attentive_statistics_pooling`: the context is one vector for each segment.

    Numbers on a device that are out of range are padding.

    >>> x, ids = jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0])
    >>> kernels = {"kernel": jnp.array([[0.0]]), "out_kernel": jnp.array([1.0])}
    >>> segment_attentive_statistics_pooling(x, ids, 2, **kernels)
    Array([[2., 1.],
           [5., 0.]], dtype=float32)
    """
    channels = PackedChannels(x, segment_ids, num_segments, mask, indices_are_sorted)
    context = (context_ddof, epsilon) if global_context else None
    network = kernel, bias, norm_scale, norm_bias, activation, out_kernel
    pooled, weights = attentive_statistics(channels, network, context, epsilon, precision)
    return (pooled, weights) if return_weights else pooled
