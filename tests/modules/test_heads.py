"""The heads are what their recipes say over the oracle's functions, with masks, and no map sees what stands in padding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from modules.cases import CASES, NNX, allowed, assert_near, same_bits

every_head = pytest.mark.parametrize("case", [case for case in CASES if case.row.family == "heads"], ids=str)


@every_head
def test_a_head_is_its_recipe_and_nan_in_padding_changes_no_bit_of_it_or_of_any_gradient(case):
    data, masks = case.draw()
    parameters = case.parameters()
    expected = case.definition(**data, **masks, **parameters, **case.options, return_weights=True)

    @jax.jit
    def with_gradients(parameters, x):
        def loss(parameters, x):
            found = NNX.call(case, parameters, {"x": x}, masks, return_weights=True)
            return jnp.sum(found[0] ** 2) + jnp.sum(found[1] ** 2), found

        return jax.grad(loss, argnums=(0, 1), has_aux=True)(parameters, x)

    gradients, found = with_gradients(parameters, data["x"])
    assert_near(found, expected, allowed(case, data, masks, parameters, return_weights=True))
    np.testing.assert_array_equal(np.asarray(found[1])[2], 0)
    poisoned = np.where(masks["mask"][..., None], data["x"], np.nan)
    again = with_gradients(parameters, poisoned)
    same_bits(again, (gradients, found))
    np.testing.assert_array_equal(gradients[1][~masks["mask"]], 0)
    assert all(np.any(np.asarray(value) != 0) for key, value in gradients[0].items() if key != "key_bias")
    lengths = np.array([5, 2, 0])
    by_mask = NNX.call(case, parameters, data, {"mask": np.arange(5) < lengths[:, None]})
    same_bits(NNX.call(case, parameters, data, {"lengths": lengths}), by_mask)
