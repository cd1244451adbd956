"""The place where a program runs: its platform, the devices of its arrays, and the mesh axes over which arrays vary.

Varying manual axes are the mesh axes over which an array varies inside of ``jax.shard_map``. They have other names in
JAX before 0.10. The code of this package depends on the version of JAX here and nowhere else.
"""

import contextlib
import contextvars
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

_BEFORE_0_10 = jax.__version_info__ < (0, 10)

PLATFORMS = ("cpu", "cuda", "tpu")
"""Platforms that :func:`on_platform` takes."""

_PLATFORM: contextvars.ContextVar[str | None] = contextvars.ContextVar("attnpool_platform", default=None)


def platform():
    """Returns the platform that :func:`on_platform` sets, such as "cuda", else JAX's backend: "cpu", "tpu" or "gpu"."""
    return _PLATFORM.get() or jax.default_backend()


def choose(*arrays, **kernels):
    """Calls with the arrays the one of several functions that is for the platform for which the program is lowered.

    Inside of :func:`on_platform` the program has only that of its platform.

    Args:
      *arrays: trees of arrays, which the functions take.
      **kernels: functions with results of the same shapes: ``cpu``, ``tpu``, and ``default`` for all others, GPUs.
    """
    if name := _PLATFORM.get():
        return kernels.get(name, kernels["default"])(*arrays)
    return lax.platform_dependent(*arrays, **kernels)


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


def varying_axes(array):
    """Returns the mesh axes over which an array varies inside of ``shard_map`` (its varying manual axes)."""
    kind: Any = jax.typeof(array)
    return kind.vma if _BEFORE_0_10 else kind.manual_axis_type.varying


def varying_struct(shape, dtype, axes):
    """Returns a ``jax.ShapeDtypeStruct`` that varies over these axes."""
    options: Any = {"vma": axes} if _BEFORE_0_10 else {"manual_axis_type": jax.sharding.ManualAxisType(varying=axes)}
    return jax.ShapeDtypeStruct(shape, dtype, **(options if axes else {}))


def unify_varying(*arrays: Any) -> Any:
    """Casts arrays to vary over each axis over which one of them varies, as custom gradient rules need.

    None stays None.
    """
    axes = frozenset().union(*[varying_axes(array) for array in arrays if array is not None])
    if not axes:  # outside of ``shard_map``
        return arrays
    return tuple(array if array is None else cast_varying(array, axes - varying_axes(array)) for array in arrays)


def cast_varying(array, axes):
    """Casts an array to vary over these manual axes as well."""
    return lax.pcast(array, tuple(sorted(axes)), to="varying") if axes else jnp.asarray(array)
