"""Interface that dense and packed tokens share: pooling functions are written once, for both layouts."""

import copy
import math
from typing import Any

import jax.numpy as jnp

from attnpool_flax.reductions.query_blocks import over_first
from attnpool_flax.reductions.sums import computing


class Tokens:
    """Base class of :class:`~attnpool_flax.reductions.Dense` and :class:`~attnpool_flax.reductions.Packed` tokens.

    An example of packed tokens is a segment.

    Attributes:
      x: the tokens in the caller's dtype, [..., L, d] or packed [N, d].
      dtype: the dtype of the computation, float32 or float64.
    """

    x: Any
    dtype: Any

    def end_token(self, last):
        """Returns the last real token of each example, [..., d], or the first if not ``last``; 0 if fully masked."""
        raise NotImplementedError

    def first(self):
        """Returns the first real token of each example; 0 if fully masked."""
        return self.end_token(last=False)

    def last(self):
        """Returns the last real token of each example; 0 if fully masked."""
        return self.end_token(last=True)

    def with_values(self, values):
        """Returns a copy of this object with other values [..., L, e] or [N, e] in place of x, under the same mask."""
        other = copy.copy(self)
        other.x, other.dtype = values, computing(values.dtype)
        return other

    def sums_of_residuals(self, centers, logs, dtype, precision):
        """Sums the tokens minus each of the centers [K, d] under the exponentials of logarithms [..., K, L].

        The tokens are in the computing dtype; ``dtype`` is that of the caller's tokens.

        Returns:
          (max_score [..., K], the largest logarithm at a real token, a constant in the gradient; the sums [..., K, d]
          under exp(log - max_score)), of this device.
        """
        weights, max_score = self.exp_scores(logs)
        return max_score, self._sums_of_residuals(centers, weights, dtype, precision)

    def _sums_of_residuals(self, centers, weights, dtype, precision):
        """Sums the tokens minus each of the centers under weights [..., K, L]: [..., K, d].

        It loops over blocks of centers, without products of tokens and centers, to which ``dtype`` and ``precision``
        would apply.
        """
        del dtype, precision

        def of_center(center, weights):
            return self.minus(center).sum(weights)

        parts = centers, jnp.moveaxis(weights, -2, 0)
        return jnp.moveaxis(over_first(of_center, parts, math.prod(self.x.shape)), 0, -2)

    def exp_scores(self, scores):
        """Returns (exp(score - max_score) of scores [..., h, L], 0 at padding; max_score [..., h])."""
        raise NotImplementedError

    def minus(self, origin):
        """Returns the tokens minus an origin [d], in the computing dtype ``dtype``; values at padding are arbitrary."""
        raise NotImplementedError

    def sum(self, weights=None):
        """Sums the real tokens of each example; with weights, [..., L] or [N], each multiplied by its weight."""
        raise NotImplementedError

    def per_feature(self, weights):
        """Returns whether weights are [..., L, d] or [N, d], with an axis of features, not [..., L] or [N]."""
        return weights.ndim == self.x.ndim
