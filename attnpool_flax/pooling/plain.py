"""Mean, maximum, mean-max, first, last and weighted pooling. Twin of :mod:`attnpool_ref.pooling.plain`."""

import jax.numpy as jnp

from attnpool_flax.call.compiled import compiled
from attnpool_flax.numerics.rounding import power_of_two


@compiled(tokens=("x",), as_they_come=("x",))
def mean_pooling(x, mask=None, *, lengths=None, axis_name=None):
    """Twin of :func:`attnpool_ref.mean_pooling`; tokens are counted exactly in every dtype.

    >>> mean_pooling(jnp.array([[1.0], [3.0], [99.0]]), jnp.array([True, True, False]))
    Array([2.], dtype=float32)

    Packed:

    >>> segment_mean_pooling(jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0]), 2)
    Array([[2.],
           [5.]], dtype=float32)
    """
    return x.mean()


@compiled(tokens=("x",), as_they_come=("x",))
def max_pooling(x, mask=None, *, lengths=None, axis_name=None):
    """Twin of :func:`attnpool_ref.max_pooling`.

    >>> max_pooling(jnp.array([[-1.0], [-3.0], [99.0]]), jnp.array([True, True, False]))
    Array([-1.], dtype=float32)

    Packed:

    >>> segment_max_pooling(jnp.array([[1.0], [-5.0], [3.0]]), jnp.array([0, 1, 0]), 2)
    Array([[ 3.],
           [-5.]], dtype=float32)
    """
    return x.max()


@compiled(tokens=("x",), as_they_come=("x",))
def first_pooling(x, mask=None, *, lengths=None, axis_name=None):
    """Twin of :func:`attnpool_ref.first_pooling`; only the first real token is read (on each device, over a mesh).

    >>> first_pooling(jnp.array([[99.0], [1.0], [2.0]]), jnp.array([False, True, True]))
    Array([1.], dtype=float32)

    Packed:
      One token of each segment is read.

    >>> segment_first_pooling(jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0]), 2)
    Array([[1.],
           [5.]], dtype=float32)
    """
    return x.end_token(last=False)


@compiled(tokens=("x",), as_they_come=("x",))
def last_pooling(x, mask=None, *, lengths=None, axis_name=None):
    """Twin of :func:`attnpool_ref.last_pooling`; only the last real token is read (on each device, over a mesh).

    >>> last_pooling(jnp.array([[1.0], [2.0], [99.0]]), jnp.array([True, True, False]))
    Array([2.], dtype=float32)

    Packed:
      One token of each segment is read.

    >>> segment_last_pooling(jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0]), 2)
    Array([[3.],
           [5.]], dtype=float32)
    """
    return x.end_token(last=True)


@compiled(tokens=("x",), as_they_come=("x",))
def weighted_pooling(x, weights=None, mask=None, *, lengths=None, axis_name=None, precision=None):
    """Twin of :func:`attnpool_ref.weighted_pooling`.

    >>> x, weights = jnp.array([[1.0], [5.0], [99.0]]), jnp.array([3.0, 1.0, 5.0])
    >>> weighted_pooling(x, weights, jnp.array([True, True, False]))
    Array([2.], dtype=float32)

    Packed:

    >>> x, weights = jnp.array([[1.0], [5.0], [4.0]]), jnp.array([2.0, 3.0, 1.0])
    >>> segment_weighted_pooling(x, jnp.array([0, 1, 0]), 2, weights)
    Array([[2.],
           [5.]], dtype=float32)
    """
    if weights is None:
        return x.mean()
    channels = x.channels()
    own = channels.fill_padding(channels.expand_to_features(weights))
    if x.axis_name is not None:  # one collective: the largest weight would take another
        own = own / channels.divisor
        total, pooled = channels.sum_over_tokens(own, own * channels.x)
        return jnp.where(total == 0, 0, pooled / jnp.where(total == 0, 1, total))
    (largest,) = channels.max_over_tokens(jnp.abs(own))
    own = own * channels.expand_to_tokens(1 / power_of_two(jnp.maximum(largest, 0)))  # the sum may overflow
    total = channels.expand_to_tokens(*channels.sum_over_tokens(own))
    own = jnp.where(total == 0, 0, own / jnp.where(total == 0, 1, total))
    if weights.ndim == x.x.ndim:  # of each channel
        return channels.sum_over_tokens(own * channels.x)[0]
    return x.weighted_sum_of(own[..., 0])


@compiled(tokens=("x",), as_they_come=("x",))
def mean_max_pooling(x, mask=None, *, lengths=None, axis_name=None):
    """Twin of :func:`attnpool_ref.mean_max_pooling`.

    >>> mean_max_pooling(jnp.array([[1.0], [3.0], [99.0]]), jnp.array([True, True, False]))
    Array([2., 3.], dtype=float32)

    Packed:

    >>> segment_mean_max_pooling(jnp.array([[1.0], [5.0], [3.0]]), jnp.array([0, 1, 0]), 2)
    Array([[2., 3.],
           [5., 5.]], dtype=float32)
    """
    return jnp.concatenate([x.mean(), x.max()], -1)
