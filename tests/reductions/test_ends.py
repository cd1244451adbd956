"""The loop over tiles goes on to the next example behind the last real token, wherever that stands in its tile."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from marks import all_with_few_quick
from rounding import rounded
from walks import small_tiles

import attnpool_flax
from attnpool_flax.reductions.loops import tiling

ENDS = {
    "mean_pooling": (),
    "max_pooling": (),
    "weighted_pooling": ("weights",),
    "attention_pooling": ("query", "dropout_multiplier"),
}


@pytest.mark.parametrize("name", all_with_few_quick(ENDS, ["mean_pooling"]))
def test_the_real_tokens_may_end_anywhere_in_a_tile(name):
    """Tiles behind the last real token are not visited: at both sides of a tile's end, and where nothing is real."""
    rng, length = np.random.default_rng(0), 640
    ends = [0, 1, 127, 128, 129, 256, 257, 512, 639, 640]
    mask = np.arange(length) < np.array(ends)[:, None]
    mask[-2] = np.roll(mask[3], 200)  # padding on both sides
    shapes = {"weights": (length,), "query": (64,), "dropout_multiplier": mask.shape}
    x = rng.normal(size=(*mask.shape, 64)).astype(np.float32)
    more = {key: rng.uniform(0.5, 1, shapes[key]).astype(np.float32) for key in ENDS[name]}
    options = {"return_weights": True} if name == "attention_pooling" else {}
    clean = np.where(mask[..., None], x, 0)

    def both(x, more, implementation):
        def loss(x, more):
            found = getattr(attnpool_flax, name)(x, mask=mask, **more, **options, implementation=implementation)
            return sum(jnp.sum(jnp.sin(part)) for part in jax.tree.leaves(found)), found

        return jax.value_and_grad(loss, (0, 1), has_aux=True)(x, more)

    with small_tiles(TOKENS=128):
        assert tiling.make_tiling(*x.shape).size == 128
        (_, found), slopes = jax.jit(both, static_argnums=2)(np.where(mask[..., None], x, np.nan), more, "tiles")
    (_, expected), expected_slopes = jax.jit(both, static_argnums=2)(clean, more, "einsum")
    for got, want in zip(jax.tree.leaves((found, slopes)), jax.tree.leaves((expected, expected_slopes)), strict=True):
        chex.assert_trees_all_close(got, want, atol=rounded(np.asarray(want), length), rtol=0)
