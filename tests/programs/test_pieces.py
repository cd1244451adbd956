"""The loop over pieces, which CPUs take for large arrays, on small ones: pieces of a few tokens, or of two examples."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from constants import replaced
from differentiated_twice import forward_mode_of_jit, judged
from drawn import draw
from marks import all_with_few_quick
from rounding import assert_close, rounded

import attnpool_flax
import attnpool_ref
from attnpool_flax.tokens import tiles
from attnpool_ref import conformance
from attnpool_ref.conformance.checks.gradients import REVERSE

KINDS = {
    "parts": {"WHOLE": 0, "EXAMPLES": 0, "PIECE": 24, "LEAST": 1, "RUN": 3},
    "examples": {"WHOLE": 0, "EXAMPLES": 100, "RUN": 8},
}
"""Constants of :mod:`attnpool_flax.tokens.tiles`. Of the judge's 5 examples of 7 tokens, the last piece overlaps the one
before. A part has 4 tokens, of which one is read where the other three are padding."""

DTYPES = {"parts": "float32", "examples": "bfloat16"}

NAMES = (
    "mean_pooling",
    "max_pooling",
    "weighted_pooling",
    "attention_pooling",
    "multi_head_attention_pooling",
    "additive_attention_pooling",
    "gated_sum_pooling",
    "vlad_pooling",
    "set2set_pooling",
    "cross_attention_pooling",
    "segment_mean_pooling",
    "segment_max_pooling",
    "segment_attention_pooling",
    "segment_multi_head_attention_pooling",
    "segment_gated_sum_pooling",
)
"""A function for each way to reduce tokens in pieces."""

FEW = ("mean_pooling", "max_pooling", "attention_pooling")


@pytest.fixture(params=KINDS)
def kind(request):
    """The kind of the pieces, which replace the whole arrays."""
    with replaced(tiles, **KINDS[request.param]):
        yield request.param


def parts():
    """Pieces of a few tokens in a with block."""
    return replaced(tiles, **KINDS["parts"])


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_pieces_keep_the_contract(name, kind):
    options = {
        "dtypes": (DTYPES[kind],),
        "shapes": ("length 0",),
        "partial": False,
        "long": False,
        "whole_contract": True,
    }
    conformance.check(attnpool_flax, name, **options)


@pytest.mark.thorough
@pytest.mark.parametrize("name", [*FEW, "vlad_pooling", "segment_max_pooling", "segment_attention_pooling"])
def test_pieces_have_second_derivatives_and_forward_mode(name):
    with parts():
        assert judged(attnpool_flax, name, REVERSE) == []
        ahead, back, allowed = forward_mode_of_jit(attnpool_flax, name)
    assert abs(ahead - back) <= allowed


def pooled(name):
    """From tokens [..., L, 6] to the pooled vector under a mask and a query that depends on the tokens."""

    def function(x):
        mask = jnp.arange(x.shape[-2]) % 3 > 0
        options = {"query": x[..., 0, :]} if name == "attention_pooling" else {}
        return getattr(attnpool_flax, name)(x, mask=mask, **options)

    return function


def loss(function):
    return lambda x: jnp.sum(jnp.sin(function(x)))


TRANSFORMED = {
    "vmap of grad": lambda f, x: jax.vmap(jax.grad(loss(f)))(jnp.stack([x, 2 * x])),
    "grad of vmap": lambda f, x: jax.grad(loss(jax.vmap(f, 1)))(jnp.stack([x, 2 * x], 1)),
    "vmap of no call": lambda f, x: jax.vmap(f)(jnp.zeros((0, *x.shape))),
    "jacrev": lambda f, x: jax.jacrev(f)(x),
    "grad of scan": lambda f, x: jax.grad(loss(lambda x: jax.lax.map(lambda y: f(x * y), jnp.stack([x, x[::-1]]))))(x),
    "jvp of checkpoint": lambda f, x: jax.jvp(jax.checkpoint(loss(f)), (x,), (jnp.cos(x),)),
    "hessian": lambda f, x: jax.hessian(loss(f))(x[:, :5]),
}


@pytest.mark.thorough
@pytest.mark.parametrize("transformed", TRANSFORMED)
@pytest.mark.parametrize("name", FEW)
def test_transformations_of_pieces_are_those_of_whole_arrays(name, transformed, rng):
    x, compute = draw(rng, 3, 7, 6), functools.partial(TRANSFORMED[transformed], pooled(name))
    whole = jax.jit(lambda x: compute(x))(x)
    with parts():
        pieces = jax.jit(lambda x: compute(x))(x)
    for own, other in zip(jax.tree.leaves(pieces), jax.tree.leaves(whole), strict=True):
        chex.assert_trees_all_close(own, other, atol=rounded(np.asarray(other), 64), rtol=0)


def with_gradients(function):
    """From arrays to ((the sum of the result's sines, the result), the gradients of all arrays)."""

    def both(*arrays):
        def objective(*arrays):
            result = function(*arrays)
            return sum(jnp.sum(jnp.sin(part)) for part in jax.tree.leaves(result)), result

        return jax.value_and_grad(objective, range(len(arrays)), has_aux=True)(*arrays)

    return jax.jit(both)


@pytest.mark.parametrize("name", all_with_few_quick(FEW, ["attention_pooling"]))
def test_real_tokens_may_begin_and_end_anywhere_in_a_piece(name, rng):
    """Also with padding on the left, and of NaN; tokens that no piece has to read are not missed."""
    starts, ends = np.triu_indices(12)
    mask = (np.arange(11) >= starts[:, None]) & (np.arange(11) < ends[:, None])
    x, query = draw(rng, len(mask), 11, 6), draw(rng, 6)
    function = getattr(attnpool_flax, name)
    options = {"query": query} if name == "attention_pooling" else {}
    clean = np.where(mask[..., None], x, 0)
    expected = with_gradients(lambda x: function(x, mask=mask, **options))(clean)
    with parts():
        found = with_gradients(lambda x: function(x, mask=mask, **options))(np.where(mask[..., None], x, np.nan))
        alone = jax.jit(lambda x: function(x, mask=mask, **options))(np.where(mask[..., None], x, np.nan))
    chex.assert_trees_all_close((found, alone), (expected, expected[0][1]), atol=rounded(clean, 64), rtol=0)


@pytest.mark.thorough
@pytest.mark.parametrize("examples", [5, 7])
def test_examples_share_tokens_under_masks_and_queries_of_their_own(examples, kind, rng):
    """The gradient of the shared tokens is the sum over the examples, of which the last piece has some again."""
    x, mask, query = draw(rng, 7, 6), rng.random((examples, 7)) < 0.7, draw(rng, examples, 6)
    mask[1] = False

    def function(shared):
        def pool(x, query):
            x = x if shared else jnp.broadcast_to(x, (examples, *x.shape))
            return attnpool_flax.attention_pooling(x, mask, query, return_weights=True)

        return with_gradients(pool)(x, query)

    found, each = function(True), function(False)
    chex.assert_trees_all_close(found, each, atol=1e-5, rtol=0)
    assert_close(found[0][1], attnpool_ref.attention_pooling(x, mask, query, return_weights=True))


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_an_infinite_token_in_two_pieces_counts_once(value, rng):
    x, mask = draw(rng, 2, 7, 6), np.ones((2, 7), bool)
    x[0, 3, 1] = value  # both parts have it
    with parts():
        for options in ({}, {"weights": jnp.full(7, 0.5)}):
            found = attnpool_flax.weighted_pooling(x, mask=mask, **options)
            assert found[0, 1] == value
            assert np.isfinite(np.delete(found[0], 1)).all() and np.isfinite(found[1]).all()


@pytest.mark.thorough
def test_packed_tokens_of_padding_and_of_numbers_out_of_range_change_no_bit(rng):
    x, ids, query = draw(rng, 90, 4), rng.integers(0, 5, 90, np.int32), np.ones(4, np.float32)
    out = np.arange(90) % 4 == 1
    ids[out] = np.resize(np.array([-1, 5, 2**31 - 1, -(2**31)], np.int32), out.sum())

    def pool(x, query):
        return attnpool_flax.segment_attention_pooling(x, jnp.asarray(ids), 5, query=query, return_weights=True)

    with parts():
        program = with_gradients(pool)
        clean, *others = (program(np.where(out[:, None], poison, x), query) for poison in (0, np.nan, np.inf, 1e30))
    for other in others:
        chex.assert_trees_all_equal(other, clean)
    assert_close(clean[0][1][0], attnpool_ref.segment_attention_pooling(x[~out], ids[~out], 5, query=query))
    assert not np.any(clean[0][1][1][out])
    assert not np.any(clean[1][0][out])
