"""Mean, maximum, first, last and weighted pooling. Twins of :mod:`attnpool_ref.pooling.plain`: an absent mask costs nothing."""

import jax.numpy as jnp

from attnpool_flax.call.compiled import compiled
from attnpool_flax.numerics.rounding import power_of_two
from attnpool_flax.reductions import Dense, DenseChannels


@compiled(as_they_come=("x",))
def mean_pooling(x, mask=None, *, lengths=None, axis_name=None, implementation=None):
    """Twin of :func:`attnpool_ref.mean_pooling`; counts are exact in every dtype.

    >>> mean_pooling(jnp.array([[1.0], [3.0], [99.0]]), jnp.array([True, True, False]))
    Array([2.], dtype=float32)
    """
    return Dense(x, mask, implementation, axis_name=axis_name).mean()


@compiled(as_they_come=("x",))
def max_pooling(x, mask=None, *, lengths=None, axis_name=None, implementation=None):
    """Twin of :func:`attnpool_ref.max_pooling`.

    >>> max_pooling(jnp.array([[-1.0], [-3.0], [99.0]]), jnp.array([True, True, False]))
    Array([-1.], dtype=float32)
    """
    return Dense(x, mask, implementation, axis_name=axis_name).max()


@compiled(as_they_come=("x",))
def first_pooling(x, mask=None, *, lengths=None, axis_name=None):
    """Twin of :func:`attnpool_ref.first_pooling`; one token is read.

    >>> first_pooling(jnp.array([[99.0], [1.0], [2.0]]), jnp.array([False, True, True]))
    Array([1.], dtype=float32)
    """
    return _at_end(x, mask, axis_name, last=False)


@compiled(as_they_come=("x",))
def last_pooling(x, mask=None, *, lengths=None, axis_name=None):
    """Twin of :func:`attnpool_ref.last_pooling`; one token is read.

    >>> last_pooling(jnp.array([[1.0], [2.0], [99.0]]), jnp.array([True, True, False]))
    Array([2.], dtype=float32)
    """
    return _at_end(x, mask, axis_name, last=True)


def _at_end(x, mask, axis_name, last):
    """Returns the first or the last real token [..., d]; 0 where nothing is real. An x that is shared is not copied."""
    if x.shape[-2] == 0:
        return jnp.zeros_like(x, shape=(*x.shape[:-2], x.shape[-1]))
    if mask is None:
        position = jnp.full(x.shape[:-2], x.shape[-2] - 1 if last else 0)
        if axis_name is None:
            return x[..., -1 if last else 0, :]
    elif last:
        position = mask.shape[-1] - 1 - jnp.argmax(jnp.flip(mask, -1), -1)
    else:
        position = jnp.argmax(mask, -1)
    return Dense(x, mask, None, axis_name=axis_name).end_token(position, last)


@compiled(as_they_come=("x",))
def weighted_pooling(x, weights=None, mask=None, *, lengths=None, axis_name=None, implementation=None, precision=None):
    """Twin of :func:`attnpool_ref.weighted_pooling`.

    >>> x, weights = jnp.array([[1.0], [5.0], [99.0]]), jnp.array([3.0, 1.0, 5.0])
    >>> weighted_pooling(x, weights, jnp.array([True, True, False]))
    Array([2.], dtype=float32)
    """
    if weights is not None and weights.ndim == x.ndim:
        return channel_average(DenseChannels(x, mask, axis_name), weights)
    tokens = Dense(x, mask, implementation, precision, axis_name)
    if axis_name is not None and weights is not None:
        return tokens.weighted_average(tokens.fill_padding(weights))
    return weighted_average(tokens, weights)


def weighted_average(tokens, weights):
    """Averages under given weights, of tokens in any layout; uniform if None."""
    if weights is None:
        return tokens.mean()
    weights = tokens.fill_padding(weights)
    weights = weights / tokens.expand_to_tokens(
        power_of_two(tokens.max_over_tokens(jnp.abs(weights)))
    )  # the sum may overflow
    total = tokens.expand_to_tokens(tokens.sum_over_tokens(weights))
    return tokens.sum(jnp.where(total == 0, 0, weights / jnp.where(total == 0, 1, total)))


def channel_average(channels, weights):
    """Averages under given weights of each channel, of tokens in any layout."""
    weights = channels.fill_padding(weights)
    if channels.axis_name is not None:  # no device knows the largest weight of all: products with x must not overflow
        total, pooled = channels.sum_over_tokens(weights, weights * channels.x)
        return jnp.where(total == 0, 0, pooled / jnp.where(total == 0, 1, total))
    (largest,) = channels.max_over_tokens(jnp.abs(weights))
    weights = weights / channels.expand_to_tokens(power_of_two(jnp.maximum(largest, 0)))  # the sum may overflow
    (total,) = channels.sum_over_tokens(weights)
    total = channels.expand_to_tokens(total)
    return channels.sum_over_tokens(jnp.where(total == 0, 0, weights / jnp.where(total == 0, 1, total)) * channels.x)[0]
