"""Gradients by arguments that the judge leaves out: dropout's multiplier, the scale of a sum, the scores of hard Gumbel weights."""

import chex
import jax
import numpy as np
import pytest

import attnpool_flax
import attnpool_ref

MASK = np.array([[True, True, False, True, True], [True, False, True, True, False]])
IDS = np.array([0, 0, 1, 1, 1])


def of_attention(rng):
    return {"x": rng.normal(size=(2, 5, 3)), "mask": MASK, "query": rng.normal(size=3)}, (2, 5)


def of_packed_attention(rng):
    of_tokens = {"x": rng.normal(size=(5, 3)), "segment_ids": IDS, "mask": MASK[0], "query": rng.normal(size=3)}
    return of_tokens | {"num_segments": 2}, (5,)


def of_many_queries(rng):
    arrays = {key: rng.normal(size=(2, length, 3)) for key, length in (("query", 4), ("key", 5), ("value", 5))}
    return arrays | {"mask": MASK[:, None]}, (2, 4, 5)


@pytest.mark.parametrize(
    ("name", "drawn", "options"),
    [
        ("attention_pooling", of_attention, {"implementation": "tiles"}),
        ("attention_pooling", of_attention, {"implementation": "einsum"}),
        ("segment_attention_pooling", of_packed_attention, {"implementation": "tiles"}),
        ("segment_attention_pooling", of_packed_attention, {"implementation": "einsum"}),
        ("dot_product_attention", of_many_queries, {}),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_the_gradient_of_dropouts_multiplier_is_the_change_of_the_result(rng, name, drawn, options):
    """The results are linear in the multiplier: a difference of two of them is exact."""
    arrays, shape = drawn(rng)
    multiplier, change = rng.integers(0, 2, shape) * 2.0, rng.normal(size=shape)
    ours, definition = (
        lambda multiplier, package=package, own=own: getattr(package, name)(
            **arrays, dropout_multiplier=multiplier, **own
        )
        for package, own in ((attnpool_flax, options), (attnpool_ref, {}))
    )
    cotangent = rng.normal(size=definition(multiplier).shape)
    gradient = jax.grad(lambda multiplier: (ours(multiplier) * cotangent).sum())(multiplier.astype("float32"))
    expected = (cotangent * (definition(multiplier + change) - definition(multiplier))).sum()
    np.testing.assert_allclose((gradient * change).sum(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mean", [True, False])
def test_the_derivative_of_logsumexp_by_its_scale(rng, mean):
    x, step = rng.normal(size=(2, 5, 3)), 1e-5
    higher, lower = (attnpool_ref.logsumexp_pooling(x, MASK, 0.7 + own, mean=mean) for own in (step, -step))
    by_scale = jax.jacfwd(lambda scale: attnpool_flax.logsumexp_pooling(x, MASK, scale, mean=mean))(0.7)
    np.testing.assert_allclose(by_scale, (higher - lower) / (2 * step), rtol=1e-3, atol=1e-5)


def test_the_gradient_of_hard_gumbel_weights_is_that_of_the_soft_ones(rng):
    scores, noise, cotangent = rng.normal(size=(3, 2, 5)).astype("float32")

    def gradients(hard):
        def loss(scores, noise):
            weights = attnpool_flax.gumbel_softmax(scores, MASK, noise, temperature=0.7, hard=hard)
            return (weights * cotangent).sum()

        return jax.grad(loss, (0, 1))(scores, noise)

    chex.assert_trees_all_close(gradients(True), gradients(False), rtol=1e-5, atol=1e-7)
    assert all(np.abs(gradient).max() > 1e-3 for gradient in gradients(True))
