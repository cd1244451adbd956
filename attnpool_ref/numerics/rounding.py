"""Rounding bounds for ties and zero residuals, and powers of two that scale exactly and prevent overflow."""

import math

import numpy as np

EPSILON = float(np.finfo(np.float64).eps)

LARGE, SMALLER = 2.0**900, 2.0**200
"""If a value is above ``LARGE``, all are divided by ``SMALLER``, so that sums of their differences do not overflow."""


def roundings(terms):
    """Returns the number of roundings by which two equal dot products of ``terms`` terms may differ.

    One rounding is the epsilon of the computing dtype times the product of the vectors' norms. Both packages treat
    values that differ by no more than this number of roundings as equal: among cosines the first is chosen, products
    that tie for the largest share its gradient, and a residual becomes 0. Rounding errors add up like a random walk
    (Higham and Mary 2019, theorem 2.4), so the number is twice the root of ``terms``, and a few more for the norms.
    """
    return 4 + 2 * math.sqrt(terms)


def within_rounding(terms):
    """Returns the relative difference up to which two float64 sums of ``terms`` products count as equal."""
    return roundings(terms) * EPSILON


def power_of_two(x):
    """Returns the largest power of two up to abs(x), but from 2**-1021 to 2**1021; 1 if x is 0 or not finite."""
    _, exponent = np.frexp(np.where(np.isfinite(x) & (x != 0), x, 1.0))
    return np.ldexp(1.0, np.clip(exponent - 1, -1021, 1021))
