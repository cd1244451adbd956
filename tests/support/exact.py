"""Exact arithmetic on lists of fractions."""

from fractions import Fraction


def dot(a, b):
    """The sum of the products."""
    return sum((p * q for p, q in zip(a, b, strict=True)), Fraction(0))
