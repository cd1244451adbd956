"""Every function under JAX's strict modes, all at once: no implicit promotion, rank, NaN or leak."""

import contextlib
import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import arguments_of

import attnpool_flax
from attnpool_ref import table
from attnpool_ref.conformance import cases

BATCH = 2


def fullest(row):
    """The case with every argument; with the weights too, where the row has them."""
    named = {title: (names, options) for title, names, options in cases.configurations(row)}
    names, options = named.get("fullest", named["smallest"])
    weights = {"return_weights": True} if row.weights else {}
    return cases.draw(row, "strict modes", names, options | weights, (BATCH,))


ALL = [(row, fullest(row)) for row in table.VARIANTS]
ids = {"ids": lambda value: value.name if isinstance(value, table.Variant) else ""}


@pytest.fixture(scope="module", autouse=True)
def few_objects():
    """The check for leaks collects garbage at each trace: among few objects, whatever other tests have left."""
    gc.collect()
    gc.freeze()


@contextlib.contextmanager
def strict():
    """Nothing is promoted, in type or in rank; NaN and a tracer that gets away are errors."""
    with (
        jax.numpy_dtype_promotion("strict"),
        jax.numpy_rank_promotion("raise"),
        jax.debug_nans(True),
        jax.checking_leaks(),
    ):
        yield


@pytest.mark.thorough
@pytest.mark.parametrize(("row", "case"), ALL, **ids)
def test_forward_and_gradient_are_strict(row, case):
    arrays, call = arguments_of(case, getattr(attnpool_flax, row.name))
    floats = {k: v for k, v in arrays.items() if v.dtype == np.float32}
    rest = {k: v for k, v in arrays.items() if k not in floats}

    def objective(floats):
        results = call(floats | rest)
        return sum((out.sum() for out in results), jnp.float32(0)), results

    with strict():  # they speak while JAX traces; the NaN checker, at run time, stands in test_transformations.py
        if floats:
            jax.jit(jax.grad(objective, has_aux=True)).trace(floats)
        else:
            jax.jit(call).trace(arrays)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32])
def test_lengths_and_masks_of_any_integer_are_strict(dtype):
    with strict():
        lengths = attnpool_flax.lengths_to_mask(jnp.arange(4, dtype=dtype), 3)
        pooled = attnpool_flax.mean_pooling(jnp.ones((4, 3, 5)), lengths.astype(dtype))
        long = attnpool_flax.lengths_to_mask(jnp.full(2, 127, dtype), 300)
    assert lengths.sum(-1).tolist() == [0, 1, 2, 3]
    assert pooled[:, 0].tolist() == [0, 1, 1, 1]
    assert long.sum(-1).tolist() == [127, 127]
