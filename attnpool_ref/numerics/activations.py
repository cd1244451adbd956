"""Activations of hidden layers."""

import math

import numpy as np

from attnpool_ref.primitives.hidden import tanh

_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def relu(x):
    """Computes max(x, 0); its derivative at 0 counts as 1/2, as in attnpool_flax."""
    return np.maximum(x, 0)


def gelu(x):
    """Multiplies x by the probability that a standard normal number is below it."""
    return x * _erfc(-x / math.sqrt(2)) / 2  # 1 + erf would lose digits far below 0


def gelu_tanh(x):
    """Computes the tanh approximation of :func:`gelu`, Flax's default, and PyTorch's ``approximate="tanh"``."""
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


def geglu(x):
    """Returns [..., f]: the first half of the last axis of [..., 2f], times the :func:`gelu` of the second half."""
    value, gate = np.split(x, 2, -1)
    return value * gelu(gate)


OF_SCORES = {"tanh": tanh, "relu": relu, "gelu": gelu, "identity": lambda x: x}
"""Activations of the hidden layer of scores, by name."""
