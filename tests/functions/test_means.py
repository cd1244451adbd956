"""Generalised means: what they are in terms of one another, and where a plain formula loses its digits or its gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packages import every_package
from rounded_products import GPU, on_device
from rounding import assert_close, rounded

import attnpool_flax
from attnpool_flax.numerics.order_statistic import order_statistics

RNG = np.random.default_rng(31)
X = RNG.standard_normal((2, 6, 3)).astype(np.float32)
MASK = np.array([[1, 1, 0, 1, 1, 1], [0, 1, 1, 0, 0, 0]], bool)


@pytest.mark.thorough
@every_package
def test_means_are_each_others_limits_and_logarithms(package):
    scale = np.float32([-1.5, 0.3, 2])
    ones, bounded = np.ones_like(X) * 2, np.maximum(X, np.float32(0.1))
    lse, power, mean = package.logsumexp_pooling, package.power_mean_pooling, package.mean_pooling(X, MASK)
    assert_close(power(X, MASK, scale, epsilon=0.1), np.exp(np.asarray(lse(np.log(bounded), MASK, scale))))
    weights = package.softmax_pooling(X, MASK, scale, return_weights=True)[1]
    assert_close(package.softmax_pooling(X, MASK, scale), np.sum(np.where(MASK[..., None], X, 0) * weights, 1))
    for at_zero in (lse(X, MASK, 0.0), package.softmax_pooling(X, MASK, 0.0), package.top_k_pooling(X, MASK, k=6)):
        assert_close(at_zero, mean)
    assert_close(power(bounded, MASK, 1.0), package.mean_pooling(bounded, MASK))
    for infinite, extreme in ((np.inf, package.max_pooling), (-np.inf, package.min_pooling)):
        assert_close(lse(X, MASK, infinite), extreme(X, MASK))
        assert_close(package.softmax_pooling(X, MASK, infinite), extreme(X, MASK))
        assert_close(power(bounded, MASK, infinite), extreme(bounded, MASK))
    assert_close(lse(X, MASK, scale, mean=False), lse(X, MASK, scale) + np.log(MASK.sum(1))[:, None] / scale)
    sizes = np.float32([-40, -3, -0.5, -1e-6, 0, 1e-6, 0.5, 3, 40])
    for pooling in (lambda p: power(X, MASK, p), lambda scale: lse(X, MASK, scale)):
        rising = np.stack([np.asarray(pooling(size)) for size in sizes])
        assert np.all(np.diff(rising, axis=0) >= -rounded(X, 64))
    for constant in (power, lse, package.softmax_pooling, package.min_pooling, package.quantile_pooling):
        assert_close(constant(ones, MASK), ones[:, 0])


@every_package
def test_small_scales_and_rare_tokens_keep_their_digits(package):
    line = np.float32([[1], [2], [3]])
    assert_close(package.logsumexp_pooling(line, scale=1e-6), np.float32([2.0000003]), 2)
    assert_close(package.power_mean_pooling(line, p=1e-6), np.float32([6 ** (1 / 3)]), 8)
    rare = np.full((10**6, 1), -100, np.float32)
    rare[7] = 0
    assert_close(package.logsumexp_pooling(rare), np.float32([-6 * np.log(10)]), 2)
    with pytest.raises(ValueError, match="logsumexp_pooling: `scale` has the value 0, needs `mean=True` there"):
        package.logsumexp_pooling(line, scale=0, mean=False)
    with pytest.raises(
        ValueError, match="merge_states: `a` has `mean` True but `b` has False, needs states of equal options"
    ):
        package.merge_states(package.logsumexp_state(line), package.logsumexp_state(line, mean=False))


@pytest.mark.thorough
def test_slopes_where_plain_formulas_lose_them():
    """By a scale near 0, which is half of the variance; at the clamp; and of tokens of 0 without a clamp."""
    line = jnp.array([[1.0], [2.0], [4.0]])

    def slopes(pooling, x, number, **options):
        return jax.grad(lambda x, number: pooling(x, None, number, **options)[0], (0, 1))(x, number)

    for scale in (0.0, 1e-6, -1e-4):
        third = np.mean((np.asarray(line) - np.mean(line)) ** 3)
        expected = np.var(line) / 2 + scale * third / 3
        assert_close(slopes(attnpool_flax.logsumexp_pooling, line, scale)[1], expected)
    power, zeros = attnpool_flax.power_mean_pooling, jnp.array([[0.0], [2.0], [2.0]])
    assert_close(slopes(power, line, 1.0, epsilon=2.0)[0][:, 0], np.float32([0, 1, 1]) / 3)
    assert_close(slopes(power, zeros, 1.0, epsilon=0.0)[0][:, 0], np.float32([1, 1, 1]) / 3)
    assert_close(slopes(power, 0 * zeros, 1.0, epsilon=0.0)[0][:, 0], np.float32([1, 1, 1]) / 3)
    for number in (2.0, -1.0):
        of_x, of_p = slopes(power, zeros, number, epsilon=0.0)
        assert np.all(np.isfinite(of_x)) and np.isfinite(of_p)
        assert of_x[0, 0] == 0
    for pooling in (attnpool_flax.logsumexp_pooling, attnpool_flax.softmax_pooling, power):
        assert_close(slopes(pooling, jnp.array([[1.0], [4.0], [4.0]]), jnp.inf)[0][:, 0], np.float32([0, 0.5, 0.5]))


@pytest.mark.parametrize("as_on", [lambda function: function, lambda function: on_device(GPU, function)])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_order_statistics_are_the_numbers_of_a_sort(dtype, as_on):
    limits = jnp.finfo(dtype)
    special = [0.0, -0.0, jnp.inf, -jnp.inf, limits.max, limits.min, limits.tiny, -limits.tiny, 2.0, 2.0]
    x = jnp.stack([jnp.array(special, dtype), jnp.asarray(RNG.standard_normal(10), dtype)], 1)
    real = np.ones((10, 1), bool)
    real[[3, 6]] = False
    x = jnp.where(real, x, jnp.nan)
    ordered = np.sort(np.where(real, np.float64(x), np.inf), 0)
    find = jax.jit(as_on(order_statistics))
    for rank in range(8):
        for found, place in zip(
            find(x, real, *np.int32([[[rank]], [[min(rank + 1, 7)]]])), (rank, rank + 1), strict=True
        ):
            np.testing.assert_array_equal(np.float64(found), ordered[min(place, 7)])
