"""Masks: True is a real token."""

import numpy as np

from attnpool_ref import contract
from attnpool_ref.contract.definition import as_array, definition
from attnpool_ref.contract.ragged import checked_sequences, padded_length, sequence_arrays


@definition
def lengths_to_mask(lengths, max_length, *, side="right"):
    r"""Converts lengths to a mask: the first positions are real, or with ``side="left"`` the last.

    .. math:: k_j = [j < \ell], \qquad \text{left:}\ k_j = [L - 1 - j < \ell]

    Args:
      lengths: integer [...], each from 0 to ``max_length``.
      max_length: :math:`L`, the size of the new axis, a Python integer.
      side: "right" or "left", where the padding is.

    Returns:
      bool [..., max_length].

    Raises:
      ValueError: a length is negative, beyond ``max_length`` or no integer; another side.

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
    r"""Converts spans to masks: one per span, both ends included.

    .. math:: k_{sl} = [a_s \le l \le b_s]

    A span whose end is before its beginning is empty. Both ends are indices of positions, padding included.

    Args:
      spans: integer [..., S, 2], first and last position :math:`a, b` of each span, from 0 to ``max_length`` - 1.
      max_length: size of the new axis, a Python integer.
      span_mask: bool, broadcastable to [..., S], True = real; the mask of any other span is all False, its ends are
        ignored.

    Returns:
      bool [..., S, max_length].

    Raises:
      ValueError: an end of a real span is negative, beyond the last slot or no integer.

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
    r"""Returns each real token's position among the real ones, from 0, and -1 at padding.

    .. math:: p_l = \sum_{i < l} k_i \text{ where } k_l, \text{ else } -1

    Removing a padded token changes no position of a real token, on whichever side the padding is.

    Args:
      mask: bool [..., L], True = real.

    Returns:
      integer [..., L]; in JAX in its default integer dtype.

    Raises:
      ValueError: a float mask.

    Source:
      Muennighoff 2022 (SGPT), section 3.2, whose position weights are these positions plus 1.

    >>> token_positions([False, True, True, False, True])
    array([-1,  0,  1, -1,  2])
    """
    return np.where(mask, np.cumsum(mask, -1) - 1, -1)


@contract.with_short_traceback
def pad(sequences, *, length=None, side="right"):
    """Pads sequences to one length, and returns the mask.

    Args:
      sequences: a list of [L_i, d].
      length: the common length, that of the longest sequence if None.
      side: "right" or "left", the side of the padding, whose values are 0.

    Returns:
      (x [B, L, d], mask bool [B, L]). x has the widest floating dtype of the sequences.

    Raises:
      ValueError: the list is empty, two sequences disagree on the width, or one is longer than ``length``.
      TypeError: something that is no array of numbers.

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
