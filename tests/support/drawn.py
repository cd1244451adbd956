"""Random arrays for calls that tests write out."""

import numpy as np


def draw(rng, *shape):
    """Draws normally distributed numbers in float32."""
    return rng.normal(size=shape).astype(np.float32)
