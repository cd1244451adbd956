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

import importlib
import inspect
import sys
import types
from typing import Any

import numpy as np

from attnpool_ref.conformance.candidates.adapters.numpy_arrays import NumpyArrays, Untraceable
from attnpool_ref.conformance.candidates.candidate import ARRAYS

__all__ = ["FAMILIES", "NumpyArrays", "Untraceable", "family", "family_of", "find"]

FAMILIES = ARRAYS


def family(name):
    """Returns the adapter of an array family, by name; imports PyTorch or Keras, but not yet JAX or TensorFlow.

    Raises:
      ValueError: no array family has this name.
      ModuleNotFoundError: PyTorch or Keras is not installed.
    """
    if name not in FAMILIES:
        raise ValueError(f"no arrays are called {name!r}, needs one of {', '.join(FAMILIES)}")
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
    there = [name for name in FAMILIES if name == "numpy" or name in sys.modules]
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
