"""Dispatch: resolves the implementation, "einsum" or "tiles", and the varying manual axes of arrays in ``shard_map``."""

import contextlib
import contextvars
import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.core import Tracer
from jax.interpreters import ad

from attnpool_flax.numerics.remat import remat
from attnpool_flax.numerics.sizes import known
from attnpool_flax.reductions.tiling import WHOLE

IMPLEMENTATIONS = ("einsum", "tiles")
"""Whole products that JAX differentiates; and kernels with a gradient rule, which read tiles on CPUs and raw tokens elsewhere."""

PLATFORMS = ("cpu", "cuda", "tpu")
"""Platforms that :func:`on_platform` takes."""

_PLATFORM: contextvars.ContextVar[str | None] = contextvars.ContextVar("attnpool_platform", default=None)

KERNEL = "pallas"
"""The implementation by hand-written kernels, on request only; reductions that have none take their default beside it."""


CUDNN = "cudnn"
"""The implementation by cuDNN's flash attention, on request only, of attention of many queries."""

KERNELS = {
    KERNEL: "averages tokens under the softmax of their products with queries",
    CUDNN: "averages values under the softmax of dot products, in dot_product_attention and multi_head_attention",
}
"""Implementations that run only on request, and what each of them computes."""


class KernelRefusal(ValueError):
    """No kernel takes these arguments."""


_INPUTS: contextvars.ContextVar[Any] = contextvars.ContextVar("attnpool_inputs")

_LOGS: contextvars.ContextVar[tuple[list[str], ...]] = contextvars.ContextVar("attnpool_dispatches", default=())


def resolve(implementation, *arrays):
    """Resolves the implementation for these arrays: the given one, else the default of their devices."""
    if implementation in KERNELS:
        return default_implementation(*arrays)
    implementation = implementation or default_implementation(*arrays)
    log_dispatch(implementation)
    return implementation


def default_implementation(*arrays):
    """Returns the default implementation on the devices of these arrays, of which some may be None.

    On CPUs tiles slice x by index, which gathers an x that is sharded over several devices, unless each device runs the loop
    on its own shard (manual axes). The kernels of accelerators slice nothing.
    """
    manual = any(varying_axes(array) for array in arrays if array is not None)
    unsharded = jax.device_count() == 1 or manual
    return "tiles" if unsharded or not on_cpu() else "einsum"


def by_default(requested, tiled, plain, arrays, *static, recompute=False):
    """Calls the kernel of the requested implementation, or of the default on the platform that the program is lowered for.

    Where a process has several CPUs, accelerators have another default than they (:func:`default_implementation`). Arrays on a
    mesh of CPUs are lowered for no other platform.

    Args:
      requested: an implementation, or None.
      tiled: the kernel of "tiles".
      plain: the kernel of "einsum".
      arrays: the arguments of the kernel, tokens first.
      *static: more arguments, which are not arrays.
      recompute: whether ``plain`` is rematerialized: then nothing is saved for the platform that a program is not lowered for.
    """
    leaves = jax.tree.leaves(arrays)
    if resolve(requested, *leaves) == "tiles":
        return tiled(*arrays, *static)
    if requested == "einsum" or not _worth_a_loop(arrays[0]) or any(map(_on_mesh_of_cpus, leaves)):
        return plain(*arrays, *static)

    def on(kernel):
        return lambda *arrays: kernel(*arrays, *static)

    by_platform = functools.partial(lax.platform_dependent, cpu=on(plain), default=on(tiled))
    return (remat(by_platform) if recompute else by_platform)(*arrays)


def _worth_a_loop(x):
    return not known(*x.shape) or x.size * x.dtype.itemsize > WHOLE


def _on_mesh_of_cpus(array):
    device = jax.typeof(array).sharding.mesh.abstract_device
    return device is not None and device.platform == "cpu"


def resolve_for_units(implementation):
    """Resolves the implementation of sums over hidden units: their kernels slice no tokens, and are the default everywhere."""
    implementation = implementation if implementation in IMPLEMENTATIONS else "tiles"
    log_dispatch(implementation)
    return implementation


def for_tokens(values, call):
    """Rule of functions that loop over tokens: what the call requests, or the default on the arrays' devices.

    Args:
      values: every argument by name; arrays, or objects with a shape and a dtype.
      call: the resolved signature (:class:`attnpool_ref.contract.Call`).

    Returns:
      "einsum" or "tiles".
    """
    del call
    arrays = [value for value in values.values() if isinstance(value, jax.Array)]
    return values["implementation"] or default_implementation(*arrays)


def for_units(values, call):
    """Rule of functions that sum over hidden units, as :func:`for_tokens`."""
    del call
    return values["implementation"] or "tiles"


def on_cpu():
    """Returns whether the platform is the CPU: that of :func:`on_platform`, else the default backend."""
    return platform() == "cpu"


def platform():
    """Returns the platform of :func:`on_platform`, else the default backend: "cpu", "tpu", or a GPU's."""
    return _PLATFORM.get() or jax.default_backend()


def on_platform(name):
    """Answers for another platform than the default backend, "cpu", "cuda" or "tpu", inside of the ``with`` block."""
    return _with_value(_PLATFORM, name)


def inputs_dtype():
    """Returns the dtype that the inputs of a call with a kernel have in common."""
    return _INPUTS.get()


def with_inputs_of(dtype):
    """Answers :func:`inputs_dtype` inside of the ``with`` block."""
    return _with_value(_INPUTS, dtype)


@contextlib.contextmanager
def _with_value(variable, value):
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def log_dispatch(implementation):
    """Appends an implementation to the open lists of :func:`logged_dispatches`."""
    for log in _LOGS.get():
        log.append(implementation)


def in_forward_mode(array):
    """Returns whether an array is traced in forward mode; called outside of the function's own ``jit``.

    Tiles have a custom VJP, which forward mode cannot differentiate.
    """
    while isinstance(array, Tracer) and not isinstance(array, ad.JVPTracer):
        array = getattr(array, "val", None)  # the mapped value under vmap
    return isinstance(array, ad.JVPTracer)


@contextlib.contextmanager
def logged_dispatches():
    """Yields a list to which each dispatch inside of the ``with`` block is appended."""
    log = []
    token = _LOGS.set((*_LOGS.get(), log))
    try:
        yield log
    finally:
        _LOGS.reset(token)


def varying_axes(array):
    """Returns the varying manual axes of an array, inside of ``shard_map``."""
    return jax.typeof(array).manual_axis_type.varying


def unify_varying(*arrays: Any) -> Any:
    """Casts arrays, or None, to the same varying manual axes, as custom gradient rules need."""
    axes = frozenset().union(*(varying_axes(array) for array in arrays if array is not None))
    return tuple(array if array is None else cast_varying(array, axes - varying_axes(array)) for array in arrays)


def cast_varying(array, axes):
    """Casts an array to vary over these manual axes as well."""
    return lax.pcast(array, tuple(sorted(axes)), to="varying") if axes else jnp.asarray(array)
