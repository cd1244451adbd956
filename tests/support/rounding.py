"""How far results may be from numbers that are known: derived here, written in no test."""

import numpy as np


def printed(decimals):
    """Half a unit of the last printed place."""
    return 0.5 * 10.0**-decimals


def rounded(expected, terms, dtype=None):
    """What rounding adds: as many roundings of the computing dtype as there are terms, of the largest number."""
    expected = [np.asarray(part) for part in (expected if isinstance(expected, (list, tuple)) else [expected])]
    name = dtype or "float32"
    epsilon = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}[name]
    return terms * epsilon * max(float(np.max(np.abs(part), initial=0)) for part in expected)
