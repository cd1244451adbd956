"""Scores. Twin of :mod:`attnpool_ref.scores`."""

import jax.numpy as jnp

from attnpool_flax.implementation import implementation


@implementation
def dot_score(query, key, *, precision=None):
    """Twin of :func:`attnpool_ref.dot_score`."""
    return dot(query, key, precision)


def dot(query, key, precision):
    """[..., n, d] and [..., m, d] to [..., n, m]; either may be shared."""
    return jnp.einsum("...nd,...md->...nm", query, key, precision=precision)


@implementation
def scaled_dot_score(query, key, *, scale=None, precision=None):
    """Twin of :func:`attnpool_ref.scaled_dot_score`."""
    return scaled_dot(query, key, scale, precision)


def scaled_dot(query, key, scale, precision):
    """The scaled products; the scale goes to the queries, which are fewer than the scores."""
    return dot(query * (query.shape[-1] ** -0.5 if scale is None else scale), key, precision)
