"""Tolerances between results and known numbers. They are derived here, so that no test states its own."""

import chex
import numpy as np

import attnpool_ref

EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


def printed(decimals):
    """Returns half a unit of the last printed place."""
    return 0.5 * 10.0**-decimals


def rounded(expected, terms, dtype=None):
    """Returns the allowed error: one rounding of the computing dtype per term, relative to the largest number."""
    expected = [np.asarray(part) for part in (expected if isinstance(expected, (list, tuple)) else [expected])]
    return terms * EPSILON[dtype or "float32"] * max(float(np.max(np.abs(part), initial=0)) for part in expected)


def assert_printed(actual, expected, decimals=6, terms=16, dtype="float32"):
    """Asserts that an array has the printed numbers, up to printing and the rounding of ``terms`` terms."""
    expected = np.asarray(expected, float)
    chex.assert_shape(actual, expected.shape)
    allowed = printed(decimals) + rounded(expected, terms, dtype)
    chex.assert_trees_all_close(np.float64(actual), expected, atol=allowed, rtol=0)


def assert_exact(package, actual, expected, terms=16):
    """Asserts exact numbers (such as lists of fractions) up to rounding in the package's dtype for Python numbers."""
    assert_close(actual, np.array(expected).astype(float), terms, dtype=package_dtype(package))


def assert_close(actual, expected, terms=64, size=0, dtype="float32"):
    """Asserts that arrays have the expected shapes and numbers, up to the rounding of ``terms`` terms.

    ``actual`` is an array or a tuple of arrays. ``size`` is the magnitude of the terms, if they are larger than the
    result.
    """
    actual, expected = (tuple(map(np.float64, x if isinstance(x, tuple) else (x,))) for x in (actual, expected))
    chex.assert_trees_all_equal_shapes(actual, expected)
    allowed = rounded([*expected, size], terms, dtype)
    chex.assert_trees_all_close(actual, expected, atol=allowed, rtol=0)


def package_dtype(package):
    """Returns the dtype in which a package computes with Python numbers."""
    return "float64" if package is attnpool_ref else "float32"
