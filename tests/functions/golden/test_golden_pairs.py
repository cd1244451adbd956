"""Numbers for the pairs that come from outside: printed ones, and exact fractions.

With ``scale = log 2`` a softmax over integer scores is a quotient of powers of 2, so that Python's fractions give the
result exactly, by loops over the definition.
"""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from exact import dot
from packages import with_golden_numbers
from rounding import assert_exact, assert_printed

LOG2 = math.log(2)


def times(a, b):
    return [p * q for p, q in zip(a, b, strict=True)]


def base2_softmax(scores):
    powers = [Fraction(2) ** s for s in scores]
    return [p / sum(powers) for p in powers]


def average(weights, vectors):
    return [dot(weights, column) for column in zip(*vectors, strict=True)]


@with_golden_numbers
def test_code_wise_attention_prefers_the_least_negative(package):
    # without a mask the zero pad would take .665 of the weight
    context, labels = np.array([[1.0, 0], [2, 0], [0, 0]]), np.array([[-1.0, 0], [-2, 0]])
    pooled, weights = package.code_wise_attention(
        labels, context, context_mask=np.array([True, True, False]), return_weights=True
    )
    assert_printed(weights, [0.731059, 0.268941, 0])
    assert_printed(pooled, [1.268941, 0])


@with_golden_numbers
def test_a_padded_label_does_not_lift_code_wise_scores(package):
    labels, mask = np.array([[-1.0, 0], [0, 0]]), np.array([True, False])
    _, weights = package.code_wise_attention(labels, np.array([[1.0, 0], [2, 0]]), mask, return_weights=True)
    assert_printed(weights, [0.731059, 0.268941])


@with_golden_numbers
def test_mask_attention_and_the_separation_after_it(package):
    query, context = np.array([[1.0, 0], [0, 2]]), np.array([[3.0, 0], [1, 1]])
    chosen, weights = package.mask_attention(query, context, return_weights=True)
    assert_printed(weights, [[0.952574, 0.047426], [0.268941, 0.731059]])
    assert_printed(chosen, [[0.952574, 0.094852], [0.268941, 1.462117]])
    similar, dissimilar = package.orthogonal_decomposition(context, chosen)
    assert_printed(similar, [[2.970547, 0.295790], [0.210647, 1.145193]])
    assert_printed(dissimilar, [[0.029453, -0.295790], [0.789353, -0.145193]], terms=32)


X = [[[1, 0], [0, 2], [1, 1]], [[2, -1], [1, 3], [0, 1]]]
X_MASK = [[1, 1, 0], [1, 0, 1]]
Y = [[[1, 1], [0, 1], [2, 0], [1, -1]], [[1, 0], [0, -1], [1, 2], [3, 3]], [[0, 1], [1, 0], [1, 1], [2, 2]]]
Y_MASK = [[1, 1, 0, 1], [0, 1, 1, 0], [0, 0, 0, 0]]


def pooled_by_fractions(x, y, reduction):
    """One side of one pair, of real tokens alone."""
    if not x:
        return [Fraction(0)] * 2
    scores = [[dot(token, other) for other in y] for token in x]
    reduced = [(max(row) if reduction == "max" else sum(row)) if row else 0 for row in scores]
    return average(base2_softmax(reduced), x)


@with_golden_numbers
@pytest.mark.parametrize("reduction", ["sum", "max"])
def test_all_pairs_equal_fractions(package, reduction):
    real_x = [[t for t, m in zip(*pair, strict=True) if m] for pair in zip(X, X_MASK, strict=True)]
    real_y = [[t for t, m in zip(*pair, strict=True) if m] for pair in zip(Y, Y_MASK, strict=True)]
    x_pooled, y_pooled = package.cross_attention_pooling_all_pairs(
        np.array(X, float), np.array(Y, float), np.array(X_MASK), np.array(Y_MASK), reduction=reduction, scale=LOG2
    )
    assert_exact(package, x_pooled, [[pooled_by_fractions(x, y, reduction) for y in real_y] for x in real_x])
    assert_exact(package, y_pooled, [[pooled_by_fractions(y, x, reduction) for y in real_y] for x in real_x])


@with_golden_numbers
def test_code_wise_attention_equals_fractions(package):
    labels, context = [[1, 0], [0, -1], [-1, 2]], [[2, 1], [0, -3], [1, 1], [-1, 0]]
    weights = base2_softmax([max(dot(token, label) for label in labels) for token in context])
    pooled, actual = package.code_wise_attention(
        np.array(labels, float), np.array(context, float), scale=LOG2, return_weights=True
    )
    assert_exact(package, actual, weights)
    assert_exact(package, pooled, average(weights, context))


@with_golden_numbers
def test_the_scale_comes_before_the_maximum(package):
    """With a negative scale the best label is the one with the smallest product."""
    labels, context = [[1], [3]], [[1], [-2]]
    weights = base2_softmax([max(-dot(token, label) for label in labels) for token in context])
    _, actual = package.code_wise_attention(
        np.array(labels, float), np.array(context, float), scale=-LOG2, return_weights=True
    )
    assert_exact(package, actual, weights)


@with_golden_numbers
def test_mask_attention_equals_fractions(package):
    query, context = [[1, 0], [0, -1], [-1, 2]], [[2, 1], [0, -3], [1, 1], [-1, 0]]
    weights = [base2_softmax([dot(token, choice) for choice in query]) for token in context]
    chosen, actual = package.mask_attention(
        np.array(query, float), np.array(context, float), scale=LOG2, return_weights=True
    )
    assert_exact(package, actual, weights)
    assert_exact(package, chosen, [average(row, query) for row in weights])


@with_golden_numbers
def test_without_a_scale_products_are_divided_by_the_root_of_their_width(package):
    x, y = [[1, 0, 2, 0], [0, -1, 1, 1], [2, 1, 0, -1]], [[1, 1, 0, 0], [0, 2, 1, -1]]
    tokens, others = np.array(x, float), 2 * LOG2 * np.array(y, float)  # the root of the width 4 is 2
    products = [[dot(token, other) for other in y] for token in x]
    summed, largest = base2_softmax([sum(row) for row in products]), base2_softmax([max(row) for row in products])
    _, (weights, _) = package.cross_attention_pooling(tokens, others, scale=None, return_weights=True)
    assert_exact(package, weights, summed)
    _, (weights, _) = package.cross_attention_pooling(tokens, others, reduction="max", scale=None, return_weights=True)
    assert_exact(package, weights, largest)
    _, (weights, _) = package.cross_attention_pooling_all_pairs(
        tokens[None], others[None], reduction="max", scale=None, return_weights=True
    )
    assert_exact(package, weights[0, 0], largest)
    assert_exact(package, package.code_wise_attention(others, tokens, scale=None, return_weights=True)[1], largest)
    actual = package.mask_attention(others, tokens, scale=None, return_weights=True)[1]
    assert_exact(package, actual, [base2_softmax(row) for row in products])
    narrow = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]  # kernels to width 4, of tokens of width 5
    kernel = np.array([*narrow, [0, 0, 0, 0]], float)
    wide = [np.concatenate([each, np.ones((len(each), 1))], -1) for each in (tokens, others)]
    _, (weights, _) = package.cross_attention_pooling(
        *wide, x_kernel=kernel, y_kernel=kernel, scale=None, return_weights=True
    )
    assert_exact(package, weights, summed)


@with_golden_numbers
def test_bidaf_attention_equals_fractions(package):
    context, query, kernel = [[1, 0], [0, 2], [-1, 1]], [[1, 1], [0, 2], [3, 0], [1, -1]], [1, -1, 2, 0, 1, -2]
    scores = [[dot([*h, *u, *times(h, u)], kernel) for u in query] for h in context]
    to_query = [base2_softmax(row) for row in scores]
    to_context = base2_softmax([max(row) for row in scores])
    summary = average(to_context, context)
    joined = []
    for h, row in zip(context, to_query, strict=True):
        u = average(row, query)
        joined.append([*h, *u, *times(h, u), *times(h, summary)])
    actual, (actual_to_query, actual_to_context) = package.bidaf_attention(
        np.array(context, float), np.array(query, float), LOG2 * np.array(kernel), return_weights=True
    )
    assert_exact(package, actual_to_query, to_query)
    assert_exact(package, actual_to_context, to_context)
    assert_exact(package, actual, joined)


def differing(first, second):
    return sum(a != b for a, b in zip(first, second, strict=True))


PAIR, TOKENS = np.array([[[1.0, 0], [0, 1]]]), np.array([[1.0, 2], [3, -1], [-2, 5]])


@with_golden_numbers
def test_encodings_of_two_and_four_buckets_by_hand(package):
    """Three tokens on the sides of one or two axes; buckets 0 and 1, or 00, 01, 10, 11."""
    query, document = package.muvera_query_encoding, package.muvera_document_encoding
    assert_exact(package, query(TOKENS, planes=PAIR[:, :1]), [-2, 5, 4, 1])
    assert_exact(package, document(TOKENS, planes=PAIR[:, :1]), [-2, 5, 2, 0.5])
    assert_exact(package, document(TOKENS[:2], planes=PAIR[:, :1]), [1, 2, 2, 0.5])
    assert_exact(package, query(TOKENS, planes=PAIR), [0, 0, -2, 5, 3, -1, 1, 2])
    assert_exact(package, document(TOKENS, planes=PAIR), [3, -1, -2, 5, 3, -1, 1, 2])


@with_golden_numbers
def test_encodings_by_their_words(package):
    """A loop over repetitions, buckets and tokens, of integers; a fully masked row and one token among them."""
    rng = np.random.default_rng(5)
    x, planes = rng.integers(-4, 5, (3, 6, 4)), rng.integers(-3, 4, (2, 3, 4))
    mask, projection = rng.random((3, 6)) < 0.7, rng.integers(-2, 3, (2, 4, 5))
    mask[1], mask[2] = False, np.arange(6) == 4
    queries, documents = [], []
    for tokens in ([list(map(int, token)) for token in row[real]] for row, real in zip(x, mask, strict=True)):
        query, document = [], []
        for normals, matrix in zip(planes, projection, strict=True):
            sides = [tuple(int(np.dot(normal, token) > 0) for normal in normals) for token in tokens]
            for corner in product((0, 1), repeat=3):
                inside = [token for token, side in zip(tokens, sides, strict=True) if side == corner]
                total = [sum(column) for column in zip(*inside, strict=True)] or [0] * 4
                nearest = sorted(range(len(tokens)), key=lambda i: differing(sides[i], corner))
                filled = (
                    [Fraction(n, len(inside)) for n in total] if inside else tokens[nearest[0]] if tokens else total
                )
                query += [sum(a * int(b) for a, b in zip(total, column, strict=True)) for column in matrix.T]
                document += [sum(a * int(b) for a, b in zip(filled, column, strict=True)) for column in matrix.T]
        queries.append(query)
        documents.append(document)
    options = {"planes": planes.astype(float), "projection": projection.astype(float)}
    assert_exact(package, package.muvera_query_encoding(x.astype(float), mask, **options), queries, 64)
    assert_exact(package, package.muvera_document_encoding(x.astype(float), mask, **options), documents, 64)


@with_golden_numbers
def test_products_of_encodings_rank_like_maxsim(package):
    """200 pairs; more repetitions approximate better, with a correlation of at least 0.85 at 16 (the paper's claim)."""
    rng = np.random.default_rng(0)
    query, document = rng.normal(size=(200, 16, 16)), rng.normal(size=(200, 32, 16))
    for i, copies in enumerate(rng.integers(0, 9, 200)):
        document[i, :copies] = query[i, rng.integers(0, 16, copies)] + 0.1 * rng.normal(size=(copies, 16))
    query, document = (np.float32(x / np.linalg.norm(x, axis=-1, keepdims=True)) for x in (query, document))
    exact, found = np.asarray(package.maxsim_score(query, document)), []
    for repetitions in (1, 4, 16):
        planes = np.float32(rng.normal(size=(repetitions, 3, 16)))
        encodings = (
            package.muvera_query_encoding(query, planes=planes),
            package.muvera_document_encoding(document, planes=planes),
        )
        found.append(np.corrcoef(exact, np.sum(np.multiply(*encodings), -1))[0, 1])
    assert found == sorted(found)
    assert found[-1] >= 0.85
