"""Mistakes of seed 001: fixed weights, and one learned query."""

import numpy as np
from notebooks import fixed_pooling, learned_pooling, mask_by_sum, softmax, softmax_with_epsilon

from bugs.table import Section

POOLING = Section(
    "Seed 001: fixed weights, one learned query",
    "The notebook's functions `normal_pooling` (fixed weights) and `attention_pooling` (one learned query), in NumPy.",
)


@POOLING.error(
    "S1-1",
    was="AttributeError (NumPy 1: TypeError)",
    now="2.608859 3.608859",
    raises=(
        AttributeError,
        TypeError,
    ),
)
def _(attnpool):
    """Any call of `attention_pooling` with a mask fails, because the function calls `np.cast`. NumPy 1 has a table of
    this name, not a function, and NumPy 2 has none.
    """
    x, mask, q = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([True, True, False]), np.array([1.0, -1.0])
    wq, wk = np.diag([1.0, 0.5]), np.diag([1.0, 0.0])
    return (
        lambda: learned_pooling(x[None], mask[None], random=np.random.default_rng(0)),
        lambda: attnpool.attention_pooling(
            x, mask, q, query_kernel=wq, key_kernel=wk, normalize_query=True, epsilon=1e-12
        ),
    )


@POOLING.wrong("S1-2", was="0.99990001", now="1")
def _(attnpool):
    """The notebook's softmax adds 1e-4 (written 10e-5) to its denominator, so the weights do not sum to 1. The numbers
    are their sums.
    """
    s = np.array([[0.0, -1000.0]])
    return (
        lambda: softmax_with_epsilon(s).sum(),
        lambda: attnpool.masked_softmax(s).sum(),
    )


@POOLING.wrong("S1-3a", was="1 0 0 0", now="0.647107 0.038248 0.157323 0.157323")
def _(attnpool):
    """The "layer norm" divides by the sum of the vector, which may be almost 0. Here it returns (1e9, -1e9, 1, 0), and
    the weights saturate.
    """
    q = np.array([1.0, -1.0, 1e-9, 0.0])
    return (
        lambda: softmax(q / q.sum()),
        lambda: attnpool.attention_pooling(
            np.eye(4), query=q, normalize_query=True, epsilon=1e-12, scale=1.0, return_weights=True
        )[1],
    )


@POOLING.wrong("S1-3b", was="0.417430 0.582570", now="0.880797 0.119203")
def _(attnpool):
    """The "layer norm" divides by the sum of the vector. If the sum is negative, all signs change: (-1, -2) becomes
    (1/3, 2/3), where layer normalization gives (1, -1).
    """
    q = np.array([-1.0, -2.0])
    return (
        lambda: softmax(q / q.sum()),
        lambda: attnpool.attention_pooling(
            np.eye(2), query=q, normalize_query=True, epsilon=1e-12, scale=1.0, return_weights=True
        )[1],
    )


@POOLING.wrong("S1-4", was="-997.000000", now="2")
def _(attnpool):
    """Without weights from the caller, `normal_pooling` draws them at random and divides them by their sum, which may
    be small: (1, -1, 0.001) becomes (1000, -1000, 1). attnpool's default weights are equal.
    """
    x, w = np.array([[1.0], [2.0], [3.0]]), np.array([1.0, -1.0, 0.001])
    return (
        lambda: fixed_pooling(x[None], (w / w.sum())[None]),
        lambda: attnpool.weighted_pooling(x),
    )


@POOLING.wrong("S1-5", was="0", now="1")
def _(attnpool):
    """`attention_pooling` ignores its argument `weight`. The numbers are the difference of two results with different
    weights, and for the notebook with the same random query and kernels.
    """
    x, w = np.array([[1.0], [2.0], [3.0]]), np.array([0.0, 0.0, 1.0])
    return (
        lambda: (
            learned_pooling(x[None], None, w, np.random.default_rng(0))
            - learned_pooling(x[None], None, None, np.random.default_rng(0))
        ),
        lambda: attnpool.weighted_pooling(x, w) - attnpool.weighted_pooling(x),
    )


@POOLING.wrong("S1-6", was="0", now="1")
def _(attnpool):
    """Query and kernels are drawn from the global generator at every call, so two equal calls give different results.
    The numbers say whether two results are equal (1) or not (0).
    """
    x, random = np.array([[1.0, 0.0], [2.0, 1.0]]), np.random.default_rng(0)
    return (
        lambda: np.array_equal(learned_pooling(x[None], random=random), learned_pooling(x[None], random=random)),
        lambda: np.array_equal(attnpool.attention_pooling(x), attnpool.attention_pooling(x)),
    )


@POOLING.wrong("S1-7a", was="2.575", now="0")
def _(attnpool):
    """`attention_pooling` adds -10000 to scores of padding (if the error of S1-1 is corrected). In a fully masked row
    this lowers all scores equally, so padding is averaged by an unmasked softmax.
    """
    x, mask = np.array([[1.0], [2.0], [3.0]]), np.zeros(3, bool)
    return (
        lambda: mask_by_sum(x[:, 0], mask, -10000) @ x,
        lambda: attnpool.attention_pooling(x, mask, np.ones(1)),
    )


@POOLING.wrong("S1-7b", was="0", now="-20000")
def _(attnpool):
    """`attention_pooling` adds -10000 to scores of padding (if the error of S1-1 is corrected). A real score that
    is lower than a score of padding by more than 10000 is then still lower.
    """
    x, mask = np.array([[-20000.0], [0.0]]), np.array([True, False])
    return (
        lambda: mask_by_sum(x[:, 0], mask, -10000) @ x,
        lambda: attnpool.attention_pooling(x, mask, np.ones(1)),
    )


@POOLING.wrong("S1-8a", was="2", now="1 2")
def _(attnpool):
    """`normal_pooling` calls `squeeze()` without an axis, which also removes the batch axis of a batch of 1. The
    numbers are the result's shapes.
    """
    x = np.ones((1, 3, 2))
    return (
        lambda: fixed_pooling(x, np.ones((1, 3))).shape,
        lambda: attnpool.weighted_pooling(x, np.ones(3)).shape,
    )


@POOLING.wrong("S1-8b", was="2", now="2 1")
def _(attnpool):
    """`normal_pooling` calls `squeeze()` without an axis, which also removes a feature axis of width 1. The numbers are
    the result's shapes.
    """
    x = np.ones((2, 3, 1))
    return (
        lambda: fixed_pooling(x, np.ones((1, 3))).shape,
        lambda: attnpool.weighted_pooling(x, np.ones(3)).shape,
    )


@POOLING.wrong("S1-8c", was="", now="1 1")
def _(attnpool):
    """`normal_pooling` calls `squeeze()` without an axis, which removes both a batch axis and a feature axis of size 1.
    The numbers are the result's shapes; theirs has no axis.
    """
    x = np.ones((1, 3, 1))
    return (
        lambda: fixed_pooling(x, np.ones((1, 3))).shape,
        lambda: attnpool.weighted_pooling(x, np.ones(3)).shape,
    )


@POOLING.wrong("S1-9a", was="6", now="2")
def _(attnpool):
    """`normal_pooling` does not divide the caller's weights by their sum: three weights of 1 give 3 times the mean."""
    x = np.array([[1.0], [2.0], [3.0]])
    return (
        lambda: fixed_pooling(x[None], np.ones((1, 3))),
        lambda: attnpool.weighted_pooling(x, np.ones(3)),
    )


@POOLING.error("S1-9b", was="ValueError", now="2", raises=ValueError)
def _(attnpool):
    """The notebook's text says that weights have the shape [S, 1] (S tokens). With this shape the code's matrix product
    fails.
    """
    x, w = np.array([[[1.0], [2.0], [3.0]]]), np.ones((3, 1))
    return (
        lambda: fixed_pooling(x, w),
        lambda: attnpool.weighted_pooling(x, w[:, 0]),
    )


@POOLING.wrong("S1-9c", was="2 3 2", refuses="`weights`")
def _(attnpool):
    """If the examples have one token, `normal_pooling` silently returns 3 results for each example from weights of the
    shape [3, 1]. The numbers are the result's shape.
    """
    x, w = np.ones((2, 1, 2)), np.ones((3, 1))
    return (
        lambda: fixed_pooling(x, w).shape,
        lambda: attnpool.weighted_pooling(x, w),
    )


@POOLING.error("S1-10", was="AssertionError", now="2 2", raises=AssertionError)
def _(attnpool):
    """The notebook's softmax accepts only arrays of two axes, and its `attention_pooling` only arrays of three."""
    x = np.array([[[[1.0], [3.0]]], [[[2.0], [2.0]]]])
    return (
        lambda: softmax_with_epsilon(x[..., 0]),
        lambda: attnpool.attention_pooling(x, query=np.zeros(1)),
    )


@POOLING.wrong("S1-11", was="8", now="4")
def _(attnpool):
    """float32 input becomes float64, because the random weights are float64. The numbers are bytes per element of the
    result.
    """
    x = np.ones((1, 2, 3), np.float32)
    return (
        lambda: learned_pooling(x, random=np.random.default_rng(0)).dtype.itemsize,
        lambda: attnpool.attention_pooling(x).dtype.itemsize,
    )
