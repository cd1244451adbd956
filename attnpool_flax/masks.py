"""Masks from lengths and from spans, and padding; masks are True at real tokens. Twin of :mod:`attnpool_ref.masks`."""

import jax.numpy as jnp
import numpy as np

from attnpool_flax.call.compiled import compiled
from attnpool_flax.call.prepare import as_array, result_dtype
from attnpool_flax.numerics.sizes import prefix
from attnpool_ref import contract
from attnpool_ref.contract.rowless import checked_sequences, padded_length, sequence_arrays


@compiled
def lengths_to_mask(lengths, max_length, *, side="right"):
    """Twin of :func:`attnpool_ref.lengths_to_mask`.

    Lengths in a JAX array are not checked, but clipped to 0 and ``max_length``.

    >>> lengths_to_mask(jnp.array([0, 2]), 3)
    Array([[False, False, False],
           [ True,  True, False]], dtype=bool)
    """
    real = prefix(lengths, max_length)
    return real if side == "right" else jnp.flip(real, -1)


@compiled
def spans_to_mask(spans, max_length, span_mask=None):
    """Twin of :func:`attnpool_ref.spans_to_mask`.

    Spans in a JAX array are not checked: their positions out of range are ignored.

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
    """Twin of :func:`attnpool_ref.pad`: pads sequences to one length, and returns them with their mask.

    Args:
      sequences: a list of B arrays [L_i, d], of NumPy or JAX: sequence i has L_i tokens of width d.
      length: the common length L, an integer; None is the length of the longest sequence.
      side: "right" or "left": the side of the padding, whose values are 0.

    Returns:
      JAX arrays (x [B, L, d], mask bool [B, L], True at real tokens). x has the promoted dtype of floating sequences
      (float32 for float64 without x64); if all hold integers, JAX's default floating dtype.

    Raises:
      ValueError: the list is empty, an element is complex or a masked array, does not have two axes or has the width 0,
        two elements differ in width, one is longer than ``length``, ``length`` is not an integer of at least 0, or the
        side is unknown.
      TypeError: ``sequences`` is text or not iterable, or an element is not an array of numbers.

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


def seen_keys(mask):
    """Returns bool [..., m]: keys that at least one query of a mask over pairs [..., n, m] sees; None for None."""
    return None if mask is None else jnp.any(mask, -2)


def seeing_queries(mask):
    """Returns bool [..., n]: queries that see at least one key of a mask over pairs [..., n, m]; None for None."""
    return None if mask is None else jnp.any(mask, -1)
