"""Bound on the difference that rounding causes between equal values."""

import math


def roundings(terms):
    """Returns the number of roundings by which two equal dot products of ``terms`` terms may differ.

    The difference is relative to the product of the norms. Both packages treat values that differ by no more as equal,
    each with the epsilon of its computing dtype: the first of equal cosines, equal largest products, a residual of 0.
    Rounding errors add up like a random walk (Higham and Mary 2019, theorem 2.4): twice the root of their number, and
    a few for the norms.
    """
    return 4 + 2 * math.sqrt(terms)
