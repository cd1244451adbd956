"""Tokens that stand in one array with a mask."""

import math
from typing import Any

import jax
import jax.numpy as jnp

from attnpool_flax.recomputing import recomputed
from attnpool_flax.reductions import extreme, mutual, softmax, sums
from attnpool_flax.reductions.implementations import alike, chosen


class Dense:
    """Tokens [..., L, d] in the caller's dtype, their mask [..., L] or None, and how they are walked.

    Every method takes and returns arrays with the batch axes; axes of 1 are shared by the examples.
    """

    def __init__(self, x, mask, implementation, precision=None, *, recompute=False):
        """``recompute``: whole products keep nothing like x for the gradient, as a loop over chunks would keep it of all."""
        self.mask, self.precision, self.dtype = mask, precision, sums.computing(x.dtype)
        self._recompute = recompute
        self.x, self.asked = x, implementation
        self.length = x.shape[-2]

    def total(self, weights=None, part=1):
        """[..., d]: the sum of the tokens under weights [..., L] or 1, over ``part``, a power of two."""
        batch = self._batch((weights, 1))
        x, mask, weights = alike(self._flat(self.x, 2), self._flat(self.mask, 1, batch), self._flat(weights, 1))
        walk = sums.tiled_total if self._tiles(x, weights) else self._whole(sums.plain_total, 3, 4)
        return self._spread(walk(x, mask, weights, part, self.precision), batch)

    def mean(self):
        """[..., d]: the mean of the real tokens; the terms of its sum are small enough not to overflow."""
        part = 2 ** self.length.bit_length()
        if self.mask is None:
            return self.total(None, part) / (max(self.length, 1) / part)
        count = jnp.maximum(jnp.sum(self.mask, -1, dtype=jnp.int32), 1).astype(self.dtype)
        return self.total(None, part) / (count / part)[..., None]

    def counted(self):
        """(sum [..., d] of the real tokens over :func:`sums.part_of` their number, their number [...])."""
        part = 2 ** self.length.bit_length()
        if self.mask is None:
            count = jnp.full(self._batch(), self.length, jnp.int32)
        else:
            count = jnp.sum(self.mask, -1, dtype=jnp.int32)
        return self.total(None, part) * (part / sums.part_of(count.astype(self.dtype)))[..., None], count

    def clean(self):
        """The tokens in the computing dtype, padding as 0."""
        x = self.x.astype(self.dtype)
        return x if self.mask is None else jnp.where(self.mask[..., None], x, 0)

    def softmax(self, queries, multiplier=None, scored=None):
        """Averages under the softmax of the products with queries [..., h, d].

        Args:
          queries: in the computing dtype, scaled.
          multiplier: [..., h, L] of the weights that are averaged under, or None.
          scored: bool [...], or None: where it is False, all scores are 0, whatever the tokens hold.

        Returns:
          (pooled [..., h, d], weights [..., h, L]).
        """
        scores, state, batch = self._walked(queries, multiplier, scored)
        weights = jnp.swapaxes(softmax.weights_of(scores, state), -1, -2)
        return self._spread(softmax.finalize(state), batch), self._spread(weights, batch)

    def softmax_state(self, queries):
        """The :class:`~softmax.SoftmaxState` with the batch axes, of the products with queries [..., h, d], scaled."""
        _, state, batch = self._walked(queries, None, None)
        return softmax.SoftmaxState(*(self._spread(part, batch) for part in state))

    def _walked(self, queries, multiplier, scored):
        """(scores, state, batch axes) of all examples after each other."""
        batch = self._batch((queries, 2), (multiplier, 2))
        if multiplier is not None:
            multiplier = self._flat(jnp.swapaxes(multiplier, -1, -2), 2, batch)
        arrays = alike(
            self._flat(self.x, 2),
            self._flat(self.mask, 1, batch),
            self._flat(scored, 0),
            self._flat(queries, 2),
            multiplier,
        )
        walk: Any = softmax.tiled
        if not self._tiles(arrays[0], arrays[3]):
            walk = self._whole(softmax.plain, 5)
        scores, state = walk(*arrays, self.precision)
        return scores, state, batch

    def beside(self, other, scale, mean):
        """Averages under the softmax of the products with the other's sum or mean, of both sides in one walk.

        Args:
          other: tokens [..., T, d].
          scale: of the products.
          mean: whether the products are with the mean.

        Returns:
          ((pooled [..., d], weights [..., L]), the same of the other), or None where one walk is not worth it.
        """
        (x, y, *masks), back = self.examples_with(other)
        if not mutual.fits(x, y) or not self._tiles(x, y):
            return None
        return back(mutual.tiled(*alike(x, y, *masks, jnp.asarray(scale, self.dtype)), mean, self.precision))

    def examples_with(self, other):
        """((x [B or 1, L, d], y [B or 1, T, d], both masks [B, ...] or None), from axes B to the batch axes)."""
        batch = self._batch((other.x, 2), *(() if other.mask is None else [(other.mask, 1)]))
        masks = self._flat(self.mask, 1, batch), self._flat(other.mask, 1, batch)
        arrays = self._flat(self.x, 2), self._flat(other.x, 2), *masks
        return arrays, lambda tree: jax.tree.map(lambda array: self._spread(array, batch), tree)

    def largest(self):
        """[..., d]: the largest real value of each feature, 0 where nothing is real."""
        state, batch = self._extreme()
        return self._spread(extreme.finalize(state).astype(self.dtype), batch)

    def extreme_state(self):
        """The :class:`~extreme.ExtremeState` with the batch axes, in the computing dtype."""
        state, batch = self._extreme()
        state = state._replace(extreme=state.extreme.astype(self.dtype))
        return extreme.ExtremeState(*(self._spread(part, batch) for part in state))

    def _extreme(self):
        batch = self._batch()
        x, mask = alike(self._flat(self.x, 2), self._flat(self.mask, 1, batch))
        walk = extreme.tiled if self._tiles(x) else self._whole(extreme.plain)
        return walk(x, mask), batch

    def real(self):
        """Bool [...]: which examples have any real token; None if all have."""
        if self.mask is not None:
            return jnp.any(self.mask, -1)
        return None if self.length else jnp.zeros(self.x.shape[:-2], bool)

    def _whole(self, walk, *static):
        """A walk by whole products; ``static`` are the places of arguments that are no arrays."""
        return recomputed(walk, static) if self._recompute else walk

    def kept(self, weights):
        """Weights [..., L] or [..., h, L] with those of padding as 0."""
        if self.mask is None:
            return weights
        mask = self.mask if weights.ndim == self.mask.ndim else self.mask[..., None, :]
        return jnp.where(mask, weights, 0)

    def sum_of(self, weights):
        """[...], or [..., h]: the sums of what a token has."""
        return jnp.sum(weights, -1)

    def most_of(self, weights):
        """[...]: the largest of what a token has, [..., L]; 0 where nothing is."""
        return jnp.max(weights, -1, initial=0)

    def each(self, values):
        """[..., 1]: what the example has, [...], beside what a token has."""
        return values[..., None]

    def _tiles(self, *arrays):
        return chosen(self.asked, *arrays) == "tiles"

    def _batch(self, *others):
        """The batch axes of the tokens, the mask and others: pairs of an array or None and the number of its own axes."""
        shapes = [self.x.shape[:-2]] + ([] if self.mask is None else [self.mask.shape[:-1]])
        shapes += [array.shape[: array.ndim - own] for array, own in others if array is not None]
        return tuple(_common(sizes) for sizes in zip(*shapes, strict=True))

    @staticmethod
    def _flat(array, own, batch=None):
        """[..., own axes] as [B, own axes]; B is 1 for what is shared, unless ``batch`` says what it is spread to."""
        if array is None:
            return None
        axes = array.shape[array.ndim - own :]
        if batch is not None:
            array = jnp.broadcast_to(array, (*batch, *axes))
        return jnp.reshape(array, (math.prod(array.shape[: array.ndim - own]), *axes))

    @staticmethod
    def _spread(array, batch):
        return jnp.reshape(array, (*batch, *array.shape[1:]))


def _common(sizes: Any):
    """The size of an axis among arrays of which some have 1 there; a symbol is no 1."""
    return next((size for size in sizes if not (isinstance(size, int) and size == 1)), 1)
