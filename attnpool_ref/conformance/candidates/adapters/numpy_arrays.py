"""Adapter of NumPy arrays, and base class of all adapters."""

import contextlib
import importlib.util

import numpy as np


class Untraceable(Exception):
    """Exception for an implementation that its framework cannot differentiate at all."""


class Constant(Untraceable):
    """Exception for a call of which no result depends on the arguments, as the framework sees it."""


def bfloat16():
    """Returns NumPy's bfloat16 dtype from ml_dtypes, or None where that is not installed."""
    if importlib.util.find_spec("ml_dtypes") is None:
        return None
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


def numpy_dtype(name):
    """Returns the NumPy dtype of this name; None for bfloat16 without ml_dtypes."""
    return bfloat16() if name == "bfloat16" else np.dtype(name)


class NumpyArrays:
    """Adapter of NumPy arrays, which have no gradients; base class of the other adapters.

    Dtypes are given by name, such as "float32".
    """

    name = "numpy"
    gradient = None
    """Method that returns gradients, with the arguments of ``JaxArrays.gradient``; None if the family has none."""

    second = None
    """Method that returns Hessian-vector products; None if second derivatives are not judged."""

    refusal = None
    """Method that returns the error of forward mode around a compiled function; None if forward mode is not judged."""

    promotes = True
    """Whether one operation may have arrays of several dtypes."""

    def device(self):
        """Returns the name of the device on which the implementation runs."""
        return "cpu (NumPy)"

    def versions(self):
        """Returns the versions of the packages that affect numerical results."""
        return {"numpy": np.__version__}

    def reduced_products(self):
        """Returns whether products of narrow dtypes (float16, bfloat16) keep fewer bits than float32."""
        return False

    def exact_weights(self):
        """Returns whether calls that must agree, such as with and without weights, must do so bit for bit.

        Otherwise they must agree up to rounding.
        """
        return True

    def supports(self, dtype):
        """Returns whether the family has arrays of this dtype."""
        return numpy_dtype(dtype) is not None

    def context(self, dtype):
        """Returns a context in which arrays of this dtype work."""
        return contextlib.nullcontext()

    def forget(self):
        """Clears caches such as compiled functions; it is called while no implementation runs."""

    def differentiable(self, held):
        """Returns those of the arrays ``held``, arguments that a module holds, whose gradients :attr:`gradient` returns.

        They are then passed to it as ``held``.
        """
        return {}

    def array(self, value, dtype):
        """Returns a NumPy array as a new array of the family: floats in ``dtype``, booleans and integers unchanged."""
        with np.errstate(over="ignore"):  # 1e30 becomes inf in float16, as it should
            return value.astype(numpy_dtype(dtype)) if value.dtype.kind == "f" else value.copy()

    def strided(self, value, dtype):
        """Returns what :meth:`array` returns, with reversed axes and gaps in memory; None without such arrays."""
        array = self.array(value, dtype)
        if not isinstance(array, (np.ndarray, np.generic)):
            return None
        memory = np.zeros((*array.T.shape, 2), array.dtype)
        memory[..., 0] = array.T
        return memory[..., 0].T

    def read(self, value):
        """Returns an array of the family as a NumPy array."""
        return np.asarray(value)

    def parts(self, result):
        """Returns the arrays of a result as a flat list; the result may be an array, or nested tuples and lists."""
        if isinstance(result, (tuple, list)):
            return [leaf for part in result for leaf in self.parts(part)]
        return [result]

    def imports(self, dtype):
        """Returns the lines that the printed code of a failing case needs before it makes an array."""
        return []

    def code(self, name, dtype):
        """Returns code that makes an array of the family from the NumPy array called ``name``."""
        return name
