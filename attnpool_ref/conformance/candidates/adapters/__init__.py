"""Adapters for array families: they make arrays, differentiate functions of them, and read results back.

There is one class per family. For your own family, write a subclass of :class:`NumpyArrays` that makes an array and
reads it back. Here is one for a "framework" whose arrays are lists of lists and whose only dtype is float64:

>>> class Lists(NumpyArrays):
...     name = "lists"
...     def array(self, value, dtype):
...         return super().array(value, dtype).tolist()
...     def read(self, value):
...         return np.asarray(value, np.float64)
...     def parts(self, result):
...         return list(result) if isinstance(result, tuple) else [result]
...     def supports(self, dtype):
...         return dtype == "float64"
>>> import attnpool_ref
>>> from attnpool_ref import conformance
>>> def mean(x, mask=None):
...     return attnpool_ref.mean_pooling(np.asarray(x), None if mask is None else np.asarray(mask)).tolist()
>>> few = {"dtypes": ("float64",), "shapes": ("no batch",)}
>>> conformance.judge(mean, only=("mean_pooling",), arrays=Lists(), **few).verdict
'pass'
"""

import contextlib
import importlib
import importlib.util
import inspect
import sys
import types
from typing import Any

import numpy as np

from attnpool_ref.conformance.candidates.candidate import ARRAYS


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

    forward_mode = False
    """Whether forward mode is judged."""

    promotes = True
    """Whether one operation may have arrays of several dtypes."""

    in_process = True
    """Whether a call runs in the judge's process, where it could change its arguments or the state of random numbers."""

    prompt = "Python"
    """The kind of prompt at which the printed code of a failing case runs."""

    ids = np.int32
    """The dtype of segment ids."""

    def device(self):
        """Returns the name of the device on which the implementation runs."""
        return "cpu (NumPy)"

    def versions(self):
        """Returns the versions of the packages that affect numerical results."""
        return {"numpy": np.__version__}

    def reduced_products(self):
        """Returns whether products of narrow dtypes (float16, bfloat16) keep fewer bits than float32."""
        return False

    def is_reproducible(self):
        """Returns whether equal calls must agree bit for bit; otherwise they must agree up to rounding."""
        return True

    def supports(self, dtype):
        """Returns whether the family has arrays of this dtype."""
        return numpy_dtype(dtype) is not None

    def computes_in(self, target):
        """Returns the names of the dtypes to which the implementation casts its data; empty if it keeps theirs."""
        return set()

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

    def held_code(self, expression):
        """Returns code that makes a NumPy array of the expression of a parameter that a module holds."""
        return expression if self.name == "numpy" else f"np.asarray({expression})"


__all__ = ["NumpyArrays", "Untraceable", "family", "family_of", "find"]


def family(name):
    """Returns the adapter of an array family, by name; imports PyTorch or Keras, but not yet JAX or TensorFlow.

    Raises:
      ValueError: no array family has this name.
      ModuleNotFoundError: PyTorch or Keras is not installed.
    """
    if name not in ARRAYS:
        raise ValueError(f"no arrays are called {name!r}, needs one of {', '.join(ARRAYS)}")
    if name == "numpy":
        return NumpyArrays()
    module = importlib.import_module(f"{__name__}.{name}_arrays")
    return getattr(module, f"{name.capitalize()}Arrays")()


def family_of(target):
    """Returns the adapter for the type of a module or an array, or None for other types; imports no framework."""
    kinds = {
        "keras": ("keras", ("Layer", "KerasTensor", "Variable")),
        "torch": ("torch", ("nn.Module", "Tensor")),
        "jax": ("flax", ("nnx.Module", "linen.Module")),
        "tensorflow": ("tensorflow", ("Tensor", "Variable", "Module")),
    }
    for name, (package, classes) in kinds.items():
        module = sys.modules.get(package)
        if module is not None and isinstance(target, tuple(_classes(module, classes))):
            return family(name)
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(target, jax.Array):
        return family("jax")
    return NumpyArrays() if isinstance(target, (np.ndarray, np.generic)) else None


def _classes(module, names):
    for name in names:
        found = module
        for part in name.split("."):
            found = getattr(found, part, None)
        if isinstance(found, type):
            yield found


def find(target, attempt):
    """Returns the adapter of an implementation: by its type, or else by the arrays that it returns for a small case.

    NumPy's arrays are tried, then those of the frameworks that are imported already. PyTorch's come first if the
    function's module uses PyTorch and its body uses neither NumPy nor JAX, because methods that both libraries have
    would work for NumPy's arrays as well. If no call returns an array of a known type (or a Python number for NumPy's
    arrays), the adapter that is tried first is used.

    Args:
      target: the implementation.
      attempt: a function from an adapter to the implementation's first result on a small case; may raise anything.
    """
    known = family_of(target)
    if known is not None:
        return known
    there = [name for name in ARRAYS if name == "numpy" or name in sys.modules]
    families = sorted(there, key=lambda name: name != "torch") if _is_of_torch(target) else there
    for name in families:
        adapter = family(name)
        try:
            result = attempt(adapter)
        except Exception:  # not a failure: a function that needs other arrays may raise anything for these
            continue
        returned = family_of(result)
        if returned is not None:
            return adapter if returned.name in ("torch", "tensorflow") and adapter.name == "keras" else returned
        if isinstance(result, (int, float)) and name == "numpy":
            return adapter
    return family(families[0])


def _is_of_torch(target):
    """Returns whether a function's module uses PyTorch, and the function's body uses neither NumPy nor JAX."""
    while hasattr(target, "func"):  # a partial
        target = target.func
    function: Any = inspect.unwrap(getattr(target, "__func__", target))
    if not hasattr(function, "__code__"):
        function = type(function).__call__
    if not hasattr(function, "__code__"):
        return False
    held = function.__globals__
    named = {_package(held[name]) for name in _names_in(function.__code__) if name in held}
    return not named & {"numpy", "jax"} and "torch" in map(_package, list(held.values()))


def _names_in(code):
    """Returns the global names in a function's code object, and in those of the functions within it."""
    inner = [name for part in code.co_consts if isinstance(part, types.CodeType) for name in _names_in(part)]
    return [*code.co_names, *inner]


def _package(value):
    """Returns the name of the top-level package of an object; "" if it has no module."""
    name = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return name.partition(".")[0] if isinstance(name, str) else ""
