"""The systems' own relations: what one of them says of another needs no oracle (in both packages, in float32)."""

import chex
import numpy as np
import pytest
from drawn import draw
from packages import every_package
from rounding import assert_close, rounded

pytestmark = pytest.mark.thorough

BATCH, LENGTH, OTHER, WIDTH = 2, 5, 4, 3


def masks(rng):
    """Of two sequences, scattered, no row empty."""
    x_mask, y_mask = rng.random((BATCH, LENGTH)) < 0.6, rng.random((BATCH, OTHER)) < 0.6
    x_mask[:, 1], y_mask[:, 2] = True, True
    return x_mask, y_mask


@every_package
def test_cross_pooling_is_attention_pooling_by_the_other_sides_sum(package, rng):
    x, y = draw(rng, BATCH, LENGTH, WIDTH), draw(rng, BATCH, OTHER, WIDTH)
    x_mask, y_mask = masks(rng)
    x_pooled, y_pooled = package.cross_attention_pooling(x, y, x_mask, y_mask)
    y_sum, x_sum = (np.where(m[..., None], t, 0).sum(-2) for t, m in ((y, y_mask), (x, x_mask)))
    assert_close(x_pooled, package.attention_pooling(x, x_mask, y_sum, scale=1))
    assert_close(y_pooled, package.attention_pooling(y, y_mask, x_sum, scale=1))


@every_package
def test_maxsim_sums_up_what_cross_pooling_by_the_largest_scores_weighs(package, rng):
    x, y = draw(rng, BATCH, LENGTH, WIDTH), draw(rng, BATCH, OTHER, WIDTH)
    x_mask, y_mask = masks(rng)
    one_token = {
        "x": x[..., None, :],
        "y": np.repeat(y[:, None], LENGTH, 1),
        "y_mask": np.repeat(y_mask[:, None], LENGTH, 1),
    }
    best = np.asarray(package.maxsim_score(**one_token))
    assert_close(package.maxsim_score(x, y, x_mask, y_mask), np.where(x_mask, best, 0).sum(-1))
    _, (weights, _) = package.cross_attention_pooling(x, y, x_mask, y_mask, reduction="max", return_weights=True)
    assert_close(weights, package.masked_softmax(best, x_mask))


@every_package
def test_all_pairs_of_maxsim_are_the_single_pairs(package, rng):
    x, y = draw(rng, BATCH, LENGTH, WIDTH), draw(rng, 6, OTHER, WIDTH)
    x_mask, y_mask = rng.random((BATCH, LENGTH)) < 0.6, rng.random((6, OTHER)) < 0.6
    scores = package.maxsim_score_all_pairs(x, y, x_mask, y_mask, mean=True)
    single = [
        [package.maxsim_score(x[b], y[c], x_mask[b], y_mask[c], mean=True) for c in range(6)] for b in range(BATCH)
    ]
    assert_close(scores, np.asarray(single))


@every_package
@pytest.mark.parametrize("reduction", ["sum", "mean", "max"])
def test_all_pairs_are_the_single_pairs(package, rng, reduction):
    x, y = draw(rng, BATCH, LENGTH, WIDTH), draw(rng, 6, OTHER, 7)
    x_mask, y_mask = rng.random((BATCH, LENGTH)) < 0.6, rng.random((6, OTHER)) < 0.6
    options = {"reduction": reduction, "x_kernel": draw(rng, WIDTH, 7), "scale": -0.5, "return_weights": True}
    pooled, weights = package.cross_attention_pooling_all_pairs(x, y, x_mask, y_mask, **options)
    for b in range(BATCH):
        for c in range(6):
            one = package.cross_attention_pooling(x[b], y[c], x_mask[b], y_mask[c], **options)
            assert_close(tuple(part[b, c] for part in pooled), one[0])
            assert_close(tuple(part[b, c] for part in weights), one[1])


@every_package
def test_code_wise_attention_of_one_label_is_attention_pooling_by_it(package, rng):
    context, labels = draw(rng, BATCH, LENGTH, WIDTH), draw(rng, 1, WIDTH)
    mask, _ = masks(rng)
    assert_close(
        package.code_wise_attention(labels, context, None, mask, scale=0.7),
        package.attention_pooling(context, mask, labels[0], scale=0.7),
    )


@every_package
def test_code_wise_attention_is_bidafs_context_vector(package, rng):
    context, labels = draw(rng, BATCH, LENGTH, WIDTH), draw(rng, BATCH, OTHER, WIDTH)
    mask, label_mask = masks(rng)
    product = np.concatenate([np.zeros(2 * WIDTH), np.ones(WIDTH)]).astype(np.float32)
    pooled, weights = package.code_wise_attention(labels, context, label_mask, mask, return_weights=True)
    joined, (_, to_context) = package.bidaf_attention(context, labels, product, mask, label_mask, return_weights=True)
    assert_close(weights, to_context)
    expected = np.where(mask[..., None], context, 0) * np.asarray(pooled)[:, None]
    assert_close(joined[..., 3 * WIDTH :], expected)


@every_package
def test_duplicating_a_label_changes_nothing(package, rng):
    context, labels = draw(rng, BATCH, LENGTH, WIDTH), draw(rng, OTHER, WIDTH)
    assert_close(
        package.code_wise_attention(labels[[0, 1, 2, 3, 2]], context), package.code_wise_attention(labels, context)
    )


@every_package
def test_mask_attention_is_dot_product_attention_and_bidafs_query_average(package, rng):
    query, context = draw(rng, BATCH, OTHER, WIDTH), draw(rng, BATCH, LENGTH, WIDTH)
    context_mask, query_mask = masks(rng)
    chosen, weights = package.mask_attention(query, context, query_mask, context_mask, return_weights=True)
    pairs = context_mask[..., :, None] & query_mask[..., None, :]
    expected, expected_weights = package.dot_product_attention(
        context, query, query, pairs, scale=1, return_weights=True
    )
    assert_close(chosen, expected)
    assert_close(weights, expected_weights)
    product = np.concatenate([np.zeros(2 * WIDTH), np.ones(WIDTH)]).astype(np.float32)
    joined = package.bidaf_attention(context, query, product, context_mask, query_mask)
    assert_close(joined[..., WIDTH : 2 * WIDTH], chosen)


@every_package
def test_sharpened_mask_attention_picks_what_semantic_match_picks_among_equal_lengths(package, rng):
    query, context = package.l2_normalize(draw(rng, OTHER, WIDTH)), draw(rng, LENGTH, WIDTH)
    sharp = package.mask_attention(query, context, scale=2.0**14)
    match = package.semantic_match(context, query)
    cosines = np.sort(np.asarray(package.l2_normalize(context)) @ np.asarray(query).T, -1)
    clear = np.linalg.norm(context, axis=-1) * (cosines[:, -1] - cosines[:, -2]) * 2.0**14 > 100
    assert clear.sum() >= LENGTH - 1
    assert_close(np.asarray(sharp)[clear], np.asarray(match)[clear])
    assert_close(
        package.orthogonal_decomposition(context[clear], np.asarray(sharp)[clear]),
        package.orthogonal_decomposition(context[clear], np.asarray(match)[clear]),
    )


@every_package
def test_orthogonal_parts_are_perpendicular_whatever_the_references_length_and_sign(package, rng):
    x, reference = draw(rng, LENGTH, WIDTH), draw(rng, LENGTH, WIDTH)
    similar, dissimilar = package.orthogonal_decomposition(x, reference)
    assert_close(np.asarray(similar) + np.asarray(dissimilar), x)
    products = np.sum(np.float64(dissimilar) * reference, -1)
    chex.assert_trees_all_close(products, np.zeros(LENGTH), atol=rounded(np.float64(x) * reference, 64), rtol=0)
    for factor in (-1.0, 3.0, -1e-20):
        assert_close(package.orthogonal_decomposition(x, np.float32(factor) * reference), (similar, dissimilar))
    assert_close(package.orthogonal_decomposition(similar, reference)[0], similar)


@every_package
@pytest.mark.parametrize("name", ["orthogonal", "linear", "rigid"])
def test_decompositions_add_up(package, rng, name):
    x, reference = draw(rng, BATCH, LENGTH, WIDTH), draw(rng, WIDTH)
    similar, dissimilar = getattr(package, f"{name}_decomposition")(x, reference)
    assert_close(np.asarray(similar) + np.asarray(dissimilar), x)


@every_package
def test_a_single_neighbour_leaves_a_label_perpendicular_to_it(package, rng):
    labels = draw(rng, 3, WIDTH)
    adjacency = np.array([[False, True, False], [False, False, False], [True, False, False]])
    after = np.float64(package.graph_decomposition(labels, adjacency, num_layers=1))
    dots = np.array([after[0] @ labels[1], after[2] @ labels[0]])
    chex.assert_trees_all_close(dots, np.zeros(2), atol=rounded(labels @ labels.T, 64), rtol=0)
    assert_close(after[1], labels[1])


@every_package
def test_the_differential_is_a_reflection(package, rng):
    attention, supporting, opposing = (draw(rng, BATCH, OTHER) for _ in range(3))
    moved = np.float64(package.differential_context(attention, supporting, opposing))
    difference = moved - attention
    both = np.float64(supporting) + opposing
    assert_close(np.linalg.norm(difference, axis=-1), np.linalg.norm(both, axis=-1))
    # the part along the attention stays, the part across it turns round
    unit = attention / np.linalg.norm(np.float64(attention), axis=-1, keepdims=True)
    along = np.sum(both * unit, -1, keepdims=True) * unit
    assert_close(difference, along - (both - along))
    assert_close(package.differential_context(attention, opposing, supporting), moved)


@every_package
def test_uniform_attention_keeps_twice_itself_of_two_distributions(package, rng):
    exemplars = np.float32(rng.dirichlet(np.ones(OTHER), 2))
    uniform = np.full(OTHER, 1 / OTHER, np.float32)
    moved = package.differential_context(uniform, *exemplars)
    assert_close(moved, uniform + 4 * uniform - exemplars.sum(0))  # r+ = 2 s, so that r+ - r- = 4 s - (s+ + s-)


@every_package
def test_bounds_of_what_a_saturating_score_can_do(package, rng):
    fields = 50 * draw(rng, LENGTH, 2)
    fields[0] = -fields[1]  # one of the two at either end
    _, weights = package.field_attention_pooling(draw(rng, 0), fields, draw(rng, 2), 0.0, return_weights=True)
    ratio = np.max(weights) / np.min(weights)
    bound = np.exp(2)
    assert 2 < ratio <= bound + rounded(bound, 16)
    kernels = draw(rng, WIDTH, 6), draw(rng, WIDTH, 6), draw(rng, 6, 2), draw(rng, 6)
    vectors = np.abs(package.relation_vector(50 * draw(rng, 20, WIDTH), 50 * draw(rng, 20, WIDTH), *kernels))
    bound = np.sum(np.abs(kernels[2]), 0)
    assert np.all(vectors <= bound + rounded(bound, 16))
    assert np.max(vectors) > np.max(bound) / 4


@every_package
def test_the_targets_part_of_a_field_pooling_is_the_target(package, rng):
    target, fields = draw(rng, BATCH, WIDTH), draw(rng, BATCH, LENGTH, 2)
    mask = np.array([[True] * LENGTH, [False] * LENGTH])
    pooled = package.field_attention_pooling(target, fields, draw(rng, WIDTH + 2), 0.5, mask)
    assert_close(pooled[0, :WIDTH], target[0])
    assert_close(pooled[1], np.zeros(WIDTH + 2, np.float32))


@every_package
def test_a_case_is_as_similar_to_itself_as_can_be(package, rng):
    case, other = draw(rng, BATCH, WIDTH), draw(rng, BATCH, WIDTH)
    kernels = draw(rng, WIDTH, 6), draw(rng, WIDTH, 6), draw(rng, 6, 2), draw(rng, 6)
    loss = package.relation_triplet_loss(case, other, case, *kernels, margin=0)
    distance = np.float64(package.relation_vector(case, case, *kernels)) - package.relation_vector(
        case, other, *kernels
    )
    assert_close(loss, np.sum(distance**2, -1))
    assert np.all(np.asarray(package.relation_triplet_loss(case, case, other, *kernels, margin=0)) == 0)
