"""Packed sequences: all tokens in one array [N, d], with the number of each token's segment.

:func:`pack` and :func:`unpack` convert between a list of sequences and packed tokens. Each other function applies a
dense function to one segment after another. :func:`each_segment` derives them, one for each row of the table whose
``layouts`` contain "segments". Only :func:`segment_cross_attention_pooling` is written by hand, because it takes two
packed sequences; it also lacks the reduction "max".
"""

from importlib import import_module

import numpy as np

from attnpool_ref import contract, pairs, table
from attnpool_ref.contract.definition import as_array, definition
from attnpool_ref.contract.packed_definition import each_segment
from attnpool_ref.contract.rowless import checked_packed, checked_sequences, packed_sizes, sequence_arrays
from attnpool_ref.primitives import members

for _row in table.VARIANTS:
    if "segments" in _row.layouts and "y" not in _row.arguments:
        _dense = getattr(import_module(f"attnpool_ref.{_row.family}"), _row.name)
        globals()[f"segment_{_row.name}"] = each_segment(_dense)

__test__ = {name: made.__doc__ for name, made in list(vars().items()) if name.startswith("segment_")}
"""Holds the examples of the derived functions for doctest."""


@definition
def segment_cross_attention_pooling(
    x,
    x_segment_ids,
    y,
    y_segment_ids,
    num_segments,
    x_mask=None,
    y_mask=None,
    *,
    x_kernel=None,
    y_kernel=None,
    reduction="sum",
    scale=1.0,
    x_dropout_multiplier=None,
    y_dropout_multiplier=None,
    indices_are_sorted=False,
    return_weights=False,
):
    r"""Applies cross-attention pooling to segment s of x and segment s of y, for every s (cross pooling, SimKGC).

    .. math:: o^x_s = \sum_{i \in I_s} w_i x_i, \qquad w = \mathrm{softmax}_{i \in I_s}\big(\mathrm{reduce}_{j \in J_s}\,
              \alpha\, (x_i W_x) \cdot (y_j W_y)\big)

    :math:`I_s` and :math:`J_s` are the real tokens of segment :math:`s` of x and of y; reduce is the reduction.
    :math:`o^y_s` is defined with x and y exchanged. If only segment :math:`s` of y is empty, :math:`o^x_s` is the mean
    of the real tokens of segment :math:`s` of x, and vice versa; the result of an empty segment itself is 0.
    ``reduction="max"`` is an error, because it would compare every pair of tokens.

    Args:
      x: [N, d] tokens of all segments of x, N tokens of width d.
      x_segment_ids: int [N], the segment number of each token of x, from 0 to ``num_segments`` - 1, in any order.
      y: [M, e] tokens of all segments of y, M tokens of width e; e = d without kernels.
      y_segment_ids: int [M], the segment number of each token of y, in the same range, in any order.
      num_segments: the number of segments, an integer.
      x_mask: bool, broadcastable to [N]: True at real tokens, False at padding; None if all are real.
      y_mask: bool, broadcastable to [M]: True at real tokens, False at padding; None if all are real.
        Exchanged masks of the same shape are not detected.
      x_kernel: [d, c], :math:`W_x`, projects x to width c, only for the scores; or None.
      y_kernel: [e, c], :math:`W_y`, projects y to width c, only for the scores; or None.
      reduction: "sum" or "mean" of the scores over the tokens of the other sequence.
      scale: :math:`\alpha`, a number.
      x_dropout_multiplier: broadcastable to [N] or None; dropout factors of the weights of x, 0 or ``1/(1 - rate)``.
      y_dropout_multiplier: broadcastable to [M] or None; dropout factors of the weights of y.
      indices_are_sorted: True if the segment numbers of x and of y never decrease, those of padding included: faster in
        JAX, but not checked; if they do decrease, the result in JAX may be wrong.
      return_weights: also return both weights, before dropout.

    Returns:
      (x_pooled [num_segments, d], y_pooled [num_segments, e]), or with ``return_weights``
      ((x_pooled, y_pooled), (x_weights [N], y_weights [M])).

    Raises:
      ValueError: if shapes disagree, if a mask has a float dtype, if a segment number is not an integer or is out of
        range (in JAX arrays ``attnpool_flax`` takes such a token for padding), or if the reduction is unknown.

    Source:
      Notebook 000 (docs/notebooks), for SimKGC; only real tokens count, as the notebook says. Each segment is a
      sequence.

    >>> x_pooled, y_pooled = segment_cross_attention_pooling([[1.0], [2.0]], [0, 0], [[1.0]], [0], 1)
    >>> x_pooled.round(6), y_pooled
    (array([[1.731059]]), array([[1.]]))
    """
    del indices_are_sorted  # NumPy sums in the same way without it
    pooled = np.zeros((num_segments, x.shape[1])), np.zeros((num_segments, y.shape[1]))
    weights = np.zeros(len(x)), np.zeros(len(y))
    multipliers = (x, x_dropout_multiplier), (y, y_dropout_multiplier)
    x_factors, y_factors = (np.ones(len(own)) if factors is None else factors for own, factors in multipliers)
    pool = pairs.cross_attention_pooling.body  # without its checks: the packed arguments have been checked
    for s in range(num_segments):
        of_x, of_y = members(x_segment_ids, s), members(y_segment_ids, s)
        (pooled[0][s], pooled[1][s]), (weights[0][of_x], weights[1][of_y]) = pool(
            x[of_x].astype(np.float64),
            y[of_y].astype(np.float64),
            x_mask[of_x],
            y_mask[of_y],
            x_kernel=x_kernel,
            y_kernel=y_kernel,
            reduction=reduction,
            scale=scale,
            x_dropout_multiplier=x_factors[of_x],
            y_dropout_multiplier=y_factors[of_y],
            return_weights=True,
        )
    return (pooled, weights) if return_weights else pooled


@contract.with_short_traceback
def pack(sequences, *, length=None, num_segments=None):
    """Concatenates sequences of any lengths, with the segment number of each token.

    A jitted program is recompiled for new shapes; fixed ``length`` and ``num_segments`` prevent this. If ``length`` is
    larger than the number of tokens, zero vectors with the segment number ``num_segments`` are appended. That number is
    out of range: it is an error in NumPy arrays, but the segment functions of ``attnpool_flax`` take it for padding in
    JAX arrays, such as the arguments of a jitted function.

    Args:
      sequences: a list of arrays [L_i, d]: sequence i has L_i tokens of width d, or none, which makes an empty segment.
      length: N, the number of tokens to fill up to; None adds none.
      num_segments: the number of segments, of which the last ones may be empty; None is the number of sequences.

    Returns:
      (x [N, d], segment_ids int [N], sorted, num_segments). x has the widest floating dtype of the sequences; if
      all hold integers, float64, or in JAX its default floating dtype.

    Raises:
      ValueError: if the list is empty, if an element does not have two axes, if the widths differ or are 0, or if there
        are more tokens than ``length`` or more sequences than ``num_segments``.
      TypeError: if ``sequences`` is text or not iterable, or if an element is not an array of numbers.

    >>> pack([[[1.0], [2.0]], [[3.0]]])
    (array([[1.],
           [2.],
           [3.]]), array([0, 0, 1]), 2)
    """
    arrays = sequence_arrays("pack", sequences, as_array)
    dtype = checked_sequences("pack", arrays) or np.dtype(np.float64)
    length, num_segments = packed_sizes("pack", arrays, length, num_segments)
    x = np.concatenate([array.astype(dtype) for array in arrays])
    numbers = np.repeat(np.arange(len(arrays)), [len(array) for array in arrays])
    filling = length - len(x)
    return np.pad(x, ((0, filling), (0, 0))), np.pad(numbers, (0, filling), constant_values=num_segments), num_segments


@contract.with_short_traceback
def unpack(x, segment_ids, num_segments):
    """Splits packed tokens into a list, the tokens of each segment in their order: the inverse of :func:`pack`.

    Zero vectors that :func:`pack` appended to reach ``length`` have a segment number out of range, which is an error
    here. Remove them first: with ``real = segment_ids < num_segments`` pass ``x[real]`` and ``segment_ids[real]``.

    Args:
      x: [N, d] tokens, N of width d.
      segment_ids: int [N], the segment of each token, in any order.
      num_segments: the number of segments, an integer.

    Returns:
      A list of arrays [L_i, d], one for each segment, in the dtype of x.

    Raises:
      ValueError: if shapes disagree, or if a segment number is not an integer or is out of range.
      TypeError: if an argument is not an array of numbers.

    >>> unpack([[1.0], [2.0], [3.0]], [0, 1, 0], 2)
    [array([[1.],
           [3.]]), array([[2.]])]
    """
    x, segment_ids = as_array("unpack", "x", x), as_array("unpack", "segment_ids", segment_ids)
    num_segments = checked_packed(x, segment_ids, num_segments)
    return [x[segment_ids == s] for s in range(num_segments)]
