"""The interface that dense and packed tokens share: a body reads tokens in any layout."""

import copy
from typing import Any

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

    def per_feature(self, weights):
        """Returns whether weights have an axis of features."""
        return weights.ndim == self.x.ndim
