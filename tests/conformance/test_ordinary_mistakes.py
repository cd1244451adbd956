"""Ordinary mistakes have their cause named, whatever else is wrong with the function, in the same words by ``--quick``."""

import functools
import inspect

import jax.numpy as jnp
import numpy as np
import pytest
from conformance.ordinary import ORDINARY, SAME_EVIDENCE, assert_causes, assert_named, further, in_arrays
from marks import one_in, thorough

from attnpool_ref.conformance import QUICK


def written_in(xp, name):
    """The mistake in arrays of NumPy or of JAX."""
    return functools.partial(getattr(in_arrays, name), xp)


def computed_in_float64(function):
    """The function on its floating arguments in float64; its result is rounded once."""

    @functools.wraps(function)
    def wide(*args, **kwargs):
        own = next(a.dtype for a in (*args, *kwargs.values()) if _is_floating(a))
        args = [a.astype(np.float64) if _is_floating(a) else a for a in args]
        kwargs = {k: a.astype(np.float64) if _is_floating(a) else a for k, a in kwargs.items()}
        return function(*args, **kwargs).astype(own)

    return wide


def _is_floating(value):
    return isinstance(value, np.ndarray) and value.dtype.kind in "fV"  # bfloat16 is of kind V


@pytest.mark.parametrize("name", one_in(6, ORDINARY))
def test_an_ordinary_mistake_in_the_inputs_own_dtype_has_its_cause_named(name):
    assert_named(name, written_in(np, name), "numpy", (SAME_EVIDENCE, QUICK))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_mistake_in_float64_has_its_cause_named(name):
    scopes = (SAME_EVIDENCE, QUICK)
    if name == "moments":  # only float64 shows it, which --quick does not judge
        scopes = (SAME_EVIDENCE,)
    assert_named(name, computed_in_float64(written_in(np, name)), "numpy", scopes)


@pytest.mark.parametrize("name", ["mask_inverted", *thorough(["attention_with_the_mask_inverted"])])
def test_an_inverted_mask_is_named_where_the_function_inverts_its_own_mask_of_ones_too(name):
    function = written_in(np, name)

    @functools.wraps(function)
    def with_ones(*args, **kwargs):
        bound = inspect.signature(function).bind(*args, **kwargs)
        if bound.arguments.get("mask") is None:
            tokens = bound.arguments.get("x", bound.arguments.get("key"))
            bound.arguments["mask"] = np.ones(
                tokens.shape[:-1] if name == "mask_inverted" else (1, tokens.shape[-2]), bool
            )
        return function(*bound.args, **bound.kwargs)

    assert_named(name, with_ones, "numpy", (SAME_EVIDENCE, QUICK))


FEW = ("mask_inverted", "padded_scores_of_0", "last_by_count")
"""Those that are judged in JAX without ``make thorough``, each by another part of the search."""


@pytest.mark.parametrize("name", FEW)
def test_an_ordinary_mistake_in_jax_has_its_cause_named_by_a_quick_check(name):
    assert_named(name, written_in(jnp, name), "jax", (QUICK | {"gradients": False},))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_mistake_in_jax_has_its_cause_named(name):
    assert_named(name, written_in(jnp, name), "jax", (SAME_EVIDENCE | {"gradients": False}, QUICK))


@pytest.mark.parametrize("name", one_in(4, further.FURTHER))
def test_a_further_mistake_has_its_cause_named_and_no_wrong_one(name):
    row, right, options = further.FURTHER[name]
    function = getattr(further, name)
    parameters = {"parameters": further.PARAMETERS} if isinstance(function, further.Gated) else {}
    assert_causes(function, row, right, SAME_EVIDENCE | {"dtypes": ("float32",)} | parameters | options)
