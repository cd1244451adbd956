"""NaN of a real token stays where the definition has it in arrays so large that XLA's maximum on CPUs loses it."""

import chex
import jax
import numpy as np
import pytest
from marks import all_with_few_quick

import attnpool_flax
import attnpool_ref

SCORES, TOKENS, OTHERS = (200, 2000), (3, 301, 65), (3, 40, 65)

CASES = {
    "sparsemax": ({}, SCORES),
    "entmax15": ({}, SCORES),
    "entmax": ({"alpha": 1.3}, SCORES),
    "hardmax": ({}, SCORES),
    "top_k_softmax": ({"k": 5}, SCORES),
    "max_pooling": ({}, TOKENS),
    "min_pooling": ({}, TOKENS),
    "top_k_pooling": ({"k": 3}, TOKENS),
    "maxsim_score": ({}, TOKENS, OTHERS),
    "code_wise_attention": ({}, TOKENS, OTHERS),
    "cross_attention_pooling": ({"reduction": "max"}, TOKENS, OTHERS),
}
"""By function: (options, the shapes of its arrays)."""


@pytest.mark.parametrize(
    "name", all_with_few_quick(CASES, ["sparsemax", "max_pooling", "maxsim_score", "cross_attention_pooling"])
)
def test_nan_is_where_the_definition_has_it(name):
    options, *shapes = CASES[name]
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    for array in arrays:
        array[(1,) * (array.ndim - 2) + (array.shape[-2] // 4, 7)] = np.nan
    found, right = (
        jax.tree.leaves(jax.tree.map(np.isnan, getattr(package, name)(*arrays, **options)))
        for package in (attnpool_flax, attnpool_ref)
    )
    assert any(part.any() for part in right)
    chex.assert_trees_all_equal(found, right)
