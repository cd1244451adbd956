"""Allowed errors of attnpool's Pallas kernels in Pallas' interpreter, against the same sums computed in float64."""

import numpy as np

LIMITS = {"float32": 1e-5, "bfloat16": 4e-5, "float16": 1e-5}
"""By the tokens' dtype: allowed errors of sums, relative to the largest expected number."""

UNIT = {"float32": 1e-6, "bfloat16": 2.0**-8, "float16": 2.0**-11}
"""By the tokens' dtype: further error of gradients of the tokens, which are rounded to this dtype."""


def assert_near(got, want, limit):
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    assert np.isfinite(got).all()
    assert np.max(np.abs(got - want), initial=0) <= limit * max(np.max(np.abs(want), initial=0), 1e-3)
