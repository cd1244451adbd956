"""Masks: True is a real token. Twin of :mod:`attnpool_ref.masks`."""

import jax.numpy as jnp

from attnpool_flax.implementation import implementation
from attnpool_flax.lengths import prefix


@implementation
def lengths_to_mask(lengths, max_length):
    """Twin of :func:`attnpool_ref.lengths_to_mask`; lengths on a device are clipped, not checked.

    >>> lengths_to_mask(jnp.array([0, 2]), 3)
    Array([[False, False, False],
           [ True,  True, False]], dtype=bool)
    """
    return prefix(lengths, max_length)


def keep_real(x, mask):
    """Tokens [..., L, d] with padding [..., L] replaced by 0, so that nothing in it can reach a sum or a gradient."""
    return x if mask is None else jnp.where(mask[..., None], x, 0)


def seen_keys(mask):
    """[..., m]: keys that some query of a mask over pairs [..., n, m] sees."""
    return None if mask is None else jnp.any(mask, -2)


def seeing_queries(mask):
    """[..., n]: queries that see some key of a mask over pairs [..., n, m]."""
    return None if mask is None else jnp.any(mask, -1)
