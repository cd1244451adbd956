"""Exact arithmetic on lists of fractions."""

from fractions import Fraction


def dot(a, b):
    """Returns the sum of the products of two lists."""
    return sum((p * q for p, q in zip(a, b, strict=True)), Fraction(0))
