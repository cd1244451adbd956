"""Scores, attention, poolings and pairs say the same in other words: relations of the definitions that need no oracle.

``tests/test_guarantees.py`` holds ``attnpool_flax`` to the definitions.
"""

import chex
import numpy as np
import pytest
from drawn import draw, draw_heads
from rounding import assert_close, rounded

import attnpool_ref as ref

BATCH, N, M, D, E, H = 2, 3, 5, 4, 6, 8


def draw_mask(rng, *shape):
    """Scattered, one query of the first example sees nothing, every key of the second is seen."""
    mask = rng.random(shape) < 0.6
    mask[0, 0], mask[1, -1] = False, True
    return mask


@pytest.mark.parametrize("dropped", [False, True])
def test_multi_head_pooling_is_multi_head_attention_with_that_query(rng, dropped):
    """Also where dropped weights no longer sum to 1, which the value bias must notice."""
    heads, parameters = 2, draw_heads(rng, D, 2, 3, 9, 10)
    x, mask, query = draw(rng, BATCH, M, D), draw_mask(rng, BATCH, M), draw(rng, N, D)
    if dropped:
        parameters["dropout_multiplier"] = 2 * rng.integers(0, 2, (BATCH, heads, N, M)).astype(np.float32)
    assert_close(
        ref.multi_head_attention_pooling(x, mask, query=query, **parameters, return_weights=True),
        ref.multi_head_attention(query, x, x, mask[:, None, :], **parameters, return_weights=True),
        size=10 * D,
    )


def test_one_mask_for_each_head_is_one_call_for_each_head(rng):
    heads, parameters = 2, draw_heads(rng, D, 2, 3, 9, 10)
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


def test_orthogonal_parts_are_perpendicular_whatever_the_references_length_and_sign(rng):
    x, reference = draw(rng, M, D), draw(rng, M, D)
    similar, dissimilar = ref.orthogonal_decomposition(x, reference)
    assert_close(np.asarray(similar) + np.asarray(dissimilar), x)
    products = np.sum(np.float64(dissimilar) * reference, -1)
    chex.assert_trees_all_close(products, np.zeros(M), atol=rounded(np.float64(x) * reference, 64), rtol=0)
    for factor in (-1.0, 3.0, -1e-20):
        assert_close(ref.orthogonal_decomposition(x, np.float32(factor) * reference), (similar, dissimilar))
    assert_close(ref.orthogonal_decomposition(similar, reference)[0], similar)
