"""Noisy-or of packed tokens: in slots of consecutive tokens, and by a scan if the number of tokens is a symbol."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from constants import replaced
from marks import thorough
from rounding import assert_close

import attnpool_flax
from attnpool_flax.means import either
from attnpool_flax.tokens import channels

RNG = np.random.default_rng(0)
SIZES = [(1, 2), (2, 3), (17, 40), (513, 2), (5000, 60)]
"""Numbers of tokens and of segments."""


def ids_of(kind, length, count):
    """Segments of tokens: at random, nearly all in the first, or all in the last but one."""
    random = RNG.integers(0, count, length)
    return {"random": random, "skewed": np.where(RNG.random(length) < 0.95, 0, random), "one": 0 * random + count - 2}[
        kind
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["random", *thorough(["skewed", "one"])])
@pytest.mark.parametrize("size", [(700, 9), *thorough(SIZES)], ids=str)
def test_slots_and_scan_agree_with_the_product(kind, size):
    length, count = size
    ids = ids_of(kind, length, count)
    order = jnp.asarray(np.argsort(ids, kind="stable"))
    x = RNG.random((length, 3)).astype(np.float32) * 0.02
    x[::97] = 1  # an event that is certain
    neither = np.ones((count, 3))
    np.multiply.at(neither, ids, 1 - np.float64(x))

    def both(reduce, x):
        def pool(x):
            return reduce(x, jnp.asarray(ids), order, count, either)

        return pool(x), jax.grad(lambda x: jnp.sum(jnp.sin(pool(x))))(x)

    by_slots, by_scan = (jax.jit(functools.partial(both, f))(x) for f in (channels._by_slots, channels._by_scan))
    assert_close(by_slots[0], np.float32(1 - neither), 8)
    chex.assert_trees_all_close(by_slots, by_scan, atol=1e-6)


def test_padding_and_other_segments_do_not_reach_a_segment():
    x, ids = RNG.random((40, 3)), np.repeat([0, 1, 5, 2], 10)
    mask = np.arange(40) % 10 < 7
    x[20:30], x[~mask], x[0] = np.inf, np.nan, np.nan  # 5 is no segment
    with replaced(channels, FEW=2, LONGEST=4):
        found = attnpool_flax.segment_noisy_or_pooling(jnp.asarray(x), jnp.asarray(ids), 4, mask)
    assert np.isnan(found[0]).all() and not np.any(found[3])
    alone = [attnpool_flax.noisy_or_pooling(x[ids == i][:7]) for i in (1, 2)]
    assert_close(found[1:3], np.stack(alone), 4)
