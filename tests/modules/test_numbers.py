"""The modules hold parameters and configuration: every number is their function's, in NNX and in Linen."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from modules.cases import (
    NNX,
    THOROUGH,
    Linen,
    allowed,
    assert_near,
    both_kinds,
    deterministic,
    every_case,
    masked,
    multiplying,
    same_bits,
    some_thorough,
    thorough_case,
    weighted,
)


@every_case
@both_kinds
def test_the_output_is_the_functions_to_the_bit(case, kind):
    data, masks = case.draw()
    parameters = case.parameters()
    for given in (masks, {}) if str(case) in THOROUGH else (masks,):
        got = kind.call(case, parameters, data, given, **deterministic(case))
        same_bits(got, case.expected(data, given, parameters))


@multiplying
@both_kinds
def test_a_precision_reaches_the_function(case, kind, watched):
    data, masks = case.draw()
    function, options = watched(case), {"precision": "highest"}
    jax.eval_shape(lambda: kind.call(case, case.parameters(), data, masks, options, **deterministic(case)))
    assert function.call_args.kwargs["precision"] == "highest"


@weighted
@both_kinds
def test_the_weights_are_the_functions(case, kind):
    data, masks = case.draw()
    parameters = case.parameters()
    both = kind.call(case, parameters, data, masks, return_weights=True, **deterministic(case))
    same_bits(both, case.expected(data, masks, parameters, return_weights=True))


@pytest.mark.thorough
@thorough_case
@both_kinds
def test_gradients_are_the_functions_and_finite_with_padding_and_empty_rows(case, kind):
    data, masks = case.draw()
    parameters = case.parameters()

    def loss(call, parameters, data):
        return sum(jnp.sum(part * part) for part in jax.tree.leaves(call(parameters, data)))

    def module(parameters, data):
        return kind.call(case, parameters, data, masks)

    def function(parameters, data):
        return case.expected(data, masks, parameters)

    got = jax.grad(functools.partial(loss, module), argnums=(0, 1))(parameters, data)
    chex.assert_tree_all_finite(got)
    same_bits(got, jax.grad(functools.partial(loss, function), argnums=(0, 1))(parameters, data))


@masked
@both_kinds
def test_what_stands_in_padding_never_matters(case, kind):
    data, masks = case.draw()
    parameters = case.parameters()
    poisoned = {key: value.copy() for key, value in data.items()}
    for key, (mask, axis) in case.padding.items():
        real = masks[mask] if axis is None else np.any(masks[mask], axis)
        poisoned[key][~real] = np.nan
    drops = deterministic(case)
    clean = kind.call(case, parameters, data, masks, **drops)
    same_bits(kind.call(case, parameters, poisoned, masks, **drops), clean)
    chex.assert_tree_all_finite(clean)


@pytest.mark.thorough
@masked
@both_kinds
def test_an_example_without_a_real_token_gives_zero(case, kind):
    data, masks = case.draw()
    drops = deterministic(case)
    more = drops | ({"return_weights": True} if case.row.weights else {})
    result = kind.call(case, case.parameters(), data, masks, **more)
    for part in jax.tree.leaves(result[1] if case.maps else result):
        np.testing.assert_array_equal(part[2], 0)
        assert np.any(part[0] != 0)


@some_thorough
def test_jit_and_vmap_change_nothing_but_rounding_and_trace_once(case):
    data, masks = case.draw()
    parameters = case.parameters()
    expected = case.expected(data, masks, parameters)
    errors = allowed(case, data, masks, parameters)
    chex.clear_trace_counter()  # chex counts by name, and every case has a function of this one

    @jax.jit
    @functools.partial(chex.assert_max_traces, n=1)
    def jitted(parameters, data, masks):
        return [kind.call(case, parameters, data, masks) for kind in (NNX, Linen)]

    mapped = jax.vmap(lambda data, masks: [kind.call(case, parameters, data, masks) for kind in (NNX, Linen)])
    again = jitted(parameters, jax.tree.map(np.copy, data), masks)
    for got in (*jitted(parameters, data, masks), *again, *mapped(data, masks)):
        assert_near(got, expected, errors)
