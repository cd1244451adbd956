"""Guarantees of programs for TPUs and GPUs, which are evaluated on a CPU: NaN at padding and real tokens, second derivatives."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from constants import replaced
from differentiated_twice import fullest
from marks import all_with_few_quick, thorough
from rounded_products import GPU, TPU, on_device
from rounding import rounded
from walks import small_tiles

import attnpool_flax
from attnpool_flax.numerics.products import token_products
from attnpool_flax.reductions import perceptron, softmax
from attnpool_flax.reductions.packed import chunks as packed_chunks
from attnpool_flax.reductions.packed import softmax as packed_softmax
from attnpool_flax.reductions.packed import sums as packed_sums
from attnpool_ref.conformance import checks
from attnpool_ref.conformance.candidates.adapters.jax_arrays import JaxArrays
from attnpool_ref.conformance.checks.gradients import REVERSE

ROWS = (
    "attention_pooling",
    "multi_head_attention_pooling",
    "weighted_pooling",
    "additive_attention_pooling",
    "gated_sum_pooling",
    "attentive_statistics_pooling",
    "dot_product_attention",
    "additive_attention",
    "tanh_sum_attention",
    "kernel_regression",
    "mask_attention",
    "bidaf_attention",
    "label_attention",
    "cross_attention_pooling",
    "vlad_pooling",
    "maxsim_score",
    "segment_attention_pooling",
    "segment_additive_attention_pooling",
    "segment_gated_sum_pooling",
    "segment_attentive_statistics_pooling",
    "segment_vlad_pooling",
)
"""One row for each kernel that accelerators have of their own."""

CHECKS = [
    ("NaN in padding", "bfloat16"),
    ("NaN in padding", "float16"),
    ("NaN at a real token", "float32"),
    (REVERSE, "float64"),
]


class OnDevice(JaxArrays):
    """Adapter that differentiates programs as a platform runs them."""

    def __init__(self, platform):
        self.platform = platform

    def gradient(self, function, arrays, fixed, cotangents):
        def gradients(arrays, fixed, cotangents):
            return jax.vjp(lambda moved: function(moved | fixed), arrays)[1](cotangents)[0]

        return jax.tree.map(np.asarray, on_device(self.platform, gradients)(arrays, fixed, cotangents))

    def second(self, function, arrays, fixed, cotangents, directions, forward):
        assert not forward

        def products(arrays, fixed, cotangents, directions):
            def along(arrays):
                outputs, pull = jax.vjp(lambda moved: function(moved | fixed), arrays)
                (slopes,) = pull([c * (1 + output) for c, output in zip(cotangents, outputs, strict=True)])
                return sum(jnp.sum(slope * directions[key]) for key, slope in slopes.items())

            return jax.grad(along)(arrays)

        return jax.tree.map(np.asarray, on_device(self.platform, products)(arrays, fixed, cotangents, directions))


def as_on(platform, function):
    """Returns the function; its direct calls are evaluated as the platform runs them."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        leaves, shape = jax.tree.flatten((args, kwargs))
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):  # differentiated, and then evaluated
            return function(*args, **kwargs)
        arrays = [i for i, leaf in enumerate(leaves) if isinstance(leaf, jax.Array | np.ndarray)]

        def run(*given):
            own, options = jax.tree.unflatten(
                shape, [dict(zip(arrays, given, strict=True)).get(i, x) for i, x in enumerate(leaves)]
            )
            return function(*own, **options)

        return on_device(platform, run)(*(jnp.asarray(leaves[i]) for i in arrays))

    return call


def messages(name, check, dtype, platform):
    """The messages of a check that failed, of tiles of 3 tokens."""
    candidate = as_on(platform, getattr(attnpool_flax, name))
    with (
        small_tiles(WHOLE=0, ROW=0, TOKENS=3),
        replaced(packed_sums, TOKENS=3, FEWEST=3),
        replaced(packed_softmax, LEAST=4, LONGEST=6),
        replaced(packed_chunks, FEWEST_TOKENS=8, ROWS=8),
        replaced(perceptron, TOKENS=3),
    ):
        subject, case, situation = fullest(candidate, name, OnDevice(platform), dtype=dtype)
        assert checks.CHECKS[check].applies(situation)
        found = checks.CHECKS[check].run(subject, case, situation)
    found = found if isinstance(found, list) else [found]
    assert None not in found
    return [finding.message for finding in found if finding.message]


@pytest.mark.thorough
@pytest.mark.parametrize("platform", [TPU, *thorough([GPU])])
@pytest.mark.parametrize(("check", "dtype"), CHECKS)
@pytest.mark.parametrize("name", all_with_few_quick(ROWS, ["segment_attention_pooling"]))
def test_accelerators_keep_what_cpus_guarantee(name, check, dtype, platform):
    assert messages(name, check, dtype, platform) == []


@pytest.mark.thorough
@pytest.mark.parametrize("platform", [TPU, GPU])
def test_products_of_raw_tokens_that_jax_differentiates_are_found(platform):
    raw = lambda x, real, *others: token_products(x, *others)  # noqa: E731
    with replaced(softmax, raw_products=raw):
        (message,) = messages("attention_pooling", REVERSE, "float64", platform)
    assert "where NaN stands in the padding" in message


@pytest.mark.parametrize("platform", [TPU, GPU])
def test_layer_norm_of_large_equal_and_not_finite_numbers(platform):
    """Equal numbers are exactly 0, and NaN stays in its vector."""
    rng = np.random.default_rng(0)
    x, scale, cotangent = (rng.normal(size=shape).astype(np.float32) for shape in ((4, 7), 7, (4, 7)))
    x[1] *= np.float32(1e30)
    x[2], x[3, 0] = 0.1, np.nan

    def results(x, scale):
        result, pull = jax.vjp(lambda *arrays: attnpool_flax.layer_norm(*arrays, epsilon=1e-6), x, scale)
        return result, *pull(cotangent)

    found, expected = on_device(platform, results)(x, scale), jax.jit(results)(x, scale)
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=0, atol=rounded(np.nan_to_num(other), 64))
    assert np.isfinite(found[0][:3]).all() and not found[0][2].any() and np.isnan(found[0][3]).all()
