"""Varying manual axes: the mesh axes over which an array varies inside of ``jax.shard_map``."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def varying_axes(array):
    """Returns the mesh axes over which an array varies inside of ``shard_map`` (its varying manual axes)."""
    return jax.typeof(array).manual_axis_type.varying


def unify_varying(*arrays: Any) -> Any:
    """Casts arrays to vary over each axis over which one of them varies, as custom gradient rules need.

    None stays None.
    """
    axes = frozenset().union(*(varying_axes(array) for array in arrays if array is not None))
    return tuple(array if array is None else cast_varying(array, axes - varying_axes(array)) for array in arrays)


def cast_varying(array, axes):
    """Casts an array to vary over these manual axes as well."""
    return lax.pcast(array, tuple(sorted(axes)), to="varying") if axes else jnp.asarray(array)
