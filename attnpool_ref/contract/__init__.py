"""Argument checks and their messages: the promise that both packages share. No arithmetic on data.

:func:`bind` gives every argument a name, :func:`resolve` reads a row (:mod:`attnpool_ref.table.language`) and refuses or
passes: what passes is described by a :class:`Call`. It looks at shapes and dtypes alone, so that it can run while JAX
traces, and once a signature. :func:`check_values` looks at masks, lengths and segment numbers that are at hand on the host.
"""

from attnpool_ref.contract.dtypes import check_dtype, common_dtype, kind_of, refuse_non_numeric
from attnpool_ref.contract.options import LARGEST_SIZE, check_weights, checked_static
from attnpool_ref.contract.resolve import Call, bind, resolve, signature_of
from attnpool_ref.contract.shapes import (
    COUNTS,
    FEATURES,
    axes_text,
    full_shape,
    in_place_of,
    size_of,
    unions,
    with_all_axes,
)
from attnpool_ref.contract.tracebacks import named, refusing, shortened
from attnpool_ref.contract.values import check_not_zero, check_values
from attnpool_ref.numerics.rounding import roundings

__all__ = [
    "COUNTS",
    "FEATURES",
    "LARGEST_SIZE",
    "Call",
    "axes_text",
    "bind",
    "check_dtype",
    "check_not_zero",
    "check_values",
    "check_weights",
    "checked_static",
    "common_dtype",
    "full_shape",
    "in_place_of",
    "kind_of",
    "named",
    "refuse_non_numeric",
    "refusing",
    "resolve",
    "roundings",
    "shortened",
    "signature_of",
    "size_of",
    "unions",
    "with_all_axes",
]
