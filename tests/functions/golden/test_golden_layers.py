"""Numbers for the layers that come from outside: 40 decimals by the standard library."""

from decimal import Decimal, localcontext

import chex
import numpy as np
from packages import with_golden_numbers
from rounding import rounded

import attnpool_ref


@with_golden_numbers
def test_layer_norm_of_four_numbers(package):
    """The mean of (1, 2, 3, 6) is 3 and its variance 3.5, with n in the denominator; an epsilon of 0.5 makes the root 2."""
    x, scale, bias = np.array([1.0, 2, 3, 6]), np.array([1.0, 2, 3, 4]), np.array([0.0, 1, 0, -1])
    dtype = "float64" if package is attnpool_ref else "float32"
    expected = np.array([-1, 0, 0, 5.0])  # (x - 3) / 2 * scale + bias
    actual = package.layer_norm(x, scale, bias, epsilon=0.5)
    chex.assert_trees_all_close(np.asarray(actual), expected, atol=rounded(expected, 8, dtype), rtol=0)
    with localcontext(prec=40):
        root = (Decimal(7) / 2 + Decimal("1e-5")).sqrt()
        expected = np.array([float((Decimal(n) - 3) / root) for n in (1, 2, 3, 6)])
    actual = package.layer_norm(x, epsilon=1e-5)
    chex.assert_trees_all_close(np.asarray(actual), expected, atol=rounded(expected, 8, dtype), rtol=0)
