"""The interface that dense and packed tokens share: a body reads tokens in any layout."""

import copy
import math
from typing import Any

import jax.numpy as jnp

from attnpool_flax.reductions.query_blocks import over_first
from attnpool_flax.reductions.sums import computing


class Tokens:
    """Tokens in a layout: their array ``x`` in the caller's dtype, and which of them belong together."""

    x: Any
    dtype: Any

    def end_token(self, last):
        """Returns the last real token of each example, or the first; 0 if fully masked."""
        raise NotImplementedError

    def first(self):
        """Returns the first real token of each example; 0 if fully masked."""
        return self.end_token(last=False)

    def last(self):
        """Returns the last real token of each example; 0 if fully masked."""
        return self.end_token(last=True)

    def with_values(self, values):
        """Returns other tokens at the same positions, under the same mask."""
        other = copy.copy(self)
        other.x, other.dtype = values, computing(values.dtype)
        return other

    def sums_of_residuals(self, centers, weights):
        """Sums the tokens minus each centre [K, d] under weights [..., K, L]: [..., K, d]; one centre after another."""

        def of_center(center, weights):
            return self.minus(center).sum(weights)

        parts = centers, jnp.moveaxis(weights, -2, 0)
        return jnp.moveaxis(over_first(of_center, parts, math.prod(self.x.shape)), 0, -2)

    def minus(self, origin):
        """Returns the tokens minus an origin [d], in the computing dtype; values at padding are arbitrary."""
        raise NotImplementedError

    def sum(self, weights=None):
        """Sums the tokens under weights or 1."""
        raise NotImplementedError

    def per_feature(self, weights):
        """Returns whether weights have an axis of features."""
        return weights.ndim == self.x.ndim
