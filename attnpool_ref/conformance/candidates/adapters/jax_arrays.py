"""Adapter of JAX arrays: makes and reads them, and differentiates, for checks of functions and Flax modules."""

import contextlib
import functools
import gc

import numpy as np

from attnpool_ref.conformance.candidates.adapters import NumpyArrays, Untraceable


class JaxArrays(NumpyArrays):
    """Adapter of JAX arrays, on JAX's default device."""

    name = "jax"
    forward_mode = True

    def device(self):
        device = _default_device()
        return f"{device.platform} ({device.device_kind})"

    def versions(self):
        import importlib.metadata as metadata

        found = {"numpy": np.__version__}
        for package in ("jax", "jaxlib", "flax"):
            with contextlib.suppress(metadata.PackageNotFoundError):
                found[package] = metadata.version(package)
        return found

    def reduced_products(self):
        return _default_device().platform != "cpu"

    def is_reproducible(self):
        return _default_device().platform == "cpu"

    def context(self, dtype):
        """Returns a context with x64 enabled for float64; for other dtypes one that leaves JAX's setting as it is."""
        import jax

        return jax.enable_x64(True) if dtype == "float64" else contextlib.nullcontext()

    def array(self, value, dtype):
        """Returns a NumPy array as a JAX array: floats in ``dtype``, others unchanged (int64 is int32 without x64)."""
        import jax

        return jax.device_put(super().array(value, dtype))

    def read(self, value):
        return np.asarray(value)

    def imports(self, dtype):
        wide = ["jax.config.update('jax_enable_x64', True)"] if dtype == "float64" else []
        return ["import jax", "import jax.numpy as jnp", *wide]

    def code(self, name, dtype):
        return f"jnp.asarray({name})"

    def forget(self):
        """Clears compiled programs: each holds memory maps, of which Linux allows a process 65,530 by default."""
        import jax

        _vjp.cache_clear()
        _second.cache_clear()
        jax.clear_caches()
        gc.collect()

    def gradient(self, function, arrays, fixed, cotangents):
        """Returns gradients of the sum of outputs times cotangents, for each of ``arrays``, as a dict of NumPy arrays.

        Args:
          function: takes one dict of arrays and returns a list; for equal shapes it is compiled once.
          arrays: the arguments to differentiate, by name, as :meth:`array` returns them.
          fixed: the other arguments, by name.
          cotangents: one array for each output, in its dtype.

        Raises:
          Untraceable: JAX cannot trace the function, and raises one of :func:`untraceable_errors`.
        """
        try:
            gradients = _vjp(function)(arrays, fixed, cotangents)
        except untraceable_errors() as error:
            raise Untraceable(f"JAX cannot trace it: {type(error).__name__}") from error
        return {key: np.asarray(value) for key, value in gradients.items()}

    def second(self, function, arrays, fixed, cotangents, directions, forward):
        """Returns Hessian-vector products along ``directions``, an array for each of ``arrays``, by argument.

        The Hessian is that of the sum of c (o + o² / 2) over the outputs o with cotangents c. With ``forward`` the
        gradient is differentiated in forward mode, else in reverse mode. Other arguments are those of :meth:`gradient`.
        """
        found = _second(function, forward)(arrays, fixed, cotangents, directions)
        return {key: np.asarray(value) for key, value in found.items()}


def untraceable_errors():
    """Returns the types of the errors that JAX raises for a function that needs values of the arrays it traces.

    Other errors of tracing, such as an UnexpectedTracerError, are mistakes of the function.
    """
    import jax

    return (
        jax.errors.ConcretizationTypeError,
        jax.errors.NonConcreteBooleanIndexError,
        jax.errors.TracerArrayConversionError,
        jax.errors.TracerIntegerConversionError,
    )


def _default_device():
    """Returns the device on which JAX puts new arrays; it is not ``jax.devices()[0]`` if ``jax_default_device`` is set."""
    import jax

    (device,) = jax.device_put(np.zeros(())).devices()  # unlike an array of jax.numpy on one device under jax.set_mesh
    return device


def _quickly():
    """Returns compiler options for programs that run only a few times, on small arrays; None on accelerators."""
    import jax

    if _default_device().platform != "cpu":
        return None
    options = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    # the older emitter of loops compiles three times as fast; later versions lack it
    if jax.__version_info__ < (0, 11):
        options["xla_cpu_use_fusion_emitters"] = False
    return options


@functools.lru_cache(maxsize=256)
def _vjp(function):
    import jax

    @functools.partial(jax.jit, compiler_options=_quickly())
    def gradients(arrays, fixed, cotangents):
        outputs, pull = jax.vjp(lambda differentiated: function(differentiated | fixed), arrays)
        return pull([c.astype(output.dtype) for c, output in zip(cotangents, outputs, strict=True)])[0]

    return gradients


@functools.lru_cache(maxsize=64)
def _second(function, forward):
    import jax
    import jax.numpy as jnp

    @functools.partial(jax.jit, compiler_options=_quickly())
    def products(arrays, fixed, cotangents, directions):
        def gradient(arrays):
            outputs, pull = jax.vjp(lambda differentiated: function(differentiated | fixed), arrays)
            bent = [c * (1 + jnp.where(c == 0, 0, output)) for c, output in zip(cotangents, outputs, strict=True)]
            return pull(bent)[0]

        def along(arrays):
            return sum(jnp.sum(gradient * directions[key]) for key, gradient in gradient(arrays).items())

        return jax.jvp(gradient, (arrays,), (directions,))[1] if forward else jax.grad(along)(arrays)

    return products
