"""Packed sequences. Twin of :mod:`attnpool_ref.segments`.

``segment_NAME`` runs the body of the function NAME for padded tokens on :class:`~attnpool_flax.tokens.Packed`
tokens. It exists for each row of :mod:`attnpool_ref.table` with the layout "segments".
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from attnpool_flax.call.compiled import packed
from attnpool_flax.call.prepare import as_array, result_dtype
from attnpool_ref import contract, table
from attnpool_ref.contract.rowless import checked_packed, checked_sequences, packed_sizes, sequence_arrays

WITHOUT = {"weighted_pooling": ("precision",)}
"""Arguments of dense functions, besides lengths and ``axis_name``, that packed ones lack.

Weighted sums of segments are no matrix products.
"""

for _row in table.VARIANTS:
    if "segments" in _row.layouts:
        _dense = getattr(import_module(f"attnpool_flax.{_row.family}"), _row.name)
        globals()[f"segment_{_row.name}"] = packed(_dense, WITHOUT.get(_row.name, ()))

__all__ = ["pack", "unpack", *sorted(name for name in vars() if name.startswith("segment_"))]  # pyright: ignore[reportUnsupportedDunderAll]

__test__ = {name: made.__doc__ for name, made in list(vars().items()) if name.startswith("segment_")}
"""The docstrings of the derived functions, where doctest finds their examples."""


@contract.with_short_traceback
def pack(sequences, *, length=None, num_segments=None):
    """Twin of :func:`attnpool_ref.pack`: joins arrays [L_i, d] to (x [N, d], segment_ids int32 [N], num_segments).

    >>> pack([np.array([[1.0], [2.0]]), np.array([[3.0]])])
    (Array([[1.],
           [2.],
           [3.]], dtype=float32), Array([0, 0, 1], dtype=int32), 2)
    """
    arrays = sequence_arrays("pack", sequences, as_array)
    dtype = result_dtype(checked_sequences("pack", arrays))
    length, num_segments = packed_sizes("pack", arrays, length, num_segments)
    numbers = np.repeat(np.arange(len(arrays), dtype=np.int32), [len(array) for array in arrays])
    filling = length - len(numbers)
    numbers = np.pad(numbers, (0, filling), constant_values=num_segments)
    tokens = [jnp.asarray(array, dtype) for array in arrays]
    if filling:
        tokens.append(jnp.zeros((filling, arrays[0].shape[1]), dtype))
    return jnp.concatenate(tokens), jnp.asarray(numbers), num_segments


@contract.with_short_traceback
def unpack(x, segment_ids, num_segments):
    """Twin of :func:`attnpool_ref.unpack`: splits packed tokens [N, d] into a list of arrays [L_i, d].

    The segment ids are read on the host, so they must not be traced: inside of ``jit`` only ``x`` may be.

    >>> unpack(jnp.array([[1.0], [2.0], [3.0]]), jnp.array([0, 1, 0]), 2)
    [Array([[1.],
           [3.]], dtype=float32), Array([[2.]], dtype=float32)]
    """
    x, segment_ids = as_array("unpack", "x", x), as_array("unpack", "segment_ids", segment_ids)
    if isinstance(segment_ids, Tracer):
        raise ValueError("unpack: `segment_ids` is traced, needs numbers whose values are known, outside of `jit`")
    num_segments = checked_packed(x, np.asarray(segment_ids), num_segments)
    x, numbers = jnp.asarray(x), np.asarray(segment_ids)
    return [x[np.flatnonzero(numbers == s)] for s in range(num_segments)]


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Declares the ``segment_`` functions for type checkers; attnpool_flax/__init__.pyi has their exact types."""
