"""The smallest inputs on which a hostile reading got a wrong number: rounding that decides, sums that drift, overflow."""

from fractions import Fraction

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from marks import one_in
from packages import every_package
from rounding import rounded

import attnpool_flax
import attnpool_ref
from attnpool_flax.numerics.rounding import largest_product

NAN, INF = np.nan, np.inf


def f32(*numbers):
    return np.array(numbers, np.float32)


def assert_near(actual, expected, terms=16, dtype=None):
    """To rounding of the expected numbers; NaN where NaN is expected."""
    expected = np.asarray(expected, np.float64)
    chex.assert_shape(actual, expected.shape)
    size = np.nan_to_num(expected, posinf=0, neginf=0)
    np.testing.assert_allclose(np.asarray(actual, np.float64), expected, rtol=0, atol=rounded(size, terms, dtype))


# Residuals that are 0


def exactly(labels, adjacency, num_layers):
    """The decomposition in fractions: projections need no root."""
    for _ in range(num_layers):
        rest = []
        for label, neighbours in zip(labels, adjacency, strict=True):
            taken = [Fraction(0)] * len(label)
            for other, real in zip(labels, neighbours, strict=True):
                square = sum(c * c for c in other)
                if real and square:
                    share = sum(a * b for a, b in zip(label, other, strict=True)) / square
                    taken = [t + share * c for t, c in zip(taken, other, strict=True)]
            count = max(sum(neighbours), 1)
            rest.append([c - t / count for c, t in zip(label, taken, strict=True)])
        labels = rest
    return labels


GRAPHS = {
    "a duplicate": ([[1, 2, 3], [1, 2, 3], [10, 0, 0]], [[0, 1, 0], [1, 0, 0], [1, 0, 0]]),
    "a parallel neighbour": ([[1, 2, 3], [-2, -4, -6], [10, 0, 0]], [[0, 1, 0], [1, 0, 0], [1, 1, 0]]),
    "itself alone": ([[1, 2, 3], [3, 1, 2], [10, 0, 7]], [[1, 0, 0], [1, 0, 0], [1, 1, 0]]),
}


@every_package
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("graph", GRAPHS)
def test_a_residual_of_rounding_is_the_zero_neighbour(package, graph, layers):
    labels, adjacency = GRAPHS[graph]
    tenths = np.array(labels) / 10
    expected = exactly([[Fraction(c, 10) for c in label] for label in labels], adjacency, layers)
    for size in (1.0, 3e-30, 7e30):
        result = package.graph_decomposition((size * tenths).astype(np.float32), np.array(adjacency), num_layers=layers)
        assert_near(result / np.float32(size), np.array(expected, float), terms=layers * sum(tenths.shape))
    if package is attnpool_ref:
        result = package.graph_decomposition(tenths, np.array(adjacency), num_layers=layers)
        assert_near(result, np.array(expected, float), terms=layers * sum(tenths.shape), dtype="float64")


def test_a_residual_of_rounding_has_a_gradient_of_ordinary_size():
    labels, adjacency = GRAPHS["a duplicate"]
    decompose = jax.jit(jax.jacobian(lambda x: attnpool_flax.graph_decomposition(x, np.array(adjacency))))
    slopes = np.asarray(decompose(f32(*labels) / 10))
    assert np.max(np.abs(slopes)) < np.max(labels)  # it was 3.5e7


# Equal tokens whose products rounding tells apart


@every_package
@pytest.mark.parametrize("method", ["local", "max"])
@pytest.mark.parametrize(
    ("queries", "pads"), [(1, 3), (2, 0), *(pytest.param(*own, marks=pytest.mark.thorough) for own in ((3, 1), (5, 0)))]
)
def test_the_first_of_equal_words_is_chosen_whatever_stands_around(package, method, queries, pads):
    y = np.random.default_rng(0).standard_normal((5, 64))
    y[4] = y[0]
    mask = np.append(np.ones(5, bool), np.zeros(pads, bool))
    padded = np.concatenate([y, np.full((pads, 64), 7.0)])
    one = package.semantic_match(y[:1], y, method=method)
    among = package.semantic_match(y[:queries], padded, None, mask, method=method)
    for row in range(queries):
        alone = package.semantic_match(y[row : row + 1], y, method=method)
        assert_near(among[row], alone[0], terms=64)
    near = y[:2] if method == "local" else y[:1]
    cosine = attnpool_ref.cosine_score(y[:1], near)[0]
    assert_near(one[0], cosine @ near / cosine.sum(), terms=64)


def equal_labels(rng, k, width):
    """Labels of which the two that suit all-positive tokens best are equal."""
    labels = rng.standard_normal((k, width)).astype(np.float32)
    labels[rng.integers(1, k)] = labels[0] = np.abs(labels[0]) + 1
    return labels


@jax.jit
def slopes_of_labels(labels, context, cotangent):
    """Their gradients by three functions that take the largest of their products with the context."""
    kernel = jnp.repeat(jnp.array([0, 0, 1], jnp.float32), labels.shape[-1])

    def code_wise(labels):
        return attnpool_flax.code_wise_attention(labels, context) @ cotangent

    def cross(labels):
        return attnpool_flax.cross_attention_pooling(context, labels, reduction="max")[0] @ cotangent

    def bidaf(labels):
        _, (_, to_context) = attnpool_flax.bidaf_attention(context, labels, kernel, return_weights=True)
        return to_context @ context @ cotangent

    return [jax.grad(function)(labels) for function in (code_wise, cross, bidaf)]


@pytest.mark.parametrize("draw", range(4))
@pytest.mark.parametrize(("k", "width", "tokens"), [(15, 45, 7), pytest.param(9, 36, 16, marks=pytest.mark.thorough)])
def test_equal_labels_share_the_gradient_of_the_largest_product(k, width, tokens, draw):
    rng = np.random.default_rng(draw)
    labels = equal_labels(rng, k, width)
    context = np.abs(rng.standard_normal((tokens, width))).astype(np.float32) + 1
    same = np.all(labels == labels[0], -1)
    for slope in map(np.asarray, slopes_of_labels(labels, context, rng.standard_normal(width).astype(np.float32))):
        chex.assert_trees_all_equal(slope[~same], np.zeros_like(slope[~same]))
        assert_near(slope[same], np.broadcast_to(slope[0], slope[same].shape), terms=len(context) * width)


def test_products_that_rounding_alone_tells_apart_share_the_gradient():
    """On some machines equal labels have unequal products: here they are unequal on any."""
    products = f32(1, np.nextafter(np.float32(1), np.float32(0)), 0.5)
    slopes = jax.jit(jax.grad(lambda products: largest_product(products, None, 1.0, 64)))(products)
    chex.assert_trees_all_equal(np.asarray(slopes), f32(0.5, 0.5, 0))


# Long sums


# Overflow and underflow


@pytest.mark.parametrize("query", [(1e19, -2e19), (1e30, -2e30), (3e38, -3e38), (5.0, -10.0)])
@every_package
def test_layer_normalisation_of_large_queries(package, query):
    scores = np.array([1.0, -1.0]) / np.sqrt(2)
    expected = np.exp(scores) / np.exp(scores).sum()
    result = package.attention_pooling(np.eye(2, dtype="f"), query=f32(*query), normalize_query=True)
    assert_near(result, expected)
    if query == (1e19, -2e19):
        assert_near(np.round(np.asarray(result, float), 3), [0.804, 0.196])


@every_package
def test_layer_normalisation_of_the_mean_of_large_tokens(package):
    x = f32([1e20, -1e20, 0], [3e20, 0, -1e20])
    small = package.attention_pooling(x / np.float32(2**60), normalize_query=True, epsilon=0.0, scale=1.0)
    large = package.attention_pooling(x, normalize_query=True, epsilon=0.0, scale=2.0**-60)
    assert_near(large / np.float32(2**60), small)


@every_package
@pytest.mark.parametrize("bandwidth", [1e-30, 1e-25, 1e-19, 1.0, 1e25])
def test_identical_points_have_distance_zero_under_any_bandwidth(package, bandwidth):
    points = f32([1, 2], [5, 6])
    with np.errstate(over="ignore"):
        scores = np.asarray(package.gaussian_score(points, points, bandwidth=bandwidth))
    assert_near(np.diag(scores), [0, 0])
    assert_near(scores[0, 1], {1.0: -16, 1e25: 0}.get(bandwidth, -INF))
    kernels = ["gaussian", "boxcar", "triangular", "epanechnikov"]
    for kernel in kernels if bandwidth <= 1 else []:
        near = package.kernel_regression(points, points, points, kernel=kernel, bandwidth=min(bandwidth, 0.125))
        assert_near(near, points)


def test_sums_of_the_largest_doubles_do_not_overflow():
    assert_near(attnpool_ref.mean_pooling(np.full((3, 1), 1.5e308)) / 1.5e308, [1], dtype="float64")
    assert_near(attnpool_ref.weighted_pooling(f32([1], [3]), np.full(2, 1e308)), [2], dtype="float64")


# Where the two sides disagreed


@every_package
@pytest.mark.parametrize("reduction", ["sum", "mean", "max"])
@pytest.mark.parametrize("masked", one_in(2, [True, False]))
def test_the_other_side_empty_leaves_the_mean_even_beside_a_nan(package, reduction, masked):
    x, y = f32([1, NAN], [3, 4]), np.ones((2, 2), np.float32)
    y, y_mask = (y, np.zeros(2, bool)) if masked else (y[:0], None)
    options = {"reduction": reduction, "return_weights": True}
    (pooled, other), (weights, _) = package.cross_attention_pooling(x, y, None, y_mask, **options)
    assert_near(weights, [0.5, 0.5])
    assert_near(pooled, [2, NAN])
    assert_near(other, [0, 0])
    y_mask = None if y_mask is None else y_mask[None]
    (pooled, _), (weights, _) = package.cross_attention_pooling_all_pairs(x[None], y[None], None, y_mask, **options)
    assert_near(weights, [[[0.5, 0.5]]])
    assert_near(pooled, [[[2, NAN]]])


ONES, FOUR = np.ones((2, 1), np.float32), f32([1], [2], [3], [4])
LARGEST, TINY = np.stack([f32(3e38, -3e38)] * 7), f32([1e-25], [3e-25])
OTHERS = {
    "layer normalisation of a constant large query is 0": (
        lambda p: p.attention_pooling(np.eye(2, dtype="f"), query=f32(1e30, 1e30), normalize_query=True),
        [0.5, 0.5],
    ),
    "the tanh of a small sum keeps its digits": (
        lambda p: p.tanh_sum_score(f32([1e-6]), f32([2e-6]), ONES),
        [[3e-6]],
    ),
    "a small bandwidth measures small distances": (
        lambda p: p.gaussian_score(TINY, f32([0]), bandwidth=1e-25),
        [[-0.5], [-4.5]],
    ),
    "a small boxcar measures small distances": (
        lambda p: p.kernel_regression(TINY, f32([0]), f32([1]), kernel="boxcar", bandwidth=1.5e-25),
        [[1], [0]],
    ),
    "the mean of the largest numbers": (lambda p: np.asarray(p.mean_pooling(LARGEST)) / f32(3e38), [1, -1]),
    "the mean of some of the largest numbers": (
        lambda p: np.asarray(p.mean_pooling(LARGEST, np.arange(7) < 5)) / f32(3e38),
        [1, -1],
    ),
    "large weights": (lambda p: p.weighted_pooling(FOUR, np.full(4, np.float32(1e38))), [2.5]),
    "small weights": (lambda p: p.weighted_pooling(FOUR, np.full(4, np.float32(1e-37))), [2.5]),
    "a query without weights has no penalty": (lambda p: p.attention_penalty(f32([0, 0], [1, 0])), 0),
    "the bias of a score counts under a sigmoid": (
        lambda p: p.additive_attention_pooling(
            f32([4]), kernel=0 * ONES[:1], out_kernel=f32(0), out_bias=np.float32(np.log(3)), normalizer="sigmoid"
        ),
        [3],
    ),
    "normalized sigmoids sum to 1 along their axis": (
        lambda p: np.sum(np.float64(p.masked_sigmoid(f32([0, 1], [2, 3], [4, 5]), normalize=True, axis=0)), 0),
        [1, 1],
    ),
    "a label that nobody sees reaches no other": (
        lambda p: p.graph_decomposition(f32([1, 2], [NAN, NAN]), np.zeros((2, 2), bool)),
        [[1, 2], [NAN, NAN]],
    ),
    "a negative tolerance equals nothing": (
        lambda p: np.stack(p.rigid_decomposition(f32(1, 1), f32(1, 1), atol=-1.0)),
        [[0, 0], [1, 1]],
    ),
    "infinities of one sign are equal": (lambda p: p.rigid_decomposition(f32(INF, 1), f32(INF, 1))[0], [INF, 1]),
    "NaN in one field reaches the target's part": (
        lambda p: p.field_attention_pooling(f32(1), f32([1], [NAN]), f32(1, 1), 0.0),
        [NAN, NAN],
    ),
}


@every_package
@pytest.mark.parametrize("title", OTHERS)
def test_what_a_hostile_reading_got_wrong_is_right(package, title):
    call, expected = OTHERS[title]
    assert_near(call(package), expected)
