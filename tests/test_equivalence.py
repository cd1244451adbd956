"""attnpool_flax against attnpool_ref, row by row: what ``make test`` judges; ``attnpool check`` judges everything."""

import pytest

import attnpool_flax
from attnpool_ref import conformance, variants

every_row = pytest.mark.parametrize("row", [row.name for row in variants.VARIANTS])

every_state = pytest.mark.parametrize("row", [row.name for row in variants.STATES])


@every_row
def test_results_gradients_and_hazards_in_float32(row):
    function = getattr(attnpool_flax, row)
    conformance.check(function, row, dtypes=("float32",), shapes=(), laws=False, partial=False, long=False)


@pytest.mark.thorough
@every_row
def test_laws_and_sequences_of_length_0_in_float32(row):
    function = getattr(attnpool_flax, row)
    conformance.check(
        function, row, dtypes=("float32",), shapes=("length 0",), gradients=False, partial=False, long=False
    )


@pytest.mark.thorough
@every_state
def test_chunks_merge_to_the_dense_results_and_gradients_in_float32(row):
    """Random chunks, one of them empty, in random order and bracketing; ``attnpool check`` judges all that dense rows have."""
    conformance.check(attnpool_flax, row, dtypes=("float32",), shapes=(), laws=False, partial=False, long=False)
