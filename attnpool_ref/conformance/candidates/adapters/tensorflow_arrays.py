"""Adapter for functions of TensorFlow's eager tensors, also for Keras on TensorFlow."""

import importlib

import numpy as np

from attnpool_ref.conformance.candidates.adapters import Constant, NumpyArrays


def _tensorflow():
    return importlib.import_module("tensorflow")


class TensorflowArrays(NumpyArrays):
    """Adapter of eager tensors."""

    name = "tensorflow"
    promotes = False

    def device(self):
        tf = _tensorflow()
        return "gpu (TensorFlow)" if tf.config.list_physical_devices("GPU") else "cpu (TensorFlow)"

    def versions(self):
        tf = _tensorflow()
        return {"numpy": np.__version__, "tensorflow": tf.__version__}

    def is_reproducible(self):
        return self.device().startswith("cpu")

    def array(self, value, dtype):
        """Returns a NumPy array as a tensor: floats in ``dtype``, booleans and integers unchanged."""
        tf = _tensorflow()
        return tf.constant(super().array(value, dtype))

    def read(self, value):
        return value.numpy() if hasattr(value, "numpy") else super().read(value)

    def imports(self, dtype):
        return ["import tensorflow as tf"]

    def code(self, name, dtype):
        return f"tf.constant({name})"

    def gradient(self, function, arrays, fixed, cotangents):
        """Returns gradients of the sum of outputs times cotangents, for each of ``arrays``, as a dict of NumPy arrays.

        The arguments are those of ``JaxArrays.gradient``.

        Raises:
          Constant: TensorFlow returns no gradient for any argument.
        """
        tf = _tensorflow()
        with tf.GradientTape() as tape:
            for value in arrays.values():
                tape.watch(value)
            outputs = function(arrays | fixed)
        found = tape.gradient(outputs, arrays, [tf.cast(c, o.dtype) for c, o in zip(cotangents, outputs, strict=True)])
        if all(gradient is None for gradient in found.values()):
            raise Constant("TensorFlow cannot differentiate it: no result remembers the inputs")
        return {
            key: np.zeros_like(self.read(arrays[key]))
            if gradient is None
            else self.read(tf.convert_to_tensor(gradient))
            for key, gradient in found.items()
        }
