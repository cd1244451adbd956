"""Masks, which are True at real tokens and False at padding: conversion from lengths and spans, positions, padding."""

import numpy as np

from attnpool_ref import contract
from attnpool_ref.contract.definition import as_array, definition
from attnpool_ref.contract.rowless import checked_sequences, padded_length, sequence_arrays


@definition
def lengths_to_mask(lengths, max_length, *, side="right"):
    r"""Converts lengths to a mask: the first positions are real, or the last ones with ``side="left"``.

    .. math:: k_j = [j < \ell], \qquad \text{left:}\ k_j = [L - 1 - j < \ell]

    :math:`k_j` is the mask at position :math:`j`, and :math:`\ell` a length. :math:`[\cdot]` is 1 if the condition
    holds, else 0. The first formula is for padding on the right, the second for padding on the left.

    Args:
      lengths: integer [...], :math:`\ell`: numbers of real tokens, each from 0 to ``max_length``.
      max_length: :math:`L`, the size of the new axis, a Python integer.
      side: "right" or "left": the side of the padding.

    Returns:
      bool [..., max_length]: True at real tokens.

    Raises:
      ValueError: if a length is not an integer, or is negative or larger than ``max_length`` (``attnpool_flax`` clips
        lengths in JAX arrays), or if the side is unknown.

    Source:
      ``sequence_mask`` in Zhang et al. (d2l), chapter Attention Mechanisms.

    >>> lengths_to_mask([0, 2], 3)
    array([[False, False, False],
           [ True,  True, False]])
    >>> lengths_to_mask(2, 3, side="left")
    array([False,  True,  True])
    """
    position = np.arange(max_length)
    if side == "left":
        position = max_length - 1 - position
    return position < np.expand_dims(lengths, -1)


@definition
def spans_to_mask(spans, max_length, span_mask=None):
    r"""Converts spans to masks, one per span: True from its first to its last position, both included.

    .. math:: k_{sl} = [a_s \le l \le b_s]

    :math:`k_{sl}` is the mask of span :math:`s` at position :math:`l`. A span whose end is before its beginning is
    empty. Positions count padding too.

    Args:
      spans: integer [..., S, 2]: first and last position :math:`a, b` of each of S spans, from 0 to ``max_length`` - 1.
      max_length: size of the new axis, a Python integer.
      span_mask: bool, broadcastable to [..., S]: True at real spans; None if all are real. The mask of any other span
        is all False, and its ends are ignored.

    Returns:
      bool [..., S, max_length].

    Raises:
      ValueError: if the spans are not integers, if ``span_mask`` has a float dtype, or if an end of a real span is
        negative or larger than ``max_length`` - 1 (``attnpool_flax`` ignores positions out of range in JAX arrays).

    Source:
      Gardner et al. 2018 (AllenNLP), ``batched_span_select``, whose ends are inclusive.

    >>> spans_to_mask([[0, 1], [2, 1]], 3)
    array([[ True,  True, False],
           [False, False, False]])
    """
    first, last, places = spans[..., :1], spans[..., 1:], np.arange(max_length)
    return (first <= places) & (places <= last) & span_mask[..., None]


@definition
def token_positions(mask):
    r"""Numbers the real tokens of each sequence from 0 on; padding gets -1.

    .. math:: p_l = \sum_{i < l} k_i \text{ where } k_l, \text{ else } -1

    :math:`p_l` is the number of token :math:`l`, and :math:`k_l` is 1 if it is real, 0 if it is padding. Removing a
    padded token changes no number of a real token, on whichever side the padding is.

    Args:
      mask: bool [..., L]: True at real tokens, False at padding.

    Returns:
      integer [..., L]; in JAX in its default integer dtype.

    Raises:
      ValueError: if the mask has a float dtype.

    Source:
      Muennighoff 2022 (SGPT), section 3.2, whose position weights are these positions plus 1.

    >>> token_positions([False, True, True, False, True])
    array([-1,  0,  1, -1,  2])
    """
    return np.where(mask, np.cumsum(mask, -1) - 1, -1)


@contract.with_short_traceback
def pad(sequences, *, length=None, side="right"):
    """Pads sequences to one length, and returns them with their mask.

    Args:
      sequences: a list of B arrays [L_i, d]: sequence i has L_i tokens of width d, or none.
      length: the common length L, an integer; None is the length of the longest sequence.
      side: "right" or "left": the side of the padding, whose values are 0.

    Returns:
      (x [B, L, d], mask bool [B, L], True at real tokens). x has the widest floating dtype of the
      sequences; if all hold integers, float64, or in JAX its default floating dtype.

    Raises:
      ValueError: if the list is empty, if an element does not have two axes, if the widths differ or are 0, if an
        element is longer than ``length``, or if the side is unknown.
      TypeError: if ``sequences`` is text or not iterable, or if an element is not an array of numbers.

    >>> pad([[[1.0], [2.0]], [[3.0]]])
    (array([[[1.],
            [2.]],
    <BLANKLINE>
           [[3.],
            [0.]]]), array([[ True,  True],
           [ True, False]]))
    """
    arrays = sequence_arrays("pad", sequences, as_array)
    dtype = checked_sequences("pad", arrays) or np.dtype(np.float64)
    length, side = padded_length("pad", arrays, length, side)
    x = np.zeros((len(arrays), length, arrays[0].shape[1]), dtype)
    mask = np.zeros((len(arrays), length), bool)
    for i, array in enumerate(arrays):
        own = slice(0, len(array)) if side == "right" else slice(length - len(array), length)
        x[i, own], mask[i, own] = array, True
    return x, mask


def real_by_length(lengths, shape, axis):
    """Returns a mask of this shape, True below the lengths along ``axis``; lengths have the first of the other axes."""
    mask = lengths_to_mask.body(lengths, shape[axis])
    others = mask.shape[:-1] + (1,) * (len(shape) - mask.ndim) + mask.shape[-1:]
    return np.broadcast_to(np.moveaxis(mask.reshape(others), -1, axis), shape)
