"""What the kit needs to know of an array family: how to make its arrays, call, differentiate and read back.

One class per family. What a family cannot do (a gradient, a dtype) is None, which the report shows as n/a.
"""

import contextlib
import functools
import importlib.util

import numpy as np


def bfloat16():
    """NumPy's bfloat16 dtype from ml_dtypes, or None where that is not installed."""
    if importlib.util.find_spec("ml_dtypes") is None:
        return None
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


def numpy_dtype(name):
    """The NumPy dtype of this name, or None."""
    return bfloat16() if name == "bfloat16" else np.dtype(name)


class NumpyArrays:
    """Functions of NumPy arrays; there are no gradients."""

    name = "numpy"
    gradient = None

    def device(self):
        """What computes."""
        return "cpu (NumPy)"

    def versions(self):
        """Versions that matter for the numbers."""
        return {"numpy": np.__version__}

    def reduced_products(self):
        """Whether narrow products keep fewer bits than float32."""
        return False

    def exact_weights(self):
        """Whether asking for the weights may change no bit."""
        return True

    def supports(self, dtype):
        """Whether arrays of this dtype exist."""
        return numpy_dtype(dtype) is not None

    def context(self, dtype):
        """A context in which arrays of this dtype work."""
        del dtype
        return contextlib.nullcontext()

    def array(self, value, dtype):
        """A float array of the family; booleans and integers keep their dtype."""
        with np.errstate(over="ignore"):  # 1e30 is inf in float16, and that is what it should be
            return value.astype(numpy_dtype(dtype)) if value.dtype.kind == "f" else value.copy()

    def read(self, value):
        """An array of the family as a NumPy array."""
        return np.asarray(value)


class JaxArrays(NumpyArrays):
    """Functions of JAX arrays, on the device that JAX finds."""

    name = "jax"

    def device(self):
        """What computes."""
        import jax

        first = jax.devices()[0]
        return f"{first.platform} ({first.device_kind})"

    def versions(self):
        """Versions that matter for the numbers."""
        import importlib.metadata as metadata

        found = {"numpy": np.__version__}
        for package in ("jax", "jaxlib", "flax"):
            with contextlib.suppress(metadata.PackageNotFoundError):
                found[package] = metadata.version(package)
        return found

    def reduced_products(self):
        """Whether narrow products keep fewer bits than float32: on GPUs and TPUs they take one pass."""
        import jax

        return jax.devices()[0].platform != "cpu"

    def exact_weights(self):
        """Whether asking for the weights may change no bit: promised on the CPU alone."""
        import jax

        return jax.devices()[0].platform == "cpu"

    def context(self, dtype):
        """x64 for float64, and for nothing else."""
        import jax

        return jax.enable_x64(True) if dtype == "float64" else contextlib.nullcontext()

    def array(self, value, dtype):
        """A JAX array."""
        import jax

        return jax.device_put(super().array(value, dtype))

    def read(self, value):
        """A JAX array as a NumPy array."""
        return np.asarray(value)

    def gradient(self, function, arrays, fixed, cotangents):
        """Gradients of the sum of outputs times cotangents, for each of ``arrays``, as a dict of NumPy arrays.

        Args:
          function: takes one dict of arrays and returns a list; with equal shapes it compiles once.
          arrays: what is differentiated.
          fixed: the other arguments.
          cotangents: one array for each output.

        Raises:
          NotImplementedError: the function cannot be differentiated by JAX at all.
        """
        import jax

        try:
            gradients = _vjp(function)(arrays, fixed, cotangents)
        except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError) as error:
            raise NotImplementedError(f"JAX cannot trace it: {type(error).__name__}") from error
        return {key: np.asarray(value) for key, value in gradients.items()}


@functools.lru_cache(maxsize=256)
def _vjp(function):
    import jax

    @jax.jit
    def gradients(arrays, fixed, cotangents):
        _, pull = jax.vjp(lambda differentiated: function(differentiated | fixed), arrays)
        return pull(cotangents)[0]

    return gradients


def adapter_for(function, arguments):
    """The adapter of a candidate: that of the arrays it returns for NumPy arguments.

    Args:
      function: the candidate.
      arguments: (args, kwargs) of a small case, NumPy arrays.
    """
    import sys

    if "jax" in sys.modules:
        import jax

        args, kwargs = arguments
        try:
            result = function(*args, **kwargs)
        except Exception:  # not a judgement: a function that needs JAX arrays may refuse NumPy's in any way
            return JaxArrays()
        while isinstance(result, (tuple, list)) and result:
            result = result[0]
        if isinstance(result, jax.Array):
            return JaxArrays()
    return NumpyArrays()
