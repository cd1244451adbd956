"""Recipes of ``docs/recipes.md`` whose parts no golden number shows together: an entropy, and bags of words by offsets."""

import math

import numpy as np
from packages import the_definition
from rounding import assert_close


def draw(rng, *shape):
    """In float64, so that the loops are exact; what float32 holds, so that JAX gets the same numbers."""
    return rng.normal(size=shape).astype(np.float32).astype(np.float64)


def softmax(scores):
    scores = np.exp(scores - np.max(scores))
    return scores / np.sum(scores)


@the_definition
def test_the_entropy_of_weights(package, rng):
    scores, mask = draw(rng, 2, 4, 5), rng.random((2, 1, 5)) < 0.6
    mask[..., 1] = True
    scores[0, 0] = [0, -2000, 1000, -2000, -1000]  # weights that underflow
    weights, logarithms = package.masked_softmax(scores, mask), package.masked_log_softmax(scores, mask)
    shares = [[softmax(row[m]) for row in rows] for rows, (m,) in zip(scores, mask, strict=True)]
    expected = [[-sum(w * math.log(w) for w in row if w) for row in rows] for rows in shares]
    assert_close((weights * np.where(weights > 0, -logarithms, 0)).sum(-1), expected)


@the_definition
def test_bags_of_embeddings_by_offsets_and_lexical_weights(package, rng):
    """Torch's EmbeddingBag, of which the second bag is empty; BGE-M3's largest weight of each word of a text."""
    table, ids, offsets = draw(rng, 4, 3), np.array([2, 0, 3, 3, 1]), np.array([0, 2, 2])
    segment_ids = np.repeat(np.arange(3), np.diff(offsets, append=len(ids)))
    actual = package.segment_mean_pooling(table[ids], segment_ids, 3, ids != 0)  # padding_idx=0
    assert_close(actual, [table[2], np.zeros(3), (2 * table[3] + table[1]) / 3])
    weights = np.maximum(draw(rng, 5, 1), 0)
    expected = [[max(weights[ids == word, 0], default=0)] for word in range(6)]
    assert_close(package.segment_max_pooling(weights, ids, 6), expected)
