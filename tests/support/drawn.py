"""Random arrays for calls that tests write out, and the ways to call a function."""

import numpy as np

from attnpool_ref.conformance import cases


def draw(rng, *shape):
    """Draws normally distributed numbers in float32."""
    return rng.normal(size=shape).astype(np.float32)


def way(row, title=None):
    """Returns (title, names of optional arguments, options) of a way to call a row: by default the one with most arguments."""
    title = title or cases.fullest_way(row)
    return next(found for found in cases.configurations(row) if found[0] == title)
