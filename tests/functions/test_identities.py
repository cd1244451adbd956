"""Scores, attention and pooling say the same in other words: relations that need no oracle, in both packages."""

import chex
import numpy as np
import pytest
from drawn import draw
from packages import every_package
from rounding import assert_close, rounded

pytestmark = pytest.mark.thorough

BATCH, N, M, D, E, V, H = 2, 3, 5, 4, 6, 7, 8


def draw_mask(rng, *shape):
    """Scattered, one query of the first example sees nothing, every key of the second is seen."""
    mask = rng.random(shape) < 0.6
    mask[0, 0], mask[1, -1] = False, True
    return mask


@every_package
def test_tanh_sum_is_additive_with_all_weights_one(package, rng):
    query, key, value = draw(rng, BATCH, N, D), draw(rng, BATCH, M, E), draw(rng, BATCH, M, V)
    kernel, bias, mask = draw(rng, D + E, H), draw(rng, H), draw_mask(rng, BATCH, N, M)
    ones = np.ones(H, np.float32)
    score = package.additive_score(query, key, kernel[:D], kernel[D:], ones, bias=bias)
    assert_close(package.tanh_sum_score(query, key, kernel, bias=bias), score)
    assert_close(
        package.tanh_sum_attention(query, key, value, kernel, mask, bias=bias, return_weights=True),
        package.additive_attention(
            query, key, value, kernel[:D], kernel[D:], ones, mask, bias=bias, return_weights=True
        ),
    )


@every_package
@pytest.mark.parametrize("biased", [False, True])
def test_concat_is_additive_with_the_kernels_stacked(package, rng, biased):
    query, key, out = draw(rng, BATCH, N, D), draw(rng, BATCH, M, E), draw(rng, H)
    kernel, bias = draw(rng, D + E, H), draw(rng, H) if biased else None
    expected = package.additive_score(query, key, kernel[:D], kernel[D:], out, bias=bias)
    assert_close(package.concat_score(query, key, kernel, out, bias=bias), expected)


@every_package
def test_trilinear_is_a_bilinear_score_and_two_linear_ones(package, rng):
    query, key, kernel = draw(rng, BATCH, N, D), draw(rng, BATCH, M, D), draw(rng, 3 * D)
    product = package.bilinear_score(query, key, np.diag(kernel[2 * D :]))
    expected = np.asarray(product) + (query @ kernel[:D])[..., None] + (key @ kernel[D : 2 * D])[:, None, :]
    assert_close(package.trilinear_score(query, key, kernel), expected)


@every_package
def test_cosine_is_the_dot_product_of_unit_vectors(package, rng):
    query, key = draw(rng, BATCH, N, D), draw(rng, BATCH, M, D)
    expected = package.dot_score(package.l2_normalize(query), package.l2_normalize(key))
    assert_close(package.cosine_score(query, key), expected)
    assert_close(package.cosine_score(query * np.float32(1e30), -key), -np.asarray(expected))


@every_package
def test_attention_pooling_is_attention_with_one_query(package, rng):
    x, mask, query = draw(rng, BATCH, M, D), draw_mask(rng, BATCH, M), draw(rng, D)
    query_kernel, key_kernel = draw(rng, D, H), draw(rng, D, H)
    pooled, weights = package.attention_pooling(
        x,
        mask,
        query,
        query_kernel=query_kernel,
        key_kernel=key_kernel,
        normalize_query=True,
        epsilon=1e-12,
        return_weights=True,
    )
    normalized = (query - query.mean()) / query.std()
    expected, expected_weights = package.dot_product_attention(
        (normalized @ query_kernel)[None, :], x @ key_kernel, x, mask[:, None, :], return_weights=True
    )
    assert_close((pooled, weights), (expected[:, 0], expected_weights[:, 0]), size=H)


@every_package
def test_one_head_without_projections_is_scaled_dot_product_attention(package, rng):
    query, key, value = draw(rng, BATCH, N, D), draw(rng, BATCH, M, D), draw(rng, BATCH, M, V)
    mask, unit, out = draw_mask(rng, BATCH, N, M), np.eye(D, dtype=np.float32), np.eye(V, dtype=np.float32)
    result, weights = package.multi_head_attention(
        query,
        key,
        value,
        mask,
        query_kernel=unit[:, None, :],
        key_kernel=unit[:, None, :],
        value_kernel=out[:, None, :],
        out_kernel=out[None],
        return_weights=True,
    )
    expected = package.dot_product_attention(query, key, value, mask, return_weights=True)
    assert_close((result, weights[:, 0]), expected)


def draw_heads(rng):
    heads, c, c2, o = 2, 3, 9, 10
    parameters = {
        "query_kernel": draw(rng, D, heads, c),
        "key_kernel": draw(rng, D, heads, c),
        "value_kernel": draw(rng, D, heads, c2),
        "out_kernel": draw(rng, heads, c2, o),
        "query_bias": draw(rng, heads, c),
        "key_bias": draw(rng, heads, c),
        "value_bias": draw(rng, heads, c2),
        "out_bias": draw(rng, o),
    }
    return heads, parameters


@every_package
@pytest.mark.parametrize("dropped", [False, True])
def test_multi_head_pooling_is_multi_head_attention_with_that_query(package, rng, dropped):
    """Also where dropped weights no longer sum to 1, which the value bias must notice."""
    heads, parameters = draw_heads(rng)
    x, mask, query = draw(rng, BATCH, M, D), draw_mask(rng, BATCH, M), draw(rng, N, D)
    if dropped:
        parameters["dropout_multiplier"] = 2 * rng.integers(0, 2, (BATCH, heads, N, M)).astype(np.float32)
    assert_close(
        package.multi_head_attention_pooling(x, mask, query=query, **parameters, return_weights=True),
        package.multi_head_attention(query, x, x, mask[:, None, :], **parameters, return_weights=True),
        size=10 * D,
    )


@every_package
def test_one_mask_for_each_head_is_one_call_for_each_head(package, rng):
    heads, parameters = draw_heads(rng)
    x, query = draw(rng, BATCH, M, D), draw(rng, BATCH, N, D)
    mask = rng.random((BATCH, heads, N, M)) < 0.6
    mask[0, :, 0] = False
    mask[1, 0, 1] = False
    result, weights = package.multi_head_attention(query, x, x, mask, **parameters, return_weights=True)
    expected, expected_weights = np.asarray(parameters.pop("out_bias")), []
    for head in range(heads):
        own = {
            key: value[head : head + 1] if key.startswith("out") or key.endswith("bias") else value[:, head : head + 1]
            for key, value in parameters.items()
        }
        part, part_weights = package.multi_head_attention(query, x, x, mask[:, head], **own, return_weights=True)
        expected = expected + np.asarray(part)
        expected_weights.append(np.asarray(part_weights)[:, 0])
    assert_close((result, weights), (expected, np.stack(expected_weights, 1)), size=10 * D)


@every_package
def test_gaussian_regression_is_softmax_of_products_where_keys_have_one_length(package, rng):
    query, value, mask = draw(rng, BATCH, N, D), draw(rng, BATCH, M, V), draw_mask(rng, BATCH, N, M)
    key = np.asarray(package.l2_normalize(draw(rng, BATCH, M, D)))
    bandwidth = 0.75
    actual = package.kernel_regression(query, key, value, mask, bandwidth=bandwidth, return_weights=True)
    products = package.dot_product_attention(query, key, value, mask, scale=bandwidth**-2, return_weights=True)
    scores = package.attend(package.gaussian_score(query, key, bandwidth=bandwidth), value, mask, return_weights=True)
    assert_close(actual, products, size=10 * D)
    assert_close(actual, scores)


@every_package
def test_wide_and_constant_kernels_take_the_mean(package, rng):
    query, key, value = draw(rng, BATCH, N, D), draw(rng, BATCH, M, D), draw(rng, BATCH, M, V)
    mask = draw_mask(rng, BATCH, M)
    mask[0] = False
    mean = np.asarray(package.mean_pooling(value, mask))
    expected = np.broadcast_to(mean[:, None, :], (BATCH, N, V))
    wide = 2.0**40
    for kernel in ("gaussian", "boxcar", "triangular", "epanechnikov", "constant"):
        pooled = package.kernel_regression(query, key, value, mask[:, None, :], kernel=kernel, bandwidth=wide)
        assert_close(pooled, expected)


@every_package
def test_equal_scores_pool_to_the_mean(package, rng):
    """Every attention whose kernels say nothing is the mean of the real tokens."""
    query, state = draw(rng, BATCH, N, D), draw(rng, BATCH, N, E)
    x, mask = draw(rng, BATCH, M, D), draw_mask(rng, BATCH, M)
    pairs = mask[:, None, :]
    mean = np.asarray(package.mean_pooling(x, mask))
    expected = np.broadcast_to(mean[:, None, :], (BATCH, N, D))

    def zeros(*shape):
        return np.zeros(shape, np.float32)

    unit = np.eye(D, dtype=np.float32)
    same = np.full((BATCH, N, M), 5, np.float32)
    heads = {
        "query_kernel": zeros(D, 2, H),
        "key_kernel": draw(rng, D, 2, H),
        "value_kernel": unit.reshape(D, 2, D // 2),
        "out_kernel": unit.reshape(2, D // 2, D),
    }
    pooled = {
        "softmax": package.attend(same, x, pairs),
        "sparsemax": package.attend(same, x, pairs, normalizer="sparsemax"),
        "entmax15": package.attend(same, x, pairs, normalizer="entmax15"),
        "dot product": package.dot_product_attention(0 * query, x, x, pairs),
        "additive": package.additive_attention(query, x, x, draw(rng, D, H), zeros(D, H), draw(rng, H), pairs),
        "tanh sum": package.tanh_sum_attention(query, x, x, zeros(2 * D, H), pairs, bias=draw(rng, H)),
        "location": package.location_attention(
            query, state, x, zeros(D + E, M), zeros(M), np.concatenate([0 * unit, unit]), zeros(D), mask
        ),
        "multi-head": package.multi_head_attention(query, x, x, pairs, **heads),
        "multi-head pooling": package.multi_head_attention_pooling(x, mask, query=query[0], **heads),
    }
    for result in pooled.values():
        assert_close(result, expected)


@every_package
def test_location_weights_never_look_at_the_values(package, rng):
    query, state, value = draw(rng, BATCH, N, D), draw(rng, BATCH, N, E), draw(rng, BATCH, M, V)
    rest = draw(rng, D + E, M), draw(rng, M), draw(rng, D + V, H), draw(rng, H)
    _, weights = package.location_attention(query, state, value, *rest, return_weights=True)
    _, permuted = package.location_attention(query, state, value[:, ::-1], *rest, return_weights=True)
    chex.assert_trees_all_equal(np.asarray(weights), np.asarray(permuted))


@every_package
def test_tanh_sum_scores_stay_within_the_hidden_width(package, rng):
    query, key, kernel = 1e30 * draw(rng, N, D), 1e30 * draw(rng, M, E), draw(rng, D + E, H)
    scores = np.asarray(package.tanh_sum_score(query, key, kernel))
    assert np.abs(scores).max() <= H
    assert np.abs(package.additive_score(query, key, kernel[:D], kernel[D:], np.ones(H, np.float32))).max() <= H


@every_package
def test_cosine_scores_stay_within_one(package, rng):
    scores = np.asarray(package.cosine_score(draw(rng, N, D), draw(rng, M, D)))
    assert np.abs(scores).max() <= 1 + rounded(1, D)


@every_package
def test_each_step_of_set2set_is_attention_pooling_by_its_hidden_state(package, rng):
    x, mask = draw(rng, BATCH, M, D), draw_mask(rng, BATCH, M)
    parameters = {
        "input_kernel": draw(rng, 2 * D, 4 * D),
        "recurrent_kernel": draw(rng, D, 4 * D),
        "bias": draw(rng, 4 * D),
    }
    for num_steps in (1, 3):
        read, weights = package.set2set_pooling(x, mask, **parameters, num_steps=num_steps, return_weights=True)
        hidden = np.asarray(read)[..., :D]
        assert_close(
            (read[..., D:], weights),
            package.attention_pooling(x, mask, hidden, scale=1.0, return_weights=True),
        )


@every_package
def test_one_latent_says_the_same_to_each_token(package, rng):
    x, mask, latents = draw(rng, BATCH, M, D), draw_mask(rng, BATCH, M), draw(rng, 1, E)
    value, out = draw(rng, E, 2, V), draw(rng, 2, V, D)
    heads = {
        "query_kernel": draw(rng, D, 2, 3),
        "key_kernel": draw(rng, E, 2, 3),
        "value_kernel": value,
        "out_kernel": out,
    }
    mlp = {"kernel": draw(rng, D, 2 * H), "out_kernel": draw(rng, H, D)}
    pooled = package.latent_attention_pooling(
        x, mask, latents=latents, **heads, mlp_kernel=mlp["kernel"], mlp_out_kernel=mlp["out_kernel"]
    )
    told = np.einsum("re,ehc,hcd->d", np.asarray(package.layer_norm(latents, epsilon=1e-5)), value, out)
    mapped = package.residual_feed_forward(x + np.float32(told), **mlp, activation="geglu", epsilon=1e-5)
    assert_close(pooled, package.mean_pooling(mapped, mask), 256, size=10)


@every_package
def test_vlad_is_a_sum_of_tokens_less_one_of_centres_and_its_norms(package, rng):
    x, mask, centers = draw(rng, BATCH, M, D), draw_mask(rng, BATCH, M), draw(rng, H, D)
    parameters = {"assign_kernel": draw(rng, D, H + 2), "assign_bias": draw(rng, H + 2), "centers": centers}
    raw, weights = package.vlad_pooling(x, mask, **parameters, normalize=False, return_weights=True)
    weights = np.asarray(weights)
    expected = np.swapaxes(weights, -1, -2) @ np.where(mask[..., None], x, 0) - weights.sum(-2)[..., None] * centers
    assert_close(raw, expected, size=5)
    each = np.asarray(package.l2_normalize(np.asarray(raw))).reshape(BATCH, -1)
    assert_close(
        package.vlad_pooling(x, mask, **parameters), np.asarray(package.l2_normalize(each)).reshape(expected.shape)
    )
