"""Operations of dense and packed tokens that the body of a pooling function may call: one body serves both layouts."""

import copy
import math
from abc import ABC, abstractmethod
from typing import Any

import jax.numpy as jnp

from attnpool_flax.numerics.sums import computing_dtype
from attnpool_flax.reductions.loops.blocks import over_first


class Tokens(ABC):
    """Base class of :class:`~attnpool_flax.tokens.Dense` and :class:`~attnpool_flax.tokens.Packed` tokens.

    Its methods are all that the body of a pooling function calls, except for what a function of dense tokens alone
    asks of them. Shapes are those of dense tokens: an example is a sequence with batch axes [...] and L tokens. Of
    packed tokens an example is one of S segments: [..., d] is [S, d], [..., L] is [N], and [..., h, L] is [h, N].
    Pooled vectors are 0 for a fully masked example, and are those of the whole sequence also over a mesh.

    Attributes:
      x: the tokens in the caller's dtype, [..., L, d] or packed [N, d].
      dtype: the dtype of the computation, float32 or float64.
    """

    x: Any
    dtype: Any

    # Sums and means

    @abstractmethod
    def sum(self, weights=None) -> Any:
        """Sums the real tokens, [..., d]; with weights [..., L], each multiplied by its own. Of this device alone."""

    @abstractmethod
    def total(self) -> Any:
        """Sums the real tokens: [..., d]."""

    @abstractmethod
    def mean(self) -> Any:
        """Averages the real tokens: [..., d]."""

    @abstractmethod
    def sum_of_map(self, function, width) -> Any:
        """Sums ``function(tokens)`` [..., o] of the real tokens, block by block.

        ``width`` is the number of array elements that the function holds for one token.
        """

    @abstractmethod
    def weighted_sums(self, queries, normalize, offsets=None, bias=None, multiplier=None) -> Any:
        """Sums the tokens under weights ``normalize(products with queries, mask)``: (pooled, weights, sums of weights)."""

    @abstractmethod
    def weighted_sums_of_scores(self, scores, normalize) -> Any:
        """Sums the tokens under weights ``normalize(scores [..., h, L], mask)``: (pooled [..., h, d], weights)."""

    @abstractmethod
    def channels(self) -> Any:
        """Returns the tokens for reductions of each channel separately."""

    # Softmax

    @abstractmethod
    def softmax(self, queries, multiplier=None, has_query=None, bias=None) -> Any:
        """Averages under the softmax of products with queries [..., h, d]: (pooled [..., h, d], weights [..., h, L])."""

    @abstractmethod
    def softmax_with_weight_sums(self, queries, multiplier=None, bias=None) -> Any:
        """Computes :meth:`softmax`, and the sums [..., h] of the weights after the multiplier."""

    @abstractmethod
    def softmax_of_scores(self, scores) -> Any:
        """Averages under the softmax of given scores [..., h, L]; returns what :meth:`softmax` returns."""

    def drop(self, pooled, weights, multiplier):
        """Returns ``pooled``, or with a dropout multiplier the sums of the tokens under weights times the multiplier.

        Weights and multiplier are [..., L] or [..., h, L], ``pooled`` is [..., d] or [..., h, d].
        """
        if multiplier is None:
            return pooled
        applied = weights * self.fill_padding(multiplier)
        single = applied.ndim < self.x.ndim
        applied = applied[..., None, :] if single else applied
        found, _ = self.weighted_sums_of_scores(applied, lambda applied, mask: applied)
        return found[..., 0, :] if single else found

    @abstractmethod
    def exp_scores(self, scores) -> Any:
        """Returns (exp(score - max_score) of scores [..., h, L], 0 at padding; max_score [..., h]) of this device."""

    @abstractmethod
    def all_reduce_softmax(self, max_score, numerator) -> Any:
        """Merges pairs (max_score [..., h], numerator [..., h, d]) of all devices."""

    @abstractmethod
    def cross_softmax(self, other, scale, mean) -> Any:
        """Averages both of two sequences under the softmax of products with the other's sum or mean, or returns None."""

    @abstractmethod
    def perceptron(self, kernel, bias, out_kernel, activation) -> Any:
        """Scores each token by a perceptron with one hidden layer: (scores [..., n, L], tokens to use from then on)."""

    # Single tokens and extremes

    @abstractmethod
    def max(self) -> Any:
        """Computes the maximum of each feature over the real tokens: [..., d]."""

    @abstractmethod
    def min(self) -> Any:
        """Computes the minimum of each feature over the real tokens: [..., d]."""

    @abstractmethod
    def end_token(self, last) -> Any:
        """Returns the last real token of each example, [..., d], or the first if not ``last``; 0 if fully masked."""

    def first(self):
        """Returns the first real token of each example; 0 if fully masked."""
        return self.end_token(last=False)

    def last(self):
        """Returns the last real token of each example; 0 if fully masked."""
        return self.end_token(last=True)

    def with_values(self, values):
        """Returns a copy of this object with other values [..., L, e] or [N, e] in place of x, under the same mask."""
        other = copy.copy(self)
        other.x, other.dtype = values, computing_dtype(values.dtype)
        return other

    def sums_of_residuals(self, centers, logs, dtype, precision):
        """Sums the tokens minus each of the centers [K, d] under the exponentials of logarithms [..., K, L].

        The tokens are in the computing dtype; ``dtype`` is that of the caller's tokens.

        Returns:
          (max_score [..., K], the largest logarithm at a real token, a constant in the gradient; the sums [..., K, d]
          under exp(log - max_score)), of this device.
        """
        weights, max_score = self.exp_scores(logs)
        del dtype, precision  # of products of tokens and centers
        return max_score, self._sums_by_center(centers, weights)

    def _sums_by_center(self, centers, weights):
        """Sums the tokens minus each of the centers under weights [..., K, L], by blocks of centers: [..., K, d]."""

        def of_center(center, weights):
            return self.minus(center).sum(weights)

        parts = centers, jnp.moveaxis(weights, -2, 0)
        return jnp.moveaxis(over_first(of_center, parts, math.prod(self.x.shape)), 0, -2)

    # Values of tokens

    @abstractmethod
    def zero_padded(self) -> Any:
        """Returns the tokens in the computing dtype ``dtype``, 0 at padding."""

    @abstractmethod
    def minus(self, origin) -> Any:
        """Returns the tokens minus an origin [d], in the computing dtype ``dtype``; values at padding are arbitrary."""

    @abstractmethod
    def has_real_token(self) -> Any:
        """Returns bool [...]: whether an example has a real token; None for dense tokens without a mask."""

    @abstractmethod
    def fill_padding(self, weights) -> Any:
        """Sets weights [..., L] or [..., h, L] to 0 at padding."""

    @abstractmethod
    def sum_over_tokens(self, weights) -> Any:
        """Sums weights [..., L] or [..., h, L], 0 at padding, over the tokens: [...] or [..., h]."""

    @abstractmethod
    def max_over_tokens(self, weights) -> Any:
        """Computes the maximum of weights [..., L] over the tokens, at least 0: [...]."""

    @abstractmethod
    def expand_to_tokens(self, values) -> Any:
        """Expands values of examples [...] to their tokens; arbitrary at padding."""

    def per_feature(self, weights):
        """Returns whether weights are [..., L, d] or [N, d], with an axis of features, not [..., L] or [N]."""
        return weights.ndim == self.x.ndim
