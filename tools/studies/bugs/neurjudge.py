"""Mistakes of seed 004: NeurJudge and BiDAF."""

import numpy as np
from notebooks import bidaf, neurjudge_code_wise, neurjudge_mask, neurjudge_projection

from bugs.table import Section

NEURJUDGE = Section(
    "Seed 004: NeurJudge",
    "NeurJudge predicts judgments from the text of a fact and the texts of labels (yue2021). It pools the fact by code-wise attention and mask attention, and splits its tokens by projections.",
)


@NEURJUDGE.wrong("S4-1a", was="1 0", now="0.952574 0.047426")
def _(attnpool):
    """Mask attention treats a real token with a score of exactly 0 as padding. The numbers are weights."""
    d, c = np.array([[3.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 2.0]])
    return (
        lambda: neurjudge_mask(c, d)[1],
        lambda: attnpool.mask_attention(c, d, return_weights=True)[1],
    )


@NEURJUDGE.wrong("S4-1b", was="1 0", now="0.952574 0.094852")
def _(attnpool):
    """Mask attention treats a real token with a score of exactly 0 as padding. The numbers are the pooled vector."""
    d, c = np.array([[3.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 2.0]])
    return (
        lambda: neurjudge_mask(c, d)[0],
        lambda: attnpool.mask_attention(c, d),
    )


@NEURJUDGE.wrong("S4-2", was="0.3318 0.6682", now="1 0")
def _(attnpool):
    """Mask attention recognizes padding by its scores of 0, which padding is sure to have only if its vectors are zeros.
    NeurJudge's GRU reads the padding and does not return zeros there, so padding gets weight.
    """
    c, d, mask = np.array([[1.0, 0.0], [0.5, 0.2]]), np.array([[-1.0, 1.0]]), np.array([True, False])
    return (
        lambda: neurjudge_mask(c, d)[1],
        lambda: attnpool.mask_attention(c, d, mask, return_weights=True)[1],
    )


@NEURJUDGE.wrong("S4-3", was="0 0", now="nan nan")
def _(attnpool):
    """Mask attention replaces NaN weights by 0, because fully masked rows give NaN. This also hides NaN of real tokens,
    which attnpool returns.
    """
    c, d = np.array([[np.nan, 0.0], [0.0, 1.0]]), np.array([[1.0, 1.0]])
    return (
        lambda: neurjudge_mask(c, d)[1],
        lambda: attnpool.mask_attention(c, d, return_weights=True)[1],
    )


@NEURJUDGE.wrong("S4-4", was="0 0", now="1 0")
def _(attnpool):
    """Mask attention treats a row whose real scores are all 0 as fully masked."""
    c, d = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    return (
        lambda: neurjudge_mask(c, d)[0],
        lambda: attnpool.mask_attention(c, d),
    )


@NEURJUDGE.wrong("S4-5", was="0.2447 0.0900 0.6652", now="0.731059 0.268941 0")
def _(attnpool):
    """Code-wise attention has no mask. Padding of the context has the score 0, which is greater than the negative
    scores of real tokens.
    """
    d, g = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 0.0]]), np.array([[-1.0, 0.0], [-2.0, 0.0]])
    mask = np.array([True, True, False])
    return (
        lambda: neurjudge_code_wise(g, d),
        lambda: attnpool.code_wise_attention(g, d, context_mask=mask, return_weights=True)[1],
    )


@NEURJUDGE.wrong("S4-6", was="0.5 0.5", now="0.731059 0.268941")
def _(attnpool):
    """Code-wise attention takes the maximum of a token's scores over labels. A padded label has the score 0, so that
    maximum is never negative.
    """
    d, g = np.array([[1.0, 0.0], [2.0, 0.0]]), np.array([[-1.0, 0.0], [0.0, 0.0]])
    mask = np.array([True, False])
    return (
        lambda: neurjudge_code_wise(g, d),
        lambda: attnpool.code_wise_attention(g, d, mask, return_weights=True)[1],
    )


@NEURJUDGE.wrong("S4-7", was="1.5000e-06 0", now="3.0000e-06 0")
def _(attnpool):
    """NeurJudge adds 1e-10 to the denominator of its projection of a vector on another, so the projection on a short
    vector is too short (here by half).
    """
    d, c = np.array([3e-6, 4e-6]), np.array([1e-5, 0.0])
    return (
        lambda: neurjudge_projection(d, c),
        lambda: attnpool.orthogonal_decomposition(d, c)[0],
    )


@NEURJUDGE.wrong("S4-8", was="1", now="2")
def _(attnpool):
    """NeurJudge divides means by the padded length, not by the number of real tokens."""
    x, mask = np.array([[2.0], [0.0]]), np.array([True, False])
    return (
        lambda: x.mean(0),
        lambda: attnpool.mean_pooling(x, mask),
    )


NEURJUDGE.note(
    "S4-9",
    ("`MaskGRU` runs its backward direction through the padding first, so that states of real tokens depend on it."),
    "attnpool has no recurrent encoder.",
)


@NEURJUDGE.wrong("S4-10", was="2e-9", now="0.239632")
def _(attnpool):
    """Code-wise attention does not scale its scores, so those of vectors of width 300 saturate the softmax. The numbers
    are the weight of a token whose score is 20 lower than that of the other. attnpool keeps this definition as the
    default; `scale` avoids it.
    """
    d, g = np.array([[20.0], [0.0]]), np.array([[1.0]])
    return (
        lambda: neurjudge_code_wise(g, d)[1],
        lambda: attnpool.code_wise_attention(g, d, scale=300**-0.5, return_weights=True)[1][1],
    )


NEURJUDGE.note(
    "S4-11",
    "If two labels tie for the maximum, PyTorch's `max` over an axis gives the whole gradient to one of them.",
    ("There is no derivative at a tie. attnpool_flax divides the gradient evenly among them."),
)

NEURJUDGE.note(
    "S4-T1",
    "The notebook says that NeurJudge predicts only from its two pooled vectors.",
    "NeurJudge's code also concatenates the states of the fact's tokens, and then takes their mean.",
)

NEURJUDGE.note(
    "S4-T2",
    "The notebook says that the DVQA paper has neither formulas nor code.",
    ("The paper has equations (1) to (5); see `attention_triplet_loss` and `differential_context`."),
)


BIDAF = Section(
    "Seed 004: BiDAF",
    "The repository of the authors of BiDAF (seo2017): attention between the tokens of a context and of a query.",
)


@BIDAF.wrong("S4-B1", was="1 0 0.5 0.5", now="1 0 0 0")
def _(attnpool):
    """The code adds -1e30 to the score of each pair of a context token and a query token of which at least one is
    padding, which are all pairs in the row of a padded context token. Rounding makes all scores of this row -1e30, so the
    weights are uniform over the query and its padding.
    """
    h, u, w = np.float32([[1, 0], [0, 1]]), np.float32([[1, 0], [0, 2]]), np.float32([1, 2, 3, 4, 5, 6]) / 10
    mask = np.array([True, False])
    return (
        lambda: bidaf(h, u, w, mask, mask)[0],
        lambda: attnpool.bidaf_attention(h, u, w, mask, mask, return_weights=True)[1][0],
    )


@BIDAF.wrong("S4-B2", was="nan nan", now="0.5 0.5")
def _(attnpool):
    """The code adds (1 - mask) * -1e30 to the scores. In float16 -1e30 is -inf, and 0 times -inf is NaN at real tokens."""
    h, u, w = np.float16([[1, 0]]), np.float16([[1, 0], [0, 2]]), np.float16([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    return (
        lambda: bidaf(h, u, w, np.ones(1, bool), np.ones(2, bool))[0],
        lambda: attnpool.bidaf_attention(h, u, w, return_weights=True)[1][0],
    )


@BIDAF.wrong("S4-B3", was="0.5 0.5", now="0 0")
def _(attnpool):
    """-1e30 is added to all scores of an example without real tokens. Rounding makes all of them -1e30, so it has uniform
    weights over padding.
    """
    h, u, w, none = np.float32([[1, 0], [0, 1]]), np.float32([[1, 0]]), np.ones(6, np.float32), np.zeros(2, bool)
    return (
        lambda: bidaf(h, u, w, none, none[:1])[1],
        lambda: attnpool.bidaf_attention(h, u, w, none, none[:1], return_weights=True)[1][1],
    )
