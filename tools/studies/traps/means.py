"""Mistakes in means, maxima and windows: PyG, GeM, AutoPool, SimPool."""

import numpy as np
from bugs.table import Section

from traps.sources import (
    auto_pool,
    lp_pool,
    power_mean_of_cirtorch,
    power_mean_of_pyg,
    simpool_power,
    std_of_pyg,
    variance_of_pyg,
    windows_with_padding,
)

PYG = Section(
    "PyG's aggregations",
    "PyTorch Geometric (`torch_geometric` 2.8.1), in `nn/aggr/basic.py` unless another file is named.",
)


@PYG.wrong("P-1a", was="4.641589", now="10", place="PowerMeanAggregation, line 291")
def _(attnpool):
    """With exponent p > 0 (except a fixed p = 1), the mean of the powers is by default clamped to [1e-4, 100] before the
    root, so no result exceeds 100^(1/p).
    """
    x = np.array([[10.0], [10.0]])
    return (
        lambda: power_mean_of_pyg(x, 3),
        lambda: attnpool.power_mean_pooling(x, p=3),
    )


@PYG.wrong("P-1b", was="0.046416", now="0.010000", place="PowerMeanAggregation, line 291")
def _(attnpool):
    """Means of powers below 1e-4 are clamped to 1e-4 before the root, so small results are too large."""
    x = np.array([[0.01], [0.01]])
    return (
        lambda: power_mean_of_pyg(x, 3),
        lambda: attnpool.power_mean_pooling(x, p=3),
    )


@PYG.wrong("P-1c", was="1.50005 1", now="1.5000005 1.5000005", place="PowerMeanAggregation, line 285")
def _(attnpool):
    """With p = 1, tokens and mean are clamped to [1e-4, 100] only if p is a learned parameter. The numbers are the
    results with a learned p and with a fixed one. attnpool raises tokens to at least 1e-6 in both.
    """
    x = np.array([[-1.0], [3.0]])
    return (
        lambda: [power_mean_of_pyg(x, 1, learn) for learn in (True, False)],
        lambda: [attnpool.power_mean_pooling(x, p=1), attnpool.power_mean_pooling(x, p=1.0)],
    )


@PYG.error("P-1d", was="RuntimeError", now="10", place="PowerMeanAggregation, `clamp_min`, `clamp_max`")
def _(attnpool):
    """The docstring says that `clamp_min=None` and `clamp_max=None` mean no bound. If both are None, PyTorch's `clamp`
    raises an error.
    """
    x = np.array([[10.0], [10.0]])
    return (
        None,
        lambda: attnpool.power_mean_pooling(x, p=3, epsilon=0.0),
    )


@PYG.wrong("P-1e", was="0.046416", now="0", place="PowerMeanAggregation, line 291")
def _(attnpool):
    """The mean of the powers of an empty graph is 0. It is clamped to 1e-4, so the result is not 0."""
    x = np.zeros((0, 1))
    return (
        lambda: power_mean_of_pyg(x, 3),
        lambda: attnpool.power_mean_pooling(x, p=3),
    )


@PYG.wrong("P-2a", was="0", now="0.041667", place="VarAggregation, line 111")
def _(attnpool):
    """The variance is computed as E[x^2] - mean^2. In float32 this loses all digits here."""
    x = np.float32([[4096], [4096.25], [4096.5]])
    return (
        lambda: variance_of_pyg(x),
        lambda: np.square(attnpool.std_pooling(x)),
    )


@PYG.wrong("P-2b", was="0", now="0.003000", place="StdAggregation, line 137")
def _(attnpool):
    """A standard deviation of at most sqrt(1e-5) is returned as 0."""
    x = np.array([[0.0], [0.006]])
    return (
        lambda: std_of_pyg(x),
        lambda: attnpool.std_pooling(x),
    )


@PYG.error("P-23", was="IndexError", now="0 2", place="QuantileAggregation, MedianAggregation `quantile.py`")
def _(attnpool):
    """If the first graph is empty, the index of its median is -1, which is out of range."""
    x, mask = np.array([[[9.0], [9.0]], [[1.0], [3.0]]]), np.array([[False, False], [True, True]])
    return (
        None,
        lambda: attnpool.quantile_pooling(x, mask, 0.5),
    )


POWERS = Section(
    "Powers and exponentials", "GeM, SimPool and AutoPool in their authors' code, and averages over windows."
)


@POWERS.wrong("P-8", was="1.414214 11.045362", now="1.414214 1.414214", place="billpsomas/simpool `sp.py:74`")
def _(attnpool):
    """SimPool subtracts the minimum of the whole batch before its power, so the other examples of the batch change a
    result. The numbers are the results for the same example in a batch of 1, and in a batch with a second example of
    -9. timm's version subtracts the minimum of each channel.
    """
    x, alone = np.array([[[1.0], [3.0]], [[-9.0], [-9.0]]]), slice(1)
    return (
        lambda: [simpool_power(part, np.full((len(part), 2), 0.5), 2.0)[0] for part in (x[alone], x)],
        lambda: [
            attnpool.power_mean_pooling(part - attnpool.min_pooling(part)[:, None], p=2.0, epsilon=0.0)[0]
            for part in (x[alone], x)
        ],
    )


@POWERS.wrong("P-14a", was="inf", now="50", place="cnnimageretrieval-pytorch `functional.py`")
def _(attnpool):
    """GeM (power mean with p = 3) computes powers in the dtype of the features. In float16, the third power of 41 or
    more overflows.
    """
    x = np.float16([[50], [50]])
    return (
        lambda: power_mean_of_cirtorch(x, 3),
        lambda: attnpool.power_mean_pooling(x, p=3),
    )


@POWERS.wrong("P-14b", was="inf", now="7.0000e12", place="cnnimageretrieval-pytorch `functional.py`")
def _(attnpool):
    """GeM (power mean with p = 3) computes powers in the dtype of the features. In float32, the third power of 7e12 or
    more overflows.
    """
    x = np.float32([[7e12], [7e12]])
    return (
        lambda: power_mean_of_cirtorch(x, 3),
        lambda: attnpool.power_mean_pooling(x, p=3),
    )


@POWERS.wrong("P-14c", was="3.301927", now="2.289428", place="cnnimageretrieval-pytorch `functional.py:23`")
def _(attnpool):
    """A comment offers PyTorch's `lp_pool2d` as an alternative for GeM (power mean). But `lp_pool2d` computes the root
    of a sum, not of a mean.
    """
    x = np.array([[1.0], [2.0], [3.0]])
    return (
        lambda: lp_pool(x, 3.0),
        lambda: attnpool.power_mean_pooling(x, p=3.0),
    )


@POWERS.wrong("P-14d", was="nan", now="0.000001", place="PyTorch `torch.nn.functional.lp_pool2d`")
def _(attnpool):
    """In place of GeM (power mean), the result of `lp_pool2d` is NaN if the powers sum to less than 0. GeM raises tokens
    to at least 1e-6 first, and so does the comment of P-14c.
    """
    x = np.array([[-1.0], [-2.0]])
    return (
        lambda: lp_pool(x, 3.0),
        lambda: attnpool.power_mean_pooling(x, p=3.0),
    )


@POWERS.wrong("P-15", was="2.761594 3.761594", now="1.731059 3.731059", place="marl/autopool `keras.py:17`")
def _(attnpool):
    """AutoPool's default axis is 0, which is the batch in Keras. It declares support for masks, but ignores them."""
    x = np.array([[[1.0], [2.0]], [[3.0], [4.0]]])
    return (
        lambda: auto_pool(x, 1.0),
        lambda: attnpool.softmax_pooling(x, None, 1.0),
    )


@POWERS.wrong("P-20", was="0.5 2.5", now="1 2.5", place="`torch.nn.functional.avg_pool1d`, `flax.linen.avg_pool`")
def _(attnpool):
    """The average of a window at an end also counts the zeros with which the array is padded there: windows of 2 with
    stride 2 and padding 1 here. Both functions do this by default if they are asked for padding; without padding they
    are right.
    """
    x, windows = np.array([[1.0], [2.0], [3.0]]), np.array([[True, False, False], [False, True, True]])
    return (
        lambda: windows_with_padding(x[:, 0], 2),
        lambda: attnpool.attend(np.zeros((2, 3)), x, windows),
    )
