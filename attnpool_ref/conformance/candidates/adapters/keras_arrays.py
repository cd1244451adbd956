"""Adapter for Keras layers and functions of ``keras.ops``, on Keras' current backend."""

import importlib

from attnpool_ref.conformance.candidates.adapters.numpy_arrays import NumpyArrays


class KerasArrays(NumpyArrays):
    """Adapter of the arrays of Keras' backend: PyTorch, JAX, TensorFlow, or else NumPy."""

    name = "keras"

    def __init__(self):
        self._keras = importlib.import_module("keras")
        backend = self._keras.backend.backend()
        if backend == "torch":
            from attnpool_ref.conformance.candidates.adapters.torch_arrays import TorchArrays

            self._arrays = TorchArrays()
        elif backend == "jax":
            from attnpool_ref.conformance.candidates.adapters.jax_arrays import JaxArrays

            self._arrays = JaxArrays()
        elif backend == "tensorflow":
            from attnpool_ref.conformance.candidates.adapters.tensorflow_arrays import TensorflowArrays

            self._arrays = TensorflowArrays()
        else:
            self._arrays = NumpyArrays()
        self.gradient, self.promotes = self._arrays.gradient, self._arrays.promotes
        self.second, self.refusal = self._arrays.second, self._arrays.refusal

    def device(self):
        """Returns the name of the device on which the backend runs."""
        return f"{self._arrays.device()}, Keras on {self._keras.backend.backend()}"

    def versions(self):
        """Returns the versions of the packages that affect numerical results."""
        return self._arrays.versions() | {"keras": self._keras.__version__}

    def reduced_products(self):
        """Returns whether products of narrow dtypes keep fewer bits than float32 on the backend."""
        return self._arrays.reduced_products()

    def exact_weights(self):
        """Returns whether calls that must agree, such as with and without weights, must do so bit for bit."""
        return self._arrays.exact_weights()

    def context(self, dtype):
        """Returns the context in which the backend's arrays of this dtype work."""
        return self._arrays.context(dtype)

    def array(self, value, dtype):
        """Returns a NumPy array as a tensor of the backend: floats in ``dtype``, booleans and integers unchanged."""
        return self._arrays.array(value, dtype)

    def strided(self, value, dtype):
        """Returns such a tensor that is not contiguous in memory; None if the backend has none."""
        return self._arrays.strided(value, dtype)

    def read(self, value):
        """Returns a tensor of the backend as a NumPy array."""
        return self._arrays.read(value)

    def imports(self, dtype):
        """Returns the lines that the printed code of a failing case needs before it makes a tensor."""
        return ["import keras", *self._arrays.imports(dtype)]

    def code(self, name, dtype):
        """Returns code that makes a tensor of the backend from the NumPy array called ``name``."""
        return self._arrays.code(name, dtype)
