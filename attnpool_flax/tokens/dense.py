"""Dense tokens: padded sequences [..., L, d] with a mask, and every reduction over them; h is the number of queries."""

import copy
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from attnpool_flax.kernels import softmax_kernel
from attnpool_flax.numerics.elementwise import keep_real
from attnpool_flax.numerics.platforms import unify_varying
from attnpool_flax.numerics.remat import remat
from attnpool_flax.numerics.sizes import as_number, at_least_1, common_size, known, power_above
from attnpool_flax.numerics.softmax import exponential
from attnpool_flax.numerics.sums import computing_dtype, divisor_of, weighted
from attnpool_flax.reductions import cross, max, perceptron, softmax, sums, vlad
from attnpool_flax.reductions.accumulators import EndToken, WeightedSum, all_reduce_states, axis_names
from attnpool_flax.reductions.dispatch import KERNEL, by_implementation, log_dispatch, resolve
from attnpool_flax.reductions.loops.blocks import sum_of_map
from attnpool_flax.tokens.channels import DenseChannels
from attnpool_flax.tokens.protocol import Tokens


class Dense(Tokens):
    """Tokens [..., L, d] in the caller's dtype, their mask [..., L] or None, and the requested implementation.

    Arrays have all batch axes; along one of size 1 the examples share the array. With an axis name, the tokens are one
    device's shard of sequences over a mesh: weights are of the shard, and pooled vectors of the whole sequence.
    """

    def __init__(self, x, mask, implementation, precision=None, axis_name=None, *, recompute=False):
        """Stores the tokens. Functions of chunks set ``recompute``: their whole products save only x and small arrays."""
        self.mask, self.precision, self.dtype = mask, precision, computing_dtype(x.dtype)
        self.x, self.requested, self.axis_name, self.length = x, implementation, axis_name, x.shape[-2]
        self._recompute, self._by_implementation = recompute, functools.partial(by_implementation, recompute=recompute)
        self.shards = 1 if axis_name is None else lax.axis_size(axis_names(axis_name))

    # ----------------------------------------------------------------------------------------------------------
    # Softmax

    def softmax(self, queries, multiplier=None, has_query=None, bias=None):
        """Averages the tokens under the softmax of their products with queries [..., h, d].

        Args:
          queries: in the computing dtype ``dtype``, multiplied by the scale.
          multiplier: [..., h, L], multiplied with the weights before the average, or None.
          has_query: bool [...], or None; False for an example without a query: its products are 0, even for NaN tokens.
          bias: [..., h, L], added to the products, or None.

        Returns:
          (pooled [..., h, d], weights [..., h, L]); both are 0 for a fully masked row.
        """
        scores, state, batch = self.local_softmax(queries, multiplier, has_query, bias)
        state = self._all_reduce(state)
        return self.softmax_averages(scores, state, batch)[:2]

    def softmax_with_weight_sums(self, queries, multiplier=None, bias=None):
        """Computes :meth:`softmax`, and the sums [..., h] of the weights after the multiplier."""
        scores, state, batch = self.local_softmax(queries, multiplier, None, bias)
        state = self._all_reduce(state)
        pooled, weights, weight_sums = self.softmax_averages(scores, state, batch)
        if weight_sums is not None:
            return pooled, weights, weight_sums
        if multiplier is None:
            return pooled, weights, self._unflatten(softmax.weight_sums(state), batch)
        return pooled, weights, self.sum_over_tokens(weights * self.fill_padding(multiplier))

    def local_softmax(self, queries, multiplier=None, has_query=None, bias=None):
        """Returns (scores [B, L, h], this device's ``OnlineSoftmax``, batch axes); arguments as in :meth:`softmax`.

        Over a mesh the numerator has one more feature: the sum of the unnormalized weights after the multiplier.
        """
        batch = self._batch((queries, 2), (multiplier, 2), (bias, 2))
        multiplier, bias = [
            None if array is None else self._flatten(jnp.swapaxes(array, -1, -2), 2, batch)
            for array in (multiplier, bias)
        ]
        mask, has_query = self._flatten(self.mask, 1, batch), self._flatten(has_query, 0)
        queries = self._flatten(queries, 2)
        arrays = unify_varying(self.x, mask, has_query, queries, multiplier, bias)
        if self.requested == KERNEL:
            scores, state = softmax_kernel()(*arrays, self.precision)
        else:
            plain = self._remat(softmax.plain, 6)
            scores, state = self._by_implementation(self.requested, softmax.tiled, plain, arrays, self.precision)
        if self.axis_name is not None:
            state = softmax.with_weight_sums(state, scores, arrays[1], arrays[4])
        return scores, state, batch

    def softmax_averages(self, scores, state, batch):
        """Returns (pooled, weights, sums of weights or, without a mesh, None) of :meth:`local_softmax`, merged."""
        weights = self._unflatten(jnp.swapaxes(softmax.weights_of(scores, state), -1, -2), batch)
        pooled = self._unflatten(state.finalize(), batch)
        return (pooled, weights, None) if self.axis_name is None else (pooled[..., :-1], weights, pooled[..., -1])

    def softmax_state(self, queries, bias=None):
        """Computes a chunk's :class:`~softmax.OnlineSoftmax` under scaled queries [..., h, d]; ``...`` is its B."""
        _, state, batch = self.local_softmax(queries, bias=bias)
        return softmax.OnlineSoftmax(*(self._unflatten(array, batch) for array in state))

    def softmax_of_scores(self, scores):
        """Averages the tokens under the softmax of given scores [..., h, L]; returns what :meth:`softmax` returns."""
        scores, state, batch = self._local_softmax_of_scores(scores)
        state = self._all_reduce(state)
        return self.softmax_averages(scores, state, batch)[:2]

    def softmax_state_of_scores(self, scores):
        """Computes :meth:`softmax_state` of given scores [..., h, L]."""
        _, state, batch = self._local_softmax_of_scores(scores)
        return softmax.OnlineSoftmax(*(self._unflatten(array, batch) for array in state))

    def _local_softmax_of_scores(self, scores):
        """Computes :meth:`local_softmax` from given scores [..., h, L]."""
        batch = self._batch((scores, 2))
        scores, mask = unify_varying(
            self._flatten(jnp.swapaxes(scores, -1, -2), 2, batch), self._flatten(self.mask, 1, batch)
        )
        scores, state = softmax.state_of_scores(
            scores, mask, lambda exp_scores: self._weighted_sums(exp_scores, 1, batch)
        )
        return scores, softmax.with_weight_sums(state, scores, mask, None) if self.axis_name else state, batch

    def exp_scores(self, scores):
        """Returns (exp(score - max_score) of scores [..., h, L], 0 at padding; max_score [..., h]) of this device."""
        if self.mask is not None:
            scores = jnp.where(self.mask[..., None, :], scores, -jnp.inf)
        max_score = lax.stop_gradient(jnp.max(scores, -1, initial=-jnp.inf))
        return self.fill_padding(exponential(scores, max_score[..., None])), max_score

    def all_reduce_softmax(self, max_score, numerator):
        """Merges the pairs (max_score [..., h], numerator [..., h, d]) of all devices; unchanged without a mesh."""
        if self.axis_name is None:
            return max_score, numerator
        batch = max_score.shape[:-1]
        denominator = self._flatten(jnp.zeros_like(max_score), 1)
        state = softmax.OnlineSoftmax(self._flatten(max_score, 1), denominator, self._flatten(numerator, 2))
        state = self._all_reduce(state)
        return self._unflatten(state.max_score, batch), self._unflatten(state.numerator, batch)

    def cross_softmax(self, other, scale, mean):
        """Averages each of two sequences under the softmax of its products with the sum or mean of the other.

        Args:
          other: the other tokens [..., T, d].
          scale: of the products.
          mean: whether the products are with the mean instead of the sum.

        Returns:
          ((pooled [..., d], weights [..., L]), the same of the other); None with "einsum", a mesh or unless `cross.fits`.
        """
        if self.axis_name is not None:
            return None
        (x, y, *masks), unflatten = self.examples_with(other)
        if not cross.fits(x, y) or resolve(self.requested, x, y) != "tiles":
            return None
        scale = jnp.asarray(scale, self.dtype)
        return unflatten(cross.tiled(*unify_varying(x, y, *masks, scale), mean, self.precision))

    def examples_with(self, other):
        """Returns ((x [B or 1, L, d], y [B or 1, T, d], both masks or None), function that unflattens B of a tree)."""
        batch = self._batch((other.x, 2), *(() if other.mask is None else [(other.mask, 1)]))
        masks = self._flatten(self.mask, 1, batch), self._flatten(other.mask, 1, batch)
        arrays = self._flatten(self.x, 2), self._flatten(other.x, 2), *masks
        return arrays, lambda tree: jax.tree.map(lambda array: self._unflatten(array, batch), tree)

    # ----------------------------------------------------------------------------------------------------------
    # Sums and means

    def sum(self, weights=None, divisor=1):
        """Sums this device's real tokens under weights [..., L] or 1; each term is divided by ``divisor``: [..., d]."""
        batch = self._batch((weights, 1))
        if weights is not None:
            weights = self._flatten(weights[..., None], 2)
        return self._unflatten(self._weighted_sums(weights, divisor, batch)[:, 0], batch)

    def _weighted_sums(self, weights, divisor, batch):
        """Returns the sums [B, h, d] under several weights [B or 1, L, h], with the batch axes flattened."""
        arrays = unify_varying(self.x, self._flatten(self.mask, 1, batch), weights)
        whole = known(self.length)  # the divisor of a symbolic length is an array
        requested, plain = (self.requested if whole else "einsum"), self._remat(sums.plain_sum, *[3] * whole, 4)
        return self._by_implementation(requested, sums.tiled_sum, plain, arrays, divisor, self.precision)

    def mean(self):
        """Averages the real tokens: [..., d]; 0 for a fully masked row. Terms are divided first to avoid overflow."""
        state = self._all_reduce(self.sum_state(True))
        return self.finalize_mean(state)

    def finalize_mean(self, state):
        """Returns the mean [..., d] from the merged ``sum_state(mean=True)`` of all devices."""
        if state.weight is None:
            length = at_least_1(self.length * self.shards)
            return state.sum / ((length if known(length) else as_number(length, self.dtype)) / self.divisor)
        return state.sum / (jnp.maximum(state.weight, 1).astype(self.dtype) / self.divisor)[..., None]

    def total(self):
        """Sums the real tokens of all devices: [..., d]."""
        return self._all_reduce(self.sum_state(False)).sum

    def sum_of_map(self, function, width):
        """Sums ``function(tokens)`` [..., o] of all devices' real tokens; arguments as in :func:`sum_of_map`."""
        local = sum_of_map(function, self.x, self._real_in_any(), self.mask, width)
        return self._all_reduce(WeightedSum(local, None)).sum

    def channels(self):
        """Returns the tokens as :class:`DenseChannels`, for reductions of each channel separately."""
        return DenseChannels(self.x, self.mask, self.axis_name)

    def sum_state(self, mean):
        """Computes the :class:`WeightedSum` of this device; for a mean, each term is divided by :attr:`divisor`."""
        count = self._count()
        if self.axis_name is not None and count is not None:
            count = count.astype(self.dtype)  # shares the collective of the sum
        return WeightedSum(self.sum(None, self.divisor if mean else 1), count)

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
        return self.sum(None, self.divisor) * ratio[..., None], count

    def _count(self):
        """Counts the real tokens of this device: [...]; None without a mask."""
        return None if self.mask is None else jnp.sum(self.mask, -1, dtype=jnp.int32)

    def sums_of_residuals(self, centers, logs, dtype, precision):
        """Computes :meth:`Tokens.sums_of_residuals`; on accelerators no loop over centers reads the tokens."""
        weights, max_score = self.exp_scores(logs)
        x, mask, centers, weights = unify_varying(self.x, self.mask, centers, weights)
        return max_score, vlad.dense(self._sums_by_center, x, mask, centers, weights, dtype, precision)

    def weighted_average(self, weights):
        """Averages the tokens under weights [..., L], 0 at padding: [..., d], 0 where they sum to 0, in one collective.

        Products of weights and tokens must not overflow: rescaling the weights would take another collective.
        """
        weights = weights / self.divisor
        local = WeightedSum(self.sum(weights), jnp.sum(weights, -1))
        pooled, weight = self._all_reduce(local)
        return jnp.where(weight[..., None] == 0, 0, pooled / jnp.where(weight == 0, 1, weight)[..., None])

    def weighted_sums(self, queries, normalize, offsets=None, bias=None, multiplier=None):
        """Sums the tokens under weights that are not those of a softmax, by whole products.

        Args:
          queries: [..., h, d], in the computing dtype ``dtype``, multiplied by the scale.
          normalize: from scores [..., h, L] and their mask to weights; over a mesh it must be elementwise.
          offsets: [..., h], added to the scores, or None.
          bias: [..., h, L], added to the scores, or None.
          multiplier: [..., h, L] of the weights, or None.

        Returns:
          (pooled [..., h, d], weights [..., h, L], sums [..., h] of the weights after the multiplier).
        """
        log_dispatch("einsum")
        x, mask = self.zero_padded(), None if self.mask is None else self.mask[..., None, :]
        scores = jnp.einsum("...ld,...hd->...hl", x, queries, precision=self.precision)
        if offsets is not None:
            scores = scores + offsets[..., None]
        if bias is not None:
            scores = scores + self.fill_padding(bias)
        weights = normalize(scores, mask)
        applied = weights if multiplier is None else weights * self.fill_padding(multiplier)
        local = WeightedSum(weighted(applied, x, self.precision), jnp.sum(applied, -1))
        state = self._all_reduce(local)
        return state.sum, weights, state.weight

    def weighted_sums_of_scores(self, scores, normalize):
        """Returns (sums [..., h, d], weights) under scores [..., h, L]; ``normalize`` as in :meth:`weighted_sums`."""
        weights = normalize(scores, None if self.mask is None else self.mask[..., None, :])
        batch = self._batch((weights, 2))
        local = self._weighted_sums(self._flatten(jnp.swapaxes(weights, -1, -2), 2), 1, batch)
        state = self._all_reduce(WeightedSum(self._unflatten(local, batch), None))
        return state.sum, weights

    # ----------------------------------------------------------------------------------------------------------
    # Max, min, first and last

    def max(self):
        """Computes the max over real tokens of each feature: [..., d]; 0 for a fully masked row."""
        state, batch = self._extreme(False)
        return self._unflatten(state.finalize().astype(self.dtype), batch)

    def min(self):
        """Computes the min over real tokens of each feature: [..., d]; 0 for a fully masked row."""
        state, batch = self._extreme(True)
        return self._unflatten(0 - state.finalize().astype(self.dtype), batch)

    def extreme_state(self, least=False):
        """Computes the :class:`~max.ExtremeState` of a chunk, of minima with ``least``, in the computing dtype."""
        state, batch = self._extreme(least)
        state = state._replace(extreme=max.signed(state.extreme.astype(self.dtype), least))
        return max.ExtremeState(*(self._unflatten(array, batch) for array in state))

    def _extreme(self, least):
        batch = self._batch()
        x, mask = unify_varying(self.x, self._flatten(self.mask, 1, batch))
        tokens = x if self.axis_name is None else lax.stop_gradient(x)
        state = self._by_implementation(self.requested, max.tiled, self._remat(max.plain, 2), (tokens, mask), least)
        if self.axis_name is None:
            return state, batch
        state = self._all_reduce(state)
        extreme = max.with_gradient(max.signed(self._flatten(x, 2), least), mask, state, self.axis_name)
        return state._replace(extreme=extreme), batch

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
        elif last:
            position = mask.shape[-1] - 1 - jnp.argmax(jnp.flip(mask, -1), -1)
        else:
            position = jnp.argmax(mask, -1)
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
        """Returns the tokens in the computing dtype ``dtype``, padding as 0."""
        return keep_real(self.x.astype(self.dtype), self.mask)

    def minus(self, origin):
        """Returns the tokens minus an origin [d], in the computing dtype ``dtype``; values at padding are arbitrary."""
        other = copy.copy(self)
        other.x = self.x.astype(self.dtype) - jnp.reshape(origin, (1,) * (self.x.ndim - 1) + origin.shape)
        return other

    def perceptron(self, kernel, bias, out_kernel, activation):
        """Returns (scores [..., n, L] of :func:`perceptron.plain`, the :class:`Dense` that later reductions read).

        The batch axes of the scores are those of x.
        """
        after, arrays = copy.copy(self), unify_varying(self.x, self._real_in_any(), kernel, bias, out_kernel)
        kernels = perceptron.tiled, perceptron.with_tokens(self._remat(perceptron.plain, 5, 6))
        static = activation, self.precision, not self._recompute
        scores, after.x = self._by_implementation(self.requested, *kernels, arrays, *static)
        return jnp.swapaxes(scores, -1, -2), after

    def _real_in_any(self):
        """Returns bool of x's shape without d: tokens real in any example that shares them; None without a mask."""
        if self.mask is None:
            return None
        pairs = enumerate(zip(self.x.shape[:-2], self.mask.shape[:-1], strict=True))
        shared = [axis for axis, (own, all_) in pairs if known(own) and own == 1 and all_ != 1]
        return jnp.any(self.mask, shared, keepdims=True) if shared else self.mask

    def has_real_token(self):
        """Returns bool [...]: whether an example has a real token on this device; None without a mask if L > 0."""
        if self.mask is not None:
            return jnp.any(self.mask, -1)
        return None if self.length else jnp.zeros(self.x.shape[:-2], bool)

    def fill_padding(self, weights):
        """Sets weights [..., L] or [..., h, L] to 0 at padding."""
        if self.mask is None:
            return weights
        mask = self.mask if weights.ndim == self.mask.ndim else self.mask[..., None, :]
        return jnp.where(mask, weights, 0)

    def sum_over_tokens(self, weights):
        """Sums weights [..., L] or [..., h, L], 0 at padding, over this device's tokens: [...] or [..., h]."""
        return jnp.sum(weights, -1)

    def max_over_tokens(self, weights):
        """Computes the maximum over this device's tokens of [..., L], 0 at padding, at least 0: [...]."""
        return jnp.max(weights, -1, initial=0)

    def expand_to_tokens(self, values):
        """Expands values of examples [...] to broadcast against values of tokens: [..., 1]."""
        return values[..., None]

    # ----------------------------------------------------------------------------------------------------------
    # Dispatch and batch axes

    def _all_reduce(self, state):
        """Merges the accumulators of the devices over which the sequences are split; returns ``state`` without a mesh."""
        return all_reduce_states([state], self.axis_name)[0]

    def _remat(self, kernel, *static):
        """Returns a kernel of whole products, rematerialized if ``recompute`` is set; ``static``: positions of its options."""
        return remat(kernel, static) if self._recompute else kernel

    def _batch(self, *others):
        """Broadcasts the batch axes of tokens, mask and ``others``: pairs (array or None, its number of other axes)."""
        shapes = [self.x.shape[:-2]] + ([] if self.mask is None else [self.mask.shape[:-1]])
        shapes += [array.shape[: array.ndim - own] for array, own in others if array is not None]
        return tuple(map(common_size, zip(*shapes, strict=True)))

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
