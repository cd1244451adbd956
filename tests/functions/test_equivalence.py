"""attnpool_flax beside attnpool_ref: every function in every dtype, on drawn arguments. Open this file first.

The arguments follow from a function's row in the table: shapes, masks with and without padding, options. Both packages get
the same numbers, which every dtype holds; NaN in the padding changes nothing. ``test_judged.py`` has the judge compare the
rest: gradients, laws.
"""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drawn import way

import attnpool_flax
import attnpool_ref
from attnpool_ref import table
from attnpool_ref.conformance import cases
from attnpool_ref.conformance.candidates.chunks import InChunks
from attnpool_ref.conformance.cases.case import poisoned
from attnpool_ref.conformance.checks import tolerances

IN_BFLOAT16 = list({row.family: row.name for row in table.BY_NAME.values()}.values())[::2]
"""A function of every second family, which ``make test`` also calls in bfloat16; each dtype is one more program to compile."""


def calls():
    """A test of each function in each dtype; ``make thorough`` runs those that ``make test`` leaves out."""
    derived = [row.name for row in table.BY_NAME.values() if row.family in ("segments", "streaming")]
    left_out = {name for place, name in enumerate(derived) if place % 3}  # their docstrings' examples are tested
    for name in table.BY_NAME:
        for dtype in ("float32", "bfloat16", "float16", "float64"):
            tested = name not in left_out if dtype == "float32" else dtype == "bfloat16" and name in IN_BFLOAT16
            yield pytest.param(name, dtype, marks=() if tested else pytest.mark.thorough)


@pytest.mark.parametrize(("name", "dtype"), list(calls()))
def test_the_jax_function_equals_the_oracle(name, dtype):
    compare(dtype, *drawn(name))


def options():
    """Yields (function, title of the call) for each further value of an option and each other shape of an argument."""
    for row in table.VARIANTS:
        for title, *_ in () if row.packed else cases.configurations(row):
            if ("=" in title or " as [" in title) and not title.startswith(("activation=", "normalizer=")):
                yield pytest.param(row.name, title, id=f"{row.name}, {title}")


@pytest.mark.compiles
@pytest.mark.parametrize(("name", "title"), list(options()))
def test_the_jax_function_equals_the_oracle_with_every_option(name, title):
    compare("float32", *drawn(name, title))


def compare(dtype, case, exact, sensitivity):
    """Compares a call with its oracle, then with the same call with NaN at padding, and with NaN at all tokens."""

    def found_of(case):
        with jax.enable_x64(dtype == "float64"):
            return call(attnpool_flax, case.row, in_dtype(case.values, dtype) | case.options)

    found = found_of(case)
    assert_agreement(found, dtype, case, exact, sensitivity)
    if dirty := poisoned(case, np.nan):
        chex.assert_trees_all_equal(found_of(dirty), found)
        lost = case.with_values("", **{key: np.full_like(case.values[key], np.nan) for key in case.given("data")})
        with np.errstate(invalid="ignore"):
            of_nan = call(attnpool_ref, case.row, lost.values | case.options)
        for got, want in zip(found_of(lost), of_nan, strict=True):
            chex.assert_trees_all_equal(np.asarray(got)[want == 0], 0 * want[want == 0])


@pytest.mark.compiles
@pytest.mark.parametrize("name", [row.name for row in table.STATES])
def test_states_of_chunks_merge_to_the_oracle_of_all_tokens(name):
    """Four chunks, one without tokens and two of one length, are merged in random order."""
    case, exact, sensitivity = drawn(name)
    values = in_dtype(case.values, "float32")
    arrays = {key: value for key, value in values.items() if isinstance(value, np.ndarray)}
    found = jax.jit(lambda arrays: InChunks(name, attnpool_flax)(**values | arrays | case.options))(arrays)
    assert_agreement(jax.tree.leaves(found), "float32", case, exact, sensitivity)


def assert_agreement(found, dtype, case, exact, sensitivity):
    """Compares results with those of the oracle."""
    assert len(found) == len(exact)
    for got, want, sensitive in zip(found, exact, sensitivity, strict=True):
        chex.assert_shape(got, want.shape)
        if want.dtype.kind == "f":
            chex.assert_type(got, jnp.dtype(dtype))
            # one bound for the whole array: that of its largest element
            allowed = tolerances.allowed_error(largest(want), largest(sensitive), case.terms(), dtype)
            chex.assert_trees_all_close(np.float64(got), want, atol=allowed, rtol=0)
        else:
            chex.assert_type(got, want.dtype if want.dtype == bool else int)
            chex.assert_trees_all_equal(np.asarray(got), want)


@functools.cache
def drawn(name, title=None):
    """Returns (case, the oracle's results in float64, their sensitivity) of a call, by default with as many arguments as fit."""
    row = table.get(name)
    title, names, options = way(row, title)
    if row.weights:
        options = options | {"return_weights": True}
    case = cases.draw(row, title, names, options, cases.BATCH)
    case = case.with_values("in every dtype", **cases.narrow(case.values))  # numbers that all dtypes hold
    exact = call(attnpool_ref, row, case.values | case.options)
    return case, exact, sensitivity_of(case, exact)


def sensitivity_of(case, exact):
    """How fast each result moves when the floating arguments do: the tolerance is made of it."""

    def oracle(moved):
        return call(attnpool_ref, case.row, case.values | moved | case.options)

    given = {name: case.values[name] for name in case.given("data", "parameter", "number")}
    floats = {name: value for name, value in given.items() if value.dtype.kind == "f"}
    return tolerances.sensitivity(oracle, floats, case.rng(), exact)


def in_dtype(values, dtype):
    """The arrays of floats in a dtype; numbers become Python numbers, which have none."""

    def converted(value):
        if value is None or value.dtype.kind != "f":
            return value
        return value.astype(dtype) if value.ndim else float(value)

    return {name: converted(value) for name, value in values.items()}


def call(package, row, arguments):
    """All arrays that a function returns, nested tuples flattened; for the state of a chunk what is pooled from it."""
    result = getattr(package, row.name)(**arguments)
    return jax.tree.leaves(package.finalize_state(result) if row.state else result)


def largest(array):
    """The size of the largest finite element."""
    return float(np.max(np.abs(array), where=np.isfinite(array), initial=0))
