"""Mistakes of seed 004: lexical decomposition, CTM and MIAN."""

import numpy as np
from notebooks import cosine, ctm_encoder, ctm_weighted_sum, mcrisc_local, quaizarv_max, softmax

from bugs.table import Section

LEXICAL = Section(
    "Seed 004: lexical decomposition",
    "Three public implementations (by mcrisc, by quaizarv, and in Keras) of the matching of wang2016: each word of a text x is matched with words of a text y, weighted by cosines, and split into a similar and a dissimilar part.",
)


@LEXICAL.wrong("S4-L1", was="1 0", now="1.707107 0.707107")
def _(attnpool):
    """Local matching combines the words of y in a window around the best match. mcrisc's implementation leaves out the
    last word of the window.
    """
    x, y = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [1.0, 1.0]])
    return (
        lambda: mcrisc_local(x, y, 1),
        lambda: attnpool.semantic_match(x, y, method="local", normalize=False),
    )


@LEXICAL.wrong("S4-L2", was="0.9986", now="-0.9986")
def _(attnpool):
    """mcrisc's implementation does not divide the match by the sum of the cosines. If that sum is negative, the match has
    the wrong sign, and the linear decomposition splits x by the negative of the right cosine.
    """
    x, y = np.array([[1.0, 0.0]]), np.array([[-1.0, 0.0], [-0.9, 0.1]])
    return (
        lambda: cosine(x, cosine(x, y) @ y),
        lambda: attnpool.cosine_score(x, attnpool.semantic_match(x, y, method="global")),
    )


@LEXICAL.wrong("S4-L3", was="nan", now="0")
def _(attnpool):
    """The cosine of a zero vector (padding, an unknown word) is 0/0."""
    x, y = np.zeros((1, 2)), np.array([[1.0, 0.0]])
    return (
        lambda: cosine(x, y),
        lambda: attnpool.cosine_score(x, y),
    )


@LEXICAL.wrong("S4-L4", was="0.25 0.25 0.25 0.25", now="0.5 0.5 0.5 0.5")
def _(attnpool):
    """mcrisc's implementation takes one softmax over the whole batch, not over each row."""
    s = np.zeros((2, 2))
    return (
        lambda: softmax(s, axis=None),
        lambda: attnpool.masked_softmax(s),
    )


@LEXICAL.wrong("S4-L5", was="1 0", now="0 0")
def _(attnpool):
    """quaizarv's implementation subtracts 2 from the cosine of a token of x and a token of y for each of the two that
    is padding. A padded token of x still gets a match, the best of its lowered cosines.
    """
    x, y, x_mask, y_mask = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0]]), np.zeros(1, bool), np.ones(1, bool)
    return (
        lambda: quaizarv_max(x, y, x_mask, y_mask),
        lambda: attnpool.semantic_match(x, y, x_mask, y_mask),
    )


@LEXICAL.error("S4-L6", was="anything, and not twice the same", now="0 0")
def _(attnpool):
    """The Keras port divides with `np.divide(..., where=...)` but without `out=`, so the cosine of a zero vector is
    uninitialized memory.
    """
    x, y = np.zeros((1, 2)), np.array([[1.0, 0.0]])
    return (
        None,
        lambda: attnpool.orthogonal_decomposition(y, attnpool.semantic_match(y, x))[0],
    )


CTM = Section(
    "Seed 004: CTM",
    "The repository of the authors of CTM (liu2022), a model that predicts judgments from relations between cases.",
)


@CTM.error("S4-C1", was="ValueError (TensorFlow: TypeError)", now="1", raises=ValueError)
def _(attnpool):
    """The code writes `if query_mask:`. This raises an error, because an array of several elements has no truth value
    in NumPy, nor has a tensor in TensorFlow's graph mode.
    """
    k, s, mask = np.array([[1.0], [5.0]]), np.zeros(2), np.array([True, False])
    return (
        lambda: ctm_encoder(k, s, mask),
        lambda: attnpool.attention_pooling(k, mask, np.zeros(1)),
    )


@CTM.wrong("S4-C2", was="nan", now="1")
def _(attnpool):
    """The weights of padding in CTM's weighted sum are exactly 0, but 0 times NaN in padding is NaN."""
    k, s, mask = np.array([[1.0], [np.nan]]), np.zeros(2), np.array([True, False])
    return (
        lambda: ctm_weighted_sum(k, s, mask),
        lambda: attnpool.attention_pooling(k, mask, np.zeros(1)),
    )


@CTM.wrong("S4-C3", was="0.681700 0.318300", now="0.880797 0.119203")
def _(attnpool):
    """CTM's predicted categories go through two softmaxes: the model's own, and that of the loss."""
    s = np.array([2.0, 0.0])
    return (
        lambda: softmax(softmax(s)),
        lambda: attnpool.masked_softmax(s),
    )


CTM.note(
    "S4-C4",
    "The training script of the smaller model adds the regularizer of one loss three times, and the regularizers of two others never.",
    "attnpool has the single losses, and no training script.",
)

CTM.note(
    "S4-C5",
    (
        "When similar cases are sampled, a case should be excluded by its index in the data, but is excluded by its "
        "index in the batch. So a case may be sampled as similar to itself."
    ),
    "attnpool does not sample data.",
)

CTM.note(
    "S4-C6",
    "The sampling of similar cases seeds its generator at every call, so it draws the same cases each time.",
    "attnpool does not sample data.",
)

CTM.note(
    "S4-C7",
    "The sampling of similar cases fails if a class has only one member.",
    "attnpool does not sample data.",
)


@CTM.error("S4-C8", was="AttributeError", now="1 1 0", raises=AttributeError)
def _(attnpool):
    """The code uses `np.int`, which NumPy removed in 1.24."""
    return (
        lambda: np.int(2),
        lambda: attnpool.lengths_to_mask(np.array(2), 3),
    )


MIAN = Section(
    "Seed 004: MIAN", "The equations of the paper (zhang2021): attention of an item to the past behaviors of a user."
)


@MIAN.error("S4-M1", was="ValueError", now="0.5 0.5", raises=ValueError)
def _(attnpool):
    """The equation of the global interaction adds vectors of different widths. The paper does not mention a projection
    to one width.
    """
    rs, r = [np.ones(2), np.ones(3)], np.array([[1.0, 0.0], [0.0, 1.0]])
    return (
        lambda: 0.5 * rs[0] + 0.5 * rs[1],
        lambda: attnpool.field_attention_pooling(r[0, :0], r, np.zeros(2), np.array(0.0)),
    )


@MIAN.error("S4-M2", was="ValueError", now="1 -1 0.25 0.25", raises=ValueError)
def _(attnpool):
    """The equation has one kernel for each behavior, which fixes the number of behaviors. attnpool also takes one
    kernel for all behaviors, so that their number may vary.
    """
    target, fields = np.array([1.0, -1.0]), np.array([[0.5, 0.0], [0.0, 0.5]])
    w = np.zeros((3, 4))
    return (
        lambda: np.einsum("jd,jd->j", np.concatenate([np.tile(target, (2, 1)), fields], 1), w),
        lambda: attnpool.field_attention_pooling(target, fields, w[0], np.array(0.0)),
    )


MIAN.note(
    "S4-M3",
    "Scores are values of tanh, between -1 and 1, so no weight is more than e^2 = 7.389 times another.",
    "This is the paper's definition, and `field_attention_pooling` has the same bound.",
)

MIAN.note(
    "S4-M4",
    ("One part of the result is the item itself. The paper does not say what it is for a user without behaviors."),
    "In attnpool the result of such a user, a fully masked row, is 0, the item's part included.",
)
