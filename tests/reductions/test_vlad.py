"""Sums of residuals as TPUs and GPUs compute them, evaluated on a CPU: no digits are lost, and derivatives are those of the CPU."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from marks import thorough
from rounded_products import GPU, TPU, on_device
from rounding import rounded

import attnpool_flax
import attnpool_ref
from attnpool_flax.reductions.packed.segments import segments_of
from attnpool_flax.reductions.vlad import pairs_of

pytestmark = pytest.mark.thorough

B, L, D, K, GHOSTS = 3, 37, 11, 5, 2
SMALL = 1e-4
"""The size of the residuals, relative to that of the centers."""

on_both = pytest.mark.parametrize("platform", [TPU, *thorough([GPU])])
in_layouts = pytest.mark.parametrize("layout", ["packed", *thorough(["dense", "sorted"])])


def drawn(rng, size):
    """The mask, and tokens near a center each, in the first example near one center; kernel and centers."""
    centers = rng.normal(size=(K, D))
    near = rng.integers(K, size=(B, L))
    near[0] = 2
    x = centers[near] + size * rng.normal(size=(B, L, D))
    mask = rng.random((B, L)) < 0.8
    mask[1] = False
    kernel = 2 * rng.normal(size=(D, K + GHOSTS))
    return mask, [np.float32(array) for array in (x, kernel, centers)]


def pooled(layout, mask, order=None):
    """Returns a function from x, kernel and centers to the sums [B, K, D]."""

    def dense(x, kernel, centers):
        return attnpool_flax.vlad_pooling(x, mask, assign_kernel=kernel, centers=centers, normalize=False)

    def packed(x, kernel, centers):
        x, ids, real = jnp.reshape(x, (-1, D)), jnp.repeat(jnp.arange(B), L), jnp.ravel(mask)
        if order is not None:
            x, ids, real = x[order], ids[order], real[order]
        options = {"assign_kernel": kernel, "centers": centers, "normalize": False}
        return attnpool_flax.segment_vlad_pooling(x, ids, B, real, **options, indices_are_sorted=layout == "sorted")

    return dense if layout == "dense" else packed


def gradients(function):
    def weighed(*arrays):
        found = function(*arrays)
        return jnp.sum(found * jnp.reshape(jnp.sin(jnp.arange(found.size)).astype(found.dtype), found.shape))

    return jax.grad(weighed, (0, 1, 2))


@on_both
@in_layouts
def test_small_residuals_keep_their_digits(layout, platform, rng):
    mask, arrays = drawn(rng, SMALL)
    order = rng.permutation(B * L) if layout == "packed" else None
    function = pooled(layout, mask, order)
    found, slopes = on_device(platform, lambda *own: (function(*own), gradients(function)(*own)))(*arrays)
    x, kernel, centers = (np.float64(array) for array in arrays)
    expected = attnpool_ref.vlad_pooling(x, mask, assign_kernel=kernel, centers=centers, normalize=False)
    weights = attnpool_ref.vlad_pooling(x, mask, assign_kernel=kernel, centers=centers, return_weights=True)[1]
    sizes = np.einsum("blk,blk->bk", weights, np.linalg.norm(x[:, :, None] - centers, axis=-1))
    assert (np.abs(found - expected) <= rounded(1, terms=L) * sizes[..., None]).all()
    assert sizes[0, 2] < 100 * SMALL * np.sum(weights[0, :, 2])
    with jax.enable_x64(True):
        wide = gradients(pooled("dense", mask))(x, kernel, centers)
    for ours, theirs in zip(slopes, wide, strict=True):
        chex.assert_trees_all_close(ours, np.float32(theirs), rtol=0, atol=rounded(theirs, terms=B * L))


@on_both
@in_layouts
def test_tokens_at_their_center_leave_exactly_nothing(layout, platform, rng):
    mask, (_, kernel, centers) = drawn(rng, 1)
    x = np.broadcast_to(centers[2], (B, L, D))
    found = on_device(platform, pooled(layout, mask))(x, kernel, centers)
    assert not found[:, 2].any()
    assert found[0, [0, 1, 3, 4]].all()


@pytest.mark.thorough
@pytest.mark.parametrize("count", [7, *thorough([1, 40, 300])])
@pytest.mark.parametrize("length", [23, *thorough([1, 64, 1000])])
def test_each_real_token_is_in_one_pair_that_has_its_segment(length, count, rng):
    real = rng.random(length) < 0.8
    ids = rng.integers(-1, count + 1, length) ** 2 // count  # many segments without a token
    for own, ordered in ((ids, False), (np.sort(ids), True), (np.full(length, count - 1), True)):
        segments = segments_of(jnp.asarray(own), jnp.asarray(real), count, ordered)
        pairs = pairs_of(segments)
        places, pair = pairs.of_tokens(jnp.arange(length))[pairs.real], jnp.nonzero(pairs.real)[0]
        found = sorted(zip(places.tolist(), pairs.segment[pair].tolist(), strict=True))
        assert found == [(i, own[i]) for i in range(length) if real[i] and 0 <= own[i] < count]
        assert (jnp.diff(pairs.segment) >= 0).all()
