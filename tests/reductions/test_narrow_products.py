"""Kernels of accelerators, run on a CPU: whole products of raw tokens, whose float32 factors are two narrow rows."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from constants import replaced
from marks import all_with_few_quick

from attnpool_flax.numerics import products
from attnpool_flax.reductions import softmax, sums

B, L, D = 3, 7, 5
DTYPES = ("bfloat16", "float16", "float32")
BITS = {"bfloat16": 16, "float16": 22, "float32": 23}
"""Bits of a factor that products see: of two narrow rows, or of float32."""

every_dtype = pytest.mark.parametrize("dtype", DTYPES)
every_form = pytest.mark.parametrize(
    "heads, on_gpus", [(1, False), (1, True), (4, False)], ids=["one query", "one query, on GPUs", "4 queries"]
)
every_count = pytest.mark.parametrize("heads", [1, 4])


@pytest.fixture
def arrays(request):
    """Tokens in float32, a mask with a fully masked row, queries, a multiplier and a bias."""
    random = np.random.default_rng(7)
    heads = request.node.callspec.params["heads"]
    x = random.normal(size=(B, L, D)).astype(np.float32)
    mask = np.array([[1, 1, 1, 0, 1, 1, 0], [0] * L, [0, 1, 1, 1, 1, 0, 1]], bool)
    queries = random.normal(size=(1, heads, D)).astype(np.float32)
    multiplier, bias = random.uniform(0, 2, (2, B, L, heads)).astype(np.float32)
    return x, mask, queries, multiplier, bias


def pooled(x, mask, queries, multiplier, bias):
    """The pooled vectors by the kernel with its gradient rule."""
    _, state = softmax.tiled(x, mask, None, queries, multiplier, bias, jax.lax.Precision.HIGHEST)
    return state.finalize()


def with_gradients(function):
    """A compiled function of the same arguments: results, and the gradients of the sum of their squares in float32."""

    def loss(x, mask, *factors):
        found = function(x, mask, *factors)
        return jnp.sum(jnp.square(found)), found

    def both(*arrays):
        (_, found), gradients = jax.value_and_grad(loss, (0, 2, 3, 4), has_aux=True)(*arrays)
        return found, gradients

    return jax.jit(both)


@pytest.fixture
def on_accelerators(on_gpus):
    """Takes the branch of accelerators."""

    def by_platform(tiled, plain, tiling, *arrays, whole):
        return whole(*arrays, on_gpus=on_gpus)

    with replaced(softmax, by_platform=by_platform), replaced(sums, by_platform=by_platform):
        yield


@pytest.mark.thorough
@every_dtype
@every_form
def test_results_and_gradients_are_those_of_float32_tokens(arrays, dtype, on_gpus, heads, on_accelerators):
    x, mask, *factors = arrays
    x = jnp.asarray(x, dtype)
    found, gradients = with_gradients(pooled)(x, mask, *factors)
    with jax.enable_x64(True):
        wide = [np.asarray(array, np.float64) for array in (x, *factors)]
        plain = functools.partial(_plain, dtype=jnp.float64)
        expected, slopes = with_gradients(plain)(wide[0], mask, *wide[1:])
    size = float(jnp.max(jnp.abs(x)))
    # a score is off by its factors' bits, a weight by twice that, relatively; a gradient has one more factor of each
    factor = np.abs(factors[0]).sum(-1).max() * size
    allowed = 2.0 ** -BITS[dtype] * (2 + 2 * factor) * (1 + size) * L * D
    chex.assert_trees_all_close(np.asarray(found), np.asarray(expected), atol=allowed, rtol=0)
    rounded = jnp.finfo(dtype).eps  # of dx, at the end
    for ours, theirs in zip(gradients, slopes, strict=True):
        largest = np.abs(theirs).max() + 1
        atol = allowed * (2 + factor) * largest + (rounded * largest if ours.dtype == x.dtype else 0)
        chex.assert_trees_all_close(np.asarray(ours, np.float64), np.asarray(theirs), atol=atol, rtol=0)


def _plain(x, mask, queries, multiplier, bias, dtype):
    x = jnp.asarray(x, dtype)
    _, state = softmax.plain(x, mask, None, queries, multiplier, bias, jax.lax.Precision.HIGHEST)
    return state.finalize()


@pytest.mark.parametrize("dtype", all_with_few_quick(DTYPES, ["float16"]))
@every_form
def test_padding_changes_no_bit(arrays, dtype, on_gpus, heads, on_accelerators):
    x, mask, *factors = arrays
    step = with_gradients(pooled)

    def filled(fill):
        return step(jnp.asarray(np.where(mask[..., None], x, fill), dtype), mask, *factors)

    for poison in (np.nan, np.inf, -np.inf, 6e4):
        chex.assert_trees_all_equal(filled(poison), filled(0), strict=True)


@pytest.mark.thorough
@pytest.mark.parametrize("on_gpus", [False, True])
def test_nan_in_padding_reaches_no_second_derivative(on_gpus, on_accelerators):
    random = np.random.default_rng(7)
    x, mask = random.normal(size=(B, L, D)).astype(np.float32), np.arange(L) < np.array([[L - 2], [0], [3]])
    queries, weights = random.normal(size=(1, 1, D)), random.uniform(size=(B, L, 1))

    def loss(x, queries, weights):
        sum_ = sums.tiled_sum(x, mask, weights, 1.0, jax.lax.Precision.HIGHEST)
        return jnp.sum(jnp.sin(pooled(x, mask, queries, None, None))) + jnp.sum(jnp.sin(sum_))

    def along(*arrays):
        return sum(jnp.sum(jnp.square(slope)) for slope in jax.grad(loss, (0, 1, 2))(*arrays))

    second = jax.jit(jax.grad(along, (0, 1, 2)))

    def filled(fill):
        return second(jnp.where(mask[..., None], x, fill), jnp.float32(queries), jnp.float32(weights))

    chex.assert_tree_all_finite(filled(0))
    chex.assert_trees_all_equal(filled(np.nan), filled(0), strict=True)


@every_count
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e4, 3e38])
def test_factors_beyond_the_range_of_float16_are_scaled(size, heads):
    factors = np.linspace(0.5, 1, heads * D, dtype=np.float32).reshape(1, heads, D) * np.float32(size)
    x = jnp.asarray(np.eye(D)[None] / 8, jnp.float16)
    found = products.token_products(x, factors, None)
    np.testing.assert_allclose(found[0].T, factors[0] / 8, rtol=2.0**-21)


def test_many_small_weights_are_not_lost_in_float16():
    """2^16 tokens of weight 1e-7: together 0.0066, each half of float16's smallest number."""
    count = 2**16
    weights, x = jnp.full((1, count, 1), 1e-7), jnp.ones((1, count, 1), jnp.float16)
    total = products.token_sums(weights.at[0, -1].set(1.0), x, None, None)
    np.testing.assert_allclose(total[0, 0, 0], 1 + (count - 1) * 1e-7, rtol=1e-5)
