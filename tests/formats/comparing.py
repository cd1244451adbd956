"""Equality to the bit: of arrays by name, and of heads; and to rounding."""

import numpy as np


def same_arrays(got, expected):
    """The same names, dtypes, shapes and bits; None is the same as None."""
    assert got.keys() == expected.keys()
    for name, array in expected.items():
        if array is None:
            assert got[name] is None, name
            continue
        assert got[name].dtype == array.dtype and got[name].shape == array.shape, name
        assert got[name].tobytes() == array.tobytes(), name


def same_heads(got, expected):
    """The same module, options, parameters and extras."""
    assert (got.module, got.options) == (expected.module, expected.options)
    same_arrays(got.parameters, expected.parameters)
    same_arrays(got.extras, expected.extras)


def within(got, expected, errors):
    """No element is further from the expected one than its error, which may be 0."""
    assert got.shape == expected.shape
    excess = np.abs(got - expected) - errors
    assert np.max(excess, initial=-np.inf) <= 0, (
        f"{np.max(excess)} beyond the tolerance at {np.unravel_index(np.argmax(excess), excess.shape)}"
    )
