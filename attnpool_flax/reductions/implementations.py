"""Which implementation walks the tokens: chosen here, and nowhere else."""

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
    """The implementation that walks these arrays: the one that is asked for, else the one that suits the place."""
    implementation = implementation or suited(*arrays)
    record(implementation)
    return implementation


def suited(*arrays):
    """The implementation that suits the place where these arrays, or None, lie.

    Tiles cut x by index, which gathers it where it lies on several devices, unless each of them runs the loop on its own
    part (manual axes).
    """
    manual = any(varies(array) for array in arrays if array is not None)
    alone = jax.device_count() == 1 or manual
    return "tiles" if on_cpu() and alone else "einsum"


def chosen_for_units(implementation):
    """The same for sums over hidden units: their loop cuts no tokens, and suits every process on CPUs."""
    implementation = implementation or ("tiles" if on_cpu() else "einsum")
    record(implementation)
    return implementation


def on_cpu():
    """Whether CPUs compute by default."""
    return jax.default_backend() == "cpu"


def record(implementation):
    """Tells who listens what was chosen."""
    for listener in _LISTENERS.get():
        listener.append(implementation)


def in_forward_mode(array):
    """Whether forward mode is seen on an array; a jit around it hides it, so that it is asked for before ours.

    The gradient of tiles is a rule of their own, which forward mode cannot pass.
    """
    while isinstance(array, Tracer) and not isinstance(array, ad.JVPTracer):
        array = getattr(array, "val", None)  # what vmap maps
    return isinstance(array, ad.JVPTracer)


@contextlib.contextmanager
def listening():
    """A list that receives the choices that are made meanwhile."""
    heard = []
    token = _LISTENERS.set((*_LISTENERS.get(), heard))
    try:
        yield heard
    finally:
        _LISTENERS.reset(token)


def varies(array):
    """The mesh axes over which an array differs from device to device, inside of shard_map."""
    return jax.typeof(array).manual_axis_type.varying


def alike(*arrays: Any) -> Any:
    """The arrays, or None, varying over the same mesh axes: a rule for gradients must not meet two kinds."""
    axes = frozenset().union(*(varies(array) for array in arrays if array is not None))
    return tuple(array if array is None else varying(array, axes - varies(array)) for array in arrays)


def varying(array, axes):
    """The array, typed as varying over these mesh axes too."""
    return lax.pcast(array, tuple(sorted(axes)), to="varying") if axes else jnp.asarray(array)
