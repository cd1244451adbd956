"""attnpool_flax beside attnpool_ref: every function in every dtype, on drawn arguments. Open this file first.

The arguments follow from a function's row in the table: shapes, masks with and without padding, options. Both packages get
the same numbers, which every dtype holds. ``test_judged.py`` has the judge compare the rest: gradients, padding, laws.
"""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnpool_flax
import attnpool_ref
from attnpool_ref import table
from attnpool_ref.conformance import cases
from attnpool_ref.conformance.checks import tolerances

MORE = [pytest.param(dtype, marks=pytest.mark.thorough) for dtype in ("float16", "float64")]
"""Each dtype is a program of each function: of the narrow ones ``make test`` compiles one."""


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", *MORE])
@pytest.mark.parametrize("name", table.BY_NAME)
def test_the_jax_function_equals_the_oracle(name, dtype):
    case, exact, sensitivity = drawn(name)
    with jax.enable_x64(dtype == "float64"):
        found = call(attnpool_flax, case.row, in_dtype(case.values, dtype) | case.options)
    assert len(found) == len(exact)
    for got, want, sensitive in zip(found, exact, sensitivity, strict=True):
        chex.assert_shape(got, want.shape)
        if want.dtype.kind == "f":
            chex.assert_type(got, jnp.dtype(dtype))
            allowed = tolerances.allowed_error(largest(want), largest(sensitive), case.terms(), dtype)
            chex.assert_trees_all_close(np.float64(got), want, atol=allowed, rtol=0)
        else:
            chex.assert_type(got, want.dtype if want.dtype == bool else int)
            chex.assert_trees_all_equal(np.asarray(got), want)


@functools.cache
def drawn(name):
    """(case, the oracle's results in float64, how fast each moves when the arguments do) of the call with all arguments."""
    row = table.get(name)
    ways = {title: (names, options) for title, names, options in cases.configurations(row)}
    title = cases.fullest_way(row)
    names, options = ways[title]
    weights = {"return_weights": True} if row.weights else {}
    case = cases.draw(row, title, names, options | weights, cases.BATCH)
    values = cases.narrow(case.values)
    floats = {
        name: values[name] for name in case.given("data", "parameter", "number") if values[name].dtype.kind == "f"
    }

    def oracle(moved):
        return call(attnpool_ref, row, values | moved | case.options)

    exact = oracle({})
    sensitivity = tolerances.sensitivity(oracle, floats, case.rng(), exact)
    return case.with_values("", **values), exact, sensitivity


def in_dtype(values, dtype):
    """The arrays of floats in a dtype; numbers are Python's, which have none."""
    return {
        name: value if value is None or value.dtype.kind != "f" else value.astype(dtype) if value.ndim else float(value)
        for name, value in values.items()
    }


def call(package, row, arguments):
    """All arrays that a function returns, nested tuples flattened; for the state of a chunk what is pooled from it."""
    result = getattr(package, row.name)(**arguments)
    return jax.tree.leaves(package.finalize_state(result) if row.state else result)


def largest(array):
    """The size of the largest element."""
    return float(np.max(np.abs(array), initial=0))
