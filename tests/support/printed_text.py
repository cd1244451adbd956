"""Comparison of results with numbers that a page prints, each to half a unit of its last place."""

import numpy as np
from rounding import EPSILON, printed, rounded

TERMS = 64  # the most terms of a sum in tables of pages


def agree(text, result, dtype="float64"):
    """Returns whether a result, computed in ``dtype``, agrees with printed numbers; inf and NaN must be equal."""
    expected, _ = numbers(text)
    got = flat(result).astype(float)
    with np.errstate(invalid="ignore"):
        near = np.abs(got - expected) <= allowed(text, result, dtype)
        near |= (got == expected) | (np.isnan(got) & np.isnan(expected))
    return got.shape == expected.shape and bool(near.all())


def allowed(text, result, dtype="float64"):
    """Returns the difference that printing and rounding may cause."""
    expected, units = numbers(text)
    own = str(getattr(result, "dtype", ""))
    coarser = max(dtype, own, key=lambda name: EPSILON.get(name, 0))
    return units + rounded(np.where(np.isfinite(expected), expected, 0), TERMS, coarser)


def numbers(text):
    """Returns the printed numbers, and half a unit of the last place of each."""
    words = text.split()
    return np.array([float(word) for word in words]), np.array([half_a_unit(word) for word in words])


def half_a_unit(word):
    """Returns half a unit of the last place of a printed number; 0 for an integer."""
    mantissa, _, exponent = word.partition("e")
    decimals = len(mantissa.partition(".")[2]) - int(exponent or 0)
    return printed(decimals) if "." in word or exponent else 0.0


def flat(result):
    """Returns all numbers of an array, or of a list of arrays of one shape, as one axis."""
    if isinstance(result, list):
        result = np.stack([np.asarray(part) for part in result])
    return np.ravel(np.asarray(result))
