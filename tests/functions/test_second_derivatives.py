"""Second derivatives of attnpool_flax: of merged states, beside NaN in the padding, of packed tokens, and of every row."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from constants import replaced
from differentiated_twice import CHECKS, judged
from rounding import rounded
from walks import small_tiles

import attnpool_flax
from attnpool_flax.call.compiled import FUNCTIONS
from attnpool_flax.reductions import perceptron
from attnpool_flax.reductions.packed import sums as packed_sums
from attnpool_ref import table
from attnpool_ref.conformance.checks.gradients import REVERSE

LENGTHS = (4, 1, 3)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 2)).astype(np.float32)
MASK = np.arange(4) < np.array(LENGTHS)[:, None]
KERNELS = {"kernel": RNG.normal(size=(2, 3)).astype(np.float32), "out_kernel": RNG.normal(size=3).astype(np.float32)}

POOLINGS = {
    "mean_pooling": {},
    "sum_pooling": {},
    "additive_attention_pooling": KERNELS,
    "attention_pooling": {},  # the mean is the query
}
"""Poolings whose packed form sums by the rule of tiles, and the arguments that they need."""


@pytest.mark.thorough
def test_the_hessian_of_the_cube_of_a_mean_is_the_same_over_two_chunks():
    def cube(pool):
        return np.asarray(jax.hessian(lambda x: jnp.sum(pool(x) ** 3))(X[0]))

    def over_chunks(x):
        parts = [attnpool_flax.mean_state(part) for part in (x[:1], x[1:])]
        return attnpool_flax.finalize_state(attnpool_flax.merge_states(*parts))

    want = cube(attnpool_flax.mean_pooling)
    assert np.any(np.abs(want) > 0.01)
    np.testing.assert_allclose(cube(over_chunks), want, rtol=0, atol=rounded(want, X.shape[1]))


@pytest.mark.thorough
@pytest.mark.parametrize("name", POOLINGS)
def test_a_direct_hessian_of_packed_tokens_is_that_of_dense_ones(name):
    pool, packed = getattr(attnpool_flax, name), getattr(attnpool_flax, f"segment_{name}")
    rows = np.repeat(np.arange(len(LENGTHS)), LENGTHS)

    def dense(tokens):
        x = jnp.full(X.shape, jnp.nan, X.dtype).at[MASK].set(tokens)
        return jnp.sum(jnp.sin(pool(x, MASK, **POOLINGS[name])))

    def of_segments(tokens):
        return jnp.sum(jnp.sin(packed(tokens, rows, len(LENGTHS), **POOLINGS[name], implementation="tiles")))

    found, want = (np.asarray(jax.hessian(function)(X[MASK])) for function in (of_segments, dense))
    assert np.all(np.isfinite(want))
    np.testing.assert_allclose(found, want, rtol=0, atol=rounded(want, X.size))


def test_second_derivatives_of_additive_pooling_ignore_nan_in_the_padding():
    def product(x):
        def loss(x, kernels):
            return jnp.sum(
                jnp.sin(attnpool_flax.additive_attention_pooling(x, MASK, **kernels, implementation="tiles"))
            )

        def along(x, kernels):
            return sum(jnp.sum(slope) for slope in jax.tree.leaves(jax.grad(loss, (0, 1))(x, kernels)))

        return jax.jit(jax.grad(along, (0, 1)))(x, KERNELS)

    clean, dirty = product(X), product(np.where(MASK[..., None], X, np.nan))
    for a, b in zip(jax.tree.leaves(clean), jax.tree.leaves(dirty), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["weighted_state"])
def test_second_derivatives_of_merged_states_are_those_of_the_definition(name):
    assert judged(attnpool_flax, name, REVERSE) == []


DIFFERENTIABLE = [
    row.name
    for row in table.BY_NAME.values()
    if row.name not in ("lengths_to_mask", "spans_to_mask", "token_positions")
]
"""Rows whose results are numbers that floats decide."""


@pytest.mark.thorough
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_every_row_has_second_derivatives_in_every_mode(name, check):
    """Nothing is left out: what is not applicable raises here."""
    assert judged(attnpool_flax, name, check) == []


WALKERS = [row.name for row in table.BY_NAME.values() if FUNCTIONS[row.name].has_tiles]


@pytest.mark.thorough
@pytest.mark.parametrize("name", WALKERS)
def test_tiles_have_second_derivatives(name):
    """A tile is 3 tokens, so that the last one overlaps; the running maximum of merged states is a constant throughout."""
    with (
        small_tiles(WHOLE=0, ROW=0, TOKENS=3),
        replaced(packed_sums, TOKENS=3, FEWEST=3),
        replaced(perceptron, TOKENS=3),
    ):
        assert judged(attnpool_flax, name, REVERSE, implementation="tiles") == []
