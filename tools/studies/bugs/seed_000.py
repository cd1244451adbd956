"""Mistakes of seed 000, and of SimKGC, whose pooling it replaces."""

import numpy as np
from notebooks import cross_pooling, simkgc_first, simkgc_max, simkgc_mean

from bugs.table import Section

CROSS = Section(
    "Seed 000: cross pooling",
    "The notebook pools two texts, each weighted by the other, in place of `_pool_output` of SimKGC. SimKGC calls the text of a question hr (head and relation), and that of an answer tail.",
)


@CROSS.wrong("S0-1", was="0.731059", now="1")
def _(attnpool):
    """Embeddings of padding are multiplied by 0, so their score is 0, not -inf. Padding gets weight, and the pooled
    vector shrinks.
    """
    h, t, mask = np.array([[1.0], [5.0]]), np.array([[1.0], [5.0]]), np.array([True, False])
    return (
        lambda: cross_pooling(h, t, mask, mask)[0],
        lambda: attnpool.cross_attention_pooling(h, t, mask, mask)[0],
    )


@CROSS.wrong("S0-2", was="-0.00037", now="-3")
def _(attnpool):
    """Padding has the score 0 also where all real scores are negative. Then padding gets almost all the weight."""
    h, t, mask = np.array([[-3.0], [5.0]]), np.array([[3.0], [5.0]]), np.array([True, False])
    return (
        lambda: cross_pooling(h, t, mask, mask)[0],
        lambda: attnpool.cross_attention_pooling(h, t, mask, mask)[0],
    )


@CROSS.wrong("S0-3", was="1.731 1.445 0.301", now="1.731059 1.731059 1.731059")
def _(attnpool):
    """Padding gets weight, so the result depends on how far the batch is padded (here to 2, 4 and 50 tokens)."""
    t, real = np.array([[1.0]]), np.ones(1, bool)
    hs = [np.pad([[1.0], [2.0]], ((0, length - 2), (0, 0))) for length in (2, 4, 50)]
    return (
        lambda: [cross_pooling(h, t, np.arange(len(h)) < 2, real)[0] for h in hs],
        lambda: [attnpool.cross_attention_pooling(h, t, attnpool.lengths_to_mask(2, len(h)))[0] for h in hs],
    )


@CROSS.wrong("S0-4a", was="0.5", now="1")
def _(attnpool):
    """If the tail has no real token, all scores are 0, so the weights of the hr text are uniform over its real tokens
    and its padding.
    """
    h, t, mask, none = np.array([[1.0], [5.0]]), np.ones((3, 1)), np.array([True, False]), np.zeros(3, bool)
    return (
        lambda: cross_pooling(h, t, mask, none)[0],
        lambda: attnpool.cross_attention_pooling(h, t, mask, none)[0],
    )


@CROSS.wrong("S0-4b", was="0.333333 0.333333 0.333333", now="0 0 0")
def _(attnpool):
    """If the tail has no real token, all its scores are 0, so its weights are uniform over its padding."""
    h, t, mask, none = np.array([[1.0], [5.0]]), np.ones((3, 1)), np.array([True, False]), np.zeros(3, bool)
    return (
        lambda: cross_pooling(h, t, mask, none)[3],
        lambda: attnpool.cross_attention_pooling(h, t, mask, none, return_weights=True)[1][1],
    )


@CROSS.wrong("S0-5", was="nan nan", now="1 1")
def _(attnpool):
    """Embeddings of padding are multiplied by 0, and 0 times NaN is NaN. One NaN in padding makes all results NaN."""
    h, t, mask, real = np.array([[1.0], [np.nan]]), np.array([[1.0]]), np.array([True, False]), np.ones(1, bool)
    return (
        lambda: np.concatenate(cross_pooling(h, t, mask, real)[:2]),
        lambda: np.concatenate(attnpool.cross_attention_pooling(h, t, mask)),
    )


@CROSS.wrong("S0-6", was="0.525 0.731 0.993", now="0.525 0.525 0.525")
def _(attnpool):
    """The score of a token is the sum of its products with all tokens of the other text, so the length of that text
    (here 1, 10, 50) decides how sharp the weights are. attnpool keeps this definition as the default;
    `reduction="mean"` avoids it.
    """
    h, ts = np.array([[1.0], [1.1]]), [np.ones((length, 1)) for length in (1, 10, 50)]
    return (
        lambda: [cross_pooling(h, t, np.ones(2), np.ones(len(t)))[2][1] for t in ts],
        lambda: [attnpool.cross_attention_pooling(h, t, reduction="mean", return_weights=True)[1][0][1] for t in ts],
    )


@CROSS.wrong("S0-7", was="2 0", now="1 0")
def _(attnpool):
    """The pooled vectors are not normalized to length 1, but the caller uses their dot products as cosines."""
    h, t = np.array([[2.0, 0.0]]), np.array([[1.0, 0.0]])
    return (
        lambda: cross_pooling(h, t, np.ones(1), np.ones(1))[0],
        lambda: attnpool.l2_normalize(attnpool.cross_attention_pooling(h, t)[0]),
    )


@CROSS.error(
    "S0-8",
    was="2 queries and 3 candidates do not fit each other",
    now="1.731059 1.500000 1.268941 0 0 0",
    raises=ValueError,
)
def _(attnpool):
    """SimKGC scores every hr text with every tail of a batch, but the replacement pools only matching pairs. With the
    replacement, the vector of a tail depends on the hr text, so tails cannot be encoded once for all questions.
    """
    h, t = np.array([[[1.0], [2.0]], [[0.0], [0.0]]]), np.array([[[1.0]], [[0.0]], [[-1.0]]])
    return (
        lambda: cross_pooling(h, t, np.ones((2, 2)), np.ones((3, 1))),
        lambda: attnpool.cross_attention_pooling_all_pairs(h, t)[0],
    )


@CROSS.error("S0-9", was="TypeError", now="0.600000 0.800000", raises=TypeError)
def _(attnpool):
    """The replacement has other arguments than `_pool_output`, whose first argument is a string. Called in its place,
    it multiplies a string by a mask.
    """
    x, mask = np.array([[3.0, 4.0], [5.0, 5.0]]), np.array([True, False])
    return (
        lambda: cross_pooling("mean", x[0], mask, x),
        lambda: attnpool.l2_normalize(attnpool.mean_pooling(x, mask)),
    )


SIMKGC = Section(
    "SimKGC's own poolings",
    "SimKGC's `_pool_output` in the modes cls, mean and max. It divides its result by the norm (wang2022).",
)


@SIMKGC.wrong("S0-S1", was="1 -10000", now="1 5")
def _(attnpool):
    """Max pooling writes -1e4 into the padding of the caller's array."""
    x, mask = np.array([[1.0], [5.0]]), np.array([True, False])
    return (
        lambda: (simkgc_max(x, mask), x)[1],
        lambda: (attnpool.max_pooling(x, mask), x)[1],
    )


@SIMKGC.wrong("S0-S2", was="-0.5 -0.5 -0.5 -0.5", now="0 0 0 0")
def _(attnpool):
    """Max pooling of a fully masked row is a vector of -1e4. Normalized, each of its d components is -1/sqrt(d)."""
    x, mask = np.ones((1, 4)), np.zeros(1, bool)
    return (
        lambda: simkgc_max(x, mask),
        lambda: attnpool.l2_normalize(attnpool.max_pooling(x, mask)),
    )


@SIMKGC.wrong("S0-S3", was="-0.707107 -0.707107", now="-0.800000 -0.600000")
def _(attnpool):
    """Max pooling sets padding to -1e4. Real values below -1e4 then lose the maximum to padding."""
    x, mask = np.array([[-20000.0, -15000.0], [0.0, 0.0]]), np.array([True, False])
    return (
        lambda: simkgc_max(x, mask),
        lambda: attnpool.l2_normalize(attnpool.max_pooling(x, mask)),
    )


@SIMKGC.wrong("S0-S4", was="nan", now="1")
def _(attnpool):
    """Mean pooling multiplies tokens by the mask. 0 times NaN is NaN, so NaN in padding reaches the mean."""
    x, mask = np.array([[1.0], [np.nan]]), np.array([True, False])
    return (
        lambda: simkgc_mean(x, mask),
        lambda: attnpool.l2_normalize(attnpool.mean_pooling(x, mask)),
    )


@SIMKGC.wrong("S0-S5", was="0.6 0.8", now="0 0")
def _(attnpool):
    """In a fully masked row the first token, which `cls` returns, is padding."""
    x, mask = np.array([[3.0, 4.0]]), np.zeros(1, bool)
    return (
        lambda: simkgc_first(x, mask),
        lambda: attnpool.l2_normalize(attnpool.first_pooling(x, mask)),
    )


SIMKGC.note(
    "S0-S6",
    "Mean pooling of a fully masked row is 0.",
    "This is right. attnpool does the same.",
)
