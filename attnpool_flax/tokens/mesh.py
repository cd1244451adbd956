"""Merge of states over the devices of a mesh: one collective for all maxima, and one for all sums.

NaN reaches the result through the sums, because a max all-reduce may lose it.
"""

import itertools
import math
from typing import Any

import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.platforms import cast_varying, varying_axes


def axis_names(axis_name):
    """Returns the argument ``axis_name``, one name of a mesh axis or several, as a tuple in the given order."""
    return (axis_name,) if isinstance(axis_name, str) else tuple(axis_name)


def all_reduce_states(states, axis_name) -> Any:
    """Merges each state with its counterparts on the other devices; the results are replicated.

    Args:
      states: a list of states (:mod:`attnpool_flax.tokens.states`) with equally many batch axes. They are not merged with
        each other. All their maxima are one collective, and all their sums another.
      axis_name: a mesh axis, or a tuple of them; None leaves the states unchanged.

    Returns:
      The merged states in the same order, not varying over the axes; maxima have no gradient.
    """
    if axis_name is None:
        return states
    names, rank = axis_names(axis_name), states[0].batch_rank
    maxima = [None if (own := state.common()) is None else lax.stop_gradient(own) for state in states]
    maxima = _collective(lax.pmax, maxima, rank, names)
    addends = [state.rescaled(maximum) for state, maximum in zip(states, maxima, strict=True)]
    sums = iter(_collective(lax.psum, [array for arrays in addends for array in arrays], rank, names))
    merged = zip(states, maxima, addends, strict=True)
    return [state.added(maximum, [next(sums) for _ in arrays]) for state, maximum, arrays in merged]


def all_reduce(operation, arrays, rank, axis_name) -> Any:
    """All-reduces arrays with ``rank`` batch axes over the mesh, by ``lax.psum`` or ``lax.pmax``, in one collective.

    Without an axis name the arrays are returned unchanged.
    """
    return arrays if axis_name is None else _collective(operation, arrays, rank, axis_names(axis_name))


def _collective(operation, arrays, rank, names):
    """Runs one collective for all arrays that are not None.

    The arrays are concatenated, so that no compiler has to combine several collectives. Their first ``rank`` axes are
    the batch axes, of size 1 if the examples share the array.
    """
    given = [array for array in arrays if array is not None]
    if not given:
        return arrays
    batch = jnp.broadcast_shapes(*(array.shape[:rank] for array in given))
    sizes = [math.prod(array.shape[rank:]) for array in given]
    flat = [jnp.reshape(array, (*array.shape[:rank], size)) for array, size in zip(given, sizes, strict=True)]
    flat = [jnp.broadcast_to(array, (*batch, array.shape[-1])) for array in flat]
    joint = jnp.concatenate(flat, -1) if len(flat) > 1 else flat[0]
    joint = operation(cast_varying(joint, frozenset(names) - varying_axes(joint)), names)
    results = iter(jnp.split(joint, list(itertools.accumulate(sizes))[:-1], -1))
    return [None if a is None else jnp.reshape(next(results), (*batch, *a.shape[rank:])) for a in arrays]
