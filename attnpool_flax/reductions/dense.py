"""Tokens that stand in one array with a mask."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.reductions import extreme, mutual, softmax, sums
from attnpool_flax.reductions.implementations import alike, chosen
from attnpool_flax.reductions.mesh import PositionState, SumState, names_of, over_mesh


class Dense:
    """Tokens [..., L, d] in the caller's dtype, their mask [..., L] or None, and how they are walked.

    Every method takes and returns arrays with the batch axes; axes of 1 are shared by the examples. With an axis name the
    tokens are one device's part of a sequence that is split over a mesh; weights are of this part, results of the whole.
    """

    def __init__(self, x, mask, implementation, precision=None, axis_name=None):
        self.mask, self.precision, self.dtype = mask, precision, sums.computing(x.dtype)
        self.x, self.asked, self.axis_name = x, implementation, axis_name
        self.length = x.shape[-2]
        self.shards = 1 if axis_name is None else lax.axis_size(names_of(axis_name))

    def total(self, weights=None, part=1):
        """[..., d]: the sum of this device's tokens under weights [..., L] or 1, over ``part``, a power of two."""
        batch = self._batch((weights, 1))
        x, mask, weights = alike(self._flat(self.x, 2), self._flat(self.mask, 1, batch), self._flat(weights, 1))
        walk = sums.tiled_total if self._tiles(x, weights) else sums.plain_total
        return self._spread(walk(x, mask, weights, part, self.precision), batch)

    def mean(self):
        """[..., d]: the mean of the real tokens; the terms of its sum are small enough not to overflow."""
        (state,) = over_mesh([self.summed(True)], self.axis_name)
        return mean_of(state, self)

    def summed(self, mean):
        """The state of this device's sum; for a mean its terms are small enough not to overflow."""
        count = None if self.mask is None else jnp.sum(self.mask, -1, dtype=jnp.int32)
        if self.axis_name is not None and count is not None:
            count = count.astype(self.dtype)  # so that one collective takes it with the sum
        return SumState(self.total(None, self.part if mean else 1), count)

    @property
    def part(self):
        """A power of two that no sequence is longer than."""
        return 2 ** (self.length * self.shards).bit_length()

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
        return softmax_together(self.scored(queries, multiplier, scored))[0][:2]

    def scored(self, queries, multiplier=None, scored=None):
        """What :func:`softmax_together` takes: this device's part of :meth:`softmax`."""
        batch = self._batch((queries, 2), (multiplier, 2))
        if multiplier is not None:
            multiplier = self._flat(jnp.swapaxes(multiplier, -1, -2), 2, batch)
        x, mask, scored, queries, multiplier = alike(
            self._flat(self.x, 2),
            self._flat(self.mask, 1, batch),
            self._flat(scored, 0),
            self._flat(queries, 2),
            multiplier,
        )
        walk: Any = softmax.tiled if self._tiles(x, queries) else softmax.plain
        scores, state = walk(x, mask, scored, queries, multiplier, self.precision)
        if self.axis_name is not None:
            state = softmax.with_shares(state, scores, mask, multiplier)
        return self, batch, scores, state

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
        batch = self._batch()
        x, mask = alike(self._flat(self.x, 2), self._flat(self.mask, 1, batch))
        if self.axis_name is not None:
            local = extreme.state(lax.stop_gradient(x), mask, self._tiles(x))
            (state,) = over_mesh([local], self.axis_name)
            return self._spread(extreme.reached(x, mask, state, self.axis_name), batch)
        walk = extreme.tiled if self._tiles(x) else extreme.plain
        return self._spread(walk(x, mask).astype(self.dtype), batch)

    def real(self):
        """Bool [...]: which examples have any real token; None if all have."""
        if self.mask is not None:
            return jnp.any(self.mask, -1)
        return None if self.length else jnp.zeros(self.x.shape[:-2], bool)

    def average(self, weights):
        """[..., d]: the average under weights [..., L], 0 where they sum to 0, in one collective.

        The weights are not rescaled to the largest one, which no device knows: products with x must not overflow.
        """
        shares = weights / self.part
        local = SumState(self.total(shares), jnp.sum(shares, -1))
        ((total, weight),) = over_mesh([local], self.axis_name)
        return jnp.where(weight[..., None] == 0, 0, total / jnp.where(weight == 0, 1, weight)[..., None])

    def at(self, position, last):
        """[..., d]: the first real token of all, or the last; this device's is at ``position`` [...]."""
        x = jnp.broadcast_to(self.x, position.shape + self.x.shape[-2:])
        token = jnp.take_along_axis(x, position[..., None, None], -2, mode="clip")[..., 0, :]
        some = self.real()
        if self.axis_name is None:
            return token if some is None else jnp.where(some[..., None], token, 0)
        shard = lax.axis_index(names_of(self.axis_name))
        rank = jnp.broadcast_to(shard if last else self.shards - 1 - shard, position.shape)
        rank = rank if some is None else jnp.where(some, rank, -1)
        return over_mesh([PositionState(rank, token)], self.axis_name)[0].token

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


def summed_together(mean, *tokens):
    """The sum or the mean [..., d] of each of several sequences, and which examples have any real token, or None."""
    states = over_mesh([each.summed(mean) for each in tokens], tokens[0].axis_name)
    sums = [mean_of(state, each) if mean else state.sum for state, each in zip(states, tokens, strict=True)]
    real = [each.real() if each.mask is None else state.weight > 0 for state, each in zip(states, tokens, strict=True)]
    return sums, real


def mean_of(state, tokens):
    """The mean [..., d] of what ``tokens.summed(mean=True)`` gave."""
    length = tokens.length * tokens.shards
    if state.weight is None:
        return state.sum / (max(length, 1) / tokens.part)
    return state.sum / (jnp.maximum(state.weight, 1).astype(tokens.dtype) / tokens.part)[..., None]


def softmax_together(*walked):
    """[(pooled [..., h, d], weights [..., h, L], shares [..., h])] of what :meth:`Dense.scored` gave of each.

    The shares are what the weights that are averaged under sum to, over a mesh; None elsewhere, where the weights say it.
    All states meet in the same two collectives.
    """
    states = over_mesh([state for *_, state in walked], walked[0][0].axis_name)
    found = []
    for (tokens, batch, scores, _), state in zip(walked, states, strict=True):
        weights = tokens._spread(jnp.swapaxes(softmax.weights_of(scores, state), -1, -2), batch)
        pooled, shares = tokens._spread(softmax.finalize(state), batch), None
        if tokens.axis_name is not None:
            pooled, shares = pooled[..., :-1], pooled[..., -1]
        found.append((pooled, weights, shares))
    return found


def _common(sizes: Any):
    """The size of an axis among arrays of which some have 1 there; a symbol is no 1."""
    return next((size for size in sizes if not (isinstance(size, int) and size == 1)), 1)
