"""Cases: arguments of test calls, drawn from the shapes in a function's row of :mod:`attnpool_ref.table`.

A new function in the table needs no code here. Most cases are a mixed batch of five examples: one each with a full
mask, a prefix, a suffix, a scattered mask and an empty one. Most axes have different sizes, so that a transposed array
gives an error or a wrong result. One further shape has equal sizes on all axes. A case is plain data. Checks make
further cases from it: they change values, or permute, delete or append positions along named axes.
"""

from attnpool_ref.conformance.cases.case import (
    ANY_RANK,
    BATCH,
    SEED,
    SEQUENCES,
    SIZES,
    Case,
    append,
    example_of,
    full_mask,
    masked_axes,
    narrow,
    padding,
    places_of,
    poisoned,
    take,
)
from attnpool_ref.conformance.cases.drawing import draw
from attnpool_ref.conformance.cases.table import (
    EMPTY_SHAPES,
    KINDS,
    LONG,
    LONG_BY_DEFAULT,
    LONG_NARROW,
    MANY_TOKENS,
    SHAPES,
    WITHOUT_TOKENS,
    cases_in,
    cases_of,
    long_narrow_rows,
    long_rows,
)
from attnpool_ref.conformance.cases.values import shared_arrays
from attnpool_ref.conformance.cases.ways import configurations, fullest_way, legal
