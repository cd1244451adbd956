"""Picture of poolings as score, normalizer and reduction; each row is also a composition with the same result."""

from collections.abc import Callable
from itertools import groupby
from typing import NamedTuple

import numpy as np

import attnpool_ref as ref
from pictures.svg import Picture

RANDOM = np.random.default_rng(0)
X, Y = RANDOM.normal(size=(5, 4)), RANDOM.normal(size=(3, 4))
MASK = np.array([True, True, False, True, False])
QUERY, KERNEL, OUT, CENTERS = (RANDOM.normal(size=shape) for shape in ((4,), (4, 4), (4,), (2, 4)))
QUERIES, KEYS, VALUES = (RANDOM.normal(size=shape) for shape in ((1, 4), (4, 2, 2), (4, 2, 2)))
NONE = np.zeros(5)
"""Small arrays for comparing the compositions."""


class Pooling(NamedTuple):
    """A row of the picture.

    Attributes:
      score: the text about the scores.
      normalizer: the text about the normalizer.
      reduction: the text about the reduction.
      name: the function.
      known: its usual name.
      call: the function on small arrays.
      composed: the same result from score, normalizer and reduction.
    """

    score: str
    normalizer: str
    reduction: str
    name: str
    known: str
    call: Callable
    composed: Callable


def averaged(weights):
    """Returns the sum of the real tokens times their weights."""
    return weights @ np.where(MASK[:, None], X, 0)


def per_feature(scores, normalizer, *arguments):
    """Returns the sum of the real tokens times weights for each feature."""
    return (normalizer(scores, MASK[:, None], *arguments, axis=0) * X).sum(0)


def of_heads(normalizer):
    """Returns the result of two heads: scores of keys, weights of each head, concatenated values."""
    keys, values = np.einsum("ld,dhc->hlc", X, KEYS), np.einsum("ld,dhc->hlc", X, VALUES)
    query = QUERIES.reshape(2, 1, 2)
    weights = normalizer(ref.scaled_dot_score(query, keys)[:, 0], MASK)
    return np.einsum("hl,hlc->hc", weights, values).reshape(1, 4)


def perceptron():
    """Returns a score for each token, from one hidden layer with tanh."""
    return np.tanh(X @ KERNEL) @ OUT


def best_of_y():
    """Returns for each token of x the largest product with a token of y."""
    scores = ref.dot_score(X, Y)
    return np.sum(ref.hardmax(scores) * scores, -1)


FEATURE, PRODUCT, TWO, PLACE = "the feature itself", "product with a query", "the other sequence", "position"
SAME, HIDDEN = "the same for all", "perceptron (tanh)"
MEAN, DEVIATION, POWER, RESIDUALS = "weighted mean", "mean and deviation", "mean of powers, root", "sum of residuals"
POOLINGS = (
    Pooling(
        *(SAME, "softmax", MEAN, "mean_pooling", "mean"),
        lambda: ref.mean_pooling(X, MASK),
        lambda: averaged(ref.masked_softmax(NONE, MASK)),
    ),
    Pooling(
        *(PRODUCT, "softmax", MEAN, "attention_pooling", "attention"),
        lambda: ref.attention_pooling(X, MASK, QUERY),
        lambda: averaged(ref.masked_softmax(ref.scaled_dot_score(QUERY[None], X)[0], MASK)),
    ),
    Pooling(
        *(PRODUCT, "softmax", MEAN, "multi_head_attention_pooling", "MAP head, PMA"),
        lambda: ref.multi_head_attention_pooling(
            X, MASK, query=QUERIES.reshape(1, 2, 2), key_kernel=KEYS, value_kernel=VALUES
        ),
        lambda: of_heads(ref.masked_softmax),
    ),
    Pooling(
        *(HIDDEN, "softmax", MEAN, "additive_attention_pooling", "ABMIL, CLAM"),
        lambda: ref.additive_attention_pooling(X, MASK, kernel=KERNEL, out_kernel=OUT),
        lambda: averaged(ref.masked_softmax(perceptron(), MASK)),
    ),
    Pooling(
        *(TWO, "softmax", MEAN, "cross_attention_pooling", "cross pooling"),
        lambda: ref.cross_attention_pooling(X, Y, MASK)[0],
        lambda: averaged(ref.masked_softmax(ref.dot_score(X, Y).sum(-1), MASK)),
    ),
    Pooling(
        *(FEATURE, "softmax, by feature", MEAN, "softmax_pooling", "AutoPool"),
        lambda: ref.softmax_pooling(X, MASK, scale=2.0),
        lambda: per_feature(2 * X, ref.masked_softmax),
    ),
    Pooling(
        *(FEATURE, "hardmax, by feature", MEAN, "max_pooling", "max"),
        lambda: ref.max_pooling(X, MASK),
        lambda: per_feature(X, ref.hardmax),
    ),
    Pooling(
        *(PLACE, "hardmax", MEAN, "last_pooling", "last token"),
        lambda: ref.last_pooling(X, MASK),
        lambda: averaged(ref.hardmax(np.arange(5.0), MASK)),
    ),
    Pooling(
        *(SAME, "softmax", DEVIATION, "statistics_pooling", "x-vector"),
        lambda: ref.statistics_pooling(X, MASK),
        lambda: ref.statistics_pooling(X, MASK, weights=ref.masked_softmax(NONE, MASK)),
    ),
    Pooling(
        *(HIDDEN, "softmax", DEVIATION, "attentive_statistics_pooling", "ASP, ECAPA"),
        lambda: ref.attentive_statistics_pooling(X, MASK, kernel=KERNEL, out_kernel=OUT),
        lambda: ref.statistics_pooling(X, MASK, weights=ref.masked_softmax(perceptron(), MASK)),
    ),
    Pooling(
        *(SAME, "softmax", POWER, "power_mean_pooling", "GeM"),
        lambda: ref.power_mean_pooling(np.abs(X), MASK, p=3.0),
        lambda: (ref.masked_softmax(NONE, MASK) @ np.abs(X) ** 3) ** (1 / 3),
    ),
    Pooling(
        *("products with centers", "softmax over centers", RESIDUALS, "vlad_pooling", "NetVLAD"),
        lambda: ref.vlad_pooling(X, MASK, assign_kernel=CENTERS.T, centers=CENTERS, normalize=False),
        lambda: np.einsum("lk,lkd->kd", ref.masked_softmax(X @ CENTERS.T) * MASK[:, None], X[:, None] - CENTERS),
    ),
    Pooling(
        *("linear (gate)", "sigmoid", "sum", "gated_sum_pooling", "GGNN readout"),
        lambda: ref.gated_sum_pooling(X, MASK, gate_kernel=KERNEL, value_kernel=KERNEL.T),
        lambda: (ref.masked_sigmoid(X @ KERNEL, MASK[:, None]) * np.tanh(X @ KERNEL.T)).sum(0),
    ),
    Pooling(
        *(TWO, "hardmax over y", "sum of scores", "maxsim_score", "ColBERT"),
        lambda: ref.maxsim_score(X, Y, MASK),
        lambda: best_of_y()[MASK].sum(),
    ),
)

COLUMNS = ("score", 24, 146), ("normalizer", 182, 142), ("reduction", 336, 134), ("function", 482, 200)
"""Title, left edge and width of each column."""

TOP, ROW = 90, 40


def draw():
    """Returns the picture."""
    height = TOP + len(POOLINGS) * ROW + 40
    description = "; ".join(f"{row.name}: {row.score}, {row.normalizer}, {row.reduction}" for row in POOLINGS)
    picture = Picture(height, "Poolings by score, normalizer and reduction", description)
    picture.text(24, 32, "A pooling is a score, a normalizer and a reduction", "ink bold")
    for title, left, width in COLUMNS:
        picture.text(
            left + (8 if title == "function" else width / 2),
            TOP - 18,
            title,
            "muted" if title == "function" else "muted mid",
        )
    for sign, left in (("\N{MULTIPLICATION SIGN}", 176), ("\N{MULTIPLICATION SIGN}", 330), ("=", 478)):
        picture.text(left, TOP - 18, sign, "muted mid")
    for key, (_, left, width) in zip(("score", "normalizer", "reduction"), COLUMNS, strict=False):
        row = 0
        for text, same in groupby(POOLINGS, key=lambda pooling: getattr(pooling, key)):
            count = len(list(same))
            top = TOP + row * ROW
            picture.rect(left, top, width, count * ROW - 4, "cell edge", 5)
            picture.text(left + width / 2, top + count * ROW / 2 + 3, text, "ink mid small")
            row += count
    _, left, _ = COLUMNS[-1]
    for row, pooling in enumerate(POOLINGS):
        picture.text(left + 8, TOP + row * ROW + 15, pooling.known, "ink small bold")
        picture.text(left + 8, TOP + row * ROW + 29, pooling.name, "muted tiny mono")
    names = ", ".join(ref.table.BY_NAME["attention_pooling"].options["normalizer"])
    picture.text(24, height - 18, f"normalizer= of the attention poolings: {names}, or your function", "muted small")
    return picture.svg()
