"""Parameters of a small multi-head attention: two heads of width 2 on vectors of width 4."""

import numpy as np

from attnpool_ref.conformance.candidates.adapters import numpy_dtype

PARTS = ("query", "key", "value", "out")


def heads(dtype):
    """Returns kernels [4, 2, 2], an output kernel [2, 2, 4] and biases, in multiples of 1/8: exact in any dtype."""
    rng = np.random.default_rng(0)
    shapes = {f"{part}_kernel": (2, 2, 4) if part == "out" else (4, 2, 2) for part in PARTS}
    shapes |= {f"{part}_bias": (4,) if part == "out" else (2, 2) for part in PARTS}
    return {name: eighths(rng, shape).astype(numpy_dtype(dtype)) for name, shape in shapes.items()}


def eighths(rng, shape):
    """Returns normal numbers with standard deviation 1/2, rounded to multiples of 1/8."""
    return np.round(4 * rng.standard_normal(shape)) / 8


def as_linear(own):
    """Returns the parameters as linear layers have them, {part: (weight [4, 4], bias [4])}, in float64."""
    wide = {name: value.astype(np.float64) for name, value in own.items()}
    kernels = {part: wide[f"{part}_kernel"].reshape(4, 4).T for part in PARTS}
    return {part: (kernel, wide[f"{part}_bias"].reshape(4)) for part, kernel in kernels.items()}
