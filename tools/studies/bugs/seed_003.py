"""Mistakes of seed 003: d2l's masked softmax, kernel regression and heat maps."""

import numpy as np
from notebooks import d2l_softmax, d2l_softmax_in_place, heatmap_limits, kernel_weights

from attnpool_ref.plot import show_heatmaps
from bugs.table import Section

D2L = Section(
    "Seed 003: d2l",
    "Masked softmax, kernel regression and heat maps, in the notebook and in the book that it follows, Dive into Deep Learning (d2l).",
)

D2L.note(
    "S3-1",
    "In the notebook's softmax formula, the numerator has the index j of the sum in place of i.",
    "Such a formula has no value that could be computed. `masked_softmax` has the formula of the book.",
)


@D2L.error("S3-2", was="AttributeError (d2l)", now="1 1 0")
def _(attnpool):
    """The notebook calls `d2l.sequence_mask`. The package `d2l` has no such function; its module `d2l.torch` has it.
    attnpool's function is `lengths_to_mask`.
    """
    return (
        None,
        lambda: attnpool.lengths_to_mask(2, 3),
    )


@D2L.error(
    "S3-3a",
    was="ValueError: (8, 4) does not broadcast with (2, 4)",
    now="0.090031 0.244728 0.665241 0 1 0 0 0",
    raises=ValueError,
)
def _(attnpool):
    """`masked_softmax` repeats lengths [B] along axis 1 of the scores. For scores of two axes this raises an error."""
    s = np.array([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]])
    return (
        lambda: d2l_softmax(s, np.array([3, 1])),
        lambda: attnpool.masked_softmax(s, lengths=np.array([3, 1])),
    )


@D2L.error(
    "S3-3b",
    was="ValueError: (6, 4) does not broadcast with (12, 4)",
    now="1 0 0 0 0.25 0.25 0.25 0.25",
    raises=ValueError,
)
def _(attnpool):
    """`masked_softmax` repeats lengths [B] along axis 1 of the scores. For scores of four axes, such as those of
    several heads, this raises an error, unless the third axis has size 1.
    """
    s = np.zeros((2, 3, 2, 4))
    return (
        lambda: d2l_softmax(s, np.array([1, 4])),
        lambda: attnpool.masked_softmax(s, lengths=np.array([1, 4]))[:, 0, 0],
    )


@D2L.wrong("S3-3c", was="1 0 0 0 1 0 0 0 1 0 0 0 1 0 0 0", refuses="`lengths`")
def _(attnpool):
    """For square scores, `masked_softmax` silently uses lengths of the shape [1] for all rows. attnpool raises an
    error.
    """
    s = np.zeros((4, 4))
    return (
        lambda: d2l_softmax(s, np.array([1])),
        lambda: attnpool.masked_softmax(s, lengths=np.array([1])),
    )


@D2L.error("S3-3d", was="IndexError", now="0.090031 0.244728 0.665241 0", raises=IndexError)
def _(attnpool):
    """For scores of one axis, lengths of the shape [1] raise an error in `masked_softmax`. attnpool takes a length
    without axes.
    """
    s = np.array([1.0, 2.0, 3.0, 4.0])
    return (
        lambda: d2l_softmax(s, np.array([3])),
        lambda: attnpool.masked_softmax(s, lengths=3),
    )


@D2L.wrong("S3-4a", was="0.333333 0.333333 0.333333", now="0 0 0")
def _(attnpool):
    """`masked_softmax` sets scores of padding to -1e6. In a fully masked row all scores are equal, so the weights are
    uniform over padding.
    """
    s = np.zeros((1, 1, 3), np.float32)
    return (
        lambda: d2l_softmax(s, np.array([0])),
        lambda: attnpool.masked_softmax(s, lengths=np.array([0])),
    )


@D2L.wrong("S3-4b", was="nan nan nan", now="0 0 0")
def _(attnpool):
    """`masked_softmax` sets scores of padding to -1e6, which is -inf in float16. In a fully masked row the weights are
    then NaN.
    """
    s = np.zeros((1, 1, 3), np.float16)
    return (
        lambda: d2l_softmax(s, np.array([0])),
        lambda: attnpool.masked_softmax(s, lengths=np.array([0])),
    )


@D2L.wrong("S3-4c", was="0 0 1", now="0.5 0.5 0")
def _(attnpool):
    """`masked_softmax` sets scores of padding to -1e6. Real scores below -1e6 are then lower than those of padding."""
    s = np.float32([[[-3e6, -3e6, 0]]])
    return (
        lambda: d2l_softmax(s, np.array([2])),
        lambda: attnpool.masked_softmax(s, lengths=np.array([2])),
    )


@D2L.wrong("S3-5", was="1 0 0 0", now="0.0900 0.2447 0.6652 0")
def _(attnpool):
    """`masked_softmax` writes -1e6 into the caller's scores. A second call with a greater length finds -1e6 at real
    tokens.
    """
    s = np.array([1.0, 2.0, 3.0, 4.0])
    return (
        lambda: [d2l_softmax_in_place(s, length) for length in (1, 3)][1],
        lambda: [attnpool.masked_softmax(s, lengths=length) for length in (1, 3)][1],
    )


@D2L.wrong("S3-6a", was="0.032059 0.087144 0.236883 0.643914", refuses="has the value 9")
def _(attnpool):
    """A length that is greater than the number of tokens masks nothing in `masked_softmax`. attnpool raises an error."""
    s = np.array([[[1.0, 2.0, 3.0, 4.0]]])
    return (
        lambda: d2l_softmax(s, np.array([9])),
        lambda: attnpool.masked_softmax(s, lengths=np.array([9])),
    )


@D2L.wrong("S3-6b", was="0.25 0.25 0.25 0.25", refuses="has the value -1")
def _(attnpool):
    """`masked_softmax` treats a negative length as 0, so the weights are uniform over padding. attnpool raises an
    error.
    """
    s = np.array([[[1.0, 2.0, 3.0, 4.0]]])
    return (
        lambda: d2l_softmax(s, np.array([-1])),
        lambda: attnpool.masked_softmax(s, lengths=np.array([-1])),
    )


@D2L.wrong("S3-6c", was="0.268941 0.731059 0 0", refuses="float64")
def _(attnpool):
    """`masked_softmax` silently rounds a length of 1.5 up to 2. attnpool raises an error."""
    s = np.array([[[1.0, 2.0, 3.0, 4.0]]])
    return (
        lambda: d2l_softmax(s, np.array([1.5])),
        lambda: attnpool.masked_softmax(s, lengths=np.array([1.5])),
    )


@D2L.error("S3-7", was="RuntimeError (PyTorch)", now="0.090031 0.244728 0.665241 0")
def _(attnpool):
    """PyTorch's softmax, which `masked_softmax` calls, raises an error for integer scores."""
    s = np.arange(4)
    return (
        None,
        lambda: attnpool.masked_softmax(s, lengths=3),
    )


@D2L.wrong("S3-8", was="nan", now="1")
def _(attnpool):
    """The weights by `masked_softmax` are 0 at padding, but their product with a padded value of NaN is NaN."""
    s, v = np.zeros((1, 1, 2)), np.array([[[1.0], [np.nan]]])
    return (
        lambda: d2l_softmax(s, np.array([1])) @ v,
        lambda: attnpool.attend(s, v, attnpool.lengths_to_mask(1, 2)),
    )


@D2L.error("S3-9", was="nothing to call", now="0.197546 0.515226 0.287228")
def _(attnpool):
    """The notebook's class `AdditiveAttention` has no body. The numbers are the weights of attnpool's
    `additive_attention`.
    """
    q, k, v = np.array([[1.0, 2.0]]), np.array([[1.0], [0.0], [-1.0]]), np.ones((3, 1))
    wq, wk, w = np.array([[0.1, 0.3], [0.2, 0.4]]), np.array([[1.0, -1.0]]), np.array([1.0, 2.0])
    return (
        None,
        lambda: attnpool.additive_attention(q, k, v, wq, wk, w, return_weights=True)[1],
    )


@D2L.wrong("S3-N1", was="1 0", now="0.5 0.5")
def _(attnpool):
    """In the book's text the boxcar kernel includes its edge, at distance 1. In the book's code it does not."""
    q, k = np.array([0.0]), np.array([0.0, 1.0])
    return (
        lambda: kernel_weights(q, k, lambda u: u < 1),
        lambda: attnpool.kernel_regression(
            q[:, None], k[:, None], np.ones((2, 1)), kernel="boxcar", return_weights=True
        )[1],
    )


@D2L.wrong("S3-N2", was="0.666667 0.333333", now="0.571429 0.428571")
def _(attnpool):
    """The kernel that the book's code calls Epanechnikov is the triangular one (attnpool's `kernel="triangular"`)."""
    q, k = np.array([0.0]), np.array([0.0, 0.5])
    return (
        lambda: kernel_weights(q, k, lambda u: np.maximum(0, 1 - u)),
        lambda: attnpool.kernel_regression(
            q[:, None], k[:, None], np.ones((2, 1)), kernel="epanechnikov", return_weights=True
        )[1],
    )


@D2L.wrong("S3-N3", was="nan nan", now="0 0")
def _(attnpool):
    """If no key is in the range of the kernel, the weights of the book's kernel regression are 0/0."""
    q, k = np.array([0.0]), np.array([5.0, 6.0])
    return (
        lambda: kernel_weights(q, k, lambda u: u <= 1),
        lambda: attnpool.kernel_regression(
            q[:, None], k[:, None], np.ones((2, 1)), kernel="boxcar", return_weights=True
        )[1],
    )


@D2L.wrong("S3-N4", was="nan nan", now="0 1")
def _(attnpool):
    """The values of a narrow Gaussian kernel underflow to 0, so the weights of the book's kernel regression are 0/0.
    attnpool computes with their logarithms, and the nearer key has all the weight.
    """
    q, k = np.float32([0]), np.float32([5, 4])
    return (
        lambda: kernel_weights(q, k, lambda u: np.exp(-(u**2) / (2 * np.float32(0.1) ** 2))),
        lambda: attnpool.kernel_regression(
            q[:, None], k[:, None], np.ones((2, 1), np.float32), bandwidth=0.1, return_weights=True
        )[1],
    )


@D2L.wrong("S3-N5", was="0.119203 0.880797", now="0.500000 0.982014")
def _(attnpool):
    """The book's code for TensorFlow uses the training points in place of the test points. This goes unnoticed in the
    book, because both have the same numbers there.
    """
    x_train, x_test, y = np.array([0.0, 2.0]), np.array([1.0, 3.0]), np.array([0.0, 1.0])
    return (
        lambda: kernel_weights(x_train, x_train, lambda u: np.exp(-(u**2) / 2)) @ y,
        lambda: attnpool.kernel_regression(x_test[:, None], x_train[:, None], y[:, None]),
    )


@D2L.wrong("S3-H1", was="0 1 0 10", now="0 10 0 10")
def _(attnpool):
    """The book's `show_heatmaps` gives each map its own color scale, but draws only the color bar of the last map. The
    numbers are the limits of the color scales of two maps.
    """
    maps = np.array([[[[0.0, 1.0]], [[0.0, 10.0]]]])
    return (
        lambda: heatmap_limits(maps),
        lambda: [panel.images[0].get_clim() for panel in show_heatmaps(maps, "keys", "queries").axes[:2]],
    )
