"""Tokens that stand in one array with a mask."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.recomputing import recomputed
from attnpool_flax.reductions import extreme, mutual, softmax, sums
from attnpool_flax.reductions.implementations import alike, chosen
from attnpool_flax.reductions.mesh import PositionState, SumState, names_of, over_mesh


class Dense:
    """Tokens [..., L, d] in the caller's dtype, their mask [..., L] or None, and how they are walked.

    Every method takes and returns arrays with the batch axes; axes of 1 are shared by the examples. With an axis name the
    tokens are one device's part of a sequence that is split over a mesh; weights are of this part, results of the whole.
    """

    def __init__(self, x, mask, implementation, precision=None, axis_name=None, *, recompute=False):
        """``recompute``: whole products keep nothing like x for the gradient, as a loop over chunks would keep it of all."""
        self.mask, self.precision, self.dtype = mask, precision, sums.computing(x.dtype)
        self.x, self.asked, self.axis_name = x, implementation, axis_name
        self._recompute = recompute
        self.length = x.shape[-2]
        self.shards = 1 if axis_name is None else lax.axis_size(names_of(axis_name))

    def total(self, weights=None, part=1):
        """[..., d]: the sum of this device's tokens under weights [..., L] or 1, over ``part``, a power of two."""
        batch = self._batch((weights, 1))
        x, mask, weights = alike(self.x, self._flat(self.mask, 1, batch), self._flat(weights, 1))
        walk = sums.tiled_total if self._tiles(x, weights) else self._whole(sums.plain_total, 3, 4)
        return self._spread(walk(x, mask, weights, part, self.precision), batch)

    def mean(self):
        """[..., d]: the mean of the real tokens; the terms of its sum are small enough not to overflow."""
        (state,) = over_mesh([self.summed(True)], self.axis_name)
        return self.mean_of(state)

    def mean_of(self, state):
        """The mean [..., d] of what ``summed(mean=True)`` gave, of all devices."""
        if state.weight is None:
            return state.sum / (max(self.length * self.shards, 1) / self.part)
        return state.sum / (jnp.maximum(state.weight, 1).astype(self.dtype) / self.part)[..., None]

    def summed(self, mean):
        """The state of this device's sum; for a mean its terms are small enough not to overflow."""
        count = self._number()
        if self.axis_name is not None and count is not None:
            count = count.astype(self.dtype)  # so that one collective takes it with the sum
        return SumState(self.total(None, self.part if mean else 1), count)

    @property
    def part(self):
        """A power of two that no sequence is longer than."""
        return 2 ** (self.length * self.shards).bit_length()

    def counted(self):
        """(sum [..., d] of the real tokens over :func:`sums.part_of` their number, their number [...])."""
        count = self._number()
        if count is None:
            count = jnp.full(self._batch(), self.length, jnp.int32)
        return self.total(None, self.part) * (self.part / sums.part_of(count.astype(self.dtype)))[..., None], count

    def _number(self):
        """[...]: how many of this device's tokens are real; None if all are."""
        return None if self.mask is None else jnp.sum(self.mask, -1, dtype=jnp.int32)

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
        scores, state, batch = self.scored(queries, multiplier, scored)
        (state,) = over_mesh([state], self.axis_name)
        return self.averages(scores, state, batch)[:2]

    def softmax_with_shares(self, queries, multiplier=None):
        """As :meth:`softmax`, with [..., h]: what the weights that are averaged under sum to."""
        scores, state, batch = self.scored(queries, multiplier)
        (state,) = over_mesh([state], self.axis_name)
        pooled, weights, shares = self.averages(scores, state, batch)
        if shares is None:
            shares = self.sum_of(weights if multiplier is None else weights * self.kept(multiplier))
        return pooled, weights, shares

    def averages(self, scores, state, batch):
        """(pooled, weights, shares) of what :meth:`scored` gave, of all devices; no shares where the weights say it."""
        weights = self._spread(jnp.swapaxes(softmax.weights_of(scores, state), -1, -2), batch)
        pooled = self._spread(softmax.finalize(state), batch)
        return (pooled, weights, None) if self.axis_name is None else (pooled[..., :-1], weights, pooled[..., -1])

    def softmax_state(self, queries):
        """The :class:`~softmax.SoftmaxState` with the batch axes, of the products with queries [..., h, d], scaled."""
        _, state, batch = self.scored(queries)
        return softmax.SoftmaxState(*(self._spread(part, batch) for part in state))

    def scored(self, queries, multiplier=None, scored=None):
        """(scores, state of this device, batch axes) of all examples after each other; with a mesh axis the shares as well."""
        batch = self._batch((queries, 2), (multiplier, 2))
        if multiplier is not None:
            multiplier = self._flat(jnp.swapaxes(multiplier, -1, -2), 2, batch)
        arrays = alike(
            self.x,
            self._flat(self.mask, 1, batch),
            self._flat(scored, 0),
            self._flat(queries, 2),
            multiplier,
        )
        walk: Any = softmax.tiled
        if not self._tiles(arrays[0], arrays[3]):
            walk = self._whole(softmax.plain, 5)
        scores, state = walk(*arrays, self.precision)
        if self.axis_name is not None:
            state = softmax.with_shares(state, scores, arrays[1], arrays[4])
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
        if self.axis_name is not None:
            return None
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
        state, batch = self._extreme(False)
        return self._spread(extreme.finalize(state).astype(self.dtype), batch)

    def smallest(self):
        """[..., d]: the smallest real value of each feature, 0 where nothing is real."""
        state, batch = self._extreme(True)
        return self._spread(0 - extreme.finalize(state).astype(self.dtype), batch)

    def extreme_state(self, least=False):
        """The :class:`~extreme.ExtremeState` with the batch axes, in the computing dtype; with ``least`` that of -x."""
        state, batch = self._extreme(least)
        state = state._replace(extreme=state.extreme.astype(self.dtype))
        return extreme.ExtremeState(*(self._spread(part, batch) for part in state))

    def _extreme(self, least):
        batch = self._batch()
        x, mask = alike(self.x, self._flat(self.mask, 1, batch))
        walk: Any = extreme.tiled if self._tiles(x) else self._whole(extreme.plain, 2)
        if self.axis_name is None:
            return walk(x, mask, least), batch
        (state,) = over_mesh([walk(lax.stop_gradient(x), mask, least)], self.axis_name)
        return state._replace(
            extreme=extreme.reached(extreme.signed(self._flat(x, 2), least), mask, state, self.axis_name)
        ), batch

    def real(self):
        """Bool [...]: which examples have any real token; None if all have."""
        if self.mask is not None:
            return jnp.any(self.mask, -1)
        return None if self.length else jnp.zeros(self.x.shape[:-2], bool)

    def _whole(self, walk, *static):
        """A walk by whole products; ``static`` are the places of arguments that are no arrays."""
        return recomputed(walk, static) if self._recompute else walk

    def average(self, weights):
        """[..., d]: the average under weights [..., L], 0 where they sum to 0, in one collective.

        The weights are not rescaled to the largest one, which no device knows: products with x must not overflow.
        """
        shares = weights / self.part
        local = SumState(self.total(shares), jnp.sum(shares, -1))
        ((total, weight),) = over_mesh([local], self.axis_name)
        return jnp.where(weight[..., None] == 0, 0, total / jnp.where(weight == 0, 1, weight)[..., None])

    def at(self, position):
        """[..., d]: this device's token at a position [...]; 0 where nothing is real. An x that is shared is not copied."""
        x = jnp.broadcast_to(self.x, position.shape + self.x.shape[-2:])
        token = jnp.take_along_axis(x, position[..., None, None], -2, mode="clip")[..., 0, :]
        some = self.real()
        return token if some is None else jnp.where(some[..., None], token, 0)

    def at_end(self, position, last):
        """[..., d]: the first real token of all, or the last; this device's is at ``position`` [...]."""
        token = self.at(position)
        if self.axis_name is None:
            return token
        some, shard = self.real(), lax.axis_index(names_of(self.axis_name))
        rank = jnp.broadcast_to(shard if last else self.shards - 1 - shard, position.shape)
        rank = rank if some is None else jnp.where(some, rank, -1)
        return over_mesh([PositionState(rank, token)], self.axis_name)[0].token

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
