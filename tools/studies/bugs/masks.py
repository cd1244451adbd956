"""Mistakes in masking, from the notebooks and the public code behind them."""

import numpy as np
from notebooks import mask_by_fill, mask_by_product, mask_by_sum, mask_twice, zero_is_padding

from bugs.table import Section

MASKS = Section(
    "Masks",
    "Ways to mask a softmax that give wrong weights, from the notebooks and the public code behind them. `s` are scores.",
)


@MASKS.wrong("T-1", was="0.00012 0.99988", now="1 0")
def _(attnpool):
    """Scores of padding are multiplied by 0. The score 0 is greater than every negative score, so padding gets the
    weight.
    """
    s, mask = np.array([-9.0, 5.0]), np.array([True, False])
    return (
        lambda: mask_by_product(s, mask),
        lambda: attnpool.masked_softmax(s, mask),
    )


@MASKS.wrong("T-2", was="0.090 0.245 0.665", now="0 0 0")
def _(attnpool):
    """-1e4 is added to scores of padding. In a fully masked row this lowers all scores equally, so the weights are
    those of an unmasked softmax.
    """
    s, mask = np.array([1.0, 2.0, 3.0]), np.zeros(3, bool)
    return (
        lambda: mask_by_sum(s, mask, -1e4),
        lambda: attnpool.masked_softmax(s, mask),
    )


@MASKS.wrong("T-3", was="0 1", now="1 0")
def _(attnpool):
    """-1e4 is added to scores of padding. A real score that is lower than a score of padding by more than 1e4 is then
    still lower.
    """
    s, mask = np.array([-20000.0, 0.0]), np.array([True, False])
    return (
        lambda: mask_by_sum(s, mask, -1e4),
        lambda: attnpool.masked_softmax(s, mask),
    )


@MASKS.wrong("T-4a", was="0.333333 0.333333 0.333333", now="0 0 0")
def _(attnpool):
    """Scores of padding are set to -1e6. In a fully masked row all scores are equal, so the weights are uniform over
    padding.
    """
    s, mask = np.float32([1, 2, 3]), np.zeros(3, bool)
    return (
        lambda: mask_by_fill(s, mask, -1e6),
        lambda: attnpool.masked_softmax(s, mask),
    )


@MASKS.wrong("T-4b", was="nan nan nan", now="0 0 0")
def _(attnpool):
    """Scores of padding are set to -1e6, which is -inf in float16. In a fully masked row the weights are then NaN."""
    s, mask = np.float16([1, 2, 3]), np.zeros(3, bool)
    return (
        lambda: mask_by_fill(s, mask, -1e6),
        lambda: attnpool.masked_softmax(s, mask),
    )


@MASKS.wrong("T-5", was="0 0 1", now="0.5 0.5 0")
def _(attnpool):
    """Scores of padding are set to -1e6. Real scores below -1e6 are then lower than those of padding."""
    s, mask = np.float32([-3e6, -3e6, 0]), np.array([True, True, False])
    return (
        lambda: mask_by_fill(s, mask, -1e6),
        lambda: attnpool.masked_softmax(s, mask),
    )


@MASKS.wrong("T-6", was="nan nan", now="0.268941 0.731059")
def _(attnpool):
    """(1 - mask) * -1e30 is added to the scores. In float16 -1e30 is -inf, and real positions get 0 times -inf, which
    is NaN.
    """
    s, mask = np.float16([1, 2]), np.ones(2, bool)
    return (
        lambda: mask_by_sum(s, mask, -1e30),
        lambda: attnpool.masked_softmax(s, mask),
    )


@MASKS.wrong("T-7", was="0 0", now="1 0")
def _(attnpool):
    """The softmax runs over padding, too. Then the weights are multiplied by the mask and divided by their sum plus
    1e-13. If the real weights sum to less than about 1e-13, they become too small (here 0).
    """
    s, mask = np.float32([-200, 0]), np.array([True, False])
    return (
        lambda: mask_twice(s, mask),
        lambda: attnpool.masked_softmax(s, mask),
    )


@MASKS.wrong("T-8", was="1 0", now="0.952574 0.047426")
def _(attnpool):
    """There is no mask: positions with a score of exactly 0 are treated as padding."""
    s = np.array([3.0, 0.0])
    return (
        lambda: zero_is_padding(s),
        lambda: attnpool.masked_softmax(s),
    )
