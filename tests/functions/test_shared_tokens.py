"""Tokens that all examples share, pooled under a query of each example, by tiles that hold several examples."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rounding import rounded
from walks import small_tiles

import attnpool_flax
import attnpool_ref

BATCH, L, D = 7, 6, 5
"""Two examples a tile: the last tile overlaps the one before it."""

RNG = np.random.default_rng(0)
X = RNG.normal(size=(L, D)).astype(np.float32)
QUERY = RNG.normal(size=(BATCH, D)).astype(np.float32)
MASK = np.arange(L) < L - 2
KERNELS = {key: RNG.normal(size=(D, 2, 4)).astype(np.float32) for key in ("query_kernel", "key_kernel", "value_kernel")}

POOLINGS = {
    "attention_pooling": {"query": QUERY},
    "multi_head_attention_pooling": {"query": QUERY[:, None], **KERNELS},
}


@pytest.mark.thorough
@pytest.mark.parametrize("mask", [None, MASK], ids=["no mask", "mask"])
@pytest.mark.parametrize("name", POOLINGS)
def test_results_and_gradients_are_those_of_repeated_tokens(name, mask):
    def pooled(x, options):
        return getattr(attnpool_flax, name)(x, mask, **options, implementation="tiles")

    def slopes(x, options):
        return jax.grad(lambda *arrays: jnp.sum(jnp.sin(pooled(*arrays))), (0, 1))(x, options)

    with small_tiles(WHOLE=2 * X.nbytes, ROW=2**20):
        found, (dx, doptions) = jax.jit(lambda *arrays: (pooled(*arrays), slopes(*arrays)))(X, POOLINGS[name])
        repeated, each = jax.jit(slopes)(np.tile(X, (BATCH, 1, 1)), POOLINGS[name])
    want = getattr(attnpool_ref, name)(X, mask, **POOLINGS[name]), jnp.sum(repeated, 0), *jax.tree.leaves(each)
    for a, b in zip((found, dx, *jax.tree.leaves(doptions)), want, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=rounded(b, BATCH * X.size))
