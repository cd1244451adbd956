"""Random arguments of calls that are written out."""

import numpy as np


def draw(rng, *shape):
    """Normally distributed numbers in float32."""
    return rng.normal(size=shape).astype(np.float32)
