"""Mistakes of seed 002: three rules of attention and the class Attn."""

import numpy as np
from notebooks import location_class, rule_two_in_the_class

from bugs.table import Section

RULES = Section(
    "Seed 002: three rules and the class Attn",
    "The notebook states three rules of attention, and scores tokens by their position (a slot) in the class `Attn`. Some mistakes are in the public code that it is based on.",
)


@RULES.wrong("S2-1", was="1 1 1", now="2 1 1")
def _(attnpool):
    """The class `Attn` reads only the query and the key of the first example. With 2 examples, PyTorch's `bmm` raises
    an error, and the same formula in NumPy silently returns one result. The numbers are shapes.
    """
    q, k, v = np.ones((2, 1, 2)), np.ones((2, 1, 2)), np.ones((2, 3, 1))
    w1, b1, w2, b2 = np.ones((4, 3)), np.zeros(3), np.ones((3, 1)), np.zeros(1)
    return (
        lambda: location_class(q, k, v, w1, b1, w2, b2)[0].shape,
        lambda: attnpool.location_attention(q, k, v, w1, b1, w2, b2).shape,
    )


@RULES.wrong("S2-2", was="0.1223 0.2721 0.6056", now="0.310026 0.689974 0")
def _(attnpool):
    """The class `Attn` has a fixed number of slots (positions), to which its caller pads shorter sequences. It has no
    mask, so the padding gets weight.
    """
    q, k, v = np.array([[[1.0, 0.0]]]), np.array([[[0.0, 1.0]]]), np.array([[[1.0], [2.0], [0.0]]])
    w1, b1, w2, b2 = np.arange(12).reshape(3, 4).T / 10, np.zeros(3), np.ones((3, 1)), np.zeros(1)
    return (
        lambda: location_class(q, k, v, w1, b1, w2, b2)[1],
        lambda: attnpool.location_attention(
            q, k, v, w1, b1, w2, b2, np.array([True, True, False]), return_weights=True
        )[1],
    )


@RULES.error("S2-3", was="ValueError", now="3", raises=ValueError)
def _(attnpool):
    """The length of a sequence must equal the number of slots (here 5 and 8), and there is no mask. In attnpool you
    pad the sequence to the slots and mask it.
    """
    q, k, v = np.ones((1, 1, 1)), np.ones((1, 1, 1)), np.arange(1.0, 6.0)[None, :, None]
    w1, b1, w2, b2 = np.zeros((2, 8)), np.zeros(8), np.array([[0.0], [1.0]]), np.zeros(1)
    return (
        lambda: location_class(q, k, v, w1, b1, w2, b2),
        lambda: attnpool.location_attention(
            q, k, np.pad(v, ((0, 0), (0, 3), (0, 0))), w1, b1, w2, b2, attnpool.lengths_to_mask(5, 8)
        ),
    )


@RULES.error("S2-4", was="ValueError", now="0.344501 0.445812 0.209687", raises=ValueError)
def _(attnpool):
    """Query and key are concatenated row by row, so one query cannot be used with three keys. attnpool computes a score
    for each pair.
    """
    q, k, v = np.array([[[1.0, 2.0]]]), np.array([[[1.0], [0.0], [-1.0]]]), np.ones((1, 3, 1))
    w = np.array([[0.1, 0.3], [0.2, 0.4], [1.0, -1.0]])
    return (
        lambda: location_class(q, k, v, w, np.zeros(2), np.ones((3, 1)), np.zeros(1)),
        lambda: attnpool.tanh_sum_attention(q, k, v, w, return_weights=True)[1],
    )


@RULES.wrong("S2-5", was="1 32", now="1 1 32")
def _(attnpool):
    """The class `Attn` returns the weights without their batch axis. The numbers are shapes."""
    q, k, v = np.ones((1, 1, 2)), np.ones((1, 1, 2)), np.ones((1, 32, 1))
    w1, b1, w2, b2 = np.ones((4, 32)), np.zeros(32), np.ones((3, 1)), np.zeros(1)
    return (
        lambda: location_class(q, k, v, w1, b1, w2, b2)[1].shape,
        lambda: attnpool.location_attention(q, k, v, w1, b1, w2, b2, return_weights=True)[1].shape,
    )


@RULES.wrong("S2-R1", was="1", now="0.344501 0.445812 0.209687")
def _(attnpool):
    """By the notebook's rule 2, the score of a query and a key is the sum of a tanh layer of both. The class `Attn` has
    rule 1, in which each query meets only one key. With rule 2 in its place, each query would have only one score, whose
    softmax is 1. "Theirs" is computed with the first key, attnpool's with all three.
    """
    q, k = np.array([[1.0, 2.0]]), np.array([[1.0], [0.0], [-1.0]])
    w = np.array([[0.1, 0.3], [0.2, 0.4], [1.0, -1.0]])
    return (
        lambda: rule_two_in_the_class(q, k[:1], w),
        lambda: attnpool.tanh_sum_attention(q, k, k, w, return_weights=True)[1],
    )


RULES.note(
    "S2-R2",
    "Course notes call rule 1 of the notebook multiplicative attention.",
    "Only the name is wrong: the scores of rule 1 are affine in [query; key], one for each position. See `location_score`.",
)

RULES.note(
    "S2-R3",
    "The text says that attention is self-attention if query, key and value are equal.",
    "Usually they are three projections of one source. See `multi_head_attention`.",
)

RULES.note(
    "S2-R4",
    "One copy of the class concatenates [context; query] where the others concatenate [query; context].",
    "This is not a mistake: only the rows of `out_kernel` are in another order.",
)


@RULES.error("S2-R5", was="InvalidArgumentError (TensorFlow)", now="0")
def _(attnpool):
    """TensorFlow Addons' additive attention asserts that every length is above 0."""
    q, k, v = np.ones((1, 1)), np.ones((2, 1)), np.ones((2, 1))
    return (
        None,
        lambda: attnpool.additive_attention(
            q, k, v, np.ones((1, 1)), np.ones((1, 1)), np.ones(1), np.zeros((1, 2), bool)
        ),
    )
