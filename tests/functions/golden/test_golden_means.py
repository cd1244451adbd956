"""Numbers for sums, order statistics and generalised means, from outside.

The tables are worked out from the formulas in float64; those of the softmax are PyG's SoftmaxAggregation as well (2.8.1), and
those of GeM what its formula gives by hand, such as 12^(1/3) of (1, 2, 3).
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packages import with_golden_numbers
from rounding import assert_printed

import attnpool_flax

X = np.array([(1, 2), (3, -1), (0.5, 4), (9, 9)])
MASK = np.array([True, True, True, False])
Y = np.array([(1, 2), (3, 0.5), (0.5, 4)])
LINE = np.array([[1.0], [2], [3]])
CHANCES = np.array([(0.1, 0.9), (0.5, 0), (0.2, 1)])

OF_X = [
    ("sum_pooling", {}, (4.5, 5)),
    ("min_pooling", {}, (0.5, -1)),
    ("quantile_pooling", {}, (1, 2)),
    ("quantile_pooling", {"q": 0.25}, (0.75, 0.5)),
    ("top_k_pooling", {"k": 1}, (3, 4)),
    ("top_k_pooling", {"k": 2}, (2, 3)),
    ("top_k_pooling", {"k": 3}, (1.5, 1.666667)),
    ("top_k_pooling", {"k": 8}, (1.5, 1.666667)),
    ("power_mean_pooling", {}, (2.108582, 2.884499)),
    ("logsumexp_pooling", {}, (2.098122, 3.034233)),
    ("logsumexp_pooling", {"mean": False}, (3.196734, 4.132845)),
    ("logsumexp_pooling", {"scale": 10.0}, (2.890139, 3.890139)),
    ("logsumexp_pooling", {"scale": 0.1}, (1.559493, 1.873270)),
    ("logsumexp_pooling", {"scale": -1.0}, (1.074703, 0.043627)),
    ("logsumexp_pooling", {"scale": 0.0}, (1.5, 1.666667)),
    ("softmax_pooling", {}, (2.609105, 3.733502)),
    ("softmax_pooling", {"scale": 0.5}, (2.122319, 3.209509)),
    ("softmax_pooling", {"scale": 0.0}, (1.5, 1.666667)),
    ("softmax_pooling", {"scale": -2.0}, (0.646066, -0.992356)),
    ("softmax_pooling", {"scale": np.array([1.0, 0])}, (2.609105, 1.666667)),
]
OF_Y = [
    (1.0, (1.5, 2.166667)),
    (2.0, (1.848423, 2.598076)),
    (3.0, (2.108582, 2.886167)),
    (0.5, (1.314201, 1.887253)),
    (0.0, (1.144714, 1.587401)),
    (-1.0, (0.9, 1.090909)),
    (np.array([3.0, 1]), (2.108582, 2.166667)),
    (np.inf, (3, 4)),
    (-np.inf, (0.5, 0.5)),
]
SLOPES = [
    ("power_mean_pooling", "p", 3.0, 2.289428, (0.063595, 0.254381, 0.572357), 0.114235),
    ("logsumexp_pooling", "scale", 1.0, 2.308994, (0.090031, 0.244728, 0.665241), 0.266217),
    ("softmax_pooling", "scale", 1.0, 2.575210, (-0.051787, 0.103958, 0.947828), 0.424405),
]


@with_golden_numbers
def test_three_tokens_and_a_pad(package):
    for name, options, expected in OF_X:
        assert_printed(getattr(package, name)(X, MASK, **options), expected)
    for p, expected in OF_Y:
        assert_printed(package.power_mean_pooling(Y, p=p), expected)
    weights = [(0.111166, 0.118500), (0.821409, 0.005900), (0.067425, 0.875601), (0, 0)]
    assert_printed(package.softmax_pooling(X, MASK, return_weights=True)[1], weights)
    assert_printed(package.noisy_or_pooling(CHANCES), (0.64, 1))
    assert_printed(package.quantile_pooling(np.array([[1.0], [2], [3], [10]])), (2.5,))
    assert_printed(package.softmax_pooling(LINE, scale=0.5), (2.320157,))
    stripes = np.array([[[1.0], [2]], [[3], [4]]])  # marl/autopool pools the batch by default
    assert_printed(package.softmax_pooling(stripes), [(1.731059,), (3.731059,)])


@with_golden_numbers
def test_what_other_libraries_cut_off(package):
    """PyG's PowerMeanAggregation clamps the mean of the powers to [1e-4, 100]; half precision overflows at x^p."""
    assert_printed(package.power_mean_pooling(np.array([[10.0], [10]])), (10,))
    assert_printed(package.power_mean_pooling(np.array([[0.01], [0.01]])), (0.01,))
    assert_printed(package.power_mean_pooling(np.array([[-1.0], [3]]), p=1.0), (1.5000005,))
    assert package.power_mean_pooling(np.array([[50.0], [50]], np.float16)) == np.float16(50)
    huge = np.array([[1e30], [1e30]], np.float32)
    assert np.asarray(package.power_mean_pooling(huge, p=np.float32(3)))[0] == huge[0, 0]


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "key", "number", "value", "of_x", "of_number"), SLOPES)
def test_slopes_in_every_mode(name, key, number, value, of_x, of_number):
    def pooled(x, number):
        return getattr(attnpool_flax, name)(x, **{key: number})[0]

    x, number = jnp.array(LINE, jnp.float32), jnp.float32(number)
    found, slopes = jax.value_and_grad(pooled, (0, 1))(x, number)
    forward = jax.jacfwd(pooled, (0, 1))(x, number)
    assert_printed(found, value)
    for each in (slopes, forward):
        assert_printed(each[0][:, 0], of_x)
        assert_printed(each[1], of_number)


def test_slopes_of_order_statistics():
    def slope(name, x, **options):
        return jax.grad(lambda x: getattr(attnpool_flax, name)(x, **options)[0])(jnp.array(x)[:, None])[:, 0]

    assert_printed(slope("top_k_pooling", [3.0, 2, 2, 1], k=2), (0.5, 0.25, 0.25, 0))
    assert_printed(slope("top_k_pooling", [3.0, 3, 1], k=1), (0.5, 0.5, 0))
    assert_printed(slope("noisy_or_pooling", [0.1, 1, 0.2]), (0, 0.72, 0))
    assert_printed(slope("min_pooling", [1.0, 1, 3]), (0.5, 0.5, 0))


@with_golden_numbers
@pytest.mark.parametrize("method", ["linear", "lower", "higher", "nearest", "midpoint"])
@pytest.mark.parametrize("q", [0.0, 0.125, 0.25, 0.375, 0.5, 0.75, 1.0])
def test_quantiles_are_those_of_numpy(package, q, method):
    """numpy.quantile of the real tokens; (N - 1) q is exact, an integer, half of one, or neither."""
    x = np.array([[1.0, -2], [4, 8], [0.5, 3], [16, -32], [2, 7], [99, 99]])
    real = np.array([True] * 5 + [False])
    assert_printed(package.quantile_pooling(x, real, q, method=method), np.quantile(x[:5], q, 0, method=method))


def test_of_a_quantile_by_midpoint_both_values_have_half_of_the_gradient():
    x = jnp.array([[1.0], [4], [0.5], [16]])

    def gradient(method):
        return jax.grad(lambda x: attnpool_flax.quantile_pooling(x, q=0.4, method=method)[0])(x)[:, 0].tolist()

    assert [gradient(m) for m in ("lower", "higher", "midpoint")] == [[1, 0, 0, 0], [0, 1, 0, 0], [0.5, 0.5, 0, 0]]
