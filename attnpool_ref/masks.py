"""Masks: True is a real token."""

import numpy as np

from attnpool_ref.definition import definition


@definition
def lengths_to_mask(lengths, max_length):
    r"""Marks the first ``lengths`` of ``max_length`` positions as real.

    .. math:: k_j = [j < \ell]

    Args:
      lengths: integer [...], each from 0 to ``max_length``.
      max_length: size of the new axis, a Python integer.

    Returns:
      bool [..., max_length].

    Raises:
      ValueError: a length is negative, beyond ``max_length`` or no integer.

    Source:
      ``sequence_mask`` in Zhang et al. (d2l), chapter Attention Mechanisms.

    >>> lengths_to_mask([0, 2], 3)
    array([[False, False, False],
           [ True,  True, False]])
    """
    return np.arange(max_length) < np.expand_dims(lengths, -1)
