"""Sums and generalised means of packed sequences, each by itself: the algebra of the dense poolings over packed tokens."""

from attnpool_flax.call.compiled import compiled
from attnpool_flax.means import logsumexp, noisy_or, power_mean, softmax
from attnpool_flax.reductions import Packed, PackedChannels


@compiled(as_they_come=("x",))
def segment_sum_pooling(x, segment_ids, num_segments, mask=None, *, indices_are_sorted=False, implementation=None):
    """Twin of :func:`attnpool_ref.segment_sum_pooling`; numbers on a device that are out of range are padding.

    >>> segment_sum_pooling(jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0]), 2)
    Array([[4.],
           [5.]], dtype=float32)
    """
    return Packed(x, segment_ids, num_segments, mask, indices_are_sorted, implementation).sum()


@compiled(as_they_come=("x",))
def segment_min_pooling(x, segment_ids, num_segments, mask=None, *, indices_are_sorted=False, implementation=None):
    """Twin of :func:`attnpool_ref.segment_min_pooling`; numbers on a device that are out of range are padding.

    >>> segment_min_pooling(jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0]), 2)
    Array([[1.],
           [5.]], dtype=float32)
    """
    return Packed(x, segment_ids, num_segments, mask, indices_are_sorted, implementation).min()


@compiled(as_they_come=("x",))
def segment_noisy_or_pooling(x, segment_ids, num_segments, mask=None, *, indices_are_sorted=False):
    """Twin of :func:`attnpool_ref.segment_noisy_or_pooling`; the tokens are sorted by their segments.

    Numbers on a device that are out of range are padding.

    >>> segment_noisy_or_pooling(jnp.array([[0.5], [0.25], [0.5]]), jnp.array([0, 1, 0]), 2)
    Array([[0.75],
           [0.25]], dtype=float32)
    """
    return noisy_or(PackedChannels(x, segment_ids, num_segments, mask, indices_are_sorted))


@compiled(as_they_come=("x",))
def segment_power_mean_pooling(
    x, segment_ids, num_segments, mask=None, p=3.0, *, epsilon=1e-6, indices_are_sorted=False
):
    """Twin of :func:`attnpool_ref.segment_power_mean_pooling`; numbers on a device that are out of range are padding.

    >>> segment_power_mean_pooling(jnp.array([[2.0], [5.0], [2.0]]), jnp.array([0, 1, 0]), 2)
    Array([[2.],
           [5.]], dtype=float32)
    """
    return power_mean(PackedChannels(x, segment_ids, num_segments, mask, indices_are_sorted), p, epsilon)


@compiled(as_they_come=("x",))
def segment_logsumexp_pooling(
    x, segment_ids, num_segments, mask=None, scale=1.0, *, mean=True, indices_are_sorted=False
):
    """Twin of :func:`attnpool_ref.segment_logsumexp_pooling`; numbers on a device that are out of range are padding.

    >>> segment_logsumexp_pooling(jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0]), 2, scale=0.0)
    Array([[2.],
           [5.]], dtype=float32)
    """
    return logsumexp(PackedChannels(x, segment_ids, num_segments, mask, indices_are_sorted), scale, mean)


@compiled(as_they_come=("x",))
def segment_softmax_pooling(
    x, segment_ids, num_segments, mask=None, scale=1.0, *, indices_are_sorted=False, return_weights=False
):
    """Twin of :func:`attnpool_ref.segment_softmax_pooling`; numbers on a device that are out of range are padding.

    >>> segment_softmax_pooling(jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0]), 2, scale=0.0)
    Array([[2.],
           [5.]], dtype=float32)
    """
    pooled, weights = softmax(PackedChannels(x, segment_ids, num_segments, mask, indices_are_sorted), scale)
    return (pooled, weights) if return_weights else pooled
