"""The dtypes of modules: of the data, of the parameters and of the result."""

import jax
import jax.numpy as jnp
import numpy as np
from modules.cases import both_kinds, deterministic, same_bits, some_cases, some_thorough, some_with_parameters


@some_thorough
@both_kinds
def test_dtype_is_what_data_and_parameters_are_cast_to(case, kind):
    data, masks = case.draw()
    parameters = case.parameters()
    got = kind.call(case, parameters, data, masks, {"dtype": jnp.bfloat16})
    narrow = jax.tree.map(lambda value: jnp.asarray(value, jnp.bfloat16), (data, parameters))
    same_bits(got, case.expected(narrow[0], masks, narrow[1]))
    assert {part.dtype for part in jax.tree.leaves(got)} == {jnp.dtype(jnp.bfloat16)}


@some_cases
@both_kinds
def test_without_a_dtype_data_and_parameters_decide(case, kind):
    data, masks = case.draw(jnp.bfloat16)
    got = jax.eval_shape(lambda: kind.call(case, case.parameters(), data, masks, **deterministic(case)))
    wide = np.float32 if any(case.shapes.values()) else jnp.bfloat16  # a number decides nothing
    assert {part.dtype for part in jax.tree.leaves(got)} == {jnp.dtype(wide)}


@some_with_parameters
@both_kinds
def test_param_dtype_is_the_dtype_of_the_parameters_alone(case, kind):
    data, masks = case.draw()
    options = {"param_dtype": jnp.bfloat16}
    statistics = {key: value for key, value in case.parameters(jnp.bfloat16).items() if key in case.statistics}

    def create_and_call():
        initial = kind.initial(case, **options)
        return initial, kind.call(case, initial | statistics, data, masks, options, **deterministic(case))

    initial, got = jax.eval_shape(create_and_call)
    assert {value.dtype for value in initial.values()} == {jnp.dtype(jnp.bfloat16)}
    assert {part.dtype for part in jax.tree.leaves(got)} == {jnp.dtype(np.float32)}


@some_thorough
@both_kinds
def test_integers_are_data_too(case, kind):
    data, masks = case.draw()
    whole = {key: np.round(2 * value).astype(np.int32) for key, value in data.items()}
    floats = {key: value.astype(np.float32) for key, value in whole.items()}
    same_bits(
        kind.call(case, case.parameters(), whole, masks, {"dtype": jnp.float32}),
        kind.call(case, case.parameters(), floats, masks),
    )
