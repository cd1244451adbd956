"""Tokens of a segment of a packed sequence."""

import numpy as np

from attnpool_ref.primitives.exchange import primitive


@primitive
def members(segment_ids, segment):
    """Returns the indices of a segment's tokens, in their order."""
    return np.flatnonzero(segment_ids == segment)
