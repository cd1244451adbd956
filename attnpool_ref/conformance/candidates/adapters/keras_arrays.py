"""Adapter for Keras layers and functions of ``keras.ops``, on Keras' current backend."""

import importlib

from attnpool_ref.conformance.candidates import adapters


class KerasArrays:
    """Adapter of the arrays of Keras' backend: PyTorch, JAX, TensorFlow, or else NumPy, by the adapter of these."""

    name = "keras"

    def __init__(self):
        self._keras = importlib.import_module("keras")
        backend = self._keras.backend.backend()
        self._arrays = adapters.family(backend if backend in adapters.FAMILIES else "numpy")

    def __getattr__(self, name):
        if name.startswith("_"):  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self._arrays, name)

    def device(self):
        """Returns the name of the device on which the backend runs."""
        return f"{self._arrays.device()}, Keras on {self._keras.backend.backend()}"

    def versions(self):
        """Returns the versions of the packages that affect numerical results."""
        return self._arrays.versions() | {"keras": self._keras.__version__}

    def imports(self, dtype):
        """Returns the lines that the printed code of a failing case needs before it makes a tensor."""
        return ["import keras", *self._arrays.imports(dtype)]

    def differentiable(self, held):
        """Returns no array: gradients of variables that a layer holds are not judged."""
        return {}
