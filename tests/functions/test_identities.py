"""Scores, attention, poolings and pairs say the same in other words: relations of the definitions that need no oracle.

``tests/test_guarantees.py`` holds ``attnpool_flax`` to the definitions.
"""

import chex
import numpy as np
import pytest
from drawn import draw
from rounding import assert_close, rounded

import attnpool_ref as ref

BATCH, N, M, D, E, V, H = 2, 3, 5, 4, 6, 7, 8


def draw_mask(rng, *shape):
    """Scattered, one query of the first example sees nothing, every key of the second is seen."""
    mask = rng.random(shape) < 0.6
    mask[0, 0], mask[1, -1] = False, True
    return mask


def test_attention_pooling_is_attention_with_one_query(rng):
    x, mask, query = draw(rng, BATCH, M, D), draw_mask(rng, BATCH, M), draw(rng, D)
    query_kernel, key_kernel = draw(rng, D, H), draw(rng, D, H)
    pooled, weights = ref.attention_pooling(
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
    expected, expected_weights = ref.dot_product_attention(
        (normalized @ query_kernel)[None, :], x @ key_kernel, x, mask[:, None, :], return_weights=True
    )
    assert_close((pooled, weights), (expected[:, 0], expected_weights[:, 0]), size=H)


def test_one_head_without_projections_is_scaled_dot_product_attention(rng):
    query, key, value = draw(rng, BATCH, N, D), draw(rng, BATCH, M, D), draw(rng, BATCH, M, V)
    mask, unit, out = draw_mask(rng, BATCH, N, M), np.eye(D, dtype=np.float32), np.eye(V, dtype=np.float32)
    result, weights = ref.multi_head_attention(
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
    expected = ref.dot_product_attention(query, key, value, mask, return_weights=True)
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


@pytest.mark.parametrize("dropped", [False, True])
def test_multi_head_pooling_is_multi_head_attention_with_that_query(rng, dropped):
    """Also where dropped weights no longer sum to 1, which the value bias must notice."""
    heads, parameters = draw_heads(rng)
    x, mask, query = draw(rng, BATCH, M, D), draw_mask(rng, BATCH, M), draw(rng, N, D)
    if dropped:
        parameters["dropout_multiplier"] = 2 * rng.integers(0, 2, (BATCH, heads, N, M)).astype(np.float32)
    assert_close(
        ref.multi_head_attention_pooling(x, mask, query=query, **parameters, return_weights=True),
        ref.multi_head_attention(query, x, x, mask[:, None, :], **parameters, return_weights=True),
        size=10 * D,
    )


def test_one_mask_for_each_head_is_one_call_for_each_head(rng):
    heads, parameters = draw_heads(rng)
    x, query = draw(rng, BATCH, M, D), draw(rng, BATCH, N, D)
    mask = rng.random((BATCH, heads, N, M)) < 0.6
    mask[0, :, 0] = False
    mask[1, 0, 1] = False
    result, weights = ref.multi_head_attention(query, x, x, mask, **parameters, return_weights=True)
    expected, expected_weights = np.asarray(parameters.pop("out_bias")), []
    for head in range(heads):
        own = {
            key: value[head : head + 1] if key.startswith("out") or key.endswith("bias") else value[:, head : head + 1]
            for key, value in parameters.items()
        }
        part, part_weights = ref.multi_head_attention(query, x, x, mask[:, head], **own, return_weights=True)
        expected = expected + np.asarray(part)
        expected_weights.append(np.asarray(part_weights)[:, 0])
    assert_close((result, weights), (expected, np.stack(expected_weights, 1)), size=10 * D)


def test_gaussian_regression_is_softmax_of_products_where_keys_have_one_length(rng):
    query, value, mask = draw(rng, BATCH, N, D), draw(rng, BATCH, M, V), draw_mask(rng, BATCH, N, M)
    key = np.asarray(ref.l2_normalize(draw(rng, BATCH, M, D)))
    bandwidth = 0.75
    actual = ref.kernel_regression(query, key, value, mask, bandwidth=bandwidth, return_weights=True)
    products = ref.dot_product_attention(query, key, value, mask, scale=bandwidth**-2, return_weights=True)
    scores = ref.attend(ref.gaussian_score(query, key, bandwidth=bandwidth), value, mask, return_weights=True)
    assert_close(actual, products, size=10 * D)
    assert_close(actual, scores)


def test_equal_scores_pool_to_the_mean(rng):
    """Every attention whose kernels say nothing is the mean of the real tokens."""
    query, state = draw(rng, BATCH, N, D), draw(rng, BATCH, N, E)
    x, mask = draw(rng, BATCH, M, D), draw_mask(rng, BATCH, M)
    pairs = mask[:, None, :]
    mean = np.asarray(ref.mean_pooling(x, mask))
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
        "softmax": ref.attend(same, x, pairs),
        "sparsemax": ref.attend(same, x, pairs, normalizer="sparsemax"),
        "entmax15": ref.attend(same, x, pairs, normalizer="entmax15"),
        "dot product": ref.dot_product_attention(0 * query, x, x, pairs),
        "additive": ref.additive_attention(query, x, x, draw(rng, D, H), zeros(D, H), draw(rng, H), pairs),
        "tanh sum": ref.tanh_sum_attention(query, x, x, zeros(2 * D, H), pairs, bias=draw(rng, H)),
        "location": ref.location_attention(
            query, state, x, zeros(D + E, M), zeros(M), np.concatenate([0 * unit, unit]), zeros(D), mask
        ),
        "multi-head": ref.multi_head_attention(query, x, x, pairs, **heads),
        "multi-head pooling": ref.multi_head_attention_pooling(x, mask, query=query[0], **heads),
    }
    for result in pooled.values():
        assert_close(result, expected)


def test_one_latent_says_the_same_to_each_token(rng):
    x, mask, latents = draw(rng, BATCH, M, D), draw_mask(rng, BATCH, M), draw(rng, 1, E)
    value, out = draw(rng, E, 2, V), draw(rng, 2, V, D)
    heads = {
        "query_kernel": draw(rng, D, 2, 3),
        "key_kernel": draw(rng, E, 2, 3),
        "value_kernel": value,
        "out_kernel": out,
    }
    mlp = {"kernel": draw(rng, D, 2 * H), "out_kernel": draw(rng, H, D)}
    pooled = ref.latent_attention_pooling(
        x, mask, latents=latents, **heads, mlp_kernel=mlp["kernel"], mlp_out_kernel=mlp["out_kernel"]
    )
    told = np.einsum("re,ehc,hcd->d", np.asarray(ref.layer_norm(latents, epsilon=1e-5)), value, out)
    mapped = ref.residual_feed_forward(x + np.float32(told), **mlp, activation="geglu", epsilon=1e-5)
    assert_close(pooled, ref.mean_pooling(mapped, mask), 256, size=10)


def masks(rng):
    """Of two sequences, scattered, no row empty."""
    x_mask, y_mask = rng.random((BATCH, M)) < 0.6, rng.random((BATCH, N)) < 0.6
    x_mask[:, 1], y_mask[:, 2] = True, True
    return x_mask, y_mask


def test_cross_pooling_is_attention_pooling_by_the_other_sides_sum(rng):
    x, y = draw(rng, BATCH, M, D), draw(rng, BATCH, N, D)
    x_mask, y_mask = masks(rng)
    x_pooled, y_pooled = ref.cross_attention_pooling(x, y, x_mask, y_mask)
    y_sum, x_sum = (np.where(m[..., None], t, 0).sum(-2) for t, m in ((y, y_mask), (x, x_mask)))
    assert_close(x_pooled, ref.attention_pooling(x, x_mask, y_sum, scale=1))
    assert_close(y_pooled, ref.attention_pooling(y, y_mask, x_sum, scale=1))


def test_maxsim_sums_up_what_cross_pooling_by_the_largest_scores_weighs(rng):
    x, y = draw(rng, BATCH, M, D), draw(rng, BATCH, N, D)
    x_mask, y_mask = masks(rng)
    one_token = {
        "x": x[..., None, :],
        "y": np.repeat(y[:, None], M, 1),
        "y_mask": np.repeat(y_mask[:, None], M, 1),
    }
    best = np.asarray(ref.maxsim_score(**one_token))
    assert_close(ref.maxsim_score(x, y, x_mask, y_mask), np.where(x_mask, best, 0).sum(-1))
    _, (weights, _) = ref.cross_attention_pooling(x, y, x_mask, y_mask, reduction="max", return_weights=True)
    assert_close(weights, ref.masked_softmax(best, x_mask))


def test_code_wise_attention_is_bidafs_context_vector(rng):
    context, labels = draw(rng, BATCH, M, D), draw(rng, BATCH, N, D)
    mask, label_mask = masks(rng)
    product = np.concatenate([np.zeros(2 * D), np.ones(D)]).astype(np.float32)
    pooled, weights = ref.code_wise_attention(labels, context, label_mask, mask, return_weights=True)
    joined, (_, to_context) = ref.bidaf_attention(context, labels, product, mask, label_mask, return_weights=True)
    assert_close(weights, to_context)
    expected = np.where(mask[..., None], context, 0) * np.asarray(pooled)[:, None]
    assert_close(joined[..., 3 * D :], expected)


def test_mask_attention_is_dot_product_attention_and_bidafs_query_average(rng):
    query, context = draw(rng, BATCH, N, D), draw(rng, BATCH, M, D)
    context_mask, query_mask = masks(rng)
    chosen, weights = ref.mask_attention(query, context, query_mask, context_mask, return_weights=True)
    pairs = context_mask[..., :, None] & query_mask[..., None, :]
    expected, expected_weights = ref.dot_product_attention(context, query, query, pairs, scale=1, return_weights=True)
    assert_close(chosen, expected)
    assert_close(weights, expected_weights)
    product = np.concatenate([np.zeros(2 * D), np.ones(D)]).astype(np.float32)
    joined = ref.bidaf_attention(context, query, product, context_mask, query_mask)
    assert_close(joined[..., D : 2 * D], chosen)


def test_orthogonal_parts_are_perpendicular_whatever_the_references_length_and_sign(rng):
    x, reference = draw(rng, M, D), draw(rng, M, D)
    similar, dissimilar = ref.orthogonal_decomposition(x, reference)
    assert_close(np.asarray(similar) + np.asarray(dissimilar), x)
    products = np.sum(np.float64(dissimilar) * reference, -1)
    chex.assert_trees_all_close(products, np.zeros(M), atol=rounded(np.float64(x) * reference, 64), rtol=0)
    for factor in (-1.0, 3.0, -1e-20):
        assert_close(ref.orthogonal_decomposition(x, np.float32(factor) * reference), (similar, dissimilar))
    assert_close(ref.orthogonal_decomposition(similar, reference)[0], similar)


def test_the_differential_is_a_reflection(rng):
    attention, supporting, opposing = (draw(rng, BATCH, N) for _ in range(3))
    moved = np.float64(ref.differential_context(attention, supporting, opposing))
    difference = moved - attention
    both = np.float64(supporting) + opposing
    assert_close(np.linalg.norm(difference, axis=-1), np.linalg.norm(both, axis=-1))
    # the part along the attention stays, the part across it turns round
    unit = attention / np.linalg.norm(np.float64(attention), axis=-1, keepdims=True)
    along = np.sum(both * unit, -1, keepdims=True) * unit
    assert_close(difference, along - (both - along))
    assert_close(ref.differential_context(attention, opposing, supporting), moved)
