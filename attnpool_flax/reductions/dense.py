"""Tokens that stand in one array with a mask."""

import copy
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics.remat import remat
from attnpool_flax.numerics.sizes import as_number, at_least_1, known, power_above
from attnpool_flax.reductions import cross, max, perceptron, softmax, sums
from attnpool_flax.reductions.collectives import PositionState, SumState, all_reduce_states, axis_names
from attnpool_flax.reductions.dispatch import log_dispatch, resolve, unify_varying


class Dense:
    """Tokens [..., L, d] in the caller's dtype, their mask [..., L] or None, and how they are walked.

    Every method takes and returns arrays with the batch axes; axes of 1 are shared by the examples. With an axis name the
    tokens are one device's part of a sequence that is split over a mesh; weights are of this part, results of the whole.
    """

    def __init__(self, x, mask, implementation, precision=None, axis_name=None, *, recompute=False):
        """Stores the tokens; with ``recompute`` whole products save no array of the size of x for the gradient."""
        self.mask, self.precision, self.dtype = mask, precision, sums.computing(x.dtype)
        self.x, self.requested, self.axis_name = x, implementation, axis_name
        self._recompute = recompute
        self.length = x.shape[-2]
        self.shards = 1 if axis_name is None else lax.axis_size(axis_names(axis_name))

    def sum(self, weights=None, part=1):
        """Sums this device's tokens under weights [..., L] or 1, divided by ``divisor``, a power of two: [..., d]."""
        batch = self._batch((weights, 1))
        if weights is not None:
            weights = self._flat(weights[..., None], 2)
        return self._spread(self._totals(weights, part, batch)[:, 0], batch)

    def _totals(self, weights, part, batch):
        """Returns [B, h, d]: the same under several weights [B or 1, L, h], all examples after each other."""
        x, mask, weights = unify_varying(self.x, self._flat(self.mask, 1, batch), weights)
        walk: Any = sums.tiled_total
        if not self._tiles(x, weights) or not known(self.length):  # of a symbol the part is an array
            walk = self._whole(sums.plain_total, *([3] if known(self.length) else []), 4)
        return walk(x, mask, weights, part, self.precision)

    def mean(self):
        """Returns [..., d]: the mean of the real tokens; the terms of its sum are small enough not to overflow."""
        (state,) = all_reduce_states([self.sum_state(True)], self.axis_name)
        return self.finalize_mean(state)

    def finalize_mean(self, state):
        """Returns the mean [..., d] from the state of ``summed(mean=True)`` over all devices."""
        if state.weight is None:
            length = at_least_1(self.length * self.shards)
            return state.sum / ((length if known(length) else as_number(length, self.dtype)) / self.divisor)
        return state.sum / (jnp.maximum(state.weight, 1).astype(self.dtype) / self.divisor)[..., None]

    def sum_state(self, mean):
        """Returns the state of this device's sum; for a mean its terms are small enough not to overflow."""
        count = self._number()
        if self.axis_name is not None and count is not None:
            count = count.astype(self.dtype)  # so that one collective takes it with the sum
        return SumState(self.sum(None, self.divisor if mean else 1), count)

    @property
    def divisor(self) -> Any:
        """A power of two that no sequence is longer than."""
        return power_above(self.length * self.shards, self.dtype)

    def sum_and_count(self):
        """Returns (sum [..., d] of the real tokens over :func:`sums.divisor_of` their number, their number [...])."""
        count = self._number()
        if count is None:
            count = jnp.full(self._batch(), as_number(self.length, jnp.int32), jnp.int32)
        return self.sum(None, self.divisor) * (self.divisor / sums.divisor_of(count.astype(self.dtype)))[
            ..., None
        ], count

    def _number(self):
        """Counts the real tokens of this device: [...]; None if all are."""
        return None if self.mask is None else jnp.sum(self.mask, -1, dtype=jnp.int32)

    def zero_padded(self):
        """Returns the tokens in the computing dtype, padding as 0."""
        x = self.x.astype(self.dtype)
        return x if self.mask is None else jnp.where(self.mask[..., None], x, 0)

    def minus(self, origin):
        """Returns the tokens minus an origin [d], in the computing dtype; padding holds anything."""
        other = copy.copy(self)
        other.x = self.x.astype(self.dtype) - jnp.reshape(origin, (1,) * (self.x.ndim - 1) + origin.shape)
        return other

    def exp_scores(self, logs):
        """Returns (exp(log - max), 0 at padding, of logs [..., h, L]; max [..., h] of this device, a constant)."""
        if self.mask is not None:
            logs = jnp.where(self.mask[..., None, :], logs, -jnp.inf)
        top = lax.stop_gradient(jnp.max(logs, -1, initial=-jnp.inf))
        return self.fill_padding(softmax.exponential(logs, top[..., None])), top

    def all_reduce_softmax(self, top, sums):
        """Returns (top [..., h], sums [..., h, d] of what has these tops) of this device as those of all."""
        if self.axis_name is None:
            return top, sums
        state = softmax.SoftmaxState(self._flat(top, 1), self._flat(jnp.zeros_like(top), 1), self._flat(sums, 2))
        (state,) = all_reduce_states([state], self.axis_name)
        return self._spread(state.top, top.shape[:-1]), self._spread(state.sum, top.shape[:-1])

    def softmax(self, queries, multiplier=None, scored=None, bias=None):
        """Averages under the softmax of the products with queries [..., h, d].

        Args:
          queries: in the computing dtype, scaled.
          multiplier: [..., h, L] of the weights that are averaged under, or None.
          scored: bool [...], or None: where it is False, all scores are 0, whatever the tokens hold.
          bias: [..., h, L], added to the products, or None.

        Returns:
          (pooled [..., h, d], weights [..., h, L]).
        """
        scores, state, batch = self.scored(queries, multiplier, scored, bias)
        (state,) = all_reduce_states([state], self.axis_name)
        return self.softmax_averages(scores, state, batch)[:2]

    def softmax_with_weight_sums(self, queries, multiplier=None, bias=None):
        """Computes :meth:`softmax`, and the sums [..., h] of the applied weights."""
        scores, state, batch = self.scored(queries, multiplier, None, bias)
        (state,) = all_reduce_states([state], self.axis_name)
        pooled, weights, shares = self.softmax_averages(scores, state, batch)
        if shares is None:
            shares = self.sum_over_tokens(weights if multiplier is None else weights * self.fill_padding(multiplier))
        return pooled, weights, shares

    def weighted_sums(self, queries, normalize, offsets=None, bias=None, multiplier=None):
        """Computes sums under other weights than a softmax's, by whole products.

        Args:
          queries: [..., h, d], in the computing dtype, scaled.
          normalize: from scores [..., h, L] and their mask to weights; over a mesh one that looks at each score by itself.
          offsets: [..., h], added to their products with the tokens, or None.
          bias: [..., h, L], added as well, or None.
          multiplier: [..., h, L] of the weights, or None.

        Returns:
          (pooled [..., h, d], weights [..., h, L], what the weights that are summed under add up to [..., h]).
        """
        log_dispatch("einsum")
        x, mask = self.zero_padded(), None if self.mask is None else self.mask[..., None, :]
        scores = jnp.einsum("...ld,...hd->...hl", x, queries, precision=self.precision)
        for more in (
            None if offsets is None else offsets[..., None],
            None if bias is None else self.fill_padding(bias),
        ):
            scores = scores if more is None else scores + more
        weights = normalize(scores, mask)
        taken = weights if multiplier is None else weights * self.fill_padding(multiplier)
        local = SumState(sums.weighted(taken, x, self.precision), jnp.sum(taken, -1))
        (state,) = all_reduce_states([local], self.axis_name)
        return state.sum, weights, state.weight

    def softmax_averages(self, scores, state, batch):
        """Returns (pooled, weights, shares) over all devices from :meth:`scored`; shares only over a mesh axis."""
        weights = self._spread(jnp.swapaxes(softmax.weights_of(scores, state), -1, -2), batch)
        pooled = self._spread(softmax.finalize(state), batch)
        return (pooled, weights, None) if self.axis_name is None else (pooled[..., :-1], weights, pooled[..., -1])

    def softmax_state(self, queries, bias=None):
        """Computes the :class:`~softmax.SoftmaxState` of products with scaled queries [..., h, d], with batch axes."""
        _, state, batch = self.scored(queries, bias=bias)
        return softmax.SoftmaxState(*(self._spread(part, batch) for part in state))

    def scored(self, queries, multiplier=None, scored=None, bias=None):
        """Returns (scores, this device's state, batch axes), examples flattened; over a mesh axis with the shares."""
        batch = self._batch((queries, 2), (multiplier, 2), (bias, 2))
        multiplier, bias = (
            None if array is None else self._flat(jnp.swapaxes(array, -1, -2), 2, batch) for array in (multiplier, bias)
        )
        arrays = unify_varying(
            self.x,
            self._flat(self.mask, 1, batch),
            self._flat(scored, 0),
            self._flat(queries, 2),
            multiplier,
            bias,
        )
        walk: Any = softmax.tiled
        if not self._tiles(arrays[0], arrays[3]):
            walk = self._whole(softmax.plain, 6)
        scores, state = walk(*arrays, self.precision)
        if self.axis_name is not None:
            state = softmax.with_shares(state, scores, arrays[1], arrays[4])
        return scores, state, batch

    def perceptron(self, kernel, bias, out_kernel, activation):
        """Returns (scores [..., h, L] of each token by itself, as :func:`hidden.plain` says, tokens to go on with).

        The batch axes of the scores are those of x.
        """
        after, arrays = copy.copy(self), unify_varying(self.x, self._real_in_any(), kernel, bias, out_kernel)
        walk: Any = perceptron.tiled
        if self._tiles(*arrays):
            scores, after.x = walk(*arrays, activation, self.precision, not self._recompute)
        else:
            walk = self._whole(perceptron.plain, 5, 6)
            scores = walk(*arrays, activation, self.precision)
        return jnp.swapaxes(scores, -1, -2), after

    def _real_in_any(self):
        """Returns bool of x's shape without d: tokens real in any example that shares them; None if all are."""
        if self.mask is None:
            return None
        pairs = enumerate(zip(self.x.shape[:-2], self.mask.shape[:-1], strict=True))
        shared = [axis for axis, (own, all_) in pairs if known(own) and own == 1 and all_ != 1]
        return jnp.any(self.mask, shared, keepdims=True) if shared else self.mask

    def softmax_of_scores(self, scores):
        """Computes :meth:`softmax` of given scores [..., h, L]."""
        scores, state, batch = self._under(scores)
        (state,) = all_reduce_states([state], self.axis_name)
        return self.softmax_averages(scores, state, batch)[:2]

    def weighted_sums_of_scores(self, scores, normalize):
        """Returns (sums [..., h, d], weights [..., h, L]) under given scores; ``normalize`` as in :meth:`weighed`."""
        weights = normalize(scores, None if self.mask is None else self.mask[..., None, :])
        batch = self._batch((weights, 2))
        total = self._totals(self._flat(jnp.swapaxes(weights, -1, -2), 2), 1, batch)
        (state,) = all_reduce_states([SumState(self._spread(total, batch), None)], self.axis_name)
        return state.sum, weights

    def softmax_state_of_scores(self, scores):
        """Computes :meth:`softmax_state` of given scores [..., h, L]."""
        _, state, batch = self._under(scores)
        return softmax.SoftmaxState(*(self._spread(part, batch) for part in state))

    def _under(self, scores):
        """Computes the result of :meth:`scored` from given scores."""
        batch = self._batch((scores, 2))
        scores, mask = unify_varying(
            self._flat(jnp.swapaxes(scores, -1, -2), 2, batch), self._flat(self.mask, 1, batch)
        )
        scores, state = softmax.under(scores, mask, lambda heights: self._totals(heights, 1, batch))
        return scores, softmax.with_shares(state, scores, mask, None) if self.axis_name else state, batch

    def cross_softmax(self, other, scale, mean):
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
        if not cross.fits(x, y) or not self._tiles(x, y):
            return None
        return back(cross.tiled(*unify_varying(x, y, *masks, jnp.asarray(scale, self.dtype)), mean, self.precision))

    def examples_with(self, other):
        """Returns ((x [B or 1, L, d], y [B or 1, T, d], both masks [B, ...] or None), map from B to the batch axes)."""
        batch = self._batch((other.x, 2), *(() if other.mask is None else [(other.mask, 1)]))
        masks = self._flat(self.mask, 1, batch), self._flat(other.mask, 1, batch)
        arrays = self._flat(self.x, 2), self._flat(other.x, 2), *masks
        return arrays, lambda tree: jax.tree.map(lambda array: self._spread(array, batch), tree)

    def max(self):
        """Returns [..., d]: the largest real value of each feature, 0 where nothing is real."""
        state, batch = self._extreme(False)
        return self._spread(max.finalize(state).astype(self.dtype), batch)

    def min(self):
        """Returns [..., d]: the smallest real value of each feature, 0 where nothing is real."""
        state, batch = self._extreme(True)
        return self._spread(0 - max.finalize(state).astype(self.dtype), batch)

    def max_state(self, least=False):
        """Computes the :class:`~extreme.ExtremeState` with batch axes, in the computing dtype; of -x with ``least``."""
        state, batch = self._extreme(least)
        state = state._replace(extreme=state.extreme.astype(self.dtype))
        return max.ExtremeState(*(self._spread(part, batch) for part in state))

    def _extreme(self, least):
        batch = self._batch()
        x, mask = unify_varying(self.x, self._flat(self.mask, 1, batch))
        walk: Any = max.tiled if self._tiles(x) else self._whole(max.plain, 2)
        if self.axis_name is None:
            return walk(x, mask, least), batch
        (state,) = all_reduce_states([walk(lax.stop_gradient(x), mask, least)], self.axis_name)
        return state._replace(
            extreme=max.reached(max.signed(self._flat(x, 2), least), mask, state, self.axis_name)
        ), batch

    def has_real_token(self):
        """Returns bool [...]: whether an example has a real token; None if all have."""
        if self.mask is not None:
            return jnp.any(self.mask, -1)
        return None if self.length else jnp.zeros(self.x.shape[:-2], bool)

    def _whole(self, walk, *static):
        """Runs a reduction by whole products; ``static`` are the positions of arguments that are not arrays."""
        return remat(walk, static) if self._recompute else walk

    def weighted_average(self, weights):
        """Returns [..., d]: the average under weights [..., L], 0 where they sum to 0, in one collective.

        The weights are not rescaled to the largest one, which no device knows: products with x must not overflow.
        """
        shares = weights / self.divisor
        local = SumState(self.sum(shares), jnp.sum(shares, -1))
        ((total, weight),) = all_reduce_states([local], self.axis_name)
        return jnp.where(weight[..., None] == 0, 0, total / jnp.where(weight == 0, 1, weight)[..., None])

    def token_at(self, position):
        """Takes this device's token [..., d] at a position [...]; 0 if fully masked. A shared x is not copied."""
        x = jnp.broadcast_to(self.x, position.shape + self.x.shape[-2:])
        token = jnp.take_along_axis(x, position[..., None, None], -2, mode="clip")[..., 0, :]
        some = self.has_real_token()
        return token if some is None else jnp.where(some[..., None], token, 0)

    def end_token(self, position, last):
        """Returns [..., d]: the first real token of all, or the last; this device's is at ``position`` [...]."""
        token = self.token_at(position)
        if self.axis_name is None:
            return token
        some, shard = self.has_real_token(), lax.axis_index(axis_names(self.axis_name))
        rank = jnp.broadcast_to(shard if last else self.shards - 1 - shard, position.shape)
        rank = rank if some is None else jnp.where(some, rank, -1)
        return all_reduce_states([PositionState(rank, token)], self.axis_name)[0].token

    def fill_padding(self, weights):
        """Zeroes the weights [..., L] or [..., h, L] of padding."""
        if self.mask is None:
            return weights
        mask = self.mask if weights.ndim == self.mask.ndim else self.mask[..., None, :]
        return jnp.where(mask, weights, 0)

    def sum_over_tokens(self, weights):
        """Sums weights over tokens: [...], or [..., h]."""
        return jnp.sum(weights, -1)

    def max_over_tokens(self, weights):
        """Computes the max over tokens of [..., L], at least 0: [...]."""
        return jnp.max(weights, -1, initial=0)

    def expand_to_tokens(self, values):
        """Expands values of examples [...] to broadcast against values of tokens: [..., 1]."""
        return values[..., None]

    def _tiles(self, *arrays):
        return resolve(self.requested, *arrays) == "tiles"

    def _batch(self, *others):
        """Broadcasts the batch axes of tokens, mask and others: pairs (array or None, number of its own axes)."""
        shapes = [self.x.shape[:-2]] + ([] if self.mask is None else [self.mask.shape[:-1]])
        shapes += [array.shape[: array.ndim - own] for array, own in others if array is not None]
        return tuple(_common(sizes) for sizes in zip(*shapes, strict=True))

    @staticmethod
    def _flat(array, own, batch=None):
        """Reshapes [..., own axes] to [B, own axes]; B is 1 for a shared array, unless it is broadcast to ``batch``."""
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
    """Returns the broadcast size of an axis; a symbol is not 1."""
    return next((size for size in sizes if not (known(size) and size == 1)), 1)
