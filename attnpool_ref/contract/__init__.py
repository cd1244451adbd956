"""Argument checks and their messages, shared by both packages. No arithmetic on data.

:func:`bind` gives every argument of a call its name. :func:`resolve` compares shapes and dtypes with the row of the
function (:mod:`attnpool_ref.table.language`) and returns a :class:`Call`. It reads no values, so it can run while JAX
traces, once for each combination of shapes, dtypes and options. :func:`check_values` checks the values of masks,
lengths, positions, indices and segment numbers in host (NumPy) arrays.
"""

from attnpool_ref.contract.binding import LARGEST_SIZE, bind, checked_static, signature_of
from attnpool_ref.contract.dtypes import check_dtype, common_dtype, kind_of, refuse_non_numeric
from attnpool_ref.contract.resolve import Call, check_combinations, resolve
from attnpool_ref.contract.shapes import (
    COUNTS,
    FEATURES,
    axes_text,
    check_weights,
    equal_axes,
    full_shape,
    size_of,
    symbol_suggestion,
    with_all_axes,
)
from attnpool_ref.contract.tracebacks import with_frame_name, with_short_traceback, without_frames
from attnpool_ref.contract.values import check_not_zero, check_values
from attnpool_ref.numerics.rounding import roundings
