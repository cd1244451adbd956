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

_LISTENERS: contextvars.ContextVar[tuple[list[str], ...]] = contextvars.ContextVar("attnpool_listeners", default=())


def chosen(implementation, *arrays):
    """Resolves the implementation for these arrays: the given one, else the default of their devices."""
    implementation = implementation or suited(*arrays)
    record(implementation)
    return implementation


def suited(*arrays):
    """Returns the default implementation on the devices of these arrays, of which some may be None.

    Tiles slice x by index, which gathers an x that is sharded over several devices, unless each device runs the loop on
    its own shard (manual axes).
    """
    manual = any(varies(array) for array in arrays if array is not None)
    alone = jax.device_count() == 1 or manual
    return "tiles" if on_cpu() and alone else "einsum"


def chosen_for_units(implementation):
    """Resolves the implementation of sums over hidden units: their loop slices no tokens, and is the default on all CPUs."""
    implementation = implementation or ("tiles" if on_cpu() else "einsum")
    record(implementation)
    return implementation


def on_cpu():
    """Returns whether the default backend is the CPU."""
    return jax.default_backend() == "cpu"


def record(implementation):
    """Appends the chosen implementation to the lists of :func:`listening`."""
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
def listening():
    """Yields a list of the implementations that are chosen inside of the ``with`` block."""
    heard = []
    token = _LISTENERS.set((*_LISTENERS.get(), heard))
    try:
        yield heard
    finally:
        _LISTENERS.reset(token)


def varies(array):
    """Returns the varying manual axes of an array, inside of ``shard_map``."""
    return jax.typeof(array).manual_axis_type.varying


def alike(*arrays: Any) -> Any:
    """Casts arrays, or None, to the same varying manual axes, as custom gradient rules need."""
    axes = frozenset().union(*(varies(array) for array in arrays if array is not None))
    return tuple(array if array is None else varying(array, axes - varies(array)) for array in arrays)


def varying(array, axes):
    """Casts the array to vary over these manual axes too."""
    return lax.pcast(array, tuple(sorted(axes)), to="varying") if axes else jnp.asarray(array)
