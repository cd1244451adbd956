"""Vectors of length 1, and vectors of mean 0 and variance 1."""

import numpy as np

from attnpool_ref.numerics.rounding import power_of_two
from attnpool_ref.primitives.exchange import primitive


@primitive
def unit_vector(x, axis=-1):
    """Divides vectors along an axis by their Euclidean norm; the zero vector stays 0."""
    scaled = x / power_of_two(np.max(np.abs(x), axis, keepdims=True, initial=0))  # squares of 1e-300 would underflow
    norm = np.sqrt(np.sum(scaled**2, axis, keepdims=True))
    return scaled / np.where(norm == 0, 1, norm)


@primitive
def cosines(x, y):
    """Returns the cosine of each pair of vectors [..., n, d] and [..., m, d]: [..., n, m]; 0 for a zero vector."""
    return unit_vector(x) @ np.swapaxes(unit_vector(y), -1, -2)


@primitive
def standardized(x, epsilon):
    """Shifts vectors [..., d] to mean 0, and divides them by the root of their variance plus ``epsilon``.

    They are divided by a unit first, so that squares and epsilon stay in range; equal numbers become exactly 0.
    """
    least = np.where(epsilon > 0, power_of_two(np.sqrt(np.maximum(epsilon, 0))), 0)
    unit = np.maximum(power_of_two(np.max(np.abs(x), -1, keepdims=True)), least)
    x = x / unit
    x = x - x[..., :1]
    centered = x - np.mean(x, -1, keepdims=True)
    deviation = np.sqrt(np.mean(centered**2, -1, keepdims=True) + epsilon / unit**2)
    return centered / np.where(deviation == 0, 1, deviation)
