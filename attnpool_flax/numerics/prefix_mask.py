"""Masks from lengths."""

import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.sizes import as_limit


def prefix(lengths, size):
    """Returns bool [..., size], True at the first ``lengths`` [...] positions; lengths are clipped to 0 and size."""
    own = lengths.dtype.type  # clip in their own dtype, which may be narrower or wider than int32
    lengths = lax.clamp(own(0), lengths, as_limit(size, own)).astype(jnp.int32)
    positions = lax.broadcasted_iota(jnp.int32, (*lengths.shape, size), lengths.ndim)
    return positions < jnp.expand_dims(lengths, -1)
