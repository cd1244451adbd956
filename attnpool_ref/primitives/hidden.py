"""Parts of hidden layers: the sigmoid, gates, and vectors side by side."""

import numpy as np

from attnpool_ref.primitives.exchange import primitive


@primitive
def sigmoid(x):
    """Computes 1 / (1 + exp(-x))."""
    return np.exp(-np.logaddexp(0, -x))


@primitive
def tanh(x):
    """Computes the hyperbolic tangent."""
    return np.tanh(x)


@primitive
def gated(units, gate):
    """Multiplies hidden units by the sigmoid of their gate."""
    return units * sigmoid(gate)


@primitive
def joined(*parts):
    """Concatenates vectors [..., d] of several kinds, in the order of the definition: [..., d1 + d2 + ...]."""
    return np.concatenate(parts, -1)
