"""Dense tokens: padded sequences [..., L, d] with a mask, and every reduction over them; h is the number of queries."""

import copy
import functools
import math
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.numerics import platforms
from attnpool_flax.numerics.elementwise import keep_real
from attnpool_flax.numerics.platforms import unify_varying
from attnpool_flax.numerics.remat import remat
from attnpool_flax.numerics.rounding import power_above
from attnpool_flax.numerics.sizes import as_number, at_least_1, common_size, known
from attnpool_flax.numerics.softmax import share_beside_sink
from attnpool_flax.numerics.sums import LONGEST, computing_dtype, divisor_of, even_part, with_gradient_of
from attnpool_flax.tokens.channels import DenseChannels
from attnpool_flax.tokens.mesh import all_reduce_states, axis_names
from attnpool_flax.tokens.pieces import OnAccelerators, Piece, Whole, extremes, masked_scores, softmax, weights_of
from attnpool_flax.tokens.protocol import Tokens, given, times_share
from attnpool_flax.tokens.states import EndToken, WeightedSum, merge_pieces
from attnpool_flax.tokens.tiles import folding, tiling_of, unless_differentiated


class Dense(Tokens):
    """Tokens [..., L, d] in the caller's dtype, and their mask [..., L] or None.

    Arrays have all batch axes; along one of size 1 the examples share the array. With an axis name, the tokens are one
    device's shard of sequences over a mesh: weights are of the shard, and pooled vectors of the whole sequence. Methods
    without a docstring have that of :class:`~attnpool_flax.tokens.protocol.Tokens`.
    """

    def __init__(self, x, mask, precision=None, axis_name=None, *, of_chunk=False):
        """Stores the tokens. With ``of_chunk`` the backward pass saves only x, which a scan over chunks does not copy."""
        self.of_chunk = of_chunk
        self.x, self.mask, self.precision, self.axis_name = x, mask, precision, axis_name
        self.dtype, self.length = computing_dtype(x.dtype), x.shape[-2]
        self.shards = 1 if axis_name is None else lax.axis_size(axis_names(axis_name))

    # ----------------------------------------------------------------------------------------------------------
    # Softmax

    def softmax_of(self, score, examples=(), shared=(), tokens=(), multiplier=None, bias=None, sink=None):
        scores, state, batch = self.local_softmax(score, examples, shared, tokens, multiplier, bias)
        state = self._all_reduce(state)
        found = self.softmax_averages(scores, state, batch, multiplier)
        if sink is None:
            return found
        share = share_beside_sink(self._unflatten(state.top, batch), self._unflatten(state.total, batch), sink)
        pooled, weights, sums = found
        return times_share(share, pooled, weights, share[..., None], sums)

    def local_softmax(self, score, examples=(), shared=(), tokens=(), multiplier=None, bias=None):
        """Returns (scores [B, L, h], this device's :class:`AttentionState`, batch axes); arguments of :meth:`softmax_of`.

        Over a mesh the sum has one more feature: the sum of the unnormalized weights after the multiplier.
        """

        def body(piece, multiplier, bias, *arrays):
            scores, state, applied = softmax(piece, score, arrays, multiplier, bias)
            if self.axis_name is not None:
                sums = state.total if applied is None else applied
                state = replace(state, sum=jnp.concatenate([state.sum, sums[..., None]], -1))
            return scores, state

        return self._over(body, (multiplier, bias, *tokens), examples, shared, in_place=not shared)

    def softmax_averages(self, scores, state, batch, multiplier=None):
        """Returns (pooled [..., h, d], weights [..., h, L], sums [..., h] of the weights after the multiplier)."""
        whole = Piece(jnp.zeros((1, 1, 1)), None, None, self.dtype)  # verbs that read no tokens
        weights = self._unflatten(jnp.swapaxes(weights_of(whole, scores, state), -1, -2), batch)
        pooled = self._unflatten(state.finalized(), batch)
        if self.axis_name is not None:
            return pooled[..., :-1], weights, pooled[..., -1]
        if multiplier is not None:
            return pooled, weights, jnp.sum(weights * self.fill_padding(multiplier), -1)
        total = lax.stop_gradient(state.total)  # of a fully masked row 0, else the weights sum to 1
        return pooled, weights, self._unflatten(total / jnp.where(total == 0, 1, total), batch)

    def softmax_state(self, score, examples=(), shared=(), tokens=(), bias=None):
        """Computes a chunk's :class:`AttentionState`; ``...`` is its B. The arguments are those of :meth:`softmax_of`."""
        _, state, batch = self.local_softmax(score, examples, shared, tokens, None, bias)
        return jax.tree.map(lambda array: self._unflatten(array, batch), state)

    def scores_of(self, score, examples=(), shared=(), bias=None):
        def body(piece, bias, *arrays):
            return masked_scores(piece, score(piece, *arrays), bias), ()

        scores, _, batch = self._over(body, (bias,), examples, shared, in_place=not shared)
        return self._unflatten(jnp.swapaxes(scores, -1, -2), batch)

    def softmax_sums(self, scores):
        _, state, batch = self.local_softmax(given, tokens=(scores,))
        state = self._all_reduce(state)
        return self._unflatten(state.top, batch), self._unflatten(state.sum, batch)[..., : self.x.shape[-1]]

    def examples_with(self, other):
        """Returns ((x [B or 1, L, d], y [B or 1, T, d], both masks or None), function that unflattens B of a tree)."""
        batch = self._batch((other.x, 2), *(() if other.mask is None else [(other.mask, 1)]))
        masks = self._flatten(self.mask, 1, batch), self._flatten(other.mask, 1, batch)
        arrays = self._flatten(self.x, 2), self._flatten(other.x, 2), *masks
        return arrays, lambda tree: jax.tree.map(lambda array: self._unflatten(array, batch), tree)

    # ----------------------------------------------------------------------------------------------------------
    # Sums and means

    def sum(self):
        return self._all_reduce(self.sum_state(False)).sum

    def _sum(self, divisor):
        """Sums this device's real tokens, each divided by ``divisor``: [..., d]."""
        divisor = jnp.asarray(divisor, self.dtype)

        def body(piece, divisor):
            return (), WeightedSum(piece.sum(divisor), None)

        constant = self._with(x=lax.stop_gradient(self.x))
        _, state, batch = constant._over(body, shared=(divisor,))
        # the gradient of whole tokens is one expression, which XLA adds to that of a loop in one write
        return with_gradient_of(self._unflatten(state.sum, batch), remat(_plain_sum)(self.x, self.mask, divisor))

    def weighted_sums_of(self, weights):
        def body(piece, weights):
            return (), WeightedSum(piece.pull(piece.blank(weights, 0)), None)

        _, state, batch = self._over(body, (weights,))
        return self._unflatten(state.sum, batch)

    def mean(self):
        """Averages the real tokens: [..., d]; 0 for a fully masked row. Terms are divided first to avoid overflow."""
        return self.finalize_mean(self._all_reduce(self.sum_state(True)))

    def finalize_mean(self, state):
        """Returns the mean [..., d] from the merged ``sum_state(mean=True)`` of all devices."""
        if state.weight is None:
            length = at_least_1(self.length * self.shards)
            return state.sum / ((length if known(length) else as_number(length, self.dtype)) / self.divisor)
        return state.sum / (jnp.maximum(state.weight, 1).astype(self.dtype) / self.divisor)[..., None]

    def sum_of_map(self, function, width, *parameters):
        def body(piece, *parameters):
            return (), WeightedSum(piece.total(piece.blank(function(piece.x, *parameters), 0)), None)

        _, state, batch = self._over(body, shared=parameters, in_place=False, width=width)
        return self._all_reduce(WeightedSum(self._unflatten(state.sum, batch), None)).sum

    def channels(self):
        return DenseChannels(self.x, self.mask, self.axis_name)

    def sum_state(self, mean):
        """Computes the :class:`WeightedSum` of this device; for a mean, each term is divided by :attr:`divisor`."""
        count = self._count()
        if self.axis_name is not None and count is not None:
            count = count.astype(self.dtype)  # shares the collective of the sum
        return WeightedSum(self._sum(self.divisor if mean else 1), count)

    @property
    def divisor(self) -> Any:
        """A power of two above the number of tokens: a sum of tokens divided by it does not overflow."""
        return power_above(self.length * self.shards, self.dtype)

    def sum_and_count(self):
        """Returns (sum [..., d] of a chunk's real tokens, divided by :func:`divisor_of` of the count; count)."""
        count = self._count()
        if count is None:
            count = jnp.full(self._batch(), as_number(self.length, jnp.int32), jnp.int32)
        ratio = self.divisor / divisor_of(count.astype(self.dtype))
        return self._sum(self.divisor) * ratio[..., None], count

    def _count(self):
        """Counts the real tokens of this device: [...]; None without a mask."""
        return None if self.mask is None else jnp.sum(self.mask, -1, dtype=jnp.int32)

    def sums_under(self, scores, normalize, multiplier=None):
        weights = normalize(scores, None if self.mask is None else self.mask[..., None, :])
        applied = weights if multiplier is None else weights * self.fill_padding(multiplier)
        state = self._all_reduce(WeightedSum(self.weighted_sums_of(applied), jnp.sum(applied, -1)))
        return state.sum, weights, state.weight

    # ----------------------------------------------------------------------------------------------------------
    # Max, min, first and last

    def max(self):
        return self._extreme(False)

    def min(self):
        return 0 - self._extreme(True)

    def _extreme(self, least):
        state = self._all_reduce(self._flat_extreme(least))
        extreme = self._unflatten(state.finalized(), self._batch())
        return with_gradient_of(extreme, self._share_of_ties(state, least))

    def extreme_state(self, least=False):
        """Computes the :class:`MaxState` of a chunk, of minima with ``least``; ``...`` is its B."""
        state = self._flat_extreme(least)
        whole = jax.tree.map(lambda array: self._unflatten(array, self._batch()), state)
        extreme = with_gradient_of(whole.extreme, self._share_of_ties(state, least))
        return replace(whole, extreme=-extreme if least else extreme)

    def _flat_extreme(self, least):
        tokens = self._with(x=lax.stop_gradient(self.x))
        return tokens._over(functools.partial(extremes, least=least), in_place=False)[1]

    def _share_of_ties(self, state, least):
        """Returns the average [..., d] of the tokens that equal the largest, whose gradient is that of the maximum."""

        def summed(x, mask, extreme):
            x = x.astype(self.dtype)
            x = -x if least else x
            tied = lax.stop_gradient(x) == extreme[..., None, :]
            return jnp.sum(jnp.where(tied if mask is None else tied & mask[..., None], x, 0), -2)

        extreme, count = (self._unflatten(array, self._batch()) for array in (state.extreme, state.count))
        total = remat(summed)(*unify_varying(self.x, self.mask), extreme)
        if self.axis_name is not None:
            total = lax.psum(total, axis_names(self.axis_name))
        return total / jnp.maximum(count, 1).astype(total.dtype)

    def end_token(self, last):
        """Returns the last real token of the sequence, or without ``last`` the first: [..., d]; 0 if fully masked.

        It has the dtype of x, of which only one token of each sequence is read. Over a mesh the sequence is that of all
        devices. An x that the examples share is not copied.
        """
        x, mask = self.x, self.mask
        if self.length == 0:
            return jnp.zeros_like(x, shape=(*x.shape[:-2], x.shape[-1]))
        if mask is None and self.axis_name is None:
            return x[..., -1 if last else 0, :]
        if mask is None:
            position = jnp.full(x.shape[:-2], self.length - 1 if last else 0)
        else:
            position = end_position(mask, last)
        token = self.token_at(position)
        if self.axis_name is None:
            return token
        some, shard = self.has_real_token(), lax.axis_index(axis_names(self.axis_name))
        rank = jnp.broadcast_to(shard if last else self.shards - 1 - shard, position.shape)
        rank = rank if some is None else jnp.where(some, rank, -1)
        return self._all_reduce(EndToken(rank, token)).token

    def token_at(self, position):
        """Returns this device's token [..., d] at an index [...] along L; 0 if fully masked. A shared x is not copied."""
        x = jnp.broadcast_to(self.x, position.shape + self.x.shape[-2:])
        token = jnp.take_along_axis(x, position[..., None, None], -2, mode="clip")[..., 0, :]
        if self.mask is None:
            return token if self.length else jnp.zeros_like(token)
        return jnp.where(jnp.take_along_axis(self.mask, position[..., None], -1, mode="clip"), token, 0)

    # ----------------------------------------------------------------------------------------------------------
    # Tokens and padding

    def zero_padded(self):
        return keep_real(self.x.astype(self.dtype), self.mask)

    def has_real_token(self):
        """Returns bool [...]: whether an example has a real token on this device; None without a mask if L > 0."""
        if self.mask is not None:
            return jnp.any(self.mask, -1)
        return None if self.length else jnp.zeros(self.x.shape[:-2], bool)

    def fill_padding(self, weights):
        if self.mask is None:
            return weights
        mask = self.mask if weights.ndim == self.mask.ndim else self.mask[..., None, :]
        return jnp.where(mask, weights, 0)

    # ----------------------------------------------------------------------------------------------------------
    # Pieces

    def _over(self, body, tokens=(), examples=(), shared=(), in_place=True, width=None):
        """Computes ``body(piece, *tokens, *examples, *shared)``, a pair (values of tokens, state of examples).

        On CPUs it loops over pieces of large arrays (:mod:`attnpool_flax.tokens.tiles`).

        Args:
          body: from a :class:`Piece` and the arrays of its tokens, its examples and all to (a tree [B, L, ...], a state
            with fields [B, ...]). It closes over no traced array.
          tokens: arrays [..., h, L], which the body gets as [B, L, h]; or None.
          examples: pairs (array [..., own axes], the number of its own axes), which the body gets as [B or 1, own axes].
          shared: arrays that all examples share.
          in_place: whether the body only multiplies tokens. XLA's CPU backend reads those without a mask in place, in even
            parts: no loop.
          width: the number of array elements that the body holds for one token; None is that of the token.

        Returns:
          (values [B, L, ...], the state with fields [B, ...], batch axes).
        """
        batch = self._batch(*((array, 2) for array in tokens), *examples)
        arrays = [self._of_tokens(array, batch) for array in tokens]
        arrays += [self._flatten(array, own) for array, own in examples]
        x, mask, *arrays = unify_varying(self.x, self._flatten(self.mask, 1, batch), *arrays, *shared)
        count, last, number = len(tokens), len(tokens) + len(examples), math.prod(batch)

        def on(new_piece, x, mask, *arrays):
            return body(new_piece(flat(x), mask, self.precision, self.dtype), *arrays)

        def flat(x):
            # inside of what is differentiated: a scan over chunks would copy a residual of another shape than x
            return self._flatten(x, 2)

        def tiled(number, x, mask, *arrays, skip=False):
            def piece(new, x, mask, *own):
                mask = new if mask is None else mask if new is None else mask & new
                return body(Piece(x, mask, self.precision, self.dtype), *own, *arrays[last:])

            tiling: Any = tiling_of(x, number, width)
            values, states = tiling.over(piece, (x, mask, *arrays[:count]), arrays[count:last], skip)
            return values, merge_pieces(states)

        in_place = in_place and mask is None and x.dtype == self.dtype
        in_place = in_place and (not known(self.length) or self.length <= LONGEST or even_part(self.length))
        if tiling_of(flat(x), number, width) is None:
            return *remat(functools.partial(on, Whole))(x, mask, *arrays), batch
        looped = remat(functools.partial(on, Piece))
        if not (in_place or platforms.may_be_split(x)):
            first = folding(functools.partial(tiled, skip=mask is not None), number, 2 + last)
            looped = unless_differentiated(
                lambda x, *others: first(flat(x), *others), lambda x, *others: tiled(number, flat(x), *others)
            )
        both = functools.partial(platforms.by_pieces, looped, remat(functools.partial(on, OnAccelerators)))
        return *(remat(both) if in_place or self.of_chunk else both)(x, mask, *arrays), batch

    def _all_reduce(self, state):
        """Merges the states of the devices over which the sequences are split; returns ``state`` without a mesh."""
        return all_reduce_states([state], self.axis_name)[0]

    def _with(self, **fields):
        """Returns a copy of this object with other fields."""
        other = copy.copy(self)
        vars(other).update(fields)
        return other

    def _batch(self, *others):
        """Broadcasts the batch axes of tokens, mask and ``others``: pairs (array or None, its number of other axes)."""
        shapes = [self.x.shape[:-2]] + ([] if self.mask is None else [self.mask.shape[:-1]])
        shapes += [array.shape[: array.ndim - own] for array, own in others if array is not None]
        return tuple(map(common_size, zip(*shapes, strict=True)))

    def _of_tokens(self, array, batch):
        """Reshapes values of tokens [..., h, L] to [B, L, h]; None stays None."""
        return None if array is None else self._flatten(jnp.swapaxes(array, -1, -2), 2, batch)

    @staticmethod
    def _flatten(array, own, batch=None):
        """Reshapes [..., own axes] to [B, own axes]; B is 1 for a shared array, unless it is broadcast to ``batch``."""
        if array is None:
            return None
        axes = array.shape[array.ndim - own :]
        if batch is not None:
            array = jnp.broadcast_to(array, (*batch, *axes))
        return jnp.reshape(array, (math.prod(array.shape[: array.ndim - own]), *axes))

    @staticmethod
    def _unflatten(array, batch):
        return jnp.reshape(array, (*batch, *array.shape[1:]))


def _plain_sum(x, mask, divisor):
    return jnp.sum(keep_real(x.astype(divisor.dtype), mask) / divisor, -2)


def end_position(mask, last):
    """Returns the position [...] of the last real token of a mask [..., L], or of the first; any if there is none.

    XLA computes an argmax of a constant mask while it compiles, 10 µs for each element; it is quicker with a maximum.
    """
    places = jnp.arange(mask.shape[-1])
    if last:
        return jnp.max(jnp.where(mask, places, 0), -1)
    return mask.shape[-1] - 1 - jnp.max(jnp.where(mask, mask.shape[-1] - 1 - places, 0), -1)
