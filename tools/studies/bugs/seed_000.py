"""Seed 000 and SimKGC, whose pooling it replaces."""

import numpy as np
from notebooks import cross_pooling, simkgc_first, simkgc_max, simkgc_mean

from bugs.table import Section

CROSS = Section(
    "Seed 000: cross pooling",
    "The notebook's replacement for SimKGC's pooling. SimKGC calls the text of a question hr (head and relation), that of an answer tail.",
)


@CROSS.wrong("S0-1", was="0.731059", now="1")
def _(attnpool):
    """Embeddings of padding are multiplied by 0, so their score is 0, not -inf: they get weight, and the output
    shrinks.
    """
    h, t, mask = np.array([[1.0], [5.0]]), np.array([[1.0], [5.0]]), np.array([True, False])
    return (
        lambda: cross_pooling(h, t, mask, mask)[0],
        lambda: attnpool.cross_attention_pooling(h, t, mask, mask)[0],
    )


@CROSS.wrong("S0-2", was="-0.00037", now="-3")
def _(attnpool):
    """The same where real scores are negative: padding gets almost all the weight."""
    h, t, mask = np.array([[-3.0], [5.0]]), np.array([[3.0], [5.0]]), np.array([True, False])
    return (
        lambda: cross_pooling(h, t, mask, mask)[0],
        lambda: attnpool.cross_attention_pooling(h, t, mask, mask)[0],
    )


@CROSS.wrong("S0-3", was="1.731 1.445 0.301", now="1.731059 1.731059 1.731059")
def _(attnpool):
    """The result depends on how far the batch is padded (here to 2, 4 and 50)."""
    t, real = np.array([[1.0]]), np.ones(1, bool)
    hs = [np.pad([[1.0], [2.0]], ((0, length - 2), (0, 0))) for length in (2, 4, 50)]
    return (
        lambda: [cross_pooling(h, t, np.arange(len(h)) < 2, real)[0] for h in hs],
        lambda: [attnpool.cross_attention_pooling(h, t, attnpool.lengths_to_mask(2, len(h)))[0] for h in hs],
    )


@CROSS.wrong("S0-4a", was="0.5", now="1")
def _(attnpool):
    """With an empty tail, the weights of the hr side are uniform over real tokens and padding."""
    h, t, mask, none = np.array([[1.0], [5.0]]), np.ones((3, 1)), np.array([True, False]), np.zeros(3, bool)
    return (
        lambda: cross_pooling(h, t, mask, none)[0],
        lambda: attnpool.cross_attention_pooling(h, t, mask, none)[0],
    )


@CROSS.wrong("S0-4b", was="0.333333 0.333333 0.333333", now="0 0 0")
def _(attnpool):
    """The empty tail's own weights are uniform."""
    h, t, mask, none = np.array([[1.0], [5.0]]), np.ones((3, 1)), np.array([True, False]), np.zeros(3, bool)
    return (
        lambda: cross_pooling(h, t, mask, none)[3],
        lambda: attnpool.cross_attention_pooling(h, t, mask, none, return_weights=True)[1][1],
    )


@CROSS.wrong("S0-5", was="nan nan", now="1 1")
def _(attnpool):
    """0 times NaN is NaN: one NaN in padding makes all results NaN."""
    h, t, mask, real = np.array([[1.0], [np.nan]]), np.array([[1.0]]), np.array([True, False]), np.ones(1, bool)
    return (
        lambda: np.concatenate(cross_pooling(h, t, mask, real)[:2]),
        lambda: np.concatenate(attnpool.cross_attention_pooling(h, t, mask)),
    )


@CROSS.wrong("S0-6", was="0.525 0.731 0.993", now="0.525 0.525 0.525")
def _(attnpool):
    """Scores are summed over the other side, so that its length (here 1, 10, 50) decides how sharp the weights are.
    attnpool keeps this definition as the default; `reduction="mean"` and `scale` avoid it.
    """
    h, ts = np.array([[1.0], [1.1]]), [np.ones((length, 1)) for length in (1, 10, 50)]
    return (
        lambda: [cross_pooling(h, t, np.ones(2), np.ones(len(t)))[2][1] for t in ts],
        lambda: [attnpool.cross_attention_pooling(h, t, reduction="mean", return_weights=True)[1][0][1] for t in ts],
    )


@CROSS.wrong("S0-7", was="2 0", now="1 0")
def _(attnpool):
    """The pooled vectors are not normalized, but the caller uses their products as cosines."""
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
    """SimKGC scores every hr with every tail of a batch, but the function pools matching pairs only, so an entity can
    no longer be encoded without its partner.
    """
    h, t = np.array([[[1.0], [2.0]], [[0.0], [0.0]]]), np.array([[[1.0]], [[0.0]], [[-1.0]]])
    return (
        lambda: cross_pooling(h, t, np.ones((2, 2)), np.ones((3, 1))),
        lambda: attnpool.cross_attention_pooling_all_pairs(h, t)[0],
    )


@CROSS.error("S0-9", was="TypeError", now="0.600000 0.800000", raises=TypeError)
def _(attnpool):
    """Its arguments are not those of the function that it replaces, of which the first is a string: called in its place,
    it multiplies a string by a mask.
    """
    x, mask = np.array([[3.0, 4.0], [5.0, 5.0]]), np.array([True, False])
    return (
        lambda: cross_pooling("mean", x[0], mask, x),
        lambda: attnpool.l2_normalize(attnpool.mean_pooling(x, mask)),
    )


SIMKGC = Section("SimKGC's own poolings", "`_pool_output` with cls, mean and max (wang2022).")


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
    """Max pooling of an empty row is a vector of -1e4, which becomes -1/sqrt(d) in each component."""
    x, mask = np.ones((1, 4)), np.zeros(1, bool)
    return (
        lambda: simkgc_max(x, mask),
        lambda: attnpool.l2_normalize(attnpool.max_pooling(x, mask)),
    )


@SIMKGC.wrong("S0-S3", was="-0.707107 -0.707107", now="-0.800000 -0.600000")
def _(attnpool):
    """Real values below -1e4 lose the maximum to padding."""
    x, mask = np.array([[-20000.0, -15000.0], [0.0, 0.0]]), np.array([True, False])
    return (
        lambda: simkgc_max(x, mask),
        lambda: attnpool.l2_normalize(attnpool.max_pooling(x, mask)),
    )


@SIMKGC.wrong("S0-S4", was="nan", now="1")
def _(attnpool):
    """Mean pooling multiplies by the mask, so that NaN in padding reaches the mean."""
    x, mask = np.array([[1.0], [np.nan]]), np.array([True, False])
    return (
        lambda: simkgc_mean(x, mask),
        lambda: attnpool.l2_normalize(attnpool.mean_pooling(x, mask)),
    )


@SIMKGC.wrong("S0-S5", was="0.6 0.8", now="0 0")
def _(attnpool):
    """The first token of an empty row is a token of padding."""
    x, mask = np.array([[3.0, 4.0]]), np.zeros(1, bool)
    return (
        lambda: simkgc_first(x, mask),
        lambda: attnpool.l2_normalize(attnpool.first_pooling(x, mask)),
    )


SIMKGC.note(
    "S0-S6",
    "Mean pooling of an empty row is 0.",
    "This is right, and the same as in attnpool.",
)
