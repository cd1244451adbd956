"""Reductions of each channel (feature) separately: maxima and sums over tokens of elementwise functions of x.

XLA fuses these reductions with the elementwise functions, so no kernel is needed. Tokens are dense or packed.
"""

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.rounding import power_above
from attnpool_flax.numerics.sizes import as_number, known, resized
from attnpool_flax.numerics.softmax import exponential
from attnpool_flax.numerics.sums import LONGEST, computing_dtype, summed
from attnpool_flax.tokens.mesh import all_reduce, axis_names
from attnpool_flax.tokens.segments import at


class DenseChannels:
    """Dense tokens [..., L, d] with a mask [..., L] or None; with an axis name, one device's shard of them.

    ``x`` has them in float32, or float64 if they are float64, and 0 at padding. Values of tokens are [..., L, d], and
    values of examples [..., d]; the last axis has size 1 for values that all channels share.
    """

    def __init__(self, x, mask, axis_name=None):
        self.real = None if mask is None else mask[..., None]
        self.x, self.axis_name = self.fill_padding(x.astype(computing_dtype(x.dtype))), axis_name

    def fill_padding(self, values, padding: float = 0):
        """Replaces the values [..., L, d] at padding by ``padding``."""
        return values if self.real is None else jnp.where(self.real, values, padding)

    def expand_to_features(self, weights):
        """Adds a channel axis to weights [..., L]; weights [..., L, d] are returned unchanged."""
        return weights if weights.ndim == self.x.ndim else weights[..., None]

    def broadcast_features(self, values):
        """Reshapes a number [] or [d] twice: to broadcast against values of examples, and against values of tokens."""
        values = jnp.reshape(values, (1,) * (self.x.ndim - 2) + (-1,))
        return values, values[..., None, :]

    @property
    def divisor(self):
        """A power of two above the number of tokens: a sum of values divided by it does not overflow."""
        shards = 1 if self.axis_name is None else lax.axis_size(axis_names(self.axis_name))
        return power_above(self.x.shape[-2] * shards, self.x.dtype)

    def expand_to_tokens(self, values):
        """Expands the values [..., d] of examples to broadcast against values of their tokens: [..., 1, d]."""
        return values[..., None, :]

    def sum_over_tokens(self, *arrays):
        """Sums arrays [..., L, d] over tokens, over a mesh in one collective: a list of arrays [..., d].

        The arrays must be 0 at padding. For None in place of an array, the result is the number of real tokens.
        """
        sums = [self._count() if array is None else summed(array, array.ndim - 2) for array in arrays]
        return all_reduce(lax.psum, sums, self.x.ndim - 2, self.axis_name)

    def _count(self):
        """Counts the real tokens of this device: [..., 1]."""
        if self.real is None:
            return jnp.full_like(self.x, as_number(self.x.shape[-2], self.x.dtype), shape=(*self.x.shape[:-2], 1))
        return jnp.sum(self.real, -2, dtype=jnp.int32).astype(self.x.dtype)

    def max_over_tokens(self, *arrays):
        """Computes the maxima of arrays [..., L, d] over tokens, without gradient: a list of arrays [..., d].

        Arrays must be -inf at padding, or 0 if none of their values is negative; an empty maximum is -inf.
        Over a mesh it is one collective, which may lose NaN. The all-reduce of a sum does not lose it.
        """
        maxima = [jnp.max(lax.stop_gradient(array), -2, initial=-jnp.inf) for array in arrays]
        return all_reduce(lax.pmax, maxima, self.x.ndim - 2, self.axis_name)

    def fold(self, values, combine):
        """Reduces values [..., L, d], 0 at padding, by ``combine``: [..., d].

        ``combine`` is an elementwise function of two arrays, associative and commutative, with neutral element 0.
        """
        values = _fold(values, combine)
        if self.axis_name is None:
            return values
        shards = lax.axis_size(axis_names(self.axis_name))
        own = lax.axis_index(axis_names(self.axis_name)) == jnp.arange(shards)
        own = jnp.reshape(own, (shards,) + (1,) * (values.ndim - 1) + (1,))
        gathered = lax.psum(jnp.moveaxis(jnp.where(own, values, 0), 0, -2), axis_names(self.axis_name))
        return _fold(gathered, combine)


class PackedChannels:
    """Packed tokens [N, d] with their :class:`~attnpool_flax.tokens.segments.Segments`; S is their number.

    ``x`` has the tokens in float32, or float64 if they are float64, and 0 at padding. Values of tokens are [N, d], and
    values of segments [S, d]; the last axis has size 1 for values that all channels share.
    """

    axis_name = None
    """None: packed tokens are not sharded over a mesh."""

    def __init__(self, x, segments, number):
        self.number, self.segments = number, segments
        self.real = self.segments.real[:, None]
        self.x = self.fill_padding(x.astype(computing_dtype(x.dtype)))

    def fill_padding(self, values, padding: float = 0):
        """Replaces the values [N, d] at padding by ``padding``."""
        return jnp.where(self.real, values, padding)

    def expand_to_features(self, weights):
        """Adds a channel axis to weights [N]; weights [N, d] are returned unchanged."""
        return weights if weights.ndim == self.x.ndim else weights[:, None]

    def broadcast_features(self, values):
        """Reshapes a number [] or [d] twice: to broadcast against values of segments, and against values of tokens."""
        values = jnp.reshape(values, (1, -1))
        return values, values

    @property
    def divisor(self):
        """A power of two above the number of tokens: a sum of values divided by it does not overflow."""
        return power_above(self.x.shape[0], self.x.dtype)

    def expand_to_tokens(self, values):
        """Expands the values [S, d] of segments to their tokens: [N, d]; arbitrary at padding."""
        return self.segments.expand_to_tokens(values if self.number else jnp.zeros((1, values.shape[-1]), values.dtype))

    def sum_over_tokens(self, *arrays):
        """Sums arrays [N, d] over the tokens of each segment: a list of arrays [S, d].

        The arrays must be 0 at padding. For None in place of an array, the result is the number of real tokens.
        """
        sums = [self.segments.counts()[:, None] if array is None else self.segments.sum(array) for array in arrays]
        return [array[: self.number].astype(self.x.dtype) for array in sums]

    def max_over_tokens(self, *arrays):
        """Computes the maxima of arrays [N, d] over the tokens of each segment, without gradient: a list of [S, d].

        Arrays must be -inf at padding, or 0 if none of their values is negative; an empty maximum is -inf.
        """
        return [self.segments.max(lax.stop_gradient(array))[: self.number] for array in arrays]

    def fold(self, values, combine):
        """Reduces values [N, d], 0 at padding, by ``combine``: [S, d]; ``combine`` is as in :class:`DenseChannels`.

        Tokens are combined in the order of their segments.
        """
        if not values.shape[0]:
            return jnp.zeros((self.number, values.shape[1]), values.dtype)
        order = jnp.argsort(self.segments.ids)  # stable: tokens of a segment keep their order
        return _by_scan(values, self.segments.ids, order, self.segments.count, combine)[: self.number]


def _by_scan(values, ids, order, count, combine):
    """Reduces values [N, d], 0 at padding, by segment: [count, d], by a segmented scan (Blelloch 1990).

    Args:
      values: [N, d].
      ids: [N], the segment of each token.
      order: [N], the tokens in the order of their segments.
      count: the number of segments, at least 1.
      combine: as in :meth:`DenseChannels.fold`.
    """
    ids = at(ids, order)
    starts = jnp.concatenate([jnp.ones(1, bool), ids[1:] != ids[:-1]])[:, None]

    def operator(a, b):
        return a[0] | b[0], jnp.where(b[0], b[1], combine(a[1], b[1]))

    _, scanned = _scan_of_blocks(operator, starts, at(values, order))
    sizes = jax.ops.segment_sum(jnp.ones_like(ids), ids, count)
    return jnp.where((sizes > 0)[:, None], at(scanned, jnp.maximum(jnp.cumsum(sizes) - 1, 0)), 0)


def _scan_of_blocks(operator, *arrays):
    """Computes the inclusive scan of arrays [N, ...] under an associative operator of two tuples of arrays.

    The scan of each block of LONGEST tokens is combined with the result of all blocks before.
    """
    length = arrays[0].shape[0]
    blocks = -(-length // LONGEST)
    filled = [resized(array, 0, blocks * LONGEST) for array in arrays]
    inside = [jnp.reshape(array, (blocks, LONGEST, *array.shape[1:])) for array in filled]
    inside = lax.associative_scan(operator, inside, axis=1)
    last = [array[:, -1] for array in inside]
    start = [jnp.zeros_like(array[0]) for array in last]
    _, before = lax.scan(lambda carry, own: (list(operator(carry, own)), carry), start, last)
    whole = operator([array[:, None] for array in before], inside)
    return tuple(resized(jnp.reshape(array, (blocks * LONGEST, *array.shape[2:])), 0, length) for array in whole)


def _fold(values, combine):
    """Reduces [..., L, d] to [..., d]: combines one half of the tokens with the other, until one is left."""
    if not known(values.shape[-2]):
        return _fold_symbolic(values, combine)
    while values.shape[-2] > 1:
        half = (values.shape[-2] + 1) // 2
        first, second = values[..., :half, :], values[..., half:, :]
        missing = [(0, 0)] * (values.ndim - 2) + [(0, half - second.shape[-2]), (0, 0)]
        values = combine(first, jnp.pad(second, missing))
    return jnp.sum(values, -2)


def _fold_symbolic(values, combine):
    """Computes :func:`_fold` of a symbolic number of tokens: parts of LONGEST tokens, and a scan over their results."""
    count = -(-values.shape[-2] // LONGEST)
    filled = resized(values, -2, count * LONGEST)
    values = _fold(jnp.reshape(filled, (*values.shape[:-2], count, LONGEST, values.shape[-1])), combine)
    first = jnp.zeros_like(values[..., 0, :])
    return lax.scan(lambda carry, token: (combine(carry, token), None), first, jnp.moveaxis(values, -2, 0))[0]


def exp_scores(channels, scores):
    """Returns the unnormalized weights of scores [..., L, d], or packed [N, d], and the largest scores.

    Args:
      channels: the tokens, :class:`DenseChannels` or :class:`PackedChannels`.
      scores: arbitrary at padding; the last axis has size 1 if all channels share them.

    Returns:
      (exp(score - max_score) of each token, 0 at padding; max_score [..., d] of each example or segment, without
      gradient, -inf if fully masked).
    """
    scores = channels.fill_padding(scores, -jnp.inf)
    (max_score,) = channels.max_over_tokens(scores)
    return channels.fill_padding(exponential(scores, channels.expand_to_tokens(max_score))), max_score
