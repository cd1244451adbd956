"""The platform for which a program is made, and whether its arrays are on several devices."""

import contextlib
import contextvars
import functools
import math

import jax
from jax import lax

PLATFORMS = ("cpu", "cuda", "tpu")
"""Platforms that :func:`on_platform` takes."""

_PLATFORM: contextvars.ContextVar[str | None] = contextvars.ContextVar("attnpool_platform", default=None)


def on_cpu():
    """Returns whether :func:`platform` is the CPU."""
    return platform() == "cpu"


def platform():
    """Returns the platform that :func:`on_platform` sets, such as "cuda", else JAX's backend: "cpu", "tpu" or "gpu"."""
    return _PLATFORM.get() or jax.default_backend()


def only_platform():
    """Returns the platform that :func:`on_platform` sets, "cpu", "tpu" or, for a GPU, "default"; None outside of it."""
    name = _PLATFORM.get()
    return name if name in (None, "cpu", "tpu") else "default"


def choose(*arrays, **kernels):
    """Calls with the arrays the one of several functions that is for the platform for which the program is lowered.

    Inside of :func:`on_platform` the program has only that of its platform.

    Args:
      *arrays: trees of arrays, which the functions take.
      **kernels: functions with results of the same shapes: ``cpu``, ``tpu``, and ``default`` for all others, GPUs.
    """
    only = only_platform()
    return kernels.get(only, kernels["default"])(*arrays) if only else lax.platform_dependent(*arrays, **kernels)


def on_accelerators(kernel):
    """Returns the functions of TPUs and GPUs for :func:`choose`: ``kernel`` with ``on_gpus``, False on TPUs."""
    return {"tpu": functools.partial(kernel, on_gpus=False), "default": functools.partial(kernel, on_gpus=True)}


@contextlib.contextmanager
def on_platform(name):
    """Makes :func:`platform` return ``name``, "cpu", "cuda" or "tpu", in the ``with`` block; None: JAX's backend."""
    token = _PLATFORM.set(name)
    try:
        yield
    finally:
        _PLATFORM.reset(token)


def on_several_devices(arrays):
    """Returns whether arrays are on a mesh of several devices, apart from its manual axes."""
    meshes = {jax.typeof(array).sharding.mesh for array in arrays}
    return any(mesh.size > math.prod(mesh.shape[name] for name in mesh.manual_axes) for mesh in meshes)
