"""Accumulators, the partial results of reductions, and their merge: over two chunks, and over the devices of a mesh.

An accumulator is the partial result of a reduction over some of the tokens: a tile, the tokens of one device, or a
chunk. :class:`WeightedSum`, :class:`EndToken`, ``OnlineSoftmax`` and ``ExtremeState`` have three methods, by which
partial results merge:

* ``common()`` returns the array whose maximum over all parts is needed first, or None;
* ``rescaled(maximum)`` returns the arrays that are then summed over all parts, rescaled to that maximum;
* ``added(maximum, sums)`` returns the accumulator of all parts.

Devices merge by one max all-reduce, if the accumulator has a maximum, and one sum all-reduce
(:func:`all_reduce_states`). NaN reaches the result through the sum, because a max all-reduce may lose it. For
``OnlineSoftmax``, tiles of an example reduce an axis (:mod:`attnpool_flax.reductions.softmax`), and two chunks add with
compensation (:func:`merge_pair`). ``finalize()`` of ``OnlineSoftmax`` and ``ExtremeState`` returns the pooled vector.
"""

import itertools
import math
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.platforms import cast_varying, varying_axes
from attnpool_flax.numerics.sums import compensated_add


class WeightedSum(NamedTuple):
    """Accumulator of a weighted sum of tokens.

    Attributes:
      sum: [..., d], the weighted sum.
      weight: [...], the sum of the weights, in the dtype of ``sum``, or the int32 count of tokens; None if not needed.
    """

    sum: Any
    weight: Any

    def common(self):
        """Returns None: there is no maximum, and sums are not rescaled."""
        return None

    def rescaled(self, maximum):
        """Returns (sum, weight)."""
        del maximum
        return tuple(self)

    def added(self, maximum, sums):
        """Returns the accumulator of all parts from the sums of :meth:`rescaled`."""
        del maximum
        return WeightedSum(*sums)

    @property
    def batch_rank(self):
        """The number of batch axes."""
        return self.sum.ndim - 1


class EndToken(NamedTuple):
    """Accumulator of the first or the last real token of a sequence.

    Attributes:
      rank: [...], int32, larger for a part nearer to the wanted end of the sequence; -1 for a part without real tokens.
      token: [..., d], the first or last real token of the part.
    """

    rank: Any
    token: Any

    def common(self):
        """Returns the ranks, whose maximum over all parts selects a part."""
        return self.rank

    def rescaled(self, rank):
        """Returns (token,), replaced by 0 unless this part has the largest rank."""
        wanted = (self.rank == rank) & (rank >= 0)
        return (jnp.where(wanted[..., None], self.token, 0),)

    def added(self, rank, sums):
        """Returns the accumulator of all parts from their largest rank and the sum of :meth:`rescaled`."""
        return EndToken(rank, *sums)

    @property
    def batch_rank(self):
        """The number of batch axes."""
        return self.rank.ndim


def merge_pair(a, b):
    """Merges the accumulators of two chunks, which have a maximum, and sums that are pairs (value, compensation)."""
    maximum = jnp.maximum(a.common(), b.common())
    return a.added(maximum, map(_add, a.rescaled(maximum), b.rescaled(maximum)))


def _add(a, b):
    return None if a is None else compensated_add(a, b)


# --------------------------------------------------------------------------------------------------------------
# Collectives over a mesh


def axis_names(axis_name):
    """Returns the argument ``axis_name``, one name of a mesh axis or several, as a tuple in the given order."""
    return (axis_name,) if isinstance(axis_name, str) else tuple(axis_name)


def all_reduce_states(states, axis_name) -> Any:
    """Merges each accumulator with its counterparts on the other devices; the results are replicated.

    Args:
      states: a list of accumulators (:mod:`attnpool_flax.reductions.accumulators`) with equally many batch axes. They
        are not merged with each other. All their maxima are one collective, and all their sums another.
      axis_name: a mesh axis, or a tuple of them; None leaves the accumulators unchanged.

    Returns:
      The merged accumulators in the same order, not varying over the axes; maxima have no gradient.
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


def all_reduced_sums(mean, *tokens):
    """Returns (sums, or means if ``mean``; whether there are real tokens) of several Dense objects, in one collective.

    Both are lists with an array for each object: [..., d], and bool [...], or None without a mask if L > 0.
    """
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
    """Returns [(pooled [..., h, d], weights [..., h, L])] of several calls of ``Dense.softmax``, in common collectives.

    Each call is (the :class:`~attnpool_flax.tokens.Dense` tokens, its arguments ``queries``, ``multiplier`` and ``has_query``).
    """
    tokens = [own for own, *_ in calls]
    if tokens[0].axis_name is None:
        return [own.softmax(*arguments) for own, *arguments in calls]
    local = [own.local_softmax(*arguments) for own, *arguments in calls]
    states = all_reduce_states([state for _, state, _ in local], tokens[0].axis_name)
    merged = zip(tokens, local, states, strict=True)
    return [own.softmax_averages(scores, state, batch)[:2] for own, (scores, _, batch), state in merged]
