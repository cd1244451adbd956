"""Dispatch: the choice of the implementation that loops over the tokens."""

import contextlib
import contextvars
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.core import Tracer
from jax.interpreters import ad

IMPLEMENTATIONS = ("einsum", "tiles")
"""Whole products, for accelerators and for processes with several devices; and tiles in the cache of a CPU."""

KERNEL = "pallas"
"""The implementation by hand-written kernels, on request only; reductions that have none take their default beside it."""


class KernelRefusal(ValueError):
    """No kernel takes these arguments."""


_LISTENERS: contextvars.ContextVar[tuple[list[str], ...]] = contextvars.ContextVar("attnpool_listeners", default=())


def resolve(implementation, *arrays):
    """Resolves the implementation for these arrays: the given one, else the default of their devices."""
    if implementation == KERNEL:
        return default_implementation(*arrays)
    implementation = implementation or default_implementation(*arrays)
    log_dispatch(implementation)
    return implementation


def default_implementation(*arrays):
    """Returns the default implementation on the devices of these arrays, of which some may be None.

    Tiles slice x by index, which gathers an x that is sharded over several devices, unless each device runs the loop on
    its own shard (manual axes).
    """
    manual = any(varying_axes(array) for array in arrays if array is not None)
    alone = jax.device_count() == 1 or manual
    return "tiles" if on_cpu() and alone else "einsum"


def resolve_for_units(implementation):
    """Resolves the implementation of sums over hidden units: their loop slices no tokens, and is the default on all CPUs."""
    if implementation in (None, KERNEL):
        implementation = "tiles" if on_cpu() else "einsum"
    log_dispatch(implementation)
    return implementation


def on_cpu():
    """Returns whether the default backend is the CPU."""
    return jax.default_backend() == "cpu"


def log_dispatch(implementation):
    """Appends the chosen implementation to the lists of :func:`logged_dispatches`."""
    for listener in _LISTENERS.get():
        listener.append(implementation)


def in_forward_mode(array):
    """Returns whether an array is traced in forward mode; must be called outside of the function's own ``jit``, which hides it.

    Tiles have a custom VJP, which forward mode cannot differentiate.
    """
    while isinstance(array, Tracer) and not isinstance(array, ad.JVPTracer):
        array = getattr(array, "val", None)  # what vmap maps
    return isinstance(array, ad.JVPTracer)


@contextlib.contextmanager
def logged_dispatches():
    """Yields a list of the implementations that are chosen inside of the ``with`` block."""
    heard = []
    token = _LISTENERS.set((*_LISTENERS.get(), heard))
    try:
        yield heard
    finally:
        _LISTENERS.reset(token)


def varying_axes(array):
    """Returns the varying manual axes of an array, inside of ``shard_map``."""
    return jax.typeof(array).manual_axis_type.varying


def unify_varying(*arrays: Any) -> Any:
    """Casts arrays, or None, to the same varying manual axes, as custom gradient rules need."""
    axes = frozenset().union(*(varying_axes(array) for array in arrays if array is not None))
    return tuple(array if array is None else cast_varying(array, axes - varying_axes(array)) for array in arrays)


def cast_varying(array, axes):
    """Casts the array to vary over these manual axes too."""
    return lax.pcast(array, tuple(sorted(axes)), to="varying") if axes else jnp.asarray(array)
