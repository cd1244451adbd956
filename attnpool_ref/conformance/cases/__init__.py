"""Cases: arguments drawn from the shapes of a row; a new row needs no code here.

Sizes are pairwise different, so that a transposition shows; one shape has them all equal, which hides none of the others.
Every batch holds a full, a prefix, a suffix, a scattered and an empty mask. A case is plain data; what the hazards do to
it (poison, permute, delete, append) changes the data along axes that have a name.
"""

from attnpool_ref.conformance.cases.case import ANY_RANK, BATCH, NUMBERS, SEED, SEQUENCES, SIZES, Case, narrow
from attnpool_ref.conformance.cases.drawing import draw
from attnpool_ref.conformance.cases.forms import shared_arrays
from attnpool_ref.conformance.cases.functions import values_of
from attnpool_ref.conformance.cases.layout import append, example_of, full_mask, masked_axes, padding, places_of, take
from attnpool_ref.conformance.cases.long import LONG, LONG_BY_DEFAULT, long_narrow_rows, long_rows
from attnpool_ref.conformance.cases.table import KINDS, SHAPES, cases_in, cases_of
from attnpool_ref.conformance.cases.ways import configurations, fullest_way, legal

__all__ = [
    "ANY_RANK",
    "BATCH",
    "KINDS",
    "LONG",
    "LONG_BY_DEFAULT",
    "NUMBERS",
    "SEED",
    "SEQUENCES",
    "SHAPES",
    "SIZES",
    "Case",
    "append",
    "cases_in",
    "cases_of",
    "configurations",
    "draw",
    "example_of",
    "full_mask",
    "fullest_way",
    "legal",
    "long_narrow_rows",
    "long_rows",
    "masked_axes",
    "narrow",
    "padding",
    "places_of",
    "shared_arrays",
    "take",
    "values_of",
]
