"""Varying manual axes: the mesh axes over which an array varies inside of ``jax.shard_map``.

They have other names in JAX before 0.10. The code of this package depends on the version of JAX here and nowhere else.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

_BEFORE_0_10 = jax.__version_info__ < (0, 10)


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
