"""Tokens whose channels are reduced each by itself: largest values and sums of arrays that have a token's every feature.

What an example has is [..., d] of dense tokens, which a mesh axis may split, and [S, d] of packed ones.
"""

import itertools

import jax.numpy as jnp
from jax import lax

from attnpool_flax.reductions.mesh import SumState, names_of, over_mesh
from attnpool_flax.reductions.segments import at
from attnpool_flax.reductions.sums import summed


class DenseChannels:
    """Of :class:`~attnpool_flax.reductions.dense.Dense` tokens."""

    def __init__(self, tokens):
        self.dtype, self.axis_name = tokens.dtype, tokens.axis_name
        self.x = tokens.x.astype(tokens.dtype)
        self._real = None if tokens.mask is None else tokens.mask[..., None]

    def kept(self, values, fill: float = 0):
        """Values [..., L, d] with those of padding replaced."""
        return values if self._real is None else jnp.where(self._real, values, fill)

    def each(self, values):
        """[..., 1, d]: what the example has, beside what a token has."""
        return values[..., None, :]

    def largest(self, values):
        """[..., d]: the largest of values that are -inf at padding; a constant. A mesh may lose NaN here, no sum does."""
        top = jnp.max(lax.stop_gradient(values), -2, initial=-jnp.inf)
        return top if self.axis_name is None else lax.pmax(top, names_of(self.axis_name))

    def sums(self, *arrays):
        """[..., d]: the sum of each array, which is 0 at padding; a mesh takes one collective for all."""
        parts = [summed(array, -2) for array in arrays]
        if self.axis_name is None:
            return parts
        widths = list(itertools.accumulate(part.shape[-1] for part in parts))[:-1]
        (state,) = over_mesh([SumState(jnp.concatenate(parts, -1), None)], self.axis_name)
        return jnp.split(state.sum, widths, -1)

    def ones(self):
        """[..., L, 1]: 1 for each real token, whose sum is their number."""
        return self.kept(jnp.ones((*self.x.shape[:-1], 1), self.dtype))

    def across(self, values):
        """A number [], or one for each feature [d], beside what an example has and beside what a token has."""
        values = jnp.reshape(values, (1,) * (self.x.ndim - 2) + (-1,))
        return values, values[..., None, :]

    def folded(self, values, both):
        """[..., d]: values [..., L, d], which are 0 at padding, by what both of two are; 0 changes nothing."""
        values = _folded(values, both)
        if self.axis_name is None:
            return values
        shards = lax.axis_size(names_of(self.axis_name))
        mine = lax.axis_index(names_of(self.axis_name)) == jnp.arange(shards)
        mine = jnp.reshape(mine, (shards,) + (1,) * (values.ndim - 1) + (1,))
        spread = jnp.moveaxis(jnp.where(mine, values, 0), 0, -2)
        return _folded(lax.psum(spread, names_of(self.axis_name)), both)

    def done(self, values):
        """What the caller gets."""
        return values


class PackedChannels:
    """Of :class:`~attnpool_flax.reductions.packed.Packed` tokens; there is always a segment until they are done."""

    axis_name = None

    def __init__(self, tokens):
        self.dtype, self._segments, self._number = tokens.dtype, tokens.segments, tokens.number
        self.x = tokens.x.astype(tokens.dtype)

    def kept(self, values, fill: float = 0):
        """Values [N, d] with those of padding replaced."""
        return jnp.where(self._segments.real[:, None], values, fill)

    def each(self, values):
        """[N, d]: what the token's segment has."""
        return self._segments.each(values)

    def largest(self, values):
        """[S, d]: the largest of values that are -inf at padding; a constant."""
        return self._segments.largest(lax.stop_gradient(values))

    def sums(self, *arrays):
        """[S, d]: the sum of each array, which is 0 at padding."""
        return [self._segments.total(array) for array in arrays]

    def ones(self):
        """[N, 1]: 1 for each real token, whose sum is their number."""
        return self._segments.real.astype(self.dtype)[:, None]

    def across(self, values):
        """A number [], or one for each feature [d], beside what a segment has and beside what a token has."""
        values = jnp.reshape(values, (1, -1))
        return values, values

    def folded(self, values, both):
        """[S, d]: values [N, d], which are 0 at padding, by what both of two are; 0 changes nothing."""
        ids, count = self._segments.ids, self._segments.count
        if not values.shape[0]:
            return jnp.zeros((count, values.shape[1]), values.dtype)
        order = jnp.argsort(ids)  # stable, and so the tokens of a segment stand after each other
        ids = at(ids, order)
        begins = jnp.concatenate([jnp.ones(1, bool), ids[1:] != ids[:-1]])[:, None]

        def joined(a, b):
            return a[0] | b[0], jnp.where(b[0], b[1], both(a[1], b[1]))

        _, runs = lax.associative_scan(joined, (begins, at(values, order)))
        ends = jnp.searchsorted(ids, jnp.arange(count, dtype=ids.dtype), side="right").astype(jnp.int32)
        some = ends > jnp.concatenate([jnp.zeros(1, ends.dtype), ends[:-1]])
        return jnp.where(some[:, None], at(runs, jnp.maximum(ends - 1, 0)), 0)

    def done(self, values):
        """What the caller gets."""
        return values[: self._number]


def _folded(values, both):
    """[..., d] of [..., L, d]: one half with the other, until one is left."""
    while values.shape[-2] > 1:
        half = (values.shape[-2] + 1) // 2
        first, second = values[..., :half, :], values[..., half:, :]
        missing = [(0, 0)] * (values.ndim - 2) + [(0, half - second.shape[-2]), (0, 0)]
        values = both(first, jnp.pad(second, missing))
    return jnp.sum(values, -2)
