"""Adapter of NumPy arrays, and base class of all adapters."""

import contextlib
import importlib.util

import numpy as np


class Untraceable(Exception):
    """The framework cannot differentiate the implementation at all."""


def bfloat16():
    """Returns NumPy's bfloat16 dtype from ml_dtypes, or None where that is not installed."""
    if importlib.util.find_spec("ml_dtypes") is None:
        return None
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


def numpy_dtype(name):
    """Returns the NumPy dtype of this name, or None."""
    return bfloat16() if name == "bfloat16" else np.dtype(name)


class NumpyArrays:
    """Functions of NumPy arrays; there are no gradients."""

    name = "numpy"
    gradient = None
    second = None
    """Products of the Hessian with a direction; None where nothing is differentiated twice."""

    refusal = None
    """Function that returns the error of forward mode around a program; None if forward mode is not judged."""

    promotes = True
    """Whether arrays of several dtypes may meet in an operation."""

    def device(self):
        """Returns the name of the device that computes."""
        return "cpu (NumPy)"

    def versions(self):
        """Returns versions that matter for the numbers."""
        return {"numpy": np.__version__}

    def reduced_products(self):
        """Returns whether narrow products keep fewer bits than float32."""
        return False

    def exact_weights(self):
        """Returns whether results with and without weights must be equal, bit for bit."""
        return True

    def supports(self, dtype):
        """Returns whether arrays of this dtype exist."""
        return numpy_dtype(dtype) is not None

    def context(self, dtype):
        """Returns a context in which arrays of this dtype work."""
        del dtype
        return contextlib.nullcontext()

    def forget(self):
        """Clears what was cached for other calls of the same implementation; no call runs meanwhile."""

    def array(self, value, dtype):
        """Returns a float array of the family; booleans and integers keep their dtype."""
        with np.errstate(over="ignore"):  # 1e30 is inf in float16, and that is what it should be
            return value.astype(numpy_dtype(dtype)) if value.dtype.kind == "f" else value.copy()

    def read(self, value):
        """Returns an array of the family as a NumPy array."""
        return np.asarray(value)

    def parts(self, result):
        """Returns the arrays of a result, in order: tuples and lists of arrays, nested ones too."""
        if isinstance(result, (tuple, list)):
            return [leaf for part in result for leaf in self.parts(part)]
        return [result]

    def imports(self, dtype):
        """Returns lines that pasted code needs before it makes an array."""
        del dtype
        return []

    def code(self, name, dtype):
        """Returns an expression of the family's array from the NumPy array called ``name``."""
        del dtype
        return name
