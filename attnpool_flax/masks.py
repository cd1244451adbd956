"""Masks, which are True at real tokens. Twin of :mod:`attnpool_ref.masks`."""

import jax.numpy as jnp
import numpy as np

from attnpool_flax.call.compiled import compiled
from attnpool_flax.call.prepare import as_array, result_dtype
from attnpool_flax.numerics.prefix_mask import prefix
from attnpool_ref import contract
from attnpool_ref.contract.ragged import checked_sequences, padded_length, sequence_arrays


@compiled
def lengths_to_mask(lengths, max_length, *, side="right"):
    """Twin of :func:`attnpool_ref.lengths_to_mask`; lengths on a device are clipped, not checked.

    >>> lengths_to_mask(jnp.array([0, 2]), 3)
    Array([[False, False, False],
           [ True,  True, False]], dtype=bool)
    """
    real = prefix(lengths, max_length)
    return real if side == "right" else jnp.flip(real, -1)


@compiled
def spans_to_mask(spans, max_length, span_mask=None):
    """Twin of :func:`attnpool_ref.spans_to_mask`; ends on a device are not checked: positions out of range are ignored.

    >>> spans_to_mask(jnp.array([[0, 1], [2, 1]]), 3)
    Array([[ True,  True, False],
           [False, False, False]], dtype=bool)
    """
    slots = jnp.broadcast_to(jnp.arange(max_length, dtype=jnp.int32), (*spans.shape[:-1], max_length))
    inside = (slots >= spans[..., :1]) & (slots <= spans[..., 1:])
    return inside if span_mask is None else inside & span_mask[..., None]


@compiled
def token_positions(mask):
    """Twin of :func:`attnpool_ref.token_positions`.

    >>> token_positions(jnp.array([False, True, True, False, True]))
    Array([-1,  0,  1, -1,  2], dtype=int32)
    """
    return jnp.where(mask, jnp.cumsum(mask, -1) - 1, -1)


@contract.with_short_traceback
def pad(sequences, *, length=None, side="right"):
    """Twin of :func:`attnpool_ref.pad`.

    >>> x, mask = pad([np.array([[1.0], [2.0]]), np.array([[3.0]])])
    >>> mask
    Array([[ True,  True],
           [ True, False]], dtype=bool)
    """
    arrays = sequence_arrays("pad", sequences, as_array)
    dtype = result_dtype(checked_sequences("pad", arrays))
    length, side = padded_length("pad", arrays, length, side)
    rests = [length - len(array) for array in arrays]
    widths = [((0, rest) if side == "right" else (rest, 0), (0, 0)) for rest in rests]
    x = jnp.stack([jnp.pad(jnp.asarray(a, dtype), w) for a, w in zip(arrays, widths, strict=True)])
    places = np.arange(length)
    real = [places < len(a) if side == "right" else places >= length - len(a) for a in arrays]
    return x, jnp.asarray(np.stack(real))


def keep_real(x, mask):
    """Sets tokens [..., L, d] to 0 at padding, so that the values there reach no sum and no gradient."""
    return x if mask is None else jnp.where(mask[..., None], x, 0)


def seen_keys(mask):
    """Returns bool [..., m]: keys that at least one query of a mask over pairs [..., n, m] sees."""
    return None if mask is None else jnp.any(mask, -2)


def seeing_queries(mask):
    """Returns bool [..., n]: queries that see at least one key of a mask over pairs [..., n, m]."""
    return None if mask is None else jnp.any(mask, -1)
