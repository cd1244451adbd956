"""Reductions feature by feature: what a token has of its own for each feature meets nothing but sums and maxima.

Plain reductions are all that these take: no product walks over the tokens twice.
"""

import jax.numpy as jnp
from jax import lax

from attnpool_flax.reductions.mesh import everywhere
from attnpool_flax.reductions.segments import segments_of
from attnpool_flax.reductions.softmax import exponential
from attnpool_flax.reductions.sums import computing, summed


class DenseColumns:
    """Tokens [..., L, d] under a mask [..., L] or None; with an axis name one device's part of them.

    What a token has is [..., L, d], or [..., L, 1] for all features alike; what the example has is [..., d] or [..., 1].
    """

    def __init__(self, x, mask, axis_name=None):
        self.real = None if mask is None else mask[..., None]
        self.x, self.axis_name = self.kept(x.astype(computing(x.dtype))), axis_name

    def kept(self, values, padding=0):
        """What a token has, and something else in padding."""
        return values if self.real is None else jnp.where(self.real, values, padding)

    def beside(self, weights):
        """Weights [..., L] or [..., L, d] as what a token has."""
        return weights if weights.ndim == self.x.ndim else weights[..., None]

    def total(self, *arrays):
        """The sums of what a token has, which is 0 in padding, or None for 1; over a mesh in one collective."""
        sums = [self._number() if array is None else summed(array, array.ndim - 2) for array in arrays]
        return everywhere(lax.psum, sums, self.x.ndim - 2, self.axis_name)

    def _number(self):
        """[..., 1]: how many of this device's tokens are real."""
        if self.real is None:
            return jnp.full_like(self.x, self.x.shape[-2], shape=(*self.x.shape[:-2], 1))
        return jnp.sum(self.real, -2, dtype=jnp.int32).astype(self.x.dtype)

    def largest(self, *arrays):
        """The largest of what a token has, -inf without any and without gradient; over a mesh in one collective."""
        tops = [jnp.max(lax.stop_gradient(array), -2, initial=-jnp.inf) for array in arrays]
        return everywhere(lax.pmax, tops, self.x.ndim - 2, self.axis_name)

    def each(self, values):
        """What the example has, at each of its tokens."""
        return values[..., None, :]


class PackedColumns:
    """Packed tokens [N, d] with their segment numbers and a mask [N] or None.

    What a token has is [N, d], or [N, 1]; what a segment has is [S, d] or [S, 1].
    """

    axis_name = None
    """No mesh axis: packed tokens are not split."""

    def __init__(self, x, segment_ids, num_segments, mask, ordered):
        self.number, self.segments = num_segments, segments_of(segment_ids, mask, num_segments, ordered)
        self.real = self.segments.real[:, None]
        self.x = self.kept(x.astype(computing(x.dtype)))

    def kept(self, values, padding=0):
        """What a token has, and something else in padding."""
        return jnp.where(self.real, values, padding)

    def beside(self, weights):
        """Weights [N] or [N, d] as what a token has."""
        return weights if weights.ndim == self.x.ndim else weights[:, None]

    def total(self, *arrays):
        """The sums of what a token has, which is 0 in padding, or None for 1."""
        ones = self.real.astype(jnp.int32)
        sums = [self.segments.total(ones if array is None else array) for array in arrays]
        return [array[: self.number].astype(self.x.dtype) for array in sums]

    def largest(self, *arrays):
        """The largest of what a token has, -inf without any and without gradient."""
        return [self.segments.largest(lax.stop_gradient(array))[: self.number] for array in arrays]

    def each(self, values):
        """What the segment has, at each of its tokens."""
        return self.segments.each(values if self.number else jnp.zeros((1, values.shape[-1]), values.dtype))


def exponentials(columns, scores):
    """(exp(score - top) of each token, 0 in padding; the top of each example): the softmax before its division."""
    scores = columns.kept(scores, -jnp.inf)
    (top,) = columns.largest(scores)
    return columns.kept(exponential(scores, columns.each(top))), top
