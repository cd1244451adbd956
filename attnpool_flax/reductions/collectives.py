"""States over a mesh: each device reduces the tokens that it has, and what is left of them meets here, and nowhere else.

A state is merged by one maximum over the mesh (where it has something largest), then by one sum of what is rescaled to it.
The sum carries NaN; a maximum over a mesh may lose it.
"""

import itertools
import math
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from attnpool_flax.reductions.dispatch import cast_varying, varying_axes
from attnpool_flax.reductions.max import ExtremeState
from attnpool_flax.reductions.softmax import SoftmaxState, exponential


class SumState(NamedTuple):
    """State of a weighted sum of tokens.

    Attributes:
      sum: [..., d].
      weight: [...], the sum of the weights, in the sum's dtype; None where it is not needed.
    """

    sum: Any
    weight: Any


class PositionState(NamedTuple):
    """State of the first or the last real token.

    Attributes:
      rank: [...], int32, larger nearer to the wanted end; -1 for a fully masked row.
      token: [..., d].
    """

    rank: Any
    token: Any


def axis_names(axis_name):
    """Returns the names as a tuple, the slower one first."""
    return (axis_name,) if isinstance(axis_name, str) else tuple(axis_name)


def all_reduce_states(states, axis_name) -> Any:
    """Merges the states of all devices' tokens; the result is the same on each device.

    Args:
      states: a list; its maxima are one collective, and its sums another.
      axis_name: a mesh axis, or a tuple of them; None leaves the states as they are.

    Returns:
      The states, typed as not varying over the axes; without them tops and extremes have no gradient.
    """
    if axis_name is None:
        return states
    names = axis_names(axis_name)
    tops = [lax.stop_gradient(state[0]) if _is_ranked(state) else None for state in states]
    rank = _batch_rank(states[0])
    tops = _collective(lax.pmax, tops, rank, names)
    addends = [_addends(state, top) for state, top in zip(states, tops, strict=True)]
    sums = iter(_collective(lax.psum, [part for parts in addends for part in parts], rank, names))
    merged = zip(states, tops, addends, strict=True)
    return [_merged(state, top, [next(sums) for _ in parts]) for state, top, parts in merged]


def all_reduce(operation, arrays, rank, axis_name) -> Any:
    """All-reduces arrays with so many batch axes over the mesh, by ``lax.psum`` or ``lax.pmax``, in one collective.

    None as a name leaves them as they are.
    """
    return arrays if axis_name is None else _collective(operation, arrays, rank, axis_names(axis_name))


def _batch_rank(state):
    if isinstance(state, PositionState):
        return state.rank.ndim
    return state.sum.ndim - 1 if isinstance(state, SumState) else 1


def _is_ranked(state):
    return not isinstance(state, SumState)


def _collective(operation, arrays, rank, names):
    """Runs one collective for all arrays that are not None, concatenated: compilers need not combine several.

    Their first ``rank`` axes are those of the batch, where 1 stands for what is shared.
    """
    given = [array for array in arrays if array is not None]
    if not given:
        return arrays
    batch = jnp.broadcast_shapes(*(array.shape[:rank] for array in given))
    sizes = [math.prod(array.shape[rank:]) for array in given]
    flat = [jnp.reshape(array, (*array.shape[:rank], size)) for array, size in zip(given, sizes, strict=True)]
    flat = [jnp.broadcast_to(array, (*batch, array.shape[-1])) for array in flat]
    whole = jnp.concatenate(flat, -1) if len(flat) > 1 else flat[0]
    whole = operation(cast_varying(whole, frozenset(names) - varying_axes(whole)), names)
    parts = iter(jnp.split(whole, list(itertools.accumulate(sizes))[:-1], -1))
    return [None if a is None else jnp.reshape(next(parts), (*batch, *a.shape[rank:])) for a in arrays]


def _addends(state, top):
    """Returns the parts of a state that are summed over the mesh, rescaled to the global maximum."""
    if isinstance(state, SoftmaxState):
        scale = exponential(lax.stop_gradient(state.top), top)
        return state.total * scale, state.sum * scale[..., None]
    if isinstance(state, ExtremeState):  # NaN in place of a count makes the sum NaN, whatever the maximum says
        count = jnp.where(state.extreme == top, state.count, 0).astype(jnp.float32)
        return (jnp.where(jnp.isnan(state.extreme), jnp.nan, count),)
    if isinstance(state, PositionState):
        wanted = (state.rank == top) & (top >= 0)
        return (jnp.where(wanted[..., None], state.token, 0),)
    return tuple(state)


def _merged(state, top, sums):
    if isinstance(state, SoftmaxState):
        return SoftmaxState(top, *sums)
    if isinstance(state, ExtremeState):
        (count,) = sums
        return ExtremeState(jnp.where(jnp.isnan(count), jnp.nan, top), count, jnp.any(count != 0, -1))
    return PositionState(top, *sums) if isinstance(state, PositionState) else SumState(*sums)


def all_reduced_sums(mean, *tokens):
    """Returns ([sum or mean [..., d] of each], [bool of examples with a real token, None if all have one, of each])."""
    if tokens[0].axis_name is None:
        return [each.mean() if mean else each.sum() for each in tokens], [each.has_real_token() for each in tokens]
    states = all_reduce_states([each.sum_state(mean) for each in tokens], tokens[0].axis_name)
    sums = [each.finalize_mean(state) if mean else state.sum for each, state in zip(tokens, states, strict=True)]
    real = [
        each.has_real_token() if each.mask is None else state.weight > 0
        for each, state in zip(tokens, states, strict=True)
    ]
    return sums, real


def all_reduced_softmax(*calls):
    """Returns [(pooled [..., h, d], weights [..., h, L])] of calls of ``softmax``: each (tokens, queries, scored)."""
    tokens = [own for own, *_ in calls]
    if tokens[0].axis_name is None:
        return [own.softmax(queries, scored=scored) for own, queries, scored in calls]
    walked = [own.scored(queries, scored=scored) for own, queries, scored in calls]
    states = all_reduce_states([state for _, state, _ in walked], tokens[0].axis_name)
    found = zip(tokens, walked, states, strict=True)
    return [own.softmax_averages(scores, state, batch)[:2] for own, (scores, _, batch), state in found]
