"""Ways to mask that let padding through: the rows of no one notebook."""

import numpy as np
from notebooks import mask_by_fill, mask_by_product, mask_by_sum, mask_twice, zero_is_padding

from bugs.table import Section

MASKS = Section("Masks", "Ways to mask that let padding through, in several notebooks.")


@MASKS.wrong("T-1", was="0.00012 0.99988", now="1 0")
def _(attnpool):
    """Scores of padding are multiplied by 0, and 0 beats every negative score."""
    s, mask = np.array([-9.0, 5.0]), np.array([True, False])
    return (
        lambda: mask_by_product(s, mask),
        lambda: attnpool.masked_softmax(s, mask),
    )


@MASKS.wrong("T-2", was="0.090 0.245 0.665", now="0 0 0")
def _(attnpool):
    """-1e4 is added to scores of padding. In a fully masked row that lowers all scores equally: the result is an
    unmasked softmax.
    """
    s, mask = np.array([1.0, 2.0, 3.0]), np.zeros(3, bool)
    return (
        lambda: mask_by_sum(s, mask, -1e4),
        lambda: attnpool.masked_softmax(s, mask),
    )


@MASKS.wrong("T-3", was="0 1", now="1 0")
def _(attnpool):
    """-1e4 is added to scores of padding, so a real score below -1e4 loses to padding."""
    s, mask = np.array([-20000.0, 0.0]), np.array([True, False])
    return (
        lambda: mask_by_sum(s, mask, -1e4),
        lambda: attnpool.masked_softmax(s, mask),
    )


@MASKS.wrong("T-4a", was="0.333333 0.333333 0.333333", now="0 0 0")
def _(attnpool):
    """Scores of padding are set to -1e6. A fully masked row becomes uniform."""
    s, mask = np.float32([1, 2, 3]), np.zeros(3, bool)
    return (
        lambda: mask_by_fill(s, mask, -1e6),
        lambda: attnpool.masked_softmax(s, mask),
    )


@MASKS.wrong("T-4b", was="nan nan nan", now="0 0 0")
def _(attnpool):
    """In float16 -1e6 is -inf, and the same row is NaN."""
    s, mask = np.float16([1, 2, 3]), np.zeros(3, bool)
    return (
        lambda: mask_by_fill(s, mask, -1e6),
        lambda: attnpool.masked_softmax(s, mask),
    )


@MASKS.wrong("T-5", was="0 0 1", now="0.5 0.5 0")
def _(attnpool):
    """Scores of padding are set to -1e6, so real scores below -1e6 lose to padding."""
    s, mask = np.float32([-3e6, -3e6, 0]), np.array([True, True, False])
    return (
        lambda: mask_by_fill(s, mask, -1e6),
        lambda: attnpool.masked_softmax(s, mask),
    )


@MASKS.wrong("T-6", was="nan nan", now="0.268941 0.731059")
def _(attnpool):
    """(1 - mask) * -1e30 is added. In float16 -1e30 is -inf, and real positions get 0 times -inf, which is NaN."""
    s, mask = np.float16([1, 2]), np.ones(2, bool)
    return (
        lambda: mask_by_sum(s, mask, -1e30),
        lambda: attnpool.masked_softmax(s, mask),
    )


@MASKS.wrong("T-7", was="0 0", now="1 0")
def _(attnpool):
    """The softmax runs over padding too; then weights are multiplied by the mask and divided by their sum plus 1e-13.
    If padding has almost all the weight, the real weights become 0.
    """
    s, mask = np.float32([-200, 0]), np.array([True, False])
    return (
        lambda: mask_twice(s, mask),
        lambda: attnpool.masked_softmax(s, mask),
    )


@MASKS.wrong("T-8", was="1 0", now="0.952574 0.047426")
def _(attnpool):
    """Positions with a score of exactly 0 are treated as padding."""
    s = np.array([3.0, 0.0])
    return (
        lambda: zero_is_padding(s),
        lambda: attnpool.masked_softmax(s),
    )
