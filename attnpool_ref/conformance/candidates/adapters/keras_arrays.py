"""Adapter for Keras layers and functions of ``keras.ops``, on Keras' current backend."""

import importlib

from attnpool_ref.conformance.candidates import adapters
from attnpool_ref.conformance.candidates.candidate import ARRAYS


class KerasArrays:
    """Adapter of the arrays of Keras' backend: PyTorch, JAX, TensorFlow, or else NumPy, by the adapter of these."""

    name = "keras"

    def __init__(self):
        self._keras = importlib.import_module("keras")
        backend = self._keras.backend.backend()
        self._arrays = adapters.family(backend if backend in ARRAYS else "numpy")

    def __getattr__(self, name):
        if name.startswith("_"):  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self._arrays, name)

    def device(self):
        return f"{self._arrays.device()}, Keras on {self._keras.backend.backend()}"

    def versions(self):
        return self._arrays.versions() | {"keras": self._keras.__version__}

    def computes_in(self, target):
        """Returns the dtype of a layer's policy, to which the layer casts its data unless it has ``autocast=False``."""
        return {target.compute_dtype} if getattr(target, "autocast", False) else set()

    def imports(self, dtype):
        return ["import keras", *self._arrays.imports(dtype)]

    def differentiable(self, held):
        """Returns no array: gradients of variables that a layer holds are not judged."""
        return {}
