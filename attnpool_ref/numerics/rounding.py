"""Rounding bounds for ties and zero residuals, and powers of two that scale exactly and prevent overflow."""

import math

import numpy as np

EPSILON = float(np.finfo(np.float64).eps)

LARGE, SMALLER = 2.0**900, 2.0**200
"""Values above ``LARGE`` are divided by ``SMALLER``, and sums of their differences then do not overflow."""


def roundings(terms):
    """Returns the number of roundings by which two equal dot products of ``terms`` terms may differ.

    The difference is relative to the product of the norms. Both packages treat values that differ by no more as equal,
    each with the epsilon of its computing dtype: the first of equal cosines, equal largest products, a residual of 0.
    Rounding errors add up like a random walk (Higham and Mary 2019, theorem 2.4): twice the root of their number, and
    a few for the norms.
    """
    return 4 + 2 * math.sqrt(terms)


def within_rounding(terms):
    """Returns the relative difference up to which two sums of ``terms`` products count as equal."""
    return roundings(terms) * EPSILON


def power_of_two(x):
    """Returns the largest power of two that is not above the magnitude of x, by which division is exact; 1 for 0."""
    _, exponent = np.frexp(np.where(np.isfinite(x) & (x != 0), x, 1.0))
    return np.ldexp(1.0, np.clip(exponent - 1, -1021, 1021))
