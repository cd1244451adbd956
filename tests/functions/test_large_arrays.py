"""What the oracle does with an array that is too large for copies: a block of tokens at a time."""

import tracemalloc

import numpy as np
import pytest
from rounding import rounded

import attnpool_ref
from attnpool_ref.numerics import blocks

NAMES = "mean_pooling", "max_pooling", "first_pooling", "last_pooling", "weighted_pooling"


@pytest.mark.parametrize("name", NAMES)
def test_no_copy_of_a_large_array_is_made(name):
    x = np.ones((2**16, 32), np.float16)
    pool = getattr(attnpool_ref, name)
    tracemalloc.start()
    try:
        pooled = pool(x)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert pooled.dtype == np.float16
    assert np.array_equal(pooled, x[0])
    assert peak < x.nbytes


@pytest.mark.parametrize("dtype", [np.float32, np.int16])
@pytest.mark.parametrize("size", [1, 9, 40, 100, 299])
@pytest.mark.parametrize("name", NAMES)
def test_blocks_give_what_the_whole_gives(name, size, dtype, monkeypatch):
    """Blocks of batches, of examples, of tokens and of one token; examples differ in length, and one has none."""
    x = np.random.default_rng(size).integers(-99, 99, (2, 3, 10, 5)).astype(dtype)
    options = {"lengths": np.array([[10, 1, 0], [7, 3, 9]])}
    if name == "weighted_pooling":
        options["weights"] = np.arange(1, 11) / 8
    pool = getattr(attnpool_ref, name)
    whole = pool(x, **options)
    monkeypatch.setattr(blocks, "SIZE", size)
    inside = pool(x, **options)
    assert inside.dtype == whole.dtype
    assert np.max(np.abs(inside - whole)) <= rounded(whole, x.size)
    assert np.array_equal(pool(x[..., :0, :]), np.zeros((2, 3, 5)))
